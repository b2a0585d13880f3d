// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// A CUDA program with no word about gpushare: heat spreads over a plate, and the CPU computes the same in
// the same order. The program ends with status 0 if both agree, bit by bit.
//
//   heat [STEPS [STRAY [pause]]]    STRAY: the step at which a kernel writes where no memory is
//                                   pause: waits for a line of its standard input after half of the steps
//
// nvcc -cudart shared -o heat heat.cu
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 192, CELLS = SIDE * SIDE, BYTES = CELLS * 4 };

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error = (call);                                                                \
        if (error != cudaSuccess) {                                                                \
            printf("heat: step %d of %d: %s\n", step, steps, cudaGetErrorName(error));             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

// Integers, so that the CPU's result is the same to the bit.
__host__ __device__ static int flow(const int *plate, int at)
{
    return plate[at] + (plate[at - 1] + plate[at + 1] + plate[at - SIDE] + plate[at + SIDE] -
                        4 * plate[at]) / 8;
}

__global__ void spread(const int *from, int *to)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < SIDE - 1 && y > 0 && y < SIDE - 1)
        to[y * SIDE + x] = flow(from, y * SIDE + x);
}

__global__ void stray(int *plate)
{
    plate[(1LL << 44) + threadIdx.x] = 1;
}

static int plates[2][CELLS], found[CELLS];

int main(int count, char **words)
{
    int steps = count > 1 ? atoi(words[1]) : 200, lost = count > 2 ? atoi(words[2]) : -1, step = 0;
    int *device[2];
    cudaDeviceProp properties;
    dim3 block(16, 16), grid(SIDE / 16, SIDE / 16);
    CHECK(cudaGetDeviceProperties(&properties, 0));
    for (int i = 0; i < CELLS; i++)
        plates[0][i] = plates[1][i] = i * 37 % 4096;
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&device[i], BYTES));
        CHECK(cudaMemcpy(device[i], plates[i], BYTES, cudaMemcpyHostToDevice));
    }
    for (step = 1; step <= steps; step++) {
        spread<<<grid, block>>>(device[(step - 1) % 2], device[step % 2]);
        if (step == lost)
            stray<<<1, 32>>>(device[0]);
        if (step % 20 == 0)
            CHECK(cudaDeviceSynchronize());
        if (count > 3 && step == steps / 2) {
            CHECK(cudaDeviceSynchronize());
            printf("heat: half of the steps\n");
            fflush(stdout);
            (void)getchar();
        }
        for (int y = 1; y < SIDE - 1; y++)
            for (int x = 1; x < SIDE - 1; x++)
                plates[step % 2][y * SIDE + x] = flow(plates[(step - 1) % 2], y * SIDE + x);
    }
    step = steps;
    CHECK(cudaMemcpy(found, device[steps % 2], BYTES, cudaMemcpyDeviceToHost));
    if (memcmp(found, plates[steps % 2], BYTES) != 0) {
        printf("heat: wrong\n");
        return 1;
    }
    printf("heat: %d steps on %d multiprocessors, %zu MiB: verified\n", steps,
           properties.multiProcessorCount, properties.totalGlobalMem >> 20);
    return 0;
}
