/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The share of a client changes while it works: nothing is lost, doubled or put before its turn. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

enum { RINGS = 4, CHANGES = 10000 };

static struct peer *peer;
static uint32_t function;
static uint32_t rings[RINGS];

/* The parameters of a kernel of the random test. */
struct carried {
    uint32_t ring, number; /* the number-th launch of this ring, from 1 */
    uint32_t other, after; /* at least so many launches of that ring must have run */
};

static struct {
    uint32_t ran[RINGS];
    uint32_t wrong;           /* out of order, lost, or before what it waits for */
    unsigned multiprocessors; /* where the latest ran */
    int priority;
} seen;

static void on_kernel(const struct cuda_stream_object *stream, const uint8_t parameters[16])
{
    struct carried carried;
    memcpy(&carried, parameters, sizeof carried);
    seen.wrong += carried.number != ++seen.ran[carried.ring];
    seen.wrong += seen.ran[carried.other] < carried.after;
    seen.multiprocessors = stream->green ? stream->green->multiprocessors : 0;
    seen.priority = stream->priority;
}

static void keep(uint32_t most)
{
    pthread_mutex_lock(&harness.worker.partitions.lock);
    harness.worker.partitions.kept_max = most;
    pthread_mutex_unlock(&harness.worker.partitions.lock);
}

static void wait_for_stream(int32_t priority)
{
    uint64_t end = clock_now() + 10000000000u;
    struct partition *whole = harness.worker.clients[0]->shared.partition;
    while (!stream_pool_has(&harness.worker.pool, whole, priority)) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
}

/* Sets that nobody has any more are not kept, so that they can be seen to go. */
static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    keep(0);
    memset(&seen, 0, sizeof seen);
    peer = peer_attach(1);
    peer_load_text(peer, 1, harness_ptx, 0);
    function = peer_function(peer, 1, "kernel");
    for (uint32_t i = 1; i < RINGS; i++)
        rings[i] = peer_stream(peer, -(int32_t)i);
    for (int32_t i = 1; i < RINGS; i++)
        wait_for_stream(-i);
    fake.on_kernel = on_kernel;
    fake_hold();
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    if (peer)
        peer_detach(peer);
    peer = NULL;
    int result = harness_stop(state);
    assert_int_equal(fake.backwards, 0);
    assert_int_equal(fake.destroyed_busy, 0);
    return result;
}

static uint32_t change(uint32_t client, uint32_t percentage, uint32_t priority)
{
    struct proto_worker_limits limits = {.allowance = granted_threads(percentage)};
    limits.allowance.priority = priority;
    const struct proto_worker_attached *attached =
        harness_ask(PROTO_WORKER_LIMITS, client, &limits, PROTO_WORKER_ATTACHED);
    return attached->multiprocessors;
}

static uint64_t launch(uint32_t ring, struct carried carried)
{
    struct proto_command_launch command = peer_launch(function);
    carried.ring = ring;
    memcpy(command.inline_parameters, &carried, sizeof carried);
    return peer_push(peer, rings[ring], &command);
}

/* One thing of one CUstream happens, or of the next one that can. */
static bool step(uint32_t from)
{
    bool moved = false;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.stream_count && !moved; i++)
        moved = fake_step(fake.streams[(from + (uint32_t)i) % (uint32_t)fake.stream_count]);
    pthread_mutex_unlock(&fake.lock);
    return moved;
}

static int green_contexts(void)
{
    pthread_mutex_lock(&fake.lock);
    int count = fake.live_green;
    pthread_mutex_unlock(&fake.lock);
    return count;
}

/* Waits until so many are left. */
static void wait_for_green(int count)
{
    uint64_t end = clock_now() + 10000000000u;
    while (green_contexts() != count) {
        assert_true(clock_now() < end);
        usleep(1000);
        /* The control thread looks for what is too much when it has something to do. */
        harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    }
}

/* Partitions are made while nothing runs on the device, and here it is held: so they are made
 * beforehand, and kept until the end. */
static void warm(uint32_t from, uint32_t to, uint32_t step)
{
    keep(SM_GROUPS_MAX);
    fake_release();
    for (uint32_t percentage = from; percentage <= to; percentage += step)
        change(1, percentage, 0);
    change(1, PROTO_PERCENT_WHOLE, 0);
    fake_hold();
}

