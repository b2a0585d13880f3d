// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// One of two separately compiled parts; part_library.cu is the other one. part_caller.ptx and
// part_library.ptx were made of them: nvcc -rdc=true -ptx -arch=compute_75, and .version 7.0.
#include <cstdio>

enum { WORDS = 32 };

extern __device__ int base;
extern __constant__ int factors[2];
extern __managed__ int calls;
extern "C" __device__ int step(int i);
extern "C" __device__ int is_odd(unsigned n);
extern "C" __global__ void set_base(int value);
extern __device__ int *place_of_base;

static __device__ int own = 1;

// The two call each other.
extern "C" __device__ __noinline__ int is_even(unsigned n)
{
    return n == 0 || is_odd(n - 1);
}

extern "C" __global__ void fill(int *words)
{
    int i = threadIdx.x;
    words[i] = factors[0] * base + step(i) + is_even(i) + own + *place_of_base;
    atomicAdd(&calls, 1);
}

static int expected(int base, int i)
{
    return 3 * base + 100 * i + 2 + (i % 2 == 0) + 1 + base;
}

int main()
{
    int *words, found[WORDS], other = 11, bad = calls != 5;
    cudaMalloc(&words, sizeof found);
    for (int base : {7, 11}) {
        if (base == 11)
            set_base<<<1, 1>>>(other);
        fill<<<1, WORDS>>>(words);
        bad |= cudaMemcpy(found, words, sizeof found, cudaMemcpyDeviceToHost) != cudaSuccess;
        for (int i = 0; i < WORDS; i++)
            bad |= found[i] != expected(base, i);
    }
    bad |= cudaMemcpyFromSymbol(&other, base, sizeof other) != cudaSuccess || other != 11;
    bad |= calls != 5 + 2 * WORDS;
    printf(bad ? "wrong\n" : "right\n");
    return bad;
}
