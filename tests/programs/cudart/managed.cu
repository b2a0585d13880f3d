// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Managed variables of a program as nvcc builds it. The host reads one before any kernel is
// launched.
#include <cstdio>

__managed__ int counter = 3;
__device__ __managed__ float table[4] = {1, 2};

__global__ void work(int times)
{
    atomicAdd(&counter, times);
    table[threadIdx.x] += table[0] * threadIdx.x;
}

int main()
{
    int copy = 0, bad = counter != 3 || table[1] != 2;
    cudaPointerAttributes attributes;
    counter = 10;
    table[0] = 4;
    work<<<1, 4>>>(5);
    bad |= cudaDeviceSynchronize() != cudaSuccess;
    bad |= counter != 30 || table[0] != 4 || table[1] != 6 || table[3] != 12;
    bad |= cudaMemcpyFromSymbol(&copy, counter, sizeof copy) != cudaSuccess || copy != 30;
    bad |= cudaPointerGetAttributes(&attributes, &counter) != cudaSuccess;
    bad |= attributes.type != cudaMemoryTypeManaged;
    printf(bad ? "wrong\n" : "right\n");
    return bad;
}