static void later_work_runs_on_the_new_set_after_earlier_work(void **state)
{
    (void)state;
    warm(2500, 2500, 1);
    uint64_t before = launch(0, (struct carried){.number = 1});
    peer_wait_head(peer, 0, before);
    assert_int_equal(change(1, 2500, 0), 32);
    keep(0);
    uint64_t after = launch(0, (struct carried){.number = 2});
    peer_wait_head(peer, 0, after);
    struct fake_call one = fake_call(FAKE_LAUNCH, 0), two = fake_call(FAKE_LAUNCH, 1);
    assert_ptr_not_equal(one.stream, two.stream);
    /* Another CUstream has nothing that can happen: what was moved waits for what was not. */
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.stream_count; i++)
        if (fake.streams[i] != one.stream)
            assert_false(fake_step(fake.streams[i]));
    pthread_mutex_unlock(&fake.lock);
    /* The old set stays while its work does. */
    usleep(50000);
    assert_int_equal(green_contexts(), 2);
    assert_true(step(0));
    assert_int_equal(seen.multiprocessors, 132);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, after), 0);
    assert_int_equal(seen.multiprocessors, 32);
    assert_int_equal(seen.ran[0], 2);
    assert_int_equal(seen.wrong, 0);
    wait_for_green(1);
}

static void an_idle_client_moves_at_once(void **state)
{
    (void)state;
    fake_release();
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    assert_int_equal(change(1, 5000, 0), 64);
    wait_for_green(1);
    fake_hold();
    uint64_t value = launch(0, (struct carried){.number = 1});
    peer_wait_head(peer, 0, value);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_int_equal(seen.multiprocessors, 64);
    assert_int_equal(fake_count(FAKE_WAIT), 0);
}

static void sets_are_kept_for_the_next_time(void **state)
{
    (void)state;
    keep(PARTITIONS_KEPT);
    fake_release();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(change(1, i % 2 ? 2500 : 5000, 0), i % 2 ? 32 : 64);
        assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
        assert_int_equal(green_contexts(), i == 0 ? 2 : 3);
    }
}

static void kept_sets_make_way_when_the_device_has_no_room_for_another(void **state)
{
    (void)state;
    keep(PARTITIONS_KEPT);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    assert_int_equal(change(1, 5000, 0), 64);
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    int max = green_contexts();
    pthread_mutex_lock(&fake.lock);
    fake.green_max = max;
    pthread_mutex_unlock(&fake.lock);
    assert_int_equal(change(1, 2500, 0), 32);
    fake_hold();
    uint64_t value = launch(0, (struct carried){.number = 1});
    peer_wait_head(peer, 0, value);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_int_equal(seen.multiprocessors, 32);
    assert_true(green_contexts() <= max);
}

/* The driver's refusal comes in a window, and takes the change back. */
static void a_set_that_cannot_be_made_is_refused(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_threads(3700)};
    fake_release();
    pthread_mutex_lock(&fake.lock);
    fake.green_max = -1;
    pthread_mutex_unlock(&fake.lock);
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_OUT_OF_MEMORY);
    fake_hold();
    uint64_t value = launch(0, (struct carried){.number = 1});
    peer_wait_head(peer, 0, value);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, value), 0);
    assert_int_equal(seen.multiprocessors, 132);
}

static uint64_t kernel_time(void)
{
    struct client *client = harness.worker.clients[0];
    pthread_mutex_lock(&client->lock);
    uint64_t nanoseconds = client->shared.kernel_time;
    pthread_mutex_unlock(&client->lock);
    return nanoseconds;
}

static int priority_of_next_kernel(uint32_t number)
{
    fake_hold();
    uint64_t value = launch(2, (struct carried){.number = number});
    peer_wait_head(peer, rings[2], value);
    fake_release();
    assert_int_equal(peer_wait(peer, rings[2], value), 0);
    return seen.priority;
}

static void a_refused_set_takes_priority_and_kernel_time_back_too(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_threads(3700)};
    fake_release();
    int before = priority_of_next_kernel(1);
    limits.allowance.priority = 1;
    limits.allowance.kernel_time = 5000000000;
    pthread_mutex_lock(&fake.lock);
    fake.green_max = -1;
    pthread_mutex_unlock(&fake.lock);
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_OUT_OF_MEMORY);
    assert_int_equal(kernel_time(), 0);
    assert_int_equal(priority_of_next_kernel(2), before);
    assert_int_equal(seen.multiprocessors, 132);
    /* Where the set exists the same change is made whole. */
    limits.allowance.threads.limit = PROTO_PERCENT_WHOLE;
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    assert_int_equal(kernel_time(), 5000000000);
    assert_int_equal(priority_of_next_kernel(3), harness.worker.gpu.info.priority_least);
}

static void make_no_green(int max)
{
    pthread_mutex_lock(&fake.lock);
    fake.green_max = max;
    pthread_mutex_unlock(&fake.lock);
}

static const struct proto_worker_usage *usage_of(uint32_t client)
{
    return harness_ask(PROTO_WORKER_USAGE_QUERY, client, NULL, PROTO_WORKER_USAGE);
}

