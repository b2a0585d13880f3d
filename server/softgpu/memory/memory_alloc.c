/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Memory that its owner does not map: plain device allocations and host memory.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "common/util.h"

#include "server/softgpu/memory/memory_extent.h"

enum { PAGE = 4096 };

/* ---- plain allocations -------------------------------------------------------------------- */

/*
 * Allocates pages with an inaccessible page behind them. So two allocations never touch, and an
 * access past the end of one is a fault instead of a hit in the next.
 */
static void *guarded_pages(uint64_t bytes, int flags)
{
    void *base = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE,
                      flags | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (base == MAP_FAILED)
        return NULL;
    if (mprotect((char *)base + bytes, PAGE, PROT_NONE) < 0) {
        munmap(base, bytes + PAGE);
        return NULL;
    }
    return base;
}

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

/* An allocation: of bytes in whole pages, of which so many may be used. */
struct wanted {
    unsigned device;
    uint64_t bytes, live;
    bool programs, managed;
};

static cuda_result alloc_locked(const struct wanted *wanted, cuda_device_ptr *ptr)
{
    void *base = guarded_pages(wanted->bytes, MAP_SHARED);
    struct extent *extent =
        base ? memory_extent_add(ALLOCATION, address_of(base), wanted->bytes + PAGE) : NULL;

    if (!extent || memory_table_add(address_of(base), address_of(base) + wanted->live,
                                    MEMORY_READ | MEMORY_WRITE, false, wanted->device) < 0) {
        if (extent)
            memory_extent_remove(extent);
        if (base)
            munmap(base, wanted->bytes + PAGE);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    if (wanted->managed)
        memory_table_manage(address_of(base));
    extent->device = wanted->device;
    extent->charged_bytes = wanted->bytes;
    extent->programs = wanted->programs;
    *ptr = address_of(base);
    return CUDA_OK;
}

static cuda_result alloc(struct wanted wanted, cuda_device_ptr *ptr, size_t size)
{
    cuda_result result;

    if (!ptr || size == 0)
        return CUDA_ERR_INVALID_VALUE;
    if (size > memory_settings()->memory)
        return CUDA_ERR_OUT_OF_MEMORY;
    wanted.bytes = round_up(size, PAGE);
    wanted.live = round_up(size, 16);
    memory_change_begin();
    result = charges_add(memory_charges(), wanted.device, memory_settings()->memory, 0,
                         wanted.bytes) == 0
                 ? CUDA_OK
                 : CUDA_ERR_OUT_OF_MEMORY;
    if (result == CUDA_OK) {
        result = alloc_locked(&wanted, ptr);
        if (result != CUDA_OK)
            charges_remove(memory_charges(), wanted.device, 0, wanted.bytes);
    }
    memory_change_end();
    return result;
}

cuda_result memory_alloc(unsigned device, cuda_device_ptr *ptr, size_t size)
{
    return alloc((struct wanted){.device = device}, ptr, size);
}

cuda_result memory_program_alloc(unsigned device, cuda_device_ptr *ptr, size_t size, bool managed)
{
    return alloc((struct wanted){.device = device, .programs = true, .managed = managed}, ptr,
                 size);
}

void memory_manage(cuda_device_ptr ptr)
{
    memory_change_begin();
    if (memory_extent_at(ALLOCATION, ptr))
        memory_table_manage(ptr);
    memory_change_end();
}

static void free_locked(struct extent *extent)
{
    memory_table_remove(extent->base);
    charges_remove(memory_charges(), extent->device, 0, extent->charged_bytes);
    memory_extent_defer_drop(extent->base, extent->size, false);
    memory_extent_remove(extent);
}

cuda_result memory_free(cuda_device_ptr ptr)
{
    struct extent *extent;

    memory_change_begin();
    extent = memory_extent_at(ALLOCATION, ptr);
    if (extent)
        free_locked(extent);
    memory_change_end();
    return extent ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

bool memory_is_programs(cuda_device_ptr ptr)
{
    const struct extent *extent;
    bool found;

    memory_change_begin();
    extent = memory_extent_at(ALLOCATION, ptr);
    found = extent && extent->programs;
    memory_change_end();
    return found;
}

void memory_free_device(unsigned device)
{
    struct extent *extent;

    memory_change_begin();
    while ((extent = memory_extent_any(ALLOCATION, device)))
        free_locked(extent);
    memory_change_end();
}

void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    uint64_t used = charges_used(memory_charges(), device);

    *total_bytes = memory_settings()->memory;
    *free_bytes = used < *total_bytes ? *total_bytes - used : 0;
}

/* ---- host memory ------------------------------------------------------------------------------
 */

/* Whether every page that the range touches is mapped in this process. */
static bool pages_exist(uint64_t base, uint64_t end)
{
    uint64_t first = base - base % PAGE;
    return !msync(pointer(first), end - first, MS_ASYNC);
}

static cuda_result host_add(enum extent_kind kind, uint64_t base, uint64_t size, uint32_t access)
{
    struct extent *extent = memory_extent_add(kind, base, size);

    if (!extent || memory_table_add(base, base + size, access, true, 0) < 0) {
        if (extent)
            memory_extent_remove(extent);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    return CUDA_OK;
}

cuda_result memory_host_register(void *ptr, size_t size, unsigned flags)
{
    const unsigned known = CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP |
                           CUDA_HOST_REGISTER_IOMEMORY | CUDA_HOST_REGISTER_READ_ONLY;
    uint64_t base = address_of(ptr);
    uint64_t end;
    cuda_result result;

    if (!ptr || size == 0 || (flags & ~known) || __builtin_add_overflow(base, size, &end))
        return CUDA_ERR_INVALID_VALUE;
    if (flags & CUDA_HOST_REGISTER_IOMEMORY)
        return CUDA_ERR_NOT_SUPPORTED;
    memory_change_begin();
    if (memory_table_overlaps(base, end))
        result = CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED;
    else if (!pages_exist(base, end))
        result = CUDA_ERR_INVALID_VALUE;
    else
        result = host_add(HOST_REGISTERED, base, size,
                          flags & CUDA_HOST_REGISTER_READ_ONLY ? MEMORY_READ
                                                               : MEMORY_READ | MEMORY_WRITE);
    memory_change_end();
    return result;
}

/* The caller keeps pages that it registered; pages that we allocated are freed. */
static bool host_remove(enum extent_kind kind, uint64_t base)
{
    struct extent *extent = memory_extent_at(kind, base);

    if (!extent)
        return false;
    memory_table_remove(base);
    /* The caller may unmap the pages as soon as this call returns. */
    memory_quiesce();
    if (kind == HOST_ALLOCATED)
        munmap(pointer(base), extent->size + PAGE);
    memory_extent_remove(extent);
    return true;
}

cuda_result memory_host_unregister(void *ptr)
{
    cuda_result result = CUDA_OK;

    memory_change_begin();
    if (!host_remove(HOST_REGISTERED, address_of(ptr)))
        result = memory_extent_around(HOST_REGISTERED, address_of(ptr), 1)
                     ? CUDA_ERR_INVALID_VALUE
                     : CUDA_ERR_HOST_MEMORY_NOT_REGISTERED;
    memory_change_end();
    return result;
}

cuda_result memory_host_alloc(void **ptr, size_t size)
{
    uint64_t bytes;
    cuda_result result;
    void *base;

    if (!ptr || size == 0 || size > SIZE_MAX / 2)
        return CUDA_ERR_INVALID_VALUE;
    bytes = round_up(size, PAGE);
    base = guarded_pages(bytes, MAP_PRIVATE);
    if (!base)
        return CUDA_ERR_OUT_OF_MEMORY;
    memory_change_begin();
    result = host_add(HOST_ALLOCATED, address_of(base), bytes, MEMORY_READ | MEMORY_WRITE);
    memory_change_end();
    if (result != CUDA_OK)
        munmap(base, bytes + PAGE);
    else
        *ptr = base;
    return result;
}

cuda_result memory_host_free(void *ptr)
{
    bool found;

    memory_change_begin();
    found = host_remove(HOST_ALLOCATED, address_of(ptr));
    memory_change_end();
    return found ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

void memory_free_host(void)
{
    const struct extent *extent;

    memory_change_begin();
    while ((extent = memory_extent_any(HOST_REGISTERED, 0)))
        host_remove(HOST_REGISTERED, extent->base);
    while ((extent = memory_extent_any(HOST_ALLOCATED, 0)))
        host_remove(HOST_ALLOCATED, extent->base);
    memory_change_end();
}
