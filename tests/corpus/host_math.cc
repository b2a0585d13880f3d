/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Compiled with -frounding-math; operands are volatile all the same, so that no
 * operation leaves the region in which its rounding mode is set.
 */
#include <cfenv>

#include "host_cuda.h"

#undef fminf
#undef fmaxf
#undef fmin
#undef fmax

namespace
{
template <class F> auto rounded(int mode, F f)
{
    int old = fegetround();
    fesetround(mode);
    volatile auto r = f();
    fesetround(old);
    return (decltype(f()))r;
}

/* Past the ends it saturates; NaN gives 0 from float to 32 bits, else the top bit alone (PTX ISA,
 * cvt). */
template <class To, class From> To to_integer(From a, int mode)
{
    if (std::isnan(a))
        return sizeof(To) == 8 || sizeof(From) == 8 ? (To)1 << (sizeof(To) * 8 - 1) : 0;
    volatile From v = a;
    From whole = rounded(mode, [&] { return std::nearbyint((From)v); });
    const From top = std::ldexp((From)1, (int)sizeof(To) * 8 - (std::is_signed_v<To> ? 1 : 0));
    if (whole >= top)
        return std::is_signed_v<To> ? (To) ~((To)1 << (sizeof(To) * 8 - 1)) : (To) ~(To)0;
    if (std::is_signed_v<To> ? whole < -top : whole < 0)
        return std::is_signed_v<To> ? (To)((To)1 << (sizeof(To) * 8 - 1)) : (To)0;
    return (To)whole;
}
} // namespace

#define TWO(T, name, mode, expression)                                                             \
    T name(T x, T y)                                                                               \
    {                                                                                              \
        volatile T a = x, b = y;                                                                   \
        return rounded(mode, [&] { return expression; });                                          \
    }
#define ONE(To, From, name, mode, expression)                                                      \
    To name(From x)                                                                                \
    {                                                                                              \
        volatile From a = x;                                                                       \
        return rounded(mode, [&] { return expression; });                                          \
    }
