// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Shared memory and barriers.
#include "corpus.h"
#include "ptx_ops.h"

KERNEL shared_reverse(u32 *out, const u32 *a)
{
    __shared__ u32 tile[128];
    int t = (int)threadIdx.x;
    tile[t] = a[global_thread()];
    __syncthreads();
    out[global_thread()] = tile[127 - t];
}
CORPUS(shared_reverse, grid(4), block(128), out<u32>(512), in<u32>(512, bits(191)))

KERNEL shared_transpose(float *out, const float *a, int width, int height)
{
    __shared__ float tile[16][17];
    int x = (int)(blockIdx.x * 16 + threadIdx.x), y = (int)(blockIdx.y * 16 + threadIdx.y);
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = a[y * width + x];
    __syncthreads();
    x = (int)(blockIdx.y * 16 + threadIdx.x);
    y = (int)(blockIdx.x * 16 + threadIdx.y);
    if (x < height && y < width)
        out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
CORPUS(shared_transpose, grid(4, 3), block(16, 16), out<float>(50 * 41),
       in<float>(50 * 41, bits(192)), value(50), value(41))

KERNEL shared_reduce(s32 *out, const s32 *a)
{
    __shared__ s32 sum[256];
    int t = (int)threadIdx.x;
    sum[t] = a[global_thread()];
    __syncthreads();
    for (int d = 128; d; d >>= 1) {
        if (t < d)
            sum[t] += sum[t + d];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = sum[0];
}
CORPUS(shared_reduce, grid(8), block(256), out<s32>(8), in<s32>(2048, range(-1e6, 1e6, 193)))

KERNEL shared_reduce_float(float *out, const float *a)
{
    __shared__ float sum[128];
    int t = (int)threadIdx.x;
    sum[t] = a[global_thread()] + a[global_thread() + 512];
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        if (t % (2 * d) == 0)
            sum[t] += sum[t + d];
        __syncthreads();
    }
    if (!t)
        out[blockIdx.x] = sum[0];
}
CORPUS(shared_reduce_float, grid(4), block(128), out<float>(4),
       in<float>(1024, range(-10, 10, 194)))

KERNEL shared_scan(u32 *out, const u32 *a)
{
    __shared__ u32 s[2][128];
    int t = (int)threadIdx.x, from = 0;
    s[0][t] = a[global_thread()];
    __syncthreads();
    for (int d = 1; d < 128; d <<= 1) {
        s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[global_thread()] = s[from][t];
}
CORPUS(shared_scan, grid(4), block(128), out<u32>(512), in<u32>(512, bits(195)))

KERNEL shared_dynamic(u32 *out, const u32 *a, int n)
{
    DYNAMIC_SHARED(u32, scratch);
    int t = (int)threadIdx.x;
    for (int k = t; k < n; k += (int)blockDim.x)
        scratch[k] = a[k] * 3;
    __syncthreads();
    u32 r = 0;
    for (int k = 0; k < 16; k++)
        r = r * 5 + scratch[(t * 7 + k * 13) % n];
    out[global_thread()] = r + ptx_dynamic_smem_size();
}
CORPUS(shared_dynamic, grid(2), block(64), shared(4096), out<u32>(128), in<u32>(1024, bits(196)),
       value(1000))

/* One dynamic array cut into three of different types, beside a static one. */
KERNEL shared_dynamic_parts(double *out, const double *a)
{
    DYNAMIC_SHARED(double, parts);
    __shared__ u16 counts[32];
    int *whole = (int *)(parts + 32);
    u8 *bytes = (u8 *)(whole + 32);
    int t = (int)threadIdx.x;
    parts[t] = a[t];
    whole[t] = (int)(a[t] * 1000);
    bytes[t] = (u8)(t * 9);
    counts[t] = (u16)(t * t);
    __syncthreads();
    int o = (t * 5 + 3) & 31;
    out[t] = parts[o] + whole[o] + bytes[o] - counts[o];
}
CORPUS(shared_dynamic_parts, grid(1), block(32), shared(32 * 13), out<double>(32),
       in<double>(32, range(-5, 5, 197)))

/* More than the 48 KiB that every launch may have. */
KERNEL shared_dynamic_large(u32 *out, int words)
{
    DYNAMIC_SHARED(u32, large);
    for (int k = (int)threadIdx.x; k < words; k += (int)blockDim.x)
        large[k] = (u32)(k * 2654435761u);
    __syncthreads();
    u32 r = 0;
    for (int k = (int)threadIdx.x; k < words; k += (int)blockDim.x)
        r ^= large[words - 1 - k] >> (k & 15);
    out[threadIdx.x] = r;
}
CORPUS(shared_dynamic_large, grid(1), block(128), shared(60 << 10), out<u32>(128), value(60 << 8))

KERNEL shared_types(s32 *out, const s32 *a)
{
    __shared__ s8 b[64];
    __shared__ u16 h[64];
    __shared__ s64 w[64];
    __shared__ float4 v[64];
    __shared__ double d[64];
    int t = (int)threadIdx.x;
    b[t] = (s8)a[t];
    h[t] = (u16)(a[t] >> 8);
    w[t] = (s64)a[t] * a[t];
    v[t] = make_float4((float)t, 1.5f, (float)(a[t] & 255), -2);
    d[t] = a[t] / 4.0;
    __syncthreads();
    int o = 63 - t;
    out[t] = b[o] + h[o] + (s32)(w[o] >> 20) + (s32)(v[o].x + v[o].y * v[o].z + v[o].w) + (s32)d[o];
}
CORPUS(shared_types, grid(1), block(64), out<s32>(64), in<s32>(64, range(-1e6, 1e6, 198)))

/* Every stride from 1 to 33: each hits the banks in its own way. */
KERNEL shared_strides(u32 *out)
{
    __shared__ u32 s[32 * 33];
    int t = (int)threadIdx.x;
    u32 r = 0;
    for (int stride = 1; stride <= 33; stride++) {
        s[t * stride] = (u32)(t * stride * 77);
        __syncthreads();
        r = r * 3 + s[((t + 5) & 31) * stride];
        __syncthreads();
    }
    out[t] = r;
}
CORPUS(shared_strides, grid(1), block(32), out<u32>(32))

KERNEL shared_histogram(u32 *out, const u8 *a, int n)
{
    __shared__ u32 bin[64];
    int t = (int)threadIdx.x;
    if (t < 64)
        bin[t] = 0;
    __syncthreads();
    for (int k = global_thread(); k < n; k += (int)(gridDim.x * blockDim.x))
        atomicAdd(&bin[a[k] >> 2], 1u);
    __syncthreads();
    if (t < 64)
        atomicAdd(&out[t], bin[t]);
}
CORPUS(shared_histogram, grid(4), block(128), in<u32>(64, zero()), in<u8>(5000, bits(199)),
       value(5000))

KERNEL shared_stencil(float *out, const float *a, int n)
{
    __shared__ float s[128 + 6];
    int t = (int)threadIdx.x, i = global_thread();
    s[t + 3] = i < n ? a[i] : 0;
    if (t < 3) {
        s[t] = i >= 3 ? a[i - 3] : 0;
        s[t + 131] = i + 128 < n ? a[i + 128] : 0;
    }
    __syncthreads();
    float r = 0;
    for (int k = -3; k <= 3; k++)
        r += s[t + 3 + k] * (float)(4 - (k < 0 ? -k : k));
    if (i < n)
        out[i] = r / 16;
}
CORPUS(shared_stencil, grid(4), block(128), out<float>(500), in<float>(500, range(0, 1, 200)),
       value(500))

KERNEL shared_broadcast(u32 *out, const u32 *a)
{
    __shared__ u32 leader;
    __shared__ u32 found[4];
    int t = (int)threadIdx.x;
    for (int round = 0; round < 4; round++) {
        if (t == round * 30)
            leader = a[(int)blockIdx.x * 4 + round];
        __syncthreads();
        if (((u32)t * 2654435761u ^ leader) % 128 == 0)
            found[round] = leader;
        else if (t == 0)
            found[round] = leader;
        __syncthreads();
        out[((int)blockIdx.x * 4 + round) * 128 + t] = found[round] + (u32)t;
        __syncthreads();
    }
}
CORPUS(shared_broadcast, grid(2), block(128), out<u32>(1024), in<u32>(8, bits(201)))

/* ---- barriers that count and vote ---- */
KERNEL barrier_count(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 odd = (u32)__syncthreads_count(a[i] & 1);
    u32 all = (u32)__syncthreads_and(a[i] > 1000) != 0;
    u32 any = (u32)__syncthreads_or(a[i] % 61 == 0) != 0;
    u32 none = (u32)__syncthreads_or(0) != 0, every = (u32)__syncthreads_and(1) != 0;
    out[i] = odd | all << 10 | any << 11 | none << 12 | every << 13;
}
CORPUS(barrier_count, grid(8), block(96), out<u32>(768), in<u32>(768, bits(202)))

/* Threads that have left are not waited for. */
KERNEL barrier_after_exit(u32 *out)
{
    __shared__ u32 s[128];
    int t = (int)threadIdx.x;
    s[t] = (u32)t * 3;
    __syncthreads();
    if (t >= 96)
        return;
    u32 x = s[t + 32];
    __syncthreads();
    s[t] = x;
    __syncthreads();
    out[t] = s[95 - t];
}
CORPUS(barrier_after_exit, grid(1), block(128), out<u32>(96))

/* Two halves of a block, each with a barrier of its own. */
KERNEL barrier_named(u32 *out, const u32 *a)
{
    __shared__ u32 s[128];
    u32 t = threadIdx.x, half = t / 64;
    u32 x = a[t];
    for (int k = 0; k < 6; k++) {
        s[t] = x;
        ptx_bar_sync(1 + half, 64);
        x += s[half * 64 + ((t + 1 + (u32)k) & 63)] * (half + 2);
        ptx_bar_sync(1 + half, 64);
    }
    out[t] = x;
}
CORPUS(barrier_named, grid(1), block(128), out<u32>(128), in<u32>(128, bits(203)))

/* A warp produces, another consumes; each waits only where it must. */
KERNEL barrier_producer(u32 *out, const u32 *a)
{
    __shared__ u32 box[32];
    u32 lane = threadIdx.x & 31, warp = threadIdx.x / 32, sum = 0;
    for (u32 k = 0; k < 8; k++) {
        if (warp == 0) {
            if (k)
                ptx_bar_sync(2, 64); /* the box is empty */
            box[lane] = a[k * 32 + lane] + k;
            ptx_bar_arrive(1, 64); /* the box is full */
        } else {
            ptx_bar_sync(1, 64);
            sum = sum * 3 + box[31 - lane];
            if (k < 7)
                ptx_bar_arrive(2, 64);
        }
    }
    if (warp)
        out[lane] = sum;
}
CORPUS(barrier_producer, grid(1), block(64), out<u32>(32), in<u32>(256, bits(204)))

KERNEL barrier_popc_named(u32 *out, const u32 *a)
{
    u32 t = threadIdx.x, r;
    if (t < 64)
        r = ptx_bar_popc(3, 64, a[t] & 1);
    else
        r = ptx_bar_popc(4, 32, a[t] & 2);
    out[t] = r;
}
CORPUS(barrier_popc_named, grid(1), block(96), out<u32>(96), in<u32>(96, bits(205)))

/* The same barrier from two places of the source. */
KERNEL barrier_two_places(u32 *out)
{
    __shared__ u32 s[64];
    int t = (int)threadIdx.x;
    s[t] = (u32)t;
    if (t < 32) {
        s[t] += 100;
        __syncthreads();
    } else {
        s[t] += 200;
        __syncthreads();
    }
    out[t] = s[t ^ 32];
}
CORPUS(barrier_two_places, grid(1), block(64), out<u32>(64))
