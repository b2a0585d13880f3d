/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The CUstream that a ring gets: its own while there are enough, its client's before another's. */
#include "common/clock.h"
#include "tests/unit/worker/harness.h"

static struct peer *peer;
static uint32_t made_at_start;

static int setup(void **state)
{
    if (harness_setup(state) < 0)
        return -1;
    made_at_start = fake_count(FAKE_STREAM_CREATE);
    peer = peer_attach(1);
    return 0;
}

static int teardown(void **state)
{
    fake_release();
    peer_detach(peer);
    return harness_stop(state);
}

static bool is_quiet_thread(pid_t thread)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)thread);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(name, sizeof name, file));
    fclose(file);
    return strcmp(name, "quiet\n") == 0;
}

/* Making or destroying one may wait for whatever runs, and the submitter and control serve
 * everybody. */
static void expect_streams_of_the_quiet_thread(void)
{
    for (uint32_t i = made_at_start; i < fake_count(FAKE_STREAM_CREATE); i++)
        assert_true(is_quiet_thread(fake_call(FAKE_STREAM_CREATE, i).thread));
    for (uint32_t i = 0; i < fake_count(FAKE_STREAM_DESTROY); i++)
        assert_true(is_quiet_thread(fake_call(FAKE_STREAM_DESTROY, i).thread));
}

static void expect_nothing_shared(uint32_t client)
{
    const struct proto_worker_usage *usage =
        harness_ask(PROTO_WORKER_USAGE_QUERY, client, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->shared_queues, 0);
}

static void streams_of_one_client_share_before_others_must(void **state)
{
    (void)state;
    struct peer *peers[6];
    fake_hold();
    /* 6 clients x 8 rings = 48 busy rings on at most 32 queues. */
    for (uint32_t p = 0; p < 6; p++) {
        peers[p] = p ? peer_attach(p + 1) : peer;
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], 0);
        for (uint32_t s = 0; s < STREAMS; s++) {
            peer_push_nop(peers[p], s);
            peer_wait_head(peers[p], s, 1);
        }
    }
    for (uint32_t p = 0; p < 6; p++)
        expect_nothing_shared(p + 1);
    fake_release();
    for (uint32_t p = 0; p < 6; p++)
        for (uint32_t s = 0; s < STREAMS; s++)
            assert_int_equal(peer_wait(peers[p], s, 1), 0);
    for (uint32_t p = 1; p < 6; p++)
        peer_detach(peers[p]);
    expect_streams_of_the_quiet_thread();
}

/* More partitions than there are hardware queues for streams of their own. */
static void streams_of_partitions_make_way(void **state)
{
    (void)state;
    struct peer *peers[12];
    for (uint32_t p = 0; p < 12; p++) {
        peers[p] = peer_attach_with(p + 2, 600 * (p + 1), 0);
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], -(int32_t)(s % 4));
    }
    for (int round = 0; round < 3; round++)
        for (uint32_t p = 0; p < 12; p++)
            for (uint32_t s = 0; s < STREAMS; s++)
                peer_push_nop(peers[p], s);
    for (uint32_t p = 0; p < 12; p++)
        for (uint32_t s = 0; s < STREAMS; s++)
            assert_int_equal(peer_wait(peers[p], s, 3), 0);
    for (uint32_t p = 0; p < 12; p++)
        peer_detach(peers[p]);
    pthread_mutex_lock(&fake.lock);
    unsigned busy = (unsigned)fake.destroyed_busy;
    pthread_mutex_unlock(&fake.lock);
    assert_int_equal(busy, 0);
    expect_streams_of_the_quiet_thread();
}

static void wait_for_stream(int32_t priority)
{
    uint64_t end = clock_now() + 10000000000u;
    const struct partition *whole = harness.worker.clients[0]->shared.partition;
    while (!stream_pool_has(&harness.worker.pool, whole, priority)) {
        assert_true(clock_now() < end);
        usleep(1000);
    }
}

