// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Memory operations with order and scope, as libcu++ and cooperative groups emit them,
// and instructions that leave.
#include "corpus.h"

#ifdef __CUDACC__
#define DO(...) asm volatile(__VA_ARGS__)
#else
#define DO(...) (void)0
#endif

static __device__ __forceinline__ u32 load_acquire(const u32 *p)
{
#ifdef __CUDACC__
    u32 r;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(r) : "l"(p) : "memory");
    return r;
#else
    corpus_yield();
    return *p;
#endif
}
static __device__ __forceinline__ void store_release(u32 *p, u32 v)
{
#ifdef __CUDACC__
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#else
    *p = v;
#endif
}
static __device__ __forceinline__ u32 add_release(u32 *p, u32 v)
{
#ifdef __CUDACC__
    u32 r;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory");
    return r;
#else
    return atomicAdd(p, v);
#endif
}
static __device__ __forceinline__ u32 or_acq_rel(u32 *p, u32 v)
{
#ifdef __CUDACC__
    u32 r;
    asm volatile("atom.or.acq_rel.cta.b32 %0, [%1], %2;" : "=r"(r) : "l"(p), "r"(v) : "memory");
    return r;
#else
    return atomicOr(p, v);
#endif
}
static __device__ __forceinline__ void red_and_release(u32 *p, u32 v)
{
#ifdef __CUDACC__
    asm volatile("red.and.release.cta.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
#else
    atomicAnd(p, v);
#endif
}
static __device__ __forceinline__ u64 cas_relaxed(u64 *p, u64 compare, u64 v)
{
#ifdef __CUDACC__
    u64 r;
    asm volatile("atom.global.cas.relaxed.sys.b64 %0, [%1], %2, %3;"
                 : "=l"(r)
                 : "l"(p), "l"(compare), "l"(v)
                 : "memory");
    return r;
#else
    return atomicCAS(p, compare, v);
#endif
}
static __device__ __forceinline__ void fence()
{
    DO("fence.acq_rel.gpu;" ::: "memory");
    DO("membar.cta;" ::: "memory");
    DO("fence.sc.sys;" ::: "memory");
}

/* A lane of one warp tells the lanes of the others, by flag and data. */
KERNEL scoped_message(u32 *out, const u32 *a)
{
    __shared__ u32 flag, data[32];
    u32 t = threadIdx.x;
    if (t == 0)
        flag = 0;
    __syncthreads();
    if (t < 32) {
        data[t] = a[t] * 3;
        __syncwarp();
        if (t == 0)
            store_release(&flag, 1);
    } else {
        while (!load_acquire(&flag))
            __nanosleep(50);
    }
    __syncwarp();
    out[t] = data[t & 31] + t;
}
CORPUS(scoped_message, grid(1), block(96), out<u32>(96), in<u32>(32, bits(491)))

KERNEL scoped_atomics(u32 *r, u64 *w, const u32 *a)
{
    int i = global_thread();
    u32 old = add_release(&r[0], a[i]);
    or_acq_rel(&r[1], a[i] & 0xff00ff);
    red_and_release(&r[2], a[i] | 0xf0000000u);
    fence();
    u64 seen = *(volatile u64 *)w, was;
    do {
        was = seen;
        seen = cas_relaxed(w, was, was + a[i]);
    } while (seen != was);
    if (old == 0xffffffffu && seen == 1)
        r[3] = 1;
}
CORPUS(scoped_atomics, grid(1), block(128), in<u32>(4, bits(492)), in<u64>(1, zero()),
       in<u32>(128, range(0, 1e6, 493)))

/* Two words at once, relaxed: how a scan looks back at its predecessors. */
KERNEL scoped_pairs(u64 *out, const u64 *a)
{
    int i = global_thread();
    u64 x, y;
    u32 p, q;
#ifdef __CUDACC__
    asm volatile("ld.relaxed.gpu.v2.u64 {%0, %1}, [%2];"
                 : "=l"(x), "=l"(y)
                 : "l"(a + i * 2)
                 : "memory");
    asm volatile("ld.relaxed.gpu.v2.u32 {%0, %1}, [%2];"
                 : "=r"(p), "=r"(q)
                 : "l"(a + i)
                 : "memory");
    asm volatile("st.relaxed.gpu.v2.u64 [%0], {%1, %2};" ::"l"(out + i * 4), "l"(y), "l"(x)
                 : "memory");
    asm volatile("st.relaxed.gpu.v2.u32 [%0], {%1, %2};" ::"l"(out + i * 4 + 2), "r"(q), "r"(p)
                 : "memory");
    asm volatile("st.cg.u32 [%0], %1;" ::"l"((u32 *)(out + i * 4 + 3)), "r"(p + q) : "memory");
    asm volatile("st.wt.u32 [%0], %1;" ::"l"((u32 *)(out + i * 4 + 3) + 1), "r"(p ^ q) : "memory");
#else
    x = a[i * 2], y = a[i * 2 + 1], p = (u32)a[i], q = (u32)(a[i] >> 32);
    out[i * 4] = y;
    out[i * 4 + 1] = x;
    out[i * 4 + 2] = (u64)p << 32 | q;
    out[i * 4 + 3] = (u64)(p ^ q) << 32 | (p + q);
#endif
}
CORPUS(scoped_pairs, grid(1), block(64), out<u64>(256), in<u64>(128, bits(494)))

/* Masks and sign extension by bit position (bmsk, szext). */
KERNEL scoped_bit_masks(u32 *out, const u32 *a, const u8 *pos, const u8 *len)
{
    int i = global_thread();
    u32 p = pos[i], l = len[i], m, w, z;
#ifdef __CUDACC__
    asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(m) : "r"(p), "r"(l));
    asm("bmsk.wrap.b32 %0, %1, %2;" : "=r"(w) : "r"(p), "r"(l));
    asm("szext.wrap.s32 %0, %1, %2;" : "=r"(z) : "r"(a[i]), "r"(l));
#else
    u32 c = p > 31 ? 32 : p, n = l > 32 ? 32 : l;
    m = c > 31 ? 0 : (n == 32 ? ~0u : (1u << n) - 1) << c;
    w = ((1u << (l & 31)) - 1) << (p & 31);
    u32 k = l & 31;
    z = k ? (u32)((s32)(a[i] << (32 - k)) >> (32 - k)) : 0;
#endif
    out[i * 3] = m;
    out[i * 3 + 1] = w;
    out[i * 3 + 2] = z;
}
CORPUS(scoped_bit_masks, grid(2), block(128), out<u32>(768), in<u32>(256, bits(495)),
       in<u8>(256, range(0, 40, 496)), in<u8>(256, range(0, 40, 497)))

