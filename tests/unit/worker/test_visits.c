/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Deficit round robin, visit by visit, and the table of streams: no threads, the test calls each
 * visit itself. */
#include "tests/unit/worker/got_partition.h"
#include "tests/unit/worker/harness.h"

#include "common/clock.h"
#include "common/error.h"
#include "server/worker/control/control_limits.h"
#include "server/worker/client/client_memory.h"

static struct worker *worker;
static struct peer *peers[2];
/* All clients are of one user. */
static struct scheduler_account user;
static const struct scheduler_accounts accounts = {{&user}, 1};

static struct client *clients[2];

static struct client *make_client(struct peer *peer, uint32_t number)
{
    struct proto_worker_attach attach = {.device_base = DEVICE_BASE + number * WINDOW_BYTES,
                                         .host_base = HOST_BASE + number * WINDOW_BYTES,
                                         .window_bytes = WINDOW_BYTES,
                                         .streams = STREAMS,
                                         .allowance = granted_whole()};
    struct client *client;
    struct error why = {0};
    assert_int_equal(served_rings_make(&peer->rings, STREAMS), 0);
    assert_int_equal(shm_create(&peer->status, "status", ring_status_bytes(STREAMS)), 0);
    assert_int_equal(shm_create(&peer->shadows, "shadows", journal_shadow_bytes(STREAMS)), 0);
    peer->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int fds[4] = {dup(peer->rings.fd), dup(peer->status.fd), dup(peer->shadows.fd),
                  dup(peer->doorbell)};
    assert_int_equal(client_create(&client, &worker->gpu, number, &attach, fds, &why), 0);
    assert_int_equal(ring_memory_add(&client->rings, 0, STREAMS, peer->rings.segment_fd), 0);
    assert_int_equal(client_register(client, &why), 0);
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    assert_int_equal(gate_add(&worker->gate, client, &limits, &accounts, NULL, &why), 0);
    assert_int_equal(
        placement_add(&worker->places, &client->place, NULL, 0, PROTO_PERCENT_WHOLE, &why), 0);
    ring_producer_open(&peer->producers[0], ring_at(peer->rings.base, peer->status.base, 0),
                       peer->marks[0], 0);
    /* As if its doorbell had been rung. */
    client_state_set(client, CLIENT_ASLEEP);
    client_state_set(client, CLIENT_IDLE);
    return client;
}

static void ignore_place(void *context, struct placement *place)
{
    (void)context;
    (void)place;
}

static void ignore(void *context)
{
    (void)context;
}

static int setup(void **state)
{
    (void)state;
    scheduler_account_open(&user, 7, "user 7", clock_now());
    struct error why = {0};
    const struct placement_events notice = {ignore_place, ignore, NULL};
    fake_reset();
    harness.driver = fake_driver();
    worker = calloc(1, sizeof *worker);
    wake_open(&worker->wake);
    const struct gpu_options options = {
        &harness.driver, 0, NULL, {DEVICE_BASE, HOST_BASE, ARENA_USED}, 0};
    assert_int_equal(whole_gpu_open(&worker->gpu, &options, &why), 0);
    assert_int_equal(partition_table_open(&worker->partitions, &worker->gpu, &why), 0);
    assert_int_equal(placement_table_open(&worker->places, &worker->partitions, &notice), 0);
    stream_pool_open(&worker->pool, &worker->gpu);
    gate_open(&worker->gate);
    assert_int_equal(meter_open(&worker->meter, &harness.driver, &worker->partitions), CUDA_OK);
    assert_int_equal(
        command_open(&worker->submitter.command, &worker->gpu, &worker->meter, &worker->pool),
        CUDA_OK);
    worker->submitter.worker = worker;
    for (uint32_t i = 0; i < 2; i++) {
        peers[i] = calloc(1, sizeof *peers[i]);
        clients[i] = make_client(peers[i], i + 1);
    }
    struct sm_group_set all = {{0}};
    struct partition *whole;
    for (uint32_t i = 0; i < worker->partitions.count; i++)
        sm_group_set_add(&all, i);
    assert_int_equal(got_partition(&worker->partitions, &all, &whole), 0);
    assert_int_equal(stream_pool_prepare(&worker->pool, whole, 0, 8), CUDA_OK);
    partition_put(&worker->partitions, whole);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fake_release();
    for (uint32_t i = 0; i < 2; i++) {
        struct error why;
        meter_forget(&worker->meter, clients[i]);
        gate_remove(&worker->gate, clients[i]);
        for (uint32_t s = 0; s < STREAMS; s++)
            stream_pool_unbind(&worker->pool, &clients[i]->streams[s]);
        while (clients[i]->objects.range_count) {
            uint64_t start = clients[i]->objects.ranges[0].start;
            uint64_t bytes = clients[i]->objects.ranges[0].end - start;
            assert_int_equal(client_memory_unmap(&worker->gpu, start, bytes, &why), 0);
            client_memory_forget(clients[i], start, bytes, RANGE_DEVICE);
        }
        placement_remove(&worker->places, &clients[i]->place);
        client_state_set(clients[i], CLIENT_LEAVING);
        client_state_set(clients[i], CLIENT_LEFT);
        client_unregister(clients[i]);
        client_destroy(clients[i]);
        peer_free(peers[i]);
    }
    command_close(&worker->submitter.command);
    meter_close(&worker->meter);
    stream_pool_close(&worker->pool);
    placement_table_close(&worker->places);
    gate_close(&worker->gate);
    partition_table_close(&worker->partitions);
    gpu_close(&worker->gpu);
    free(worker);
    assert_int_equal(fake.live_streams, 0);
    assert_int_equal(fake.live_events, 0);
    assert_int_equal(fake.live_maps, 0);
    return 0;
}

