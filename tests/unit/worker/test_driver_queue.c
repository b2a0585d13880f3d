/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Whether a hardware queue has nothing in it, of whatever ring. */
#include "tests/unit/worker/fake.h"

#include <stdint.h>
#include <string.h>

#include "server/worker/client/client.h"
#include "server/worker/sharing/driver_queue.h"
#include "server/worker/sharing/pool_stream.h"

static struct driver_queue queue;
static struct pool_stream streams[2];
static struct client_stream rings[3];
static uint64_t shadows[3];

static int setup(void **state)
{
    (void)state;
    memset(&queue, 0, sizeof queue);
    memset(streams, 0, sizeof streams);
    for (int i = 0; i < 3; i++) {
        rings[i] = (struct client_stream){.shadow = &shadows[i], .written = 7};
        shadows[i] = 7;
    }
    driver_queue_join(&queue, &streams[0]);
    driver_queue_join(&queue, &streams[1]);
    /* Two rings on one of its CUstreams, none on the other. */
    streams[0].users = &rings[0];
    rings[0].next_user = &rings[1];
    return 0;
}

static void any_ring_counts(void **state)
{
    (void)state;
    assert_true(driver_queue_is_idle(&queue));
    for (int i = 0; i < 2; i++) {
        rings[i].written = 8;
        assert_false(driver_queue_is_idle(&queue));
        shadows[i] = 8;
        assert_true(driver_queue_is_idle(&queue));
    }
}

static void what_a_ring_left_counts(void **state)
{
    (void)state;
    struct pool_leaver leaver = {.stream = &rings[2], .value = 9};
    streams[1].leavers = &leaver;
    assert_false(driver_queue_is_idle(&queue));
    shadows[2] = 8;
    assert_false(driver_queue_is_idle(&queue));
    shadows[2] = 9;
    assert_true(driver_queue_is_idle(&queue));
}

/* The submitter looks at so many for each batch at most. */
static void a_queue_of_many_rings_is_not_looked_through(void **state)
{
    (void)state;
    static struct client_stream many[17];
    static uint64_t shadow;
    for (int i = 0; i < 17; i++)
        many[i] = (struct client_stream){.shadow = &shadow, .next_user = i ? &many[i - 1] : NULL};
    streams[0].users = &many[15];
    assert_true(driver_queue_is_idle(&queue));
    streams[0].users = &many[16];
    assert_false(driver_queue_is_idle(&queue));
}

static void the_workers_own_queue_is_never_idle(void **state)
{
    (void)state;
    driver_queue_reserve(&queue);
    assert_false(driver_queue_is_idle(&queue));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_ring_counts, setup),
        cmocka_unit_test_setup(what_a_ring_left_counts, setup),
        cmocka_unit_test_setup(a_queue_of_many_rings_is_not_looked_through, setup),
        cmocka_unit_test_setup(the_workers_own_queue_is_never_idle, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
