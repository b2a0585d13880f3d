/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Compiled once for each instruction set: exec_values_v3_x86_64.c and exec_values_v4_x86_64.c
 * include this file. So one binary runs on any x86-64, and uses wide vectors where there are any.
 * For aarch64 it is compiled once, because all these processors have the same vectors.
 */
#include <math.h>

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/exec_half.h"

#ifndef EXEC_TABLE
#define EXEC_TABLE exec_values_v1
#endif

static inline float flush_subnormal(float x)
{
    uint32_t u = float_bits(x);
    return bits_float((u & 0x7f800000) == 0 ? u & 0x80000000 : u);
}

/* They are equal, so at most the sign of a zero differs. */
static inline float either_32(float a, float b)
{
    return bits_float(float_bits(a) | float_bits(b));
}
static inline float both_32(float a, float b)
{
    return bits_float(float_bits(a) & float_bits(b));
}
static inline double either_64(double a, double b)
{
    return bits_double(double_bits(a) | double_bits(b));
}
static inline double both_64(double a, double b)
{
    return bits_double(double_bits(a) & double_bits(b));
}

#define fma_32   __builtin_fmaf
#define fma_64   __builtin_fma
#define sqrt_32  __builtin_sqrtf
#define sqrt_64  __builtin_sqrt
#define rint_32  __builtin_rintf
#define rint_64  __builtin_rint
#define trunc_32 __builtin_truncf
#define trunc_64 __builtin_trunc
#define floor_32 __builtin_floorf
#define floor_64 __builtin_floor
#define ceil_32  __builtin_ceilf
#define ceil_64  __builtin_ceil

/* A NaN gives 0 if binary32 is converted to 32 bits, and otherwise only the top bit (PTX ISA
 * 9.0, cvt). */
#define NAN_WORD_32(top) 0
#define NAN_WORD_64(top) (top)

/* A value out of range is clamped, as PTX demands; C leaves it undefined. Callers handle NaN. */
static inline int32_t to_s32(double x)
{
    return x != x ? 0 : x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : (int32_t)x;
}
static inline uint32_t to_u32(double x)
{
    return !(x > 0) ? 0 : x >= 4294967295.0 ? UINT32_MAX : (uint32_t)(int64_t)x;
}
static inline int64_t to_s64(double x)
{
    return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}
static inline uint64_t to_u64(double x)
{
    return !(x > 0) ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

static inline int32_t clamp_s32(int64_t x)
{
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}

static inline uint32_t reverse_32(uint32_t x)
{
    x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
    x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(x);
}

static inline uint32_t find_64(uint64_t x, uint32_t top)
{
    (void)top;
    return x ? 63 - (uint32_t)__builtin_clzll(x) : ~0u;
}

/* bfe: position and length are bytes; beyond the top the sign (or 0) fills. */
static inline uint64_t extract_bits(uint64_t a, uint32_t b, uint32_t c, uint32_t bits,
                                    bool is_signed)
{
    uint32_t position = b & 0xff, length = c & 0xff, top = bits - 1;
    if (length == 0)
        return 0;
    uint32_t last = position + length - 1 < top ? position + length - 1 : top;
    uint64_t sign = is_signed ? a >> last & 1 : 0;
    uint64_t mask = length > 63 ? ~UINT64_C(0) : (UINT64_C(1) << length) - 1;
    uint64_t field = position > top ? 0 : (a >> position) & mask;
    uint32_t have = position > top ? 0 : last - position + 1;
    if (sign && have < 64)
        field |= ~UINT64_C(0) << have;
    return field;
}

/* szext: the low bits of a, as many as b says, extended by their sign or by zeros. */
static inline uint32_t extend_low(uint32_t a, uint32_t b, bool wrap, bool is_signed)
{
    uint32_t length = wrap ? b & 31 : b > 32 ? 32 : b;
    if (length == 0)
        return 0;
    uint32_t top = a << (32 - length);
    return is_signed ? (uint32_t)((int32_t)top >> (32 - length)) : top >> (32 - length);
}

static inline uint32_t table_3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t m[8];
    for (int k = 0; k < 8; k++)
        m[k] = 0u - (table >> k & 1);
    return (~a & ~b & ~c & m[0]) | (~a & ~b & c & m[1]) | (~a & b & ~c & m[2]) |
           (~a & b & c & m[3]) | (a & ~b & ~c & m[4]) | (a & ~b & c & m[5]) | (a & b & ~c & m[6]) |
           (a & b & c & m[7]);
}

