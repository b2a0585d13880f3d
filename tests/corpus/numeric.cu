// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Small numerical programs: linear algebra, transforms, simulation, images.
#include "corpus.h"

#define TILE 16
KERNEL matmul_tiled(float *c, const float *a, const float *b, int n)
{
    __shared__ float x[TILE][TILE], y[TILE][TILE];
    int row = (int)(blockIdx.y * TILE + threadIdx.y), col = (int)(blockIdx.x * TILE + threadIdx.x);
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        int kx = k + (int)threadIdx.x, ky = k + (int)threadIdx.y;
        x[threadIdx.y][threadIdx.x] = row < n && kx < n ? a[row * n + kx] : 0;
        y[threadIdx.y][threadIdx.x] = col < n && ky < n ? b[ky * n + col] : 0;
        __syncthreads();
        for (int j = 0; j < TILE; j++)
            sum += x[threadIdx.y][j] * y[j][threadIdx.x];
        __syncthreads();
    }
    if (row < n && col < n)
        c[row * n + col] = sum;
}
CORPUS(matmul_tiled, grid(3, 3), block(TILE, TILE), out<float>(40 * 40),
       in<float>(1600, range(-1, 1, 431)), in<float>(1600, range(-1, 1, 432)), value(40))

KERNEL matmul_double(double *c, const double *a, const double *b, int n)
{
    int i = global_thread(), row = i / n, col = i % n;
    if (row >= n)
        return;
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum = fma(a[row * n + k], b[k * n + col], sum);
    c[i] = sum;
}
CORPUS(matmul_double, grid(5), block(128), out<double>(576), in<double>(576, range(-1, 1, 433)),
       in<double>(576, range(-1, 1, 434)), value(24))

/* In place, one block, a thread a row, no pivoting: the diagonal dominates. */
KERNEL lu_decompose(double *data)
{
    __shared__ double m[16][17];
    int t = (int)threadIdx.x;
    double *a = data + blockIdx.x * 256;
    for (int k = 0; k < 16; k++)
        m[t][k] = a[t * 16 + k] + (t == k ? 20.0 : 0.0);
    __syncthreads();
    for (int k = 0; k < 15; k++) {
        if (t > k) {
            double f = m[t][k] / m[k][k];
            m[t][k] = f;
            for (int j = k + 1; j < 16; j++)
                m[t][j] -= f * m[k][j];
        }
        __syncthreads();
    }
    for (int k = 0; k < 16; k++)
        a[t * 16 + k] = m[t][k];
}
CORPUS(lu_decompose, grid(4), block(16), in<double>(1024, range(-1, 1, 435)))

KERNEL gauss_jordan(float *out, const float *a, const float *b)
{
    int i = global_thread();
    float m[4][5];
    for (int r = 0; r < 4; r++) {
        for (int c = 0; c < 4; c++)
            m[r][c] = a[i * 16 + r * 4 + c];
        m[r][4] = b[i * 4 + r];
    }
    for (int k = 0; k < 4; k++) {
        int best = k;
        for (int r = k + 1; r < 4; r++)
            if (fabsf(m[r][k]) > fabsf(m[best][k]))
                best = r;
        for (int c = 0; c < 5; c++) {
            float x = m[k][c];
            m[k][c] = m[best][c];
            m[best][c] = x;
        }
        float p = m[k][k];
        for (int c = k; c < 5; c++)
            m[k][c] /= p;
        for (int r = 0; r < 4; r++)
            if (r != k) {
                float f = m[r][k];
                for (int c = k; c < 5; c++)
                    m[r][c] -= f * m[k][c];
            }
    }
    for (int r = 0; r < 4; r++)
        out[i * 4 + r] = m[r][4];
}
CORPUS(gauss_jordan, grid(1), block(64), out<float>(256), in<float>(1024, range(-1, 1, 436)),
       in<float>(256, range(-1, 1, 437)))

