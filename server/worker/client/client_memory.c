/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/client_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/ipc/shm.h"
#include "common/util.h"

#define HOST_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static const struct retirement closed = {.kind = RETIRE_NOTHING};

/* ---- the table ---- */

/* Index of the first range that ends after the address. */
static size_t first_after(const struct client *client, uint64_t address)
{
    size_t low = 0, high = client->objects.range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (client->objects.ranges[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int range_is_free(const struct client *client, uint64_t address, uint64_t count)
{
    uint64_t end;
    if (count == 0 || __builtin_add_overflow(address, count, &end))
        return -EINVAL;
    size_t at = first_after(client, address);
    return at < client->objects.range_count && client->objects.ranges[at].start < end ? -EEXIST : 0;
}

int client_memory_range_add(struct client *client, uint64_t address, uint64_t count,
                            enum range_kind kind, const struct client_module *module)
{
    int error = range_is_free(client, address, count);
    if (error < 0)
        return error;
    size_t at = first_after(client, address);
    if (array_reserve(client->objects.ranges, client->objects.range_room,
                      client->objects.range_count + 1) < 0)
        return -ENOMEM;
    memmove(&client->objects.ranges[at + 1], &client->objects.ranges[at],
            (client->objects.range_count - at) * sizeof *client->objects.ranges);
    client->objects.ranges[at] =
        (struct range){.start = address, .end = address + count, .kind = kind, .module = module};
    client->objects.range_count++;
    return 0;
}

struct range *client_memory_range_exact(struct client *client, uint64_t address, uint64_t count,
                                        enum range_kind kind)
{
    size_t at = first_after(client, address);
    if (at == client->objects.range_count)
        return NULL;
    struct range *range = &client->objects.ranges[at];
    bool same = range->start == address && range->end - range->start == count;
    return same && range->kind == kind ? range : NULL;
}

void client_memory_range_remove(struct client *client, struct range *range)
{
    size_t at = (size_t)(range - client->objects.ranges);
    client->objects.range_count--;
    memmove(range, range + 1, (client->objects.range_count - at) * sizeof *range);
}

const struct range *client_memory_range_find(const struct client *client, uint64_t address,
                                             uint64_t count)
{
    size_t at = first_after(client, address);
    if (at == client->objects.range_count)
        return NULL;
    const struct range *range = &client->objects.ranges[at];
    if (address < range->start || count > range->end - address)
        return NULL;
    return range;
}

/* Adds a range that no command may name: a request without targets covers none. */
static int range_add_closed(struct client *client, uint64_t address, uint64_t count,
                            enum range_kind kind)
{
    client_lock(client);
    int error = client_memory_range_add(client, address, count, kind, NULL);
    if (error == 0)
        client_memory_range_exact(client, address, count, kind)->dying = &closed;
    pthread_mutex_unlock(&client->lock);
    return error;
}

static void range_set_dying(struct client *client, uint64_t address, uint64_t count,
                            enum range_kind kind, const struct retirement *dying)
{
    client_lock(client);
    struct range *range = client_memory_range_exact(client, address, count, kind);
    if (range)
        range->dying = dying;
    pthread_mutex_unlock(&client->lock);
}

void client_memory_open(struct client *client, uint64_t address, uint64_t count,
                        enum range_kind kind)
{
    range_set_dying(client, address, count, kind, NULL);
}

void client_memory_close(struct client *client, uint64_t address, uint64_t count,
                         enum range_kind kind)
{
    range_set_dying(client, address, count, kind, &closed);
}

void client_memory_forget(struct client *client, uint64_t address, uint64_t count,
                          enum range_kind kind)
{
    client_lock(client);
    struct range *range = client_memory_range_exact(client, address, count, kind);
    if (range)
        client_memory_range_remove(client, range);
    pthread_mutex_unlock(&client->lock);
}

static uint32_t refuse_range(struct error *why, int error, uint64_t address, uint64_t count)
{
    if (error == -EEXIST)
        return error_set(why, MESSAGE(range_taken), (unsigned long long)address,
                         (unsigned long long)count);
    return error_set(why, error_from_errno(error), MESSAGE_TEXT(range_refused),
                     (unsigned long long)address, (unsigned long long)count, strerror(-error));
}

static bool is_inside(uint64_t address, uint64_t count, uint64_t base, uint64_t bytes)
{
    return address >= base && address - base <= bytes && count <= bytes - (address - base);
}

/* ---- device memory ---- */

/* The mapping keeps the memory; the handle is the caller's. */
static cuda_result map_handle(const struct gpu *gpu, uint64_t address, uint64_t count,
                              cuda_mem_handle handle)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_mem_access_desc access = {
        .location = {.type = CUDA_MEM_LOCATION_DEVICE, .id = gpu->handle},
        .flags = CUDA_MEM_ACCESS_READWRITE};
    cuda_result result = cuda->cuMemMap(address, count, 0, handle, 0);
    if (result != CUDA_OK)
        return result;
    result = cuda->cuMemSetAccess(address, count, &access, 1);
    if (result != CUDA_OK)
        cuda->cuMemUnmap(address, count);
    return result;
}

static cuda_result create_and_map(const struct gpu *gpu, uint64_t address, uint64_t count, int *fd)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_mem_allocation_prop prop = {
        .type = CUDA_MEM_ALLOCATION_PINNED,
        .requested_handle_types = CUDA_MEM_HANDLE_POSIX_FD,
        .location = {.type = CUDA_MEM_LOCATION_DEVICE, .id = gpu->handle},
    };
    cuda_mem_handle handle;
    cuda_result result = cuda->cuMemCreate(&handle, count, &prop, 0);
    if (result != CUDA_OK)
        return result;
    *fd = -1;
    result = cuda->cuMemExportToShareableHandle(fd, handle, CUDA_MEM_HANDLE_POSIX_FD, 0);
    if (result != CUDA_OK)
        goto release;
    result = map_handle(gpu, address, count, handle);
    if (result != CUDA_OK) {
        close(*fd);
        *fd = -1;
    }
release:
    /* Mapping and descriptor keep the memory. */
    cuda->cuMemRelease(handle);
    return result;
}

uint32_t client_memory_reserve(struct client *client, uint64_t address, uint64_t count,
                               struct error *why)
{
    const struct gpu *gpu = client->gpu;
    if (!is_inside(address, count, client->control.device_base, client->control.window_bytes) ||
        address % gpu->granularity || count % gpu->granularity)
        return error_set(why, MESSAGE(range_not_granules), (unsigned long long)address,
                         (unsigned long long)count);
    int error = range_add_closed(client, address, count, RANGE_DEVICE);
    return error < 0 ? refuse_range(why, error, address, count) : 0;
}

uint32_t client_memory_map(const struct gpu *gpu, uint64_t address, uint64_t count, int *fd,
                           struct error *why)
{
    *fd = -1;
    cuda_result result = create_and_map(gpu, address, count, fd);
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_memory_create),
                           (unsigned long long)count, cuda_driver_error_sentence(result));
}

