// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Bits: counts, fields, shifts past the end, permutations, carries.
#include "corpus.h"
#include "ptx_ops.h"

#define ONE_IN(name, T)                                                                            \
    CORPUS(name, grid(8), block(128), out<T>(1024 * W_##name), in<T>(1024, special(31)))

enum { W_bits_count32 = 6, W_bits_count64 = 5, W_bits_logic = 7 };

KERNEL bits_count32(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i];
    out[i * 6] = (u32)__popc(x);
    out[i * 6 + 1] = (u32)__clz((int)x);
    out[i * 6 + 2] = (u32)__ffs((int)x);
    out[i * 6 + 3] = __brev(x);
    out[i * 6 + 4] = ptx_cnot(x);
    out[i * 6 + 5] = (u32)__popc(x & (0 - x));
}
ONE_IN(bits_count32, u32)

KERNEL bits_count64(u64 *out, const u64 *a)
{
    int i = global_thread();
    u64 x = a[i];
    out[i * 5] = (u64)__popcll(x);
    out[i * 5 + 1] = (u64)__clzll((s64)x);
    out[i * 5 + 2] = (u64)__ffsll((s64)x);
    out[i * 5 + 3] = __brevll(x);
    out[i * 5 + 4] = x & (x - 1);
}
ONE_IN(bits_count64, u64)

KERNEL bits_logic(u16 *out, const u16 *a)
{
    int i = global_thread();
    u16 x = a[i], y = a[(i + 37) & 1023];
    out[i * 7] = x & y;
    out[i * 7 + 1] = x | y;
    out[i * 7 + 2] = x ^ y;
    out[i * 7 + 3] = (u16)~x;
    out[i * 7 + 4] = (u16)(x << (y & 15));
    out[i * 7 + 5] = (u16)(x >> (y & 15));
    out[i * 7 + 6] = (u16)((s16)x >> (y & 15));
}
ONE_IN(bits_logic, u16)

KERNEL bits_find(u32 *out, const u64 *a)
{
    int i = global_thread();
    u64 x = a[i];
    out[i * 5] = ptx_bfind_u32((u32)x);
    out[i * 5 + 1] = ptx_bfind_s32((u32)x);
    out[i * 5 + 2] = ptx_bfind_u64(x);
    out[i * 5 + 3] = ptx_bfind_shift((u32)x);
    out[i * 5 + 4] = ptx_bfind_u32((u32)i & 3);
}
CORPUS(bits_find, grid(8), block(128), out<u32>(5120), in<u64>(1024, special(32)))

KERNEL bits_extract32(u32 *out, const u32 *a, const u8 *pos, const u8 *len)
{
    int i = global_thread();
    out[i * 2] = ptx_bfe_u32(a[i], pos[i], len[i]);
    out[i * 2 + 1] = ptx_bfe_s32(a[i], pos[i], len[i]);
}
CORPUS(bits_extract32, grid(8), block(128), out<u32>(2048), in<u32>(1024, bits(33)),
       in<u8>(1024, range(0, 40, 34)), in<u8>(1024, range(0, 40, 35)))

KERNEL bits_extract64(u64 *out, const u64 *a, const u8 *pos, const u8 *len)
{
    int i = global_thread();
    out[i * 2] = ptx_bfe_u64(a[i], pos[i], len[i]);
    out[i * 2 + 1] = ptx_bfe_s64(a[i], pos[i], len[i]);
}
CORPUS(bits_extract64, grid(8), block(128), out<u64>(2048), in<u64>(1024, bits(36)),
       in<u8>(1024, range(0, 75, 37)), in<u8>(1024, range(0, 75, 38)))

KERNEL bits_insert(u64 *out, const u64 *a, const u64 *b, const u8 *pos, const u8 *len)
{
    int i = global_thread();
    out[i * 2] = ptx_bfi_b32((u32)a[i], (u32)b[i], pos[i], len[i]);
    out[i * 2 + 1] = ptx_bfi_b64(a[i], b[i], pos[i], len[i]);
}
CORPUS(bits_insert, grid(8), block(128), out<u64>(2048), in<u64>(1024, bits(39)),
       in<u64>(1024, bits(40)), in<u8>(1024, range(0, 70, 41)), in<u8>(1024, range(0, 70, 42)))

/* Plain C shifts and masks, which nvcc may or may not turn into fields. */
KERNEL bits_fields_in_c(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i];
    out[i * 4] = (x >> 7) & 0x1ff;
    out[i * 4 + 1] = (u32)((s32)(x << 9) >> 20);
    out[i * 4 + 2] = (x & ~0xff00u) | ((u32)i & 255) << 8;
    out[i * 4 + 3] = (x << 13) | (x >> 19);
}
CORPUS(bits_fields_in_c, grid(8), block(128), out<u32>(4096), in<u32>(1024, bits(43)))

KERNEL bits_shift_clamped(u64 *out, const u64 *a, const u32 *n)
{
    int i = global_thread();
    u32 x = (u32)a[i];
    out[i * 6] = ptx_shl_b32(x, n[i]);
    out[i * 6 + 1] = ptx_shr_u32(x, n[i]);
    out[i * 6 + 2] = ptx_shr_s32(x, n[i]);
    out[i * 6 + 3] = ptx_shl_b64(a[i], n[i]);
    out[i * 6 + 4] = ptx_shr_u64(a[i], n[i]);
    out[i * 6 + 5] = ptx_shr_s64(a[i], n[i]);
}
CORPUS(bits_shift_clamped, grid(8), block(128), out<u64>(6144), in<u64>(1024, bits(44)),
       in<u32>(1024, range(0, 80, 45)))

