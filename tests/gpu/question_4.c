/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Does a launch on a green context's stream work with the primary context current, and
 * do its blocks stay on the partition?
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/question.h"

enum { SMS_MAX = 1024 };

/* Which multiprocessors a grid on this stream used. */
static unsigned used(cuda_stream stream, cuda_device_ptr histogram, unsigned *counts)
{
    unsigned long long ns = 200000;
    void *parameters[] = {&histogram, &ns};
    CU(cu.cuMemsetD32(histogram, 0, SMS_MAX));
    CU(cu.cuCtxSynchronize());
    CU(cu.cuLaunchKernel(question_function("where"), 4096, 1, 1, 64, 1, 1, 0, stream, parameters,
                         NULL));
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuMemcpyDtoH(counts, histogram, SMS_MAX * sizeof *counts));
    unsigned sms = 0;
    for (unsigned i = 0; i < SMS_MAX; i++)
        sms += counts[i] != 0;
    return sms;
}

int main(int argc, char **argv)
{
    question_open(argc, argv);
    question_context();
    if (!cuda_driver_has_green_contexts(&cu)) {
        printf("question 4: no: this driver has no green contexts\n");
        return 0;
    }
    cuda_dev_resource whole, groups[2], rest;
    cuda_resource_desc desc;
    cuda_green_ctx green[2];
    cuda_stream streams[2], plain;
    cuda_device_ptr histogram;
    unsigned counts[3][SMS_MAX], group_count = 2, sms[3], overlap = 0;
    CU(cu.cuMemAlloc(&histogram, SMS_MAX * sizeof(unsigned)));
    CU(cu.cuDeviceGetDevResource(0, &whole, CUDA_RESOURCE_SM));
    CU(cu.cuDevSmResourceSplitByCount(groups, &group_count, &whole, &rest, 0, 16));
    if (group_count != 2)
        question_die("the device could not be split in two groups of 16");
    for (int i = 0; i < 2; i++) {
        CU(cu.cuDevResourceGenerateDesc(&desc, &groups[i], 1));
        CU(cu.cuGreenCtxCreate(&green[i], desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
        CU(cu.cuGreenCtxStreamCreate(&streams[i], green[i], CUDA_STREAM_NON_BLOCKING, 0));
        sms[i] = used(streams[i], histogram, counts[i]);
    }
    CU(cu.cuStreamCreate(&plain, CUDA_STREAM_NON_BLOCKING));
    sms[2] = used(plain, histogram, counts[2]);
    for (unsigned i = 0; i < SMS_MAX; i++)
        overlap += counts[0][i] && counts[1][i];
    int stays = sms[0] <= groups[0].sm.sm_count && sms[1] <= groups[1].sm.sm_count && !overlap;
    printf("question 4: %s: two partitions of %u and %u multiprocessors used %u and %u, %u of them "
           "in both; a plain "
           "stream used %u of %u\n",
           stays ? "yes" : "no", groups[0].sm.sm_count, groups[1].sm.sm_count, sms[0], sms[1],
           overlap, sms[2], whole.sm.sm_count);
    return 0;
}
