/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Virtual memory management: reservations, handles (memfds) and mappings.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/list.h"

#include "server/softgpu/memory/memory_extent.h"

struct handle {
    struct list_link link;
    cuda_mem_handle id;
    uint64_t size;
    uint64_t inode;
    unsigned device;
    int fd;
    bool released; /* the caller's reference is gone, and only mappings keep it alive */
    bool exportable;
    unsigned maps;
};

static struct list handles = LIST_INIT(handles);
static cuda_mem_handle last_id;
static uint64_t random_state;

/* ---- reservations ----------------------------------------------------------------- */

static void *reserve_pages(uint64_t hint, uint64_t size, int flags)
{
    void *ptr = mmap(pointer(hint), size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);

    return ptr == MAP_FAILED ? NULL : ptr;
}

static void *reserve_anywhere(uint64_t size, uint64_t alignment)
{
    uint64_t padded, base, aligned;
    void *ptr;

    if (__builtin_add_overflow(size, alignment, &padded))
        return NULL;
    ptr = reserve_pages(0, padded, 0);
    if (!ptr)
        return NULL;
    base = address_of(ptr);
    aligned = (base + alignment - 1) & ~(alignment - 1);
    if (aligned > base)
        munmap(pointer(base), aligned - base);
    if (base + padded > aligned + size)
        munmap(pointer(aligned + size), base + padded - aligned - size);
    return pointer(aligned);
}

/* True as often as the percentage says. */
static bool happens_by_seed(uint64_t percent)
{
    if (random_state == 0)
        random_state = memory_settings()->seed * 2 + 1;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % 100 < percent;
}

cuda_result memory_reserve(cuda_device_ptr *ptr, size_t size, size_t alignment,
                           cuda_device_ptr hint)
{
    void *base = NULL;
    cuda_result result = CUDA_OK;

    if (!ptr || size == 0 || size % MEMORY_GRANULARITY != 0 || (alignment & (alignment - 1)) != 0)
        return CUDA_ERR_INVALID_VALUE;
    if (alignment < MEMORY_GRANULARITY)
        alignment = MEMORY_GRANULARITY;
    memory_change_begin();
    if (hint != 0 && happens_by_seed(memory_settings()->hint_error)) {
        memory_change_end();
        return CUDA_ERR_INVALID_VALUE;
    }
    memory_extent_flush_deferred(hint, size);
    if (hint != 0 && hint % alignment == 0 && hint <= UINT64_MAX - size &&
        hint + size <= UINT64_C(1) << memory_settings()->address_bits &&
        !happens_by_seed(memory_settings()->hint_refusal)) {
        base = reserve_pages(hint, size, MAP_FIXED_NOREPLACE);
        if (base && address_of(base) != hint) { /* a kernel that is older than the flag */
            munmap(base, size);
            base = NULL;
        }
    }
    if (!base)
        base = reserve_anywhere(size, alignment);
    if (!base) {
        result = CUDA_ERR_OUT_OF_MEMORY;
    } else if (!memory_extent_add(RESERVATION, address_of(base), size)) {
        munmap(base, size);
        result = CUDA_ERR_OUT_OF_MEMORY;
    } else {
        *ptr = address_of(base);
    }
    memory_change_end();
    return result;
}

cuda_result memory_unreserve(cuda_device_ptr ptr, size_t size)
{
    struct extent *extent;
    cuda_result result = CUDA_ERR_INVALID_VALUE;

    memory_change_begin();
    extent = memory_extent_at(RESERVATION, ptr);
    if (extent && extent->size == size && !memory_extent_overlaps(MAPPING, ptr, size)) {
        memory_extent_flush_deferred(ptr, size);
        munmap(pointer(ptr), size);
        memory_extent_remove(extent);
        result = CUDA_OK;
    }
    memory_change_end();
    return result;
}

/* ---- handles -------------------------------------------------------------------------- */

static struct handle *handle_find(cuda_mem_handle id)
{
    struct handle *handle;

    LIST_FOR_EACH (handle, &handles, link)
        if (handle->id == id && !handle->released)
            return handle;
    return NULL;
}

static struct handle *handle_add(int fd, uint64_t size, uint64_t inode, unsigned device,
                                 bool exportable)
{
    struct handle *handle = calloc(1, sizeof(*handle));

    if (!handle)
        return NULL;
    *handle = (struct handle){.id = ++last_id,
                              .size = size,
                              .inode = inode,
                              .device = device,
                              .fd = fd,
                              .exportable = exportable};
    list_prepend(&handles, &handle->link);
    return handle;
}

static void handle_drop_if_unused(struct handle *handle)
{
    if (!handle->released || handle->maps > 0)
        return;
    list_remove(&handle->link);
    close(handle->fd);
    charges_remove(memory_charges(), handle->device, handle->inode, handle->size);
    free(handle);
}

