// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// What nvcc makes of arithmetic when it may contract, as it does unless told otherwise:
// add and mul without a rounding, fma in their place. All numbers are whole and small,
// so that every result is exact whether contracted or not.
// nvcc: -fmad=true
#include "corpus.h"

KERNEL contract_basic(float *out, double *wide, const s16 *a, const s16 *b)
{
    int i = global_thread();
    float x = a[i], y = b[i];
    double p = a[i], q = b[i];
    out[i * 5] = x + y;
    out[i * 5 + 1] = x - y;
    out[i * 5 + 2] = x * 3;
    out[i * 5 + 3] = x * y + 7;
    out[i * 5 + 4] = y - x * 5;
    wide[i * 4] = p + q;
    wide[i * 4 + 1] = p - q;
    wide[i * 4 + 2] = p * q;
    wide[i * 4 + 3] = p * q - p;
}
CORPUS(contract_basic, grid(4), block(128), out<float>(2560), out<double>(2048),
       in<s16>(512, range(-2000, 2000, 471)), in<s16>(512, range(-2000, 2000, 472)))

KERNEL contract_matmul(float *c, const s8 *a, const s8 *b)
{
    __shared__ float x[16][16], y[16][16];
    int row = (int)threadIdx.y, col = (int)threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; k += 16) {
        x[row][col] = a[((int)blockIdx.y * 16 + row) * 64 + k + col];
        y[row][col] = b[(k + row) * 32 + (int)blockIdx.x * 16 + col];
        __syncthreads();
        for (int j = 0; j < 16; j++)
            sum += x[row][j] * y[j][col];
        __syncthreads();
    }
    c[((int)blockIdx.y * 16 + row) * 32 + (int)blockIdx.x * 16 + col] = sum;
}
CORPUS(contract_matmul, grid(2, 2), block(16, 16), out<float>(1024),
       in<s8>(2048, range(-9, 9, 473)), in<s8>(2048, range(-9, 9, 474)))

KERNEL contract_complex(float2 *out, const char2 *a, const char2 *b)
{
    int i = global_thread();
    float2 r = make_float2(1, 0);
    for (int k = 0; k < 3; k++) {
        float u = k & 1 ? b[i].x : a[i].x, v = k & 1 ? b[i].y : a[i].y;
        r = make_float2(r.x * u - r.y * v, r.x * v + r.y * u);
    }
    out[i] = r;
}
CORPUS(contract_complex, grid(2), block(64), out<float>(256), in<s8>(256, bits(475)),
       in<s8>(256, bits(476)))

KERNEL contract_polynomial(double *out, const s8 *x)
{
    int i = global_thread();
    double r = 0, t = x[i] & 31;
    for (int k = 0; k < 6; k++)
        r = r * t + (k * 3 - 7);
    out[i] = r;
}
CORPUS(contract_polynomial, grid(2), block(64), out<double>(128), in<s8>(128, bits(477)))

KERNEL contract_prefix(float *out, const u8 *a)
{
    volatile __shared__ float s[64];
    int t = (int)threadIdx.x;
    s[t] = a[t];
    __syncthreads();
    for (int d = 1; d < 64; d *= 2) {
        float add = t >= d ? s[t - d] * 2 : 0;
        __syncthreads();
        s[t] = s[t] - add;
        __syncthreads();
    }
    out[t] = s[t];
}
CORPUS(contract_prefix, grid(1), block(64), out<float>(64), in<u8>(64, bits(478)))