static uint64_t taken_from(uint32_t client, uint32_t ring)
{
    return clients[client]->streams[ring].ring.value;
}

static uint64_t taken(uint32_t client)
{
    return taken_from(client, 0);
}

static void open_ring(uint32_t client, uint32_t ring)
{
    struct peer *peer = peers[client];
    assert_non_null(client_stream_open(clients[client], ring, 0));
    ring_producer_open(&peer->producers[ring], ring_at(peer->rings.base, peer->status.base, ring),
                       peer->marks[ring], 0);
}

static bool visit(uint32_t client)
{
    return submitter_visit(&worker->submitter, clients[client]);
}

/* As the control thread destroys and frees a stream that has ended. */
static void end_ring(uint32_t client, uint32_t ring)
{
    struct client_stream *stream = client_stream_find(clients[client], ring);
    assert_non_null(stream);
    client_stream_close(clients[client], stream);
    assert_true(client_stream_has_ended(stream));
    stream_pool_unbind(&worker->pool, stream);
    client_stream_free(clients[client], stream);
}

static void set_tail(uint32_t client, uint32_t ring, uint32_t tail)
{
    struct proto_ring_header *header = peers[client]->producers[ring].ring.header;
    __atomic_store_n(&header->tail, tail, __ATOMIC_SEQ_CST);
}

static void a_turn_is_a_quantum(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        peer_push_nop(peers[0], 0);
        peer_push_nop(peers[1], 0);
    }
    for (uint64_t round = 1; round <= 500 / SUBMITTER_VISIT_MAX; round++)
        for (uint32_t i = 0; i < 2; i++) {
            assert_true(visit(i));
            assert_int_equal(taken(i), round * SUBMITTER_VISIT_MAX);
        }
    assert_true(visit(0));
    assert_int_equal(taken(0), 500);
    assert_false(visit(0));
    assert_true(visit(1));
    assert_int_equal(peer_completed(peers[1], 0), 500);
}

/* A copy of so many bytes from the client's memory to its memory. */
static struct proto_command_copy make_copy(uint64_t bytes)
{
    struct error why;
    int fd;
    uint64_t base = clients[0]->control.device_base;
    assert_int_equal(client_memory_reserve(clients[0], base, 2 * bytes, &why), 0);
    assert_int_equal(client_memory_map(&worker->gpu, base, 2 * bytes, &fd, &why), 0);
    client_memory_open(clients[0], base, 2 * bytes, RANGE_DEVICE);
    close(fd);
    return (struct proto_command_copy){
        .opcode = PROTO_COMMAND_COPY, .destination = base, .source = base + bytes, .count = bytes};
}

