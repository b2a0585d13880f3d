/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * host_math: the device's mathematical functions on the host.
 *
 * Results that CUDA promises exactly are exact here (host_math.cc, with the rounding mode set).
 * Results within some ulp are computed in long double and rounded once, so
 * that all of the tolerance belongs to the device.
 */
#ifndef GPUSHARE_TESTS_CORPUS_HOST_MATH_H
#define GPUSHARE_TESTS_CORPUS_HOST_MATH_H

/* ---- one operation, rounded as the name ends ---- */
float __fadd_rn(float a, float b);
float __fsub_rn(float a, float b);
float __fmul_rn(float a, float b);
float __fdiv_rn(float a, float b);
float __fmaf_rn(float a, float b, float c);
float __frcp_rn(float a);
float __fsqrt_rn(float a);
double __dadd_rn(double a, double b);
double __dsub_rn(double a, double b);
double __dmul_rn(double a, double b);
double __ddiv_rn(double a, double b);
double __fma_rn(double a, double b, double c);
double __drcp_rn(double a);
double __dsqrt_rn(double a);
float __double2float_rn(double a);
float __int2float_rn(int a);
int __float2int_rn(float a);
int __double2int_rn(double a);
float __uint2float_rn(unsigned a);
unsigned __float2uint_rn(float a);
unsigned __double2uint_rn(double a);
float __ll2float_rn(long long a);
long long __float2ll_rn(float a);
long long __double2ll_rn(double a);
double __ll2double_rn(long long a);
float __ull2float_rn(unsigned long long a);
unsigned long long __float2ull_rn(float a);
unsigned long long __double2ull_rn(double a);
double __ull2double_rn(unsigned long long a);
float __fadd_rz(float a, float b);
float __fsub_rz(float a, float b);
float __fmul_rz(float a, float b);
float __fdiv_rz(float a, float b);
float __fmaf_rz(float a, float b, float c);
float __frcp_rz(float a);
float __fsqrt_rz(float a);
double __dadd_rz(double a, double b);
double __dsub_rz(double a, double b);
double __dmul_rz(double a, double b);
double __ddiv_rz(double a, double b);
double __fma_rz(double a, double b, double c);
double __drcp_rz(double a);
double __dsqrt_rz(double a);
float __double2float_rz(double a);
float __int2float_rz(int a);
int __float2int_rz(float a);
int __double2int_rz(double a);
float __uint2float_rz(unsigned a);
unsigned __float2uint_rz(float a);
unsigned __double2uint_rz(double a);
float __ll2float_rz(long long a);
long long __float2ll_rz(float a);
long long __double2ll_rz(double a);
double __ll2double_rz(long long a);
float __ull2float_rz(unsigned long long a);
unsigned long long __float2ull_rz(float a);
unsigned long long __double2ull_rz(double a);
double __ull2double_rz(unsigned long long a);
float __fadd_ru(float a, float b);
float __fsub_ru(float a, float b);
float __fmul_ru(float a, float b);
float __fdiv_ru(float a, float b);
float __fmaf_ru(float a, float b, float c);
float __frcp_ru(float a);
float __fsqrt_ru(float a);
double __dadd_ru(double a, double b);
double __dsub_ru(double a, double b);
double __dmul_ru(double a, double b);
double __ddiv_ru(double a, double b);
double __fma_ru(double a, double b, double c);
double __drcp_ru(double a);
double __dsqrt_ru(double a);
float __double2float_ru(double a);
float __int2float_ru(int a);
int __float2int_ru(float a);
int __double2int_ru(double a);
float __uint2float_ru(unsigned a);
unsigned __float2uint_ru(float a);
unsigned __double2uint_ru(double a);
float __ll2float_ru(long long a);
long long __float2ll_ru(float a);
long long __double2ll_ru(double a);
double __ll2double_ru(long long a);
float __ull2float_ru(unsigned long long a);
unsigned long long __float2ull_ru(float a);
unsigned long long __double2ull_ru(double a);
double __ull2double_ru(unsigned long long a);
float __fadd_rd(float a, float b);
float __fsub_rd(float a, float b);
float __fmul_rd(float a, float b);
float __fdiv_rd(float a, float b);
float __fmaf_rd(float a, float b, float c);
float __frcp_rd(float a);
float __fsqrt_rd(float a);
double __dadd_rd(double a, double b);
double __dsub_rd(double a, double b);
double __dmul_rd(double a, double b);
double __ddiv_rd(double a, double b);
double __fma_rd(double a, double b, double c);
double __drcp_rd(double a);
double __dsqrt_rd(double a);
float __double2float_rd(double a);
float __int2float_rd(int a);
int __float2int_rd(float a);
int __double2int_rd(double a);
float __uint2float_rd(unsigned a);
unsigned __float2uint_rd(float a);
unsigned __double2uint_rd(double a);
float __ll2float_rd(long long a);
long long __float2ll_rd(float a);
long long __double2ll_rd(double a);
double __ll2double_rd(long long a);
float __ull2float_rd(unsigned long long a);
unsigned long long __float2ull_rd(float a);
unsigned long long __double2ull_rd(double a);
double __ull2double_rd(unsigned long long a);
float __frsqrt_rn(float a);
static inline double __int2double_rn(int a)
{
    return a;
}
static inline double __uint2double_rn(unsigned a)
{
    return a;
}
float __saturatef(float a);

