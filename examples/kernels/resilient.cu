// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors

// One step of a sequence of states: each number follows from itself and its right neighbour. What a
// step reads is left as it was, so a step that was lost can be taken again.
extern "C" __global__ void step(const unsigned *now, unsigned *next, unsigned count)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        next[i] = now[i] * 1664525u + now[(i + 1) % count] + 1013904223u;
}
