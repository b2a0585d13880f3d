// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Instructions that nvcc seldom chooses, but programs with inline PTX use.
#include "corpus.h"
#include "ptx_ops.h"

#ifndef __CUDACC__
static u32 host_nth_bit(u32 mask, u32 base, s32 n)
{
    int step = n > 0 ? 1 : -1, left = n > 0 ? n : -n;
    if (n == 0)
        return mask >> base & 1 ? base : ~0u;
    for (int i = (int)base; i >= 0 && i < 32; i += step)
        if ((mask >> i & 1) && --left == 0)
            return (u32)i;
    return ~0u;
}
static u32 host_abs_diff(u32 a, u32 b, bool is_signed, u32 *sum)
{
    u32 r = 0;
    for (int i = 0; i < 32; i += 8) {
        int x = is_signed ? (s8)(a >> i) : (u8)(a >> i),
            y = is_signed ? (s8)(b >> i) : (u8)(b >> i);
        u32 d = (u32)(x < y ? y - x : x - y);
        r |= (d & 255) << i;
        *sum += d;
    }
    return r;
}
static u32 host_abs_diff_sum(u32 a, u32 b, u32 c)
{
    host_abs_diff(a, b, false, &c);
    return c;
}
static u32 host_abs_diff_bytes(u32 a, u32 b)
{
    u32 sum = 0;
    return host_abs_diff(a, b, false, &sum);
}
static s32 host_low24(u32 a)
{
    return (s32)(a << 8) >> 8;
}
static u32 host_two_products(u32 a, u32 b, u32 c, bool high)
{
    for (int i = 0; i < 2; i++)
        c += (u32)((s16)(a >> 16 * i) * (s8)(b >> (8 * i + (high ? 16 : 0))));
    return c;
}
#endif

PTX_OP(u32, ptx_fns, (u32 m, u32 b, s32 n), "fns.b32 %0, %1, %2, %3;", "r",
       ("r"(m), "r"(b), "r"(n)), host_nth_bit(m, b, n))
PTX_OP(u32, ptx_bfind_shift_s32, (u32 a), "bfind.shiftamt.s32 %0, %1;", "r", ("r"(a)),
       ((s32)a < 0 ? ~a : a) ? 31 - ptx_host_top_bit((s32)a < 0 ? (u32)~a : a) : ~0u)
PTX_OP(u32, ptx_bfind_s64, (u64 a), "bfind.s64 %0, %1;", "r", ("l"(a)),
       ptx_host_top_bit((s64)a < 0 ? ~a : a))
PTX_OP(u32, ptx_bfind_shift_s64, (u64 a), "bfind.shiftamt.s64 %0, %1;", "r", ("l"(a)),
       ((s64)a < 0 ? ~a : a) ? 63 - ptx_host_top_bit((s64)a < 0 ? ~a : a) : ~0u)
PTX_OP(u32, ptx_bfind_shift_u64, (u64 a), "bfind.shiftamt.u64 %0, %1;", "r", ("l"(a)),
       a ? 63 - ptx_host_top_bit(a) : ~0u)
PTX_OP(u32, ptx_mul24_hi_u32, (u32 a, u32 b), "mul24.hi.u32 %0, %1, %2;", "r", ("r"(a), "r"(b)),
       (u64)(a & 0xffffff) * (b & 0xffffff) >> 16)
PTX_OP(u32, ptx_mul24_hi_s32, (u32 a, u32 b), "mul24.hi.s32 %0, %1, %2;", "r", ("r"(a), "r"(b)),
       (u64)((s64)host_low24(a) * host_low24(b)) >> 16)
PTX_OP(u32, ptx_mul24_lo_s32, (u32 a, u32 b), "mul24.lo.s32 %0, %1, %2;", "r", ("r"(a), "r"(b)),
       (u64)((s64)host_low24(a) * host_low24(b)))