static inline uint32_t permute_select(uint32_t c, uint32_t mode)
{
    static const uint16_t rows[7][4] = {
        {0, 0, 0, 0},
        {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
        {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
        {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
        {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
        {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
        {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
    };
    return mode == 0 ? c : rows[mode < 7 ? mode : 0][c & 3];
}

static inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t mode)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t select = permute_select(c, mode), out = 0;
    for (int i = 0; i < 4; i++) {
        uint32_t s = select >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (s & 7))) & 0xff;
        if (s & 8)
            byte = byte & 0x80 ? 0xff : 0;
        out |= byte << (8 * i);
    }
    return out;
}

/* aux: bit 0 a is signed, bit 1 b is signed, bit 2 (dp2a) high half of b. */
static inline uint32_t dot_4(uint32_t a, uint32_t b, uint32_t c, uint32_t how)
{
    for (int i = 0; i < 4; i++) {
        uint32_t x = a >> (8 * i) & 0xff, y = b >> (8 * i) & 0xff;
        x = how & 1 ? (uint32_t)(int32_t)(int8_t)x : x;
        y = how & 2 ? (uint32_t)(int32_t)(int8_t)y : y;
        c += x * y;
    }
    return c;
}

static inline uint32_t dot_2(uint32_t a, uint32_t b, uint32_t c, uint32_t how)
{
    for (int i = 0; i < 2; i++) {
        uint32_t x = a >> (16 * i) & 0xffff, y = b >> (8 * i + (how & 4 ? 16 : 0)) & 0xff;
        x = how & 1 ? (uint32_t)(int32_t)(int16_t)x : x;
        y = how & 2 ? (uint32_t)(int32_t)(int8_t)y : y;
        c += x * y;
    }
    return c;
}

/* The offset-th set bit of mask at or above (offset > 0), or at or below, base. */
static inline uint32_t find_nth(uint32_t mask, uint32_t base, int32_t offset)
{
    base &= 31;
    if (offset == 0)
        return mask >> base & 1 ? base : ~0u;
    int step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? offset : -(int64_t)offset;
    for (int at = (int)base; at >= 0 && at < 32; at += step) {
        if (mask >> at & 1 && --left == 0)
            return (uint32_t)at;
    }
    return ~0u;
}

#define half_min(a, b, x, y, from)                                                                 \
    ((x) != (x)   ? ((y) != (y) ? (uint16_t)0x7fff : (b))                                          \
     : (y) != (y) ? (a)                                                                            \
     : (x) < (y)  ? (a)                                                                            \
     : (y) < (x)  ? (b)                                                                            \
                  : (uint16_t)((a) | (b)))
#define half_max(a, b, x, y, from)                                                                 \
    ((x) != (x)   ? ((y) != (y) ? (uint16_t)0x7fff : (b))                                          \
     : (y) != (y) ? (a)                                                                            \
     : (x) > (y)  ? (a)                                                                            \
     : (y) > (x)  ? (b)                                                                            \
                  : (uint16_t)((a) & (b)))

#define BEGIN(name)                                                                                \
    static void value_##name(const struct warp *w, const struct op *op, void *out)                 \
    {                                                                                              \
        const uint32_t aux = op->aux;                                                              \
        const uint64_t imm = op->imm;                                                              \
        (void)aux;                                                                                 \
        (void)imm;

#define V1(name, D, A, x)                                                                          \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    D *pd = out;                                                                                   \
    EACH_LANE(i)                                                                                   \
    {                                                                                              \
        A a = pa[i];                                                                               \
        pd[i] = (D)(x);                                                                            \
    }                                                                                              \
    }
#define V2(name, D, A, B, x)                                                                       \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    const B *pb = slot_at(w, op->b);                                                               \
    D *pd = out;                                                                                   \
    EACH_LANE(i)                                                                                   \
    {                                                                                              \
        A a = pa[i];                                                                               \
        B b = pb[i];                                                                               \
        pd[i] = (D)(x);                                                                            \
    }                                                                                              \
    }
#define V3(name, D, A, B, C, x)                                                                    \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    const B *pb = slot_at(w, op->b);                                                               \
    const C *pc = slot_at(w, op->c);                                                               \
    D *pd = out;                                                                                   \
    EACH_LANE(i)                                                                                   \
    {                                                                                              \
        A a = pa[i];                                                                               \
        B b = pb[i];                                                                               \
        C c = pc[i];                                                                               \
        pd[i] = (D)(x);                                                                            \
    }                                                                                              \
    }
