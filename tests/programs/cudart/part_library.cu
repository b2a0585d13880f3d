// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// One of two separately compiled parts; part_caller.cu is the other one.

extern "C" __device__ int is_even(unsigned n);

__device__ int base = 7;
__device__ int *place_of_base = &base;
__constant__ int factors[2] = {3, 5};
__managed__ int calls = 5;

static __device__ int own = 2;

extern "C" __device__ __noinline__ int is_odd(unsigned n)
{
    return n != 0 && is_even(n - 1);
}

extern "C" __device__ int step(int i)
{
    return 100 * i + own;
}

extern "C" __global__ void set_base(int value)
{
    base = value;
}
