/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Partitions: sizes, overlaps and the remainder, how many and at what cost, whether blocks stay in
 * them; and which streams an endless kernel blocks when there are many of them.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

enum { GROUPS_MAX = 256, CONTEXTS_MAX = 96, SMS_MAX = 1024 };

static cuda_dev_resource groups[GROUPS_MAX], whole, rest;

/* Splits the device into groups of at least `count` multiprocessors; how many, 0: refused. */
static unsigned split(unsigned flags, unsigned count)
{
    unsigned made = GROUPS_MAX;
    memset(&rest, 0, sizeof rest);
    memset(groups, 0, sizeof groups);
    CU(cu.cuDeviceGetDevResource(0, &whole, CUDA_RESOURCE_SM));
    probe_call("cuDevSmResourceSplitByCount");
    cuda_result result = cu.cuDevSmResourceSplitByCount(groups, &made, &whole, &rest, flags, count);
    if (result != CUDA_OK) {
        printf("split by %u, flags %u: %s\n", count, flags, probe_error(result));
        return 0;
    }
    return made;
}

static void need_green(void)
{
    if (!cuda_driver_has_green_contexts(&cu))
        probe_die("this driver has no green contexts");
}

/* A green context of these resources; its multiprocessors, 0: refused. */
static unsigned make(cuda_dev_resource *resources, unsigned count, cuda_green_ctx *green)
{
    cuda_resource_desc desc;
    static cuda_dev_resource got;
    probe_call("cuDevResourceGenerateDesc");
    cuda_result result = cu.cuDevResourceGenerateDesc(&desc, resources, count);
    if (result == CUDA_OK) {
        probe_call("cuGreenCtxCreate");
        result = cu.cuGreenCtxCreate(green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM);
    }
    if (result != CUDA_OK) {
        printf("a green context of %u resources: %s\n", count, probe_error(result));
        return 0;
    }
    CU(cu.cuGreenCtxGetDevResource(*green, &got, CUDA_RESOURCE_SM));
    return got.sm.sm_count;
}

static void judge_union_and_overlap(unsigned made)
{
    cuda_green_ctx first = NULL, second = NULL;
    cuda_dev_resource pair[2] = {groups[0], groups[made > 1 ? 1 : 0]};
    unsigned want = groups[0].sm.sm_count + groups[1].sm.sm_count;
    unsigned joined = made > 1 ? make(pair, 2, &first) : 0;
    unsigned overlapping = joined ? make(&groups[1], 1, &second) : 0;
    probe_judge(joined == want && made > 1, "groups-can-be-joined",
                "two groups of %u and %u joined have %u", groups[0].sm.sm_count,
                groups[1].sm.sm_count, joined);
    probe_judge(overlapping != 0, "partitions-may-overlap",
                "a second partition with one of the same groups %s",
                overlapping ? "was made" : "was refused");
    if (overlapping)
        CU(cu.cuGreenCtxDestroy(second));
    if (joined)
        CU(cu.cuGreenCtxDestroy(first));
}

static void judge_remainder(void)
{
    cuda_green_ctx green;
    unsigned size = rest.type == CUDA_RESOURCE_SM ? rest.sm.sm_count : 0;
    if (!size) {
        probe_held("remainder-is-usable", "there is none");
        return;
    }
    unsigned alone = make(&rest, 1, &green);
    if (alone)
        CU(cu.cuGreenCtxDestroy(green));
    cuda_dev_resource pair[2] = {groups[0], rest};
    unsigned joined = make(pair, 2, &green);
    if (joined)
        CU(cu.cuGreenCtxDestroy(green));
    probe_judge(alone == size && joined == size + groups[0].sm.sm_count, "remainder-is-usable",
                "a remainder of %u: alone %u, joined with a group of %u: %u", size, alone,
                groups[0].sm.sm_count, joined);
}

static void judge_whole(void)
{
    cuda_green_ctx green;
    unsigned got = make(&whole, 1, &green);
    if (got)
        CU(cu.cuGreenCtxDestroy(green));
    probe_judge(got == whole.sm.sm_count, "whole-device-partition",
                "the device's own resource, not split, makes a partition of %u of %u", got,
                whole.sm.sm_count);
}