/* Some lanes leave for good in the middle of a loop. */
KERNEL scoped_exit(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 r = a[i];
    for (u32 k = 0; k < 10; k++) {
        out[i] = r;
        if ((r >> k & 7) == 3) {
#ifdef __CUDACC__
            asm volatile("exit;");
#else
            corpus_exit();
#endif
        }
        r = r * 5 + k;
    }
    out[i] = ~r;
}
CORPUS(scoped_exit, grid(2), block(64), out<u32>(128), in<u32>(128, bits(498)))

KERNEL scoped_barrier_forms(u32 *out, const u32 *a)
{
    __shared__ u32 s[64];
    u32 t = threadIdx.x;
    s[t] = a[t];
#ifdef __CUDACC__
    asm volatile("barrier.sync 5, 64;" ::: "memory");
#else
    corpus_barrier(5, 64, 0, false);
#endif
    u32 x = s[63 - t];
#ifdef __CUDACC__
    asm volatile("barrier.sync.aligned 5;" ::: "memory");
#else
    corpus_barrier(5, 0, 0, false);
#endif
    s[t] = x + 1;
    __syncthreads();
    out[t] = s[t ^ 1];
}
CORPUS(scoped_barrier_forms, grid(1), block(64), out<u32>(64), in<u32>(64, bits(499)))

KERNEL scoped_vectors(uint4 *out, const uint4 *a)
{
    __shared__ uint4 s[32];
    __shared__ double2 d[32];
    __shared__ ushort2 h[32];
    u32 t = threadIdx.x;
    s[t] = a[t];
    d[t] = make_double2(a[t].x * 0.5, a[t].y * 0.25);
    h[t] = make_ushort2((u16)a[t].z, (u16)a[t].w);
    __syncthreads();
    uint4 x = s[31 - t];
    double2 y = d[t ^ 3];
    ushort2 z = h[t ^ 5];
    out[t] = make_uint4(x.x + z.x, x.y ^ z.y, x.z + (u32)(y.x / 1024), x.w - (u32)(y.y / 1024));
}
CORPUS(scoped_vectors, grid(1), block(32), out<u32>(128), in<u32>(128, bits(500)))