static int priority_of_launch(uint32_t n)
{
    return ((const struct cuda_stream_object *)fake_call(FAKE_LAUNCH, n).stream)->priority;
}

/* A CUstream that one ring has left must not serve another ring of a different priority. */
static void priorities_reach_the_device(void **state)
{
    (void)state;
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    uint32_t urgent = peer_stream(peer, -4);
    wait_for_stream(-4);
    assert_int_equal(peer_wait(peer, urgent, peer_push(peer, urgent, &launch)), 0);
    assert_int_equal(priority_of_launch(0), -4);
    struct proto_stream_destroy destroy = {.stream = urgent};
    harness_ask(PROTO_STREAM_DESTROY, 1, &destroy, PROTO_DONE);
    /* A quiesce is answered by the thread that gives the CUstream of a destroyed stream back. */
    harness_ask(PROTO_WORKER_QUIESCE, 1, NULL, PROTO_DONE);
    uint32_t plain = peer_stream(peer, 0), middle = peer_stream(peer, -2);
    wait_for_stream(-2);
    assert_int_equal(peer_wait(peer, plain, peer_push(peer, plain, &launch)), 0);
    assert_int_equal(peer_wait(peer, middle, peer_push(peer, middle, &launch)), 0);
    assert_int_equal(priority_of_launch(1), 0);
    assert_int_equal(priority_of_launch(2), -2);
}

static void a_client_shares_with_itself_before_others(void **state)
{
    (void)state;
    struct peer *peers[5];
    for (uint32_t p = 0; p < 5; p++) {
        peers[p] = p ? peer_attach(p + 1) : peer;
        for (uint32_t s = 1; s < STREAMS; s++)
            peer_stream(peers[p], 0);
    }
    struct proto_command_launch launch = peer_launch(peer_kernel(peers[4], "kernel"));
    fake_hold();
    /* The rings of four others have all queues but those that are kept for clients that come. */
    for (uint32_t n = 0; n < DRIVER_QUEUES - 1; n++) {
        peer_push_nop(peers[n / STREAMS], n % STREAMS);
        peer_wait_head(peers[n / STREAMS], n % STREAMS, 1);
    }
    for (uint32_t s = 0; s < 3; s++) {
        peer_push(peers[4], s, &launch);
        peer_wait_head(peers[4], s, 1);
    }
    assert_ptr_equal(fake_call(FAKE_LAUNCH, 1).stream, fake_call(FAKE_LAUNCH, 0).stream);
    assert_ptr_equal(fake_call(FAKE_LAUNCH, 2).stream, fake_call(FAKE_LAUNCH, 0).stream);
    expect_nothing_shared(5);
    fake_release();
    for (uint32_t s = 0; s < 3; s++)
        assert_int_equal(peer_wait(peers[4], s, 1), 0);
    for (uint32_t p = 1; p < 5; p++)
        peer_detach(peers[p]);
}

/* One queue is the worker's. */
enum { HOMES = DRIVER_QUEUES - 1 };