static void judge_number(unsigned made)
{
    static cuda_green_ctx contexts[CONTEXTS_MAX];
    static double create_us[CONTEXTS_MAX];
    size_t before, after, total;
    unsigned count = 0;
    CU(cu.cuMemGetInfo(&before, &total));
    while (count < CONTEXTS_MAX) {
        uint64_t began = probe_ns();
        if (!make(&groups[count % made], 1, &contexts[count]))
            break;
        create_us[count++] = (double)(probe_ns() - began) / 1e3;
    }
    CU(cu.cuMemGetInfo(&after, &total));
    double mib = count ? ((double)before - (double)after) / count / (1 << 20) : 0;
    uint64_t began = probe_ns();
    for (unsigned i = 0; i < count; i++)
        CU(cu.cuGreenCtxDestroy(contexts[i]));
    double destroy_us = count ? (double)(probe_ns() - began) / 1e3 / count : 0;
    double p50 = probe_quantile(create_us, count, 0.5), worst = probe_quantile(create_us, count, 1);
    probe_measure("contexts", count, "-");
    probe_measure("create_p50_us", p50, "us");
    probe_measure("create_max_us", worst, "us");
    probe_measure("destroy_us", destroy_us, "us");
    probe_measure("mib_each", mib, "MiB");
    probe_judge(count >= 48, "enough-partitions",
                "%u%s at once, %.0f us to create (at most %.0f), %.0f us to destroy, %.2f MiB each",
                count, count == CONTEXTS_MAX ? " or more" : "", p50, worst, destroy_us, mib);
}

void step_partition_sizes(const char *argument)
{
    (void)argument;
    probe_open();
    probe_context();
    need_green();
    unsigned fine = split(CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING, 1);
    unsigned fine_size = fine ? groups[0].sm.sm_count : 0;
    unsigned made = split(0, 1);
    if (!made)
        probe_die("the device could not be split at all");
    probe_measure("multiprocessors", whole.sm.sm_count, "-");
    probe_measure("groups", made, "-");
    probe_measure("group_multiprocessors", groups[0].sm.sm_count, "-");
    probe_measure("remainder_multiprocessors", rest.type == CUDA_RESOURCE_SM ? rest.sm.sm_count : 0,
                  "-");
    probe_measure("groups_without_coscheduling", fine, "-");
    probe_measure("group_multiprocessors_without_coscheduling", fine_size, "-");
    probe_judge(groups[0].sm.sm_count * 12 <= whole.sm.sm_count, "groups-are-small",
                "%u multiprocessors split into %u groups of %u and a remainder of %u; without "
                "co-scheduling %u of %u",
                whole.sm.sm_count, made, groups[0].sm.sm_count,
                rest.type == CUDA_RESOURCE_SM ? rest.sm.sm_count : 0, fine, fine_size);
    judge_union_and_overlap(made);
    judge_remainder();
    judge_whole();
    judge_number(made);
}

/* ---- do blocks stay in their partition? ------------------------------------------------ */

/* On which multiprocessors a grid on this stream ran. */
static unsigned count_used(cuda_stream stream, cuda_device_ptr histogram, unsigned *counts)
{
    unsigned long long ns = 200000;
    void *parameters[] = {&histogram, &ns};
    CU(cu.cuMemsetD32(histogram, 0, SMS_MAX));
    CU(cu.cuCtxSynchronize());
    probe_launch("where", 4096, 64, stream, parameters);
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuMemcpyDtoH(counts, histogram, SMS_MAX * sizeof *counts));
    unsigned used = 0;
    for (unsigned i = 0; i < SMS_MAX; i++)
        used += counts[i] != 0;
    return used;
}

void step_partition_blocks(const char *argument)
{
    (void)argument;
    static unsigned counts[3][SMS_MAX];
    struct probe_partition partitions[2];
    cuda_stream plain;
    cuda_device_ptr histogram;
    unsigned used[3], both = 0;
    probe_open();
    probe_context();
    need_green();
    CU(cu.cuMemAlloc(&histogram, SMS_MAX * sizeof(unsigned)));
    probe_partitions(partitions, 2, 16);
    for (int i = 0; i < 2; i++)
        used[i] = count_used(partitions[i].stream, histogram, counts[i]);
    CU(cu.cuStreamCreate(&plain, CUDA_STREAM_NON_BLOCKING));
    used[2] = count_used(plain, histogram, counts[2]);
    for (unsigned i = 0; i < SMS_MAX; i++)
        both += counts[0][i] && counts[1][i];
    probe_judge(used[0] <= partitions[0].sms && used[1] <= partitions[1].sms && !both,
                "blocks-stay-in-partitions",
                "launched with the primary context current, partitions of %u and %u "
                "multiprocessors used %u and %u, %u of them in both; a plain stream used %u",
                partitions[0].sms, partitions[1].sms, used[0], used[1], both, used[2]);
}

/* ---- many streams beside an endless kernel ------------------------------------------------ */
enum { STREAMS = 32 };
static const uint64_t queue_patience_ns = UINT64_C(2) * 1000000000;

