/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A client's lock, which the submitter has nearly all of the time: another thread gets it in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/thread.h"
#include "server/worker/client/client.h"

enum { LOOKS = 200, VISITS_MAX = 20 * LOOKS };

#define VISIT_NS UINT64_C(300000)

static struct client client = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Atomic uint32_t visits, stop;

static bool is_over(void)
{
    return atomic_load(&stop) || atomic_load(&visits) >= VISITS_MAX;
}

static void *visit(void *unused)
{
    (void)unused;
    while (!is_over()) {
        if (client_lock_is_overdue(&client)) {
            sched_yield();
            continue;
        }
        pthread_mutex_lock(&client.lock);
        atomic_fetch_add(&visits, 1);
        for (uint64_t end = clock_now() + VISIT_NS; clock_now() < end;)
            ;
        pthread_mutex_unlock(&client.lock);
    }
    return NULL;
}

/* One visit has begun when a thread comes, and another may have been decided on. Each takes longer
 * than the time after which that thread is overdue. */
static void a_thread_waits_for_two_visits_at_most(void **state)
{
    (void)state;
    struct thread submitter = {0};
    uint32_t most = 0, waited = 0;
    assert_int_equal(thread_start(&submitter, "submitter", visit, NULL), 0);
    for (unsigned i = 0; i < LOOKS; i++) {
        uint32_t before, last = atomic_load(&visits);
        while ((before = atomic_load(&visits)) == last && !is_over())
            sched_yield();
        client_lock(&client);
        uint32_t after = atomic_load(&visits);
        pthread_mutex_unlock(&client.lock);
        most = after - before > most ? after - before : most;
        waited += client.signals.waits_since != 0;
    }
    atomic_store(&stop, 1);
    thread_join(&submitter);
    print_message("%u visits at most, %u looks waited\n", most, waited);
    assert_true(waited > 0);
    assert_true(most <= 2);
    assert_int_equal(client.signals.waiting, 0);
    assert_false(client_lock_is_overdue(&client));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_waits_for_two_visits_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