static void large_copies_use_the_turn_up(void **state)
{
    (void)state;
    struct proto_command_copy copy = make_copy(UINT64_C(32) << 20);
    for (int i = 0; i < 8; i++)
        peer_push(peers[0], 0, &copy);
    for (int i = 0; i < 1000; i++)
        peer_push_nop(peers[1], 0);
    for (int round = 0; round < 12; round++) {
        visit(0);
        visit(1);
    }
    /* 32 MiB weigh as 128 commands, two turns; one batch may run ahead of its debt. */
    assert_int_equal(taken(1), 12 * SUBMITTER_VISIT_MAX);
    assert_true(taken(0) >= 5 && taken(0) <= 7);
}

static void in_flight_work_stays_within_the_in_flight_limit(void **state)
{
    (void)state;
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    fake.hold = true;
    for (int i = 0; i < 400; i++)
        peer_push_nop(peers[0], 0);
    for (int i = 0; i < 10; i++)
        visit(0);
    assert_int_equal(taken(0), SCHEDULER_IN_FLIGHT_MIN);
    fake_release();
    while (taken(0) < 200)
        visit(0);
    uint64_t before = peer_completed(peers[0], 0);
    fake.hold = true;
    for (int i = 0; i < 10; i++)
        visit(0);
    assert_int_equal(taken(0) - before, settings.in_flight_limit);
    assert_int_equal(client_state(clients[0]), CLIENT_FULL);
    assert_false(visit(0));
    fake_release();
    assert_true(visit(0));
    assert_int_not_equal(client_state(clients[0]), CLIENT_FULL);
    while (taken(0) < 400)
        assert_true(visit(0));
}

/* One ring has all that its client may have in flight. The others have two each for all that, and
 * nothing more goes into the first. */
static void each_ring_has_two_in_flight_whatever_the_others_have(void **state)
{
    (void)state;
    struct scheduler_schedule settings;
    scheduler_defaults(&settings);
    open_ring(0, 1);
    open_ring(0, 2);
    for (int i = 0; i < 100; i++)
        peer_push_nop(peers[0], 0);
    while (taken(0) < 100)
        visit(0);
    fake.hold = true;
    for (int i = 0; i < 400; i++)
        peer_push_nop(peers[0], 0);
    for (int i = 0; i < 10; i++)
        visit(0);
    assert_int_equal(taken(0), 100 + settings.in_flight_limit);
    const void *endless = clients[0]->streams[0].bound->handle;
    for (uint32_t i = 0; i < 20; i++)
        for (uint32_t ring = 1; ring <= 2; ring++)
            peer_push_nop(peers[0], ring);
    for (uint64_t round = 1; round <= 5; round++) {
        for (int i = 0; i < 10; i++)
            visit(0);
        assert_int_equal(taken(0), 100 + settings.in_flight_limit);
        for (uint32_t ring = 1; ring <= 2; ring++)
            assert_int_equal(taken_from(0, ring), round * SCHEDULER_IN_FLIGHT_MIN);
        assert_int_equal(client_state(clients[0]), CLIENT_FULL);
        assert_false(client_has_drained_ring(clients[0]));
        assert_true(clients[0]->gate.go_on_drained);
        fake_release_all_but(endless);
        assert_true(client_has_drained_ring(clients[0]));
    }
}

/* The submitter looks at a named client; one that only arrives may be gone by then. */
static void a_client_that_shuts_the_gate_by_coming_is_not_named(void **state)
{
    (void)state;
    struct client coming = {.number = 3};
    struct scheduler_limits lower = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE, .level = 1};
    struct error why = {0};
    pthread_mutex_init(&coming.lock, NULL);
    assert_null(gate_next_runnable(&worker->gate));
    assert_int_equal(gate_add(&worker->gate, &coming, &lower, &accounts, NULL, &why), 0);
    struct client *first = gate_next_runnable(&worker->gate),
                  *second = gate_next_runnable(&worker->gate);
    assert_true((first == clients[0] && second == clients[1]) ||
                (first == clients[1] && second == clients[0]));
    assert_null(gate_next_runnable(&worker->gate));
    gate_remove(&worker->gate, &coming);
    pthread_mutex_destroy(&coming.lock);
    while ((first = gate_next_runnable(&worker->gate)))
        assert_true(first == clients[0] || first == clients[1]);
}

