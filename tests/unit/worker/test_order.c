/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Order of work: rings wait for rings, frees for work, clients for nobody. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

enum { GRANULE = FAKE_GRANULE };

static struct peer *peer;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    peer = peer_attach(1);
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    peer_detach(peer);
    return harness_stop(state);
}

/* ---- dependencies ---- */

static void a_wait_for_a_reached_value_needs_no_event(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    uint64_t value = peer_push_nop(peer, 0);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_int_equal(peer_wait(peer, other, peer_push_wait(peer, other, 0, value)), 0);
    assert_int_equal(fake_count(FAKE_WAIT), 0);
}

static void a_wait_for_work_in_flight_uses_an_event(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    fake_hold();
    uint64_t value = peer_push_nop(peer, 0);
    peer_wait_head(peer, 0, value);
    uint64_t after = peer_push_wait(peer, other, 0, value);
    peer_wait_head(peer, other, after);
    struct fake_call record = fake_call(FAKE_RECORD, 0), wait = fake_call(FAKE_WAIT, 0);
    assert_ptr_equal(record.object, wait.object);
    assert_ptr_not_equal(record.stream, wait.stream);
    fake_release();
    assert_int_equal(peer_wait(peer, other, after), 0);
}

static void a_wait_for_a_value_not_yet_pushed_blocks_the_ring(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    peer_push_wait(peer, other, 0, 2);
    uint64_t after = peer_push_nop(peer, other);
    peer_push_nop(peer, 0);
    assert_int_equal(peer_wait(peer, 0, 1), 0);
    assert_int_equal(peer_completed(peer, other), 0);
    peer_push_nop(peer, 0);
    assert_int_equal(peer_wait(peer, other, after), 0);
}

static void a_sleeper_on_a_blocked_ring_is_woken(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    uint64_t after = peer_push_wait(peer, other, 0, 1);
    struct ring *ring = &peer->producers[other].ring;
    struct timeline timeline = {.stream = ring->status,
                                .status = ring_status_header(peer->status.base),
                                .ring = ring->header,
                                .header = ring_client_header(peer->rings.base),
                                .index = other,
                                .eventfd = peer->doorbell};
    assert_false(timeline_wait_prepare(&timeline, after));
    doorbell_ring(timeline.header, other, peer->doorbell);
    peer_push_nop(peer, 0);
    /* No look at the word in between: only the wake ends this early. */
    uint64_t start = clock_now();
    while (timeline_reached(&timeline) < after) {
        timeline_sleep(timeline_word(ring->status), 0, 5000000000);
        assert_true(clock_now() - start < 4000000000u);
    }
    timeline_wait_done(&timeline);
}

static void chain_of_waits(void **state)
{
    (void)state;
    uint32_t streams[5] = {0};
    for (int i = 1; i < 5; i++)
        streams[i] = peer_stream(peer, 0);
    for (int i = 4; i > 0; i--)
        peer_push_wait(peer, streams[i], streams[i - 1], 1);
    peer_push_nop(peer, 0);
    assert_int_equal(peer_wait(peer, streams[4], 1), 0);
}

static void three_dependencies_at_once(void **state)
{
    (void)state;
    uint32_t a = peer_stream(peer, 0), b = peer_stream(peer, 0), c = peer_stream(peer, 0);
    struct proto_command_wait wait = {.opcode = PROTO_COMMAND_WAIT,
                                      .count = 3,
                                      .on[0].stream = a,
                                      .on[0].value = 1,
                                      .on[1].stream = b,
                                      .on[1].value = 1,
                                      .on[2].stream = c,
                                      .on[2].value = 1};
    peer_push(peer, 0, &wait);
    peer_push_nop(peer, a);
    assert_int_equal(peer_wait(peer, a, 1), 0);
    peer_push_nop(peer, c);
    assert_int_equal(peer_wait(peer, c, 1), 0);
    assert_int_equal(peer_completed(peer, 0), 0);
    peer_push_nop(peer, b);
    assert_int_equal(peer_wait(peer, 0, 1), 0);
}