/* The device is idle, so the driver's refusal comes before the answer. */
static void a_client_for_whom_no_set_can_be_made_is_refused(void **state)
{
    (void)state;
    fake_release();
    make_no_green(-1);
    struct peer *refused = peer_offer(2, 3700, 0);
    assert_int_equal(harness_receive(), PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(((const struct proto_failed *)harness.message.body)->text,
                           "no partition of the multiprocessors"));
    peer_free(refused);
    /* Nothing of it is left, not even its number. */
    make_no_green(0);
    struct peer *other = peer_attach_with(2, 3700, 0);
    assert_int_equal(usage_of(2)->partition_error, 0);
    peer_detach(other);
}

/* Beside work that goes on the answer comes first. The client is held then, and its use says why.
 */
static void a_client_that_is_held_for_want_of_a_set_can_learn_it(void **state)
{
    (void)state;
    launch(0, (struct carried){.number = 1});
    peer_wait_head(peer, 0, 1);
    make_no_green(-1);
    struct peer *held = peer_attach_with(2, 3700, 0);
    assert_int_equal(usage_of(2)->partition_error, 0);
    fake_release();
    uint64_t end = clock_now() + 10000000000u;
    while (usage_of(2)->partition_error != PROTO_ERROR_OUT_OF_MEMORY) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
    assert_int_equal(usage_of(1)->partition_error, 0);
    make_no_green(0);
    while (usage_of(2)->partition_error) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
    peer_detach(held);
}

static void over_committed(uint32_t client, uint32_t request)
{
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.threads.request = request;
    harness_ask(PROTO_WORKER_LIMITS, client, &limits, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_NO_ROOM);
    const struct proto_failed *failed = (const void *)harness.message.body;
    assert_non_null(
        strstr(failed->text, "the requests of others (1) have 9 of the device's 16 SM groups"));
    assert_non_null(strstr(failed->text, "with the 8 of this request that makes 17"));
}

static void over_committed_requests_are_refused_and_change_nothing(void **state)
{
    (void)state;
    fake_release();
    struct proto_worker_limits limits = {.allowance = granted_threads(7000)};
    limits.allowance.threads.request = 6000;
    const struct proto_worker_attached *attached =
        harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    assert_int_equal(attached->multiprocessors, 92); /* 11 SM groups and the remainder */
    assert_true(attached->partitioned);
    struct peer *other = peer_attach(2);
    over_committed(2, 5000);
    limits.allowance.threads.request = 4000;
    limits.allowance.threads.limit = 4000;
    attached = harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    assert_int_equal(attached->multiprocessors, 52); /* 6 SM groups and the remainder */
    over_committed(2, 5000);
    const struct proto_worker_usage *used =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 2, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(used->multiprocessors, 52);
    used = harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(used->multiprocessors, 88); /* the remainder is the smaller one's now */
    peer_detach(other);
}

static void priority_changes_with_work_in_flight(void **state)
{
    (void)state;
    launch(2, (struct carried){.number = 1});
    peer_wait_head(peer, rings[2], 1);
    change(1, 10000, 1);
    launch(2, (struct carried){.number = 2});
    peer_wait_head(peer, rings[2], 2);
    assert_true(step(0));
    int first = seen.priority;
    fake_release();
    assert_int_equal(peer_wait(peer, rings[2], 2), 0);
    assert_true(first < seen.priority); /* the greater priority is the smaller number */
    assert_int_equal(seen.priority, harness.worker.gpu.info.priority_least);
    /* Back to normal, the stream has again what its client had wished. */
    fake_hold();
    change(1, 10000, 0);
    launch(2, (struct carried){.number = 3});
    peer_wait_head(peer, rings[2], 3);
    fake_release();
    assert_int_equal(peer_wait(peer, rings[2], 3), 0);
    assert_int_equal(seen.priority, first);
    assert_int_equal(seen.wrong, 0);
}

static void own_load_does_not_count(void **state)
{
    (void)state;
    struct peer *other = peer_attach_with(2, 5000, 0);
    const struct proto_worker_attached *attached = (const void *)harness.message.body;
    uint64_t theirs = attached->sm_groups[0];
    struct proto_worker_limits limits = {.allowance = granted_threads(5000)};
    for (int i = 0; i < 20; i++) {
        attached = harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
        assert_int_equal(attached->sm_groups[0] & theirs, 0);
    }
    fake_release();
    peer_detach(other);
}

static void unknown_and_leaving_clients_are_refused(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_threads(5000)};
    harness_ask(PROTO_WORKER_LIMITS, 99, &limits, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_HANDLE);
    launch(0, (struct carried){.number = 1});
    peer_wait_head(peer, 0, 1);
    uint64_t detach = harness_send(PROTO_WORKER_DETACH, 1, NULL, NULL, 0, NULL, 0);
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_FAILED);
    assert_int_equal(harness_error(), PROTO_ERROR_INVALID_HANDLE);
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, detach);
    peer_free(peer);
    peer = NULL;
}