static void a_batch_ends_with_a_completion(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        peer_push_nop(peers[0], 0);
    while (taken(0) < 100)
        visit(0);
    visit(0);
    /* Batches are shorter where commands took long: on a slow machine these did. */
    clients[0]->gate.scheduled.mean_ns = 1000;
    fake.hold = true;
    for (int i = 0; i < 100; i++)
        peer_push_nop(peers[0], 0);
    visit(0);
    visit(0);
    const struct cuda_stream_object *on = clients[0]->streams[0].bound->handle;
    /* Two words for each 32 commands, and for the rest. */
    assert_int_equal(on->count, 2 * 4);
    assert_int_equal(on->queue[0].op.write_value.value64, 132);
    assert_int_equal(on->queue[1].op.write_value.value64, 132);
    /* The client's word first: a sleeper that is woken when the shadow moves must find it reached.
     */
    assert_int_equal(on->queue[0].op.write_value.address,
                     client_stream_status_address(&clients[0]->streams[0]));
    assert_int_equal(on->queue[1].op.write_value.address,
                     client_stream_shadow_address(&clients[0]->streams[0]));
    assert_int_equal(on->queue[7].op.write_value.value64, 200);
}

static uint32_t records_of_a_visit(void)
{
    uint32_t before = fake_count(FAKE_RECORD);
    visit(0);
    return fake_count(FAKE_RECORD) - before;
}

static void a_batch_that_nothing_is_before_has_no_start_event(void **state)
{
    (void)state;
    struct proto_command_copy copy = make_copy(UINT64_C(2) << 20);
    peer_push(peers[0], 0, &copy);
    assert_int_equal(records_of_a_visit(), 2);
    meter_collect(&worker->meter);
    /* As if enough batches had told of the clocks. */
    worker->meter.begins.sure_until = UINT64_MAX;
    clients[0]->gate.scheduled.mean_ns = 1000; /* otherwise each command may be a batch */
    peer_push(peers[0], 0, &copy);
    assert_int_equal(records_of_a_visit(), 1);
    /* A command before it in its batch, which could be a wait for another stream. */
    peer_push_nop(peers[0], 0);
    peer_push(peers[0], 0, &copy);
    assert_int_equal(records_of_a_visit(), 2);
    /* A batch before it that goes on. */
    fake.hold = true;
    peer_push(peers[0], 0, &copy);
    assert_int_equal(records_of_a_visit(), 1);
    peer_push(peers[0], 0, &copy);
    assert_int_equal(records_of_a_visit(), 2);
}

/* ---- rings that are freed while they wait ---- */

/* Its client sets the tail back and forth around the destruction. Nothing of a freed ring may run:
 * nobody would unbind it, and memory could be freed under its work. */
static void a_freed_ring_that_waited_is_read_no_more(void **state)
{
    (void)state;
    const struct client_shared *shared = &clients[0]->shared;
    open_ring(0, 1);
    peer_push_wait(peers[0], 1, 0, 1);
    visit(0);
    assert_int_equal(shared->blocked.count, 1);
    set_tail(0, 1, 0);
    end_ring(0, 1);
    assert_int_equal(shared->blocked.count, 0);
    set_tail(0, 1, 1);
    for (int i = 0; i < 3; i++) {
        peer_push_nop(peers[0], 0);
        visit(0);
    }
    assert_int_equal(taken(0), 3);
    assert_int_equal(taken_from(0, 1), 0);
    assert_null(clients[0]->streams[1].bound);
}

static void a_ring_waits_for_nothing_of_its_numbers_last_user(void **state)
{
    (void)state;
    open_ring(0, 1);
    peer_push_wait(peers[0], 1, 0, 1);
    visit(0);
    set_tail(0, 1, 0);
    end_ring(0, 1);
    open_ring(0, 1);
    peer_push_nop(peers[0], 1);
    visit(0);
    assert_int_equal(taken_from(0, 1), 1);
    assert_int_equal(peer_completed(peers[0], 1), 1);
}