/* Decimation in time, twiddles from the host. */
__constant__ float2 fft_twiddle[32];
#ifndef __CUDACC__
static void fill_twiddle(void *data, size_t count)
{
    float *v = (float *)data;
    for (size_t k = 0; k < count / 2; k++) {
        v[k * 2] = (float)cosl(-2 * corpus_pi * (corpus_long)k / 64);
        v[k * 2 + 1] = (float)sinl(-2 * corpus_pi * (corpus_long)k / 64);
    }
}
#endif
KERNEL fft64(float2 *data)
{
    __shared__ float2 s[64];
    u32 t = threadIdx.x;
    float2 *a = data + blockIdx.x * 64;
    s[__brev(t) >> 26] = a[t];
    s[__brev(t + 32) >> 26] = a[t + 32];
    __syncthreads();
    for (u32 half = 1; half < 64; half *= 2) {
        u32 k = t & (half - 1), i = (t / half) * half * 2 + k, j = i + half;
        float2 w = fft_twiddle[k * (32 / half)], x = s[i], y = s[j];
        float2 z = make_float2(y.x * w.x - y.y * w.y, y.x * w.y + y.y * w.x);
        __syncthreads();
        s[i] = make_float2(x.x + z.x, x.y + z.y);
        s[j] = make_float2(x.x - z.x, x.y - z.y);
        __syncthreads();
    }
    a[t] = s[t];
    a[t + 32] = s[t + 32];
}
CORPUS(fft64, grid(4), block(32), in<float>(512, range(-1, 1, 438)),
       symbol(float, fft_twiddle, 64, call(fill_twiddle)))

KERNEL walsh_hadamard(s32 *data)
{
    __shared__ s32 s[128];
    int t = (int)threadIdx.x;
    s[t] = data[blockIdx.x * 128 + t];
    s[t + 64] = data[blockIdx.x * 128 + t + 64];
    __syncthreads();
    for (int h = 1; h < 128; h *= 2) {
        int i = (t / h) * h * 2 + t % h;
        s32 x = s[i], y = s[i + h];
        s[i] = x + y;
        s[i + h] = x - y;
        __syncthreads();
    }
    data[blockIdx.x * 128 + t] = s[t];
    data[blockIdx.x * 128 + t + 64] = s[t + 64];
}
CORPUS(walsh_hadamard, grid(2), block(64), in<s32>(256, range(-1000, 1000, 439)))

KERNEL mandelbrot(u16 *out, int width, int height)
{
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
        y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    if (x >= width || y >= height)
        return;
    float cr = -2.2f + 3.0f * (float)x / (float)width, ci = -1.2f + 2.4f * (float)y / (float)height,
          r = 0, i = 0;
    int n = 0;
    while (n < 200 && r * r + i * i < 4) {
        float t = r * r - i * i + cr;
        i = 2 * r * i + ci;
        r = t;
        n++;
    }
    out[y * width + x] = (u16)n;
}
CORPUS(mandelbrot, grid(4, 8), block(16, 4), out<u16>(60 * 30), value(60), value(30))

KERNEL julia_double(u16 *out, int width)
{
    int i = global_thread();
    double r = -1.6 + 3.2 * (i % width) / width, m = -1.6 + 3.2 * (i / width) / width;
    u16 n = 0;
    for (; n < 300; n++) {
        double rr = r * r, mm = m * m;
        if (rr + mm > 4)
            break;
        m = 2 * r * m + 0.156;
        r = rr - mm - 0.8;
    }
    out[i] = n;
}
CORPUS(julia_double, grid(8), block(128), out<u16>(1024), value(32))

KERNEL nbody_step(float4 *out, const float4 *body, int n, float dt)
{
    __shared__ float4 s[64];
    int i = global_thread();
    float4 me = body[i];
    float ax = 0, ay = 0, az = 0;
    for (int k = 0; k < n; k += 64) {
        s[threadIdx.x] = body[k + (int)threadIdx.x];
        __syncthreads();
        for (int j = 0; j < 64; j++) {
            float dx = s[j].x - me.x, dy = s[j].y - me.y, dz = s[j].z - me.z;
            float d = dx * dx + dy * dy + dz * dz + 0.01f, inv = 1.0f / sqrtf(d),
                  f = s[j].w * inv * inv * inv;
            ax += dx * f;
            ay += dy * f;
            az += dz * f;
        }
        __syncthreads();
    }
    out[i] = make_float4(me.x + ax * dt, me.y + ay * dt, me.z + az * dt, me.w);
}
CORPUS(nbody_step, grid(2), block(64), out<float>(512), in<float>(512, range(0, 1, 440)),
       value(128), value(0.01f))

KERNEL stencil_heat(float *out, const float *a, int n)
{
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
        y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    if (x >= n || y >= n)
        return;
    float here = a[y * n + x];
    float up = y ? a[(y - 1) * n + x] : here, down = y < n - 1 ? a[(y + 1) * n + x] : here;
    float left = x ? a[y * n + x - 1] : here, right = x < n - 1 ? a[y * n + x + 1] : here;
    out[y * n + x] = here + 0.2f * (up + down + left + right - 4 * here);
}
CORPUS(stencil_heat, grid(3, 6), block(16, 8), out<float>(45 * 45),
       in<float>(45 * 45, range(0, 100, 441)), value(45))

