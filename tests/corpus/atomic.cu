// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Atomics: every operation and width, in global and in shared memory.
#include "corpus.h"

/* The final values alone, which no order of threads can change. */
KERNEL atomic_whole_u32(u32 *r, const u32 *a)
{
    int i = global_thread(), c = i & 3;
    atomicAdd(&r[c], a[i]);
    atomicSub(&r[4 + c], a[i]);
    atomicMin(&r[8 + c], a[i]);
    atomicMax(&r[12 + c], a[i]);
    atomicAnd(&r[16 + c], a[i] | 0xf0f0f0f0u);
    atomicOr(&r[20 + c], a[i] & 0x0f0f0f00u);
    atomicXor(&r[24 + c], a[i]);
    atomicInc(&r[28 + c], 17u);
    atomicDec(&r[32 + c], 13u);
}
CORPUS(atomic_whole_u32, grid(4), block(64), in<u32>(36, range(0, 10, 211)),
       in<u32>(256, bits(212)))

KERNEL atomic_whole_s32(s32 *r, const s32 *a)
{
    int i = global_thread();
    atomicAdd(&r[0], a[i]);
    atomicMin(&r[1 + i % 3], a[i]);
    atomicMax(&r[4 + i % 5], a[i]);
}
CORPUS(atomic_whole_s32, grid(4), block(64), in<s32>(9, zero()),
       in<s32>(256, range(-1e9, 1e9, 213)))

KERNEL atomic_whole_u64(u64 *r, const u64 *a)
{
    int i = global_thread();
    atomicAdd(&r[0], a[i]);
    atomicMin(&r[1], a[i]);
    atomicMax(&r[2], a[i]);
    atomicAnd(&r[3], a[i] | 0xff00ff00ff00ff00u);
    atomicOr(&r[4], a[i] & 0x00ff00ff00ff00ffu);
    atomicXor(&r[5], a[i]);
}
CORPUS(atomic_whole_u64, grid(4), block(64), in<u64>(6, bits(214)), in<u64>(256, bits(215)))

KERNEL atomic_whole_s64(s64 *r, const s64 *a)
{
    int i = global_thread();
    atomicMin(&r[0], a[i]);
    atomicMax(&r[1], a[i]);
}
CORPUS(atomic_whole_s64, grid(4), block(64), in<s64>(2, zero()), in<s64>(256, bits(216)))

/* Whole numbers of moderate size: every partial sum is exact. */
KERNEL atomic_float_add(float *f, double *d, const float *a)
{
    int i = global_thread();
    atomicAdd(&f[i & 7], a[i]);
    atomicAdd(&d[i & 3], (double)a[i] * 0.25);
}
static inline __device__ float whole(float x)
{
    return x < 0 ? (float)(int)x : (float)(int)x;
}
KERNEL atomic_float_add_whole(float *f, double *d, const s32 *a)
{
    int i = global_thread();
    atomicAdd(&f[i & 7], whole((float)a[i]));
    atomicAdd(&d[i & 3], (double)a[i] * 0.25);
}
CORPUS(atomic_float_add_whole, grid(8), block(64), in<float>(8, zero()), in<double>(4, zero()),
       in<s32>(512, range(-1000, 1000, 217)))

/* Random sums: the order shows in the last places. */
CORPUS(atomic_float_add, grid(8), block(64), in<float>(8, zero()).within(1e-3),
       in<double>(4, zero()).within(1e-9), in<float>(512, range(-10, 10, 218)))

/* What atomics give back: every ticket once. */
KERNEL atomic_tickets(u32 *counter, u8 *taken)
{
    u32 mine = atomicAdd(counter, 1u);
    taken[mine] = 1;
}
CORPUS(atomic_tickets, grid(4), block(128), in<u32>(1, zero()), out<u8>(512))

KERNEL atomic_wrap_tickets(u32 *counter, u32 *taken)
{
    u32 up = atomicInc(&counter[0], 9u), down = atomicDec(&counter[1], 4u);
    atomicAdd(&taken[up], 1u);
    atomicAdd(&taken[10 + down], 1u);
}
CORPUS(atomic_wrap_tickets, grid(2), block(100), in<u32>(2, zero()), in<u32>(15, zero()))

KERNEL atomic_append(u32 *count, u32 *list, const u32 *a)
{
    int i = global_thread();
    if (a[i] % 3 == 0)
        list[atomicAdd(count, 1u)] = a[i];
}
CORPUS(atomic_append, grid(4), block(64), in<u32>(1, zero()), out<u32>(256).sorted(),
       in<u32>(256, bits(219)))

KERNEL atomic_exchange(u32 *slot, u32 *seen, u64 *wide)
{
    /* What goes in comes out once, but for the last. */
    u32 i = (u32)global_thread() + 1;
    u32 old = atomicExch(slot, i);
    atomicAdd(&seen[0], old);
    atomicAdd(&seen[1], i);
    u64 w = atomicExch(&wide[0], (u64)i << 33);
    atomicXor(&wide[1], w);
    __syncthreads();
    if (threadIdx.x == 0) {
        seen[0] += *slot;
        *slot = 0;
        wide[1] ^= wide[0];
        wide[0] = 0;
    }
}
CORPUS(atomic_exchange, grid(1), block(256), in<u32>(1, zero()), in<u32>(2, zero()),
       in<u64>(2, zero()))

