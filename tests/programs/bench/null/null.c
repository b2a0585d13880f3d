/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A CUDA driver that does nothing: every operation completes inside the call that asks for it. So a
 * measurement on it shows gpushare's own cost. Kernels are counted and not run; copies, fills and
 * memory are real.
 *
 * NULL_DRIVER_COUNTERS=FILE: a file of at least one page, whose first 64-bit word counts launches.
 * A bench checks by it that none was lost.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"

#define EXPORT __attribute__((visibility("default")))
enum { GRANULARITY = 2 << 20 };

struct cuda_event_object {
    uint64_t ns;
};

struct cuda_stream_object {
    int priority;
};

static uint64_t own_counter;
static uint64_t *launches = &own_counter;
static int something; /* what opaque handles point at */

static cuda_result null_ok(void)
{
    return CUDA_OK;
}

static cuda_result null_init(unsigned flags)
{
    (void)flags;
    const char *path = getenv("NULL_DRIVER_COUNTERS");
    if (!path || launches != &own_counter)
        return CUDA_OK;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (page == MAP_FAILED)
        return CUDA_ERR_OPERATING_SYSTEM;
    launches = page;
    return CUDA_OK;
}

static cuda_result null_version(int *version)
{
    *version = 13000;
    return CUDA_OK;
}