/* contexts: how many there are to be, for each says how many streams it will have. */
static bool make_balanced(unsigned group, unsigned contexts, cuda_green_ctx *green)
{
    static cuda_dev_resource resources[2], got;
    struct extra_workqueue queue = {.concurrency = (STREAMS + contexts - 1) / contexts,
                                    .scope = EXTRA_WORKQUEUE_BALANCED};
    memset(resources, 0, sizeof resources);
    resources[0] = groups[group];
    probe_call("cuDeviceGetDevResource(work queues)");
    cuda_result result =
        cu.cuDeviceGetDevResource(0, &got, (cuda_resource_type)EXTRA_RESOURCE_WORKQUEUE_CONFIG);
    if (result != CUDA_OK)
        probe_die("this driver has no work queue resources (CUDA 13.1 has): %s",
                  probe_error(result));
    resources[1] = got;
    memcpy(&queue.device, got.oversize, sizeof queue.device);
    memcpy(resources[1].oversize, &queue, sizeof queue);
    return make(resources, 2, green) != 0;
}

static void tell_blocked(const char *assumption, const bool *done, const unsigned *context,
                         unsigned contexts)
{
    char list[300] = "";
    unsigned blocked = 0, same_context = 0;
    size_t used = 0;
    for (unsigned i = 1; i < STREAMS; i++) {
        if (done[i])
            continue;
        blocked++;
        same_context += context[i] == context[0];
        if (used + 24 < sizeof list)
            used +=
                (size_t)snprintf(list + used, sizeof list - used, " %u(context %u)", i, context[i]);
    }
    probe_measure("blocked_streams", blocked, "-");
    probe_judge(blocked == 0, assumption,
                "%u streams over %u green contexts beside one endless kernel: %u blocked, %u of "
                "them in its own context%s%s",
                STREAMS, contexts, blocked, same_context, blocked ? ":" : "", list);
}

/* argument: "17", "70", "17-balanced", "70-balanced" green contexts. */
void step_queues(const char *argument)
{
    static cuda_green_ctx contexts[CONTEXTS_MAX];
    cuda_stream streams[STREAMS];
    cuda_event done[STREAMS];
    bool seen[STREAMS] = {false};
    unsigned context[STREAMS], made = 0, want = (unsigned)strtoul(argument, NULL, 10);
    bool balanced = strstr(argument, "balanced") != NULL;
    char assumption[64];
    snprintf(assumption, sizeof assumption, "streams-independent-%s", argument);
    probe_open();
    probe_context();
    need_green();
    unsigned count = split(0, 1);
    if (!count)
        probe_die("the device could not be split at all");
    while (made < want && (balanced ? make_balanced(made % count, want, &contexts[made])
                                    : make(&groups[made % count], 1, &contexts[made]) != 0))
        made++;
    if (made < want)
        printf("only %u of %u green contexts could be made\n", made, want);
    if (made < 2)
        probe_die("fewer than two green contexts could be made");
    for (unsigned i = 0; i < STREAMS; i++) {
        context[i] = i % made;
        CU(cu.cuGreenCtxStreamCreate(&streams[i], contexts[context[i]], CUDA_STREAM_NON_BLOCKING,
                                     0));
        CU(cu.cuEventCreate(&done[i], CUDA_EVENT_DISABLE_TIMING));
    }
    cuda_device_ptr stop_word;
    _Atomic unsigned *stop = probe_host(4096, &stop_word);
    void *parameters[] = {&stop_word};
    /* A first launch may load code, or wait until the device is idle: that is another step's
     * question. So each kernel and each stream has had one. */
    atomic_store(stop, 1);
    for (unsigned i = 0; i < STREAMS; i++) {
        probe_launch("nothing", 1, 1, streams[i], NULL);
        probe_launch("until", 1, 1, streams[i], parameters);
    }
    CU(cu.cuCtxSynchronize());
    atomic_store(stop, 0);

    probe_launch("until", 1, 1, streams[0], parameters);
    cu.cuStreamQuery(streams[0]);
    probe_sleep_ms(20);
    uint64_t launching = probe_ns();
    for (unsigned i = 1; i < STREAMS; i++) {
        probe_launch("nothing", 1, 1, streams[i], NULL);
        CU(cu.cuEventRecord(done[i], streams[i]));
    }
    uint64_t began = probe_ns();
    probe_measure("launching_ms", (double)(began - launching) / 1e6, "ms");
    for (unsigned left = STREAMS - 1; left && probe_ns() - began < queue_patience_ns;) {
        left = 0;
        for (unsigned i = 1; i < STREAMS; i++) {
            seen[i] = seen[i] || cu.cuEventQuery(done[i]) == CUDA_OK;
            left += !seen[i];
        }
    }
    if (cu.cuStreamQuery(streams[0]) != CUDA_ERR_NOT_READY)
        probe_die("the endless kernel has ended by itself");
    atomic_store(stop, 1);
    CU(cu.cuCtxSynchronize());
    probe_measure("contexts", made, "-");
    tell_blocked(assumption, seen, context, made);
}
