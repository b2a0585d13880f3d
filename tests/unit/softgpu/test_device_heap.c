/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The heap that kernels allocate from, as a program sees it: its size, its life, and what calls say
 * to addresses of it. Every case is a process of its own.
 */
#include "tests/unit/softgpu/kernels.h"

#include <pthread.h>

__asm__(".section .rodata\n"
        ".globl heap_ptx\n"
        "heap_ptx: .incbin \"tests/programs/dropin/heap.ptx\"\n"
        ".byte 0\n"
        ".previous\n");

extern const char heap_ptx[];

enum { MIB = 1 << 20, INITIAL = 8 * MIB };

static struct {
    cuda_module module;
    cuda_function take, give, churn, one, aligned, drop, peek, objects;
    cuda_device_ptr words; /* 4 KiB of them */
} heap;

static cuda_function function(const char *name)
{
    cuda_function found;

    CHECK(cuModuleGetFunction(&found, heap.module, name) == CUDA_OK);
    return found;
}

static void load_heap(void)
{
    CHECK(cuModuleLoadData(&heap.module, heap_ptx) == CUDA_OK);
    heap.take = function("heap_take");
    heap.give = function("heap_give");
    heap.churn = function("heap_churn");
    heap.one = function("heap_one");
    heap.aligned = function("heap_aligned");
    heap.drop = function("heap_free");
    heap.peek = function("heap_peek");
    heap.objects = function("heap_objects");
    CHECK(cuMemAlloc_v2(&heap.words, 4096) == CUDA_OK);
    CHECK(cuMemsetD8_v2(heap.words, 0, 4096) == CUDA_OK);
}

static void open_context(void)
{
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDevicePrimaryCtxRetain(&kernels.context, 0) == CUDA_OK);
    CHECK(cuCtxSetCurrent(kernels.context) == CUDA_OK);
}

static void open_heap(void)
{
    open_context();
    load_heap();
}

static size_t limit(void)
{
    size_t bytes = 0;

    CHECK(cuCtxGetLimit(&bytes, CUDA_LIMIT_MALLOC_HEAP_SIZE) == CUDA_OK);
    return bytes;
}

static cuda_result set_limit(size_t bytes)
{
    return cuCtxSetLimit(CUDA_LIMIT_MALLOC_HEAP_SIZE, bytes);
}

static size_t free_memory(void)
{
    size_t left, total;

    CHECK(cuMemGetInfo_v2(&left, &total) == CUDA_OK);
    return left;
}

static uint64_t word(unsigned number)
{
    uint64_t value;

    CHECK(cuMemcpyDtoH_v2(&value, heap.words + 8ull * number, 8) == CUDA_OK);
    return value;
}

static uint64_t take_one(size_t bytes)
{
    void *params[] = {&heap.words, &bytes};

    CHECK(launch(heap.one, 1, 1, NULL, params) == CUDA_OK);
    return word(0);
}

static cuda_result free_one(uint64_t block)
{
    void *params[] = {&block};

    CHECK(launch(heap.drop, 1, 1, NULL, params) == CUDA_OK);
    return cuCtxSynchronize();
}

static cuda_result peek_at(uint64_t block)
{
    void *params[] = {&block, &heap.words};

    CHECK(launch(heap.peek, 1, 1, NULL, params) == CUDA_OK);
    return cuCtxSynchronize();
}

/* The heap has no block: one may have all of it. */
static void check_empty(size_t bytes)
{
    const uint64_t all = take_one(bytes);

    CHECK(all != 0);
    CHECK(free_one(all) == CUDA_OK);
}

/* ---- its size and its life ---------------------------------------------------------------- */

static void body_size(void)
{
    open_context();
    CHECK(limit() == INITIAL);
    CHECK(set_limit(3 * MIB + 5) == CUDA_OK);
    CHECK(limit() == 3 * MIB + 5);
    CHECK(set_limit(2 * MIB) == CUDA_OK);
    CHECK(kernels_load() == 0); /* of kernels that do not allocate */
    CHECK(set_limit(MIB) == CUDA_OK);
    load_heap();
    CHECK(set_limit(MIB) == CUDA_ERR_INVALID_VALUE);
    CHECK(set_limit(2 * MIB) == CUDA_ERR_INVALID_VALUE);
    CHECK(limit() == MIB);
    CHECK(take_one(MIB + 1) == 0);
    check_empty(MIB);
    CHECK(cuModuleUnload(heap.module) == CUDA_OK);
    CHECK(set_limit(2 * MIB) == CUDA_ERR_INVALID_VALUE);
    load_heap();
    CHECK(limit() == MIB);
}