KERNEL stencil_3d(double *out, const double *a, int n)
{
    int x = (int)threadIdx.x + 1, y = (int)threadIdx.y + 1, z = (int)blockIdx.x + 1;
    int i = (z * n + y) * n + x;
    out[i] = (a[i - 1] + a[i + 1] + a[i - n] + a[i + n] + a[i - n * n] + a[i + n * n]) / 6 - a[i];
}
CORPUS(stencil_3d, grid(10), block(10, 10), out<double>(1728), in<double>(1728, range(-1, 1, 442)),
       value(12))

KERNEL convolve(float *out, const float *a, const float *filter, int width, int height)
{
    __shared__ float f[25];
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
        y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    int t = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    if (t < 25)
        f[t] = filter[t];
    __syncthreads();
    if (x >= width || y >= height)
        return;
    float sum = 0;
    for (int v = -2; v <= 2; v++)
        for (int u = -2; u <= 2; u++) {
            int px = min(max(x + u, 0), width - 1), py = min(max(y + v, 0), height - 1);
            sum += a[py * width + px] * f[(v + 2) * 5 + u + 2];
        }
    out[y * width + x] = sum;
}
CORPUS(convolve, grid(3, 4), block(16, 8), out<float>(40 * 30), in<float>(1200, range(0, 255, 443)),
       in<float>(25, range(-1, 1, 444)), value(40), value(30))

KERNEL sobel_bytes(u8 *out, const u8 *a, int width, int height)
{
    int x = (int)(blockIdx.x * blockDim.x + threadIdx.x),
        y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1)
        return;
    const u8 *p = a + y * width + x;
    int gx = p[1 - width] + 2 * p[1] + p[1 + width] - p[-1 - width] - 2 * p[-1] - p[-1 + width];
    int gy =
        p[width - 1] + 2 * p[width] + p[width + 1] - p[-width - 1] - 2 * p[-width] - p[-width + 1];
    int m = (gx < 0 ? -gx : gx) + (gy < 0 ? -gy : gy);
    out[y * width + x] = (u8)(m > 255 ? 255 : m);
}
CORPUS(sobel_bytes, grid(3, 4), block(16, 8), out<u8>(1200), in<u8>(1200, bits(445)), value(40),
       value(30))

KERNEL saxpy(float *y, const float *x, float a, int n)
{
    int i = global_thread();
    if (i < n)
        y[i] = a * x[i] + y[i];
}
CORPUS(saxpy, grid(8), block(128), in<float>(1000, range(-1, 1, 446)),
       in<float>(1000, range(-1, 1, 447)), value(2.5f), value(1000))

KERNEL sparse_matrix(double *y, const u32 *row, const u16 *col, const double *v, const double *x,
                     int rows)
{
    int r = global_thread();
    if (r >= rows)
        return;
    double sum = 0;
    for (u32 k = row[r]; k < row[r + 1]; k++)
        sum += v[k] * x[col[k] & 127];
    y[r] = sum;
}
#ifndef __CUDACC__
static void fill_rows(void *data, size_t count)
{
    u32 *v = (u32 *)data;
    for (size_t k = 1; k < count; k++)
        v[k] = v[k - 1] + (u32)(k * k % 9);
}
#endif
CORPUS(sparse_matrix, grid(2), block(64), out<double>(100), in<u32>(101, call(fill_rows)),
       in<u16>(900, bits(448)), in<double>(900, range(-1, 1, 449)),
       in<double>(128, range(-1, 1, 450)), value(100))

KERNEL kmeans_assign(u32 *nearest, float *sums, u32 *counts, const float2 *p, const float2 *centre,
                     int k)
{
    int i = global_thread();
    float best = 1e30f;
    u32 at = 0;
    for (int c = 0; c < k; c++) {
        float dx = p[i].x - centre[c].x, dy = p[i].y - centre[c].y, d = dx * dx + dy * dy;
        if (d < best) {
            best = d;
            at = (u32)c;
        }
    }
    nearest[i] = at;
    atomicAdd(&counts[at], 1u);
    atomicAdd(&sums[at], (float)(int)(p[i].x * 100));
}
CORPUS(kmeans_assign, grid(4), block(64), out<u32>(256), in<float>(5, zero()), in<u32>(5, zero()),
       in<float>(512, range(-5, 5, 451)), in<float>(10, range(-5, 5, 452)), value(5))

