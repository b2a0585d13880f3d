/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: shares must settle to a few points within 20 s, leases end in milliseconds */
/* Leases, holds and refusals through a whole worker, on a device with kernels that take time. */
#include "tests/unit/worker/harness.h"

#include "common/clock.h"
#include "common/error.h"
#include "tests/support/halted.h"

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
    int priority; /* of the CUstream where it did */
    uint64_t own; /* kernels of that client on the device then, this one too */
} engine;

/* Under the fake's lock. */
static void on_kernel(const struct cuda_stream_object *stream, const uint8_t parameters[16])
{
    uint32_t number, other;
    engine.priority = stream->priority;
    memcpy(&number, parameters, sizeof number);
    engine.ran[number]++;
    engine.changes += engine.last != number;
    engine.last = number;
    engine.own = 0;
    for (int s = 0; s < fake.stream_count; s++) {
        const struct cuda_stream_object *at = fake.streams[s];
        for (uint32_t i = 0; at->alive && i < at->count; i++) {
            const struct fake_entry *entry = &at->queue[(at->done + i) % FAKE_QUEUE];
            memcpy(&other, entry->parameters, sizeof other);
            engine.mixed += entry->kind == FAKE_ENTRY_KERNEL && other != number;
            engine.own += entry->kind == FAKE_ENTRY_KERNEL && other == number;
        }
    }
}

