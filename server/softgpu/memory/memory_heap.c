/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/memory/memory_heap.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "server/softgpu/memory/kernel_heap.h"
#include "server/softgpu/memory/memory_extent.h"

enum { PAGE = 4096, INITIAL = 8 << 20 /* header: CU_LIMIT_MALLOC_HEAP_SIZE */ };

/* Changed between memory_change_begin() and memory_change_end(). */
static struct {
    _Atomic(struct kernel_heap *) heap;
    uint64_t start, bytes; /* of blocks, a page that nobody may touch, and records */
    uint64_t charged_bytes;
    size_t wanted;
    bool set; /* wanted was set, else it is the initial size */
} heaps[SETTINGS_MAX_DEVICES];

static size_t wanted_size(unsigned device)
{
    return heaps[device].set ? heaps[device].wanted : INITIAL;
}

size_t memory_heap_size(unsigned device)
{
    size_t size;

    memory_change_begin();
    size = wanted_size(device);
    memory_change_end();
    return size;
}

cuda_result memory_heap_set_size(unsigned device, size_t bytes)
{
    bool there;

    memory_change_begin();
    there = atomic_load(&heaps[device].heap) != NULL;
    if (!there) {
        heaps[device].wanted = bytes;
        heaps[device].set = true;
    }
    memory_change_end();
    return there ? CUDA_ERR_INVALID_VALUE : CUDA_OK;
}

/* Pages are there when they are touched: a heap that is not used has few. */
static bool open_pages(unsigned device, uint64_t size, uint64_t block_bytes)
{
    const uint64_t bytes = block_bytes + PAGE + kernel_heap_record_bytes(size);
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct kernel_heap *heap;

    if (base == MAP_FAILED)
        return false;
    heap = kernel_heap_make(base + block_bytes + PAGE, address_of(base), size,
                            memory_settings()->remains != 0);
    if (mprotect(base + block_bytes, PAGE, PROT_NONE) < 0 ||
        memory_table_add_heap(address_of(base), address_of(base) + block_bytes, heap, device) < 0) {
        munmap(base, bytes);
        return false;
    }
    heaps[device].start = address_of(base);
    heaps[device].bytes = bytes;
    atomic_store(&heaps[device].heap, heap);
    return true;
}

static cuda_result open_locked(unsigned device)
{
    const size_t size = wanted_size(device);
    uint64_t block_bytes;

    if (atomic_load(&heaps[device].heap))
        return CUDA_OK;
    if (size > memory_settings()->memory)
        return CUDA_ERR_SHARED_OBJECT_INIT_FAILED;
    block_bytes = kernel_heap_block_bytes(size);
    if (charges_add(memory_charges(), device, memory_settings()->memory, 0, block_bytes) < 0)
        return CUDA_ERR_SHARED_OBJECT_INIT_FAILED;
    if (!open_pages(device, size, block_bytes)) {
        charges_remove(memory_charges(), device, 0, block_bytes);
        return CUDA_ERR_SHARED_OBJECT_INIT_FAILED;
    }
    heaps[device].charged_bytes = block_bytes;
    return CUDA_OK;
}

cuda_result memory_heap_open(unsigned device)
{
    cuda_result result;

    memory_change_begin();
    result = open_locked(device);
    memory_change_end();
    return result;
}

void memory_heap_close(unsigned device)
{
    memory_change_begin();
    if (atomic_exchange(&heaps[device].heap, NULL)) {
        memory_table_remove(heaps[device].start);
        charges_remove(memory_charges(), device, 0, heaps[device].charged_bytes);
        memory_extent_defer_drop(heaps[device].start, heaps[device].bytes, false);
    }
    heaps[device].set = false;
    memory_change_end();
}

struct kernel_heap *memory_heap_of(unsigned device)
{
    return atomic_load(&heaps[device].heap);
}
