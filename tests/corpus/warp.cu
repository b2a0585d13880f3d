// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Warps: shuffles of every kind, width and type, votes, matches, lane masks.
#include "corpus.h"
#include "ptx_ops.h"

#define ALL 0xffffffffu

#define SHUFFLES(T, id)                                                                            \
    KERNEL warp_shuffle_##id(T *out, const T *a)                                                   \
    {                                                                                              \
        int i = global_thread(), lane = i & 31;                                                    \
        T x = a[i];                                                                                \
        out[i * 6] = __shfl_sync(ALL, x, (lane * 7 + 3) & 31);                                     \
        out[i * 6 + 1] = __shfl_up_sync(ALL, x, 5);                                                \
        out[i * 6 + 2] = __shfl_down_sync(ALL, x, 9);                                              \
        out[i * 6 + 3] = __shfl_xor_sync(ALL, x, 21);                                              \
        out[i * 6 + 4] = __shfl_sync(ALL, x, 11);                                                  \
        out[i * 6 + 5] = __shfl_sync(ALL, x, lane + 40);                                           \
    }                                                                                              \
    CORPUS(warp_shuffle_##id, grid(2), block(64), out<T>(768), in<T>(128, range(-1e6, 1e6, 231)))
SHUFFLES(s32, s32)
SHUFFLES(float, float)
SHUFFLES(s64, s64)
SHUFFLES(double, double)

KERNEL warp_shuffle_unsigned(u32 *out, u64 *wide, const u32 *a)
{
    int i = global_thread();
    out[i] = __shfl_xor_sync(ALL, a[i], 1) + __shfl_up_sync(ALL, a[i], 1u);
    wide[i] = __shfl_down_sync(ALL, (u64)a[i] << 16, 2u);
}
CORPUS(warp_shuffle_unsigned, grid(1), block(64), out<u32>(64), out<u64>(64),
       in<u32>(64, bits(232)))

#define WIDTHS(w)                                                                                  \
    KERNEL warp_shuffle_width_##w(u32 *out, const u32 *a)                                          \
    {                                                                                              \
        int i = global_thread(), lane = i & 31;                                                    \
        u32 x = a[i];                                                                              \
        out[i * 5] = __shfl_sync(ALL, x, lane * 3 + 1, w);                                         \
        out[i * 5 + 1] = __shfl_up_sync(ALL, x, 1, w);                                             \
        out[i * 5 + 2] = __shfl_down_sync(ALL, x, 1, w);                                           \
        out[i * 5 + 3] = __shfl_xor_sync(ALL, x, w / 2, w);                                        \
        out[i * 5 + 4] = __shfl_down_sync(ALL, x, (u32)(w / 2 + 1), w);                            \
    }                                                                                              \
    CORPUS(warp_shuffle_width_##w, grid(1), block(64), out<u32>(320), in<u32>(64, bits(233)))
WIDTHS(2)
WIDTHS(4)
WIDTHS(8)
WIDTHS(16)

/* The amount differs from lane to lane. */
KERNEL warp_shuffle_varying(u32 *out, const u32 *a, const u8 *by)
{
    int i = global_thread();
    u32 x = a[i], n = by[i] & 31;
    out[i * 4] = __shfl_sync(ALL, x, (int)n);
    out[i * 4 + 1] = __shfl_up_sync(ALL, x, n);
    out[i * 4 + 2] = __shfl_down_sync(ALL, x, n);
    out[i * 4 + 3] = __shfl_xor_sync(ALL, x, (int)n);
}
CORPUS(warp_shuffle_varying, grid(2), block(96), out<u32>(768), in<u32>(192, bits(234)),
       in<u8>(192, bits(235)))

KERNEL warp_reduce(float *out, const float *a)
{
    int i = global_thread();
    float x = a[i];
    for (int d = 16; d; d >>= 1)
        x += __shfl_down_sync(ALL, x, (u32)d);
    if ((i & 31) == 0)
        out[i / 32] = x;
}
CORPUS(warp_reduce, grid(2), block(256), out<float>(16), in<float>(512, range(-1, 1, 236)))

KERNEL warp_scan(u32 *out, const u32 *a)
{
    int i = global_thread(), lane = i & 31;
    u32 x = a[i];
    for (int d = 1; d < 32; d <<= 1) {
        u32 y = __shfl_up_sync(ALL, x, (u32)d);
        if (lane >= d)
            x += y;
    }
    out[i] = x;
}
CORPUS(warp_scan, grid(2), block(128), out<u32>(256), in<u32>(256, bits(237)))

KERNEL warp_votes(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i];
    out[i * 6] = __ballot_sync(ALL, x & 1);
    out[i * 6 + 1] = (u32)(__all_sync(ALL, x > 1000) != 0);
    out[i * 6 + 2] = (u32)(__any_sync(ALL, x % 37 == 0) != 0);
    out[i * 6 + 3] = (u32)(__all_sync(ALL, 1) != 0) | (u32)(__any_sync(ALL, 0) != 0) << 1;
    out[i * 6 + 4] = (u32)__popc(__ballot_sync(ALL, x & 2) & ptx_lanemask_lt());
    out[i * 6 + 5] = (u32)(__uni_sync(ALL, (i / 32) & 1) != 0) | (u32)(__uni_sync(ALL, x & 1) != 0)
                                                                     << 1;
}
CORPUS(warp_votes, grid(2), block(128), out<u32>(1536), in<u32>(256, bits(238)))

KERNEL warp_votes_part(u32 *out, const u32 *a)
{
    int i = global_thread(), lane = i & 31;
    u32 mask = 0x00ffff00u, r = 0;
    if (mask >> lane & 1) {
        r = __ballot_sync(mask, a[i] & 1);
        r ^= (u32)(__all_sync(mask, a[i] > 5) != 0);
    }
    out[i] = r;
}
CORPUS(warp_votes_part, grid(1), block(64), out<u32>(64), in<u32>(64, bits(239)))

KERNEL warp_match(u32 *out, const u32 *a)
{
    int i = global_thread(), same;
    out[i * 5] = __match_any_sync(ALL, a[i] & 3);
    out[i * 5 + 1] = __match_any_sync(ALL, (u64)(a[i] & 4) << 40);
    out[i * 5 + 2] = __match_all_sync(ALL, a[i] & 1, &same);
    out[i * 5 + 3] = (u32)same;
    u32 r = __match_all_sync(ALL, (u32)i / 32, &same);
    out[i * 5 + 4] = r + (u32)same;
}
CORPUS(warp_match, grid(1), block(96), out<u32>(480), in<u32>(96, bits(240)))

/* Lanes with equal keys are groups of their own, each with its mask, in one instruction. */
KERNEL warp_match_groups(u32 *out, const u32 *a)
{
    int i = global_thread(), lane = i & 31;
    u32 key = a[i] % 3, group = __match_any_sync(ALL, key);
    int leader = __ffs((int)group) - 1;
    out[i * 5] = __shfl_sync(group, a[i], leader);
    out[i * 5 + 1] = __ballot_sync(group, a[i] & 8);
    out[i * 5 + 2] = (u32)(__all_sync(group, a[i] > 1u << 30) != 0);
    out[i * 5 + 3] = (u32)(__any_sync(group, a[i] % 5 == 0) != 0);
    __syncwarp(group);
    out[i * 5 + 4] = __match_any_sync(group, a[i] & 16) + (u32)(lane == leader);
}
CORPUS(warp_match_groups, grid(2), block(64), out<u32>(640), in<u32>(128, bits(245)))

KERNEL warp_lane_masks(u32 *out)
{
    u32 i = threadIdx.x + 8 * (threadIdx.y + 4 * threadIdx.z);
    out[i * 6] = ptx_laneid();
    out[i * 6 + 1] = ptx_lanemask_lt();
    out[i * 6 + 2] = ptx_lanemask_le();
    out[i * 6 + 3] = ptx_lanemask_eq();
    out[i * 6 + 4] = ptx_lanemask_ge();
    out[i * 6 + 5] = ptx_lanemask_gt();
}
CORPUS(warp_lane_masks, grid(1), block(8, 4, 2), out<u32>(384))

KERNEL warp_active(u32 *out)
{
    int i = global_thread(), lane = i & 31;
    u32 r = ACTIVE_LANES(ALL);
    if (lane < 12)
        r ^= ACTIVE_LANES(0xfff) << 1;
    __syncwarp();
    out[i] = r;
}
CORPUS(warp_active, grid(1), block(64), out<u32>(64))

/* One atomic for all lanes that have something to add: the classic. */
KERNEL warp_aggregate(u32 *count, u32 *list, const u32 *a)
{
    int i = global_thread();
    bool keep = a[i] % 5 < 2;
    u32 lanes = __ballot_sync(ALL, keep), base = 0;
    int leader = __ffs((int)lanes) - 1;
    if (keep) {
        if ((i & 31) == leader)
            base = atomicAdd(count, (u32)__popc(lanes));
        base = __shfl_sync(lanes, base, leader);
        list[base + (u32)__popc(lanes & ptx_lanemask_lt())] = a[i];
    }
}
CORPUS(warp_aggregate, grid(4), block(64), in<u32>(1, zero()), out<u32>(256).sorted(),
       in<u32>(256, bits(241)))

KERNEL warp_bitonic(s32 *out, const s32 *a)
{
    int i = global_thread(), lane = i & 31;
    s32 x = a[i];
    for (int k = 2; k <= 32; k <<= 1)
        for (int j = k / 2; j; j >>= 1) {
            s32 y = __shfl_xor_sync(ALL, x, j);
            bool up = (lane & k) == 0, lower = (lane & j) == 0;
            x = up == lower ? min(x, y) : max(x, y);
        }
    out[i] = x;
}
CORPUS(warp_bitonic, grid(2), block(64), out<s32>(128), in<s32>(128, bits(242)))

/* Half a warp in the block's last warp. */
KERNEL warp_partial(u32 *out, const u32 *a)
{
    int t = (int)threadIdx.x;
    u32 mask = t >= 32 ? 0xffffu : ALL;
    u32 x = a[t];
    x += __shfl_xor_sync(mask, x, 8);
    x ^= __ballot_sync(mask, x & 1);
    __syncwarp(mask);
    out[t] = x;
}
CORPUS(warp_partial, grid(1), block(48), out<u32>(48), in<u32>(48, bits(243)))

/* Memory passed between lanes, with nothing but __syncwarp in between. */
KERNEL warp_shared_exchange(u32 *out, const u32 *a)
{
    __shared__ u32 s[64];
    u32 t = threadIdx.x, w = t & ~31u, x = a[t];
    for (u32 k = 1; k < 32; k <<= 1) {
        s[t] = x;
        __syncwarp();
        x = x * 3 + s[w | ((t + k) & 31)];
        __syncwarp();
    }
    out[t] = x;
}
CORPUS(warp_shared_exchange, grid(1), block(64), out<u32>(64), in<u32>(64, bits(244)))