static void shared_queues_are_told(void **state)
{
    (void)state;
    static struct peer *peers[HOMES + 1];
    for (uint32_t p = 0; p <= HOMES; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    fake_hold();
    for (uint32_t p = 0; p < HOMES; p++) {
        peer_push_nop(peers[p], 0);
        peer_wait_head(peers[p], 0, 1);
    }
    expect_nothing_shared(1);
    peer_push_nop(peers[HOMES], 0);
    peer_wait_head(peers[HOMES], 0, 1);
    const struct proto_worker_usage *usage =
        harness_ask(PROTO_WORKER_USAGE_QUERY, HOMES + 1, NULL, PROTO_WORKER_USAGE);
    assert_int_equal(usage->shared_queues, 1);
    assert_int_equal(usage->in_flight, 1);
    fake_release();
    for (uint32_t p = 0; p <= HOMES; p++)
        assert_int_equal(peer_wait(peers[p], 0, 1), 0);
    expect_nothing_shared(HOMES + 1);
    for (uint32_t p = 1; p <= HOMES; p++)
        peer_detach(peers[p]);
}

/* The queues count, not the CUstreams: that of another partition is on a queue that the first
 * client's rings would get otherwise. */
static void a_partition_keeps_a_queue_beside_many_streams(void **state)
{
    (void)state;
    struct peer *quarter = peer_attach_with(2, 2500, 0);
    for (uint32_t s = 1; s < STREAMS; s++)
        peer_stream(peer, 0);
    fake_hold();
    for (uint32_t s = 0; s < STREAMS; s++) {
        peer_push_nop(peer, s);
        peer_wait_head(peer, s, 1);
    }
    peer_push_nop(quarter, 0);
    peer_wait_head(quarter, 0, 1);
    expect_nothing_shared(1);
    expect_nothing_shared(2);
    fake_release();
    peer_detach(quarter);
}

/* The most that is held back in the CUstreams of each queue. */
static uint32_t most_entries(void)
{
    struct stream_pool *pool = &harness.worker.pool;
    uint32_t most = 0;
    pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < pool->count; i++) {
        uint32_t here = 0;
        for (uint32_t j = 0; j < pool->count; j++)
            if (pool->streams[j]->queue == pool->streams[i]->queue)
                here += pool->streams[j]->handle->count;
        most = here > most ? here : most;
    }
    pthread_mutex_unlock(&fake.lock);
    return most;
}

static const void *home_of(const struct client *client)
{
    pthread_mutex_lock(&harness.worker.pool.lock);
    const void *home = client->queues.home;
    pthread_mutex_unlock(&harness.worker.pool.lock);
    return home;
}

/* The submitter reads it under the lock of the client that it serves. */
static void set_entries_max(uint32_t entries_max)
{
    struct worker *worker = &harness.worker;
    for (uint32_t i = 0; i < worker->client_count; i++)
        pthread_mutex_lock(&worker->clients[i]->lock);
    worker->pool.entries_max = entries_max;
    for (uint32_t i = 0; i < worker->client_count; i++)
        pthread_mutex_unlock(&worker->clients[i]->lock);
}

/* The driver would block the submitter with it. */
static void a_queue_is_never_filled(void **state)
{
    (void)state;
    enum { LAUNCHES = 20, ENTRIES_MAX = 14 };
    struct proto_command_launch launch = peer_launch(peer_kernel(peer, "kernel"));
    set_entries_max(ENTRIES_MAX);
    fake_hold();
    for (int n = 0; n < LAUNCHES; n++)
        peer_push(peer, 0, &launch);
    peer_wait_head(peer, 0, 1);
    usleep(20000);
    /* Without the bound there would be two. */
    assert_int_equal(fake_count(FAKE_LAUNCH), 1);
    assert_true(most_entries() <= ENTRIES_MAX);
    fake_release();
    assert_int_equal(peer_wait(peer, 0, LAUNCHES), 0);
    assert_int_equal(fake_count(FAKE_LAUNCH), LAUNCHES);
}

