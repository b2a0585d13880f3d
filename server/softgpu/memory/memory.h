/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * memory: device memory of the software GPU, and the rights of kernels to it.
 *
 * A device address is the host address of the same bytes: memfd pages are mapped at the reserved
 * address. So a checked access is a plain load or store. The device side owns this module; the
 * instruction side only calls memory_find() and memory_generation().
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_H
#define GPUSHARE_SERVER_SOFTGPU_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "server/softgpu/memory/charges.h"
#include "server/softgpu/softgpu_settings.h"

enum { MEMORY_READ = 1, MEMORY_WRITE = 2 };

struct kernel_heap;

struct memory_range {
    uint64_t start, end; /* [start, end): one live allocation, or registered host memory */
    uint32_t access;     /* MEMORY_READ | MEMORY_WRITE */
    /* Not NULL: the heap of kernels, which says what of the range may be used (kernel_heap.h). */
    const struct kernel_heap *heap;
};

/*
 * Finds the live range that holds an address. Returns false if there is none; then the access is a
 * fault. The result is valid as long as memory_generation() is unchanged. Any thread.
 */
bool memory_find(uint64_t address, struct memory_range *range);

/* Grows when any range appears, vanishes or changes its access. Any thread. */
uint64_t memory_generation(void);

/*
 * ---- the device side's half ---------------------------------------------------
 *
 * A thread touches memory that memory_find() allowed only between memory_enter() and
 * memory_leave(), and keeps that time short: one turn of a block, or one piece of a copy. Pages
 * that are taken away remain mapped until every thread that was inside has left. So a kernel that
 * lost its memory gets a fault of the software GPU, and never a signal.
 */
void memory_enter(void);
void memory_leave(void);

enum { MEMORY_GRANULARITY = 2 << 20 };

/* Initialises the module, once, before any other call. settings and charges stay the caller's,
 * and must live for ever. */
void memory_start(const struct softgpu_settings *settings, struct charges *charges);

/* Lock and unlock changes of a context. memory_change_begin adds the configured delay. Not
 * recursive. */
void memory_change_begin(void);
void memory_change_end(void);

/* The driver's calls. They check their arguments, and take the lock above themselves. */
cuda_result memory_reserve(cuda_device_ptr *ptr, size_t size, size_t alignment,
                           cuda_device_ptr hint);
cuda_result memory_unreserve(cuda_device_ptr ptr, size_t size);
cuda_result memory_create(cuda_mem_handle *handle, size_t size,
                          const cuda_mem_allocation_prop *prop);
cuda_result memory_release(cuda_mem_handle handle);
cuda_result memory_map(cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle);
cuda_result memory_unmap(cuda_device_ptr ptr, size_t size);
cuda_result memory_set_access(cuda_device_ptr ptr, size_t size, const cuda_mem_access_desc *desc,
                              size_t count);
cuda_result memory_export(int *fd, cuda_mem_handle handle);
cuda_result memory_import(cuda_mem_handle *handle, int fd);
cuda_result memory_host_register(void *ptr, size_t size, unsigned flags);
cuda_result memory_host_unregister(void *ptr);
cuda_result memory_host_alloc(void **ptr, size_t size);
cuda_result memory_host_free(void *ptr);
cuda_result memory_free(cuda_device_ptr ptr);
cuda_result memory_alloc(unsigned device, cuda_device_ptr *ptr, size_t size);
/* The same for a program, whose memory goes with the contexts of its device. managed: it is memory
 * of both sides. */
cuda_result memory_program_alloc(unsigned device, cuda_device_ptr *ptr, size_t size, bool managed);
/* Has an allocation, which begins at ptr, be memory of both sides. */
void memory_manage(cuda_device_ptr ptr);
/* Whether a program's allocation begins at ptr. */
bool memory_is_programs(cuda_device_ptr ptr);
/* Frees a device's allocations that are programs'; and all host memory, or what is registered of
 * it.
 */
void memory_free_device(unsigned device);
void memory_free_host(void);
void memory_info(unsigned device, uint64_t *free_bytes, uint64_t *total_bytes);

/* A description of the memory at an address. */
struct memory_place {
    uint64_t start, end;
    bool host;       /* registered or allocated host memory */
    bool managed;    /* device memory that is a program's for both sides */
    uint64_t id;     /* unique in the process */
    unsigned device; /* of device memory */
    uint32_t access; /* MEMORY_READ | MEMORY_WRITE */
    bool heap;       /* the heap of kernels, which nothing but kernels may reach */
};
bool memory_locate(uint64_t address, struct memory_place *place);

/* Whether all of [address, address + size) allows this access to others than kernels. */
bool memory_accessible(uint64_t address, uint64_t size, uint32_t access);

/*
 * Copy and fill memory in pieces, and check each piece again. A checked side must lie in live
 * ranges; an unchecked one is ordinary memory of the caller's. They return false, with the address
 * in *fault, if a check fails half way. Not to be called between memory_enter() and memory_leave().
 */
struct memory_side {
    uint64_t address;
    bool checked;
};
bool memory_copy(struct memory_side to, struct memory_side from, uint64_t size, uint64_t *fault);
bool memory_fill(uint64_t address, uint32_t value, unsigned width, uint64_t count, uint64_t *fault);

/* Stores 4 or 8 bytes atomically, ordered behind everything that this thread saw done. Returns
 * false if the address is not writable. May be called between memory_enter() and memory_leave()
 * or outside. */
bool memory_write_value(uint64_t address, uint64_t value, unsigned width);

/* Loads 4 or 8 bytes atomically; what was written before them is seen with them. Returns false, and
 * writes nothing, if the address is not readable. As above. */
bool memory_read_value(uint64_t address, unsigned width, uint64_t *value);

#endif
