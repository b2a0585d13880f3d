// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Divergence: lanes of a warp go their own ways and meet again.
#include "corpus.h"

KERNEL diverge_if_else(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i];
    if (x & 1) {
        x = x * 3 + 1;
        if (x & 2)
            x ^= 0x55;
        else
            x += a[(i + 1) & 255];
    } else {
        x >>= 1;
        if (x % 3 == 0)
            x = ~x;
    }
    out[i] = x;
}
CORPUS(diverge_if_else, grid(2), block(128), out<u32>(256), in<u32>(256, bits(141)))

/* Warps that are not whole, blocks past the end. */
KERNEL diverge_tail(u32 *out, const u32 *a, int n)
{
    int i = global_thread();
    if (i < n)
        out[i] = a[i] + 1;
}
CORPUS(diverge_tail, grid(7), block(45), out<u32>(320), in<u32>(320, bits(142)), value(300))

KERNEL diverge_collatz(u32 *out)
{
    int i = global_thread();
    u64 x = (u64)i + 1;
    u32 steps = 0;
    while (x != 1) {
        x = x & 1 ? 3 * x + 1 : x / 2;
        steps++;
    }
    out[i] = steps;
}
CORPUS(diverge_collatz, grid(4), block(128), out<u32>(512))

KERNEL diverge_nested_loops(u32 *out, const u8 *a)
{
    int i = global_thread();
    u32 r = 0;
    for (int x = 0; x < a[i] % 11; x++) {
        for (int y = x; y < 9; y++) {
            if ((x * y + i) % 5 == 4)
                break;
            if ((x ^ y) & 1)
                continue;
            for (int z = 0; z < (y & 3); z++)
                r = r * 31 + (u32)(x + y + z);
        }
        r ^= (u32)x << 20;
    }
    out[i] = r;
}
CORPUS(diverge_nested_loops, grid(2), block(128), out<u32>(256), in<u8>(256, bits(143)))

KERNEL diverge_switch(s32 *out, const u8 *a)
{
    int i = global_thread();
    s32 r = i;
    switch (a[i] % 13) {
    case 0:
        r += 100;
        break;
    case 1:
        r -= 7;
        /* fall through */
    case 2:
        r *= 3;
        break;
    case 3:
    case 4:
        r = -r;
        break;
    case 5:
        for (int k = 0; k < i % 5; k++)
            r += k * k;
        break;
    case 7:
        r ^= 0x1234;
        break;
    case 8:
        if (i & 1)
            break;
        r += 5000;
        break;
    case 11:
        r <<= 4;
        break;
    case 12:
        r = r % 17;
        break;
    default:
        r = -1;
    }
    out[i] = r;
}
CORPUS(diverge_switch, grid(4), block(128), out<s32>(512), in<u8>(512, bits(144)))

KERNEL diverge_early_return(u32 *out, const u32 *a)
{
    int i = global_thread();
    out[i] = 1;
    if (a[i] % 3 == 0)
        return;
    out[i] = 2;
    for (u32 k = 0; k < 20; k++) {
        if ((a[i] >> k & 7) == 5) {
            out[i] = 100 + k;
            return;
        }
    }
    out[i] = 3;
}
CORPUS(diverge_early_return, grid(4), block(64), out<u32>(256), in<u32>(256, bits(145)))

/* A web of gotos that is no structured program. */
KERNEL diverge_goto(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i], trail = 0, fuel = 40;
first:
    trail = trail * 5 + 1;
    if (!--fuel)
        goto done;
    x = x * 1664525u + 1013904223u;
    if (x >> 30 == 0)
        goto second;
    if (x >> 30 == 1)
        goto third;
second:
    trail = trail * 5 + 2;
    if (!--fuel)
        goto done;
    x ^= x << 13;
    if (x & 64)
        goto first;
third:
    trail = trail * 5 + 3;
    if (!--fuel)
        goto done;
    x ^= x >> 17;
    if (x & 128)
        goto second;
    if (x & 256)
        goto first;
done:
    out[i] = trail ^ x;
}
CORPUS(diverge_goto, grid(2), block(128), out<u32>(256), in<u32>(256, bits(146)))

KERNEL diverge_do_while(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i], n = 0;
    do {
        x = x / 7 * 3;
        n++;
    } while (x > 1000);
    out[i * 2] = x;
    out[i * 2 + 1] = n;
}
CORPUS(diverge_do_while, grid(2), block(128), out<u32>(512), in<u32>(256, bits(147)))

