/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * host_cuda: CUDA C++ given a meaning on the host, one fiber per CUDA thread.
 *
 * Blocks run one after another, so a __shared__ variable can be a static one. A
 * fiber runs until it must wait (a barrier, a warp-wide operation) or gives way
 * (atomicCAS, __nanosleep, a fence): whoever spins must do one of these.
 */
#ifndef GPUSHARE_TESTS_CORPUS_HOST_CUDA_H
#define GPUSHARE_TESTS_CORPUS_HOST_CUDA_H

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __constant__
#define __forceinline__ inline
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

/* malloc, free, new and delete are the host's own. */
static inline void *__nv_aligned_device_malloc(size_t bytes, size_t alignment)
{
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

/* ---- threads, host_cuda.cc ---- */
void *corpus_dynamic_shared();
void corpus_yield();
[[noreturn]] void corpus_exit(); /* ends this thread */
unsigned corpus_lane();
unsigned corpus_dynamic_shared_bytes();

/* Named barriers: op 0 none, 1 count, 2 and, 3 or. threads 0: the whole block. */
int corpus_barrier(unsigned id, unsigned threads, int op, bool predicate);
void corpus_barrier_arrive(unsigned id, unsigned threads);

enum corpus_warp_op {
    WARP_SYNC,
    WARP_SHFL_IDX,
    WARP_SHFL_UP,
    WARP_SHFL_DOWN,
    WARP_SHFL_XOR,
    WARP_ALL,
    WARP_ANY,
    WARP_UNIFORM,
    WARP_BALLOT,
    WARP_MATCH_ANY,
    WARP_MATCH_ALL,
    WARP_ADD,
    WARP_MIN_S,
    WARP_MAX_S,
    WARP_MIN_U,
    WARP_MAX_U,
    WARP_AND,
    WARP_OR,
    WARP_XOR
};
/* Meets the other lanes of mask. done: a shuffle's or match_all's predicate; may be NULL. */
uint64_t corpus_warp(corpus_warp_op op, unsigned mask, uint64_t value, unsigned arg, unsigned width,
                     bool *done);

static inline void __syncthreads()
{
    corpus_barrier(0, 0, 0, false);
}
static inline int __syncthreads_count(int p)
{
    return corpus_barrier(0, 0, 1, p != 0);
}
static inline int __syncthreads_and(int p)
{
    return corpus_barrier(0, 0, 2, p != 0);
}
static inline int __syncthreads_or(int p)
{
    return corpus_barrier(0, 0, 3, p != 0);
}
static inline void __syncwarp(unsigned mask = ~0u)
{
    corpus_warp(WARP_SYNC, mask, 0, 0, 32, nullptr);
}
static inline void __threadfence()
{
    corpus_yield();
}
static inline void __threadfence_block()
{
    corpus_yield();
}
static inline void __threadfence_system()
{
    corpus_yield();
}
static inline void __nanosleep(unsigned)
{
    corpus_yield();
}
long long clock64();
static inline int clock()
{
    return (int)clock64();
}

template <class To, class From> static inline To corpus_bits(From v)
{
    To r;
    static_assert(sizeof r == sizeof v, "bits move between types of one size");
    memcpy(&r, &v, sizeof r);
    return r;
}
template <class T> static inline uint64_t corpus_pack(T v)
{
    uint64_t r = 0;
    memcpy(&r, &v, sizeof v);
    return r;
}
template <class T> static inline T corpus_unpack(uint64_t v)
{
    T r;
    memcpy(&r, &v, sizeof r);
    return r;
}
template <class T> static inline T __shfl_sync(unsigned m, T v, int lane, int width = 32)
{
    return corpus_unpack<T>(
        corpus_warp(WARP_SHFL_IDX, m, corpus_pack(v), (unsigned)lane, (unsigned)width, nullptr));
}
template <class T> static inline T __shfl_up_sync(unsigned m, T v, unsigned d, int width = 32)
{
    return corpus_unpack<T>(
        corpus_warp(WARP_SHFL_UP, m, corpus_pack(v), d, (unsigned)width, nullptr));
}
template <class T> static inline T __shfl_down_sync(unsigned m, T v, unsigned d, int width = 32)
{
    return corpus_unpack<T>(
        corpus_warp(WARP_SHFL_DOWN, m, corpus_pack(v), d, (unsigned)width, nullptr));
}
template <class T> static inline T __shfl_xor_sync(unsigned m, T v, int d, int width = 32)
{
    return corpus_unpack<T>(
        corpus_warp(WARP_SHFL_XOR, m, corpus_pack(v), (unsigned)d, (unsigned)width, nullptr));
}
static inline int __all_sync(unsigned m, int p)
{
    return (int)corpus_warp(WARP_ALL, m, p != 0, 0, 32, nullptr);
}
static inline int __any_sync(unsigned m, int p)
{
    return (int)corpus_warp(WARP_ANY, m, p != 0, 0, 32, nullptr);
}
static inline int __uni_sync(unsigned m, int p)
{
    return (int)corpus_warp(WARP_UNIFORM, m, p != 0, 0, 32, nullptr);
}
static inline unsigned __ballot_sync(unsigned m, int p)
{
    return (unsigned)corpus_warp(WARP_BALLOT, m, p != 0, 0, 32, nullptr);
}
template <class T> static inline unsigned __match_any_sync(unsigned m, T v)
{
    return (unsigned)corpus_warp(WARP_MATCH_ANY, m, corpus_pack(v), 0, 32, nullptr);
}
template <class T> static inline unsigned __match_all_sync(unsigned m, T v, int *p)
{
    bool done;
    unsigned r = (unsigned)corpus_warp(WARP_MATCH_ALL, m, corpus_pack(v), 0, 32, &done);
    *p = done;
    return r;
}
static inline unsigned __reduce_add_sync(unsigned m, unsigned v)
{
    return (unsigned)corpus_warp(WARP_ADD, m, v, 0, 32, nullptr);
}
static inline int __reduce_add_sync(unsigned m, int v)
{
    return (int)corpus_warp(WARP_ADD, m, (unsigned)v, 0, 32, nullptr);
}
static inline unsigned __reduce_min_sync(unsigned m, unsigned v)
{
    return (unsigned)corpus_warp(WARP_MIN_U, m, v, 0, 32, nullptr);
}
static inline int __reduce_min_sync(unsigned m, int v)
{
    return (int)corpus_warp(WARP_MIN_S, m, (unsigned)v, 0, 32, nullptr);
}
static inline unsigned __reduce_max_sync(unsigned m, unsigned v)
{
    return (unsigned)corpus_warp(WARP_MAX_U, m, v, 0, 32, nullptr);
}
static inline int __reduce_max_sync(unsigned m, int v)
{
    return (int)corpus_warp(WARP_MAX_S, m, (unsigned)v, 0, 32, nullptr);
}
static inline unsigned __reduce_and_sync(unsigned m, unsigned v)
{
    return (unsigned)corpus_warp(WARP_AND, m, v, 0, 32, nullptr);
}
static inline unsigned __reduce_or_sync(unsigned m, unsigned v)
{
    return (unsigned)corpus_warp(WARP_OR, m, v, 0, 32, nullptr);
}
static inline unsigned __reduce_xor_sync(unsigned m, unsigned v)
{
    return (unsigned)corpus_warp(WARP_XOR, m, v, 0, 32, nullptr);
}

/* ---- atomics: fibers change only where they say so ---- */
template <class T> struct corpus_same {
    typedef T type;
};
#define CORPUS_ATOMIC(name, expression)                                                            \
    template <class T> static inline T name(T *p, typename corpus_same<T>::type v)                 \
    {                                                                                              \
        T old = *p;                                                                                \
        *p = (T)(expression);                                                                      \
        return old;                                                                                \
    }
CORPUS_ATOMIC(atomicAdd, old + v)
CORPUS_ATOMIC(atomicSub, old - v)
CORPUS_ATOMIC(atomicMin, old < v ? old : v)
CORPUS_ATOMIC(atomicMax, old > v ? old : v)
CORPUS_ATOMIC(atomicAnd, old &v)
CORPUS_ATOMIC(atomicOr, old | v)
CORPUS_ATOMIC(atomicXor, old ^ v)
CORPUS_ATOMIC(atomicExch, v)
CORPUS_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
CORPUS_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#define atomicAdd_block   atomicAdd
#define atomicAdd_system  atomicAdd
#define atomicMax_system  atomicMax
#define atomicExch_system atomicExch
#define atomicCAS_system  atomicCAS
template <class T>
static inline T atomicCAS(T *p, typename corpus_same<T>::type compare,
                          typename corpus_same<T>::type v)
{
    corpus_yield();
    T old = *p;
    if (old == compare)
        *p = v;
    return old;
}

/* ---- bits ---- */
static inline int __popc(unsigned v)
{
    return __builtin_popcount(v);
}
static inline int __popcll(unsigned long long v)
{
    return __builtin_popcountll(v);
}
static inline int __clz(int v)
{
    return v ? __builtin_clz((unsigned)v) : 32;
}
static inline int __clzll(long long v)
{
    return v ? __builtin_clzll((unsigned long long)v) : 64;
}
static inline int __ffs(int v)
{
    return __builtin_ffs(v);
}
static inline int __ffsll(long long v)
{
    return __builtin_ffsll(v);
}
static inline unsigned __brev(unsigned v)
{
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= ((v >> i) & 1) << (31 - i);
    return r;
}
static inline unsigned long long __brevll(unsigned long long v)
{
    return (unsigned long long)__brev((unsigned)v) << 32 | __brev((unsigned)(v >> 32));
}
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    unsigned long long both = (unsigned long long)b << 32 | a;
    unsigned r = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = s >> 4 * i, byte = (unsigned)(both >> 8 * (c & 7)) & 255;
        r |= byte << 8 * i;
    }
    return r;
}
static inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)((((unsigned long long)hi << 32 | lo) << (n & 31)) >> 32);
}
static inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n)
{
    return n >= 32 ? lo : __funnelshift_l(lo, hi, n);
}
static inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((unsigned long long)hi << 32 | lo) >> (n & 31));
}
static inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n)
{
    return n >= 32 ? hi : __funnelshift_r(lo, hi, n);
}

