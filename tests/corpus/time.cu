// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Clocks, sleeps and places: no oracle knows the numbers, but they have properties.
#include "corpus.h"

#ifdef __CUDACC__
#define SPECIAL(name, R, reg, c)                                                                   \
    static __device__ __forceinline__ R name()                                                     \
    {                                                                                              \
        R r;                                                                                       \
        asm volatile("mov." reg ";" : "=" c(r));                                                   \
        return r;                                                                                  \
    }
SPECIAL(global_timer, u64, "u64 %0, %%globaltimer", "l")
SPECIAL(sm_id, u32, "u32 %0, %%smid", "r")
SPECIAL(sm_count, u32, "u32 %0, %%nsmid", "r")
SPECIAL(warp_id, u32, "u32 %0, %%warpid", "r")
SPECIAL(warp_count, u32, "u32 %0, %%nwarpid", "r")
#else
static u64 global_timer()
{
    return (u64)clock64() * 1000;
}
static u32 sm_id()
{
    return 0;
}
static u32 sm_count()
{
    return 1;
}
static u32 warp_id()
{
    return 0;
}
static u32 warp_count()
{
    return 1;
}

#include <cstdio>
/* Pairs (before, after): after must not be smaller; with `least`, at least so much later. */
static int pairs_rise(const void *data, size_t count, uint64_t least, char *why, size_t size)
{
    const uint64_t *v = (const uint64_t *)data;
    for (size_t i = 0; i + 1 < count; i += 2)
        if (v[i + 1] < v[i] || v[i + 1] - v[i] < least) {
            snprintf(why, size, "from %llu to %llu, less than %llu later", (unsigned long long)v[i],
                     (unsigned long long)v[i + 1], (unsigned long long)least);
            return -1;
        }
    return 0;
}
static int pairs_later(const void *d, size_t n, char *why, size_t size)
{
    return pairs_rise(d, n, 1, why, size);
}
static int pairs_not_earlier(const void *d, size_t n, char *why, size_t size)
{
    return pairs_rise(d, n, 0, why, size);
}
static int pairs_50us(const void *d, size_t n, char *why, size_t size)
{
    return pairs_rise(d, n, 50000, why, size);
}
static int pairs_below(const void *data, size_t count, char *why, size_t size)
{
    const uint32_t *v = (const uint32_t *)data;
    for (size_t i = 0; i + 1 < count; i += 2)
        if (v[i] >= v[i + 1]) {
            snprintf(why, size, "%u is not below %u", v[i], v[i + 1]);
            return -1;
        }
    return 0;
}
#endif

KERNEL time_clock64(u64 *out, u32 *work)
{
    int i = global_thread();
    u64 before = (u64)clock64();
    u32 r = (u32)before;
    for (int k = 0; k < 20; k++)
        r = r * 1664525u + 1013904223u;
    work[i] = r | 1 ? 5 : r;
    __syncwarp();
    u64 after = (u64)clock64();
    out[i * 2] = before;
    out[i * 2 + 1] = after + (r == 12345 ? 1 : 0);
}
CORPUS(time_clock64, grid(2), block(64), out<u64>(256).property(pairs_later), out<u32>(128))

KERNEL time_clock(u64 *out)
{
    int i = global_thread();
    u32 before = (u32)clock();
    __syncthreads();
    u32 passed = (u32)clock() - before; /* wraps, and is short */
    out[i * 2] = 0;
    out[i * 2 + 1] = passed & 0x7fffffff;
}
CORPUS(time_clock, grid(1), block(64), out<u64>(128).property(pairs_later))

KERNEL time_global_timer(u64 *out)
{
    int i = global_thread();
    out[i * 2] = global_timer();
    __syncthreads();
    out[i * 2 + 1] = global_timer();
}
CORPUS(time_global_timer, grid(2), block(64), out<u64>(256).property(pairs_not_earlier))

/* __nanosleep may wake early, so it is asked until the time has passed. */
KERNEL time_nanosleep(u64 *out, u32 nanoseconds)
{
    int i = global_thread();
    u64 before = global_timer(), now = before;
    while (now - before < nanoseconds) {
        __nanosleep(nanoseconds / 4);
        now = global_timer();
    }
    out[i * 2] = before;
    out[i * 2 + 1] = now;
}
CORPUS(time_nanosleep, grid(2), block(64), out<u64>(256).property(pairs_50us), value(50000u))

/* A warp sleeps, another works; what was computed is there all the same. */
KERNEL time_sleep_and_signal(u32 *out, u64 *when)
{
    __shared__ volatile u32 flag;
    if (threadIdx.x == 0)
        flag = 0;
    __syncthreads();
    u64 before = global_timer();
    if (threadIdx.x >= 32) {
        for (int k = 0; k < 10; k++)
            __nanosleep(1000);
        __threadfence_block();
        if (threadIdx.x == 32)
            flag = 42;
    } else {
        while (flag == 0)
            __nanosleep(200);
    }
    __syncthreads();
    out[threadIdx.x] = flag;
    when[threadIdx.x * 2] = before;
    when[threadIdx.x * 2 + 1] = global_timer();
}
CORPUS(time_sleep_and_signal, grid(1), block(64), out<u32>(64),
       out<u64>(128).property(pairs_not_earlier))

KERNEL time_places(u32 *out)
{
    int i = global_thread();
    out[i * 4] = sm_id();
    out[i * 4 + 1] = sm_count();
    out[i * 4 + 2] = warp_id();
    out[i * 4 + 3] = warp_count();
}
CORPUS(time_places, grid(8), block(64), out<u32>(2048).property(pairs_below))
