/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Atoms: the smallest partition and its alignment, with and without
 * IGNORE_SM_COSCHEDULING; the remainder; unions and overlaps; how many green contexts
 * there can be, what one costs in time and in memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/question.h"

enum { GROUPS_MAX = 256, CONTEXTS_MAX = 64 };

static unsigned split(const cuda_dev_resource *whole, unsigned flags, unsigned count,
                      cuda_dev_resource *groups, cuda_dev_resource *rest)
{
    unsigned n = GROUPS_MAX;
    *rest = (cuda_dev_resource){0};
    if (cu.cuDevSmResourceSplitByCount(groups, &n, whole, rest, flags, count) != CUDA_OK)
        return 0;
    return n;
}

int main(int argc, char **argv)
{
    static cuda_dev_resource groups[GROUPS_MAX];
    static cuda_green_ctx contexts[CONTEXTS_MAX];
    question_open(argc, argv);
    question_context();
    if (!cuda_driver_has_green_contexts(&cu)) {
        printf("question 5: no: this driver has no green contexts\n");
        return 0;
    }
    cuda_dev_resource whole, rest, got, pair[2];
    cuda_resource_desc desc;
    CU(cu.cuDeviceGetDevResource(0, &whole, CUDA_RESOURCE_SM));
    unsigned fine = split(&whole, CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING, 1, groups, &rest);
    unsigned fine_sms = fine ? groups[0].sm.sm_count : 0;
    unsigned atoms = split(&whole, 0, 1, groups, &rest);
    unsigned atom = atoms ? groups[0].sm.sm_count : 0,
             remainder = rest.type == CUDA_RESOURCE_SM ? rest.sm.sm_count : 0;
    if (!atoms)
        question_die("the device could not be split at all");

    /* A union of two atoms, and one more that shares an atom with it. */
    pair[0] = groups[0];
    pair[1] = groups[atoms > 1 ? 1 : 0];
    unsigned joined = 0, overlapping = 0;
    cuda_green_ctx first, second;
    if (atoms > 1 && cu.cuDevResourceGenerateDesc(&desc, pair, 2) == CUDA_OK &&
        cu.cuGreenCtxCreate(&first, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK) {
        CU(cu.cuGreenCtxGetDevResource(first, &got, CUDA_RESOURCE_SM));
        joined = got.sm.sm_count;
        overlapping =
            cu.cuDevResourceGenerateDesc(&desc, &groups[1], 1) == CUDA_OK &&
            cu.cuGreenCtxCreate(&second, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK;
        if (overlapping)
            CU(cu.cuGreenCtxDestroy(second));
        CU(cu.cuGreenCtxDestroy(first));
    }

    /* The remainder as an atom of its own, and together with a group. */
    const char *with_rest = "none";
    if (remainder) {
        pair[0] = groups[0];
        pair[1] = rest;
        int alone = cu.cuDevResourceGenerateDesc(&desc, &rest, 1) == CUDA_OK;
        int both = cu.cuDevResourceGenerateDesc(&desc, pair, 2) == CUDA_OK;
        with_rest = alone  ? both ? "usable alone and joined" : "usable alone"
                    : both ? "usable joined"
                           : "not usable";
    }

    size_t free_before, free_after, total;
    unsigned made = 0;
    CU(cu.cuMemGetInfo(&free_before, &total));
    double start = question_seconds();
    while (made < CONTEXTS_MAX &&
           cu.cuDevResourceGenerateDesc(&desc, &groups[made % atoms], 1) == CUDA_OK &&
           cu.cuGreenCtxCreate(&contexts[made], desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK)
        made++;
    double create = question_seconds() - start;
    CU(cu.cuMemGetInfo(&free_after, &total));
    start = question_seconds();
    for (unsigned i = 0; i < made; i++)
        CU(cu.cuGreenCtxDestroy(contexts[i]));
    double destroy = question_seconds() - start;
    printf("question 5: measured: %u multiprocessors, minimum %u, alignment %u: %u atoms of %u and "
           "a remainder of %u (%s); "
           "without co-scheduling %u atoms of %u; two atoms joined have %u, overlapping sets %s; "
           "%u%s green contexts, %.0f us "
           "to create, %.0f us to destroy, %.1f MiB each\n",
           whole.sm.sm_count, whole.sm.min_partition_size, whole.sm.coscheduled_alignment, atoms,
           atom, remainder, with_rest, fine, fine_sms, joined, overlapping ? "possible" : "refused",
           made, made == CONTEXTS_MAX ? " or more" : "", create / made * 1e6, destroy / made * 1e6,
           (double)(free_before - free_after) / made / (1 << 20));
    return 0;
}
