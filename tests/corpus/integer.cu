// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Whole-number arithmetic of every width.
#include "corpus.h"

#define N 1024

/* Sum, difference, product, negation and complement, wrapping. */
#define BASIC(T, U)                                                                                \
    KERNEL integer_basic_##T(T *out, const T *a, const T *b)                                       \
    {                                                                                              \
        int i = global_thread();                                                                   \
        U x = (U)a[i], y = (U)b[i];                                                                \
        out[i * 5] = (T)(U)(x + y);                                                                \
        out[i * 5 + 1] = (T)(U)(x - y);                                                            \
        out[i * 5 + 2] = (T)(U)((u64)x * (u64)y);                                                  \
        out[i * 5 + 3] = (T)(U)(0 - x);                                                            \
        out[i * 5 + 4] = (T)(U)(~x);                                                               \
    }                                                                                              \
    CORPUS(integer_basic_##T, grid(N / 128), block(128), out<T>(N * 5), in<T>(N, special(1)),      \
           in<T>(N, special(2)))
BASIC(u8, u8)
BASIC(s8, u8)
BASIC(u16, u16)
BASIC(s16, u16)
BASIC(u32, u32)
BASIC(s32, u32)
BASIC(u64, u64)
BASIC(s64, u64)

/* Quotient and remainder; the divisor is made neither 0 nor -1. */
#define DIVIDE(T)                                                                                  \
    KERNEL integer_divide_##T(T *out, const T *a, const T *b)                                      \
    {                                                                                              \
        int i = global_thread();                                                                   \
        T x = a[i], y = b[i];                                                                      \
        if (y == 0 || y == (T)-1)                                                                  \
            y = 7;                                                                                 \
        out[i * 2] = (T)(x / y);                                                                   \
        out[i * 2 + 1] = (T)(x % y);                                                               \
    }                                                                                              \
    CORPUS(integer_divide_##T, grid(N / 64), block(64), out<T>(N * 2), in<T>(N, special(3)),       \
           in<T>(N, special(4)))
DIVIDE(u8)
DIVIDE(s8)
DIVIDE(u16)
DIVIDE(s16)
DIVIDE(u32)
DIVIDE(s32)
DIVIDE(u64)
DIVIDE(s64)

/* Numbers of 128 bits, the high word first. Compilers divide them by subtractions with carries. */
#define DIVIDE_WIDE(T, name)                                                                       \
    KERNEL integer_divide_##name(u64 *out, const u64 *a, const u64 *b)                             \
    {                                                                                              \
        int i = global_thread();                                                                   \
        T x = (T)((unsigned __int128)a[i * 2] << 64 | a[i * 2 + 1]);                               \
        T y = (T)((unsigned __int128)b[i * 2] << 64 | b[i * 2 + 1]) >> (i & 127);                  \
        if (y == 0 || y == (T)-1)                                                                  \
            y = 7;                                                                                 \
        T quotient = x / y, rest = x % y;                                                          \
        out[i * 4] = (u64)((unsigned __int128)quotient >> 64);                                     \
        out[i * 4 + 1] = (u64)quotient;                                                            \
        out[i * 4 + 2] = (u64)((unsigned __int128)rest >> 64);                                     \
        out[i * 4 + 3] = (u64)rest;                                                                \
    }                                                                                              \
    CORPUS(integer_divide_##name, grid(4), block(64), out<u64>(256 * 4), in<u64>(512, special(5)), \
           in<u64>(512, bits(6)))
DIVIDE_WIDE(unsigned __int128, u128)
DIVIDE_WIDE(__int128, s128)

/* Division by constants, which compilers turn into multiplications. */
KERNEL integer_divide_constant(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i];
    out[i * 6] = x / 3;
    out[i * 6 + 1] = x % 10;
    out[i * 6 + 2] = x / 641;
    out[i * 6 + 3] = (u32)((s32)x / 7);
    out[i * 6 + 4] = (u32)((s32)x % 16);
    out[i * 6 + 5] = (u32)((s32)x / -5);
}
CORPUS(integer_divide_constant, grid(8), block(128), out<u32>(1024 * 6), in<u32>(1024, special(5)))

KERNEL integer_multiply_high(u64 *out, const u64 *a, const u64 *b)
{
    int i = global_thread();
    u64 x = a[i], y = b[i];
    out[i * 4] = (u64)(s64)__mulhi((int)x, (int)y);
    out[i * 4 + 1] = __umulhi((u32)x, (u32)y);
    out[i * 4 + 2] = (u64)__mul64hi((s64)x, (s64)y);
    out[i * 4 + 3] = __umul64hi(x, y);
}
CORPUS(integer_multiply_high, grid(8), block(128), out<u64>(4096), in<u64>(1024, special(6)),
       in<u64>(1024, special(7)))

KERNEL integer_multiply_wide(u64 *out, const u32 *a, const u32 *b, const s16 *c)
{
    int i = global_thread();
    out[i * 4] = (u64)a[i] * b[i];
    out[i * 4 + 1] = (u64)((s64)(s32)a[i] * (s32)b[i]);
    out[i * 4 + 2] = (u64)a[i] * b[i] + out[i * 4];
    out[i * 4 + 3] = (u64)(s64)(c[i] * c[(i + 1) % 1024]);
}
CORPUS(integer_multiply_wide, grid(8), block(128), out<u64>(4096), in<u32>(1024, special(8)),
       in<u32>(1024, special(9)), in<s16>(1024, special(10)))