/* -0 is below +0, and a number wins over a NaN, as in PTX. */
float corpus_fminf(float a, float b);
float corpus_fmaxf(float a, float b);
double corpus_fmin(double a, double b);
double corpus_fmax(double a, double b);
static inline float min(float a, float b)
{
    return corpus_fminf(a, b);
}
static inline float max(float a, float b)
{
    return corpus_fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return corpus_fmin(a, b);
}
static inline double max(double a, double b)
{
    return corpus_fmax(a, b);
}
#define fminf(a, b) corpus_fminf(a, b)
#define fmaxf(a, b) corpus_fmaxf(a, b)
#define fmin(a, b)  corpus_fmin(a, b)
#define fmax(a, b)  corpus_fmax(a, b)

/* ---- functions of the host's libm, by way of long double ---- */
typedef long double corpus_long;

#define sin(x)       ((double)sinl((corpus_long)(x)))
#define sinf(x)      ((float)sinl((corpus_long)(x)))
#define cos(x)       ((double)cosl((corpus_long)(x)))
#define cosf(x)      ((float)cosl((corpus_long)(x)))
#define tan(x)       ((double)tanl((corpus_long)(x)))
#define tanf(x)      ((float)tanl((corpus_long)(x)))
#define asin(x)      ((double)asinl((corpus_long)(x)))
#define asinf(x)     ((float)asinl((corpus_long)(x)))
#define acos(x)      ((double)acosl((corpus_long)(x)))
#define acosf(x)     ((float)acosl((corpus_long)(x)))
#define atan(x)      ((double)atanl((corpus_long)(x)))
#define atanf(x)     ((float)atanl((corpus_long)(x)))
#define sinh(x)      ((double)sinhl((corpus_long)(x)))
#define sinhf(x)     ((float)sinhl((corpus_long)(x)))
#define cosh(x)      ((double)coshl((corpus_long)(x)))
#define coshf(x)     ((float)coshl((corpus_long)(x)))
#define tanh(x)      ((double)tanhl((corpus_long)(x)))
#define tanhf(x)     ((float)tanhl((corpus_long)(x)))
#define asinh(x)     ((double)asinhl((corpus_long)(x)))
#define asinhf(x)    ((float)asinhl((corpus_long)(x)))
#define acosh(x)     ((double)acoshl((corpus_long)(x)))
#define acoshf(x)    ((float)acoshl((corpus_long)(x)))
#define atanh(x)     ((double)atanhl((corpus_long)(x)))
#define atanhf(x)    ((float)atanhl((corpus_long)(x)))
#define exp(x)       ((double)expl((corpus_long)(x)))
#define expf(x)      ((float)expl((corpus_long)(x)))
#define exp2(x)      ((double)exp2l((corpus_long)(x)))
#define exp2f(x)     ((float)exp2l((corpus_long)(x)))
#define expm1(x)     ((double)expm1l((corpus_long)(x)))
#define expm1f(x)    ((float)expm1l((corpus_long)(x)))
#define log(x)       ((double)logl((corpus_long)(x)))
#define logf(x)      ((float)logl((corpus_long)(x)))
#define log2(x)      ((double)log2l((corpus_long)(x)))
#define log2f(x)     ((float)log2l((corpus_long)(x)))
#define log10(x)     ((double)log10l((corpus_long)(x)))
#define log10f(x)    ((float)log10l((corpus_long)(x)))
#define log1p(x)     ((double)log1pl((corpus_long)(x)))
#define log1pf(x)    ((float)log1pl((corpus_long)(x)))
#define cbrt(x)      ((double)cbrtl((corpus_long)(x)))
#define cbrtf(x)     ((float)cbrtl((corpus_long)(x)))
#define erf(x)       ((double)erfl((corpus_long)(x)))
#define erff(x)      ((float)erfl((corpus_long)(x)))
#define erfc(x)      ((double)erfcl((corpus_long)(x)))
#define erfcf(x)     ((float)erfcl((corpus_long)(x)))
#define lgamma(x)    ((double)lgammal((corpus_long)(x)))
#define lgammaf(x)   ((float)lgammal((corpus_long)(x)))
#define tgamma(x)    ((double)tgammal((corpus_long)(x)))
#define tgammaf(x)   ((float)tgammal((corpus_long)(x)))
#define j0(x)        ((double)j0l((corpus_long)(x)))
#define j0f(x)       ((float)j0l((corpus_long)(x)))
#define j1(x)        ((double)j1l((corpus_long)(x)))
#define j1f(x)       ((float)j1l((corpus_long)(x)))
#define y0(x)        ((double)y0l((corpus_long)(x)))
#define y0f(x)       ((float)y0l((corpus_long)(x)))
#define y1(x)        ((double)y1l((corpus_long)(x)))
#define y1f(x)       ((float)y1l((corpus_long)(x)))
#define pow(x, y)    ((double)powl((corpus_long)(x), (corpus_long)(y)))
#define powf(x, y)   ((float)powl((corpus_long)(x), (corpus_long)(y)))
#define atan2(x, y)  ((double)atan2l((corpus_long)(x), (corpus_long)(y)))
#define atan2f(x, y) ((float)atan2l((corpus_long)(x), (corpus_long)(y)))
#define hypot(x, y)  ((double)hypotl((corpus_long)(x), (corpus_long)(y)))
#define hypotf(x, y) ((float)hypotl((corpus_long)(x), (corpus_long)(y)))

