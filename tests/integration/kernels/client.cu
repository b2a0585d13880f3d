/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Kernels of tests/integration/test_client_*.c; client.ptx beside this is what they load. */
#include <stdint.h>

extern "C" {

__device__ uint32_t counter = 5;
__constant__ uint32_t factors[4] = {1, 10, 100, 1000};

__global__ void add(uint32_t *to, uint32_t count, uint32_t number)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] += number;
}

static __device__ uint64_t now(void)
{
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

/* Takes its time, then stores. */
__global__ void late(uint32_t *to, uint32_t milliseconds, uint32_t number)
{
    uint64_t end = now() + milliseconds * (uint64_t)1000000;
    while (now() < end)
        __nanosleep(100000);
    *to = number;
}

__global__ void bump(void)
{
    atomicAdd(&counter, factors[1]);
}

__global__ void reverse(uint32_t *to, const uint32_t *from)
{
    extern __shared__ uint32_t row[];
    uint32_t n = blockDim.x;
    row[threadIdx.x] = from[threadIdx.x];
    __syncthreads();
    to[threadIdx.x] = row[n - 1 - threadIdx.x];
}

struct long_block {
    uint8_t first;
    uint64_t sum_of_others;
    uint32_t numbers[1000];
};

__global__ void weigh(struct long_block block, uint64_t *result)
{
    uint64_t sum = block.first;
    for (int i = 0; i < 1000; i++)
        sum += (uint64_t)block.numbers[i] * (uint64_t)(i + 1);
    result[0] = sum;
    result[1] = block.sum_of_others;
}

} /* extern "C" */