/* A kernel's completion follows at once. */
static void run_marks(struct cuda_stream_object *stream)
{
    while (stream->count && stream->queue[stream->done % FAKE_QUEUE].kind != FAKE_ENTRY_KERNEL &&
           fake_step(stream))
        ;
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
        run_marks(fake.streams[i]);
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
        uint64_t now = clock_now();
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

static void arrive(uint32_t number, uint32_t request, uint32_t limit)
{
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.time.request = request;
    limits.allowance.time.limit = limit;
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

/* Leases of 5 ms and plans of two leases. */
static struct proto_worker_schedule schedule(enum proto_mode mode)
{
    struct proto_worker_schedule wanted = harness_schedule(mode, 5 * MS);
    wanted.precision = 5000;
    return wanted;
}

static void set_mode(enum proto_mode mode)
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
    uint64_t end = clock_now() + ns;
    while (clock_now() < end) {
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

static bool is_share(uint64_t ns, uint64_t span, uint64_t least, uint64_t most)
{
    return ns * 100 / span >= least && ns * 100 / span <= most;
}

static void leases_pass_from_client_to_client(void **state)
{
    (void)state;
    arrive(1, 5000, 10000);
    arrive(2, 3000, 10000);
    set_mode(PROTO_MODE_STRICT);
    fake_hold();
    uint64_t start = clock_now(), elapsed;
    struct proto_worker_usage a, b;
    struct engine seen;
    /* On a machine with other work leases end late, which evens out: shares that are wrong stay so.
     * Kernels of two clients never meet, however late anything is. */
    do {
        keep_busy(1, 2, 500 * UINT64_C(1000000));
        elapsed = clock_now() - start;
        a = usage(1), b = usage(2);
        pthread_mutex_lock(&fake.lock);
        seen = engine;
        pthread_mutex_unlock(&fake.lock);
        assert_int_equal(seen.mixed, 0);
    } while (!(is_share(a.charged, elapsed, 40, 52) && is_share(b.charged, elapsed, 24, 32) &&
               a.leases >= 10 && b.leases >= 10 && seen.changes >= 10) &&
             elapsed < UINT64_C(20000000000));
    set_mode(PROTO_MODE_CONCURRENT);
    wait_all(1, 2);
    print_message(
        "%.1f %% and %.1f %%, %lu and %lu leases, %lu changes of hands, %lu and %lu ran\n",
        100.0 * (double)a.charged / (double)elapsed, 100.0 * (double)b.charged / (double)elapsed,
        a.leases, b.leases, seen.changes, seen.ran[1], seen.ran[2]);
    assert_true(elapsed < UINT64_C(20000000000));
    assert_true(a.throttled_lease > elapsed / 4 && b.throttled_lease > elapsed / 4);
}

static uint64_t kernels_of(uint32_t number)
{
    pthread_mutex_lock(&fake.lock);
    uint64_t ran = engine.ran[number];
    pthread_mutex_unlock(&fake.lock);
    return ran;
}

static void set_kernel(uint64_t ns)
{
    __atomic_store_n(&engine.kernel_ns, ns, __ATOMIC_SEQ_CST);
}

static void wait_queued(void)
{
    while (!anything_queued())
        sched_yield();
}

/* A lease has room for two commands before one of them is done. The client pushes one, and the
 * others when that one is on the device: the room that it did not use is no command that is done.
 */
static void room_that_was_not_used_says_nothing_of_lengths(void **state)
{
    (void)state;
    static const uint64_t at_once[] = {1, 30};
    arrive(1, 5000, 10000);
    arrive(2, 5000, 10000);
    set_mode(PROTO_MODE_FAIR);
    fake_hold();
    /* The worker learns that kernels are short. Then the lease passes on. */
    set_kernel(20000);
    push_kernels(1, 64);
    wait_all(1, 1);
    push_kernels(2, 4);
    wait_all(2, 2);
    const uint64_t before = kernels_of(1);
    set_kernel(50 * MS);
    for (size_t i = 0; i < sizeof at_once / sizeof *at_once; i++) {
        push_kernels(1, (uint32_t)at_once[i]);
        wait_queued();
    }
    while (kernels_of(1) == before)
        sched_yield();
    pthread_mutex_lock(&fake.lock);
    const uint64_t own = engine.own;
    pthread_mutex_unlock(&fake.lock);
    set_kernel(20000);
    wait_all(1, 1);
    assert_in_range(own, 1, 2);
}

/* Client 1's kernels are known to be short enough for batches of several. A lease's first two are
 * pushed at once; the first one's end makes room, and not the end of both. */
static void the_ends_of_a_leases_first_commands_are_seen_one_by_one(void **state)
{
    (void)state;
    arrive(1, 5000, 10000);
    arrive(2, 5000, 10000);
    set_mode(PROTO_MODE_FAIR);
    fake_hold();
    set_kernel(20000);
    push_kernels(1, 64);
    wait_all(1, 1);
    push_kernels(2, 4);
    wait_all(2, 2);
    set_kernel(UINT64_C(3600000) * MS);
    push_kernels(1, 4);
    wait_queued();
    const uint64_t before = peer_completed(peers[1], 0);
    run_one();
    /* Its completion may come to the device after it has run. */
    while (peer_completed(peers[1], 0) == before) {
        pthread_mutex_lock(&fake.lock);
        for (int i = 0; i < fake.stream_count; i++)
            run_marks(fake.streams[i]);
        pthread_mutex_unlock(&fake.lock);
        sched_yield();
    }
    assert_int_equal(peer_completed(peers[1], 0), before + 1);
    set_kernel(20000);
    wait_all(1, 1);
}

/* A client with nothing to do gives its lease back, and needs not say so. */
static void a_client_that_stops_gives_its_lease_back(void **state)
{
    (void)state;
    struct proto_worker_schedule wanted = schedule(PROTO_MODE_FAIR);
    arrive(1, 0, 10000);
    arrive(2, 0, 10000);
    wanted.lease = UINT64_C(10000000000);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    fake_hold();
    push_kernels(1, 20);
    push_kernels(2, 20);
    uint64_t start = clock_now();
    wait_all(1, 2);
    assert_true(clock_now() - start < UINT64_C(5000000000));
    /* Each had one lease of ten seconds, and left it when its kernels were done. */
    pthread_mutex_lock(&fake.lock);
    uint64_t mixed = engine.mixed, changes = engine.changes;
    pthread_mutex_unlock(&fake.lock);
    assert_int_equal(mixed, 0);
    assert_int_equal(changes, 2);
    assert_int_equal(usage(1).leases, 1);
    assert_int_equal(usage(2).leases, 1);
    /* Then there is nothing to wake up for. */
    uint64_t end = clock_now() + 10000000000u;
    while (gate_next(&harness.worker.gate) != SCHEDULER_NEVER)
        assert_true(clock_now() < end);
    assert_false(gate_has_held(&harness.worker.gate));
}

/* A ring that waits for another one is no work: its client does not keep the others from theirs. */
static void a_client_that_waits_for_itself_delays_no_other(void **state)
{
    (void)state;
    struct proto_worker_schedule wanted = schedule(PROTO_MODE_FAIR);
    wanted.lease = UINT64_C(10000000000);
    arrive(1, 0, 10000);
    arrive(2, 0, 10000);
    uint32_t second = peer_stream(peers[1], 0);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    fake_hold();
    push_kernels(1, 1);
    uint64_t value = peer_push_wait(peers[1], 0, second, 1);
    push_kernels(1, 1);
    push_kernels(2, 50);
    wait_all(2, 2);
    assert_true(peer_completed(peers[1], 0) < value);
    peer_push_nop(peers[1], second);
    wait_all(1, 1);
    assert_int_equal(kernels_of(1), 2);
}

/* Time that a kernel ran over the end of its lease is paid for out of the next ones. */
static void overrun_is_paid_back(void **state)
{
    (void)state;
    arrive(1, 1000, 10000);
    set_mode(PROTO_MODE_STRICT);
    fake_hold();
    set_kernel(10 * MS);
    uint64_t start = clock_now();
    push_kernels(1, 3);
    assert_int_equal(peer_wait(peers[1], 0, 2), 0);
    uint64_t first = usage(1).charged;
    wait_all(1, 1);
    uint64_t elapsed = clock_now() - start;
    struct proto_worker_usage used = usage(1);
    /* Two at once, of a length that is not known: 20 ms or somewhat more, of a tenth of the time.
     * The third may begin 200 ms after the first, or ten times what was charged. */
    assert_int_equal(used.leases, 2);
    assert_true(first >= 20 * MS && used.charged >= 30 * MS);
    assert_true(elapsed >= 10 * first + 10 * MS);
    assert_true(elapsed < 10 * used.charged + UINT64_C(5000000000));
    set_kernel(200000);
}

static void a_holder_that_detaches_leaves_the_lease_to_others(void **state)
{
    (void)state;
    struct proto_worker_schedule wanted = schedule(PROTO_MODE_FAIR);
    wanted.lease = UINT64_C(10000000000);
    arrive(1, 6000, 10000);
    arrive(2, 0, 10000);
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    fake_hold();
    set_kernel(UINT64_C(3600000000000));
    push_kernels(1, 200);
    peer_wait_head(peers[1], 0, 2); /* what is not known is tried with two */
    push_kernels(2, 20);
    uint64_t serial = harness_send(PROTO_WORKER_DETACH, 1, NULL, NULL, 0, NULL, 0);
    assert_false(harness_has_message(50));
    assert_int_equal(kernels_of(2), 0);
    set_kernel(200000);
    /* It is gone when what it had on the device is done, and no more of its ring is carried out. */
    assert_int_equal(harness_receive(), PROTO_WORKER_USAGE);
    assert_int_equal(harness.message.header.serial, serial);
    peer_free(peers[1]);
    peers[1] = NULL;
    wait_all(2, 2);
    assert_int_equal(kernels_of(1), 2);
    assert_int_equal(kernels_of(2), 20);
    arrive(3, 10000, 10000); /* what it had requested is free */
}

static void modes_change_with_work_in_flight(void **state)
{
    (void)state;
    uint64_t expected[PEERS + 1] = {0}, random = 7;
    for (uint32_t i = 1; i <= PEERS; i++)
        arrive(i, i == 1 ? 3000 : 0, 10000);
    set_kernel(20000);
    fake_hold();
    for (int change = 0; change < 200; change++) {
        for (uint32_t i = 1; i <= PEERS; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            uint32_t count = (uint32_t)(random >> 33) % 20;
            push_kernels(i, count);
            expected[i] += count;
        }
        set_mode((enum proto_mode)((random >> 40) % 4));
    }
    set_mode(PROTO_MODE_FAIR);
    wait_all(1, PEERS);
    for (uint32_t i = 1; i <= PEERS; i++)
        assert_int_equal(kernels_of(i), expected[i]);
    pthread_mutex_lock(&fake.lock);
    uint64_t backwards = fake.backwards;
    pthread_mutex_unlock(&fake.lock);
    assert_int_equal(backwards, 0);
}

static const char *refused_schedule(enum proto_mode mode)
{
    struct proto_worker_schedule wanted = schedule(mode);
    const struct proto_failed *failed =
        harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_FAILED);
    assert_int_equal(failed->error, PROTO_ERROR_NO_ROOM);
    return failed->text;
}

static void requests_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    arrive(1, 6000, 10000);
    /* In concurrent mode nothing is promised. */
    arrive(2, 4100, 10000);
    assert_non_null(strstr(refused_schedule(PROTO_MODE_STRICT),
                           "with the 41 % of this request that makes 101 %"));
    assert_non_null(strstr(refused_schedule(PROTO_MODE_FAIR), "makes 101 %"));
    set_mode(PROTO_MODE_TURNS);
    limits.allowance.time.request = 4000;
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    set_mode(PROTO_MODE_STRICT);
    limits.allowance.time.request = 4001;
    const struct proto_failed *failed = harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_FAILED);
    assert_int_equal(failed->error, PROTO_ERROR_NO_ROOM);
    assert_non_null(strstr(failed->text, "ask for 40 % at most"));
    /* A refusal leaves everything as it was. */
    assert_int_equal(harness.worker.gate.scheduler.schedule.mode, PROTO_MODE_STRICT);
    push_kernels(2, 10);
    wait_all(2, 2);
    assert_int_equal(usage(2).leases > 0, 1);
}

