// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// Lloyd's algorithm. Sums are kept as 64-bit fixed point (2^-20), so that the order
// in which atomics arrive does not matter and a CPU gets the same bits.
#define SCALE 1048576.0

extern "C" __global__ void kmeans_assign(const double *points, unsigned count, unsigned columns,
                                         const double *centres, unsigned k, unsigned *labels,
                                         unsigned *changed)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    unsigned best = 0;
    double best_distance = 0.0;
    for (unsigned c = 0; c < k; c++) {
        double distance = 0.0;
        for (unsigned j = 0; j < columns; j++) {
            double d = points[(size_t)i * columns + j] - centres[(size_t)c * columns + j];
            distance = __dadd_rn(distance, __dmul_rn(d, d));
        }
        if (c == 0 || distance < best_distance) {
            best = c;
            best_distance = distance;
        }
    }
    if (labels[i] != best) {
        labels[i] = best;
        atomicAdd(changed, 1u);
    }
}

extern "C" __global__ void kmeans_sum(const double *points, unsigned count, unsigned columns,
                                      const unsigned *labels, unsigned long long *sums, unsigned *members)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    unsigned c = labels[i];
    for (unsigned j = 0; j < columns; j++) {
        long long fixed = __double2ll_rn(points[(size_t)i * columns + j] * SCALE);
        atomicAdd(&sums[(size_t)c * columns + j], (unsigned long long)fixed);
    }
    atomicAdd(&members[c], 1u);
}