PTX_OP(u32, ptx_mad24_lo_u32, (u32 a, u32 b, u32 c), "mad24.lo.u32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), (a & 0xffffff) * (b & 0xffffff) + c)
PTX_OP(u32, ptx_vabsdiff4, (u32 a, u32 b, u32 c), "vabsdiff4.u32.u32.u32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), host_abs_diff_bytes(a, b) | (c & 0))
PTX_OP(u32, ptx_vabsdiff4_add, (u32 a, u32 b, u32 c), "vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;",
       "r", ("r"(a), "r"(b), "r"(c)), host_abs_diff_sum(a, b, c))
PTX_OP(u32, ptx_dp2a_lo, (u32 a, u32 b, u32 c), "dp2a.lo.s32.s32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), host_two_products(a, b, c, false))
PTX_OP(u32, ptx_dp2a_hi, (u32 a, u32 b, u32 c), "dp2a.hi.s32.s32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), host_two_products(a, b, c, true))
PTX_OP(u32, ptx_mad_wide_u16, (u16 a, u16 b, u32 c), "mad.wide.u16 %0, %1, %2, %3;", "r",
       ("h"(a), "h"(b), "r"(c)), (u32)a *b + c)
PTX_OP(u32, ptx_mad_wide_s16, (u16 a, u16 b, u32 c), "mad.wide.s16 %0, %1, %2, %3;", "r",
       ("h"(a), "h"(b), "r"(c)), (u32)((s16)a *(s16)b) + c)
PTX_OP(u16, ptx_mul_hi_u16, (u16 a, u16 b), "mul.hi.u16 %0, %1, %2;", "h", ("h"(a), "h"(b)),
       (u32)a *b >> 16)
PTX_OP(u16, ptx_mul_hi_s16, (u16 a, u16 b), "mul.hi.s16 %0, %1, %2;", "h", ("h"(a), "h"(b)),
       (s16)a *(s16)b >> 16)
PTX_OP(u32, ptx_slct_s32, (u32 a, u32 b, s32 c), "slct.b32.s32 %0, %1, %2, %3;", "r",
       ("r"(a), "r"(b), "r"(c)), c >= 0 ? a : b)
PTX_OP(float, ptx_slct_f32, (float a, float b, float c), "slct.f32.f32 %0, %1, %2, %3;", "f",
       ("f"(a), "f"(b), "f"(c)), c >= 0 ? a : b)
PTX_OP(u32, ptx_set_lt_f32, (float a, float b), "set.lt.u32.f32 %0, %1, %2;", "r", ("f"(a), "f"(b)),
       a < b ? ~0u : 0)

KERNEL rare_bits(u32 *out, const u64 *a, const s8 *n)
{
    int i = global_thread();
    out[i * 5] = ptx_fns((u32)a[i], (u32)i & 31, n[i] % 12);
    out[i * 5 + 1] = ptx_bfind_shift_s32((u32)a[i]);
    out[i * 5 + 2] = ptx_bfind_s64(a[i]);
    out[i * 5 + 3] = ptx_bfind_shift_s64(a[i]);
    out[i * 5 + 4] = ptx_bfind_shift_u64(a[i]);
}
CORPUS(rare_bits, grid(8), block(128), out<u32>(5120), in<u64>(1024, special(511)),
       in<s8>(1024, bits(512)))

KERNEL rare_products(u32 *out, const u32 *a, const u32 *b)
{
    int i = global_thread();
    u32 x = a[i], y = b[i];
    out[i * 12] = ptx_mul24_hi_u32(x, y);
    out[i * 12 + 1] = ptx_mul24_hi_s32(x, y);
    out[i * 12 + 2] = ptx_mul24_lo_s32(x, y);
    out[i * 12 + 3] = ptx_mad24_lo_u32(x, y, (u32)i);
    out[i * 12 + 4] = ptx_vabsdiff4(x, y, 5);
    out[i * 12 + 5] = ptx_vabsdiff4_add(x, y, (u32)i);
    out[i * 12 + 6] = ptx_dp2a_lo(x, y, (u32)i);
    out[i * 12 + 7] = ptx_dp2a_hi(x, y, (u32)i);
    out[i * 12 + 8] = ptx_mad_wide_u16((u16)x, (u16)y, x);
    out[i * 12 + 9] = ptx_mad_wide_s16((u16)x, (u16)y, y);
    out[i * 12 + 10] = ptx_mul_hi_u16((u16)x, (u16)y);
    out[i * 12 + 11] = ptx_mul_hi_s16((u16)x, (u16)y);
}
CORPUS(rare_products, grid(8), block(128), out<u32>(12288), in<u32>(1024, bits(513)),
       in<u32>(1024, special(514)))

/* Two predicates from one comparison, combined with a third. */
KERNEL rare_two_predicates(u32 *out, const s32 *a, const s32 *b)
{
    int i = global_thread();
    u32 r = (u32)i & 1, s = 0;
#ifdef __CUDACC__
    asm("{.reg .pred p, q, r; .reg .u32 x;\n\t"
        "setp.ne.u32 r, %3, 0;\n\t"
        "setp.lt.and.s32 p|q, %1, %2, r; selp.u32 x, 1, 0, p; or.b32 %0, %0, x;\n\t"
        "selp.u32 x, 2, 0, q; or.b32 %0, %0, x;\n\t"
        "setp.eq.or.s32 p|q, %1, %2, r; selp.u32 x, 4, 0, p; or.b32 %0, %0, x;\n\t"
        "selp.u32 x, 8, 0, q; or.b32 %0, %0, x;\n\t"
        "setp.gt.xor.s32 p|q, %1, %2, !r; selp.u32 x, 16, 0, p; or.b32 %0, %0, x;\n\t"
        "selp.u32 x, 32, 0, q; or.b32 %0, %0, x;}"
        : "+r"(s)
        : "r"(a[i]), "r"(b[i]), "r"(r));
#else
    bool c = r != 0, lt = a[i]<b[i], eq = a[i] == b[i], gt = a[i]> b[i];
    s = (lt && c) | (!lt && c) << 1 | (eq || c) << 2 | (!eq || c) << 3 | (gt != !c) << 4 |
        (!gt != !c) << 5;
#endif
    out[i] = s;
}
CORPUS(rare_two_predicates, grid(4), block(128), out<u32>(512), in<s32>(512, range(-3, 3, 515)),
       in<s32>(512, range(-3, 3, 516)))

KERNEL rare_choices(u32 *out, float *f, const s32 *a, const float *b)
{
    int i = global_thread();
    out[i * 2] = ptx_slct_s32((u32)i, ~(u32)i, a[i]);
    out[i * 2 + 1] = ptx_set_lt_f32(b[i], b[(i + 1) & 1023]);
    f[i] = ptx_slct_f32(1.0f, 2.0f, b[i]);
}
CORPUS(rare_choices, grid(8), block(128), out<u32>(2048), out<float>(1024),
       in<s32>(1024, special(517)), in<float>(1024, special(518)))

KERNEL rare_test_property(u32 *out, const float *a, const double *b)
{
    int i = global_thread();
    u32 r = 0;
#ifdef __CUDACC__
#define TESTP(bit, what)                                                                           \
    asm("{.reg .pred p; .reg .u32 x; testp." what ".f32 p, %1; selp.u32 x, " #bit                  \
        ", 0, p; or.b32 %0, %0, x;}"                                                               \
        : "+r"(r)                                                                                  \
        : "f"(a[i]));                                                                              \
    asm("{.reg .pred p; .reg .u32 x; testp." what ".f64 p, %1; selp.u32 x, " #bit                  \
        ", 0, p; shl.b32 x, x, 8; or.b32 %0, %0, x;}"                                              \
        : "+r"(r)                                                                                  \
        : "d"(b[i]));
    TESTP(1, "finite")
    TESTP(2, "infinite")
    TESTP(4, "number")
    TESTP(8, "notanumber")
    TESTP(16, "normal")
    TESTP(32, "subnormal")
#else
    int c[2] = {std::fpclassify(a[i]), std::fpclassify(b[i])};
    for (int k = 0; k < 2; k++) {
        u32 nan = c[k] == FP_NAN, inf = c[k] == FP_INFINITE;
        r |= ((u32)(!nan && !inf) | inf << 1 | (u32)!nan << 2 | nan << 3 |
              (u32)(c[k] == FP_NORMAL || c[k] == FP_ZERO) << 4 | (u32)(c[k] == FP_SUBNORMAL) << 5)
             << 8 * k;
    }
#endif
    out[i] = r;
}
CORPUS(rare_test_property, grid(8), block(128), out<u32>(1024), in<float>(1024, special(519)),
       in<double>(1024, special(520)))

/* Four limbs through the carry flag, every link with a carry in and out. */
KERNEL rare_carry_chain(u32 *out, const u32 *a, const u32 *b)
{
    int i = global_thread();
    const u32 *x = a + i * 4, *y = b + i * 4;
    u32 *r = out + i * 9;
#ifdef __CUDACC__
    asm volatile("add.cc.u32 %0, %4, %8;\n\taddc.cc.u32 %1, %5, %9;\n\t"
                 "addc.cc.u32 %2, %6, %10;\n\taddc.u32 %3, %7, %11;"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]),
                   "r"(y[3]));
    asm volatile("mad.lo.cc.u32 %0, %5, %6, %7;\n\tmadc.hi.cc.u32 %1, %5, %6, %8;\n\t"
                 "madc.lo.cc.u32 %2, %5, %9, %7;\n\tmadc.hi.cc.u32 %3, %5, %9, %8;\n\t"
                 "addc.u32 %4, %7, 0;"
                 : "=r"(r[4]), "=r"(r[5]), "=r"(r[6]), "=r"(r[7]), "=r"(r[8])
                 : "r"(x[0]), "r"(y[0]), "r"(x[1]), "r"(y[1]), "r"(y[2]));
#else
    u64 carry = 0;
    for (int k = 0; k < 4; k++) {
        u64 s = (u64)x[k] + y[k] + carry;
        r[k] = (u32)s, carry = s >> 32;
    }
    u64 p = (u64)x[0] * y[0], q = (u64)x[0] * y[2];
    u32 add[5] = {x[1], y[1], x[1], y[1], x[1]};
    u32 part[5] = {(u32)p, (u32)(p >> 32), (u32)q, (u32)(q >> 32), 0};
    carry = 0;
    for (int k = 0; k < 5; k++) {
        u64 s = (u64)part[k] + add[k] + carry;
        r[4 + k] = (u32)s, carry = s >> 32;
    }
#endif
}
CORPUS(rare_carry_chain, grid(4), block(128), out<u32>(512 * 9), in<u32>(2048, special(521)),
       in<u32>(2048, special(522)))

/* Registers taken apart and put together. */
KERNEL rare_parts(u64 *out, const u64 *a)
{
    int i = global_thread();
    u64 x = a[i], y, z;
#ifdef __CUDACC__
    asm("{.reg .u16 a, b, c, d; mov.b64 {a, b, c, d}, %1; mov.b64 %0, {d, b, a, c};}"
        : "=l"(y)
        : "l"(x));
    asm("{.reg .u32 a, b; .reg .u16 c, d; mov.b64 {a, b}, %1; mov.b32 {c, d}, a;\n\t"
        "mov.b32 a, {d, c}; mov.b64 %0, {b, a};}"
        : "=l"(z)
        : "l"(x));
#else
    u64 p[4] = {x & 0xffff, x >> 16 & 0xffff, x >> 32 & 0xffff, x >> 48};
    y = p[3] | p[1] << 16 | p[0] << 32 | p[2] << 48;
    z = x >> 32 | p[1] << 32 | p[0] << 48;
#endif
    out[i * 2] = y;
    out[i * 2 + 1] = z;
}
CORPUS(rare_parts, grid(2), block(128), out<u64>(512), in<u64>(256, bits(523)))
