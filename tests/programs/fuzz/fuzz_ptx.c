/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Takes any text as PTX: it is refused, or it loads and each of its kernels runs for a while. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/softgpu/exec/block.h"
#include "server/softgpu/memory/kernel_heap.h"
#include "server/softgpu/memory/memory.h"
#include "server/softgpu/memory/memory_heap.h"
#include "server/softgpu/decode/module_load.h"

enum { MAX_VARIABLES = 1 << 20 };

static uint8_t variables[MAX_VARIABLES + 512] __attribute__((aligned(256)));
static uint8_t params[32768];

enum { HEAP_BYTES = 16 << 10 };

static uint8_t blocks[HEAP_BYTES + 4096] __attribute__((aligned(4096)));
static uint8_t records[16 * HEAP_BYTES] __attribute__((aligned(4096)));
static struct kernel_heap *heap;

struct kernel_heap *memory_heap_of(unsigned device)
{
    (void)device;
    return heap;
}

/* A new one for each text, so that a text alone decides what happens. */
static void make_heap(void)
{
    if (kernel_heap_block_bytes(HEAP_BYTES) > sizeof(blocks) ||
        kernel_heap_record_bytes(HEAP_BYTES) > sizeof(records))
        abort();
    memset(records, 0, sizeof(records));
    heap = kernel_heap_make(records, (uint64_t)(uintptr_t)blocks, HEAP_BYTES, true);
}

bool memory_find(uint64_t address, struct memory_range *range)
{
    uint64_t start = (uint64_t)(uintptr_t)blocks;
    if (address >= start && address < start + sizeof(blocks)) {
        *range = (struct memory_range){.start = start,
                                       .end = start + sizeof(blocks),
                                       .access = MEMORY_READ | MEMORY_WRITE,
                                       .heap = heap};
        return true;
    }
    start = (uint64_t)(uintptr_t)variables;
    *range = (struct memory_range){
        .start = start, .end = start + sizeof(variables), .access = MEMORY_READ | MEMORY_WRITE};
    return address >= start && address < range->end;
}

uint64_t memory_generation(void)
{
    return 1;
}

static void run_kernel(struct function *f)
{
    struct block_launch launch = {
        .function = f, .grid = {2, 1, 1}, .threads = {40, 1, 1}, .params = params, .sm_count = 132};
    struct block *b = block_create(&launch, (uint32_t[3]){1, 0, 0}, 3);
    uint64_t clock = 0, wake = 0;
    struct fault fault;
    for (int i = 0; b && i < 4; i++) {
        enum block_state state = block_run(b, 500, &clock, (uint32_t)i, &wake, &fault);
        if (state == BLOCK_DONE || state == BLOCK_FAULTED)
            break;
        clock = state == BLOCK_ASLEEP ? wake : clock;
    }
    block_destroy(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct module *m;
    struct error why;
    if (module_load((const char *)data, size, &m, &why)) {
        if (!why.text[0])
            abort();
        return 0;
    }
    make_heap();
    uint64_t base = (uint64_t)(uintptr_t)variables;
    size_t global = (module_global_bytes(m) + 255) & ~(size_t)255;
    if (global + module_const_bytes(m) <= MAX_VARIABLES &&
        module_place(m, base, base + global, &why) == 0) {
        for (size_t i = 0; i < sizeof(params); i += 8)
            memcpy(params + i, &base, 8);
        for (size_t i = 0; i < module_function_count(m) && i < 4; i++)
            run_kernel(module_function_at(m, i));
    }
    module_destroy(m);
    return 0;
}