uint32_t client_memory_remap(const struct gpu *gpu, uint64_t address, uint64_t count, int fd,
                             struct error *why)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_mem_handle handle;
    cuda_result result = cuda->cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
                                                              CUDA_MEM_HANDLE_POSIX_FD);
    if (result == CUDA_OK) {
        result = map_handle(gpu, address, count, handle);
        cuda->cuMemRelease(handle);
    }
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_memory_import),
                           (unsigned long long)count, (unsigned long long)address,
                           cuda_driver_error_sentence(result));
}

uint32_t client_memory_clear(const struct client *client, struct quiet_calls *calls,
                             uint64_t address, uint64_t count, struct error *why)
{
    cuda_result result = clearing_zero(&client->gpu->clearing, calls, address, count);
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_memory_clear),
                           (unsigned long long)count, (unsigned long long)address,
                           cuda_driver_error_sentence(result));
}

uint32_t client_memory_unmap(const struct gpu *gpu, uint64_t address, uint64_t count,
                             struct error *why)
{
    cuda_result result = gpu->cuda->cuMemUnmap(address, count);
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(device_memory_unmap),
                           (unsigned long long)address, cuda_driver_error_sentence(result));
}

/* ---- host buffers ---- */

/* Pinning takes up to a millisecond for each megabyte of small pages, under the driver's lock:
 * between two steps others have it. Steps end where commands end (PROTO_REGISTRATION_BYTES): a copy
 * over two registrations is refused by the driver. */
static uint64_t registration_step(uint64_t address, uint64_t left)
{
    return min(PROTO_REGISTRATION_BYTES - address % PROTO_REGISTRATION_BYTES, left);
}

void client_memory_host_unregister_whole(const struct gpu *gpu, uint64_t address, uint64_t count)
{
    for (uint64_t done = 0; done < count; done += registration_step(address + done, count - done))
        gpu->cuda->cuMemHostUnregister((void *)(uintptr_t)(address + done));
}

