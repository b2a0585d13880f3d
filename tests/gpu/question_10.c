/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Does cuMemUnmap wait for running kernels? Does cuMemFree? Neither range is used by the
 * kernel that runs meanwhile.
 */
#include <stdio.h>

#include "tests/gpu/question.h"

#define KERNEL_NS 500000000ull

static cuda_stream stream;

static void start_kernel(void)
{
    unsigned long long ns = KERNEL_NS;
    void *parameters[] = {&ns};
    CU(cu.cuLaunchKernel(question_function("last"), 1, 1, 1, 32, 1, 1, 0, stream, parameters,
                         NULL));
    cu.cuStreamQuery(stream);
}

int main(int argc, char **argv)
{
    question_open(argc, argv);
    question_context();
    CU(cu.cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    start_kernel(); /* the first launch loads code */
    CU(cu.cuStreamSynchronize(stream));

    cuda_mem_allocation_prop properties = question_properties();
    size_t bytes = question_granularity();
    cuda_mem_handle handle;
    cuda_device_ptr mapped, plain;
    CU(cu.cuMemCreate(&handle, bytes, &properties, 0));
    CU(cu.cuMemAddressReserve(&mapped, bytes, 0, 0, 0));
    question_map(mapped, bytes, handle);
    CU(cu.cuMemAlloc(&plain, bytes));
    CU(cu.cuCtxSynchronize());

    start_kernel();
    double began = question_seconds();
    CU(cu.cuMemUnmap(mapped, bytes));
    double unmap = question_seconds() - began;
    CU(cu.cuStreamSynchronize(stream));
    start_kernel();
    began = question_seconds();
    CU(cu.cuMemFree(plain));
    double freed = question_seconds() - began;
    CU(cu.cuStreamSynchronize(stream));
    CU(cu.cuMemRelease(handle));
    printf("question 10: measured: beside a kernel of %.0f ms cuMemUnmap took %.3f ms (%s), "
           "cuMemFree %.3f ms (%s)\n",
           KERNEL_NS / 1e6, unmap * 1e3, unmap > KERNEL_NS / 2e9 ? "waits" : "does not wait",
           freed * 1e3, freed > KERNEL_NS / 2e9 ? "waits" : "does not wait");
    return 0;
}