static void circle_of_three_is_found(void **state)
{
    (void)state;
    uint32_t a = peer_stream(peer, 0), b = peer_stream(peer, 0);
    struct peer *innocent = peer_attach(2);
    peer_push_wait(peer, 0, a, 1);
    peer_push_wait(peer, a, b, 1);
    assert_false(harness_has_message(20));
    peer_push_wait(peer, b, 0, 1);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    const struct proto_worker_misbehaved *said = harness.message.body;
    assert_int_equal(said->error, PROTO_ERROR_DEPENDENCY_CIRCLE);
    assert_int_equal(peer_wait(innocent, 0, peer_push_nop(innocent, 0)), 0);
    peer_detach(innocent);
}

/* The first of the two conditions leads into no circle, through a ring that the second one reaches,
 * too. */
static void circle_behind_a_ring_that_was_looked_at_is_found(void **state)
{
    (void)state;
    uint32_t a = peer_stream(peer, 0), b = peer_stream(peer, 0);
    uint32_t common = peer_stream(peer, 0), free_one = peer_stream(peer, 0);
    struct proto_command_wait second = {
        .opcode = PROTO_COMMAND_WAIT,
        .count = 2,
        .on = {{.stream = 0, .value = 1}, {.stream = common, .value = 1}}};
    struct proto_command_wait both = {.opcode = PROTO_COMMAND_WAIT,
                                      .count = 2,
                                      .on = {{.stream = a, .value = 1}, {.stream = b, .value = 1}}};
    peer_push_wait(peer, common, free_one, 1);
    peer_push_wait(peer, a, common, 1);
    peer_push(peer, b, &second);
    peer_push(peer, 0, &both);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    const struct proto_worker_misbehaved *said = harness.message.body;
    assert_int_equal(said->error, PROTO_ERROR_DEPENDENCY_CIRCLE);
}

static void two_that_wait_for_a_third_are_no_circle(void **state)
{
    (void)state;
    uint32_t a = peer_stream(peer, 0), b = peer_stream(peer, 0);
    peer_push_wait(peer, a, 0, 1);
    peer_push_wait(peer, b, a, 1);
    peer_push_wait(peer, b, 0, 1);
    peer_push_nop(peer, 0);
    assert_int_equal(peer_wait(peer, b, 2), 0);
    assert_false(harness_has_message(0));
}

static void a_linked_wait_blocks_until_the_other_device_is_done(void **state)
{
    (void)state;
    struct shm shadows;
    assert_int_equal(shm_create(&shadows, "other shadows", 4096), 0);
    struct proto_worker_link link = {.streams = STREAMS, .link = 1};
    harness_send(PROTO_WORKER_LINK, 1, &link, NULL, 0, &shadows.fd, 1);
    assert_int_equal(harness_receive(), PROTO_LINKED);
    struct proto_command_wait wait = {.opcode = PROTO_COMMAND_WAIT,
                                      .count = 1,
                                      .on[0].stream = 3,
                                      .on[0].link =
                                          ((const struct proto_linked *)harness.message.body)->link,
                                      .on[0].value = 9};
    uint64_t value = peer_push(peer, 0, &wait);
    uint64_t *word = (uint64_t *)shadows.base + 3;
    __atomic_store_n(word, 8, __ATOMIC_SEQ_CST);
    uint32_t other = peer_stream(peer, 0);
    assert_int_equal(peer_wait(peer, other, peer_push_nop(peer, other)), 0);
    assert_int_equal(peer_completed(peer, 0), 0);
    __atomic_store_n(word, 9, __ATOMIC_SEQ_CST);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    shm_release(&shadows);
}