uint32_t client_memory_host_register(const struct gpu *gpu, uint64_t address, uint64_t count,
                                     uint64_t *done, struct error *why)
{
    const struct cuda_driver *cuda = gpu->cuda;
    uint64_t step = registration_step(address + *done, count - *done);
    void *start = (void *)(uintptr_t)(address + *done);
    cuda_device_ptr there = 0;
    /* Pages are made here, where nobody waits, and not under the driver's lock. Older kernels
     * can't, and leave it to the driver. */
    madvise(start, step, MADV_POPULATE_WRITE);
    cuda_result result = cuda->cuMemHostRegister(
        start, step, CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP);
    if (result == CUDA_OK) {
        *done += step;
        result = cuda->cuMemHostGetDevicePointer(&there, start, 0);
    }
    if (result == CUDA_OK && there != (uint64_t)(uintptr_t)start)
        result = CUDA_ERR_NOT_SUPPORTED;
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(host_buffer_register),
                           (unsigned long long)address, cuda_driver_error_sentence(result));
}

void client_memory_host_note(struct client *client, uint64_t address, uint64_t count,
                             uint64_t registered, bool keeps)
{
    client_lock(client);
    struct range *range = client_memory_range_exact(client, address, count, RANGE_HOST);
    if (range) {
        range->registered = registered;
        range->keeps = keeps;
    }
    pthread_mutex_unlock(&client->lock);
}

static uint32_t check_host_fd(int fd, uint64_t count, struct error *why)
{
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & HOST_SEALS) != HOST_SEALS)
        return error_set(why, MESSAGE(host_buffer_not_sealed));
    if (fstat(fd, &status) < 0 || status.st_size < 0 || (uint64_t)status.st_size < count)
        return error_set(why, MESSAGE(host_buffer_too_small));
    return 0;
}

/* Keeps the arena reserved: any library's mmap could take a hole in it. */
int client_memory_host_vacate(struct gpu *gpu, uint64_t address, uint64_t count)
{
    void *base = mmap((void *)(uintptr_t)address, count, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    int result = base == MAP_FAILED ? -errno : 0;
    gpu_host_return(gpu, address);
    return result;
}

uint32_t client_memory_host_reserve(struct client *client, uint64_t address, uint64_t count, int fd,
                                    struct error *why)
{
    struct gpu *gpu = client->gpu;
    uint32_t error = check_host_fd(fd, count, why);
    int result = 0;
    if (error)
        goto close_fd;
    if (!is_inside(address, count, gpu->host_base, gpu->arena_bytes) || address % 4096 ||
        count % 4096) {
        error = error_set(why, MESSAGE(range_not_pages), (unsigned long long)address,
                          (unsigned long long)count);
        goto close_fd;
    }
    result = range_add_closed(client, address, count, RANGE_HOST);
    if (result < 0)
        goto refuse;
    result = gpu_host_take(gpu, address, count);
    if (result < 0)
        goto forget;
    result = shm_map_at(fd, address, count, true);
    if (result < 0)
        goto give_back;
    close(fd);
    return 0;

give_back:
    gpu_host_return(gpu, address);
forget:
    client_memory_forget(client, address, count, RANGE_HOST);
refuse:
    error = refuse_range(why, result, address, count);
close_fd:
    close(fd);
    return error;
}

void client_memory_host_unregister(struct client *client, uint64_t address, uint64_t count)
{
    uint64_t registered = 0;
    client_lock(client);
    struct range *range = client_memory_range_exact(client, address, count, RANGE_HOST);
    if (range) {
        registered = range->registered;
        range->registered = 0;
    }
    pthread_mutex_unlock(&client->lock);
    client_memory_host_unregister_whole(client->gpu, address, registered);
}

void client_memory_host_unregister_all(struct client *client)
{
    for (size_t i = 0; i < client->objects.range_count; i++) {
        const struct range *range = &client->objects.ranges[i];
        if (range->kind == RANGE_HOST)
            client_memory_host_unregister(client, range->start, range->end - range->start);
    }
}

uint32_t client_memory_host_unmap(struct client *client, uint64_t address, uint64_t count,
                                  struct error *why)
{
    client_memory_host_unregister(client, address, count);
    client_lock(client);
    bool known = client_memory_range_exact(client, address, count, RANGE_HOST);
    pthread_mutex_unlock(&client->lock);
    if (!known)
        return error_set(why, MESSAGE(host_buffer_unknown), (unsigned long long)address);
    client_memory_forget(client, address, count, RANGE_HOST);
    int result = client_memory_host_vacate(client->gpu, address, count);
    if (result < 0)
        return error_set(why, error_from_errno(result), MESSAGE_TEXT(host_buffer_unregister),
                         strerror(-result));
    return 0;
}