#define S2(name, D, A, B, x)                                                                       \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    const B *pb = slot_at(w, op->b);                                                               \
    const uint32_t mask = *(const uint32_t *)slot_at(w, op->c);                                    \
    D *pd = out;                                                                                   \
    EACH_LANE(i)                                                                                   \
    {                                                                                              \
        A a = pa[i];                                                                               \
        B b = pb[i];                                                                               \
        D p = (D)(mask >> i & 1);                                                                  \
        pd[i] = (D)(x);                                                                            \
    }                                                                                              \
    }
#define P1(name, A, x)                                                                             \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    uint32_t bits = 0;                                                                             \
    for (int i = 0; i < LANES; i++) {                                                              \
        A a = pa[i];                                                                               \
        bits |= (uint32_t)((x) ? 1u << i : 0);                                                     \
    }                                                                                              \
    *(uint32_t *)out = bits;                                                                       \
    }
#define P2(name, A, B, x)                                                                          \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    const B *pb = slot_at(w, op->b);                                                               \
    uint32_t bits = 0;                                                                             \
    for (int i = 0; i < LANES; i++) {                                                              \
        A a = pa[i];                                                                               \
        B b = pb[i];                                                                               \
        bits |= (uint32_t)((x) ? 1u << i : 0);                                                     \
    }                                                                                              \
    *(uint32_t *)out = bits;                                                                       \
    }
#define P3(name, A, B, x)                                                                          \
    BEGIN(name)                                                                                    \
    const A *pa = slot_at(w, op->a);                                                               \
    const B *pb = slot_at(w, op->b);                                                               \
    const uint32_t mask = *(const uint32_t *)slot_at(w, op->c);                                    \
    uint32_t bits = 0;                                                                             \
    for (int i = 0; i < LANES; i++) {                                                              \
        A a = pa[i];                                                                               \
        B b = pb[i];                                                                               \
        A p = (A)(mask >> i & 1);                                                                  \
        bits |= (uint32_t)((x) ? 1u << i : 0);                                                     \
    }                                                                                              \
    *(uint32_t *)out = bits;                                                                       \
    }
#define Q2(name, x)                                                                                \
    BEGIN(name)                                                                                    \
    uint32_t a = *(const uint32_t *)slot_at(w, op->a), b = *(const uint32_t *)slot_at(w, op->b);   \
    uint32_t c = *(const uint32_t *)slot_at(w, op->c);                                             \
    (void)a;                                                                                       \
    (void)b;                                                                                       \
    (void)c;                                                                                       \
    *(uint32_t *)out = (x);                                                                        \
    }
#include "server/softgpu/exec/exec_values.inc"

#undef V1
#undef V2
#undef V3
#undef P1
#undef P2
#undef P3
#undef Q2
#undef S2
#define V1(name, D, A, x)       [VALUE_##name] = value_##name,
#define V2(name, D, A, B, x)    [VALUE_##name] = value_##name,
#define V3(name, D, A, B, C, x) [VALUE_##name] = value_##name,
#define P1(name, A, x)          [VALUE_##name] = value_##name,
#define P2(name, A, B, x)       [VALUE_##name] = value_##name,
#define P3(name, A, B, x)       [VALUE_##name] = value_##name,
#define Q2(name, x)             [VALUE_##name] = value_##name,
#define S2(name, D, A, B, x)    [VALUE_##name] = value_##name,
exec_value *const EXEC_TABLE[VALUE_COUNT] = {
#include "server/softgpu/exec/exec_values.inc"
};