static void the_size_is_fixed_by_the_first_module_that_allocates(void **state)
{
    (void)state;
    in_child(body_size);
}

static void body_initial(void)
{
    open_heap();
    CHECK(take_one(INITIAL + 1) == 0);
    CHECK(take_one(SIZE_MAX) == 0);
    CHECK(take_one((size_t)-16) == 0);
    check_empty(INITIAL);
}

static void it_has_8_mib_where_nobody_asks_for_more(void **state)
{
    (void)state;
    in_child(body_initial);
}

static void body_charged(void)
{
    size_t before;

    open_context();
    before = free_memory();
    load_heap();
    CHECK(before - free_memory() >= INITIAL);
    CHECK(before - free_memory() < INITIAL + MIB);
    before = free_memory();
    load_heap(); /* again: there is one heap */
    CHECK(before - free_memory() < MIB);
}

static void it_counts_as_used_memory_once(void **state)
{
    (void)state;
    in_child(body_charged);
}

static void body_context(void)
{
    size_t before;
    uint64_t block;

    open_context();
    before = free_memory();
    CHECK(set_limit(64 * MIB) == CUDA_OK);
    load_heap();
    block = take_one(100);
    CHECK(block);
    CHECK(cuDevicePrimaryCtxReset_v2(0) == CUDA_OK);
    open_context();
    CHECK(free_memory() == before);
    CHECK(limit() == INITIAL);
    CHECK(set_limit(MIB) == CUDA_OK);
    load_heap();
    check_empty(MIB);
}

static void it_ends_with_the_context(void **state)
{
    (void)state;
    in_child(body_context);
}

static void body_modules(void)
{
    uint64_t block;

    open_heap();
    block = take_one(64);
    CHECK(cuModuleUnload(heap.module) == CUDA_OK);
    load_heap();
    CHECK(peek_at(block) == CUDA_OK);
    CHECK(free_one(block) == CUDA_OK);
    check_empty(INITIAL);
}

static void blocks_outlive_their_module(void **state)
{
    (void)state;
    in_child(body_modules);
}

static void body_no_room(void)
{
    setenv("SOFTGPU_MEMORY", "32M", 1);
    open_context();
    CHECK(set_limit(64 * MIB) == CUDA_OK);
    CHECK(cuModuleLoadData(&heap.module, heap_ptx) == CUDA_ERR_SHARED_OBJECT_INIT_FAILED);
    CHECK(set_limit(SIZE_MAX) == CUDA_OK);
    CHECK(cuModuleLoadData(&heap.module, heap_ptx) == CUDA_ERR_SHARED_OBJECT_INIT_FAILED);
    CHECK(kernels_load() == 0);
    CHECK(set_limit(MIB) == CUDA_OK);
    load_heap();
    check_empty(MIB);
}

static void a_heap_that_does_not_fit_fails_the_load(void **state)
{
    (void)state;
    in_child(body_no_room);
}

static void body_none(void)
{
    open_context();
    CHECK(set_limit(0) == CUDA_OK);
    CHECK(limit() == 0);
    load_heap();
    CHECK(take_one(17) == 0);
}

static void a_heap_of_no_bytes_gives_null(void **state)
{
    (void)state;
    in_child(body_none);
}

/* ---- its addresses -------------------------------------------------------------------------- */

static void body_calls(void)
{
    uint64_t block, base, type = 0;
    size_t bytes;
    char text[64] = "";
    cuda_device_ptr other;

    open_heap();
    block = take_one(64); /* the first of all: where the heap begins */
    CHECK(block);
    CHECK(cuMemAlloc_v2(&other, 64) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(text, block, 64) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemcpyHtoD_v2(block, text, 64) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemcpyDtoD_v2(other, block, 64) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemcpy(block, (uintptr_t)text, 64) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemcpy((uintptr_t)text, block, 64) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemcpyAsync(block, other, 64, NULL) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemsetD8_v2(block, 1, 64) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemsetD32Async(block, 1, 16, NULL) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuStreamWriteValue32_v2(NULL, block, 1, 0) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemFree_v2(block) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemGetAddressRange_v2(&base, &bytes, block) != CUDA_OK);
    CHECK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, block) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuMemHostRegister_v2((void *)(uintptr_t)block, 64, 0) != CUDA_OK);
    /* None of that did anything to it. */
    CHECK(free_one(block) == CUDA_OK);
    check_empty(INITIAL);
}

static void calls_refuse_its_addresses(void **state)
{
    (void)state;
    in_child(body_calls);
}

