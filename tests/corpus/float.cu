// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Single and double precision, bit for bit, in every rounding mode.
#include "corpus.h"

KERNEL float_basic(float *out, const float *a, const float *b)
{
    int i = global_thread();
    float x = a[i], y = b[i];
    out[i * 7] = x + y;
    out[i * 7 + 1] = x - y;
    out[i * 7 + 2] = x * y;
    out[i * 7 + 3] = x / y;
    out[i * 7 + 4] = -x;
    out[i * 7 + 5] = fabsf(x);
    out[i * 7 + 6] = sqrtf(fabsf(y));
}
CORPUS(float_basic, grid(16), block(128), out<float>(2048 * 7), in<float>(2048, special(71)),
       in<float>(2048, special(72)))

KERNEL double_basic(double *out, const double *a, const double *b)
{
    int i = global_thread();
    double x = a[i], y = b[i];
    out[i * 7] = x + y;
    out[i * 7 + 1] = x - y;
    out[i * 7 + 2] = x * y;
    out[i * 7 + 3] = x / y;
    out[i * 7 + 4] = -x;
    out[i * 7 + 5] = fabs(x);
    out[i * 7 + 6] = sqrt(fabs(y));
}
CORPUS(double_basic, grid(16), block(128), out<double>(2048 * 7), in<double>(2048, special(73)),
       in<double>(2048, special(74)))

#define ROUNDED(r)                                                                                 \
    KERNEL float_rounded_##r(float *out, const float *a, const float *b, const float *c)           \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i * 7] = __fadd_##r(a[i], b[i]);                                                       \
        out[i * 7 + 1] = __fsub_##r(a[i], b[i]);                                                   \
        out[i * 7 + 2] = __fmul_##r(a[i], b[i]);                                                   \
        out[i * 7 + 3] = __fdiv_##r(a[i], b[i]);                                                   \
        out[i * 7 + 4] = __fmaf_##r(a[i], b[i], c[i]);                                             \
        out[i * 7 + 5] = __frcp_##r(a[i]);                                                         \
        out[i * 7 + 6] = __fsqrt_##r(fabsf(b[i]));                                                 \
    }                                                                                              \
    CORPUS(float_rounded_##r, grid(8), block(128), out<float>(7168), in<float>(1024, special(75)), \
           in<float>(1024, special(76)), in<float>(1024, special(77)))                             \
    KERNEL double_rounded_##r(double *out, const double *a, const double *b, const double *c)      \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i * 7] = __dadd_##r(a[i], b[i]);                                                       \
        out[i * 7 + 1] = __dsub_##r(a[i], b[i]);                                                   \
        out[i * 7 + 2] = __dmul_##r(a[i], b[i]);                                                   \
        out[i * 7 + 3] = __ddiv_##r(a[i], b[i]);                                                   \
        out[i * 7 + 4] = __fma_##r(a[i], b[i], c[i]);                                              \
        out[i * 7 + 5] = __drcp_##r(a[i]);                                                         \
        out[i * 7 + 6] = __dsqrt_##r(fabs(b[i]));                                                  \
    }                                                                                              \
    CORPUS(double_rounded_##r, grid(8), block(128), out<double>(7168),                             \
           in<double>(1024, special(78)), in<double>(1024, special(79)),                           \
           in<double>(1024, special(80)))
ROUNDED(rn)
ROUNDED(rz)
ROUNDED(ru)
ROUNDED(rd)

/* Ordinary magnitudes, where every mode rounds differently. */
KERNEL float_rounding_sum(float *out, const float *a, int n)
{
    int i = global_thread();
    float up = 0, down = 0, zero = 0, near = 0;
    for (int k = 0; k < n; k++) {
        float x = a[(i * 7 + k) & 255];
        up = __fadd_ru(up, x);
        down = __fadd_rd(down, x);
        zero = __fadd_rz(zero, x);
        near = __fadd_rn(near, x);
    }
    out[i * 4] = up;
    out[i * 4 + 1] = down;
    out[i * 4 + 2] = zero;
    out[i * 4 + 3] = near;
}
CORPUS(float_rounding_sum, grid(2), block(128), out<float>(1024), in<float>(256, range(-1, 1, 81)),
       value(100))