KERNEL integer_multiply_24(u32 *out, const u32 *a, const u32 *b)
{
    int i = global_thread();
    out[i * 2] = (u32)__mul24((int)a[i], (int)b[i]);
    out[i * 2 + 1] = __umul24(a[i], b[i]);
}
CORPUS(integer_multiply_24, grid(4), block(256), out<u32>(2048), in<u32>(1024, special(11)),
       in<u32>(1024, bits(12)))

KERNEL integer_average(u32 *out, const u32 *a, const u32 *b)
{
    int i = global_thread();
    out[i * 4] = (u32)__hadd((int)a[i], (int)b[i]);
    out[i * 4 + 1] = (u32)__rhadd((int)a[i], (int)b[i]);
    out[i * 4 + 2] = __uhadd(a[i], b[i]);
    out[i * 4 + 3] = __urhadd(a[i], b[i]);
}
CORPUS(integer_average, grid(4), block(256), out<u32>(4096), in<u32>(1024, special(13)),
       in<u32>(1024, special(14)))

KERNEL integer_absolute_difference(u32 *out, const u32 *a, const u32 *b)
{
    int i = global_thread();
    out[i * 3] = __sad((int)a[i], (int)b[i], 5);
    out[i * 3 + 1] = __usad(a[i], b[i], 9);
    s32 x = (s32)(a[i] | 1);
    out[i * 3 + 2] = (u32)(x < 0 ? 0 - (u32)x : (u32)x);
}
CORPUS(integer_absolute_difference, grid(4), block(256), out<u32>(3072), in<u32>(1024, special(15)),
       in<u32>(1024, special(16)))

KERNEL integer_min_max(s64 *out, const s64 *a, const s64 *b)
{
    int i = global_thread();
    s64 x = a[i], y = b[i];
    out[i * 6] = min(x, y);
    out[i * 6 + 1] = max(x, y);
    out[i * 6 + 2] = (s64)min((u64)x, (u64)y);
    out[i * 6 + 3] = min((s32)x, (s32)y);
    out[i * 6 + 4] = max((u32)x, (u32)y);
    out[i * 6 + 5] = max((s32)(s16)x, (s32)(s16)y);
}
CORPUS(integer_min_max, grid(8), block(128), out<s64>(6144), in<s64>(1024, special(17)),
       in<s64>(1024, special(18)))

KERNEL integer_dot_product(s32 *out, const s32 *a, const s32 *b)
{
    int i = global_thread();
    out[i * 2] = __dp4a(a[i], b[i], i);
    out[i * 2 + 1] = (s32)__dp4a((u32)a[i], (u32)b[i], (u32)i);
}
CORPUS(integer_dot_product, grid(8), block(128), out<s32>(2048), in<s32>(1024, bits(19)),
       in<s32>(1024, bits(20)))

/* 256-bit sums and products by limbs: carries by comparison. */
KERNEL integer_limbs(u64 *out, const u64 *a, const u64 *b)
{
    int i = global_thread();
    u64 carry = 0, product[8] = {0};
    for (int k = 0; k < 4; k++) {
        u64 s = a[i * 4 + k] + carry;
        carry = s < carry;
        s += b[i * 4 + k];
        carry += s < b[i * 4 + k];
        out[i * 12 + k] = s;
    }
    for (int j = 0; j < 4; j++) {
        u64 high = 0;
        for (int k = 0; k < 4; k++) {
            u64 lo = a[i * 4 + j] * b[i * 4 + k], hi = __umul64hi(a[i * 4 + j], b[i * 4 + k]);
            u64 t = product[j + k] + lo;
            hi += t < lo;
            t += high;
            hi += t < high;
            product[j + k] = t;
            high = hi;
        }
        product[j + 4] = high;
    }
    for (int k = 0; k < 8; k++)
        out[i * 12 + 4 + k] = product[k];
}
CORPUS(integer_limbs, grid(2), block(64), out<u64>(128 * 12), in<u64>(512, bits(21)),
       in<u64>(512, special(22)))

KERNEL integer_power_mod(u64 *out, const u32 *base, const u32 *exponent, u32 modulus)
{
    int i = global_thread();
    u64 result = 1, b = base[i] % modulus;
    for (u32 e = exponent[i]; e; e >>= 1) {
        if (e & 1)
            result = result * b % modulus;
        b = b * b % modulus;
    }
    out[i] = result;
}
CORPUS(integer_power_mod, grid(4), block(64), out<u64>(256), in<u32>(256, bits(23)),
       in<u32>(256, bits(24)), value(4294967291u))

KERNEL integer_gcd(u64 *out, const u64 *a, const u64 *b)
{
    int i = global_thread();
    u64 x = a[i], y = b[i];
    while (y) {
        u64 r = x % y;
        x = y;
        y = r;
    }
    out[i] = x;
}
CORPUS(integer_gcd, grid(4), block(64), out<u64>(256), in<u64>(256, special(25)),
       in<u64>(256, bits(26)))
