/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Arithmetic with a rounding mode. Operands and results go through volatile variables, so that no
 * compiler moves the arithmetic across the change of the mode.
 */
#include <fenv.h>
#include <math.h>

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/exec_half.h"

static inline double unchanged_f64(double x)
{
    return x;
}

/*
 * Converts through signed numbers. A number without room is halved, and the lost bit is kept.
 * Compilers subtract magic numbers instead, which gives -0 for 0 when rounding down.
 */
#define UNSIGNED_TO(T, a) ((a) >> 63 ? (T)2 * (T)(int64_t)((a) >> 1 | ((a)&1)) : (T)(int64_t)(a))

#define ROUND(name, D, A, x, fix)                                                                  \
    void exec_round_##name(const struct warp *w, const struct op *op, void *out)                   \
    {                                                                                              \
        const volatile A *pa = slot_at(w, op->a), *pb = slot_at(w, op->b),                         \
                         *pc = slot_at(w, op->c);                                                  \
        D *pd = out;                                                                               \
        volatile D results[LANES];                                                                 \
        int before = fegetround();                                                                 \
        fesetround((int)op->aux);                                                                  \
        for (int i = 0; i < LANES; i++) {                                                          \
            A a = pa[i], b = pb[i], c = pc[i];                                                     \
            (void)b;                                                                               \
            (void)c;                                                                               \
            results[i] = (x);                                                                      \
        }                                                                                          \
        fesetround(before);                                                                        \
        for (int i = 0; i < LANES; i++)                                                            \
            pd[i] = fix(results[i]);                                                               \
    }

ROUND(add_f32, float, float, a + b, canonical_nan)
ROUND(sub_f32, float, float, a - b, canonical_nan)
ROUND(mul_f32, float, float, a *b, canonical_nan)
ROUND(div_f32, float, float, a / b, canonical_nan)
ROUND(fma_f32, float, float, fmaf(a, b, c), canonical_nan)
ROUND(sqrt_f32, float, float, sqrtf(a), canonical_nan)
ROUND(rcp_f32, float, float, 1.0f / a, canonical_nan)
ROUND(add_f64, double, double, a + b, unchanged_f64)
ROUND(sub_f64, double, double, a - b, unchanged_f64)
ROUND(mul_f64, double, double, a *b, unchanged_f64)
ROUND(div_f64, double, double, a / b, unchanged_f64)
ROUND(fma_f64, double, double, fma(a, b, c), unchanged_f64)
ROUND(sqrt_f64, double, double, sqrt(a), unchanged_f64)
ROUND(rcp_f64, double, double, 1.0 / a, unchanged_f64)
ROUND(f64_f32, float, double, (float)a, canonical_nan)
ROUND(s32_f32, float, int32_t, (float)a, canonical_nan)
ROUND(u32_f32, float, uint32_t, (float)a, canonical_nan)
ROUND(s64_f32, float, int64_t, (float)a, canonical_nan)
ROUND(u64_f32, float, uint64_t, UNSIGNED_TO(float, a), canonical_nan)
ROUND(s64_f64, double, int64_t, (double)a, unchanged_f64)
ROUND(u64_f64, double, uint64_t, UNSIGNED_TO(double, a), unchanged_f64)

void exec_round_f64_f16(const struct warp *w, const struct op *op, void *out)
{
    const double *pa = slot_at(w, op->a);
    uint16_t results[LANES];
    for (int i = 0; i < LANES; i++)
        results[i] = half_from_double_mode(pa[i], (int)op->aux);
    memcpy(out, results, sizeof(results));
}

void exec_round_f64_bf16(const struct warp *w, const struct op *op, void *out)
{
    const double *pa = slot_at(w, op->a);
    uint16_t results[LANES];
    for (int i = 0; i < LANES; i++)
        results[i] = bfloat_from_double_mode(pa[i], (int)op->aux);
    memcpy(out, results, sizeof(results));
}