/* More clients than queues: what one may submit depends on the other's work. */
static void a_queue_that_is_shared_is_never_filled(void **state)
{
    (void)state;
    enum { CLIENTS = 40, ENTRIES_MAX = 14 };
    static struct peer *peers[CLIENTS];
    static uint64_t last[CLIENTS];
    set_entries_max(ENTRIES_MAX);
    for (uint32_t p = 0; p < CLIENTS; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    fake_hold();
    for (int n = 0; n < 3; n++)
        for (uint32_t p = 0; p < CLIENTS; p++)
            last[p] = peer_push_nop(peers[p], 0);
    usleep(50000);
    assert_true(most_entries() <= ENTRIES_MAX);
    fake_release();
    for (uint32_t p = 0; p < CLIENTS; p++)
        assert_int_equal(peer_wait(peers[p], 0, last[p]), 0);
    for (uint32_t p = 1; p < CLIENTS; p++)
        peer_detach(peers[p]);
}

static uint64_t choices_made(void)
{
    struct stream_pool *pool = &harness.worker.pool;
    pthread_mutex_lock(&pool->lock);
    uint64_t choices = pool->choices;
    pthread_mutex_unlock(&pool->lock);
    return choices;
}

static const struct cuda_stream_object *stream_of_latest_launch(void)
{
    return fake_call(FAKE_LAUNCH, fake_count(FAKE_LAUNCH) - 1).stream;
}

/* Otherwise each of its launches would cost more with each client that is connected. */
static void a_ring_that_must_share_stays_until_something_changes(void **state)
{
    (void)state;
    enum { CLIENTS = DRIVER_QUEUES + 2 };
    static struct peer *peers[CLIENTS];
    for (uint32_t p = 0; p < CLIENTS; p++) {
        peers[p] = p ? peer_attach(p + 1) : peer;
        assert_int_equal(peer_wait(peers[p], 0, peer_push_nop(peers[p], 0)), 0);
    }
    struct peer *last = peers[CLIENTS - 1];
    struct proto_command_launch launch = peer_launch(peer_kernel(last, "kernel"));
    assert_int_equal(peer_wait(last, 0, peer_push(last, 0, &launch)), 0);
    const struct cuda_stream_object *shared = stream_of_latest_launch();
    uint64_t before = choices_made();
    for (int n = 0; n < 3; n++) {
        assert_int_equal(peer_wait(last, 0, peer_push(last, 0, &launch)), 0);
        assert_ptr_equal(stream_of_latest_launch(), shared);
    }
    assert_int_equal(choices_made(), before);
    const struct client *client = harness.worker.clients[CLIENTS - 1];
    assert_null(home_of(client));
    /* A client that leaves gives its home back, and the ring need not share any more. */
    peer_detach(peers[1]);
    assert_int_equal(peer_wait(last, 0, peer_push(last, 0, &launch)), 0);
    assert_non_null(home_of(client));
    for (uint32_t p = 2; p < CLIENTS; p++)
        peer_detach(peers[p]);
}

/* Its old work stands before its new work, so on another queue all would wait for both. */
static void a_ring_with_work_in_flight_moves_to_no_other_clients_queue(void **state)
{
    (void)state;
    static struct peer *peers[HOMES + 1];
    for (uint32_t p = 0; p <= HOMES; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    struct peer *last = peers[HOMES];
    struct proto_command_launch launch = peer_launch(peer_kernel(last, "kernel"));
    fake_hold();
    for (uint32_t p = 0; p < HOMES; p++) {
        peer_push_nop(peers[p], 0);
        peer_wait_head(peers[p], 0, 1);
    }
    peer_push(last, 0, &launch);
    peer_wait_head(last, 0, 1);
    const struct cuda_stream_object *shared = stream_of_latest_launch();
    uint64_t before = choices_made();
    stream_pool_grant(&harness.worker.pool); /* so it chooses anew, and other queues have less */
    peer_push(last, 0, &launch);
    peer_wait_head(last, 0, 2);
    assert_true(choices_made() > before);
    assert_ptr_equal(stream_of_latest_launch(), shared);
    fake_release();
    assert_int_equal(peer_wait(last, 0, 2), 0);
    for (uint32_t p = 1; p <= HOMES; p++)
        peer_detach(peers[p]);
}

static uint32_t count_homeless(uint32_t clients)
{
    uint32_t homeless = 0;
    for (uint32_t i = 0; i < clients; i++)
        homeless += home_of(harness.worker.clients[i]) == NULL;
    return homeless;
}

/* Everybody has work often enough to find what there is. */
static void work_in_turn(struct peer **peers, uint32_t count)
{
    for (int round = 0; round < 3; round++)
        for (uint32_t p = 0; p < count; p++)
            assert_int_equal(peer_wait(peers[p], 0, peer_push_nop(peers[p], 0)), 0);
}

static void a_home_that_is_given_back_is_for_one_of_those_who_share(void **state)
{
    (void)state;
    enum { CLIENTS = DRIVER_QUEUES + 4 };
    static struct peer *peers[CLIENTS];
    for (uint32_t p = 0; p < CLIENTS; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    work_in_turn(peers, CLIENTS);
    uint32_t homeless = count_homeless(CLIENTS);
    assert_true(homeless > 1);
    peer_detach(peers[1]);
    work_in_turn(peers + 2, CLIENTS - 2);
    assert_int_equal(count_homeless(CLIENTS - 1), homeless - 1);
    for (uint32_t p = 2; p < CLIENTS; p++)
        peer_detach(peers[p]);
}

static void a_pool_without_streams_binds_no_ring(void **state)
{
    (void)state;
    struct stream_pool pool;
    struct partition *whole = harness.worker.clients[0]->shared.partition;
    struct client client = {.shared.partition = whole};
    struct client_stream ring = {.client = &client};
    struct stream_wish wish;
    stream_pool_open(&pool, &harness.worker.gpu);
    stream_pool_join(&pool, &client);
    assert_int_equal(stream_pool_bind(&pool, &ring), CUDA_ERR_NOT_READY);
    assert_null(ring.bound);
    assert_false(stream_pool_has(&pool, whole, 0));
    assert_false(stream_pool_take_wish(&pool, &wish));
    assert_int_equal(stream_pool_prepare(&pool, whole, 0, 1), CUDA_OK);
    assert_int_equal(stream_pool_bind(&pool, &ring), CUDA_OK);
    assert_non_null(ring.bound);
    stream_pool_unbind(&pool, &ring);
    stream_pool_forget(&pool, &client);
    stream_pool_close(&pool);
}

/* The queues of a partition of its own go with it; a client that moved away has no home among them
 * then. */
static void a_home_goes_with_its_partition(void **state)
{
    (void)state;
    struct stream_pool pool;
    struct partition *whole = harness.worker.clients[0]->shared.partition, apart = *whole;
    struct client client = {.shared.partition = &apart};
    struct client_stream ring = {.client = &client};
    apart.queues = calloc(1, sizeof *apart.queues);
    assert_non_null(apart.queues);
    driver_queue_set_open(apart.queues, 2);
    stream_pool_open(&pool, &harness.worker.gpu);
    stream_pool_join(&pool, &client);
    assert_int_equal(stream_pool_prepare(&pool, &apart, 0, 2), CUDA_OK);
    assert_int_equal(stream_pool_prepare(&pool, whole, 0, 1), CUDA_OK);
    assert_int_equal(stream_pool_bind(&pool, &ring), CUDA_OK);
    assert_non_null(client.queues.home);
    stream_pool_unbind(&pool, &ring);
    client.shared.partition = whole;
    assert_true(stream_pool_drop(&pool, &apart));
    assert_null(client.queues.home);
    free(apart.queues);
    assert_int_equal(stream_pool_bind(&pool, &ring), CUDA_OK);
    stream_pool_unbind(&pool, &ring);
    stream_pool_forget(&pool, &client);
    stream_pool_close(&pool);
}

/* The most that was submitted to the CUstreams of one queue since the log had `from` calls, of all
 * kinds. */
static uint32_t most_submitted(uint32_t from)
{
    struct stream_pool *pool = &harness.worker.pool;
    uint32_t submitted[DRIVER_QUEUES] = {0}, most = 0;
    pthread_mutex_lock(&fake.lock);
    assert_true(fake.calls < FAKE_LOG);
    for (uint32_t n = from; n < fake.calls; n++)
        for (uint32_t i = 0; i < pool->count; i++)
            if (fake.log[n].stream == pool->streams[i]->handle)
                submitted[pool->streams[i]->queue - pool->queues.queues] +=
                    fake.log[n].kind == FAKE_WRITE ? 2 : 1;
    pthread_mutex_unlock(&fake.lock);
    for (uint32_t i = 0; i < DRIVER_QUEUES; i++)
        most = submitted[i] > most ? submitted[i] : most;
    return most;
}

/* Until the worker has made no call for a while: it would make more at once. */
static void await_rest(void)
{
    uint32_t before, calls = 0;
    do {
        before = calls;
        usleep(200000);
        pthread_mutex_lock(&fake.lock);
        calls = fake.calls;
        pthread_mutex_unlock(&fake.lock);
    } while (calls != before);
}

/* With each batch, rings on other clients' homes look for a better place. */
static void looking_for_a_better_place_fills_no_queue(uint32_t entries_max)
{
    enum { CLIENTS = 70, LAUNCHES = 40 };
    static struct peer *peers[CLIENTS];
    static uint64_t last[CLIENTS];
    set_entries_max(entries_max);
    for (uint32_t p = 0; p < CLIENTS; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    uint32_t from = fake.calls;
    fake_hold();
    for (int n = 0; n < LAUNCHES; n++) {
        for (uint32_t p = 0; p < CLIENTS; p++)
            last[p] = peer_push_nop(peers[p], 0);
        usleep(2000); /* batches of one */
    }
    await_rest();
    uint32_t most = most_submitted(from);
    fake_release();
    for (uint32_t p = 0; p < CLIENTS; p++)
        assert_int_equal(peer_wait(peers[p], 0, last[p]), 0);
    for (uint32_t p = 1; p < CLIENTS; p++)
        peer_detach(peers[p]);
    if (most > entries_max)
        fail_msg("%u entries in a queue for %u", most, entries_max);
}

static void a_queue_of_any_size_is_never_filled(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {12, 40, 100};
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        looking_for_a_better_place_fills_no_queue(sizes[i]);
}

/* An event for another ring stands in the queue of the ring that is waited for. */
static void waits_fill_no_queue(void **state)
{
    (void)state;
    enum { ENTRIES_MAX = 12, WAITERS = STREAMS - 1 };
    uint64_t last[STREAMS];
    set_entries_max(ENTRIES_MAX);
    for (uint32_t s = 1; s <= WAITERS; s++)
        peer_stream(peer, 0);
    uint32_t from = fake.calls;
    fake_hold();
    uint64_t first = peer_push_nop(peer, 0);
    peer_wait_head(peer, 0, 1);
    /* Three events of each; that they are for one value does not matter. */
    struct proto_command_wait wait = {.opcode = PROTO_COMMAND_WAIT, .count = 3};
    for (int i = 0; i < 3; i++)
        wait.on[i] = (struct proto_dependency){.stream = 0, .value = first};
    for (uint32_t s = 1; s <= WAITERS; s++)
        last[s] = peer_push(peer, s, &wait);
    await_rest();
    uint32_t most = most_submitted(from);
    fake_release();
    for (uint32_t s = 1; s <= WAITERS; s++)
        assert_int_equal(peer_wait(peer, s, last[s]), 0);
    if (most > ENTRIES_MAX)
        fail_msg("%u entries in a queue for %u", most, ENTRIES_MAX);
}

static void partitions_have_streams_of_their_own(void **state)
{
    (void)state;
    struct peer *quarter = peer_attach_with(2, 2500, 0);
    assert_int_equal(peer_wait(peer, 0, peer_push_nop(peer, 0)), 0);
    struct proto_command_launch a = peer_launch(peer_kernel(peer, "kernel"));
    struct proto_command_launch b = peer_launch(peer_kernel(quarter, "kernel"));
    assert_int_equal(peer_wait(peer, 0, peer_push(peer, 0, &a)), 0);
    assert_int_equal(peer_wait(quarter, 0, peer_push(quarter, 0, &b)), 0);
    const struct cuda_stream_object *whole = fake_call(FAKE_LAUNCH, 0).stream;
    const struct cuda_stream_object *part = fake_call(FAKE_LAUNCH, 1).stream;
    assert_true(whole && whole->green && whole->green->multiprocessors == 132);
    assert_true(part && part->green && part->green->multiprocessors == 32);
    peer_detach(quarter);
}

/* ---- work that stands ---- */

enum { SHARERS = 2 };

#define LONG_NS UINT64_C(10000000000)

static struct client_stream *first_stream(const struct peer *of)
{
    struct worker *worker = &harness.worker;
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (worker->clients[i]->number == of->number)
            return &worker->clients[i]->streams[0];
    fail();
    return NULL;
}

static const struct driver_queue *queue_of(const struct peer *of)
{
    pthread_mutex_lock(&harness.worker.pool.lock);
    const struct driver_queue *queue = first_stream(of)->bound->queue;
    pthread_mutex_unlock(&harness.worker.pool.lock);
    return queue;
}

static void submit(struct peer *of)
{
    peer_wait_head(of, 0, (uint32_t)peer_push_nop(of, 0));
}

/* The work that this client has on the device was last seen to get on so long ago. */
static void has_stood_for(const struct peer *of, uint64_t ns)
{
    atomic_store(&first_stream(of)->moved_at, clock_now() - ns);
}

/* All homes are taken, and their owners' work stands, but for one. */
static void those_who_share_go_where_work_gets_on(void **state)
{
    (void)state;
    static struct peer *peers[HOMES + SHARERS];
    static const uint32_t going[SHARERS] = {20, 5};
    for (uint32_t p = 0; p < HOMES + SHARERS; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    fake_hold();
    for (uint32_t p = 0; p < HOMES; p++)
        submit(peers[p]);
    for (uint32_t n = 0; n < SHARERS; n++) {
        for (uint32_t p = 0; p < HOMES; p++)
            has_stood_for(peers[p], p == going[n] ? 0 : LONG_NS);
        submit(peers[HOMES + n]);
        assert_ptr_equal(queue_of(peers[HOMES + n]), queue_of(peers[going[n]]));
    }
    fake_release();
    for (uint32_t p = 1; p < HOMES + SHARERS; p++)
        peer_detach(peers[p]);
}

static void who_can_leaves_a_queue_where_work_stands(void **state)
{
    (void)state;
    static struct peer *peers[HOMES + 1];
    for (uint32_t p = 0; p <= HOMES; p++)
        peers[p] = p ? peer_attach(p + 1) : peer;
    work_in_turn(peers, HOMES + 1);
    struct peer *sharer = peers[HOMES], *owner = NULL;
    const struct driver_queue *shared = queue_of(sharer);
    for (uint32_t p = 0; p < HOMES; p++)
        if (queue_of(peers[p]) == shared)
            owner = peers[p];
    assert_non_null(owner);
    fake_hold();
    submit(owner);
    has_stood_for(owner, LONG_NS);
    submit(sharer);
    const struct driver_queue *other = queue_of(sharer);
    assert_ptr_not_equal(other, shared);
    /* A client's home, too, is of no use to it while another's work stands there. */
    struct peer *host = NULL;
    for (uint32_t p = 0; p < HOMES; p++)
        if (queue_of(peers[p]) == other)
            host = peers[p];
    assert_non_null(host);
    has_stood_for(sharer, LONG_NS);
    submit(host);
    assert_ptr_not_equal(queue_of(host), other);
    fake_release();
    for (uint32_t p = 1; p <= HOMES; p++)
        peer_detach(peers[p]);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(streams_of_one_client_share_before_others_must),
        T(streams_of_partitions_make_way),
        T(priorities_reach_the_device),
        T(a_client_shares_with_itself_before_others),
        T(shared_queues_are_told),
        T(a_partition_keeps_a_queue_beside_many_streams),
        T(a_queue_is_never_filled),
        T(a_queue_that_is_shared_is_never_filled),
        T(a_queue_of_any_size_is_never_filled),
        T(waits_fill_no_queue),
        T(a_ring_that_must_share_stays_until_something_changes),
        T(a_ring_with_work_in_flight_moves_to_no_other_clients_queue),
        T(a_home_that_is_given_back_is_for_one_of_those_who_share),
        T(those_who_share_go_where_work_gets_on),
        T(who_can_leaves_a_queue_where_work_stands),
        T(a_pool_without_streams_binds_no_ring),
        T(a_home_goes_with_its_partition),
        T(partitions_have_streams_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