static const corpus_long corpus_pi = 3.14159265358979323846264338327950288L;
corpus_long corpus_sinpi(corpus_long x);
corpus_long corpus_cospi(corpus_long x);
corpus_long corpus_erfcx(corpus_long x);
corpus_long corpus_erfinv(corpus_long x);
#define sinpi(x)    ((double)corpus_sinpi((corpus_long)(x)))
#define sinpif(x)   ((float)corpus_sinpi((corpus_long)(x)))
#define cospi(x)    ((double)corpus_cospi((corpus_long)(x)))
#define cospif(x)   ((float)corpus_cospi((corpus_long)(x)))
#define exp10(x)    ((double)exp10l((corpus_long)(x)))
#define exp10f(x)   ((float)exp10l((corpus_long)(x)))
#define rsqrt(x)    ((double)(1 / sqrtl((corpus_long)(x))))
#define rsqrtf(x)   ((float)(1 / sqrtl((corpus_long)(x))))
#define rcbrt(x)    ((double)(1 / cbrtl((corpus_long)(x))))
#define rcbrtf(x)   ((float)(1 / cbrtl((corpus_long)(x))))
#define normcdf(x)  ((double)(erfcl(-(corpus_long)(x) / sqrtl(2)) / 2))
#define normcdff(x) ((float)(erfcl(-(corpus_long)(x) / sqrtl(2)) / 2))
#define erfcx(x)    ((double)corpus_erfcx((corpus_long)(x)))
#define erfcxf(x)   ((float)corpus_erfcx((corpus_long)(x)))
#define erfinv(x)   ((double)corpus_erfinv((corpus_long)(x)))
#define erfinvf(x)  ((float)corpus_erfinv((corpus_long)(x)))
#define norm3df(x, y, z)                                                                           \
    ((float)sqrtl((corpus_long)(x) * (x) + (corpus_long)(y) * (y) + (corpus_long)(z) * (z)))
#define sincosf(x, s, c) ((void)(*(s) = sinf(x), *(c) = cosf(x)))
#define sincos(x, s, c)  ((void)(*(s) = sin(x), *(c) = cos(x)))

/* ---- the fast ones ---- */
#define __expf(x)          expf(x)
#define __exp10f(x)        exp10f(x)
#define __logf(x)          logf(x)
#define __log2f(x)         log2f(x)
#define __log10f(x)        log10f(x)
#define __sinf(x)          sinf(x)
#define __cosf(x)          cosf(x)
#define __tanf(x)          tanf(x)
#define __powf(x, y)       powf(x, y)
#define __fdividef(x, y)   ((float)((corpus_long)(x) / (y)))
#define __sincosf(x, s, c) sincosf(x, s, c)

#endif
