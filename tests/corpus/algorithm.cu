// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Small real programs: sorting, hashing, codes, strings, counting, games.
#include "corpus.h"

/* ---- checksums and hashes ---- */
KERNEL crc32(u32 *out, const u8 *a, int bytes)
{
    int i = global_thread();
    u32 crc = ~0u;
    for (int k = 0; k < bytes; k++) {
        crc ^= a[i * bytes + k];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (0xedb88320u & (0 - (crc & 1)));
    }
    out[i] = ~crc;
}
CORPUS(crc32, grid(1), block(64), out<u32>(64), in<u8>(64 * 40, bits(401)), value(40))

/* With a table that the block builds for itself. */
KERNEL crc32_table(u32 *out, const u8 *a, int bytes)
{
    __shared__ u32 table[256];
    for (u32 k = threadIdx.x; k < 256; k += blockDim.x) {
        u32 c = k;
        for (int b = 0; b < 8; b++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        table[k] = c;
    }
    __syncthreads();
    int i = global_thread();
    u32 crc = ~0u;
    for (int k = 0; k < bytes; k++)
        crc = table[(crc ^ a[i * bytes + k]) & 255] ^ crc >> 8;
    out[i] = ~crc;
}
CORPUS(crc32_table, grid(2), block(64), out<u32>(128), in<u8>(128 * 33, bits(402)), value(33))

__constant__ u32 sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
static __device__ u32 rotate_right(u32 x, int n)
{
    return x >> n | x << (32 - n);
}

/* Each thread the digest of one message of 55 bytes at most: one block of SHA-256. */
KERNEL sha256(u32 *out, const u8 *a, int bytes)
{
    int i = global_thread();
    u32 w[64], h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
               s[8];
    for (int k = 0; k < 16; k++) {
        w[k] = 0;
        for (int b = 0; b < 4; b++) {
            int at = k * 4 + b;
            u32 byte = at < bytes ? a[i * bytes + at] : at == bytes ? 0x80 : 0;
            w[k] = w[k] << 8 | byte;
        }
    }
    w[15] = (u32)bytes * 8;
    for (int k = 16; k < 64; k++) {
        u32 x = w[k - 15], y = w[k - 2];
        w[k] = w[k - 16] + w[k - 7] + (rotate_right(x, 7) ^ rotate_right(x, 18) ^ x >> 3) +
               (rotate_right(y, 17) ^ rotate_right(y, 19) ^ y >> 10);
    }
    for (int k = 0; k < 8; k++)
        s[k] = h[k];
    for (int k = 0; k < 64; k++) {
        u32 e = s[4], c = s[0];
        u32 t1 = s[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                 ((e & s[5]) ^ (~e & s[6])) + sha256_k[k] + w[k];
        u32 t2 = (rotate_right(c, 2) ^ rotate_right(c, 13) ^ rotate_right(c, 22)) +
                 ((c & s[1]) ^ (c & s[2]) ^ (s[1] & s[2]));
        for (int j = 7; j; j--)
            s[j] = s[j - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int k = 0; k < 8; k++)
        out[i * 8 + k] = h[k] + s[k];
}
CORPUS(sha256, grid(2), block(32), out<u32>(512), in<u8>(64 * 50, bits(403)), value(50))

KERNEL fnv_and_murmur(u64 *out, const u64 *a)
{
    int i = global_thread();
    u64 f = 0xcbf29ce484222325u, m = a[i];
    for (int k = 0; k < 8; k++)
        f = (f ^ (a[i] >> 8 * k & 255)) * 0x100000001b3u;
    m ^= m >> 33;
    m *= 0xff51afd7ed558ccdu;
    m ^= m >> 33;
    m *= 0xc4ceb9fe1a85ec53u;
    m ^= m >> 33;
    out[i * 2] = f;
    out[i * 2 + 1] = m;
}
CORPUS(fnv_and_murmur, grid(2), block(64), out<u64>(256), in<u64>(128, bits(404)))

/* XTEA, enciphered and deciphered again. */
KERNEL xtea(u32 *out, u8 *same, const u32 *a, uint4 key)
{
    int i = global_thread();
    u32 k[4] = {key.x, key.y, key.z, key.w}, x = a[i * 2], y = a[i * 2 + 1], sum = 0;
    for (int r = 0; r < 32; r++) {
        x += ((y << 4 ^ y >> 5) + y) ^ (sum + k[sum & 3]);
        sum += 0x9e3779b9u;
        y += ((x << 4 ^ x >> 5) + x) ^ (sum + k[sum >> 11 & 3]);
    }
    out[i * 2] = x;
    out[i * 2 + 1] = y;
    for (int r = 0; r < 32; r++) {
        y -= ((x << 4 ^ x >> 5) + x) ^ (sum + k[sum >> 11 & 3]);
        sum -= 0x9e3779b9u;
        x -= ((y << 4 ^ y >> 5) + y) ^ (sum + k[sum & 3]);
    }
    same[i] = x == a[i * 2] && y == a[i * 2 + 1];
}
CORPUS(xtea, grid(2), block(64), out<u32>(256), out<u8>(128), in<u32>(256, bits(405)),
       value(make_uint4(0x01234567u, 0x89abcdefu, 0xfedcba98u, 0x76543210u)))

/* ---- random numbers ---- */
KERNEL mersenne_twister(u32 *out, const u32 *seed)
{
    int i = global_thread();
    u32 mt[624];
    mt[0] = seed[i];
    for (u32 k = 1; k < 624; k++)
        mt[k] = 1812433253u * (mt[k - 1] ^ mt[k - 1] >> 30) + k;
    for (int k = 0; k < 624; k++) {
        u32 y = (mt[k] & 0x80000000u) | (mt[(k + 1) % 624] & 0x7fffffffu);
        mt[k] = mt[(k + 397) % 624] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    for (int k = 0; k < 16; k++) {
        u32 y = mt[k * 39];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        out[i * 16 + k] = y ^ y >> 18;
    }
}
CORPUS(mersenne_twister, grid(1), block(32), out<u32>(512), in<u32>(32, bits(406)))

KERNEL xorshift_pi(u32 *inside, const u32 *seed, int tries)
{
    int i = global_thread();
    u32 x = seed[i] | 1, hits = 0;
    for (int k = 0; k < tries; k++) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        float u = (float)(x >> 8) * 0x1p-24f;
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        float v = (float)(x >> 8) * 0x1p-24f;
        hits += u * u + v * v < 1.0f;
    }
    atomicAdd(inside, hits);
}
CORPUS(xorshift_pi, grid(4), block(64), in<u32>(1, zero()), in<u32>(256, bits(407)), value(100))

KERNEL philox(u32 *out, u32 key)
{
    u32 i = (u32)global_thread();
    u32 c[4] = {i, 0, 7, 9}, k[2] = {key, 0xdeadbeefu};
    for (int r = 0; r < 10; r++) {
        u32 h0 = __umulhi(0xd2511f53u, c[0]), l0 = 0xd2511f53u * c[0];
        u32 h1 = __umulhi(0xcd9e8d57u, c[2]), l1 = 0xcd9e8d57u * c[2];
        c[0] = h1 ^ c[1] ^ k[0];
        c[2] = h0 ^ c[3] ^ k[1];
        c[1] = l1;
        c[3] = l0;
        k[0] += 0x9e3779b9u;
        k[1] += 0xbb67ae85u;
    }
    for (int j = 0; j < 4; j++)
        out[i * 4 + (u32)j] = c[j];
}
CORPUS(philox, grid(2), block(128), out<u32>(1024), value(0x12345u))

/* ---- sorting ---- */
KERNEL bitonic_sort(u32 *data)
{
    __shared__ u32 s[256];
    u32 t = threadIdx.x, base = blockIdx.x * 256;
    s[t] = data[base + t];
    __syncthreads();
    for (u32 k = 2; k <= 256; k <<= 1)
        for (u32 j = k >> 1; j; j >>= 1) {
            u32 o = t ^ j;
            if (o > t && (s[t] > s[o]) == ((t & k) == 0)) {
                u32 x = s[t];
                s[t] = s[o];
                s[o] = x;
            }
            __syncthreads();
        }
    data[base + t] = s[t];
}
CORPUS(bitonic_sort, grid(2), block(256), in<u32>(512, bits(408)))

/* One pass by four bits, stable, within a block. */
KERNEL radix_sort_pass(u32 *out, const u32 *a, u32 shift)
{
    __shared__ u32 count[16][128];
    u32 t = threadIdx.x, base = blockIdx.x * 128, x = a[base + t], digit = x >> shift & 15;
    for (u32 d = 0; d < 16; d++)
        count[d][t] = d == digit;
    __syncthreads();
    for (u32 step = 1; step < 128; step <<= 1) {
        u32 add[16];
        for (u32 d = 0; d < 16; d++)
            add[d] = t >= step ? count[d][t - step] : 0;
        __syncthreads();
        for (u32 d = 0; d < 16; d++)
            count[d][t] += add[d];
        __syncthreads();
    }
    u32 before = count[digit][t] - 1;
    for (u32 d = 0; d < digit; d++)
        before += count[d][127];
    out[base + before] = x;
}
CORPUS(radix_sort_pass, grid(2), block(128), out<u32>(256), in<u32>(256, bits(409)), value(8u))

KERNEL odd_even_sort(s16 *data)
{
    __shared__ s16 s[64];
    int t = (int)threadIdx.x;
    s[t] = data[t];
    __syncthreads();
    for (int round = 0; round < 64; round++) {
        int o = t + 1;
        if ((t ^ round) % 2 == 0 && o < 64 && s[t] > s[o]) {
            s16 x = s[t];
            s[t] = s[o];
            s[o] = x;
        }
        __syncthreads();
    }
    data[t] = s[t];
}
CORPUS(odd_even_sort, grid(1), block(64), in<s16>(64, bits(410)))

/* With a stack of its own instead of recursion, one array a thread. */
KERNEL quicksort(s32 *data, int n)
{
    s32 *a = data + global_thread() * n;
    int low[16], high[16], top = 0;
    low[0] = 0, high[0] = n - 1;
    while (top >= 0) {
        int l = low[top], h = high[top];
        top--;
        while (l < h) {
            s32 pivot = a[(l + h) / 2];
            int i = l, j = h;
            while (i <= j) {
                while (a[i] < pivot)
                    i++;
                while (a[j] > pivot)
                    j--;
                if (i <= j) {
                    s32 x = a[i];
                    a[i] = a[j];
                    a[j] = x;
                    i++, j--;
                }
            }
            /* The longer part waits, so that the stack stays short. */
            top++;
            if (j - l > h - i) {
                low[top] = l, high[top] = j;
                l = i;
            } else {
                low[top] = i, high[top] = h;
                h = j;
            }
        }
    }
}
CORPUS(quicksort, grid(1), block(32), in<s32>(32 * 60, bits(411)), value(60))

KERNEL merge_path(u32 *out, const u32 *a, const u32 *b, int n)
{
    /* Each thread its place in the merger of two sorted lists: its index plus those below it in the
     * other. */
    int i = global_thread();
    bool first = i < n;
    const u32 *other = first ? b : a;
    u32 x = first ? a[i] : b[i - n];
    int low = 0, high = n;
    while (low < high) {
        int m = (low + high) / 2;
        if (other[m] < x || (!first && other[m] == x))
            low = m + 1;
        else
            high = m;
    }
    out[(first ? i : i - n) + low] = x;
}
#ifndef __CUDACC__
static void fill_sorted(void *data, size_t count)
{
    u32 *v = (u32 *)data, x = 5;
    for (size_t k = 0; k < count; k++)
        v[k] = x += (u32)(k * 7919 % 5);
}
#endif
CORPUS(merge_path, grid(4), block(64), out<u32>(256), in<u32>(128, call(fill_sorted)),
       in<u32>(128, call(fill_sorted)), value(128))

/* ---- dynamic programming, strings, search ---- */
KERNEL knapsack(u32 *best, const u8 *weight, const u8 *worth, int items)
{
    __shared__ u32 row[2][128];
    int t = (int)threadIdx.x, now = 0;
    row[0][t] = 0;
    __syncthreads();
    for (int k = 0; k < items; k++) {
        u32 skip = row[now][t], w = weight[k] % 20u + 1;
        u32 take = (u32)t >= w ? row[now][t - (int)w] + worth[k] : 0;
        row[1 - now][t] = max(skip, take);
        now = 1 - now;
        __syncthreads();
    }
    best[t] = row[now][t];
}
CORPUS(knapsack, grid(1), block(128), out<u32>(128), in<u8>(40, bits(412)), in<u8>(40, bits(413)),
       value(40))

KERNEL edit_distance(u32 *out, const u8 *a, const u8 *b, int n)
{
    int i = global_thread();
    u8 row[33];
    for (int k = 0; k <= n; k++)
        row[k] = (u8)k;
    for (int x = 1; x <= n; x++) {
        u8 corner = row[0];
        row[0] = (u8)x;
        for (int y = 1; y <= n; y++) {
            u8 cost = (u8)(corner + ((a[i * n + x - 1] & 3) != (b[i * n + y - 1] & 3)));
            u8 step = (u8)(min((int)row[y], (int)row[y - 1]) + 1);
            corner = row[y];
            row[y] = cost < step ? cost : step;
        }
    }
    out[i] = row[n];
}
CORPUS(edit_distance, grid(1), block(32), out<u32>(32), in<u8>(32 * 32, bits(414)),
       in<u8>(32 * 32, bits(415)), value(32))

KERNEL longest_common_subsequence(u32 *out, const u8 *a, const u8 *b)
{
    /* Diagonal by diagonal, a thread a column. */
    __shared__ u16 d[3][65];
    int t = (int)threadIdx.x;
    for (int k = t; k < 65 * 3; k += 64)
        (&d[0][0])[k] = 0;
    __syncthreads();
    for (int k = 0; k < 127; k++) {
        int y = k - t, now = k % 3, last = (k + 2) % 3, before = (k + 1) % 3;
        u16 r = 0;
        if (y >= 0 && y < 64) {
            u16 left = d[last][t], up = y ? d[last][t + 1] : 0, corner = y ? d[before][t] : 0;
            r = (a[t] & 7) == (b[y] & 7) ? (u16)(corner + 1) : left > up ? left : up;
        }
        __syncthreads();
        if (y >= 0 && y < 64)
            d[now][t + 1] = r;
        if (y == 63)
            out[t] = r;
        __syncthreads();
    }
}
CORPUS(longest_common_subsequence, grid(1), block(64), out<u32>(64), in<u8>(64, bits(416)),
       in<u8>(64, bits(417)))

KERNEL string_search(u32 *count, u8 *where, const u8 *text, int n, uchar4 pattern)
{
    int i = global_thread();
    u8 p[4] = {pattern.x, pattern.y, pattern.z, pattern.w};
    bool hit = i + 4 <= n;
    for (int k = 0; k < 4 && hit; k++)
        hit = (text[i + k] & 3) == p[k];
    if (i < n)
        where[i] = hit;
    u32 all = __ballot_sync(0xffffffffu, hit);
    if ((threadIdx.x & 31) == 0)
        atomicAdd(count, (u32)__popc(all));
}
CORPUS(string_search, grid(16), block(128), in<u32>(1, zero()), out<u8>(2000),
       in<u8>(2000, bits(418)), value(2000), value(make_uchar4(1, 2, 0, 3)))

KERNEL n_queens(u32 *total, int n)
{
    /* Each thread has its first two queens; the rest by backtracking on a bit set. */
    int i = global_thread();
    if (i >= n * n)
        return;
    u32 all = (1u << n) - 1, found = 0;
    u32 cols[12], left[12], right[12], open[12];
    u32 q0 = 1u << (i / n), q1 = 1u << (i % n);
    if (q1 & (q0 | q0 << 1 | q0 >> 1))
        return;
    cols[2] = q0 | q1;
    left[2] = (q0 << 2 | q1 << 1) & all;
    right[2] = q0 >> 2 | q1 >> 1;
    open[2] = all & ~(cols[2] | left[2] | right[2]);
    int row = 2;
    while (row >= 2) {
        if (!open[row]) {
            row--;
            continue;
        }
        u32 q = open[row] & (0 - open[row]);
        open[row] ^= q;
        if (row == n - 1) {
            found++;
            continue;
        }
        cols[row + 1] = cols[row] | q;
        left[row + 1] = (left[row] | q) << 1 & all;
        right[row + 1] = (right[row] | q) >> 1;
        row++;
        open[row] = all & ~(cols[row] | left[row] | right[row]);
    }
    atomicAdd(total, found);
}
CORPUS(n_queens, grid(1), block(64), in<u32>(1, zero()), value(7))

KERNEL game_of_life(u8 *out, const u8 *a, int width, int height)
{
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
        y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    if (x >= width || y >= height)
        return;
    int near = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy)
                near += a[(y + dy + height) % height * width + (x + dx + width) % width] & 1;
    out[y * width + x] = near == 3 || (near == 2 && (a[y * width + x] & 1));
}
CORPUS(game_of_life, grid(3, 5), block(16, 8), out<u8>(40 * 36), in<u8>(40 * 36, bits(419)),
       value(40), value(36))

/* One level of breadth-first search; launched again and again it fills the graph. */
KERNEL bfs_level(s32 *depth, u32 *round, const u16 *edges, int degree)
{
    __shared__ s32 level;
    if (threadIdx.x == 0)
        level = (s32)*round;
    __syncthreads();
    int i = (int)threadIdx.x;
    if (level == 0)
        depth[i] = i ? -1 : 0;
    __syncthreads();
    if (depth[i] == level)
        for (int k = 0; k < degree; k++)
            atomicCAS((u32 *)&depth[edges[i * degree + k] & 255], ~0u, (u32)level + 1);
    __syncthreads();
    if (threadIdx.x == 0)
        *round = (u32)level + 1;
}
CORPUS(bfs_level, grid(1), block(256), out<s32>(256), in<u32>(1, zero()), in<u16>(768, bits(420)),
       value(3), launches(6))

KERNEL prime_sieve(u8 *out, int n)
{
    __shared__ u8 composite[2048];
    for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x)
        composite[k] = k < 2;
    __syncthreads();
    for (int p = 2; p * p < n; p++) {
        if (!composite[p])
            for (int k = p * p + p * (int)threadIdx.x; k < n; k += p * (int)blockDim.x)
                composite[k] = 1;
        __syncthreads();
    }
    for (int k = (int)threadIdx.x; k < n; k += (int)blockDim.x)
        out[k] = !composite[k];
}
CORPUS(prime_sieve, grid(1), block(128), out<u8>(2048), value(2048))

KERNEL base64(u8 *out, const u8 *a)
{
    const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int i = global_thread();
    u32 v = (u32)a[i * 3] << 16 | (u32)a[i * 3 + 1] << 8 | a[i * 3 + 2];
    for (int k = 0; k < 4; k++)
        out[i * 4 + k] = (u8)letters[v >> (18 - 6 * k) & 63];
}
CORPUS(base64, grid(2), block(64), out<u8>(512), in<u8>(384, bits(421)))

KERNEL run_lengths(u8 *symbols, u8 *lengths, u32 *used, const u8 *a, int n)
{
    int i = global_thread();
    u32 o = 0;
    for (int k = 0; k < n;) {
        u8 c = a[i * n + k] & 1;
        int from = k;
        while (k < n && (a[i * n + k] & 1) == c)
            k++;
        symbols[i * n + (int)o] = c;
        lengths[i * n + (int)o] = (u8)(k - from);
        o++;
    }
    used[i] = o;
}
CORPUS(run_lengths, grid(1), block(32), out<u8>(32 * 48), out<u8>(32 * 48), out<u32>(32),
       in<u8>(32 * 48, bits(422)), value(48))

KERNEL calendar(s32 *out, const s32 *days)
{
    /* From days since 1970 to year, month, day (Fliegel and Van Flandern's division chain). */
    int i = global_thread();
    s32 z = days[i] + 719468;
    s32 era = (z >= 0 ? z : z - 146096) / 146097;
    u32 doe = (u32)(z - era * 146097);
    u32 yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    u32 doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    u32 m = mp < 10 ? mp + 3 : mp - 9;
    out[i * 3] = (s32)yoe + era * 400 + (m <= 2);
    out[i * 3 + 1] = (s32)m;
    out[i * 3 + 2] = (s32)(doy - (153 * mp + 2) / 5 + 1);
}
CORPUS(calendar, grid(2), block(128), out<s32>(768), in<s32>(256, range(-200000, 200000, 423)))
