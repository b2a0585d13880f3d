/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The worker asks the software GPU for 32 hardware queues, and finds out that there are eight. */
#include "tests/unit/worker/harness.h"

#include "common/error.h"

static int start(void **state)
{
    char path[512];
    struct error why = {0};
    const char *build = getenv("BUILD");
    fake_reset();
    setenv("SOFTGPU_QUEUES", "8", 1);
    snprintf(path, sizeof path, "%s/lib/softgpu/libcuda.so.1", build ? build : "build");
    char *absolute = realpath(path, NULL);
    if (!absolute)
        return -1;
    uint32_t error = cuda_driver_open(&harness.driver, absolute, &why);
    free(absolute);
    return error ? -1 : harness_start_with(state, &harness.driver);
}

static int stop(void **state)
{
    int result = harness_stop(state);
    cuda_driver_close(&harness.driver);
    return result;
}

/* On how many of the queues the first partition's CUstreams are, as the worker counts. */
static uint32_t count_used(void)
{
    const struct driver_queue_set *set = &harness.worker.pool.queues;
    uint32_t used = 0;
    for (uint32_t i = 0; i < DRIVER_QUEUES; i++)
        used += set->queues[i].stream_count > 0;
    return used;
}

static void eight_queues_are_counted(void **state)
{
    (void)state;
    assert_int_equal(harness.worker.pool.queues.count, 8);
    assert_int_equal(count_used(), 8);
}

/* That of the worker's own CUstream, which it made before all others. */
static void one_of_them_is_nobodys_home(void **state)
{
    (void)state;
    const struct driver_queue_set *set = &harness.worker.pool.queues;
    uint32_t reserved = 0;
    for (uint32_t i = 0; i < set->count; i++)
        reserved += set->queues[i].reserved;
    assert_int_equal(reserved, 1);
    assert_true(set->queues[set->count - 1].reserved);
    assert_int_equal(driver_queue_count_free(set), set->count - 1);
    assert_ptr_equal(harness.worker.pool.streams[0]->queue, &set->queues[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(eight_queues_are_counted, start, stop),
        cmocka_unit_test_setup_teardown(one_of_them_is_nobodys_home, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
