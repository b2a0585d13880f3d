/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* fake_memory: the fake driver's memory, copies and fills. Only fake.h includes it. */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_FAKE_MEMORY_H
#define GPUSHARE_TESTS_UNIT_WORKER_FAKE_MEMORY_H

static inline cuda_result fake_cuMemGetAllocationGranularity(size_t *bytes,
                                                             const cuda_mem_allocation_prop *prop,
                                                             cuda_mem_granularity option)
{
    (void)prop;
    (void)option;
    *bytes = FAKE_GRANULE;
    return CUDA_OK;
}

static inline cuda_result fake_cuMemAddressReserve(cuda_device_ptr *ptr, size_t size, size_t align,
                                                   cuda_device_ptr hint, unsigned long long flags)
{
    (void)align;
    (void)flags;
    *ptr = hint;
    return shm_reserve(hint, size) == 0 ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

static inline cuda_result fake_cuMemAddressFree(cuda_device_ptr ptr, size_t size)
{
    return munmap((void *)(uintptr_t)ptr, size) == 0 ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

static inline cuda_result fake_cuMemCreate(cuda_mem_handle *handle, size_t size,
                                           const cuda_mem_allocation_prop *prop,
                                           unsigned long long flags)
{
    (void)prop;
    (void)flags;
    int fd = memfd_create("fake", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return CUDA_ERR_OUT_OF_MEMORY;
    *handle = (cuda_mem_handle)fd;
    return CUDA_OK;
}

static inline cuda_result fake_cuMemRelease(cuda_mem_handle handle)
{
    close((int)handle);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemMap(cuda_device_ptr ptr, size_t size, size_t offset,
                                        cuda_mem_handle handle, unsigned long long flags)
{
    (void)offset;
    (void)flags;
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_MAP);
    call->a = ptr;
    call->b = size;
    fake.live_maps++;
    pthread_mutex_unlock(&fake.lock);
    if (shm_map_at((int)handle, ptr, size, true) < 0)
        return CUDA_ERR_MAP_FAILED;
    /* No driver promises that memory is new: this one holds somebody's data. */
    *(uint8_t *)(uintptr_t)ptr = 0x5a;
    *(uint8_t *)(uintptr_t)(ptr + size - 1) = 0x5a;
    return CUDA_OK;
}

static inline cuda_result fake_cuMemUnmap(cuda_device_ptr ptr, size_t size)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_UNMAP);
    call->a = ptr;
    call->b = size;
    if (fake.next_unmap != CUDA_OK) {
        cuda_result result = fake.next_unmap;
        fake.next_unmap = CUDA_OK;
        pthread_mutex_unlock(&fake.lock);
        return result;
    }
    fake.live_maps--;
    fake.unmapped_busy += fake_anything_held();
    pthread_mutex_unlock(&fake.lock);
    mmap((void *)(uintptr_t)ptr, size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemSetAccess(cuda_device_ptr ptr, size_t size,
                                              const cuda_mem_access_desc *desc, size_t count)
{
    (void)ptr;
    (void)size;
    (void)desc;
    (void)count;
    return CUDA_OK;
}

static inline cuda_result fake_cuMemExportToShareableHandle(void *out, cuda_mem_handle handle,
                                                            cuda_mem_handle_type type,
                                                            unsigned long long flags)
{
    (void)type;
    (void)flags;
    *(int *)out = fcntl((int)handle, F_DUPFD_CLOEXEC, 0);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemHostRegister(void *ptr, size_t size, unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_REGISTER);
    call->a = (uint64_t)(uintptr_t)ptr;
    call->b = size;
    fake.live_registers++;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemHostUnregister(void *ptr)
{
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_UNREGISTER)->a = (uint64_t)(uintptr_t)ptr;
    fake.drained_busy += fake_anything_held();
    fake.live_registers--;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemHostGetDevicePointer(cuda_device_ptr *out, void *host,
                                                         unsigned flags)
{
    (void)flags;
    *out = (cuda_device_ptr)(uintptr_t)host;
    return CUDA_OK;
}

static inline cuda_result fake_cuMemcpyHtoD(cuda_device_ptr dst, const void *src, size_t size)
{
    memcpy((void *)(uintptr_t)dst, src, size);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemcpyHtoDAsync(cuda_device_ptr dst, const void *src, size_t size,
                                                 cuda_stream stream)
{
    assert_ptr_equal(stream, &fake_own_stream);
    memcpy((void *)(uintptr_t)dst, src, size);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemAllocHost(void **out, size_t size)
{
    *out = malloc(size);
    return *out ? CUDA_OK : CUDA_ERR_OUT_OF_MEMORY;
}

static inline cuda_result fake_cuMemFreeHost(void *memory)
{
    free(memory);
    return CUDA_OK;
}

static inline cuda_result fake_cuStreamSynchronize(cuda_stream stream)
{
    (void)stream;
    return CUDA_OK;
}

static inline cuda_result fake_cuMemcpyDtoH(void *dst, cuda_device_ptr src, size_t size)
{
    memcpy(dst, (const void *)(uintptr_t)src, size);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemcpyAsync(cuda_device_ptr dst, cuda_device_ptr src, size_t size,
                                             cuda_stream stream)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_COPY);
    call->a = dst;
    call->b = src;
    call->c = size;
    call->stream = stream;
    cuda_result result = fake.copy_result;
    pthread_mutex_unlock(&fake.lock);
    if (result == CUDA_OK)
        memmove((void *)(uintptr_t)dst, (const void *)(uintptr_t)src, size);
    return result;
}

static inline void fake_fill(cuda_device_ptr dst, uint32_t value, size_t count, uint32_t width,
                             cuda_stream stream)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_FILL);
    call->a = dst;
    call->b = value;
    call->c = count;
    call->numbers[0] = width;
    call->stream = stream;
    pthread_mutex_unlock(&fake.lock);
    for (size_t i = 0; i < count; i++)
        memcpy((uint8_t *)(uintptr_t)dst + i * width, &value, width);
}

static inline cuda_result fake_cuMemsetD8Async(cuda_device_ptr dst, unsigned char value,
                                               size_t count, cuda_stream stream)
{
    fake_fill(dst, value, count, 1, stream);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemsetD16Async(cuda_device_ptr dst, unsigned short value,
                                                size_t count, cuda_stream stream)
{
    fake_fill(dst, value, count, 2, stream);
    return CUDA_OK;
}

static inline cuda_result fake_cuMemsetD32Async(cuda_device_ptr dst, unsigned value, size_t count,
                                                cuda_stream stream)
{
    fake_fill(dst, value, count, 4, stream);
    return CUDA_OK;
}

#endif