/* A client leaves with its work spread over sets that it had. */
static void leaving_after_changes_frees_every_set(void **state)
{
    (void)state;
    warm(1000, 5000, 1000);
    struct peer *other = peer_attach(2);
    for (uint32_t i = 0; i < 5; i++) {
        uint64_t value = launch(i % RINGS, (struct carried){.number = i / RINGS + 1});
        peer_wait_head(peer, rings[i % RINGS], value);
        change(1, 1000 * (i + 1), 0);
    }
    uint64_t detach = harness_send(PROTO_WORKER_DETACH, 1, NULL, NULL, 0, NULL, 0);
    change(2, 2000, 0);
    assert_false(harness_has_message(50));
    fake_release();
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, detach);
    peer_free(peer);
    peer = other;
    keep(0);
    uint64_t end = clock_now() + 10000000000u;
    while (green_contexts() != 1) {
        assert_true(clock_now() < end);
        change(2, 2000, 0);
    }
    for (uint32_t ring = 0; ring < RINGS; ring++)
        assert_int_equal(seen.ran[ring], ring == 0 ? 2 : 1);
    assert_int_equal(seen.wrong, 0);
}

static uint32_t drawn = 12345;

static uint32_t draw(uint32_t below)
{
    drawn = drawn * 1664525u + 1013904223u;
    return (drawn >> 8) % below;
}

/* Only this thread lets the device go on: waiting for room in a full ring would be for ever. */
static void make_room(uint32_t ring)
{
    uint64_t end = clock_now() + 20000000000u;
    while (ring_room(&peer->producers[rings[ring]]) == RING_FULL) {
        assert_true(clock_now() < end);
        if (!step(draw(256)))
            sched_yield();
    }
}

/* Steps until each ring has reached its value. As long as anything ends, it may take long. */
static void await_values(const uint64_t value[RINGS])
{
    uint64_t wanted = 0, done = 0, end = 0;
    for (uint32_t ring = 0; ring < RINGS; ring++)
        wanted += value[ring];
    while (done < wanted) {
        uint64_t before = done;
        done = 0;
        for (uint32_t ring = 0; ring < RINGS; ring++)
            done += min(peer_completed(peer, rings[ring]), value[ring]);
        if (!end || done > before)
            end = clock_now() + 20000000000u;
        assert_true(clock_now() < end);
        if (!step(draw(256)))
            sched_yield();
    }
}

static void ten_thousand_random_changes(void **state)
{
    (void)state;
    uint32_t launched[RINGS] = {0}, after[RINGS] = {0}, other[RINGS] = {0};
    uint64_t value[RINGS] = {0};
    warm(1, PROTO_PERCENT_WHOLE, 100);
    for (uint32_t i = 0; i < CHANGES; i++) {
        change(1, 1 + draw(PROTO_PERCENT_WHOLE), draw(8) == 0);
        for (uint32_t n = draw(4); n; n--) {
            uint32_t ring = draw(RINGS);
            if (draw(4) == 0) {
                /* Everything that another ring was given so far comes first. */
                other[ring] = draw(RINGS);
                after[ring] = launched[other[ring]];
                make_room(ring);
                peer_push_wait(peer, rings[ring], rings[other[ring]], value[other[ring]]);
            }
            make_room(ring);
            value[ring] = launch(ring, (struct carried){.number = ++launched[ring],
                                                        .other = other[ring],
                                                        .after = after[ring]});
        }
        for (uint32_t n = draw(16); n && step(draw(256)); n--)
            ;
    }
    await_values(value);
    fake_release();
    for (uint32_t ring = 0; ring < RINGS; ring++)
        assert_int_equal(seen.ran[ring], launched[ring]);
    assert_int_equal(seen.wrong, 0);
    keep(0);
    wait_for_green(1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(later_work_runs_on_the_new_set_after_earlier_work),
        T(an_idle_client_moves_at_once),
        T(sets_are_kept_for_the_next_time),
        T(kept_sets_make_way_when_the_device_has_no_room_for_another),
        T(a_set_that_cannot_be_made_is_refused),
        T(a_client_for_whom_no_set_can_be_made_is_refused),
        T(a_client_that_is_held_for_want_of_a_set_can_learn_it),
        T(a_refused_set_takes_priority_and_kernel_time_back_too),
        T(over_committed_requests_are_refused_and_change_nothing),
        T(priority_changes_with_work_in_flight),
        T(own_load_does_not_count),
        T(unknown_and_leaving_clients_are_refused),
        T(leaving_after_changes_frees_every_set),
        T(ten_thousand_random_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