KERNEL atomic_cas_loop(float *product, u64 *wide, const u32 *a)
{
    int i = global_thread();
    /* Powers of two: the product is exact in any order. */
    float factor = a[i] & 1 ? 2.0f : 0.5f;
    u32 *p = (u32 *)product, old = *p, assumed;
    do {
        assumed = old;
        old = atomicCAS(p, assumed, __float_as_uint(__uint_as_float(assumed) * factor));
    } while (old != assumed);
    u64 before = *wide, was;
    do {
        was = before;
        before = atomicCAS(wide, was, was + ((u64)a[i] << 20));
    } while (before != was);
}
CORPUS(atomic_cas_loop, grid(2), block(64), in<float>(1, range(1, 1, 220)), in<u64>(1, zero()),
       in<u32>(128, bits(221)))

KERNEL atomic_cas_once(u32 *flag, u32 *winners)
{
    if (atomicCAS(&flag[threadIdx.x & 7], 0u, threadIdx.x + 1) == 0)
        atomicAdd(&winners[threadIdx.x & 7], 1u);
    __syncthreads();
    if (threadIdx.x < 8)
        flag[threadIdx.x] = (flag[threadIdx.x] - 1) & 7;
}
CORPUS(atomic_cas_once, grid(1), block(128), in<u32>(8, zero()), in<u32>(8, zero()))

/* A lock that lanes of one warp fight for. */
KERNEL atomic_spin_lock(u32 *lock, u32 *count)
{
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0u, 1u) == 0) {
            volatile u32 *c = count;
            *c = *c + 1;
            __threadfence();
            atomicExch(lock, 0u);
            done = true;
        }
    }
}
CORPUS(atomic_spin_lock, grid(2), block(64), in<u32>(1, zero()), in<u32>(1, zero()))

KERNEL atomic_shared(u32 *out, const u32 *a)
{
    __shared__ u32 r[10];
    __shared__ u64 w[4];
    __shared__ s32 s[2];
    __shared__ float f;
    __shared__ double d;
    u32 t = threadIdx.x, x = a[global_thread()];
    if (t < 10)
        r[t] = t == 2 || t == 4 ? ~0u : 0;
    if (t < 4)
        w[t] = t == 1 ? ~0ull : 0;
    if (t < 2)
        s[t] = 0;
    if (t == 0)
        f = 0, d = 0;
    __syncthreads();
    atomicAdd(&r[0], x);
    atomicSub(&r[1], x);
    atomicMin(&r[2], x);
    atomicMax(&r[3], x);
    atomicAnd(&r[4], x | 0xff0000ffu);
    atomicOr(&r[5], x & 0x00ff00u);
    atomicXor(&r[6], x);
    atomicInc(&r[7], 6u);
    atomicDec(&r[8], 9u);
    if (atomicExch(&r[9], 77u) != 77u && t > 1000)
        r[9] = 0;
    atomicAdd(&w[0], (u64)x << 30);
    atomicMin(&w[1], (u64)x << 5);
    atomicMax(&w[2], (u64)x * 3);
    atomicXor(&w[3], (u64)x << 17);
    atomicMin(&s[0], (s32)x);
    atomicMax(&s[1], (s32)x);
    atomicAdd(&f, (float)(x & 255));
    atomicAdd(&d, (double)(x & 1023) * 0.5);
    __syncthreads();
    u32 *o = out + blockIdx.x * 22;
    if (t < 10)
        o[t] = r[t];
    if (t < 4) {
        o[10 + t * 2] = (u32)w[t];
        o[11 + t * 2] = (u32)(w[t] >> 32);
    }
    if (t < 2)
        o[18 + t] = (u32)s[t];
    if (t == 0) {
        o[20] = (u32)f;
        o[21] = (u32)(d * 2);
    }
}
CORPUS(atomic_shared, grid(2), block(128), out<u32>(44), in<u32>(256, bits(222)))

KERNEL atomic_scopes(u32 *r, const u32 *a)
{
    int i = global_thread();
    atomicAdd_block(&r[blockIdx.x], a[i]);
    atomicAdd_system(&r[4], a[i]);
    atomicMax_system(&r[5], a[i]);
}
CORPUS(atomic_scopes, grid(4), block(64), in<u32>(6, zero()), in<u32>(256, bits(223)))

/* Through an address that may be anywhere. */
static __device__ __noinline__ u32 bump(u32 *p, u32 by)
{
    return atomicAdd(p, by);
}
KERNEL atomic_generic(u32 *out)
{
    __shared__ u32 s;
    if (threadIdx.x == 0)
        s = 0;
    __syncthreads();
    bump(threadIdx.x & 1 ? &s : out, 2);
    __syncthreads();
    if (threadIdx.x == 0)
        out[1] = s;
}
CORPUS(atomic_generic, grid(1), block(96), in<u32>(2, zero()))

/* The last block to finish sums what all have left behind. */
__device__ u32 atomic_blocks_done;
KERNEL atomic_last_block(u32 *out, u32 *partial, const u32 *a)
{
    __shared__ u32 sum, last;
    if (threadIdx.x == 0)
        sum = 0;
    __syncthreads();
    atomicAdd(&sum, a[global_thread()]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(&atomic_blocks_done, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        u32 total = 0;
        for (u32 k = 0; k < gridDim.x; k++)
            total += ((volatile u32 *)partial)[k] * (k + 1);
        *out = total;
    }
}
CORPUS(atomic_last_block, grid(8), block(64), out<u32>(1), out<u32>(8), in<u32>(512, bits(224)),
       symbol(u32, atomic_blocks_done, 1, zero()))
