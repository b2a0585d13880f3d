/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Kernels that allocate memory, and their stacks. tests/integration/test_heap.py reads what it
 * prints. */
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

__asm__(".section .rodata\n"
        ".globl dropin_heap\n"
        "dropin_heap: .incbin \"tests/programs/dropin/heap.ptx\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char dropin_heap[];

enum {
    BLOCKS = 16,
    THREADS = 128,
    EACH = 4,
    ALL = BLOCKS * THREADS * EACH,
    INITIAL = 8 << 20,
};

struct heap {
    cuda_module module;
    cuda_device_ptr out, counts; /* of blocks that are missing, and of wrong ones */
};

static void load(struct heap *heap)
{
    cuda_context context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuModuleLoadData(&heap->module, dropin_heap));
    OK(cuMemAlloc_v2(&heap->out, ALL * 8));
    OK(cuMemAlloc_v2(&heap->counts, 8));
    OK(cuMemsetD32_v2(heap->counts, 0, 2));
}

static void launch(const struct heap *heap, const char *name, unsigned blocks, unsigned threads,
                   void **parameters)
{
    cuda_function function;
    OK(cuModuleGetFunction(&function, heap->module, name));
    OK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
}

static void demand_counts(const struct heap *heap)
{
    uint32_t counts[2];
    OK(cuMemcpyDtoH_v2(counts, heap->counts, sizeof counts));
    CHECK(counts[0] == 0 && counts[1] == 0);
}

static void take(const struct heap *heap)
{
    size_t bytes = 40;
    unsigned each = EACH;
    void *parameters[] = {(void *)(uintptr_t)&heap->out, &bytes, &each};
    launch(heap, "heap_take", BLOCKS, THREADS, parameters);
}

static void give(const struct heap *heap)
{
    size_t bytes = 40;
    unsigned each = EACH;
    cuda_device_ptr wrong = heap->counts + 4;
    void *parameters[] = {(void *)(uintptr_t)&heap->out, &bytes, &each,
                          (void *)(uintptr_t)&heap->counts, &wrong};
    launch(heap, "heap_give", BLOCKS, THREADS, parameters);
}

static uint64_t one(const struct heap *heap, size_t bytes)
{
    uint64_t block;
    void *parameters[] = {(void *)(uintptr_t)&heap->out, &bytes};
    launch(heap, "heap_one", 1, 1, parameters);
    OK(cuMemcpyDtoH_v2(&block, heap->out, sizeof block));
    return block;
}

static void drop(const struct heap *heap, uint64_t block)
{
    void *parameters[] = {&block};
    launch(heap, "heap_free", 1, 1, parameters);
}

static void check_objects(const struct heap *heap)
{
    uint32_t sums[256];
    void *parameters[] = {(void *)(uintptr_t)&heap->out};
    launch(heap, "heap_objects", 2, 128, parameters);
    OK(cuMemcpyDtoH_v2(sums, heap->out, sizeof sums));
    for (uint32_t i = 0; i < 256; i++) {
        const uint32_t n = i % 9;
        CHECK(sums[i] == n * (n + 1) * (2 * n + 1) / 6);
    }
}

/* Such memory is for kernels alone. */
static void check_addresses(const struct heap *heap)
{
    char text[64] = "";
    unsigned type;
    uint64_t block = one(heap, 64);
    CHECK(block);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyDtoH_v2(text, block, 64));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyHtoD_v2(block, text, 64));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyDtoD_v2(heap->out, block, 64));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemsetD8_v2(block, 0, 64));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(block));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, block));
    drop(heap, block);
}

static size_t limit(void)
{
    size_t bytes;
    OK(cuCtxGetLimit(&bytes, CUDA_LIMIT_MALLOC_HEAP_SIZE));
    return bytes;
}

void heap_calls(void)
{
    struct heap heap;
    load(&heap);
    CHECK(limit() == INITIAL);
    for (int i = 0; i < 3; i++) {
        take(&heap);
        give(&heap);
    }
    demand_counts(&heap);
    check_objects(&heap);
    check_addresses(&heap);
    CHECK(one(&heap, INITIAL + 1) == 0);
    CHECK(one(&heap, SIZE_MAX) == 0);
    printf("right\n");
}

/* Blocks stay when their module goes. */
void heap_kept(void)
{
    struct heap heap;
    load(&heap);
    take(&heap);
    OK(cuModuleUnload(heap.module));
    OK(cuModuleLoadData(&heap.module, dropin_heap));
    give(&heap);
    demand_counts(&heap);
    printf("right\n");
}

/* The same blocks in a heap that others use at once. */
void heap_together(void)
{
    struct heap heap;
    load(&heap);
    printf("ready\n");
    fflush(stdout);
    (void)!read(STDIN_FILENO, &(char){0}, 1);
    for (int i = 0; i < 10; i++) {
        take(&heap);
        give(&heap);
    }
    demand_counts(&heap);
    printf("right\n");
}

/* A kernel that frees a block twice ends the context, and the next one works. */
void heap_twice(void)
{
    struct heap heap;
    load(&heap);
    uint64_t block = one(&heap, 64);
    drop(&heap, block);
    OK(cuCtxSynchronize());
    drop(&heap, block);
    EXPECT(CUDA_ERR_LAUNCH_FAILED, cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset_v2(0));
    load(&heap);
    take(&heap);
    give(&heap);
    demand_counts(&heap);
    printf("right\n");
}

/* Prints the limit, and has a block of as much; more is refused. */
void heap_limit(void)
{
    struct heap heap;
    load(&heap);
    const size_t bytes = limit();
    OK(cuCtxSetLimit(CUDA_LIMIT_MALLOC_HEAP_SIZE, bytes));
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuCtxSetLimit(CUDA_LIMIT_MALLOC_HEAP_SIZE, bytes + 1));
    CHECK(limit() == bytes);
    CHECK(one(&heap, bytes + 1) == 0);
    const uint64_t block = one(&heap, bytes);
    CHECK(block);
    drop(&heap, block);
    OK(cuCtxSynchronize());
    printf("%zu\n", bytes);
}

static size_t stack(void)
{
    size_t bytes = 0;
    OK(cuCtxGetLimit(&bytes, CUDA_LIMIT_STACK_SIZE));
    return bytes;
}

void stack_limit(void)
{
    cuda_context context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CHECK(stack() == 1024);
    OK(cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 8192));
    CHECK(stack() == 8192);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 512 * 1024 + 1));
    CHECK(stack() == 8192);
    OK(cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 512));
    CHECK(stack() == 512);
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    CHECK(stack() == 1024);
    puts("right");
}

/* More than all memory of the device, if each of its threads has so much. */
void stack_too_large(void)
{
    cuda_context context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    EXPECT(CUDA_ERR_OUT_OF_MEMORY, cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 256 * 1024));
    CHECK(stack() == 1024);
    /* It is no error of the context. */
    cuda_device_ptr memory;
    OK(cuMemAlloc_v2(&memory, 1 << 20));
    OK(cuMemFree_v2(memory));
    OK(cuCtxSynchronize());
    OK(cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 2048));
    CHECK(stack() == 2048);
    puts("right");
}