/* The completer looks often as long as one waits for another device. */
static void a_freed_ring_that_waited_for_another_device_is_not_counted(void **state)
{
    (void)state;
    struct client *client = clients[0];
    client->objects.links = calloc(1, sizeof *client->objects.links);
    assert_non_null(client->objects.links);
    client->objects.link_count = client->objects.link_room = 1;
    client->objects.links[0] = (struct link){.shadows = SHM_NONE, .streams = STREAMS};
    assert_int_equal(
        shm_create(&client->objects.links[0].shadows, "link", ring_shadow_bytes(STREAMS)), 0);
    open_ring(0, 1);
    struct proto_command_wait wait = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0] = {.link = 1, .stream = 3, .value = 1}};
    peer_push(peers[0], 1, &wait);
    visit(0);
    assert_int_equal(client->shared.blocked.linked, 1);
    set_tail(0, 1, 0);
    end_ring(0, 1);
    assert_int_equal(client->shared.blocked.linked, 0);
    assert_int_equal(client->shared.blocked.count, 0);
}

/* Freed before the completer looks: it would look often until the client leaves. */
static void a_freed_ring_is_not_watched(void **state)
{
    (void)state;
    open_ring(0, 1);
    struct ring *ring = &peers[0]->producers[1].ring;
    struct timeline timeline = {.stream = ring->status,
                                .status = ring_status_header(peers[0]->status.base),
                                .ring = ring->header,
                                .header = ring_client_header(peers[0]->rings.base),
                                .index = 1,
                                .eventfd = peers[0]->doorbell};
    assert_false(timeline_wait_prepare(&timeline, 1));
    peer_push_nop(peers[0], 1);
    visit(0);
    assert_int_equal(clients[0]->shared.watched_count, 1);
    timeline_wait_done(&timeline);
    end_ring(0, 1);
    assert_int_equal(clients[0]->shared.watched_count, 0);
    set_tail(0, 1, 0);
    assert_non_null(client_stream_open(clients[0], 1, 0));
    assert_false(clients[0]->streams[1].watched);
    assert_int_equal(clients[0]->shared.watched_count, 0);
}

/* Bytes that are not zero among the client's entries from this one on. */
static size_t entry_bytes_written(const struct client *client, uint32_t from)
{
    const uint8_t *byte = (const uint8_t *)&client->streams[from];
    const uint8_t *end = (const uint8_t *)&client->streams[STREAMS];
    size_t written = 0;
    for (; byte < end; byte++)
        written += *byte != 0;
    return written;
}

static void entries_are_written_when_their_streams_open(void **state)
{
    (void)state;
    client_stream_set_range(clients[0], -5, -1);
    assert_true(client_is_quiet(clients[0]));
    assert_int_equal(client_stream_reached(&clients[0]->streams[STREAMS - 1]), 0);
    assert_int_equal(entry_bytes_written(clients[0], 1), 0);
    assert_non_null(client_stream_open(clients[0], 1, -3));
    assert_ptr_equal(clients[0]->streams[1].client, clients[0]);
    assert_int_equal(entry_bytes_written(clients[0], 2), 0);
    /* A ring that waits for a stream which was never open is let go too. */
    client_stream_end_timelines(clients[0]);
    const uint64_t *shadows = clients[0]->shadows.base;
    for (uint32_t i = 0; i < STREAMS; i++)
        assert_true(shadows[i] == UINT64_MAX);
    assert_int_equal(entry_bytes_written(clients[0], 2), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_turn_is_a_quantum),
        T(large_copies_use_the_turn_up),
        T(in_flight_work_stays_within_the_in_flight_limit),
        T(each_ring_has_two_in_flight_whatever_the_others_have),
        T(a_client_that_shuts_the_gate_by_coming_is_not_named),
        T(a_batch_ends_with_a_completion),
        T(a_batch_that_nothing_is_before_has_no_start_event),
        T(a_freed_ring_that_waited_is_read_no_more),
        T(a_ring_waits_for_nothing_of_its_numbers_last_user),
        T(a_freed_ring_that_waited_for_another_device_is_not_counted),
        T(a_freed_ring_is_not_watched),
        T(entries_are_written_when_their_streams_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