static void body_twice(void)
{
    uint64_t block;

    open_heap();
    block = take_one(64);
    CHECK(free_one(block) == CUDA_OK);
    CHECK(free_one(block) == CUDA_ERR_LAUNCH_FAILED);
    CHECK(cuCtxSynchronize() == CUDA_ERR_LAUNCH_FAILED);
}

static void body_programs(void)
{
    open_heap();
    CHECK(free_one(heap.words) == CUDA_ERR_LAUNCH_FAILED);
}

static void body_freed(void)
{
    uint64_t block;

    open_heap();
    block = take_one(64);
    CHECK(peek_at(block) == CUDA_OK);
    CHECK(free_one(block) == CUDA_OK);
    CHECK(peek_at(block) == CUDA_ERR_ILLEGAL_ADDRESS);
}

static void body_behind(void)
{
    uint64_t block;

    open_heap();
    block = take_one(64);
    CHECK(peek_at(block + 60) == CUDA_OK);
    CHECK(peek_at(block + 64) == CUDA_ERR_ILLEGAL_ADDRESS);
}

static void misuse_ends_the_device(void **state)
{
    (void)state;
    in_child(body_twice);
    in_child(body_programs);
    in_child(body_freed);
    in_child(body_behind);
}

/* ---- many threads --------------------------------------------------------------------------- */

enum { BLOCKS = 32, THREADS = 128, EACH = 4, ALL = BLOCKS * THREADS * EACH };

static void take_many(cuda_device_ptr out, size_t bytes, cuda_stream stream)
{
    unsigned each = EACH;
    void *params[] = {&out, &bytes, &each};

    CHECK(launch(heap.take, BLOCKS, THREADS, stream, params) == CUDA_OK);
}

static void give_many(cuda_device_ptr out, size_t bytes, cuda_stream stream)
{
    unsigned each = EACH;
    cuda_device_ptr missing = heap.words, wrong = heap.words + 8;
    void *params[] = {&out, &bytes, &each, &missing, &wrong};

    CHECK(launch(heap.give, BLOCKS, THREADS, stream, params) == CUDA_OK);
}

/* 16 thousand blocks, freed by threads of other blocks in another kernel. */
static void body_many(void)
{
    cuda_device_ptr out;

    open_heap();
    CHECK(cuMemAlloc_v2(&out, ALL * 8) == CUDA_OK);
    for (int i = 0; i < 3; i++) {
        take_many(out, 40, NULL);
        give_many(out, 40, NULL);
        CHECK(word(0) == 0 && word(1) == 0);
    }
    check_empty(INITIAL);
}

static void thousands_of_threads_have_blocks_of_their_own(void **state)
{
    (void)state;
    in_child(body_many);
}

/* A full heap refuses as much as does not fit: of a heap of 1 MiB, blocks of 512 bytes and their
 * gaps take 528 each. */
static void body_full(void)
{
    cuda_device_ptr out;
    uint64_t *blocks = malloc(ALL * 8ull), have = 0;

    open_context();
    CHECK(set_limit(MIB) == CUDA_OK);
    load_heap();
    CHECK(cuMemAlloc_v2(&out, ALL * 8) == CUDA_OK);
    take_many(out, 512 - 16 * (EACH - 1), NULL);
    CHECK(cuMemcpyDtoH_v2(blocks, out, ALL * 8ull) == CUDA_OK);
    for (unsigned i = 0; i < ALL; i++)
        have += blocks[i] != 0;
    CHECK(have >= MIB / 528 && have <= MIB / 480);
    give_many(out, 512 - 16 * (EACH - 1), NULL);
    CHECK(word(0) == ALL - have && word(1) == 0);
    check_empty(MIB);
    free(blocks);
}

static void a_heap_that_is_full_refuses_only_what_does_not_fit(void **state)
{
    (void)state;
    in_child(body_full);
}

/* Two streams of grids that allocate and free all the time, on several threads of the engine, and a
 * heap that is full now and then. */
static void body_churn(void)
{
    unsigned rounds = 60;
    cuda_device_ptr missing, wrong;
    void *params[] = {&rounds, &missing, &wrong};
    cuda_stream streams[2];

    setenv("SOFTGPU_THREADS", "4", 1);
    open_context();
    CHECK(set_limit(MIB / 2) == CUDA_OK);
    load_heap();
    missing = heap.words;
    wrong = heap.words + 8;
    for (int i = 0; i < 2; i++)
        CHECK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    for (int i = 0; i < 8; i++)
        CHECK(launch(heap.churn, 16, 96, streams[i % 2], params) == CUDA_OK);
    CHECK(cuCtxSynchronize() == CUDA_OK);
    CHECK(word(1) == 0);
    check_empty(MIB / 2);
}

