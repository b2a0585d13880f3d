// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Conversions between every pair of types, rounding and saturating.
#include "corpus.h"

#ifdef __CUDACC__
#define PTX_CVT(R, name, A, text, rc, ac, host)                                                    \
    static __device__ __forceinline__ R name(A a)                                                  \
    {                                                                                              \
        R r;                                                                                       \
        asm(text " %0, %1;" : "=" rc(r) : ac(a));                                                  \
        return r;                                                                                  \
    }
#else
#define PTX_CVT(R, name, A, text, rc, ac, host)                                                    \
    static inline R name(A a)                                                                      \
    {                                                                                              \
        return (R)(host);                                                                          \
    }
#define CLAMP(v, lo, hi) ((v) < (lo) ? (lo) : (v) > (hi) ? (hi) : (v))
#endif

/* Whole to whole: truncation, zero and sign extension. */
#define WHOLE(T)                                                                                   \
    KERNEL convert_whole_##T(u64 *out, const T *a)                                                 \
    {                                                                                              \
        int i = global_thread();                                                                   \
        T x = a[i];                                                                                \
        out[i * 4] = (u64)(u8)x << 32 | (u32)(s32)(s8)x;                                           \
        out[i * 4 + 1] = (u64)(u16)x << 32 | (u32)(s32)(s16)x;                                     \
        out[i * 4 + 2] = (u64)(s64)(s32)x;                                                         \
        out[i * 4 + 3] = (u64)x;                                                                   \
    }                                                                                              \
    CORPUS(convert_whole_##T, grid(4), block(64), out<u64>(1024), in<T>(256, special(111)))
WHOLE(u8)
WHOLE(s8)
WHOLE(u16)
WHOLE(s16)
WHOLE(u32)
WHOLE(s32)
WHOLE(u64)
WHOLE(s64)

/* Float to whole numbers in every mode: past the ends, infinities and NaN too. */
#define FROM_FLOAT(r)                                                                              \
    KERNEL convert_float_to_whole_##r(u64 *out, const float *a)                                    \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i * 4] = (u32)__float2int_##r(a[i]);                                                   \
        out[i * 4 + 1] = __float2uint_##r(a[i]);                                                   \
        out[i * 4 + 2] = (u64)__float2ll_##r(a[i]);                                                \
        out[i * 4 + 3] = __float2ull_##r(a[i]);                                                    \
    }                                                                                              \
    CORPUS(convert_float_to_whole_##r, grid(8), block(128), out<u64>(4096),                        \
           in<float>(1024, special(112)))                                                          \
    KERNEL convert_double_to_whole_##r(u64 *out, const double *a)                                  \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i * 4] = (u32)__double2int_##r(a[i]);                                                  \
        out[i * 4 + 1] = __double2uint_##r(a[i]);                                                  \
        out[i * 4 + 2] = (u64)__double2ll_##r(a[i]);                                               \
        out[i * 4 + 3] = __double2ull_##r(a[i]);                                                   \
    }                                                                                              \
    CORPUS(convert_double_to_whole_##r, grid(8), block(128), out<u64>(4096),                       \
           in<double>(1024, special(113)))                                                         \
    KERNEL convert_whole_to_float_##r(float *out, double *wide, const u64 *a)                      \
    {                                                                                              \
        int i = global_thread();                                                                   \
        out[i * 5] = __int2float_##r((s32)a[i]);                                                   \
        out[i * 5 + 1] = __uint2float_##r((u32)a[i]);                                              \
        out[i * 5 + 2] = __ll2float_##r((s64)a[i]);                                                \
        out[i * 5 + 3] = __ull2float_##r(a[i]);                                                    \
        out[i * 5 + 4] = __double2float_##r((double)(s64)a[i] * 0x1p-70);                          \
        wide[i * 2] = __ll2double_##r((s64)a[i]);                                                  \
        wide[i * 2 + 1] = __ull2double_##r(a[i]);                                                  \
    }                                                                                              \
    CORPUS(convert_whole_to_float_##r, grid(8), block(128), out<float>(5120), out<double>(2048),   \
           in<u64>(1024, special(114)))
FROM_FLOAT(rn)
FROM_FLOAT(rz)
FROM_FLOAT(ru)
FROM_FLOAT(rd)

