/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * corpus: what every .cu of the corpus includes.
 *
 * nvcc sees CUDA and nothing else; the host compiler sees host_cuda.h, which gives
 * the same source its meaning on the CPU, and the descriptions of the kernels:
 *
 *   KERNEL scale(float *out, const float *in, float by) { ... }
 *   CORPUS(scale, grid(4), block(64), out<float>(256), in<float>(256, bits(1)), value(2.0f));
 *
 * Parameters stand in order; describe.h has the vocabulary. A kernel must write the
 * same bytes in whatever order threads run, and stay clear of what CUDA or C++ leaves
 * undefined.
 */
#ifndef GPUSHARE_TESTS_CORPUS_CORPUS_H
#define GPUSHARE_TESTS_CORPUS_CORPUS_H

#include <stdint.h>

typedef uint8_t u8;
typedef int8_t s8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef int32_t s32;
typedef unsigned long long u64;
typedef long long s64;

#ifdef __CUDACC__
#define CORPUS(...)
#define CORPUS_AS(...)
#define DYNAMIC_SHARED(type, name) extern __shared__ __align__(16) type name[]
/* The lanes that are here by construction: a fiber cannot see its neighbours. */
#define ACTIVE_LANES(known) __activemask()
#else
#include "host_cuda.h"
#include "describe.h"
#define DYNAMIC_SHARED(type, name) type *name = (type *)corpus_dynamic_shared()
#define ACTIVE_LANES(known)        ((u32)(known))
#endif

#define KERNEL extern "C" __global__ void

static __device__ __forceinline__ int global_thread()
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

#endif