/* Each lane its own count of iterations; what is uniform stays so. */
KERNEL diverge_loop_counts(u32 *out)
{
    int i = global_thread();
    u32 sum = 0;
    for (int k = 0; k < (i & 31); k++)
        sum += (u32)(k * i);
    for (int k = 0; k < 8; k++)
        sum ^= (u32)k << (k * 3);
    for (int k = 31 - (i & 31); k > 0; k -= 2)
        sum = sum * 3 + (u32)k;
    out[i] = sum;
}
CORPUS(diverge_loop_counts, grid(2), block(64), out<u32>(128))

/* After a branch, lanes must be together again: shuffles see one another. */
KERNEL diverge_reconverge(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 x = a[i];
    if (threadIdx.x & 1)
        x += 1000;
    else if (threadIdx.x & 2)
        x *= 3;
    __syncwarp();
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    for (u32 k = 0; k < (threadIdx.x & 7); k++)
        x = x * 5 + k;
    __syncwarp();
    x ^= __shfl_down_sync(0xffffffffu, x, 3);
    out[i] = x;
}
CORPUS(diverge_reconverge, grid(2), block(64), out<u32>(128), in<u32>(128, bits(148)))

/* Both sides of a branch do warp-wide work of their own. */
KERNEL diverge_half_warps(u32 *out, const u32 *a)
{
    int i = global_thread(), lane = i & 31;
    u32 x = a[i], r;
    if (lane < 16) {
        r = x;
        for (int d = 8; d; d >>= 1)
            r += __shfl_down_sync(0x0000ffffu, r, (u32)d, 16);
        r = __shfl_sync(0x0000ffffu, r, 0, 16);
    } else {
        r = x;
        for (int d = 8; d; d >>= 1)
            r = max(r, __shfl_xor_sync(0xffff0000u, r, d, 16));
    }
    out[i] = r;
}
CORPUS(diverge_half_warps, grid(2), block(64), out<u32>(128), in<u32>(128, bits(149)))

KERNEL diverge_short_circuit(u32 *out, const s32 *a, const s32 *b)
{
    int i = global_thread();
    u32 r = 0;
    if (b[i] != 0 && a[i] / b[i] > 3 && a[i] % b[i] != 1)
        r |= 1;
    if (b[i] == 0 || a[i] / b[i] < -3)
        r |= 2;
    if ((a[i] > 0 && b[i] > 0) || (a[i] < 0 && b[i] < 0))
        r |= 4;
    out[i] = r;
}
CORPUS(diverge_short_circuit, grid(4), block(64), out<u32>(256),
       in<s32>(256, range(-1000, 1000, 150)), in<s32>(256, range(-5, 5, 151)))

KERNEL diverge_binary_search(s32 *out, const u32 *keys, int n)
{
    int i = global_thread();
    int low = 0, high = n;
    u32 sought = keys[i] / 2;
    while (low < high) {
        int middle = (low + high) / 2;
        if ((u32)(middle * middle) < sought)
            low = middle + 1;
        else
            high = middle;
    }
    out[i] = low;
}
CORPUS(diverge_binary_search, grid(2), block(128), out<s32>(256), in<u32>(256, range(0, 1e6, 152)),
       value(1000))

/* A state machine that scans text, one line a thread. */
KERNEL diverge_state_machine(u32 *out, const u8 *text)
{
    int i = global_thread();
    int state = 0;
    u32 numbers = 0, words = 0, sum = 0, current = 0;
    for (int k = 0; k < 64; k++) {
        u8 c = (u8)(text[i * 64 + k] % 40);
        bool digit = c < 10, space = c >= 36;
        switch (state) {
        case 0:
            if (digit) {
                state = 1;
                current = c;
                numbers++;
            } else if (!space) {
                state = 2;
                words++;
            }
            break;
        case 1:
            if (digit) {
                current = current * 10 + c;
            } else {
                sum += current;
                state = space ? 0 : 2;
            }
            break;
        default:
            if (space)
                state = 0;
        }
    }
    out[i * 3] = numbers;
    out[i * 3 + 1] = words;
    out[i * 3 + 2] = sum;
}
CORPUS(diverge_state_machine, grid(2), block(32), out<u32>(192), in<u8>(4096, bits(153)))

KERNEL diverge_whole_block_exits(u32 *out, const u32 *a)
{
    int i = global_thread();
    if (blockIdx.x & 1)
        return;
    if (threadIdx.x >= 64) /* two of four warps */
        return;
    out[i] = a[i];
}
CORPUS(diverge_whole_block_exits, grid(4), block(128), out<u32>(512), in<u32>(512, bits(154)))
