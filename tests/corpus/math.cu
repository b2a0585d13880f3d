// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// The mathematical library and the fast approximations, within the errors that the
// CUDA C++ Programming Guide documents, and one ulp for the reference's own rounding.
#include "corpus.h"

#define ONE(T, id, fn, low, high, seed, bound)                                                     \
    KERNEL math_##id(T *out, const T *a)                                                           \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i] = fn(a[i]);                                                                         \
    }                                                                                              \
    CORPUS(math_##id, grid(4), block(128), out<T>(512) bound, in<T>(512, range(low, high, seed)))
#define TWO(T, id, fn, low, high, low2, high2, seed, bound)                                        \
    KERNEL math_##id(T *out, const T *a, const T *b)                                               \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i] = fn(a[i], b[i]);                                                                   \
    }                                                                                              \
    CORPUS(math_##id, grid(4), block(128), out<T>(512) bound, in<T>(512, range(low, high, seed)),  \
           in<T>(512, range(low2, high2, seed + 1)))

ONE(float, sinf, sinf, -100, 100, 301, .ulp(3))
ONE(float, cosf, cosf, -100, 100, 302, .ulp(3))
/* Past 105615 the argument is reduced with many digits of pi. */
ONE(float, sinf_large, sinf, -1e9, 1e9, 303, .ulp(3))
ONE(float, tanf, tanf, -10, 10, 304, .ulp(5))
ONE(float, asinf, asinf, -1, 1, 305, .ulp(5))
ONE(float, acosf, acosf, -1, 1, 306, .ulp(4))
ONE(float, atanf, atanf, -50, 50, 307, .ulp(3))
ONE(float, sinhf, sinhf, -20, 20, 308, .ulp(4))
ONE(float, coshf, coshf, -20, 20, 309, .ulp(3))
ONE(float, tanhf, tanhf, -5, 5, 310, .ulp(3))
ONE(float, asinhf, asinhf, -100, 100, 311, .ulp(4))
ONE(float, acoshf, acoshf, 1, 100, 312, .ulp(5))
ONE(float, atanhf, atanhf, -0.999, 0.999, 313, .ulp(4))
ONE(float, expf, expf, -87, 88, 314, .ulp(3))
ONE(float, exp2f, exp2f, -120, 120, 315, .ulp(3))
ONE(float, exp10f, exp10f, -37, 38, 316, .ulp(3))
ONE(float, expm1f, expm1f, -5, 5, 317, .ulp(2))
ONE(float, logf, logf, 0.001, 1e6, 318, .ulp(2))
ONE(float, log2f, log2f, 0.001, 1e6, 319, .ulp(2))
ONE(float, log10f, log10f, 0.001, 1e6, 320, .ulp(3))
ONE(float, log1pf, log1pf, -0.9, 10, 321, .ulp(2))
ONE(float, cbrtf, cbrtf, -1e6, 1e6, 322, .ulp(2))
ONE(float, rcbrtf, rcbrtf, 0.1, 1e6, 323, .ulp(3))
ONE(float, rsqrtf, rsqrtf, 1e-6, 1e6, 324, .ulp(3))
ONE(float, erff, erff, -4, 4, 325, .ulp(3))
ONE(float, erfcf, erfcf, -3, 8, 326, .ulp(5))
ONE(float, erfinvf, erfinvf, -0.999, 0.999, 327, .ulp(4))
ONE(float, erfcxf, erfcxf, -2, 50, 328, .ulp(5))
ONE(float, normcdff, normcdff, -5, 5, 329, .ulp(6))
ONE(float, lgammaf, lgammaf, 0.1, 100, 330, .within(1e-6, 7))
ONE(float, tgammaf, tgammaf, 0.1, 20, 331, .ulp(11))
ONE(float, j0f, j0f, 0, 30, 332, .within(2.3e-6, 10))
ONE(float, sinpif, sinpif, -10, 10, 333, .ulp(2))
ONE(float, cospif, cospif, -10, 10, 334, .ulp(2))
TWO(float, powf, powf, 0.01, 50, -8, 8, 335, .ulp(9))
TWO(float, atan2f, atan2f, -5, 5, -5, 5, 337, .ulp(4))
TWO(float, hypotf, hypotf, -1e3, 1e3, -1e3, 1e3, 339, .ulp(4))

ONE(double, sin, sin, -100, 100, 351, .ulp(3))
ONE(double, cos, cos, -100, 100, 352, .ulp(3))
ONE(double, tan, tan, -10, 10, 353, .ulp(3))
ONE(double, asin, asin, -1, 1, 354, .ulp(3))
ONE(double, atan, atan, -50, 50, 355, .ulp(3))
ONE(double, tanh, tanh, -5, 5, 356, .ulp(3))
ONE(double, exp, exp, -700, 700, 357, .ulp(2))
ONE(double, expm1, expm1, -5, 5, 358, .ulp(2))
ONE(double, log, log, 0.001, 1e9, 359, .ulp(2))
ONE(double, log2, log2, 0.001, 1e9, 360, .ulp(3))
ONE(double, log1p, log1p, -0.9, 10, 361, .ulp(2))
ONE(double, cbrt, cbrt, -1e9, 1e9, 362, .ulp(2))
ONE(double, rsqrt, rsqrt, 1e-9, 1e9, 363, .ulp(2))
ONE(double, erf, erf, -5, 5, 364, .ulp(3))
ONE(double, erfc, erfc, -3, 20, 365, .ulp(6))
ONE(double, lgamma, lgamma, 0.1, 100, 366, .within(1e-14, 5))
ONE(double, tgamma, tgamma, 0.1, 100, 367, .ulp(11))
TWO(double, pow, pow, 0.01, 100, -30, 30, 368, .ulp(3))
TWO(double, atan2, atan2, -5, 5, -5, 5, 370, .ulp(3))
TWO(double, hypot, hypot, -1e9, 1e9, -1e9, 1e9, 372, .ulp(3))