static void a_schedule_arrives_whole(void **state)
{
    (void)state;
    struct proto_worker_schedule wanted = {.mode = PROTO_MODE_TURNS,
                                           .precision = 1234,
                                           .lease = 77 * MS,
                                           .quantum = 99 * MS,
                                           .window_limit = 88 * MS,
                                           .local_memory = PROTO_LOCAL_MEMORY_DEFAULT};
    harness_ask(PROTO_WORKER_SCHEDULE, 0, &wanted, PROTO_DONE);
    const struct scheduler_schedule *settings = &harness.worker.gate.scheduler.schedule;
    assert_int_equal(settings->mode, PROTO_MODE_TURNS);
    assert_int_equal(settings->precision, 1234);
    assert_int_equal(settings->lease_ns, 77 * MS);
    assert_int_equal(settings->quantum_ns, 99 * MS);
    assert_int_equal(harness.worker.quiet_window.quiet.settings.limit_ns, 88 * MS);
}

static const struct scheduler_lease_group *lease_group_of(uint32_t number)
{
    return worker_find_client(&harness.worker, number)->gate.scheduled.lease_group;
}

/* Clients on multiprocessors that no longer overlap need not wait for each other, and the reverse.
 */
static void a_client_that_moves_apart_has_leases_of_its_own(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_threads(5000)};
    arrive(1, 0, 10000);
    arrive(2, 0, 10000);
    set_mode(PROTO_MODE_FAIR);
    assert_ptr_equal(lease_group_of(1), lease_group_of(2));
    for (uint32_t i = 1; i <= 2; i++)
        harness_ask(PROTO_WORKER_LIMITS, i, &limits, PROTO_WORKER_ATTACHED);
    assert_ptr_not_equal(lease_group_of(1), lease_group_of(2));
    limits.allowance.threads.limit = PROTO_PERCENT_WHOLE;
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    assert_ptr_equal(lease_group_of(1), lease_group_of(2));
}

