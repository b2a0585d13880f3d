/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Green contexts: how multiprocessors can be split, and that blocks stay where
 * they belong. The witnesses are %smid, as the kernels see it, and the counters
 * of SOFTGPU_STATS, which know nothing of partitions.
 */
#include "tests/unit/softgpu/kernels.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { SMS = 132, SM_GROUPS = 16 };

static cuda_device_ptr counts;
static const struct stats_file *stats;
static char stats_path[] = "/tmp/gpushare-stats-XXXXXX";

static int setup(void **state)
{
    int fd = mkstemp(stats_path);

    (void)state;
    if (fd < 0)
        return -1;
    setenv("SOFTGPU_STATS", stats_path, 1);
    if (kernels_open() != 0 || cuMemAlloc_v2(&counts, SMS * 4) != CUDA_OK)
        return -1;
    stats = mmap(NULL, sizeof(*stats), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return stats != MAP_FAILED && stats->magic == STATS_MAGIC ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(stats_path);
}

static cuda_dev_resource whole(void)
{
    cuda_dev_resource resource;

    OK(cuDeviceGetDevResource(0, &resource, CUDA_RESOURCE_SM));
    return resource;
}

/* A context of these resources, and a stream in it. */
static cuda_green_ctx make_context(cuda_dev_resource *resources, unsigned count,
                                   cuda_stream *stream)
{
    cuda_resource_desc desc;
    cuda_green_ctx green;

    OK(cuDevResourceGenerateDesc(&desc, resources, count));
    OK(cuGreenCtxCreate(&green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
    OK(cuGreenCtxStreamCreate(stream, green, CUDA_STREAM_NON_BLOCKING, 0));
    return green;
}

/* Runs many blocks and returns how many multiprocessors they saw; marks them in seen. */
static unsigned run_blocks(cuda_stream stream, unsigned blocks, bool seen[SMS])
{
    uint32_t histogram[SMS];
    unsigned used = 0, sum = 0;

    OK(cuMemsetD32_v2(counts, 0, SMS));
    OK(cuCtxSynchronize()); /* the stream does not wait for the default one */
    OK(launch_smid(counts, blocks, 256, 20000, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(histogram, counts, sizeof(histogram)));
    for (unsigned i = 0; i < SMS; i++) {
        seen[i] = histogram[i] > 0;
        used += seen[i];
        sum += histogram[i];
    }
    /* Each thread of a block counts. */
    assert_int_equal(sum, blocks * 256);
    return used;
}

static void a_device_splits_into_sm_groups_and_a_remainder(void **state)
{
    cuda_dev_resource all = whole(), sm_groups[SM_GROUPS + 4], rest;
    unsigned groups = 0;

    (void)state;
    assert_int_equal(all.sm.sm_count, SMS);
    assert_int_equal(all.sm.min_partition_size, 8);
    assert_int_equal(all.sm.coscheduled_alignment, 8);
    OK(cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 1));
    assert_int_equal(groups, SM_GROUPS);
    groups = SM_GROUPS + 4;
    OK(cuDevSmResourceSplitByCount(sm_groups, &groups, &all, &rest, 0, 1));
    assert_int_equal(groups, SM_GROUPS);
    for (unsigned i = 0; i < groups; i++)
        assert_int_equal(sm_groups[i].sm.sm_count, 8);
    assert_int_equal(rest.sm.sm_count, 4);
    groups = 20;
    OK(cuDevSmResourceSplitByCount(sm_groups, &groups, &all, &rest, 0, 17));
    assert_int_equal(groups, 5);
    assert_int_equal(sm_groups[0].sm.sm_count, 24);
    assert_int_equal(rest.sm.sm_count, 12);
    groups = 2;
    OK(cuDevSmResourceSplitByCount(sm_groups, &groups, &all, &rest, 0, 16));
    assert_int_equal(groups, 2);
    assert_int_equal(rest.sm.sm_count, 100);
    groups = 3;
    OK(cuDevSmResourceSplitByCount(sm_groups, &groups, &all, NULL,
                                   CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING, 3));
    assert_int_equal(sm_groups[0].sm.sm_count, 4);
}

static void wrong_resources_are_refused(void **state)
{
    cuda_dev_resource all = whole(), first[2], second[2], forged = all;
    cuda_resource_desc desc;
    cuda_green_ctx green;
    cuda_stream stream;
    unsigned groups = 2;

    (void)state;
    OK(cuDevSmResourceSplitByCount(first, &groups, &all, NULL, 0, 8));
    OK(cuDevSmResourceSplitByCount(second, &groups, &all, NULL, 0, 8));
    assert_int_equal(cuDevSmResourceSplitByCount(second, &groups, &first[0], NULL, 0, 8),
                     CUDA_ERR_INVALID_RESOURCE_CONFIGURATION);
    assert_int_equal(cuDevSmResourceSplitByCount(second, &groups, &all, NULL, 0, 133),
                     CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuDevSmResourceSplitByCount(second, NULL, &all, NULL, 0, 8),
                     CUDA_ERR_INVALID_VALUE);
    first[1] = second[0];
    assert_int_equal(cuDevResourceGenerateDesc(&desc, first, 2),
                     CUDA_ERR_INVALID_RESOURCE_CONFIGURATION);
    first[1] = first[0];
    assert_int_equal(cuDevResourceGenerateDesc(&desc, first, 2),
                     CUDA_ERR_INVALID_RESOURCE_CONFIGURATION);
    forged.internal[40] ^= 1;
    assert_int_equal(cuDevResourceGenerateDesc(&desc, &forged, 1), CUDA_ERR_INVALID_VALUE);
    forged.type = CUDA_RESOURCE_INVALID;
    assert_int_equal(cuDevResourceGenerateDesc(&desc, &forged, 1), CUDA_ERR_INVALID_RESOURCE_TYPE);
    OK(cuDevResourceGenerateDesc(&desc, first, 1));
    assert_int_equal(cuGreenCtxCreate(&green, desc, 0, 0), CUDA_ERR_INVALID_VALUE);
    OK(cuGreenCtxCreate(&green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
    assert_int_equal(cuGreenCtxStreamCreate(&stream, green, CUDA_STREAM_DEFAULT, 0),
                     CUDA_ERR_INVALID_VALUE);
    OK(cuGreenCtxDestroy(green));
}

static void blocks_stay_in_their_partition(void **state)
{
    cuda_dev_resource all = whole(), sm_groups[SM_GROUPS], pair[2];
    bool seen[SM_GROUPS][SMS], joint[SMS];
    cuda_green_ctx green[SM_GROUPS], both;
    cuda_stream streams[SM_GROUPS], stream;
    unsigned groups = SM_GROUPS;

    (void)state;
    OK(cuDevSmResourceSplitByCount(sm_groups, &groups, &all, NULL, 0, 8));
    for (unsigned i = 0; i < SM_GROUPS; i++) {
        green[i] = make_context(&sm_groups[i], 1, &streams[i]);
        assert_int_equal(run_blocks(streams[i], 100, seen[i]), 8);
        for (unsigned j = 0; j < i; j++)
            for (unsigned sm = 0; sm < SMS; sm++)
                assert_false(seen[i][sm] && seen[j][sm]);
    }
    pair[0] = sm_groups[3];
    pair[1] = sm_groups[9];
    both = make_context(pair, 2, &stream);
    assert_int_equal(run_blocks(stream, 300, joint), 16);
    for (unsigned sm = 0; sm < SMS; sm++)
        assert_int_equal(joint[sm], seen[3][sm] || seen[9][sm]);
    OK(cuStreamDestroy_v2(stream));
    OK(cuGreenCtxDestroy(both));
    for (unsigned i = 0; i < SM_GROUPS; i++) {
        OK(cuStreamDestroy_v2(streams[i]));
        OK(cuGreenCtxDestroy(green[i]));
    }
}

/* Room that appears in one partition is no room for the other's waiting blocks. */
static void waiting_blocks_stay_in_their_partition(void **state)
{
    cuda_dev_resource all = whole(), sm_groups[2];
    bool own[2][SMS];
    cuda_green_ctx green[2];
    cuda_stream streams[2];
    cuda_device_ptr tallies[2];
    uint32_t histogram[SMS];
    unsigned groups = 2;

    (void)state;
    OK(cuDevSmResourceSplitByCount(sm_groups, &groups, &all, NULL, 0, 8));
    for (unsigned i = 0; i < 2; i++) {
        green[i] = make_context(&sm_groups[i], 1, &streams[i]);
        assert_int_equal(run_blocks(streams[i], 64, own[i]), 8);
        OK(cuMemAlloc_v2(&tallies[i], sizeof(histogram)));
        OK(cuMemsetD32_v2(tallies[i], 0, SMS));
    }
    OK(cuCtxSynchronize());
    /* 64 blocks fit into eight multiprocessors: most of both grids wait for room. */
    OK(launch_smid(tallies[0], 400, 256, 200000, streams[0]));
    OK(launch_smid(tallies[1], 400, 256, 100000, streams[1]));
    for (unsigned i = 0; i < 2; i++) {
        unsigned inside = 0;

        OK(cuStreamSynchronize(streams[i]));
        OK(cuMemcpyDtoH_v2(histogram, tallies[i], sizeof(histogram)));
        for (unsigned sm = 0; sm < SMS; sm++)
            inside += own[i][sm] ? histogram[sm] : 0;
        assert_int_equal(inside, 400 * 256);
        OK(cuMemFree_v2(tallies[i]));
        OK(cuStreamDestroy_v2(streams[i]));
        OK(cuGreenCtxDestroy(green[i]));
    }
}

static void the_whole_device_is_a_resource_too(void **state)
{
    cuda_dev_resource all = whole(), told;
    cuda_green_ctx green;
    cuda_stream stream;
    bool seen[SMS];

    (void)state;
    green = make_context(&all, 1, &stream);
    assert_int_equal(run_blocks(stream, 400, seen), SMS);
    OK(cuGreenCtxGetDevResource(green, &told, CUDA_RESOURCE_SM));
    assert_int_equal(told.sm.sm_count, SMS);
    OK(cuStreamDestroy_v2(stream));
    OK(cuGreenCtxDestroy(green));
    assert_int_equal(run_blocks(NULL, 400, seen), SMS);
}

static void counters_tell_where_work_was(void **state)
{
    static uint64_t before[SMS];
    cuda_dev_resource all = whole(), part;
    cuda_green_ctx green;
    cuda_stream stream;
    unsigned groups = 1, busy = 0;

    (void)state;
    OK(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 16));
    green = make_context(&part, 1, &stream);
    for (unsigned i = 0; i < SMS; i++)
        before[i] = stats->device[0].sm[i].busy_ns;
    OK(launch_sleep(32, 1024, 1000000, 3, stream));
    OK(cuStreamSynchronize(stream));
    for (unsigned i = 0; i < SMS; i++) {
        uint64_t time = stats->device[0].sm[i].busy_ns - before[i];

        if (time > 0) {
            busy++;
            assert_true(time >= 2900000 && time <= 3300000);
        }
    }
    assert_int_equal(busy, 16);
    OK(cuStreamDestroy_v2(stream));
    OK(cuGreenCtxDestroy(green));
}

static void a_destroyed_context_takes_its_streams_along(void **state)
{
    cuda_dev_resource all = whole();
    cuda_green_ctx green;
    cuda_stream stream;

    (void)state;
    green = make_context(&all, 1, &stream);
    OK(cuGreenCtxDestroy(green));
    assert_int_equal(cuStreamQuery(stream), CUDA_ERR_CONTEXT_IS_DESTROYED);
    assert_int_equal(launch_sleep(1, 32, 1, 1, stream), CUDA_ERR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuGreenCtxDestroy(green), CUDA_ERR_CONTEXT_IS_DESTROYED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_splits_into_sm_groups_and_a_remainder),
        cmocka_unit_test(wrong_resources_are_refused),
        cmocka_unit_test(blocks_stay_in_their_partition),
        cmocka_unit_test(waiting_blocks_stay_in_their_partition),
        cmocka_unit_test(the_whole_device_is_a_resource_too),
        cmocka_unit_test(counters_tell_where_work_was),
        cmocka_unit_test(a_destroyed_context_takes_its_streams_along),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