/* New memory has what its last owner left: a word at both ends of each granule. */
static bool leave_remains(int fd, uint64_t size)
{
    const uint64_t word = UINT64_C(0x5ec2e75a5ec2e75a);

    for (uint64_t at = 0; at < size; at += MEMORY_GRANULARITY) {
        const uint64_t last = at + MEMORY_GRANULARITY - sizeof(word);

        if (pwrite(fd, &word, sizeof(word), (off_t)at) != sizeof(word) ||
            pwrite(fd, &word, sizeof(word), (off_t)last) != sizeof(word))
            return false;
    }
    return true;
}

static int create_memfd(unsigned device, uint64_t size, uint64_t *inode)
{
    struct stat status;
    char name[32];
    int fd;

    snprintf(name, sizeof(name), "softgpu-%u", device);
    fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, (off_t)size) < 0 || fstat(fd, &status) < 0 ||
        (memory_settings()->remains && !leave_remains(fd, size)) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        close(fd);
        return -1;
    }
    *inode = status.st_ino;
    return fd;
}

static cuda_result charge_result(int error)
{
    return error == 0 ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

/* Charges the memory and makes a handle for it. The handle owns the fd, which is closed on
 * failure. */
static cuda_result adopt_descriptor(cuda_mem_handle *id, int fd, uint64_t size, uint64_t inode,
                                    unsigned device, bool exportable)
{
    cuda_result result = charge_result(
        charges_add(memory_charges(), device, memory_settings()->memory, inode, size));
    struct handle *handle = NULL;

    if (result == CUDA_OK) {
        handle = handle_add(fd, size, inode, device, exportable);
        if (!handle) {
            charges_remove(memory_charges(), device, inode, size);
            result = CUDA_ERR_OUT_OF_MEMORY;
        }
    }
    if (result != CUDA_OK) {
        close(fd);
        return result;
    }
    *id = handle->id;
    return CUDA_OK;
}

cuda_result memory_create(cuda_mem_handle *handle, size_t size,
                          const cuda_mem_allocation_prop *prop)
{
    cuda_result result;
    uint64_t inode = 0;
    unsigned device;
    int fd;

    if (!handle || !prop || size == 0 || size % MEMORY_GRANULARITY != 0 ||
        prop->type != CUDA_MEM_ALLOCATION_PINNED ||
        prop->location.type != CUDA_MEM_LOCATION_DEVICE || prop->location.id < 0 ||
        (unsigned)prop->location.id >= memory_settings()->visible_count || prop->win32_metadata ||
        prop->flags.usage != 0)
        return CUDA_ERR_INVALID_VALUE;
    if (prop->requested_handle_types & ~(unsigned)CUDA_MEM_HANDLE_POSIX_FD)
        return CUDA_ERR_NOT_SUPPORTED;
    if (size > memory_settings()->memory)
        return CUDA_ERR_OUT_OF_MEMORY;
    device = memory_settings()->visible[prop->location.id];
    memory_change_begin();
    fd = create_memfd(device, size, &inode);
    result = fd < 0 ? CUDA_ERR_OUT_OF_MEMORY
                    : adopt_descriptor(handle, fd, size, inode, device,
                                       prop->requested_handle_types == CUDA_MEM_HANDLE_POSIX_FD);
    memory_change_end();
    return result;
}

cuda_result memory_release(cuda_mem_handle id)
{
    struct handle *handle;

    memory_change_begin();
    handle = handle_find(id);
    if (handle) {
        handle->released = true;
        handle_drop_if_unused(handle);
    }
    memory_change_end();
    return handle ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

cuda_result memory_export(int *fd, cuda_mem_handle id)
{
    struct handle *handle;
    cuda_result result = CUDA_ERR_INVALID_VALUE;

    if (!fd)
        return CUDA_ERR_INVALID_VALUE;
    memory_change_begin();
    handle = handle_find(id);
    if (handle && handle->exportable) {
        *fd = fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
        result = *fd < 0 ? CUDA_ERR_OPERATING_SYSTEM : CUDA_OK;
        if (*fd >= 0)
            charges_exported(memory_charges(), handle->device, handle->inode);
    }
    memory_change_end();
    return result;
}

/* The device to which a memfd of ours belongs, by its name; -1 if it is none of ours. */
static int memfd_device(int fd)
{
    char path[64], target[64];
    unsigned device;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    length = readlink(path, target, sizeof(target) - 1);
    if (length < 0)
        return -1;
    target[length] = '\0';
    if (sscanf(target, "/memfd:softgpu-%u ", &device) != 1 || device >= memory_settings()->devices)
        return -1;
    return (int)device;
}

cuda_result memory_import(cuda_mem_handle *handle, int fd)
{
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    struct stat status;
    cuda_result result;
    int device, seals, own;

    if (!handle || fd < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return CUDA_ERR_INVALID_VALUE;
    seals = fcntl(fd, F_GET_SEALS);
    device = memfd_device(fd);
    if (seals < 0 || (seals & wanted) != wanted || device < 0 || status.st_size <= 0 ||
        status.st_size % MEMORY_GRANULARITY != 0)
        return CUDA_ERR_INVALID_VALUE;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return CUDA_ERR_OPERATING_SYSTEM;
    memory_change_begin();
    result = adopt_descriptor(handle, own, (uint64_t)status.st_size, status.st_ino,
                              (unsigned)device, true);
    if (result == CUDA_OK)
        charges_exported(memory_charges(), (unsigned)device, status.st_ino);
    memory_change_end();
    return result;
}

/* ---- mappings --------------------------------------------------------------------------- */

static cuda_result map_locked(uint64_t base, uint64_t size, struct handle *handle)
{
    struct extent *extent;

    memory_extent_flush_deferred(base, size);
    extent = memory_extent_add(MAPPING, base, size);
    if (!extent)
        return CUDA_ERR_OUT_OF_MEMORY;
    if (mmap(pointer(base), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, handle->fd, 0) ==
        MAP_FAILED) {
        memory_extent_remove(extent);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    extent->handle = handle;
    handle->maps++;
    return CUDA_OK;
}

cuda_result memory_map(cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle id)
{
    struct handle *handle;
    cuda_result result = CUDA_ERR_INVALID_VALUE;

    if (size == 0 || size % MEMORY_GRANULARITY != 0 || ptr % MEMORY_GRANULARITY != 0 || offset != 0)
        return CUDA_ERR_INVALID_VALUE;
    memory_change_begin();
    handle = handle_find(id);
    if (handle && handle->size == size && memory_extent_around(RESERVATION, ptr, size)) {
        if (memory_extent_overlaps(MAPPING, ptr, size))
            result = CUDA_ERR_ALREADY_MAPPED;
        else
            result = map_locked(ptr, size, handle);
    }
    memory_change_end();
    return result;
}

cuda_result memory_unmap(cuda_device_ptr ptr, size_t size)
{
    struct extent *extent;
    cuda_result result = CUDA_ERR_INVALID_VALUE;

    memory_change_begin();
    extent = memory_extent_at(MAPPING, ptr);
    if (extent && extent->size == size) {
        if (extent->live)
            memory_table_remove(ptr);
        memory_extent_defer_drop(ptr, size, true);
        extent->handle->maps--;
        handle_drop_if_unused(extent->handle);
        memory_extent_remove(extent);
        result = CUDA_OK;
    }
    memory_change_end();
    return result;
}

static bool mapped_whole(uint64_t base, uint64_t size)
{
    while (size > 0) {
        struct extent *extent = memory_extent_at(MAPPING, base);

        if (!extent || extent->size > size)
            return false;
        base += extent->size;
        size -= extent->size;
    }
    return true;
}

static cuda_result set_access_one(struct extent *extent, const cuda_mem_access_desc *desc)
{
    uint32_t access = desc->flags == CUDA_MEM_ACCESS_READWRITE ? MEMORY_READ | MEMORY_WRITE
                      : desc->flags == CUDA_MEM_ACCESS_READ    ? MEMORY_READ
                                                               : 0;

    if (memory_settings()->visible[desc->location.id] != extent->handle->device)
        return CUDA_ERR_PEER_ACCESS_UNSUPPORTED;
    if (extent->live)
        memory_table_access(extent->base, access);
    else if (memory_table_add(extent->base, extent->base + extent->size, access, false,
                              extent->handle->device) < 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    extent->live = true;
    return CUDA_OK;
}

cuda_result memory_set_access(cuda_device_ptr ptr, size_t size, const cuda_mem_access_desc *desc,
                              size_t count)
{
    cuda_result result = CUDA_OK;

    if (!desc || count == 0 || size == 0 || ptr > UINT64_MAX - size)
        return CUDA_ERR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (desc[i].location.type != CUDA_MEM_LOCATION_DEVICE || desc[i].location.id < 0 ||
            (unsigned)desc[i].location.id >= memory_settings()->visible_count ||
            (desc[i].flags != CUDA_MEM_ACCESS_NONE && desc[i].flags != CUDA_MEM_ACCESS_READ &&
             desc[i].flags != CUDA_MEM_ACCESS_READWRITE))
            return CUDA_ERR_INVALID_VALUE;
    memory_change_begin();
    if (!mapped_whole(ptr, size))
        result = CUDA_ERR_INVALID_VALUE;
    for (uint64_t at = ptr; result == CUDA_OK && at < ptr + size;) {
        struct extent *extent = memory_extent_at(MAPPING, at);

        for (size_t i = 0; i < count && result == CUDA_OK; i++)
            result = set_access_one(extent, &desc[i]);
        at += extent->size;
    }
    memory_change_end();
    return result;
}