static void wait_on_a_stream_that_the_link_lacks_is_refused(void **state)
{
    (void)state;
    struct shm shadows;
    assert_int_equal(shm_create(&shadows, "other shadows", 4096), 0);
    struct proto_worker_link link = {.streams = 3, .link = 1};
    harness_send(PROTO_WORKER_LINK, 1, &link, NULL, 0, &shadows.fd, 1);
    assert_int_equal(harness_receive(), PROTO_LINKED);
    struct proto_command_wait wait = {.opcode = PROTO_COMMAND_WAIT,
                                      .count = 1,
                                      .on[0].stream = 2,
                                      .on[0].link = 1,
                                      .on[0].value = 0};
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &wait)), 0);
    wait.on[0].stream = 3;
    peer_push(peer, 0, &wait);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    const struct proto_worker_misbehaved *said = harness.message.body;
    assert_non_null(strstr(said->text, "wait.stream0: link 1 has no stream 3"));
    shm_release(&shadows);
}

static void a_client_that_leaves_releases_the_clients_that_wait(void **state)
{
    (void)state;
    struct peer *other = peer_attach(2);
    struct proto_worker_link link = {.streams = STREAMS, .link = 1};
    harness_send(PROTO_WORKER_LINK, 1, &link, NULL, 0, &other->shadows.fd, 1);
    assert_int_equal(harness_receive(), PROTO_LINKED);
    struct proto_command_wait wait = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].link = 1, .on[0].value = 1};
    uint64_t value = peer_push(peer, 0, &wait);
    peer_detach(other);
    assert_int_equal(peer_wait(peer, 0, value), 0);
}

/* ---- deferred frees ---- */

static void new_memory_is_zero(void **state)
{
    (void)state;
    const volatile uint8_t *bytes = (const volatile uint8_t *)(uintptr_t)peer_map(peer, 0, GRANULE);
    assert_int_equal(bytes[0], 0);
    assert_int_equal(bytes[GRANULE - 1], 0);
}

static void unmap_waits_for_work_issued_before(void **state)
{
    (void)state;
    uint64_t address = peer_map(peer, 0, GRANULE);
    fake_hold();
    uint64_t value = peer_push_nop(peer, 0);
    peer_wait_head(peer, 0, value);
    struct proto_worker_unmap unmap = {.address = address, .count = GRANULE};
    uint64_t serial = harness_send(PROTO_WORKER_UNMAP, 1, &unmap, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    assert_int_equal(fake_count(FAKE_UNMAP), 1); /* the worker's own, at its start */
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, serial);
    assert_int_equal(fake_count(FAKE_UNMAP), 2);
    assert_int_equal(fake.unmapped_busy, 0);
}

/* An ordinary error of the driver: what is mapped still stays known, unusable, and goes with its
 * client. */
static void memory_that_cannot_be_unmapped_stays_charged(void **state)
{
    (void)state;
    uint64_t address = peer_map(peer, 0, GRANULE);
    fake.next_unmap = CUDA_ERR_INVALID_VALUE;
    struct proto_worker_unmap unmap = {.address = address, .count = GRANULE};
    harness_ask(PROTO_WORKER_UNMAP, 1, &unmap, PROTO_FAILED);
    int live = fake.live_maps;
    struct proto_worker_map again = {.address = address, .count = GRANULE};
    harness_ask(PROTO_WORKER_MAP, 1, &again, PROTO_FAILED);
    assert_int_equal(fake.live_maps, live);
    struct proto_command_fill fill = {
        .opcode = PROTO_COMMAND_FILL, .destination = address, .count = 4, .width = 4};
    peer_push(peer, 0, &fill);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    assert_int_equal(fake_count(FAKE_FILL), 0);
}

static void unmap_does_not_wait_for_work_issued_after(void **state)
{
    (void)state;
    uint64_t address = peer_map(peer, 0, GRANULE);
    peer_map(peer, GRANULE, GRANULE);
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    struct proto_worker_unmap unmap = {.address = address, .count = GRANULE};
    harness_ask(PROTO_WORKER_UNMAP, 1, &unmap, PROTO_DONE);
}

