// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// -use_fast_math: denormals flushed, division and roots approximate, functions fast.
// nvcc: -use_fast_math -fmad=false
#include "corpus.h"

/* Flushed where the device flushes: an operand or a result below the smallest normal number. */
#ifdef __CUDACC__
#define FLUSH(x) (x)
#else
static float FLUSH(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}
#endif

KERNEL fast_flush(float *out, const float *a, const float *b)
{
    int i = global_thread();
    float x = a[i], y = b[i];
    out[i * 5] = FLUSH(FLUSH(x) + FLUSH(y));
    out[i * 5 + 1] = FLUSH(FLUSH(x) - FLUSH(y));
    out[i * 5 + 2] = FLUSH(FLUSH(x) * FLUSH(y));
    out[i * 5 + 3] = FLUSH(fminf(FLUSH(x), FLUSH(y)));
    out[i * 5 + 4] = FLUSH(x) < FLUSH(y) ? 1.0f : FLUSH(x) == FLUSH(y) ? 2.0f : 3.0f;
}
CORPUS(fast_flush, grid(8), block(128), out<float>(5120), in<float>(1024, special(481)),
       in<float>(1024, special(482)))

KERNEL fast_flush_small(float *out, const float *a)
{
    int i = global_thread();
    float x = a[i];
    out[i * 2] = FLUSH(x * 0x1p-126f);
    out[i * 2 + 1] = FLUSH(x * 0x1p-70f) * 0x1p-40f + 1.0f;
}
CORPUS(fast_flush_small, grid(2), block(128), out<float>(512), in<float>(256, range(-2, 2, 483)))

KERNEL fast_divide_and_roots(float *out, const float *a, const float *b)
{
    int i = global_thread();
    out[i * 4] = a[i] / b[i];
    out[i * 4 + 1] = sqrtf(b[i]);
    out[i * 4 + 2] = rsqrtf(b[i]);
    out[i * 4 + 3] = 1.0f / b[i];
}
CORPUS(fast_divide_and_roots, grid(2), block(128), out<float>(1024).ulp(3),
       in<float>(256, range(-100, 100, 484)), in<float>(256, range(0.01, 100, 485)))

KERNEL fast_functions(float *out, const float *a)
{
    int i = global_thread();
    float x = a[i];
    out[i * 4] = sinf(x);
    out[i * 4 + 1] = cosf(x);
    out[i * 4 + 2] = expf(x) * 0x1p-6f;
    out[i * 4 + 3] = logf(x + 4) * 0.25f;
}
CORPUS(fast_functions, grid(2), block(128), out<float>(1024).within(6e-7, 8),
       in<float>(256, range(-3.1, 3.1, 486)))

KERNEL fast_convert(s32 *out, float *back, const float *a, const double *d)
{
    int i = global_thread();
    out[i * 2] = (s32)a[i];
    out[i * 2 + 1] = (s32)floorf(a[i]);
    back[i * 2] = FLUSH((float)d[i]);
    back[i * 2 + 1] = (float)((double)a[i] * 3);
}
CORPUS(fast_convert, grid(2), block(128), out<s32>(512), out<float>(512),
       in<float>(256, range(-1e6, 1e6, 487)), in<double>(256, range(-1e9, 1e9, 488)))