static bool borrows(uint32_t number)
{
    struct gate *gate = &harness.worker.gate;
    pthread_mutex_lock(&gate->lock);
    bool does = worker_find_client(&harness.worker, number)->gate.scheduled.borrows;
    pthread_mutex_unlock(&gate->lock);
    return does;
}

/* Works for a client until the gate takes it for a borrower, or does no more. */
static void work_until_it(uint32_t number, bool is)
{
    for (uint64_t end = clock_now() + 20000 * (uint64_t)MS; borrows(number) != is;) {
        assert_true(clock_now() < end);
        push_kernels(number, 1);
        wait_all(number, number);
    }
}

/* Work on lent multiprocessors must end soon: the gate keeps less of it in flight. */
static void the_gate_knows_the_clients_on_lent_multiprocessors(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.threads.request = 5000;
    fake_hold();
    arrive(1, 0, 10000);
    arrive(2, 0, 10000);
    work_until_it(2, false);
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    work_until_it(2, true);
    limits.allowance.threads.request = 0;
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    work_until_it(2, false);
}

/* Threads are changed first, and put back if the rest is refused. */
static void a_refused_change_leaves_threads_and_time(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_threads(5000)};
    limits.allowance.threads.request = 2500;
    limits.allowance.time.request = 4000;
    arrive(1, 6000, 10000);
    arrive(2, 0, 10000);
    set_mode(PROTO_MODE_FAIR);
    const struct proto_worker_attached *granted =
        harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    struct proto_worker_attached before = *granted;
    limits.allowance.time.request = 4001;
    limits.allowance.threads.limit = PROTO_PERCENT_WHOLE;
    limits.allowance.threads.request = 0;
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_FAILED);
    const struct client *client = worker_find_client(&harness.worker, 2);
    assert_int_equal(client->place.allocation.request, 2500);
    assert_int_equal(client->place.allocation.limit, 5000);
    assert_int_equal(client->gate.scheduled.limits.request, 4000);
    limits.allowance.time.request = 4000;
    limits.allowance.threads.limit = 5000;
    limits.allowance.threads.request = 2500;
    granted = harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    assert_memory_equal(granted, &before, sizeof before);
}