static void command_issued_after_the_free_is_refused(void **state)
{
    (void)state;
    uint64_t address = peer_map(peer, 0, GRANULE);
    struct proto_command_fill fill = {
        .opcode = PROTO_COMMAND_FILL, .destination = address, .count = 1, .width = 4};
    uint32_t gate = peer_stream(peer, 0);
    /* Before the free, but held back until after it: that one is still carried out. */
    peer_push_wait(peer, 0, gate, 1);
    peer_push(peer, 0, &fill);
    struct proto_worker_unmap unmap = {.address = address, .count = GRANULE};
    harness_send(PROTO_WORKER_UNMAP, 1, &unmap, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    peer_push(peer, 0, &fill);
    fake_hold();
    peer_push_nop(peer, gate);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    assert_int_equal(fake_count(FAKE_FILL), 1);
    assert_int_equal(fake_count(FAKE_UNMAP), 1);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(fake.unmapped_busy, 0);
}

static void unmap_waits_for_the_work_of_a_destroyed_stream(void **state)
{
    (void)state;
    uint64_t address = peer_map(peer, 0, GRANULE);
    struct proto_command_fill fill = {
        .opcode = PROTO_COMMAND_FILL, .destination = address, .count = 1, .width = 4};
    uint32_t stream = peer_stream(peer, 0), gate = peer_stream(peer, 0);
    struct proto_stream_destroy destroy = {.stream = stream};
    /* The fill was pushed before its stream was destroyed, and is read after the free. */
    peer_push_wait(peer, stream, gate, 1);
    peer_push(peer, stream, &fill);
    harness_ask(PROTO_STREAM_DESTROY, 1, &destroy, PROTO_DONE);
    struct proto_worker_unmap unmap = {.address = address, .count = GRANULE};
    harness_send(PROTO_WORKER_UNMAP, 1, &unmap, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    assert_int_equal(fake_count(FAKE_UNMAP), 1);
    peer_push_nop(peer, gate);
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(fake_count(FAKE_FILL), 1);
    assert_int_equal(fake.unmapped_busy, 0);
}

static void launch_issued_after_the_unload_is_refused(void **state)
{
    (void)state;
    peer_load_text(peer, 7, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 7, "kernel"));
    struct proto_module_unload unload = {.module = 7};
    uint32_t gate = peer_stream(peer, 0);
    /* Before the unload, but held back until after it: that one is still carried out. */
    peer_push_wait(peer, 0, gate, 1);
    peer_push(peer, 0, &launch);
    harness_send(PROTO_MODULE_UNLOAD, 1, &unload, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    peer_push(peer, 0, &launch);
    fake_hold();
    peer_push_nop(peer, gate);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    assert_int_equal(fake_count(FAKE_LAUNCH), 1);
    assert_int_equal(fake_count(FAKE_UNLOAD), 0);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(fake.unmapped_busy, 0);
}

static void record_issued_after_the_events_end_is_refused(void **state)
{
    (void)state;
    uint32_t event = peer_event(peer);
    struct proto_command_event_record record = {.opcode = PROTO_COMMAND_EVENT_RECORD,
                                                .event = event};
    struct proto_event_destroy destroy = {.event = event};
    uint32_t gate = peer_stream(peer, 0);
    peer_push_wait(peer, 0, gate, 1);
    uint64_t good = peer_push(peer, 0, &record);
    harness_ask(PROTO_EVENT_DESTROY, 1, &destroy, PROTO_DONE);
    peer_push(peer, 0, &record);
    peer_push_nop(peer, gate);
    assert_int_equal(harness_receive(), PROTO_WORKER_MISBEHAVED);
    assert_int_equal(peer_wait(peer, 0, good), 0);
    assert_int_equal(peer_completed(peer, 0), good);
}

static void quiesce_covers_every_stream(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    fake_hold();
    peer_push_nop(peer, other);
    uint64_t serial = harness_send(PROTO_WORKER_QUIESCE, 1, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, serial);
}

static void unload_waits_for_work(void **state)
{
    (void)state;
    peer_load_text(peer, 7, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 7, "kernel"));
    fake_hold();
    peer_wait_head(peer, 0, peer_push(peer, 0, &launch));
    struct proto_module_unload unload = {.module = 7};
    harness_send(PROTO_MODULE_UNLOAD, 1, &unload, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    assert_int_equal(fake_count(FAKE_UNLOAD), 0);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(fake_count(FAKE_UNLOAD), 1);
    assert_int_equal(fake.unmapped_busy, 0);
}

static void host_buffer_waits_for_work(void **state)
{
    (void)state;
    uint64_t address = peer_host_map(peer, 0, 4096);
    uint32_t before = fake_count(FAKE_UNREGISTER);
    fake_hold();
    peer_wait_head(peer, 0, peer_push_nop(peer, 0));
    struct proto_worker_host_unmap unmap = {.address = address, .count = 4096};
    harness_send(PROTO_WORKER_HOST_UNMAP, 1, &unmap, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    assert_int_equal(fake_count(FAKE_UNREGISTER), before);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(fake_count(FAKE_UNREGISTER), before + 1);
    /* The arena is reserved again: nobody else's mmap can settle there, and the buffer is gone. */
    assert_int_equal(shm_reserve(address, 4096), -EEXIST);
    assert_int_equal(msync((void *)(uintptr_t)address, 4096, MS_SYNC), 0);
    assert_int_equal(write(peer->doorbell, (const void *)(uintptr_t)address, 8), -1);
    assert_int_equal(errno, EFAULT);
}

static void detach_waits_for_work_and_drops_the_rest(void **state)
{
    (void)state;
    struct peer *other = peer_attach(2);
    peer_map(other, 0, GRANULE);
    peer_host_map(other, 0, 4096);
    peer_load_text(other, 1, harness_ptx, 0);
    peer_event(other);
    uint32_t held = peer_stream(other, 0);
    peer_push_wait(other, held, 0, 100);
    fake_hold();
    peer_wait_head(other, 0, peer_push_nop(other, 0));
    harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    assert_int_equal(fake_count(FAKE_UNMAP), 1);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(fake_count(FAKE_UNMAP), 2);
    assert_int_equal(fake.unmapped_busy, 0);
    peer_free(other);
}

static void detach_answers_pending_requests_first(void **state)
{
    (void)state;
    struct peer *other = peer_attach(2);
    uint64_t address = peer_map(other, 0, GRANULE);
    fake_hold();
    peer_wait_head(other, 0, peer_push_nop(other, 0));
    struct proto_worker_unmap unmap = {.address = address, .count = GRANULE};
    uint64_t first = harness_send(PROTO_WORKER_UNMAP, 2, &unmap, NULL, 0, NULL, 0);
    uint64_t second = harness_send(PROTO_WORKER_DETACH, 2, NULL, NULL, 0, NULL, 0);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_DONE);
    assert_int_equal(harness.message.header.serial, first);
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, second);
    peer_free(other);
}

/* ---- streams ---- */

static void destroyed_stream_finishes_and_comes_back_with_its_value(void **state)
{
    (void)state;
    uint32_t stream = peer_stream(peer, 0);
    fake_hold();
    for (int i = 0; i < 5; i++)
        peer_push_nop(peer, stream);
    struct proto_stream_destroy destroy = {.stream = stream};
    harness_ask(PROTO_STREAM_DESTROY, 1, &destroy, PROTO_DONE);
    harness_ask(PROTO_STREAM_DESTROY, 1, &destroy, PROTO_FAILED);
    assert_int_equal(harness.streams_ended, 0);
    struct proto_stream_create early = {.stream = stream};
    harness_ask(PROTO_STREAM_CREATE, 1, &early, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
    fake_release();
    assert_int_equal(peer_wait(peer, stream, 5), 0);
    uint64_t end = clock_now() + 10000000000u;
    uint32_t again = peer_stream(peer, 0);
    while (again != stream) {
        struct proto_stream_destroy other = {.stream = again};
        harness_ask(PROTO_STREAM_DESTROY, 1, &other, PROTO_DONE);
        assert_true(clock_now() < end);
        again = peer_stream(peer, 0);
    }
    assert_int_equal(peer->producers[stream].value, 5);
    assert_int_equal(peer_push_nop(peer, stream), 6);
    assert_int_equal(peer_wait(peer, stream, 6), 0);
}

static void streams_end_at_the_number_granted(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < STREAMS; i++)
        assert_int_equal(peer_stream(peer, 0), i);
    for (uint32_t number = 0; number <= STREAMS; number++) {
        struct proto_stream_create create = {.stream = number};
        harness_ask(PROTO_STREAM_CREATE, 1, &create, PROTO_FAILED);
        assert_int_equal(harness_error(), PROTO_ERROR_INVALID_VALUE);
    }
}

static int32_t granted(struct peer *of, int32_t wish)
{
    struct proto_stream_create create = {.stream = peer_stream_number(of), .priority = wish};
    const struct proto_stream_created *created =
        harness_ask(PROTO_STREAM_CREATE, of->number, &create, PROTO_STREAM_CREATED);
    return created->priority;
}

static void priorities_stay_within_the_clients_range(void **state)
{
    (void)state;
    assert_int_equal(granted(peer, -3), -3);
    assert_int_equal(granted(peer, -9), -5);
    assert_int_equal(granted(peer, 4), 0);
    /* Beside one that is less urgent the least priority is left to that. */
    struct peer *low = peer_attach_with(2, PROTO_PERCENT_WHOLE, 1);
    assert_int_equal(granted(peer, -3), -3);
    assert_int_equal(granted(peer, 4), -1);
    assert_int_equal(granted(low, -5), 0);
    peer_detach(low);
}

static void events_measure_time(void **state)
{
    (void)state;
    uint32_t start = peer_event(peer), end = peer_event(peer);
    struct proto_event_elapsed between = {.start = start, .end = end};
    harness_ask(PROTO_EVENT_ELAPSED, 1, &between, PROTO_FAILED);
    struct proto_command_event_record record = {.opcode = PROTO_COMMAND_EVENT_RECORD};
    record.event = start;
    peer_push(peer, 0, &record);
    record.event = end;
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &record)), 0);
    const struct proto_elapsed *elapsed =
        harness_ask(PROTO_EVENT_ELAPSED, 1, &between, PROTO_ELAPSED);
    assert_true((int64_t)elapsed->nanoseconds > 0);
    between = (struct proto_event_elapsed){.start = end, .end = start};
    elapsed = harness_ask(PROTO_EVENT_ELAPSED, 1, &between, PROTO_ELAPSED);
    assert_true((int64_t)elapsed->nanoseconds < 0);
    struct proto_event_destroy destroy = {.event = start};
    harness_ask(PROTO_EVENT_DESTROY, 1, &destroy, PROTO_DONE);
    harness_ask(PROTO_EVENT_DESTROY, 1, &destroy, PROTO_FAILED);
    harness_ask(PROTO_EVENT_ELAPSED, 1, &between, PROTO_FAILED);
    assert_false(harness_has_message(100));
    assert_int_equal(harness.events_ended, 1);
}