static cuda_result null_error_name(cuda_result error, const char **name)
{
    *name = cuda_driver_error_name(error);
    return *name ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

static cuda_result null_error_string(cuda_result error, const char **text)
{
    *text = cuda_driver_error_sentence(error);
    return CUDA_OK;
}

static cuda_result null_count(int *count)
{
    *count = 1;
    return CUDA_OK;
}

static cuda_result null_device(cuda_device *device, int ordinal)
{
    *device = 0;
    return ordinal ? CUDA_ERR_INVALID_DEVICE : CUDA_OK;
}

static cuda_result null_text(char *text, int size, cuda_device device)
{
    (void)device;
    strncpy(text, "null device", (size_t)size);
    return CUDA_OK;
}

static cuda_result null_uuid(cuda_uuid *uuid, cuda_device device)
{
    (void)device;
    memset(uuid, 0x6e, sizeof *uuid);
    return CUDA_OK;
}

static cuda_result null_total(size_t *bytes, cuda_device device)
{
    (void)device;
    *bytes = (size_t)16 << 30;
    return CUDA_OK;
}

static cuda_result null_attribute(int *value, cuda_device_attribute attribute, cuda_device device)
{
    static const struct {
        cuda_device_attribute attribute;
        int value;
    } rows[] = {
        {CUDA_ATTR_MAX_THREADS_PER_BLOCK, 1024},
        {CUDA_ATTR_MAX_BLOCK_DIM_X, 1024},
        {CUDA_ATTR_MAX_BLOCK_DIM_Y, 1024},
        {CUDA_ATTR_MAX_BLOCK_DIM_Z, 64},
        {CUDA_ATTR_MAX_GRID_DIM_X, 2147483647},
        {CUDA_ATTR_MAX_GRID_DIM_Y, 65535},
        {CUDA_ATTR_MAX_GRID_DIM_Z, 65535},
        {CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
        {CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
        {CUDA_ATTR_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
        {CUDA_ATTR_TOTAL_CONSTANT_MEMORY, 65536},
        {CUDA_ATTR_WARP_SIZE, 32},
        {CUDA_ATTR_MAX_REGISTERS_PER_BLOCK, 65536},
        {CUDA_ATTR_CLOCK_RATE, 1000000},
        {CUDA_ATTR_MULTIPROCESSOR_COUNT, 132},
        {CUDA_ATTR_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
        {CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, 9},
        {CUDA_ATTR_L2_CACHE_SIZE, 1 << 20},
        {CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
        {CUDA_ATTR_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CUDA_ATTR_UNIFIED_ADDRESSING, 1},
        {CUDA_ATTR_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CUDA_ATTR_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CUDA_ATTR_HOST_REGISTER_SUPPORTED, 1},
    };
    (void)device;
    *value = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].attribute == attribute)
            *value = rows[i].value;
    return CUDA_OK;
}

static cuda_result null_context(cuda_context *context, cuda_device device)
{
    (void)device;
    *context = (cuda_context)&something;
    return CUDA_OK;
}

static cuda_result null_priorities(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_OK;
}

static cuda_result null_granularity(size_t *bytes, const cuda_mem_allocation_prop *prop,
                                    cuda_mem_granularity option)
{
    (void)prop;
    (void)option;
    *bytes = GRANULARITY;
    return CUDA_OK;
}

static cuda_result null_reserve(cuda_device_ptr *ptr, size_t size, size_t alignment,
                                cuda_device_ptr hint, unsigned long long flags)
{
    (void)alignment;
    (void)flags;
    void *base = mmap((void *)(uintptr_t)hint, size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *ptr = (cuda_device_ptr)(uintptr_t)base;
    return base == MAP_FAILED ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

static cuda_result null_create(cuda_mem_handle *handle, size_t size,
                               const cuda_mem_allocation_prop *prop, unsigned long long flags)
{
    (void)prop;
    (void)flags;
    int fd = memfd_create("null device memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    *handle = (cuda_mem_handle)fd;
    return CUDA_OK;
}

static cuda_result null_release(cuda_mem_handle handle)
{
    close((int)handle);
    return CUDA_OK;
}

static cuda_result null_map(cuda_device_ptr ptr, size_t size, size_t offset, cuda_mem_handle handle,
                            unsigned long long flags)
{
    (void)flags;
    void *base = mmap((void *)(uintptr_t)ptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                      (int)handle, (off_t)offset);
    return base == MAP_FAILED ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

static cuda_result null_unmap(cuda_device_ptr ptr, size_t size)
{
    void *base = mmap((void *)(uintptr_t)ptr, size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return base == MAP_FAILED ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

static cuda_result null_export(void *shareable, cuda_mem_handle handle, cuda_mem_handle_type type,
                               unsigned long long flags)
{
    (void)type;
    (void)flags;
    *(int *)shareable = fcntl((int)handle, F_DUPFD_CLOEXEC, 0);
    return *(int *)shareable < 0 ? CUDA_ERR_OUT_OF_MEMORY : CUDA_OK;
}

static cuda_result null_device_pointer(cuda_device_ptr *device_ptr, void *host, unsigned flags)
{
    (void)flags;
    *device_ptr = (cuda_device_ptr)(uintptr_t)host;
    return CUDA_OK;
}

static cuda_result null_copy(cuda_device_ptr to, cuda_device_ptr from, size_t size)
{
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return CUDA_OK;
}

static cuda_result null_copy_async(cuda_device_ptr to, cuda_device_ptr from, size_t size,
                                   cuda_stream stream)
{
    (void)stream;
    return null_copy(to, from, size);
}

static cuda_result null_fill8(cuda_device_ptr to, unsigned char value, size_t count,
                              cuda_stream stream)
{
    (void)stream;
    memset((void *)(uintptr_t)to, value, count);
    return CUDA_OK;
}

static cuda_result null_fill16(cuda_device_ptr to, unsigned short value, size_t count,
                               cuda_stream stream)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        ((unsigned short *)(uintptr_t)to)[i] = value;
    return CUDA_OK;
}

static cuda_result null_fill32(cuda_device_ptr to, unsigned value, size_t count, cuda_stream stream)
{
    (void)stream;
    for (size_t i = 0; i < count; i++)
        ((unsigned *)(uintptr_t)to)[i] = value;
    return CUDA_OK;
}

static cuda_result null_stream(cuda_stream *stream, unsigned flags, int priority)
{
    (void)flags;
    *stream = malloc(sizeof **stream);
    if (!*stream)
        return CUDA_ERR_OUT_OF_MEMORY;
    (*stream)->priority = priority;
    return CUDA_OK;
}

static cuda_result null_stream_destroy(cuda_stream stream)
{
    free(stream);
    return CUDA_OK;
}

static cuda_result null_write64(cuda_stream stream, cuda_device_ptr address, uint64_t value,
                                unsigned flags)
{
    (void)stream;
    (void)flags;
    __atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_SEQ_CST);
    return CUDA_OK;
}

static cuda_result null_batch(cuda_stream stream, unsigned count, cuda_mem_op_params *ops,
                              unsigned flags)
{
    (void)flags;
    for (unsigned i = 0; i < count; i++) {
        if (ops[i].operation != CUDA_MEM_OP_WRITE_VALUE_64)
            return CUDA_ERR_NOT_SUPPORTED;
        null_write64(stream, ops[i].write_value.address, ops[i].write_value.value64, 0);
    }
    return CUDA_OK;
}

static cuda_result null_event(cuda_event *event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

static cuda_result null_event_destroy(cuda_event event)
{
    free(event);
    return CUDA_OK;
}

static cuda_result null_event_record(cuda_event event, cuda_stream stream)
{
    (void)stream;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return CUDA_OK;
}

static cuda_result null_elapsed(float *milliseconds, cuda_event start, cuda_event end)
{
    *milliseconds = (float)((double)(int64_t)(end->ns - start->ns) / 1e6);
    return CUDA_OK;
}

static cuda_result null_module(cuda_module *module, const void *image)
{
    (void)image;
    *module = (cuda_module)&something;
    return CUDA_OK;
}

static cuda_result null_module_ex(cuda_module *module, const void *image, unsigned count,
                                  cuda_jit_option *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return null_module(module, image);
}

static cuda_result null_function(cuda_function *function, cuda_module module, const char *name)
{
    (void)module;
    (void)name;
    *function = (cuda_function)&something;
    return CUDA_OK;
}

static cuda_result null_global(cuda_device_ptr *ptr, size_t *size, cuda_module module,
                               const char *name)
{
    (void)ptr;
    (void)size;
    (void)module;
    (void)name;
    return CUDA_ERR_NOT_FOUND;
}

static cuda_result null_function_attribute(int *value, cuda_function_attribute attribute,
                                           cuda_function function)
{
    (void)function;
    *value = attribute == CUDA_FUNC_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return CUDA_OK;
}

static cuda_result null_launch(cuda_function function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, cuda_stream stream,
                               void **params, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared_bytes, (void)stream, (void)params, (void)extra;
    if (!function)
        return CUDA_ERR_INVALID_HANDLE;
    /* Relaxed and no read-modify-write: the submitter is the only thread that launches. */
    __atomic_store_n(launches, *launches + 1, __ATOMIC_RELAXED);
    return CUDA_OK;
}

static cuda_result null_host_func(cuda_stream stream, cuda_host_fn fn, void *user)
{
    (void)stream;
    fn(user);
    return CUDA_OK;
}

static cuda_result null_occupancy(int *blocks, cuda_function function, int block_size,
                                  size_t dynamic_shared_bytes)
{
    (void)function, (void)dynamic_shared_bytes;
    *blocks = 2048 / (block_size > 0 ? block_size : 1);
    return CUDA_OK;
}

static cuda_result null_host_alloc(void **memory, size_t size)
{
    *memory = malloc(size);
    return *memory ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

static cuda_result null_host_free(void *memory)
{
    free(memory);
    return CUDA_OK;
}

static cuda_result null_memory_info(size_t *free_bytes, size_t *total)
{
    null_total(total, 0);
    *free_bytes = *total;
    return CUDA_OK;
}

static cuda_result null_limit(size_t *value, cuda_limit limit)
{
    (void)limit;
    *value = 1024;
    return CUDA_OK;
}

static const struct {
    const char *name;
    void *function;
} entries[] = {
    {"cuInit", null_init},
    {"cuDriverGetVersion", null_version},
    {"cuGetErrorName", null_error_name},
    {"cuGetErrorString", null_error_string},
    {"cuDeviceGetCount", null_count},
    {"cuDeviceGet", null_device},
    {"cuDeviceGetName", null_text},
    {"cuDeviceGetPCIBusId", null_text},
    {"cuDeviceGetUuid", null_uuid},
    {"cuDeviceTotalMem", null_total},
    {"cuDeviceGetAttribute", null_attribute},
    {"cuDevicePrimaryCtxRetain", null_context},
    {"cuCtxGetStreamPriorityRange", null_priorities},
    {"cuMemGetAllocationGranularity", null_granularity},
    {"cuMemAddressReserve", null_reserve},
    {"cuMemCreate", null_create},
    {"cuMemRelease", null_release},
    {"cuMemMap", null_map},
    {"cuMemUnmap", null_unmap},
    {"cuMemExportToShareableHandle", null_export},
    {"cuMemHostGetDevicePointer", null_device_pointer},
    {"cuMemcpy", null_copy},
    {"cuMemcpyHtoD", null_copy},
    {"cuMemcpyDtoH", null_copy},
    {"cuMemcpyDtoD", null_copy},
    {"cuMemcpyAsync", null_copy_async},
    {"cuMemcpyHtoDAsync", null_copy_async},
    {"cuMemcpyDtoHAsync", null_copy_async},
    {"cuMemcpyDtoDAsync", null_copy_async},
    {"cuMemsetD8Async", null_fill8},
    {"cuMemsetD16Async", null_fill16},
    {"cuMemsetD32Async", null_fill32},
    {"cuStreamCreateWithPriority", null_stream},
    {"cuStreamDestroy", null_stream_destroy},
    {"cuStreamWriteValue64", null_write64},
    {"cuStreamBatchMemOp", null_batch},
    {"cuEventCreate", null_event},
    {"cuEventDestroy", null_event_destroy},
    {"cuEventRecord", null_event_record},
    {"cuEventElapsedTime", null_elapsed},
    {"cuModuleLoadData", null_module},
    {"cuModuleLoadDataEx", null_module_ex},
    {"cuModuleGetFunction", null_function},
    {"cuModuleGetGlobal", null_global},
    {"cuFuncGetAttribute", null_function_attribute},
    {"cuLaunchKernel", null_launch},
    {"cuLaunchHostFunc", null_host_func},
    {"cuMemAllocHost", null_host_alloc},
    {"cuMemFreeHost", null_host_free},
    {"cuCtxGetLimit", null_limit},
    {"cuMemGetInfo", null_memory_info},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", null_occupancy},
};

/* Calls that succeed without doing anything. A call that would have to give something back, and is
 * not above, is not found. */
static const char *const silent[] = {
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxSetFlags",
    "cuDevicePrimaryCtxGetState",
    "cuCtxSetCurrent",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxSynchronize",
    "cuCtxSetLimit",
    "cuMemAddressFree",
    "cuMemSetAccess",
    "cuMemImportFromShareableHandle",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemsetD8",
    "cuMemsetD16",
    "cuMemsetD32",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemHostAlloc",
    "cuMemGetAddressRange",
    "cuPointerGetAttribute",
    "cuStreamCreate",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuStreamGetPriority",
    "cuStreamWriteValue32",
    "cuEventQuery",
    "cuEventSynchronize",
    "cuModuleUnload",
    "cuFuncSetAttribute",
    "cuGetProcAddress",
};

EXPORT cuda_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                       cuda_proc_address_status *status);

EXPORT cuda_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                       cuda_proc_address_status *status)
{
    (void)version;
    (void)flags;
    *fn = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (!strcmp(symbol, entries[i].name))
            *fn = entries[i].function;
    for (size_t i = 0; !*fn && i < sizeof silent / sizeof silent[0]; i++)
        if (!strcmp(symbol, silent[i]))
            *fn = null_ok;
    if (status)
        *status = *fn ? CUDA_PROC_ADDRESS_SUCCESS : CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *fn ? CUDA_OK : CUDA_ERR_NOT_FOUND;
}