/* A client that is less urgent has one kernel in flight while a more urgent one is about. */
static void lower_clients_stay_behind(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    limits.allowance.priority = 7;
    for (uint32_t i = 1; i <= 3; i++)
        arrive(i, 0, 10000);
    harness_ask(PROTO_WORKER_LIMITS, 2, &limits, PROTO_WORKER_ATTACHED);
    harness_ask(PROTO_WORKER_LIMITS, 3, &limits, PROTO_WORKER_ATTACHED);
    fake_hold();
    set_kernel(MS);
    push_kernels(1, 1);
    wait_all(1, 1);
    push_kernels(2, 150);
    push_kernels(3, 150);
    for (int i = 0; i < 20; i++) {
        push_kernels(1, 1);
        wait_all(1, 1);
        uint32_t lower = 0;
        pthread_mutex_lock(&harness.worker.gate.lock);
        for (struct gate_client *at = harness.worker.gate.first; at; at = at->next)
            lower += at->scheduled.limits.level ? at->scheduled.in_flight : 0;
        pthread_mutex_unlock(&harness.worker.gate.lock);
        assert_true(lower <= 1);
    }
    assert_true(usage(2).throttled_priority > 0 && usage(3).throttled_priority > 0);
    peer_detach(peers[1]);
    peers[1] = NULL;
    set_kernel(20000);
    wait_all(2, 3);
    assert_int_equal(kernels_of(2) + kernels_of(3), 300);
}

static int priority_of(uint32_t number)
{
    push_kernels(number, 1);
    wait_all(number, number);
    pthread_mutex_lock(&fake.lock);
    int priority = engine.priority;
    pthread_mutex_unlock(&fake.lock);
    return priority;
}

/* A CUstream of another priority is made when nothing runs. */
static void await_priority(uint32_t number, int expected)
{
    uint64_t end = clock_now() + 10000000000u;
    int found;
    while ((found = priority_of(number)) != expected && clock_now() < end)
        usleep(1000);
    assert_int_equal(found, expected);
}

static void levels_divide_the_devices_range(void **state)
{
    (void)state;
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    static const int first[] = {0, 0, -1, -4}; /* the first client's, beside so many */
    fake_hold();
    set_kernel(1000);
    for (uint32_t i = 1; i <= 3; i++) {
        arrive(i, 0, 10000);
        limits.allowance.priority = (i - 1) * 300;
        harness_ask(PROTO_WORKER_LIMITS, i, &limits, PROTO_WORKER_ATTACHED);
        await_priority(1, first[i]);
        await_priority(i, 0);
    }
    await_priority(2, -1);
    peer_detach(peers[3]);
    peers[3] = NULL;
    await_priority(2, 0);
    await_priority(1, -1);
}

