// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// A CUDA program like any other, for tests/integration/test_cudart.py where nvcc is installed.
#include <cstdio>

__constant__ float scale = 1;

__global__ void scaled_add(const float *a, const float *b, float *c, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        c[i] = scale * a[i] + b[i];
}

int main()
{
    const int count = 50000, block = 256;
    const float factor = 2;
    static float host[count];
    float *a, *b, *c;

    for (int i = 0; i < count; i++)
        host[i] = i;
    cudaMalloc(&a, sizeof(host));
    cudaMalloc(&b, sizeof(host));
    cudaMalloc(&c, sizeof(host));
    cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice);
    cudaMemcpy(b, a, sizeof(host), cudaMemcpyDeviceToDevice);
    cudaMemcpyToSymbol(scale, &factor, sizeof(factor));
    scaled_add<<<(count + block - 1) / block, block>>>(a, b, c, count);
    if (cudaGetLastError() != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess)
        return 2;
    cudaMemcpy(host, c, sizeof(host), cudaMemcpyDeviceToHost);
    for (int i = 0; i < count; i++)
        if (host[i] != 3.0f * i)
            return 1;
    std::puts("right");
    return 0;
}