/* ---- turns ---- */

/* Waits until the driver has seen so many launches, and no more for a while. */
static void settle_at(uint32_t launches)
{
    uint64_t end = clock_now() + 10000000000u;
    while (fake_count(FAKE_LAUNCH) < launches)
        assert_true(clock_now() < end);
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    assert_int_equal(fake_count(FAKE_LAUNCH), launches);
}

static void commands_in_flight_are_bounded(void **state)
{
    (void)state;
    struct peer *low = peer_attach_with(2, PROTO_PERCENT_WHOLE, 1);
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    struct proto_command_launch lower = peer_launch(peer_kernel(low, "kernel"));
    fake_hold();
    for (int i = 0; i < 500; i++)
        peer_push(peer, 0, &launch);
    settle_at(SCHEDULER_IN_FLIGHT_MIN);
    for (int i = 0; i < 500; i++)
        peer_push(low, 0, &lower);
    /* A client below another with work has one command in flight. */
    settle_at(SCHEDULER_IN_FLIGHT_MIN + 1);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, 500), 0);
    assert_int_equal(peer_wait(low, 0, 500), 0);
    assert_int_equal(fake_count(FAKE_LAUNCH), 1000);
    peer_detach(low);
}

static void rings_of_one_client_take_turns(void **state)
{
    (void)state;
    uint32_t second = peer_stream(peer, 0);
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    fake_hold();
    for (int i = 0; i < 600; i++)
        peer_push(peer, 0, &launch);
    settle_at(SCHEDULER_IN_FLIGHT_MIN);
    uint64_t value = peer_push(peer, second, &launch);
    fake_release();
    assert_int_equal(peer_wait(peer, second, value), 0);
    assert_int_equal(peer_wait(peer, 0, 600), 0);
    /* It did not wait for the hundreds that stood in the other ring. */
    const void *first_stream = fake_call(FAKE_LAUNCH, 0).stream;
    uint32_t position = 0;
    for (uint32_t n = 0; n < 601; n++)
        if (fake_call(FAKE_LAUNCH, n).stream != first_stream)
            position = n;
    assert_true(position > 0 && position < 3 * 128);
}