#define ALL_OF(r, mode)                                                                            \
    TWO(float, __fadd_##r, mode, (float)(a + b))                                                   \
    TWO(float, __fsub_##r, mode, (float)(a - b))                                                   \
    TWO(float, __fmul_##r, mode, (float)(a * b))                                                   \
    TWO(float, __fdiv_##r, mode, (float)(a / b))                                                   \
    TWO(double, __dadd_##r, mode, (double)(a + b))                                                 \
    TWO(double, __dsub_##r, mode, (double)(a - b))                                                 \
    TWO(double, __dmul_##r, mode, (double)(a * b))                                                 \
    TWO(double, __ddiv_##r, mode, (double)(a / b))                                                 \
    ONE(float, float, __frcp_##r, mode, 1.0f / a)                                                  \
    ONE(double, double, __drcp_##r, mode, 1.0 / a)                                                 \
    ONE(float, float, __fsqrt_##r, mode, std::sqrt((float)a))                                      \
    ONE(double, double, __dsqrt_##r, mode, std::sqrt((double)a))                                   \
    ONE(float, double, __double2float_##r, mode, (float)a)                                         \
    ONE(float, int, __int2float_##r, mode, (float)a)                                               \
    ONE(float, unsigned, __uint2float_##r, mode, (float)a)                                         \
    ONE(float, long long, __ll2float_##r, mode, (float)a)                                          \
    ONE(float, unsigned long long, __ull2float_##r, mode, (float)a)                                \
    ONE(double, long long, __ll2double_##r, mode, (double)a)                                       \
    ONE(double, unsigned long long, __ull2double_##r, mode, (double)a)                             \
    float __fmaf_##r(float x, float y, float z)                                                    \
    {                                                                                              \
        volatile float a = x, b = y, c = z;                                                        \
        return rounded(mode, [&] { return std::fma((float)a, (float)b, (float)c); });              \
    }                                                                                              \
    double __fma_##r(double x, double y, double z)                                                 \
    {                                                                                              \
        volatile double a = x, b = y, c = z;                                                       \
        return rounded(mode, [&] { return std::fma((double)a, (double)b, (double)c); });           \
    }                                                                                              \
    int __float2int_##r(float a)                                                                   \
    {                                                                                              \
        return to_integer<int>(a, mode);                                                           \
    }                                                                                              \
    unsigned __float2uint_##r(float a)                                                             \
    {                                                                                              \
        return to_integer<unsigned>(a, mode);                                                      \
    }                                                                                              \
    long long __float2ll_##r(float a)                                                              \
    {                                                                                              \
        return to_integer<long long>(a, mode);                                                     \
    }                                                                                              \
    unsigned long long __float2ull_##r(float a)                                                    \
    {                                                                                              \
        return to_integer<unsigned long long>(a, mode);                                            \
    }                                                                                              \
    int __double2int_##r(double a)                                                                 \
    {                                                                                              \
        return to_integer<int>(a, mode);                                                           \
    }                                                                                              \
    unsigned __double2uint_##r(double a)                                                           \
    {                                                                                              \
        return to_integer<unsigned>(a, mode);                                                      \
    }                                                                                              \
    long long __double2ll_##r(double a)                                                            \
    {                                                                                              \
        return to_integer<long long>(a, mode);                                                     \
    }                                                                                              \
    unsigned long long __double2ull_##r(double a)                                                  \
    {                                                                                              \
        return to_integer<unsigned long long>(a, mode);                                            \
    }

ALL_OF(rn, FE_TONEAREST)
ALL_OF(rz, FE_TOWARDZERO)
ALL_OF(ru, FE_UPWARD)
ALL_OF(rd, FE_DOWNWARD)

float __frsqrt_rn(float a)
{
    return (float)(1 / sqrtl(a));
}

float __saturatef(float a)
{
    return std::isnan(a) || a <= 0 ? 0.0f : a > 1 ? 1.0f : a;
}

template <class T> static T least(T a, T b)
{
    if (std::isnan(a))
        return b;
    if (std::isnan(b))
        return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}

float corpus_fminf(float a, float b)
{
    return least(a, b);
}
float corpus_fmaxf(float a, float b)
{
    return std::isnan(a) ? b : std::isnan(b) ? a : -least(-a, -b);
}
double corpus_fmin(double a, double b)
{
    return least(a, b);
}
double corpus_fmax(double a, double b)
{
    return std::isnan(a) ? b : std::isnan(b) ? a : -least(-a, -b);
}

/* Exact at every half: reduced before it is multiplied by pi. */
corpus_long corpus_sinpi(corpus_long x)
{
    corpus_long r = fmodl(x, 2);
    if (fabsl(r) == 1 || r == 0)
        return copysignl(0, x);
    if (fabsl(r) > 0.5L)
        r = copysignl(1, r) * (fabsl(r) < 1.5L ? 1 - fabsl(r) : fabsl(r) - 2);
    return sinl(r * corpus_pi);
}
corpus_long corpus_cospi(corpus_long x)
{
    corpus_long r = fabsl(fmodl(x, 2));
    if (r == 0.5L || r == 1.5L)
        return 0;
    return r <= 0.25L || r >= 1.75L ? cosl(r * corpus_pi)
                                    : sinl((r < 1 ? 0.5L - r : r - 1.5L) * corpus_pi);
}

/* Direct up to 100 (erfcl does not underflow before); asymptotic above. */
corpus_long corpus_erfcx(corpus_long x)
{
    if (x < 100)
        return expl(x * x) * erfcl(x);
    corpus_long s = 1 / (2 * x * x);
    return (1 - s + 3 * s * s - 15 * s * s * s) / (x * sqrtl(corpus_pi));
}

/* Newton on erf from Winitzki's estimate. */
corpus_long corpus_erfinv(corpus_long x)
{
    if (fabsl(x) >= 1)
        return fabsl(x) == 1 ? copysignl(INFINITY, x) : NAN;
    if (x == 0)
        return x;
    corpus_long l = log1pl(-x * x), t = 2 / (corpus_pi * 0.147L) + l / 2;
    corpus_long y = copysignl(sqrtl(sqrtl(t * t - l / 0.147L) - t), x);
    for (int i = 0; i < 60; i++) {
        corpus_long error = x > 0 ? (1 - x) - erfcl(y) : erfcl(-y) - (1 + x);
        corpus_long step = error / (2 / sqrtl(corpus_pi) * expl(-y * y));
        y -= step;
        if (fabsl(step) <= fabsl(y) * 0x1p-62L)
            break;
    }
    return y;
}