KERNEL bits_shift_huge(u64 *out, const u64 *a, const u32 *n)
{
    int i = global_thread();
    out[i * 3] = ptx_shl_b64(a[i], n[i]);
    out[i * 3 + 1] = ptx_shr_s64(a[i], n[i]);
    out[i * 3 + 2] = ptx_shr_u32((u32)a[i], n[i]);
}
CORPUS(bits_shift_huge, grid(4), block(64), out<u64>(768), in<u64>(256, bits(46)),
       in<u32>(256, special(47)))

KERNEL bits_funnel(u32 *out, const u32 *a, const u32 *b, const u32 *n)
{
    int i = global_thread();
    out[i * 4] = __funnelshift_l(a[i], b[i], n[i]);
    out[i * 4 + 1] = __funnelshift_lc(a[i], b[i], n[i]);
    out[i * 4 + 2] = __funnelshift_r(a[i], b[i], n[i]);
    out[i * 4 + 3] = __funnelshift_rc(a[i], b[i], n[i]);
}
CORPUS(bits_funnel, grid(8), block(128), out<u32>(4096), in<u32>(1024, bits(48)),
       in<u32>(1024, bits(49)), in<u32>(1024, range(0, 70, 50)))

KERNEL bits_permute_bytes(u32 *out, const u32 *a, const u32 *b, const u32 *s)
{
    int i = global_thread();
    out[i * 8] = __byte_perm(a[i], b[i], s[i] & 0x7777);
    out[i * 8 + 1] = ptx_prmt(a[i], b[i], s[i]);
    out[i * 8 + 2] = ptx_prmt_f4e(a[i], b[i], s[i]);
    out[i * 8 + 3] = ptx_prmt_b4e(a[i], b[i], s[i]);
    out[i * 8 + 4] = ptx_prmt_rc8(a[i], b[i], s[i]);
    out[i * 8 + 5] = ptx_prmt_ecl(a[i], b[i], s[i]);
    out[i * 8 + 6] = ptx_prmt_ecr(a[i], b[i], s[i]);
    out[i * 8 + 7] = ptx_prmt_rc16(a[i], b[i], s[i]);
}
CORPUS(bits_permute_bytes, grid(4), block(128), out<u32>(4096), in<u32>(512, bits(51)),
       in<u32>(512, bits(52)), in<u32>(512, bits(53)))

KERNEL bits_three_way(u32 *out, const u32 *a, const u32 *b, const u32 *c)
{
    int i = global_thread();
    out[i * 4] = ptx_lop3_96(a[i], b[i], c[i]);
    out[i * 4 + 1] = ptx_lop3_e8(a[i], b[i], c[i]);
    out[i * 4 + 2] = ptx_lop3_1b(a[i], b[i], c[i]);
    out[i * 4 + 3] = (a[i] & b[i]) | (~a[i] & c[i]);
}
CORPUS(bits_three_way, grid(4), block(128), out<u32>(2048), in<u32>(512, bits(54)),
       in<u32>(512, bits(55)), in<u32>(512, bits(56)))

KERNEL bits_carry(u64 *out, const u64 *a, const u64 *b)
{
    int i = global_thread();
    ptx_add_128(out + i * 5, a + i * 2, b + i * 2);
    u32 x[3] = {(u32)a[i * 2], (u32)(a[i * 2] >> 32), (u32)a[i * 2 + 1]};
    u32 y[3] = {(u32)b[i * 2], (u32)(b[i * 2] >> 32), (u32)b[i * 2 + 1]}, r[3];
    ptx_sub_96(r, x, y);
    out[i * 5 + 2] = (u64)r[1] << 32 | r[0];
    out[i * 5 + 3] = r[2];
    out[i * 5 + 4] = ptx_mad_64(x[0], y[0], b[i * 2 + 1]);
}
CORPUS(bits_carry, grid(4), block(128), out<u64>(2560), in<u64>(1024, special(57)),
       in<u64>(1024, special(58)))

KERNEL bits_multiply_add(u64 *out, const u64 *a, const u64 *b)
{
    int i = global_thread();
    u32 x = (u32)a[i], y = (u32)b[i];
    out[i * 6] = ptx_mad_hi_u32(x, y, (u32)i);
    out[i * 6 + 1] = ptx_mad_hi_s32(x, y, (u32)i);
    out[i * 6 + 2] = ptx_mad_wide_s32(x, y, a[i]);
    out[i * 6 + 3] = ptx_mad_lo_u64(a[i], b[i], b[i]);
    out[i * 6 + 4] = ptx_add_sat_s32(x, y);
    out[i * 6 + 5] = ptx_sub_sat_s32(x, y);
}
CORPUS(bits_multiply_add, grid(4), block(128), out<u64>(3072), in<u64>(512, special(59)),
       in<u64>(512, special(60)))

/* Morton codes there and back, and a Gray code. */
KERNEL bits_morton(u32 *out, const u16 *x, const u16 *y)
{
    int i = global_thread();
    u32 code = 0, back = 0;
    for (int k = 0; k < 16; k++)
        code |= ((u32)x[i] >> k & 1) << 2 * k | ((u32)y[i] >> k & 1) << (2 * k + 1);
    for (int k = 0; k < 16; k++)
        back |= (code >> 2 * k & 1) << k;
    u32 gray = code ^ code >> 1, plain = gray;
    for (int k = 1; k < 32; k <<= 1)
        plain ^= plain >> k;
    out[i * 3] = code;
    out[i * 3 + 1] = back == x[i];
    out[i * 3 + 2] = plain == code ? gray : ~0u;
}
CORPUS(bits_morton, grid(2), block(128), out<u32>(768), in<u16>(256, bits(61)),
       in<u16>(256, bits(62)))