KERNEL black_scholes(float *call_price, float *put_price, const float *spot, const float *strike)
{
    int i = global_thread();
    float s = spot[i], x = strike[i], t = 0.5f, r = 0.02f, v = 0.3f;
    float root = sqrtf(t), d1 = (logf(s / x) + (r + 0.5f * v * v) * t) / (v * root),
          d2 = d1 - v * root;
    float n1 = 0.5f * erfcf(-d1 * 0.70710678f), n2 = 0.5f * erfcf(-d2 * 0.70710678f),
          e = expf(-r * t);
    call_price[i] = s * n1 - x * e * n2;
    put_price[i] = x * e * (1 - n2) - s * (1 - n1);
}
CORPUS(black_scholes, grid(2), block(128), out<float>(256).within(2e-3),
       out<float>(256).within(2e-3), in<float>(256, range(20, 120, 453)),
       in<float>(256, range(20, 120, 454)))

KERNEL newton_cube_root(double *out, u32 *steps, const double *a)
{
    int i = global_thread();
    double x = a[i] > 1 ? a[i] / 3 : 1, last = 0;
    u32 n = 0;
    while (x != last && n < 100) {
        last = x;
        x = (2 * x + a[i] / (x * x)) / 3;
        n++;
        if (fabs(x - last) < 1e-12 * x)
            break;
    }
    out[i] = x;
    steps[i] = n;
}
CORPUS(newton_cube_root, grid(2), block(64), out<double>(128), out<u32>(128),
       in<double>(128, range(0.001, 1e6, 455)))

KERNEL simpson(double *out, int steps)
{
    __shared__ double part[64];
    int t = (int)threadIdx.x;
    double sum = 0, h = 1.0 / steps;
    for (int k = t; k <= steps; k += 64) {
        double x = k * h, f = 4 / (1 + x * x);
        sum += f * (k == 0 || k == steps ? 1 : k & 1 ? 4 : 2);
    }
    part[t] = sum;
    __syncthreads();
    for (int d = 32; d; d >>= 1) {
        if (t < d)
            part[t] += part[t + d];
        __syncthreads();
    }
    if (!t)
        *out = part[0] * h / 3;
}
CORPUS(simpson, grid(1), block(64), out<double>(1), value(1000))

KERNEL runge_kutta(double *out, const double *start, int steps)
{
    /* A pendulum with friction, its sine by seven terms so that every bit is ours. */
    int i = global_thread();
    double a = start[i], w = 0, h = 0.01;
    for (int n = 0; n < steps; n++) {
        double ka[4], kw[4], pa = a, pw = w;
        for (int k = 0; k < 4; k++) {
            double x = pa, x2 = x * x, s = x, term = x;
            for (int j = 1; j < 7; j++) {
                term *= -x2 / ((2 * j) * (2 * j + 1));
                s += term;
            }
            ka[k] = pw;
            kw[k] = -9.81 * s - 0.1 * pw;
            double f = k < 2 ? h / 2 : h;
            pa = a + f * ka[k];
            pw = w + f * kw[k];
        }
        a += h / 6 * (ka[0] + 2 * ka[1] + 2 * ka[2] + ka[3]);
        w += h / 6 * (kw[0] + 2 * kw[1] + 2 * kw[2] + kw[3]);
    }
    out[i * 2] = a;
    out[i * 2 + 1] = w;
}
CORPUS(runge_kutta, grid(1), block(32), out<double>(64), in<double>(32, range(-1, 1, 456)),
       value(50))

/* Scans within warps, then over the warps' sums; the blocks' totals meet in one atomic. */
KERNEL scan_blocks(u32 *out, u32 *total, const u32 *a)
{
    __shared__ u32 warp_sum[4];
    u32 t = threadIdx.x, lane = t & 31, w = t / 32, x = a[blockIdx.x * 128 + t], own = x;
    for (u32 d = 1; d < 32; d <<= 1) {
        u32 y = __shfl_up_sync(0xffffffffu, x, d);
        if (lane >= d)
            x += y;
    }
    if (lane == 31)
        warp_sum[w] = x;
    __syncthreads();
    if (t == 0) {
        u32 sum = 0;
        for (int k = 0; k < 4; k++) {
            u32 s = warp_sum[k];
            warp_sum[k] = sum;
            sum += s;
        }
        atomicAdd(total, sum);
    }
    __syncthreads();
    out[blockIdx.x * 128 + t] = x - own + warp_sum[w];
}
CORPUS(scan_blocks, grid(4), block(128), out<u32>(512), in<u32>(1, zero()),
       in<u32>(512, range(0, 1000, 457)))