/* ---- whole numbers ---- */
static inline int __mulhi(int a, int b)
{
    return (int)(((long long)a * b) >> 32);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return (unsigned)(((unsigned long long)a * b) >> 32);
}
static inline long long __mul64hi(long long a, long long b)
{
    return (long long)(((__int128)a * b) >> 64);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}
static inline int __mul24(int a, int b)
{
    return (int)((long long)((int)((unsigned)a << 8) >> 8) * ((int)((unsigned)b << 8) >> 8));
}
static inline unsigned __umul24(unsigned a, unsigned b)
{
    return (a & 0xffffff) * (b & 0xffffff);
}
static inline unsigned __sad(int a, int b, unsigned c)
{
    return c + (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a);
}
static inline unsigned __usad(unsigned a, unsigned b, unsigned c)
{
    return c + (a > b ? a - b : b - a);
}
static inline int __hadd(int a, int b)
{
    return (int)(((long long)a + b) >> 1);
}
static inline int __rhadd(int a, int b)
{
    return (int)(((long long)a + b + 1) >> 1);
}
static inline unsigned __uhadd(unsigned a, unsigned b)
{
    return (unsigned)(((unsigned long long)a + b) >> 1);
}
static inline unsigned __urhadd(unsigned a, unsigned b)
{
    return (unsigned)(((unsigned long long)a + b + 1) >> 1);
}
static inline int __dp4a(int a, int b, int c)
{
    for (int i = 0; i < 32; i += 8)
        c += (int)(int8_t)(a >> i) * (int8_t)(b >> i);
    return c;
}
static inline unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    for (int i = 0; i < 32; i += 8)
        c += ((a >> i) & 255) * ((b >> i) & 255);
    return c;
}
#define CORPUS_MINMAX(T)                                                                           \
    static inline T min(T a, T b)                                                                  \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline T max(T a, T b)                                                                  \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }
