/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The ledger of clients' use that the next worker reads: its last row is used, and a client beyond
 * that has its counts alone. Time that is measured late is noted, and the supervisor can read it.
 */
#include "common/ipc/usage_counts.h"
#include "server/worker/run/usage_ledger.h"
#include "tests/unit/worker/harness.h"

enum { LAUNCHES = 3 };

static struct usage_ledger first, next;

static void open_ledger(struct usage_ledger *ledger, const struct shm *shm)
{
    usage_ledger_init(ledger);
    int fd = fcntl(shm->fd, F_DUPFD_CLOEXEC, 0);
    assert_in_range(fd, 0, INT32_MAX);
    assert_int_equal(usage_ledger_open(ledger, &harness.worker, fd), 0);
}

static struct client *worked(struct peer *peer)
{
    peer_load_text(peer, 1, harness_ptx, 0);
    struct proto_command_launch launch = peer_launch(peer_function(peer, 1, "kernel"));
    uint64_t value = 0;
    for (int i = 0; i < LAUNCHES; i++)
        value = peer_push(peer, 0, &launch);
    assert_int_equal(peer_wait(peer, 0, value), 0);
    return worker_find_client(&harness.worker, peer->number);
}

/* As another worker sees the client: it has used nothing so far. Returns what it has then. */
static uint64_t launches_given(struct client *client)
{
    client_lock(client);
    client->usage.launches = 0;
    pthread_mutex_unlock(&client->lock);
    usage_ledger_give(&next, &harness.worker, client);
    return client->usage.launches;
}

static void a_client_beyond_the_last_row_keeps_what_it_is_billed_for(void **state)
{
    (void)state;
    struct shm shm;
    assert_int_equal(shm_create(&shm, "ledger", PROTO_LEDGER_BYTES), 0);
    struct peer *last = peer_attach(1), *beyond = peer_attach(2);
    struct client *clients[2] = {worked(last), worked(beyond)};
    open_ledger(&first, &shm);
    /* All rows but one are those of others. */
    for (uint32_t i = 0; i < LEDGER_ROWS - 1; i++)
        first.clients[i] = 1000 + i;
    for (int i = 0; i < 2; i++)
        usage_ledger_note(&first, &harness.worker, clients[i]);
    assert_int_equal(first.clients[LEDGER_ROWS - 1], 1);
    open_ledger(&next, &shm);
    assert_int_equal(launches_given(clients[0]), LAUNCHES);
    assert_int_equal(clients[1]->ledger_at, LEDGER_ROWS);
    assert_int_equal(launches_given(clients[1]), LAUNCHES);
    usage_ledger_close(&first);
    usage_ledger_close(&next);
    shm_release(&shm);
    peer_detach(last);
    peer_detach(beyond);
}

/* A worker that dies behind the counts has not written the row. */
static void no_count_falls_behind_what_the_supervisor_has_read(void **state)
{
    (void)state;
    struct shm shm;
    assert_int_equal(shm_create(&shm, "ledger", PROTO_LEDGER_BYTES), 0);
    struct peer *peer = peer_attach(1);
    struct client *client = worked(peer);
    open_ledger(&first, &shm);
    usage_ledger_note(&first, &harness.worker, client);
    const struct usage_counts billed = {
        .client = 1, .launches = LAUNCHES + 2, .gpu_ns = 1ull << 40};
    usage_counts_write(shm.base, &billed);
    open_ledger(&next, &shm);
    assert_int_equal(launches_given(client), LAUNCHES + 2);
    assert_int_equal(atomic_load(&client->usage.gpu_nanoseconds), 1ull << 40);
    usage_ledger_close(&first);
    usage_ledger_close(&next);
    shm_release(&shm);
    peer_detach(peer);
}

static uint64_t measured(struct client *client)
{
    return atomic_load(&client->usage.gpu_nanoseconds);
}

/* The completer has counted all that the client had, and looks at it no more. */
static void await_rest(struct client *client)
{
    const uint64_t end = clock_now() + 10 * UNITS_SECOND;
    while (meter_owes(&harness.worker.meter, client) || atomic_load(&client->signals.completer)) {
        assert_true(clock_now() < end);
        sched_yield();
    }
}

/* The work ends between the look at the device's times and the note. */
static void use_that_is_measured_behind_the_note_is_in_the_next_one(void **state)
{
    (void)state;
    struct shm shm;
    struct usage_counts counts;
    assert_int_equal(shm_create(&shm, "ledger", PROTO_LEDGER_BYTES), 0);
    struct peer *peer = peer_attach(1);
    open_ledger(&first, &shm);
    pthread_mutex_lock(&harness.worker.meter.collecting);
    struct client *client = worked(peer);
    usage_ledger_note(&first, &harness.worker, client);
    assert_true(usage_counts_read(shm.base, 1, &counts));
    assert_int_equal(counts.launches, LAUNCHES);
    assert_int_equal(counts.gpu_ns, 0);
    pthread_mutex_unlock(&harness.worker.meter.collecting);
    await_rest(client);
    pthread_mutex_lock(&harness.worker.clients_lock);
    usage_ledger_tick(&first, &harness.worker);
    pthread_mutex_unlock(&harness.worker.clients_lock);
    assert_true(usage_counts_read(shm.base, 1, &counts));
    assert_true(measured(client) > 0);
    assert_int_equal(counts.gpu_ns, measured(client));
    usage_ledger_close(&first);
    shm_release(&shm);
    peer_detach(peer);
}

/* A worker that died while it began the memory left a part of what says that it is begun. The
 * supervisor could read no worker's counts from then on. */
static void counts_are_read_behind_a_worker_that_died_while_it_began_the_memory(void **state)
{
    (void)state;
    struct shm shm;
    struct usage_counts counts;
    assert_int_equal(shm_create(&shm, "ledger", PROTO_LEDGER_BYTES), 0);
    struct usage_counts_table *table = shm.base;
    struct peer *peer = peer_attach(1);
    struct client *client = worked(peer);
    open_ledger(&first, &shm);
    usage_ledger_close(&first);
    table->form = 0;
    open_ledger(&next, &shm);
    usage_ledger_note(&next, &harness.worker, client);
    assert_true(usage_counts_read(table, 1, &counts));
    assert_int_equal(counts.launches, LAUNCHES);
    usage_ledger_close(&next);
    shm_release(&shm);
    peer_detach(peer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_beyond_the_last_row_keeps_what_it_is_billed_for,
                                        harness_setup, harness_stop),
        cmocka_unit_test_setup_teardown(no_count_falls_behind_what_the_supervisor_has_read,
                                        harness_setup, harness_stop),
        cmocka_unit_test_setup_teardown(use_that_is_measured_behind_the_note_is_in_the_next_one,
                                        harness_setup, harness_stop),
        cmocka_unit_test_setup_teardown(
            counts_are_read_behind_a_worker_that_died_while_it_began_the_memory, harness_setup,
            harness_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
