/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_ops: PTX instructions that CUDA C has no words for, as inline PTX on the
 * device and as what the PTX ISA says of them on the host.
 */
#ifndef GPUSHARE_TESTS_CORPUS_PTX_OPS_H
#define GPUSHARE_TESTS_CORPUS_PTX_OPS_H

#ifdef __CUDACC__
#define PTX_OP(R, name, params, asm_text, constraint, inputs, host)                                \
    static __device__ __forceinline__ R name params                                                \
    {                                                                                              \
        R r;                                                                                       \
        asm(asm_text : "=" constraint(r) : PTX_INPUTS inputs);                                     \
        return r;                                                                                  \
    }
#define PTX_INPUTS(...) __VA_ARGS__
#else
#define PTX_OP(R, name, params, asm_text, constraint, inputs, host)                                \
    static inline R name params                                                                    \
    {                                                                                              \
        return (R)(host);                                                                          \
    }
static inline u32 ptx_host_extract(u64 a, u32 pos, u32 len, u32 width, bool is_signed, u64 *wide)
{
    pos &= 255, len &= 255;
    u64 mask = width == 64 ? ~0ull : (1ull << width) - 1;
    a &= mask;
    u64 r = pos >= width || !len ? 0 : a >> pos;
    if (len < width)
        r &= (1ull << len) - 1;
    if (is_signed && len) {
        /* The sign is the field's top bit, or the operand's where the field hangs over. */
        u32 top = pos + len - 1 < width ? pos + len - 1 : width - 1;
        u32 used = pos >= width ? 0 : top - pos + 1;
        if (a >> top & 1)
            r |= used >= 64 ? 0 : ~0ull << used;
    }
    *wide = r & mask;
    return (u32)*wide;
}
static inline u64 ptx_host_field(u64 a, u32 pos, u32 len, u32 width, bool is_signed)
{
    u64 wide;
    ptx_host_extract(a, pos, len, width, is_signed, &wide);
    return wide;
}
static inline u64 ptx_host_insert(u64 a, u64 b, u32 pos, u32 len, u32 width)
{
    pos &= 255, len &= 255;
    for (u32 i = 0; i < len && pos + i < width; i++)
        b = (b & ~(1ull << (pos + i))) | ((a >> i & 1) << (pos + i));
    return b;
}
static inline u32 ptx_host_top_bit(u64 a)
{
    return a ? 63 - (u32)__builtin_clzll(a) : ~0u;
}
static inline u64 ptx_host_shift(u64 a, u32 n, u32 width, int way)
{
    if (way == 0)
        return n >= width ? 0 : a << n;
    if (way == 1)
        return n >= width ? 0 : a >> n;
    s64 v = width == 64 ? (s64)a : (s64)(s32)a;
    return (u64)(v >> (n >= width ? width - 1 : n));
}
static inline u32 ptx_host_lop3(u32 a, u32 b, u32 c, u32 table)
{
    u32 r = 0;
    for (int i = 0; i < 32; i++)
        r |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
    return r;
}
static inline u32 ptx_host_prmt(u32 a, u32 b, u32 c, int mode)
{
    static const uint8_t pick[6][4][4] = {
        {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}, /* f4e */
        {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}, /* b4e */
        {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}, /* rc8 */
        {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}, /* ecl */
        {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}, /* ecr */
        {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}, /* rc16 */
    };
    u64 both = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++)
        r |= (u32)(both >> 8 * pick[mode][c & 3][i] & 255) << 8 * i;
    return r;
}
/* The default mode also replicates a byte's sign. */
static inline u32 ptx_host_prmt_index(u32 a, u32 b, u32 c)
{
    u64 both = (u64)b << 32 | a;
    u32 r = 0;
    for (int i = 0; i < 4; i++) {
        u32 nibble = c >> 4 * i & 15, byte = (u32)(both >> 8 * (nibble & 7) & 255);
        r |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * i;
    }
    return r;
}
#endif

