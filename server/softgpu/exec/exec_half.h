/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * exec_half: binary16 and bfloat16 arithmetic on machines without these types.
 *
 * Sums and products of two halves are exact in double. A fused multiply-add may need more bits than
 * double's 53. Its sum is therefore rounded to odd (add_odd), so that the one rounding to half
 * gives the correct result.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_HALF_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_HALF_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t double_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

static inline double bits_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

static inline uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

static inline float bits_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* PTX has one NaN for the results of f32 arithmetic, whatever the operands' bits were. */
static inline float canonical_nan(float x)
{
    return x != x ? bits_float(0x7fffffff) : x;
}

static inline float half_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
    if (exponent == 31)
        return bits_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        float f = (float)fraction * 0x1p-24f;
        return bits_float(sign | float_bits(f));
    }
    return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline float bfloat_to_float(uint16_t h)
{
    return bits_float((uint32_t)h << 16);
}

/*
 * Rounds x to a format with `fraction` explicit bits, least normal exponent `least` and largest
 * exponent `most`, in an FE_* mode. Every NaN gives 0x7fff.
 */
static inline uint16_t narrow_double(double x, int fraction, int least, int most, int mode)
{
    uint64_t bits = double_bits(x), magnitude = bits & ~(UINT64_C(1) << 63);
    bool negative = bits >> 63;
    uint16_t sign = negative ? 0x8000 : 0;
    uint16_t infinite = (uint16_t)((most - least + 2) << fraction);
    if (magnitude > UINT64_C(0x7ff0000000000000))
        return 0x7fff;
    if (magnitude == UINT64_C(0x7ff0000000000000))
        return sign | infinite;
    if (magnitude < UINT64_C(0x0010000000000000))
        magnitude = magnitude ? 1 : 0; /* far below either format: only "not zero" matters */
    int exponent = (int)(magnitude >> 52) - 1023;
    uint64_t whole = (magnitude & UINT64_C(0x000fffffffffffff)) | UINT64_C(1) << 52;
    if (magnitude <= 1) {
        whole = magnitude;
        exponent = -1022;
    }
    int drop = 52 - fraction + (exponent < least ? least - exponent : 0);
    uint64_t kept, rest, tie;
    if (drop > 62) {
        kept = 0;
        rest = whole ? 1 : 0;
        tie = 2;
    } else {
        kept = whole >> drop;
        rest = whole & ((UINT64_C(1) << drop) - 1);
        tie = UINT64_C(1) << (drop - 1);
    }
    bool up = mode == FE_TONEAREST  ? rest > tie || (rest == tie && (kept & 1))
              : mode == FE_UPWARD   ? rest && !negative
              : mode == FE_DOWNWARD ? rest && negative
                                    : false;
    kept += up;
    /* The hidden bit adds one to the exponent field, and a carry one more. */
    uint64_t field = exponent < least ? 0 : (uint64_t)(exponent - least);
    uint64_t out = (field << fraction) + kept;
    if (out >= infinite) {
        bool toward = mode == FE_TONEAREST || (mode == FE_UPWARD && !negative) ||
                      (mode == FE_DOWNWARD && negative);
        out = toward ? infinite : infinite - 1u;
    }
    return sign | (uint16_t)out;
}

/* An integer whose lowest 11 bits are 0: if they were not, the next bit is 1. It is rounded to odd,
 * also in two's complement, and double holds it. large: whether double may not hold x. */
static inline uint64_t odd_integer(uint64_t x, bool large)
{
    const uint64_t low = 0x7ff;
    return large ? (x & ~low) | (x & low ? low + 1 : 0) : x;
}

static inline uint16_t half_from_double_mode(double x, int mode)
{
    return narrow_double(x, 10, -14, 15, mode);
}

static inline uint16_t bfloat_from_double_mode(double x, int mode)
{
    return narrow_double(x, 7, -126, 127, mode);
}

static inline uint16_t half_from_double(double x)
{
    return half_from_double_mode(x, FE_TONEAREST);
}

static inline uint16_t bfloat_from_double(double x)
{
    return bfloat_from_double_mode(x, FE_TONEAREST);
}

/*
 * The formats of eight bits, e5m2 and e4m3, which lack infinity: a number beyond the largest
 * becomes that one. e5m2 has no numbers at the highest exponent, and e4m3 all but one, which is its
 * NaN.
 */
static inline uint8_t byte_from_double(double x, bool e5m2)
{
    uint16_t narrow = e5m2 ? narrow_double(x, 2, -14, 15, FE_TONEAREST)
                           : narrow_double(x, 3, -6, 8, FE_TONEAREST);
    uint16_t magnitude = narrow & 0x7fff, most = e5m2 ? 0x7b : 0x7e;
    if (x != x)
        return 0x7f;
    return (uint8_t)((narrow >> 8 & 0x80) | (magnitude < most ? magnitude : most));
}

static inline uint8_t e4m3_from_float(float x)
{
    return byte_from_double((double)x, false);
}

static inline uint8_t e5m2_from_float(float x)
{
    return byte_from_double((double)x, true);
}

static inline uint16_t half_from_e5m2(uint8_t byte)
{
    return (byte & 0x7f) > 0x7c ? 0x7fff : (uint16_t)(byte << 8); /* the upper half of a binary16 */
}

static inline uint16_t half_from_e4m3(uint8_t byte)
{
    int exponent = byte >> 3 & 15, fraction = byte & 7;
    double x = exponent ? (8 + fraction) * bits_double((uint64_t)(exponent - 10 + 1023) << 52)
                        : fraction * 0x1p-9;
    return (byte & 0x7f) == 0x7f ? 0x7fff : half_from_double(byte & 0x80 ? -x : x);
}

/* Returns a + b in double, rounded to odd. */
static inline double add_odd(double a, double b)
{
    double sum = a + b;
    double back = sum - a;
    double error = (a - (sum - back)) + (b - back);
    uint64_t bits = double_bits(sum);
    if (error == 0 || error != error || (bits & 1) || sum == 0)
        return sum;
    return bits_double(bits + ((error > 0) == (sum > 0) ? 1 : (uint64_t)-1));
}

#endif
