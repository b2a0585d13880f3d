/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The source of heap.ptx: nvcc -ptx -arch=compute_75 heap.cu */
#include <cstdlib>
#include <new>

static __device__ unsigned number_of_thread()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

/* Block k of a thread has its number at both ends, and bytes + 16 * k bytes; 0 where there was no
 * room. */
extern "C" __global__ void heap_take(unsigned **out, size_t bytes, unsigned count)
{
    const unsigned number = number_of_thread();
    for (unsigned k = 0; k < count; k++) {
        const size_t words = (bytes + 16 * k) / sizeof(unsigned);
        unsigned *block = (unsigned *)malloc(words * sizeof(unsigned));
        if (block) {
            block[0] = number * count + k;
            block[words - 1] = ~(number * count + k);
        }
        out[number * count + k] = block;
    }
}

/* Each thread checks and frees the blocks of another one, of a different block of threads where there are several. */
extern "C" __global__ void heap_give(unsigned **blocks, size_t bytes, unsigned count, unsigned *missing, unsigned *wrong)
{
    const unsigned number = gridDim.x * blockDim.x - 1 - number_of_thread();
    for (unsigned k = 0; k < count; k++) {
        const size_t words = (bytes + 16 * k) / sizeof(unsigned);
        unsigned *block = blocks[number * count + k];
        if (!block)
            atomicAdd(missing, 1);
        else if (block[0] != number * count + k || block[words - 1] != ~(number * count + k))
            atomicAdd(wrong, 1);
        free(block);
    }
}

/* All at once: each thread allocates and frees again and again, and keeps nothing. */
extern "C" __global__ void heap_churn(unsigned rounds, unsigned *missing, unsigned *wrong)
{
    const unsigned number = number_of_thread();
    unsigned *kept[4] = {};
    for (unsigned i = 0; i < rounds; i++) {
        unsigned *&block = kept[(number + i * 7) % 4];
        if (block && *block != number)
            atomicAdd(wrong, 1);
        free(block);
        block = (unsigned *)malloc(4 + (number * 13 + i * 29) % 200);
        if (block)
            *block = number;
        else
            atomicAdd(missing, 1);
    }
    for (unsigned *block : kept)
        free(block);
}

extern "C" __global__ void heap_one(void **out, size_t bytes)
{
    *out = malloc(bytes);
}

extern "C" __global__ void heap_aligned(void **out, size_t bytes, size_t alignment)
{
    *out = __nv_aligned_device_malloc(bytes, alignment);
}

extern "C" __global__ void heap_free(void *block)
{
    free(block);
}

extern "C" __global__ void heap_peek(const unsigned *block, unsigned *out)
{
    *out = *block;
}

struct shape {
    __device__ virtual ~shape() {}
    __device__ virtual unsigned area() const = 0;
};

struct square : shape {
    unsigned side;
    __device__ explicit square(unsigned length) : side(length) {}
    __device__ unsigned area() const override { return side * side; }
};

struct row : shape {
    unsigned count;
    shape **shapes;
    __device__ explicit row(unsigned shapes_) : count(shapes_), shapes(new shape *[shapes_])
    {
        for (unsigned i = 0; i < count; i++)
            shapes[i] = new square(i + 1);
    }
    __device__ ~row() override
    {
        for (unsigned i = 0; i < count; i++)
            delete shapes[i];
        delete[] shapes;
    }
    __device__ unsigned area() const override
    {
        unsigned sum = 0;
        for (unsigned i = 0; i < count; i++)
            sum += shapes[i]->area();
        return sum;
    }
};

/* The sum of the first squares, by objects of which each has its own memory. */
extern "C" __global__ void heap_objects(unsigned *out)
{
    const unsigned number = number_of_thread();
    shape *all = new row(number % 9);
    out[number] = all->area();
    delete all;
}