KERNEL convert_double_to_float(float *out, const double *a)
{
    int i = global_thread();
    out[i * 4] = __double2float_rn(a[i]);
    out[i * 4 + 1] = __double2float_rz(a[i]);
    out[i * 4 + 2] = __double2float_ru(a[i]);
    out[i * 4 + 3] = __double2float_rd(a[i]);
}
CORPUS(convert_double_to_float, grid(8), block(128), out<float>(4096),
       in<double>(1024, special(115)))

KERNEL convert_float_to_double(double *out, const float *a)
{
    int i = global_thread();
    out[i] = (double)a[i];
}
CORPUS(convert_float_to_double, grid(8), block(128), out<double>(1024),
       in<float>(1024, special(116)))

/* Casts of C within their range. */
KERNEL convert_casts(s64 *out, const float *a)
{
    int i = global_thread();
    float x = a[i];
    out[i * 6] = (s8)x;
    out[i * 6 + 1] = (u8)fabsf(x);
    out[i * 6 + 2] = (s16)(x * 200);
    out[i * 6 + 3] = (u16)fabsf(x * 400);
    out[i * 6 + 4] = (s64)((double)x * 1e12);
    out[i * 6 + 5] = (s64)(u64)fabs((double)x * 1e15);
}
CORPUS(convert_casts, grid(4), block(128), out<s64>(3072), in<float>(512, range(-127, 127, 117)))

KERNEL convert_small_to_float(float *out, double *wide, const u8 *a, const s8 *b, const u16 *c,
                              const s16 *d)
{
    int i = global_thread();
    out[i * 4] = a[i];
    out[i * 4 + 1] = b[i];
    out[i * 4 + 2] = c[i];
    out[i * 4 + 3] = d[i];
    wide[i * 2] = b[i] * 0.5;
    wide[i * 2 + 1] = d[i] / 3.0;
}
CORPUS(convert_small_to_float, grid(2), block(128), out<float>(1024), out<double>(512),
       in<u8>(256, bits(118)), in<s8>(256, bits(119)), in<u16>(256, bits(120)),
       in<s16>(256, bits(121)))

PTX_CVT(s32, sat_s8_s32, s32, "cvt.sat.s8.s32", "r", "r", CLAMP(a, -128, 127))
PTX_CVT(u32, sat_u8_s32, s32, "cvt.sat.u8.s32", "r", "r", CLAMP(a, 0, 255))
PTX_CVT(s32, sat_s16_s32, s32, "cvt.sat.s16.s32", "r", "r", CLAMP(a, -32768, 32767))
PTX_CVT(u32, sat_u16_u32, u32, "cvt.sat.u16.u32", "r", "r", a > 65535 ? 65535 : a)
PTX_CVT(s32, sat_s32_s64, s64, "cvt.sat.s32.s64", "r", "l", CLAMP(a, -0x80000000ll, 0x7fffffffll))
PTX_CVT(u32, sat_u32_s64, s64, "cvt.sat.u32.s64", "r", "l", CLAMP(a, 0ll, 0xffffffffll))
PTX_CVT(u32, rni_sat_u8_f32, float, "cvt.rni.sat.u8.f32", "r", "f",
        CLAMP(__float2int_rn(a), 0, 255))
PTX_CVT(s32, rzi_sat_s16_f32, float, "cvt.rzi.sat.s16.f32", "r", "f",
        CLAMP(__float2int_rz(a), -32768, 32767))

KERNEL convert_saturating(s32 *out, const s64 *a, const float *f)
{
    int i = global_thread();
    s32 x = (s32)a[i];
    out[i * 8] = sat_s8_s32(x);
    out[i * 8 + 1] = (s32)sat_u8_s32(x);
    out[i * 8 + 2] = sat_s16_s32(x);
    out[i * 8 + 3] = (s32)sat_u16_u32((u32)x);
    out[i * 8 + 4] = sat_s32_s64(a[i]);
    out[i * 8 + 5] = (s32)sat_u32_s64(a[i]);
    out[i * 8 + 6] = (s32)rni_sat_u8_f32(f[i]);
    out[i * 8 + 7] = rzi_sat_s16_f32(f[i]);
}
CORPUS(convert_saturating, grid(8), block(128), out<s32>(8192), in<s64>(1024, special(122)),
       in<float>(1024, special(123)))

