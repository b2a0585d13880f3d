/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kernel: runs PTX in a unit test, without the device side: memory is what the
 * test registered here, and blocks run one after the other.
 */
#ifndef GPUSHARE_TESTS_UNIT_SOFTGPU_KERNEL_H
#define GPUSHARE_TESTS_UNIT_SOFTGPU_KERNEL_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/softgpu/exec/block.h"
#include "server/softgpu/memory/kernel_heap.h"
#include "server/softgpu/memory/memory.h"
#include "server/softgpu/memory/memory_heap.h"
#include "server/softgpu/decode/module_load.h"

#define PTX_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static struct memory_range kernel_ranges[64];
static size_t kernel_range_count;
static uint64_t kernel_generation = 1;
static uint8_t *kernel_memory; /* of the last module's variables */

/* The heap of all kernels: NULL, or made by kernel_heap_begin(). */
static struct kernel_heap *kernel_heap;

struct kernel_heap *memory_heap_of(unsigned device)
{
    return device == 0 ? kernel_heap : NULL;
}

bool memory_find(uint64_t address, struct memory_range *range)
{
    for (size_t i = 0; i < kernel_range_count; i++) {
        if (address >= kernel_ranges[i].start && address < kernel_ranges[i].end) {
            *range = kernel_ranges[i];
            return true;
        }
    }
    return false;
}

uint64_t memory_generation(void)
{
    return kernel_generation;
}

__attribute__((unused)) static void kernel_allow(const void *start, size_t bytes, uint32_t access)
{
    assert_true(kernel_range_count < 64);
    uint64_t at = (uint64_t)(uintptr_t)start;
    kernel_ranges[kernel_range_count++] =
        (struct memory_range){.start = at, .end = at + bytes, .access = access};
    kernel_generation++;
}

__attribute__((unused)) static void kernel_forget(void)
{
    kernel_range_count = 0;
    kernel_generation++;
}

/* Gives kernels a heap of so many bytes until kernel_heap_end(); *blocks: where its blocks begin.
 * It is to be allowed after kernel_forget(). */
__attribute__((unused)) static void kernel_heap_begin(uint64_t bytes, void **blocks, void **records)
{
    *blocks = aligned_alloc(4096, kernel_heap_block_bytes(bytes));
    *records = aligned_alloc(4096, kernel_heap_record_bytes(bytes));
    assert_non_null(*blocks);
    assert_non_null(*records);
    memset(*records, 0, kernel_heap_record_bytes(bytes));
    kernel_heap = kernel_heap_make(*records, (uint64_t)(uintptr_t)*blocks, bytes, true);
}

__attribute__((unused)) static void kernel_heap_allow(const void *blocks, uint64_t bytes)
{
    kernel_allow(blocks, kernel_heap_block_bytes(bytes), MEMORY_READ | MEMORY_WRITE);
    kernel_ranges[kernel_range_count - 1].heap = kernel_heap;
}

__attribute__((unused)) static void kernel_heap_end(void *blocks, void *records)
{
    kernel_heap = NULL;
    free(blocks);
    free(records);
}

/* Loads, or fails the test; variables get memory of their own. */
__attribute__((unused)) static struct module *kernel_module(const char *text)
{
    struct module *m = NULL;
    struct error why;
    if (module_load(text, strlen(text), &m, &why))
        fail_msg("%s", why.text);
    size_t global = module_global_bytes(m), constant = module_const_bytes(m);
    uint8_t *memory = aligned_alloc(256, (global + constant + 1024) & ~(size_t)255);
    assert_non_null(memory);
    kernel_memory = memory;
    uint64_t base = (uint64_t)(uintptr_t)memory;
    uint64_t const_base = (base + global + 255) & ~UINT64_C(255);
    assert_int_equal(module_place(m, base, const_base, &why), 0);
    if (global)
        kernel_allow(memory, global, MEMORY_READ | MEMORY_WRITE);
    if (constant)
        kernel_allow((void *)(uintptr_t)const_base, constant, MEMORY_READ | MEMORY_WRITE);
    return m;
}

/* Gives back what kernel_module() took for variables. */
__attribute__((unused)) static void kernel_free(void)
{
    free(kernel_memory);
    kernel_memory = NULL;
}

/* Returns the kernel of a name, or NULL. */
__attribute__((unused)) static struct function *kernel_find(struct module *m, const char *name)
{
    struct function_info info;
    for (size_t i = 0; i < module_function_count(m); i++) {
        function_info(module_function_at(m, i), &info);
        if (strcmp(info.name, name) == 0)
            return module_function_at(m, i);
    }
    return NULL;
}

struct kernel_launch {
    const char *name;
    uint32_t grid, threads, shared;
    uint32_t y, z; /* of a block; 0: 1 */
    const void *params;
    uint64_t budget; /* per block_run(), 0: a million */
    uint32_t rate;
    uint64_t clock_ns;
    uint64_t runs;
};

__attribute__((unused)) static enum block_state
kernel_run(struct module *m, struct kernel_launch *l, struct fault *fault)
{
    struct function *f = kernel_find(m, l->name);
    assert_non_null(f);
    struct block_launch launch = {.function = f,
                                  .grid = {l->grid, 1, 1},
                                  .threads = {l->threads, l->y ? l->y : 1, l->z ? l->z : 1},
                                  .dynamic_shared_bytes = l->shared,
                                  .params = l->params,
                                  .grid_id = 7,
                                  .sm_count = 132};
    enum block_state state = BLOCK_DONE;
    for (uint32_t i = 0; i < l->grid && state == BLOCK_DONE; i++) {
        uint32_t index[3] = {i, 0, 0};
        struct block *b = block_create(&launch, index, i % 132);
        assert_non_null(b);
        uint64_t clock = l->clock_ns, wake = 0;
        do {
            state = block_run(b, l->budget ? l->budget : 1000000, &clock, l->rate, &wake, fault);
            l->runs++;
            if (state == BLOCK_ASLEEP) {
                assert_true(wake > clock);
                clock = wake;
            }
        } while ((state == BLOCK_READY || state == BLOCK_ASLEEP) && l->runs < 100000);
        l->clock_ns = clock;
        block_destroy(b);
    }
    return state;
}

#endif
