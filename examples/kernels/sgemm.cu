// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// c = a * b for row-major square matrices; one 16 x 16 tile of c a block, tiles of
// a and b pass through shared memory. Products are added in the order of k, so a
// CPU that does the same with separate multiply and add gets the same bits.
#define TILE 16

extern "C" __global__ void sgemm(const float *a, const float *b, float *c, unsigned n)
{
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    unsigned row = blockIdx.y * TILE + threadIdx.y;
    unsigned column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (unsigned start = 0; start < n; start += TILE) {
        unsigned ka = start + threadIdx.x, kb = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < n && ka < n ? a[row * n + ka] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = kb < n && column < n ? b[kb * n + column] : 0.0f;
        __syncthreads();
        for (unsigned k = 0; k < TILE; k++)
            sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}