/* As a kernel that never ends, with others behind it. */
static void a_ring_whose_work_never_ends_takes_no_other_rings_room(void **state)
{
    (void)state;
    uint32_t other = peer_stream(peer, 0);
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    fake_hold();
    for (int i = 0; i < 200; i++)
        peer_push(peer, 0, &launch);
    settle_at(SCHEDULER_IN_FLIGHT_MIN);
    const void *endless = fake_call(FAKE_LAUNCH, 0).stream;
    /* More at a time than it may have in flight, so that the end of some has to be seen. */
    for (int i = 0; i < 30; i++) {
        uint64_t value = 0, end = clock_now() + 10000000000u;
        for (int n = 0; n < 3 * SCHEDULER_IN_FLIGHT_MIN; n++)
            value = peer_push(peer, other, &launch);
        for (; peer_completed(peer, other) < value; sched_yield()) {
            fake_release_all_but(endless);
            assert_true(clock_now() < end);
        }
    }
    assert_int_equal(peer_completed(peer, 0), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_wait_for_a_reached_value_needs_no_event),
        T(a_wait_for_work_in_flight_uses_an_event),
        T(a_wait_for_a_value_not_yet_pushed_blocks_the_ring),
        T(a_sleeper_on_a_blocked_ring_is_woken),
        T(chain_of_waits),
        T(three_dependencies_at_once),
        T(circle_of_three_is_found),
        T(circle_behind_a_ring_that_was_looked_at_is_found),
        T(two_that_wait_for_a_third_are_no_circle),
        T(a_linked_wait_blocks_until_the_other_device_is_done),
        T(wait_on_a_stream_that_the_link_lacks_is_refused),
        T(a_client_that_leaves_releases_the_clients_that_wait),
        T(new_memory_is_zero),
        T(unmap_waits_for_work_issued_before),
        T(memory_that_cannot_be_unmapped_stays_charged),
        T(unmap_does_not_wait_for_work_issued_after),
        T(command_issued_after_the_free_is_refused),
        T(unmap_waits_for_the_work_of_a_destroyed_stream),
        T(launch_issued_after_the_unload_is_refused),
        T(record_issued_after_the_events_end_is_refused),
        T(quiesce_covers_every_stream),
        T(unload_waits_for_work),
        T(host_buffer_waits_for_work),
        T(detach_waits_for_work_and_drops_the_rest),
        T(detach_answers_pending_requests_first),
        T(destroyed_stream_finishes_and_comes_back_with_its_value),
        T(streams_end_at_the_number_granted),
        T(priorities_stay_within_the_clients_range),
        T(events_measure_time),
        T(commands_in_flight_are_bounded),
        T(rings_of_one_client_take_turns),
        T(a_ring_whose_work_never_ends_takes_no_other_rings_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
