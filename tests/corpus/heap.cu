// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The gpushare authors
// Memory that kernels allocate: lists, trees, rows, objects, and blocks that others free.
#include "corpus.h"

#include <stdlib.h>

struct link {
    link *next;
    u32 value;
};

KERNEL heap_list(u32 *out, const u32 *a)
{
    int i = global_thread();
    link *first = nullptr;
    for (int k = 0; k < 40; k++) {
        link *made = (link *)malloc(sizeof(link));
        made->value = a[(i * 40 + k) & 1023];
        made->next = first;
        first = made;
    }
    u32 r = 0;
    while (first) {
        link *next = first->next;
        r = r * 33 + first->value;
        free(first);
        first = next;
    }
    out[i] = r;
}
CORPUS(heap_list, grid(4), block(96), out<u32>(384), in<u32>(1024, bits(701)))

struct node {
    u32 key, count;
    node *side[2];
};

/* Sorts and counts by a tree, whose nodes go when they were seen. */
KERNEL heap_tree(u32 *out, const u8 *a)
{
    int i = global_thread();
    node *root = nullptr;
    for (int k = 0; k < 64; k++) {
        u32 key = a[(i * 64 + k) & 4095] & 31;
        node **at = &root;
        while (*at && (*at)->key != key)
            at = &(*at)->side[key > (*at)->key];
        if (!*at) {
            *at = (node *)malloc(sizeof(node));
            (*at)->key = key;
            (*at)->count = 0;
            (*at)->side[0] = (*at)->side[1] = nullptr;
        }
        (*at)->count++;
    }
    node **stack = (node **)malloc(33 * sizeof(node *));
    node *at = root;
    u32 depth = 0, r = 0;
    while (at || depth) {
        if (at) {
            stack[depth++] = at;
            at = at->side[0];
        } else {
            node *seen = stack[--depth];
            r = r * 131 + seen->key * 7 + seen->count;
            at = seen->side[1];
            free(seen);
        }
    }
    free(stack);
    out[i] = r;
}
CORPUS(heap_tree, grid(3), block(64), out<u32>(192), in<u8>(4096, bits(702)))

/* Each thread frees what another one allocated, of another warp too. */
KERNEL heap_exchange(u32 *out, const u32 *a)
{
    __shared__ u32 *blocks[128];
    u32 t = threadIdx.x, r = 0;
    for (u32 k = 0; k < 5; k++) {
        u32 words = 1 + (t * 7 + k) % 30;
        blocks[t] = (u32 *)malloc(words * sizeof(u32));
        for (u32 w = 0; w < words; w++)
            blocks[t][w] = a[(t * 31 + w + k) & 511];
        __syncthreads();
        u32 other = (t * 37 + 11) & 127;
        words = 1 + (other * 7 + k) % 30;
        for (u32 w = 0; w < words; w++)
            r = r * 17 + blocks[other][w];
        free(blocks[other]);
        __syncthreads();
    }
    out[global_thread()] = r;
}
CORPUS(heap_exchange, grid(3), block(128), out<u32>(384), in<u32>(512, bits(703)))

/* Grows by halves, as a vector does. */
KERNEL heap_vector(u64 *out, const u32 *a)
{
    int i = global_thread();
    u32 room = 0, used = 0;
    u64 *items = nullptr;
    for (int k = 0; k < 50 + i % 20; k++) {
        if (used == room) {
            room = room + room / 2 + 1;
            u64 *larger = (u64 *)malloc(room * sizeof(u64));
            for (u32 n = 0; n < used; n++)
                larger[n] = items[n];
            free(items);
            items = larger;
        }
        items[used++] = (u64)a[(i + k * 13) & 255] << (k & 31);
    }
    u64 r = 0;
    for (u32 n = used; n-- > 0;)
        r = r * 5 + items[n];
    free(items);
    out[i] = r;
}
CORPUS(heap_vector, grid(2), block(80), out<u64>(160), in<u32>(256, bits(704)))

struct shape {
    __device__ virtual ~shape() {}
    __device__ virtual u32 area() const = 0;
};

struct box : shape {
    u32 width, height;
    __device__ box(u32 w, u32 h) : width(w), height(h) {}
    __device__ u32 area() const override { return width * height; }
};

struct pair : shape {
    shape *one, *other;
    __device__ pair(shape *a, shape *b) : one(a), other(b) {}
    __device__ ~pair() override
    {
        delete one;
        delete other;
    }
    __device__ u32 area() const override { return one->area() + 3 * other->area(); }
};

KERNEL heap_objects(u32 *out, const u16 *a)
{
    int i = global_thread();
    shape *all = new box(a[i & 511], 3);
    for (int k = 1; k < 3 + i % 6; k++)
        all = new pair(all, k & 1 ? (shape *)new box(a[(i * k) & 511], a[(i + k) & 511]) : (shape *)new pair(new box(k, 2), new box(i, 5)));
    out[i] = all->area();
    delete all;
}
CORPUS(heap_objects, grid(3), block(64), out<u32>(192), in<u16>(512, bits(705)))

/* Some lanes allocate, by ways that part; others have nothing to free. */
KERNEL heap_diverged(u32 *out, const u32 *a)
{
    int i = global_thread();
    u32 *block = nullptr;
    if (a[i & 255] & 1)
        block = (u32 *)malloc(8 + (i & 7) * 4);
    else if (a[i & 255] & 2)
        block = (u32 *)malloc(3 * sizeof(u32));
    if (block) {
        block[0] = a[i & 255];
        block[1] = block[0] ^ (u32)i;
    }
    out[i] = block ? block[0] + block[1] : 7;
    free(block);
}
CORPUS(heap_diverged, grid(2), block(128), out<u32>(256), in<u32>(256, bits(706)))

/* Where a block lies may differ, but not by how much it is out of step. */
KERNEL heap_aligned(u32 *out, const u32 *a)
{
    int i = global_thread();
    size_t alignment = (size_t)16 << (i & 7);
    u32 *block = (u32 *)__nv_aligned_device_malloc(64, alignment);
    for (int k = 0; k < 16; k++)
        block[k] = a[(i + k) & 255];
    u32 r = 0;
    for (int k = 0; k < 16; k++)
        r = r * 3 + block[k];
    out[i * 2] = (u32)((size_t)block % alignment);
    out[i * 2 + 1] = r;
    free(block);
}
CORPUS(heap_aligned, grid(2), block(64), out<u32>(256), in<u32>(256, bits(707)))

/* There is no room for any of these sizes. */
KERNEL heap_refused(u32 *out, const u64 *a)
{
    int i = global_thread();
    void *block = malloc(a[i & 63] >> 2 | (u64)1 << 62);
    out[i] = block == nullptr;
    free(block);
}
CORPUS(heap_refused, grid(1), block(64), out<u32>(64), in<u64>(64, bits(708)))
