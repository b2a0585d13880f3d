// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// One of two files that tests/integration/test_link.py compiles apart and links. It uses what the other one has: functions, a variable,
// constants, a table of functions, a virtual function. Both have a state and a `hidden` of their own, and one `twice`.
typedef int (*operation)(int, int);
extern __device__ int table_value(int i);
extern __device__ int counter;
extern __constant__ int scale[4];
extern __device__ operation operations[2];

template <class T> __device__ __noinline__ T twice(T x)
{
    return x + x;
}

static __device__ __noinline__ int hidden(int x)
{
    return x * 3;
}

static __device__ int state = 5;

struct base {
    __device__ virtual int sign(int x)
    {
        return x;
    }
};

extern __device__ base *make(void *place);

extern "C" __global__ void k(int *words)
{
    extern __shared__ int dynamic[];
    int i = threadIdx.x;
    dynamic[i] = table_value(i) + twice(i) + hidden(i) + state;
    __syncthreads();
    atomicAdd(&counter, 1);
    char place[64];
    words[i] = dynamic[i] + scale[i & 3] + operations[i & 1](i, 2) + make(place)->sign(i);
}