/* Use that the account found out only when all was done. */
static void a_clients_last_use_is_charged_before_it_goes(void **state)
{
    (void)state;
    static struct gate gate;
    static struct client quick, next;
    struct error why = {0};
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = 2500};
    struct scheduler_account user;
    struct scheduler_accounts accounts = {{&user}, 1};
    gate_open(&gate);
    scheduler_account_open(&user, 7, "user 7", clock_now());
    assert_int_equal(gate_add(&gate, &quick, &limits, &accounts, NULL, &why), 0);
    quick.usage.gpu_nanoseconds = 1000 * (uint64_t)MS;
    gate_remove(&gate, &quick);
    assert_int_equal(gate_add(&gate, &next, &limits, &accounts, NULL, &why), 0);
    assert_true(next.gate.scheduled.duty.parts < 0);
    gate_remove(&gate, &next);
    gate_close(&gate);
}

enum { HALTS = 2000 };

static struct gate busy_gate;

static void *charge(void *unused)
{
    (void)unused;
    do
        gate_charge_usage(&busy_gate);
    while (halted_turn());
    return NULL;
}

/* The completer charges while the control thread gives a client back what it had. */
static bool is_charged_again(void)
{
    static struct client client;
    struct error why = {0};
    struct scheduler_limits limits = {.limit = PLAN_WHOLE, .duty = PLAN_WHOLE};
    struct scheduler_account user;
    struct scheduler_accounts accounts = {{&user}, 1};
    const struct gate_carried nothing = {.count = 0};
    memset(&client, 0, sizeof client);
    scheduler_account_open(&user, 7, "user 7", clock_now());
    assert_int_equal(gate_add(&busy_gate, &client, &limits, &accounts, NULL, &why), 0);
    pthread_mutex_lock(&busy_gate.lock);
    scheduler_account_set_duty(&busy_gate.scheduler, &user, 2500, clock_now());
    pthread_mutex_unlock(&busy_gate.lock);
    gate_carry_use(&busy_gate, &client, 1000 * (uint64_t)MS);
    gate_carry_give(&busy_gate, &client, &nothing);
    gate_charge_usage(&busy_gate);
    gate_remove(&busy_gate, &client);
    return user.duty.parts < 0;
}

static void what_an_earlier_worker_has_charged_is_not_charged_again(void **state)
{
    (void)state;
    pthread_t completer;
    unsigned again = 0;
    gate_open(&busy_gate);
    halted_begin();
    assert_int_equal(pthread_create(&completer, NULL, charge, NULL), 0);
    const uint64_t end = clock_now() + 1000 * (uint64_t)MS;
    while (halted_count() < HALTS && clock_now() < end)
        again += is_charged_again();
    halted_end(completer);
    assert_int_equal(again, 0);
    gate_close(&busy_gate);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(leases_pass_from_client_to_client),
        T(room_that_was_not_used_says_nothing_of_lengths),
        T(the_ends_of_a_leases_first_commands_are_seen_one_by_one),
        T(a_client_that_stops_gives_its_lease_back),
        T(a_client_that_waits_for_itself_delays_no_other),
        T(overrun_is_paid_back),
        T(a_holder_that_detaches_leaves_the_lease_to_others),
        T(modes_change_with_work_in_flight),
        T(requests_that_do_not_fit_are_refused),
        T(a_schedule_arrives_whole),
        T(a_client_that_moves_apart_has_leases_of_its_own),
        T(the_gate_knows_the_clients_on_lent_multiprocessors),
        T(a_refused_change_leaves_threads_and_time),
        T(lower_clients_stay_behind),
        T(levels_divide_the_devices_range),
        cmocka_unit_test(a_clients_last_use_is_charged_before_it_goes),
        cmocka_unit_test(what_an_earlier_worker_has_charged_is_not_charged_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