KERNEL float_fma(float *out, const float *a, const float *b, const float *c)
{
    int i = global_thread();
    out[i * 2] = fmaf(a[i], b[i], c[i]);
    out[i * 2 + 1] = fmaf(a[i], b[i], -(a[i] * b[i]));
}
CORPUS(float_fma, grid(8), block(128), out<float>(2048), in<float>(1024, range(-2, 2, 82)),
       in<float>(1024, range(-2, 2, 83)), in<float>(1024, range(-4, 4, 84)))

KERNEL double_fma(double *out, const double *a, const double *b)
{
    int i = global_thread();
    double p = a[i] * b[i];
    out[i * 2] = p;
    out[i * 2 + 1] = fma(a[i], b[i], -p);
}
CORPUS(double_fma, grid(8), block(128), out<double>(2048), in<double>(1024, range(-2, 2, 85)),
       in<double>(1024, range(-2, 2, 86)))

KERNEL float_min_max(u32 *out, const float *a, const float *b)
{
    int i = global_thread();
    /* NaN from min and max of two NaNs: told apart as "a NaN" only. */
    float lo = fminf(a[i], b[i]), hi = fmaxf(a[i], b[i]);
    out[i * 3] = lo != lo ? 1 : __float_as_uint(lo);
    out[i * 3 + 1] = hi != hi ? 1 : __float_as_uint(hi);
    out[i * 3 + 2] = __float_as_uint(__saturatef(a[i]));
}
CORPUS(float_min_max, grid(8), block(128), out<u32>(3072), in<float>(1024, special(87)),
       in<float>(1024, special(88)))

KERNEL double_min_max(double *out, const double *a, const double *b)
{
    int i = global_thread();
    out[i * 2] = fmin(a[i], b[i]);
    out[i * 2 + 1] = fmax(a[i], b[i]);
}
CORPUS(double_min_max, grid(8), block(128), out<double>(2048), in<double>(1024, special(89)),
       in<double>(1024, special(90)))

#define CLASSIFY(T)                                                                                \
    KERNEL T##_classify(u32 *out, const T *a, const T *b)                                          \
    {                                                                                              \
        int i = global_thread();                                                                   \
        T x = a[i], y = b[i];                                                                      \
        u32 r = 0;                                                                                 \
        r |= (x < y) << 0 | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 |         \
             (x != y) << 5;                                                                        \
        r |= (u32) !(x < y) << 6 | (u32) !(x <= y) << 7 | (u32) !(x > y) << 8 |                    \
             (u32) !(x >= y) << 9;                                                                 \
        r |= (x != x) << 10 | (u32)(x - x != 0) << 11;                                             \
        r |= (u32)(x != x || y != y) << 12 | (u32)(x == x && y == y) << 13;                        \
        out[i] = r;                                                                                \
    }                                                                                              \
    CORPUS(T##_classify, grid(16), block(128), out<u32>(2048), in<T>(2048, special(91)),           \
           in<T>(2048, special(92)))
CLASSIFY(float)
CLASSIFY(double)

KERNEL float_round_whole(float *out, const float *a)
{
    int i = global_thread();
    out[i * 6] = floorf(a[i]);
    out[i * 6 + 1] = ceilf(a[i]);
    out[i * 6 + 2] = truncf(a[i]);
    out[i * 6 + 3] = rintf(a[i]);
    out[i * 6 + 4] = roundf(a[i]);
    out[i * 6 + 5] = nearbyintf(a[i]);
}
CORPUS(float_round_whole, grid(8), block(128), out<float>(6144), in<float>(1024, special(93)))

KERNEL float_round_small(float *out, const float *a)
{
    int i = global_thread();
    float x = (float)((int)(a[i] * 8)) * 0.25f; /* whole, half and quarter steps */
    out[i * 5] = floorf(x);
    out[i * 5 + 1] = ceilf(x);
    out[i * 5 + 2] = truncf(x);
    out[i * 5 + 3] = rintf(x);
    out[i * 5 + 4] = roundf(x);
}
CORPUS(float_round_small, grid(4), block(128), out<float>(2560), in<float>(512, range(-20, 20, 94)))

KERNEL double_round_whole(double *out, const double *a)
{
    int i = global_thread();
    out[i * 5] = floor(a[i]);
    out[i * 5 + 1] = ceil(a[i]);
    out[i * 5 + 2] = trunc(a[i]);
    out[i * 5 + 3] = rint(a[i]);
    out[i * 5 + 4] = round(a[i]);
}
CORPUS(double_round_whole, grid(8), block(128), out<double>(5120), in<double>(1024, special(95)))