/* Ends of the range: what comes out is exact there. */
KERNEL math_float_ends(float *out)
{
    int i = (int)threadIdx.x;
    float inf = __int_as_float(0x7f800000), x;
    switch (i) {
    case 0:
        x = expf(inf);
        break;
    case 1:
        x = expf(-inf);
        break;
    case 2:
        x = logf(inf);
        break;
    case 3:
        x = sinf(inf);
        break;
    case 4:
        x = logf(0.0f);
        break;
    case 5:
        x = logf(-1.0f);
        break;
    case 6:
        x = powf(0.0f, 0.0f);
        break;
    case 7:
        x = powf(-2.0f, 3.0f);
        break;
    case 8:
        x = expf(100.0f);
        break;
    case 9:
        x = expf(0.0f);
        break;
    case 10:
        x = atan2f(0.0f, 1.0f);
        break;
    case 11:
        x = cbrtf(0.0f);
        break;
    case 12:
        x = rsqrtf(0.0f);
        break;
    case 13:
        x = powf(-8.0f, 0.5f);
        break;
    case 14:
        x = erff(inf);
        break;
    case 15:
        x = log2f(1024.0f);
        break;
    default:
        x = expf(-110.0f);
        break;
    }
    out[i] = x;
}
CORPUS(math_float_ends, grid(1), block(17), out<float>(17))

KERNEL math_sincosf(float *out, const float *a)
{
    int i = global_thread();
    sincosf(a[i], &out[i * 2], &out[i * 2 + 1]);
}
CORPUS(math_sincosf, grid(2), block(128), out<float>(512).ulp(3),
       in<float>(256, range(-1000, 1000, 374)))

/* ---- approximations ---- */
/* __expf: 2 + floor(|1.173 x|) ulp, here at most |x| = 20; __exp10f: 2 + floor(|2.97 x|). */
ONE(float, fast_exp, __expf, -20, 20, 381, .ulp(26))
ONE(float, fast_exp10, __exp10f, -8, 8, 382, .ulp(26))
ONE(float, fast_log, __logf, 0.01, 1e3, 383, .within(3.7e-7, 4))
ONE(float, fast_log2, __log2f, 0.01, 1e3, 384, .within(2.5e-7, 3))
ONE(float, fast_log10, __log10f, 0.01, 1e3, 385, .within(2e-7, 4))
ONE(float, fast_sin, __sinf, -3.14159, 3.14159, 386, .within(4.2e-7))
ONE(float, fast_cos, __cosf, -3.14159, 3.14159, 387, .within(4.9e-7))
ONE(float, fast_tan, __tanf, -1.2, 1.2, 388, .within(6e-6))
TWO(float, fast_divide, __fdividef, -1e3, 1e3, 0.01, 1e3, 389, .ulp(3))
/* exp2(y log2 x): 2^-22 in the logarithm, times |y ln 2| = 5.6, relative. */
TWO(float, fast_pow, __powf, 0.5, 4, -8, 8, 391, .ulp(64))

KERNEL math_fast_single(float *out, const float *a)
{
    int i = global_thread();
    float x = a[i];
#ifdef __CUDACC__
    float r, s, q, e, l;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    asm("sqrt.approx.f32 %0, %1;" : "=f"(s) : "f"(x));
    asm("rsqrt.approx.f32 %0, %1;" : "=f"(q) : "f"(x));
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(x));
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(l) : "f"(x + 2));
#else
    float r = 1 / x, s = sqrtf(x), q = rsqrtf(x), e = exp2f(x), l = log2f(x + 2);
#endif
    out[i * 5] = r;
    out[i * 5 + 1] = s;
    out[i * 5 + 2] = q;
    out[i * 5 + 3] = e;
    out[i * 5 + 4] = l;
}
CORPUS(math_fast_single, grid(2), block(128), out<float>(1280).ulp(3),
       in<float>(256, range(0.01, 60, 393)))

KERNEL math_rounded_rsqrt(float *out, const float *a)
{
    int i = global_thread();
    out[i] = __frsqrt_rn(a[i]);
}
CORPUS(math_rounded_rsqrt, grid(2), block(128), out<float>(256),
       in<float>(256, range(1e-3, 1e3, 394)))

KERNEL math_norm3d(float *out, const float *a)
{
    int i = global_thread();
    out[i] = norm3df(a[i * 3], a[i * 3 + 1], a[i * 3 + 2]);
}
CORPUS(math_norm3d, grid(2), block(128), out<float>(256).ulp(4),
       in<float>(768, range(-10, 10, 395)))