static void grids_that_run_at_once_never_have_the_same_block(void **state)
{
    (void)state;
    in_child(body_churn);
}

static void body_objects(void)
{
    uint32_t sums[256];

    open_heap();
    void *params[] = {&heap.words};
    CHECK(launch(heap.objects, 2, 128, NULL, params) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(sums, heap.words, sizeof(sums)) == CUDA_OK);
    for (unsigned i = 0; i < 256; i++) {
        const uint32_t n = i % 9;

        CHECK(sums[i] == n * (n + 1) * (2 * n + 1) / 6);
    }
    check_empty(INITIAL);
}

static void objects_are_made_and_deleted(void **state)
{
    (void)state;
    in_child(body_objects);
}

static void body_aligned(void)
{
    open_heap();
    for (size_t alignment = 1; alignment <= 64 << 10; alignment *= 2) {
        size_t bytes = 24;
        void *params[] = {&heap.words, &bytes, &alignment};

        CHECK(launch(heap.aligned, 1, 1, NULL, params) == CUDA_OK);
        CHECK(word(0) != 0 && word(0) % alignment == 0 && word(0) % 16 == 0);
    }
}

static void alignments_are_kept(void **state)
{
    (void)state;
    in_child(body_aligned);
}

/* ---- more than one -------------------------------------------------------------------------- */

/* Each device has a heap of its own, and kernels of one reach the other's blocks. */
static void body_devices(void)
{
    uint64_t block;
    cuda_context other;

    setenv("SOFTGPU_DEVICES", "2", 1);
    open_heap();
    block = take_one(64);
    CHECK(cuDevicePrimaryCtxRetain(&other, 1) == CUDA_OK);
    CHECK(cuCtxSetCurrent(other) == CUDA_OK);
    CHECK(set_limit(MIB) == CUDA_OK);
    load_heap();
    CHECK(limit() == MIB);
    check_empty(MIB);
    CHECK(peek_at(block) == CUDA_OK);
    CHECK(cuDevicePrimaryCtxReset_v2(0) == CUDA_OK);
    CHECK(take_one(MIB) != 0);
    CHECK(peek_at(block) == CUDA_ERR_ILLEGAL_ADDRESS);
}

static void each_device_has_its_own(void **state)
{
    (void)state;
    in_child(body_devices);
}

/* A linked image says that it allocates without its code. */
static void body_linked(void)
{
    cuda_link link;
    void *image, *text = (void *)(uintptr_t)heap_ptx;
    size_t size, before;

    open_context();
    CHECK(cuLinkCreate_v2(0, NULL, NULL, &link) == CUDA_OK);
    CHECK(cuLinkAddData_v2(link, CUDA_JIT_INPUT_PTX, text, strlen(heap_ptx) + 1, "heap", 0, NULL,
                           NULL) == CUDA_OK);
    CHECK(cuLinkComplete(link, &image, &size) == CUDA_OK);
    before = free_memory();
    CHECK(cuModuleLoadData(&heap.module, image) == CUDA_OK);
    CHECK(before - free_memory() >= INITIAL);
    CHECK(set_limit(MIB) == CUDA_ERR_INVALID_VALUE);
    heap.one = function("heap_one");
    heap.drop = function("heap_free");
    CHECK(cuMemAlloc_v2(&heap.words, 4096) == CUDA_OK);
    check_empty(INITIAL);
}

static void a_linked_image_has_a_heap_too(void **state)
{
    (void)state;
    in_child(body_linked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_is_fixed_by_the_first_module_that_allocates),
        cmocka_unit_test(it_has_8_mib_where_nobody_asks_for_more),
        cmocka_unit_test(it_counts_as_used_memory_once),
        cmocka_unit_test(it_ends_with_the_context),
        cmocka_unit_test(blocks_outlive_their_module),
        cmocka_unit_test(a_heap_that_does_not_fit_fails_the_load),
        cmocka_unit_test(a_heap_of_no_bytes_gives_null),
        cmocka_unit_test(calls_refuse_its_addresses),
        cmocka_unit_test(misuse_ends_the_device),
        cmocka_unit_test(thousands_of_threads_have_blocks_of_their_own),
        cmocka_unit_test(a_heap_that_is_full_refuses_only_what_does_not_fit),
        cmocka_unit_test(grids_that_run_at_once_never_have_the_same_block),
        cmocka_unit_test(objects_are_made_and_deleted),
        cmocka_unit_test(alignments_are_kept),
        cmocka_unit_test(each_device_has_its_own),
        cmocka_unit_test(a_linked_image_has_a_heap_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
