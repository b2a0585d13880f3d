// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Predicates and selection: every comparison of every type, and logic among them.
#include "corpus.h"

#define COMPARE(T)                                                                                 \
    KERNEL select_compare_##T(u32 *out, const T *a, const T *b)                                    \
    {                                                                                              \
        int i = global_thread();                                                                   \
        T x = a[i], y = i & 1 ? b[i] : a[(i + 64) % 1024];                                         \
        u32 r = (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 |           \
                (x != y) << 5;                                                                     \
        bool both = x < y && (x ^ y) != 0, either = x > y || y == 0, odd = (x < y) != (y == 1);    \
        r |= (u32)both << 6 | (u32)either << 7 | (u32)odd << 8 | (u32)!either << 9;                \
        out[i * 2] = r;                                                                            \
        out[i * 2 + 1] = (u32)(x < y ? x : (T)(y + 1));                                            \
    }                                                                                              \
    CORPUS(select_compare_##T, grid(8), block(128), out<u32>(2048), in<T>(1024, special(131)),     \
           in<T>(1024, special(132)))
COMPARE(u8)
COMPARE(s8)
COMPARE(u16)
COMPARE(s16)
COMPARE(u32)
COMPARE(s32)
COMPARE(u64)
COMPARE(s64)

KERNEL select_chain(float *out, const float *a)
{
    int i = global_thread();
    float x = a[i];
    out[i] = x < -2   ? -1.0f
             : x < -1 ? x + 1
             : x < 0  ? x * x
             : x == 0 ? 9.0f
             : x < 1  ? -x
             : x < 2  ? 0.5f
                      : 2.0f;
}
CORPUS(select_chain, grid(4), block(128), out<float>(512), in<float>(512, range(-3, 3, 133)))

KERNEL select_pointer(u32 *out, const u32 *a, const u32 *b)
{
    int i = global_thread();
    const u32 *p = (a[i] & 4) ? a : b;
    p = (b[i] & 2) ? p + 1 : p;
    out[i] = p[i];
}
CORPUS(select_pointer, grid(2), block(128), out<u32>(256), in<u32>(257, bits(134)),
       in<u32>(257, bits(135)))

KERNEL select_double(double *out, const double *a, const double *b)
{
    int i = global_thread();
    double x = a[i], y = b[i];
    bool less = x < y, ordered = !(x != x) && !(y != y);
    out[i * 2] = less ? x : y;
    out[i * 2 + 1] = ordered ? (x == y ? 1.0 : 2.0) : 3.0;
}
CORPUS(select_double, grid(8), block(128), out<double>(2048), in<double>(1024, special(136)),
       in<double>(1024, special(137)))

KERNEL select_flags(u8 *out, const u8 *a)
{
    int i = global_thread();
    bool flags[8];
    for (int k = 0; k < 8; k++)
        flags[k] = (a[i] >> k) & 1;
    bool all = true, any = false, parity = false;
    for (int k = 0; k < 8; k++) {
        all = all && flags[k];
        any = any || flags[k];
        parity ^= flags[k];
    }
    out[i] = (u8)(all | any << 1 | parity << 2 | (flags[3] && !flags[5]) << 3);
}
CORPUS(select_flags, grid(2), block(128), out<u8>(256), in<u8>(256, iota()))

KERNEL select_median(s32 *out, const s32 *a)
{
    int i = global_thread();
    s32 x = a[i * 3], y = a[i * 3 + 1], z = a[i * 3 + 2];
    out[i * 2] = max(min(x, y), min(max(x, y), z));
    s32 m = x > y ? (y > z ? y : (x > z ? z : x)) : (x > z ? x : (y > z ? z : y));
    out[i * 2 + 1] = m;
}
CORPUS(select_median, grid(2), block(128), out<s32>(512), in<s32>(768, special(138)))