PTX_OP(u32, ptx_bfe_u32, (u32 a, u32 p, u32 l), "bfe.u32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(p), "r"(l)), ptx_host_field(a, p, l, 32, false))
PTX_OP(u32, ptx_bfe_s32, (u32 a, u32 p, u32 l), "bfe.s32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(p), "r"(l)), ptx_host_field(a, p, l, 32, true))
PTX_OP(u64, ptx_bfe_u64, (u64 a, u32 p, u32 l), "bfe.u64 %0, %1, %2, %3;", "l",
       ("l"(a), "r"(p), "r"(l)), ptx_host_field(a, p, l, 64, false))
PTX_OP(u64, ptx_bfe_s64, (u64 a, u32 p, u32 l), "bfe.s64 %0, %1, %2, %3;", "l",
       ("l"(a), "r"(p), "r"(l)), ptx_host_field(a, p, l, 64, true))
PTX_OP(u32, ptx_bfi_b32, (u32 a, u32 b, u32 p, u32 l), "bfi.b32 %0, %1, %2, %3, %4;", "r",
       ("r"(a), "r"(b), "r"(p), "r"(l)), ptx_host_insert(a, b, p, l, 32))
PTX_OP(u64, ptx_bfi_b64, (u64 a, u64 b, u32 p, u32 l), "bfi.b64 %0, %1, %2, %3, %4;", "l",
       ("l"(a), "l"(b), "r"(p), "r"(l)), ptx_host_insert(a, b, p, l, 64))
PTX_OP(u32, ptx_bfind_u32, (u32 a), "bfind.u32 %0, %1;", "r", ("r"(a)), ptx_host_top_bit(a))
PTX_OP(u32, ptx_bfind_s32, (u32 a), "bfind.s32 %0, %1;", "r", ("r"(a)),
       ptx_host_top_bit((s32)a < 0 ? (u32)~a : a))
PTX_OP(u32, ptx_bfind_u64, (u64 a), "bfind.u64 %0, %1;", "r", ("l"(a)), ptx_host_top_bit(a))
PTX_OP(u32, ptx_bfind_shift, (u32 a), "bfind.shiftamt.u32 %0, %1;", "r", ("r"(a)),
       a ? 31 - ptx_host_top_bit(a) : ~0u)
PTX_OP(u32, ptx_shl_b32, (u32 a, u32 n), "shl.b32 %0, %1, %2;", "r", ("r"(a), "r"(n)),
       ptx_host_shift(a, n, 32, 0))
PTX_OP(u32, ptx_shr_u32, (u32 a, u32 n), "shr.u32 %0, %1, %2;", "r", ("r"(a), "r"(n)),
       ptx_host_shift(a, n, 32, 1))
PTX_OP(u32, ptx_shr_s32, (u32 a, u32 n), "shr.s32 %0, %1, %2;", "r", ("r"(a), "r"(n)),
       ptx_host_shift(a, n, 32, 2))
PTX_OP(u64, ptx_shl_b64, (u64 a, u32 n), "shl.b64 %0, %1, %2;", "l", ("l"(a), "r"(n)),
       ptx_host_shift(a, n, 64, 0))
PTX_OP(u64, ptx_shr_u64, (u64 a, u32 n), "shr.u64 %0, %1, %2;", "l", ("l"(a), "r"(n)),
       ptx_host_shift(a, n, 64, 1))
PTX_OP(u64, ptx_shr_s64, (u64 a, u32 n), "shr.s64 %0, %1, %2;", "l", ("l"(a), "r"(n)),
       ptx_host_shift(a, n, 64, 2))
PTX_OP(u32, ptx_lop3_96, (u32 a, u32 b, u32 c), "lop3.b32 %0, %1, %2, %3, 0x96;", "r",
       ("r"(a), "r"(b), "r"(c)), ptx_host_lop3(a, b, c, 0x96))
PTX_OP(u32, ptx_lop3_e8, (u32 a, u32 b, u32 c), "lop3.b32 %0, %1, %2, %3, 0xe8;", "r",
       ("r"(a), "r"(b), "r"(c)), ptx_host_lop3(a, b, c, 0xe8))
PTX_OP(u32, ptx_lop3_1b, (u32 a, u32 b, u32 c), "lop3.b32 %0, %1, %2, %3, 0x1b;", "r",
       ("r"(a), "r"(b), "r"(c)), ptx_host_lop3(a, b, c, 0x1b))
PTX_OP(u32, ptx_prmt, (u32 a, u32 b, u32 c), "prmt.b32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), ptx_host_prmt_index(a, b, c))
#define PTX_PRMT(mode, number)                                                                     \
    PTX_OP(u32, ptx_prmt_##mode, (u32 a, u32 b, u32 c), "prmt.b32." #mode " %0, %1, %2, %3;", "r", \
           ("r"(a), "r"(b), "r"(c)), ptx_host_prmt(a, b, c, number))
PTX_PRMT(f4e, 0)
PTX_PRMT(b4e, 1)
PTX_PRMT(rc8, 2)
PTX_PRMT(ecl, 3)
PTX_PRMT(ecr, 4)
PTX_PRMT(rc16, 5)
PTX_OP(u32, ptx_mad_hi_u32, (u32 a, u32 b, u32 c), "mad.hi.u32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), __umulhi(a, b) + c)
PTX_OP(u32, ptx_mad_hi_s32, (u32 a, u32 b, u32 c), "mad.hi.s32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), (u32)__mulhi((s32)a, (s32)b) + c)
PTX_OP(u64, ptx_mad_wide_s32, (u32 a, u32 b, u64 c), "mad.wide.s32 %0, %1, %2, %3;", "l",
       ("r"(a), "r"(b), "l"(c)), (u64)((s64)(s32)a *(s32)b) + c)
PTX_OP(u64, ptx_mad_lo_u64, (u64 a, u64 b, u64 c), "mad.lo.u64 %0, %1, %2, %3;", "l",
       ("l"(a), "l"(b), "l"(c)), a *b + c)
PTX_OP(u32, ptx_add_sat_s32, (u32 a, u32 b), "add.sat.s32 %0, %1, %2;", "r", ("r"(a), "r"(b)),
       (s64)(s32)a + (s32)b > 0x7fffffff      ? 0x7fffffffu
       : (s64)(s32)a + (s32)b < -0x80000000ll ? 0x80000000u
                                              : a + b)
PTX_OP(u32, ptx_sub_sat_s32, (u32 a, u32 b), "sub.sat.s32 %0, %1, %2;", "r", ("r"(a), "r"(b)),
       (s64)(s32)a - (s32)b > 0x7fffffff      ? 0x7fffffffu
       : (s64)(s32)a - (s32)b < -0x80000000ll ? 0x80000000u
                                              : a - b)
PTX_OP(u32, ptx_cnot, (u32 a), "cnot.b32 %0, %1;", "r", ("r"(a)), a == 0)
PTX_OP(u32, ptx_laneid, (), "mov.u32 %0, %%laneid;", "r", (), corpus_lane())
PTX_OP(u32, ptx_lanemask_lt, (), "mov.u32 %0, %%lanemask_lt;", "r", (), (1u << corpus_lane()) - 1)
PTX_OP(u32, ptx_lanemask_le, (), "mov.u32 %0, %%lanemask_le;", "r", (), (2u << corpus_lane()) - 1)
PTX_OP(u32, ptx_lanemask_eq, (), "mov.u32 %0, %%lanemask_eq;", "r", (), 1u << corpus_lane())
PTX_OP(u32, ptx_lanemask_ge, (), "mov.u32 %0, %%lanemask_ge;", "r", (),
       ~((1u << corpus_lane()) - 1))
PTX_OP(u32, ptx_lanemask_gt, (), "mov.u32 %0, %%lanemask_gt;", "r", (),
       ~((2u << corpus_lane()) - 1))
PTX_OP(u32, ptx_dynamic_smem_size, (), "mov.u32 %0, %%dynamic_smem_size;", "r", (),
       corpus_dynamic_shared_bytes())

/* 128-bit sums and products through the carry flag. */
static __device__ __forceinline__ void ptx_add_128(u64 r[2], const u64 a[2], const u64 b[2])
{
#ifdef __CUDACC__
    asm("add.cc.u64 %0, %2, %4;\n\taddc.u64 %1, %3, %5;"
        : "=l"(r[0]), "=l"(r[1])
        : "l"(a[0]), "l"(a[1]), "l"(b[0]), "l"(b[1]));
#else
    unsigned __int128 s =
        ((unsigned __int128)a[1] << 64 | a[0]) + ((unsigned __int128)b[1] << 64 | b[0]);
    r[0] = (u64)s, r[1] = (u64)(s >> 64);
#endif
}
static __device__ __forceinline__ void ptx_sub_96(u32 r[3], const u32 a[3], const u32 b[3])
{
#ifdef __CUDACC__
    asm("sub.cc.u32 %0, %3, %6;\n\tsubc.cc.u32 %1, %4, %7;\n\tsubc.u32 %2, %5, %8;"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(b[0]), "r"(b[1]), "r"(b[2]));
#else
    unsigned __int128 d = ((unsigned __int128)a[2] << 64 | (u64)a[1] << 32 | a[0]) -
                          ((unsigned __int128)b[2] << 64 | (u64)b[1] << 32 | b[0]);
    r[0] = (u32)d, r[1] = (u32)(d >> 32), r[2] = (u32)(d >> 64);
#endif
}
static __device__ __forceinline__ u64 ptx_mad_64(u32 a, u32 b, u64 c)
{
#ifdef __CUDACC__
    u32 lo, hi;
    asm("mad.lo.cc.u32 %0, %2, %3, %4;\n\tmadc.hi.u32 %1, %2, %3, %5;"
        : "=r"(lo), "=r"(hi)
        : "r"(a), "r"(b), "r"((u32)c), "r"((u32)(c >> 32)));
    return (u64)hi << 32 | lo;
#else
    return (u64)a * b + c;
#endif
}
/* Barriers by number, and one that a thread only passes by. */
static __device__ __forceinline__ void ptx_bar_sync(u32 id, u32 threads)
{
#ifdef __CUDACC__
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
    corpus_barrier(id, threads, 0, false);
#endif
}
static __device__ __forceinline__ void ptx_bar_arrive(u32 id, u32 threads)
{
#ifdef __CUDACC__
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
    corpus_barrier_arrive(id, threads);
#endif
}
static __device__ __forceinline__ u32 ptx_bar_popc(u32 id, u32 threads, u32 p)
{
#ifdef __CUDACC__
    u32 r;
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; bar.red.popc.u32 %0, %1, %2, p;}"
                 : "=r"(r)
                 : "r"(id), "r"(threads), "r"(p)
                 : "memory");
    return r;
#else
    return (u32)corpus_barrier(id, threads, 1, p != 0);
#endif
}

#endif
