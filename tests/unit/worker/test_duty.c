/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: of a second of kernels of 100 us, at least 15 % of the time must be used */
/* light: its kernels sleep */
/* Duty cycles, of a whole worker on a software GPU that can't be divided. */
#include "common/clock.h"
#include "tests/unit/worker/timed.h"

#ifdef ARENA_THREAD_SANITIZER
#define SHARE_MIN 0.01 /* the worker itself takes its time */
#else
#define SHARE_MIN 0.15 /* so does whatever else runs on the machine */
#endif

/* A driver without green contexts: shares of multiprocessors are shares of its time. */
static int start_undivided(void **state)
{
    setenv("SOFTGPU_NO_GREEN", "1", 1);
    int result = start(state);
    unsetenv("SOFTGPU_NO_GREEN");
    return result;
}

static void threads_are_duty_where_they_can_not_be_divided(void **state)
{
    (void)state;
    assert_false(harness.worker.partitions.supported);
    arrive_with(0, 2500);
    arrive(1);
    /* Time that may be saved up is used up first. */
    keep_busy(1, 100000, 500 * MS);
    double share = 0;
    uint64_t elapsed = 0;
    /* It may have less where the machine is busy with other things, and never more. */
    for (int round = 0; round < 5 && share <= SHARE_MIN; round++) {
        uint64_t start = clock_now();
        uint64_t done = keep_busy(1, 100000, 1000 * MS);
        elapsed = clock_now() - start;
        share = (double)done * 100000 / (double)elapsed;
        assert_true(share < 0.27);
    }
    const struct proto_worker_usage *used =
        harness_ask(PROTO_WORKER_USAGE_QUERY, 1, NULL, PROTO_WORKER_USAGE);
    double charged = (double)used->charged / (double)used->gpu_nanoseconds;
    uint64_t throttled = used->throttled_duty;
    print_message("25 %% of the time: %.1f %%, %.3f of the device's time charged\n", 100 * share,
                  charged);
    assert_true(share > SHARE_MIN);
    assert_true(charged > 0.99 && charged < 1.01);
    assert_true(throttled > elapsed / 2);
    struct proto_worker_limits limits = {.allowance = granted_whole()};
    harness_ask(PROTO_WORKER_LIMITS, 1, &limits, PROTO_WORKER_ATTACHED);
    finish(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(threads_are_duty_where_they_can_not_be_divided,
                                        start_undivided, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