KERNEL float_sign_and_scale(float *out, const float *a, const float *b)
{
    int i = global_thread();
    int e;
    out[i * 6] = copysignf(a[i], b[i]);
    out[i * 6 + 1] = ldexpf(a[i], (i % 61) - 30);
    out[i * 6 + 2] = frexpf(a[i], &e);
    out[i * 6 + 3] = (float)e;
    out[i * 6 + 4] = fdimf(a[i], b[i]);
    out[i * 6 + 5] = nextafterf(a[i], b[i]);
}
CORPUS(float_sign_and_scale, grid(8), block(128), out<float>(6144),
       in<float>(1024, range(-100, 100, 96)), in<float>(1024, range(-100, 100, 97)))

KERNEL float_remainder(float *out, const float *a, const float *b)
{
    int i = global_thread();
    float whole;
    out[i * 4] = fmodf(a[i], b[i]);
    out[i * 4 + 1] = remainderf(a[i], b[i]);
    out[i * 4 + 2] = modff(a[i], &whole);
    out[i * 4 + 3] = whole;
}
CORPUS(float_remainder, grid(4), block(128), out<float>(2048), in<float>(512, range(-1e6, 1e6, 98)),
       in<float>(512, range(0.01, 100, 99)))

KERNEL double_remainder(double *out, const double *a, const double *b)
{
    int i = global_thread();
    out[i * 2] = fmod(a[i], b[i]);
    out[i * 2 + 1] = remainder(a[i], b[i]);
}
CORPUS(double_remainder, grid(4), block(128), out<double>(1024),
       in<double>(512, range(-1e9, 1e9, 100)), in<double>(512, range(0.01, 100, 101)))

/* The one pattern that arithmetic gives a NaN: stored as a word, compared as a word. */
KERNEL float_nan_pattern(u32 *out, const float *a)
{
    int i = global_thread();
    float x = a[i], r;
    switch (i & 3) {
    case 0:
        r = x - x; /* inf - inf, NaN - NaN */
        break;
    case 1:
        r = x * 0.0f;
        break;
    case 2:
        r = sqrtf(x);
        break;
    default:
        r = x / x;
        break;
    }
#ifndef __CUDACC__
    if (r != r)
        r = __uint_as_float(0x7fffffff);
#endif
    out[i] = __float_as_uint(r);
}
CORPUS(float_nan_pattern, grid(8), block(128), out<u32>(1024), in<float>(1024, special(102)))

/* Denormals are kept, in and out. */
KERNEL float_denormal(float *out, const float *a)
{
    int i = global_thread();
    float x = a[i] * 0x1p-120f;
    out[i * 4] = x * 0x1p-20f;
    out[i * 4 + 1] = x * 0x1p-20f + 0x1p-149f;
    out[i * 4 + 2] = x / 0x1p15f;
    out[i * 4 + 3] = x * 0x1p-25f * 0x1p25f;
}
CORPUS(float_denormal, grid(4), block(128), out<float>(2048), in<float>(512, range(-1, 1, 103)))

KERNEL float_compensated_sum(float *out, const float *a, int n)
{
    int i = global_thread();
    float sum = 0, lost = 0, plain = 0;
    for (int k = i; k < n; k += (int)(gridDim.x * blockDim.x)) {
        float y = a[k] - lost, t = sum + y;
        lost = (t - sum) - y;
        sum = t;
        plain += a[k];
    }
    out[i * 3] = sum;
    out[i * 3 + 1] = lost;
    out[i * 3 + 2] = plain;
}
CORPUS(float_compensated_sum, grid(2), block(32), out<float>(192),
       in<float>(4096, range(-1000, 1000, 104)), value(4096))

KERNEL float_horner(float *out, const float *x, double *precise)
{
    int i = global_thread();
    const float c[8] = {0.5f, -1.25f, 3.0f, 0.1f, -0.7f, 2.2f, -1.9f, 1.0f};
    float r = 0;
    double d = 0;
    for (int k = 0; k < 8; k++) {
        r = r * x[i] + c[k];
        d = d * x[i] + c[k];
    }
    out[i] = r;
    precise[i] = d;
}
CORPUS(float_horner, grid(2), block(128), out<float>(256), in<float>(256, range(-2, 2, 105)),
       out<double>(256))