KERNEL convert_bit_patterns(u64 *out, const u64 *a)
{
    int i = global_thread();
    float f = __uint_as_float((u32)a[i]);
    double d = __longlong_as_double((s64)a[i]);
    out[i * 5] = (u64)(u32)__float_as_int(f);
    out[i * 5 + 1] = (u64)__double_as_longlong(d);
    out[i * 5 + 2] = (u64)(u32)__double2hiint(d);
    out[i * 5 + 3] = (u64)(u32)__double2loint(d);
    out[i * 5 + 4] = (u64)__double_as_longlong(__hiloint2double((s32)a[i], (s32)(a[i] >> 32)));
}
CORPUS(convert_bit_patterns, grid(4), block(128), out<u64>(2560), in<u64>(512, bits(124)))

/* Binary floating point of 16 bits, there and back, by the shortest of PTX. */
#ifdef __CUDACC__
static __device__ __forceinline__ u16 half_from(float f)
{
    u16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
}
static __device__ __forceinline__ float half_to(u16 h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
}
static __device__ __forceinline__ u32 half2_op(u32 a, u32 b, int op)
{
    u32 r;
    if (op == 0)
        asm("add.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    else if (op == 1)
        asm("sub.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    else
        asm("mul.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
    return r;
}
#else
static inline u16 half_from(float f)
{
    u32 x = __float_as_uint(f), sign = x >> 16 & 0x8000;
    if (f != f)
        return 0x7fff;
    double v = fabs((double)f);
    if (v >= 65520)
        return (u16)(sign | 0x7c00);
    /* In units of the last place: 2^-24 below 2^-14, else 2^-10 of the binade. */
    int e = v < 0x1p-14 ? -14 : ilogb(v);
    double unit = ldexp(1, e - 10), steps = nearbyint(v / unit);
    u32 bits = e == -14 ? (u32)steps : (u32)(e + 14) * 1024 + (u32)steps;
    return (u16)(sign | bits);
}
static inline float half_to(u16 h)
{
    u32 e = h >> 10 & 31, m = h & 1023;
    float v = e == 31 ? (m ? NAN : INFINITY)
              : e     ? ldexpf(1024 + (float)m, (int)e - 25)
                      : ldexpf((float)m, -24);
    return h & 0x8000 ? -v : v;
}
static inline u16 half_op(u16 a, u16 b, int op)
{
    /* Exact in float for sum, difference and product of halves, but for rounding that a half never
     * sees. */
    float x = half_to(a), y = half_to(b);
    return half_from(op == 0 ? x + y : op == 1 ? x - y : x * y);
}
static inline u32 half2_op(u32 a, u32 b, int op)
{
    return (u32)half_op((u16)(a >> 16), (u16)(b >> 16), op) << 16 | half_op((u16)a, (u16)b, op);
}
#endif

KERNEL convert_half(u16 *out, float *back, const float *a)
{
    int i = global_thread();
    float x = a[i] * 0x1p-8f;
    u16 h = half_from(i & 1 ? x : a[i]);
    out[i] = h;
    back[i] = half_to(h);
}
CORPUS(convert_half, grid(8), block(128), out<u16>(1024), out<float>(1024),
       in<float>(1024, range(-20, 20, 125)))

KERNEL convert_half_all(float *out)
{
    int i = global_thread();
    out[i] = half_to((u16)i);
}
CORPUS(convert_half_all, grid(256), block(256), out<float>(65536))

KERNEL convert_half_corner(u16 *out, const float *a)
{
    int i = global_thread();
    out[i] = half_from(a[i]);
}
CORPUS(convert_half_corner, grid(8), block(128), out<u16>(1024), in<float>(1024, special(126)))

KERNEL convert_half2_arithmetic(u32 *out, const float *a, const float *b)
{
    int i = global_thread();
    u32 x = (u32)half_from(a[i]) << 16 | half_from(b[i]),
        y = (u32)half_from(a[i] * b[i]) << 16 | half_from(a[i] - b[i]);
    out[i * 3] = half2_op(x, y, 0);
    out[i * 3 + 1] = half2_op(x, y, 1);
    out[i * 3 + 2] = half2_op(x, y, 2);
}
CORPUS(convert_half2_arithmetic, grid(4), block(128), out<u32>(1536),
       in<float>(512, range(-50, 50, 127)), in<float>(512, range(-1, 1, 128)))
