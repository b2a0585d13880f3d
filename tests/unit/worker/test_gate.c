/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Leases, holds and refusals through a whole worker, on a device with kernels that take time. */
#include "tests/unit/worker/harness.h"

enum { PEERS = 4, MS = 1000000 };

static struct peer *peers[PEERS + 1]; /* by their numbers */
static uint32_t functions[PEERS + 1];

/* The device: runs what the fake driver holds back, one kernel at a time. */
static struct engine {
    pthread_t thread;
    uint32_t stop;
    uint64_t kernel_ns; /* atomic */
    uint64_t ran[PEERS + 1];
    uint64_t mixed; /* kernels that ran while another client's waited on the device */
    uint64_t last;  /* the client that ran last */
    uint64_t changes;
} engine;

/* Under the fake's lock. */
static void on_kernel(const struct cuda_stream_object *stream, const uint8_t parameters[16])
{
    uint32_t number, other;
    (void)stream;
    memcpy(&number, parameters, sizeof number);
    engine.ran[number]++;
    engine.changes += engine.last != number;
    engine.last = number;
    for (int s = 0; s < fake.stream_count; s++) {
        const struct cuda_stream_object *at = fake.streams[s];
        for (uint32_t i = 0; at->alive && i < at->count; i++) {
            const struct fake_entry *entry = &at->queue[(at->done + i) % FAKE_QUEUE];
            memcpy(&other, entry->parameters, sizeof other);
            engine.mixed += entry->kind == FAKE_ENTRY_KERNEL && other != number;
        }
    }
}

static bool run_one(void)
{
    bool moved = false;
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.stream_count; i++) {
        while (fake.streams[i]->count && !moved) {
            moved = fake.streams[i]->queue[fake.streams[i]->done % FAKE_QUEUE].kind ==
                    FAKE_ENTRY_KERNEL;
            if (!fake_step(fake.streams[i]))
                break;
        }
        /* What follows a kernel at once: its completion. */
        while (fake.streams[i]->count &&
               fake.streams[i]->queue[fake.streams[i]->done % FAKE_QUEUE].kind !=
                   FAKE_ENTRY_KERNEL &&
               fake_step(fake.streams[i]))
            ;
        if (moved)
            break;
    }
    pthread_mutex_unlock(&fake.lock);
    return moved;
}

static bool anything_queued(void)
{
    pthread_mutex_lock(&fake.lock);
    bool any = fake_anything_held();
    pthread_mutex_unlock(&fake.lock);
    return any;
}

/* A kernel ends so long after it began, which is when the last one ended or it came. */
static void *engine_main(void *unused)
{
    (void)unused;
    uint64_t began = 0;
    while (!__atomic_load_n(&engine.stop, __ATOMIC_SEQ_CST)) {
        uint64_t now = timeline_now();
        if (!anything_queued()) {
            began = 0;
        } else if (!began) {
            began = now;
        } else if (now >= began + __atomic_load_n(&engine.kernel_ns, __ATOMIC_SEQ_CST)) {
            run_one();
            began = now;
        }
        struct timespec pause = {.tv_nsec = 20000};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    memset(&engine, 0, sizeof engine);
    engine.kernel_ns = 200000;
    fake.on_kernel = on_kernel;
    return pthread_create(&engine.thread, NULL, engine_main, NULL);
}

static int teardown(void **state)
{
    for (uint32_t i = 1; i <= PEERS; i++)
        if (peers[i])
            peer_detach(peers[i]);
    memset(peers, 0, sizeof peers);
    __atomic_store_n(&engine.stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(engine.thread, NULL);
    return harness_stop(state);
}

static void begin_holding(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.hold = true;
    pthread_mutex_unlock(&fake.lock);
}

static void arrive(uint32_t number, uint32_t request, uint32_t limit)
{
    struct proto_worker_limits limits = {
        .thread_percentage = PROTO_PERCENT_WHOLE, .time_request = request, .time_limit = limit};
    peers[number] = peer_attach(number);
    peer_load_text(peers[number], 1, harness_ptx, 0);
    functions[number] = peer_function(peers[number], 1, "kernel");
    harness_ask(PROTO_WORKER_LIMITS, number, &limits, PROTO_WORKER_ATTACHED);
}

static void push_kernels(uint32_t number, uint32_t count)
{
    struct proto_command_launch launch = peer_launch(functions[number]);
    memcpy(launch.inline_parameters, &number, sizeof number);
    while (count--)
        peer_push(peers[number], 0, &launch);
}

static struct proto_worker_schedule schedule(enum scheduler_mode mode)
{
    return (struct proto_worker_schedule){
        .mode = mode, .precision = 5000, .lease = 5 * MS, .quantum = 5 * MS};
}

static void set_mode(enum scheduler_mode mode)
{
    struct proto_worker_schedule wanted = schedule(mode);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
}

static struct proto_worker_usage usage(uint32_t number)
{
    const struct proto_worker_usage *used =
        harness_ask(PROTO_WORKER_USAGE_QUERY, number, NULL, PROTO_WORKER_USAGE);
    return *used;
}

/* Keeps so many clients backlogged for a while. */
static void keep_busy(uint32_t first, uint32_t last, uint64_t ns)
{
    uint64_t end = timeline_now() + ns;
    while (timeline_now() < end) {
        for (uint32_t i = first; i <= last; i++) {
            uint64_t queued = peers[i]->producers[0].value - peer_completed(peers[i], 0);
            if (queued < 200)
                push_kernels(i, (uint32_t)(200 - queued));
        }
        struct timespec pause = {.tv_nsec = MS};
        nanosleep(&pause, NULL);
    }
}

static void wait_all(uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last; i++)
        assert_int_equal(peer_wait(peers[i], 0, peers[i]->producers[0].value), 0);
}

static void leases_pass_from_client_to_client(void **state)
{
    (void)state;
    arrive(1, 5000, 10000);
    arrive(2, 3000, 10000);
    set_mode(SCHEDULER_STRICT);
    begin_holding();
    uint64_t start = timeline_now();
    keep_busy(1, 2, 500 * UINT64_C(1000000));
    uint64_t elapsed = timeline_now() - start;
    struct proto_worker_usage a = usage(1), b = usage(2);
    pthread_mutex_lock(&fake.lock);
    struct engine seen = engine;
    pthread_mutex_unlock(&fake.lock);
    set_mode(SCHEDULER_CONCURRENT);
    wait_all(1, 2);
    print_message(
        "%.1f %% and %.1f %%, %lu and %lu leases, %lu changes of hands, %lu and %lu ran\n",
        100.0 * (double)a.charged / (double)elapsed, 100.0 * (double)b.charged / (double)elapsed,
        a.leases, b.leases, seen.changes, seen.ran[1], seen.ran[2]);
    assert_int_equal(seen.mixed, 0);
    assert_in_range(a.charged * 100 / elapsed, 46, 52);
    assert_in_range(b.charged * 100 / elapsed, 26, 32);
    assert_true(seen.changes >= 40);
    assert_true(a.leases >= 20 && b.leases >= 20);
    assert_true(a.throttled_lease > elapsed / 4 && b.throttled_lease > elapsed / 4);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(leases_pass_from_client_to_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
