// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Warp-wide reductions, which came with compute capability 8.0.
// arch: 80
#include "corpus.h"

#define ALL 0xffffffffu

KERNEL warp80_reduce_unsigned(u32 *out, const u32 *a)
{
    int i = global_thread();
    out[i * 6] = __reduce_add_sync(ALL, a[i]);
    out[i * 6 + 1] = __reduce_min_sync(ALL, a[i]);
    out[i * 6 + 2] = __reduce_max_sync(ALL, a[i]);
    out[i * 6 + 3] = __reduce_and_sync(ALL, a[i] | 0xff);
    out[i * 6 + 4] = __reduce_or_sync(ALL, a[i] & 0xf000);
    out[i * 6 + 5] = __reduce_xor_sync(ALL, a[i]);
}
CORPUS(warp80_reduce_unsigned, grid(2), block(64), out<u32>(768), in<u32>(128, bits(251)))

KERNEL warp80_reduce_signed(s32 *out, const s32 *a)
{
    int i = global_thread();
    out[i * 3] = __reduce_add_sync(ALL, a[i]);
    out[i * 3 + 1] = __reduce_min_sync(ALL, a[i]);
    out[i * 3 + 2] = __reduce_max_sync(ALL, a[i]);
}
CORPUS(warp80_reduce_signed, grid(2), block(64), out<s32>(384), in<s32>(128, bits(252)))

KERNEL warp80_reduce_part(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 odd = 0xaaaaaaaau, r;
    if (i & 1)
        r = __reduce_add_sync(odd, a[i]);
    else
        r = __reduce_max_sync(~odd, a[i]);
    out[i] = r;
}
CORPUS(warp80_reduce_part, grid(1), block(64), out<u32>(64), in<u32>(64, bits(253)))

/* Each group of equal keys its own sum, all by one instruction. */
KERNEL warp80_reduce_groups(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 group = __match_any_sync(ALL, a[i] & 3);
    out[i * 2] = __reduce_add_sync(group, a[i]);
    out[i * 2 + 1] = __reduce_max_sync(group, a[i] >> 2);
}
CORPUS(warp80_reduce_groups, grid(1), block(64), out<u32>(128), in<u32>(64, bits(254)))
