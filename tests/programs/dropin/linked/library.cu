// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// The other of two files: user.cu says more.
#include <new>

typedef int (*operation)(int, int);
__device__ int counter = 10;
__constant__ int scale[4] = {1000, 2000, 3000, 4000};
static __device__ int state = 7;

template <class T> __device__ __noinline__ T twice(T x)
{
    return x + x;
}

static __device__ __noinline__ int hidden(int x)
{
    return x * 100;
}

static __device__ int add(int a, int b)
{
    return a + b;
}

static __device__ int multiply(int a, int b)
{
    return a * b;
}

__device__ operation operations[2] = {add, multiply};

__device__ int table_value(int i)
{
    static __device__ int table[4] = {1, 2, 3, 4};
    __shared__ int shared[64];
    shared[i & 63] = table[i & 3];
    return shared[i & 63] + hidden(i) + twice(state);
}

struct base {
    __device__ virtual int sign(int x)
    {
        return x;
    }
};

struct derived : base {
    __device__ int sign(int x) override
    {
        return -x + counter * 0;
    }
};

__device__ base *make(void *place)
{
    return new (place) derived;
}