CORPUS_MINMAX(int)
CORPUS_MINMAX(unsigned)
CORPUS_MINMAX(long long)
CORPUS_MINMAX(unsigned long long)

/* ---- bit patterns of numbers ---- */
static inline float __int_as_float(int v)
{
    return corpus_bits<float>(v);
}
static inline float __uint_as_float(unsigned v)
{
    return corpus_bits<float>(v);
}
/* A NaN that arithmetic made has one pattern on the device, and many here. */
static inline unsigned __float_as_uint(float v)
{
    return corpus_bits<unsigned>(v);
}
static inline int __float_as_int(float v)
{
    return corpus_bits<int>(v);
}
static inline long long __double_as_longlong(double v)
{
    return corpus_bits<long long>(v);
}
static inline double __longlong_as_double(long long v)
{
    return corpus_bits<double>(v);
}
static inline int __double2loint(double v)
{
    return (int)corpus_bits<long long>(v);
}
static inline int __double2hiint(double v)
{
    return (int)(corpus_bits<long long>(v) >> 32);
}
static inline double __hiloint2double(int hi, int lo)
{
    return corpus_bits<double>((unsigned long long)(unsigned)hi << 32 | (unsigned)lo);
}

template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcg(const T *p)
{
    return *p;
}
template <class T> static inline T __ldca(const T *p)
{
    return *p;
}
template <class T> static inline T __ldcs(const T *p)
{
    return *p;
}
template <class T> static inline void __stcg(T *p, T v)
{
    *p = v;
}
template <class T> static inline void __stcs(T *p, T v)
{
    *p = v;
}

#include "host_vector.h"
#include "host_math.h"

#endif
