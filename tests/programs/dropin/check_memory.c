/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory, pointers and copies. */
#include <stdint.h>
#include <string.h>

#include "tests/programs/dropin/dropin.h"

/* Allocations have numbers of their own, and memory of a pool has its pool. */
static void check_identity(cuda_device_ptr first, cuda_device_ptr second)
{
    unsigned long long one, other;
    cuda_mem_pool pool, wanted;
    cuda_device_ptr ptr;
    int access = 0;
    OK(cuPointerGetAttribute(&one, CUDA_POINTER_BUFFER_ID, first + 4));
    OK(cuPointerGetAttribute(&other, CUDA_POINTER_BUFFER_ID, second));
    CHECK(one && other && one != other);
    OK(cuPointerGetAttribute(&access, CUDA_POINTER_ACCESS_FLAGS, first));
    CHECK(access == CUDA_MEM_ACCESS_READWRITE);
    OK(cuPointerGetAttribute(&pool, CUDA_POINTER_MEMPOOL_HANDLE, first));
    CHECK(pool == NULL);
    OK(cuMemAllocAsync(&ptr, 16, NULL));
    OK(cuDeviceGetDefaultMemPool(&wanted, 0));
    OK(cuPointerGetAttribute(&pool, CUDA_POINTER_MEMPOOL_HANDLE, ptr + 8));
    CHECK(pool == wanted);
    OK(cuMemFreeAsync(ptr, NULL));
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuPointerGetAttribute(&pool, (cuda_pointer_attribute)5, first));
}

void check_pointers(const struct work *work)
{
    cuda_device_ptr base;
    size_t size;
    unsigned type = 77;
    int ordinal = 77, ordinary = 0, copied = 77;
    void *buffer;
    cuda_pointer_attribute both[] = {CUDA_POINTER_MEMORY_TYPE, CUDA_POINTER_DEVICE_ORDINAL};
    void *to[] = {&type, &ordinal};
    OK(cuMemGetAddressRange_v2(&base, &size, work->words + 5));
    CHECK(base == work->words && size == BYTES);
    OK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, work->words));
    CHECK(type == CUDA_MEMORYTYPE_DEVICE);
    OK(cuMemHostAlloc(&buffer, 5000, CUDA_HOST_ALLOC_DEVICEMAP));
    OK(cuPointerGetAttributes(2, both, to, (cuda_device_ptr)(uintptr_t)buffer));
    CHECK(type == CUDA_MEMORYTYPE_HOST && ordinal == 0);
    OK(cuMemHostGetDevicePointer_v2(&base, buffer, 0));
    CHECK(base == (cuda_device_ptr)(uintptr_t)buffer);
    /* Copies take that as memory of the device. */
    OK(cuMemcpyHtoD_v2(base, &ordinary, sizeof ordinary));
    OK(cuMemcpyDtoH_v2(&copied, base, sizeof copied));
    CHECK(copied == 0);
    OK(cuMemcpyDtoD_v2(base + 4, work->words, 4));
    OK(cuCtxSynchronize());
    CHECK(((uint32_t *)buffer)[1] == 7);
    check_identity(work->words, (cuda_device_ptr)(uintptr_t)buffer);
    OK(cuMemHostGetFlags(&type, buffer));
    CHECK(type == (CUDA_HOST_ALLOC_PORTABLE | CUDA_HOST_ALLOC_DEVICEMAP));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemHostGetFlags(&type, &ordinary));
    OK(cuMemFreeHost(buffer));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFreeHost(buffer));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE,
                                                         (cuda_device_ptr)(uintptr_t)&ordinary));
    OK(cuPointerGetAttributes(2, both, to, (cuda_device_ptr)(uintptr_t)&ordinary));
    CHECK(type == 0 && ordinal == -2);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(work->words + 4));
    OK(cuMemFree_v2(0));
}

/* Programs register what they have, which begins and ends within pages. */
static void check_registered_parts(uint32_t *memory)
{
    OK(cuMemHostRegister_v2(memory + 20, 40, 0));
    EXPECT(CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(memory + 29, 40, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemHostUnregister(memory + 21));
    EXPECT(CUDA_ERR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(memory + 30));
    OK(cuMemHostRegister_v2(memory + 30, 40, 0));
    OK(cuMemHostUnregister(memory + 20));
    OK(cuMemHostUnregister(memory + 30));
}

void check_registered(const struct work *work)
{
    enum { PAGE = 4096 };
    static _Alignas(PAGE) uint32_t memory[PAGE / sizeof(uint32_t)];
    cuda_device_ptr ptr;
    unsigned type;
    void *buffer;
    EXPECT(CUDA_ERR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(memory));
    OK(cuMemHostRegister_v2(memory, PAGE, CUDA_HOST_REGISTER_DEVICEMAP));
    EXPECT(CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(memory, PAGE, 0));
    EXPECT(CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(memory + 1, 4, 0));
    OK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (cuda_device_ptr)(uintptr_t)memory));
    CHECK(type == CUDA_MEMORYTYPE_HOST);
    /* A client's device can't reach it, and nobody is told that it could. */
    EXPECT(is_served() ? CUDA_ERR_NOT_SUPPORTED : CUDA_OK,
           cuMemHostGetDevicePointer_v2(&ptr, memory, 0));
    OK(cuMemcpyDtoHAsync_v2(memory, work->words, BYTES, NULL));
    OK(cuStreamSynchronize(NULL));
    CHECK(memory[WORDS - 1] == 7);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemHostUnregister(memory + 1));
    OK(cuMemHostUnregister(memory));
    check_registered_parts(memory);
    OK(cuMemAllocHost_v2(&buffer, PAGE));
    EXPECT(CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(buffer, PAGE, 0));
    OK(cuMemFreeHost(buffer));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemHostRegister_v2(memory, SIZE_MAX, 0));
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemHostRegister_v2(memory, 4, CUDA_HOST_REGISTER_IOMEMORY));
}

void check_copies(const struct work *work)
{
    uint32_t from[WORDS], to[WORDS];
    cuda_device_ptr other;
    for (int i = 0; i < WORDS; i++)
        from[i] = (uint32_t)i * 3;
    OK(cuMemAlloc_v2(&other, BYTES));
    OK(cuMemcpyHtoD_v2(other, from, BYTES));
    OK(cuMemcpyDtoD_v2(work->words, other, BYTES));
    memset(to, 0, sizeof to);
    OK(cuMemcpy((cuda_device_ptr)(uintptr_t)to, work->words, BYTES));
    CHECK(!memcmp(from, to, BYTES));
    OK(cuMemsetD8_v2(other + 4, 0xab, 4));
    OK(cuMemsetD16_v2(other + 8, 0xcdef, 2));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemsetD32_v2(other + 1, 0, 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemsetD32_v2(other, 0, BYTES));
    OK(cuMemcpyDtoH_v2(to, other, BYTES));
    CHECK(to[0] == 0 && to[1] == 0xabababab && to[2] == 0xcdefcdef && to[3] == 9);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyHtoD_v2(other, from, BYTES * 1000));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyDtoH_v2(to, (cuda_device_ptr)(uintptr_t)from, 4));
    OK(cuMemcpyHtoD_v2(other, from, 0));
    OK(cuMemFree_v2(other));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}

/* A block of 3 x 5 x 2 bytes from the middle of one box to that of another, beside a copy by hand.
 */
void check_blocks(void)
{
    enum { X = 16, Y = 8, Z = 3, BOX = X * Y * Z };
    unsigned char from[BOX], to[BOX], wanted[BOX];
    cuda_device_ptr device;
    OK(cuMemAlloc_v2(&device, BOX));
    OK(cuMemsetD8_v2(device, 0xee, BOX));
    memset(wanted, 0xee, BOX);
    for (int i = 0; i < BOX; i++)
        from[i] = (unsigned char)i;
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 5; y++)
            memcpy(wanted + (z + 1) * X * Y + (y + 3) * X + 7, from + z * X * Y + (y + 2) * X + 5,
                   3);
    const cuda_memcpy_3d block = {.src_x = 5,
                                  .src_y = 2,
                                  .src_type = CUDA_MEMORYTYPE_HOST,
                                  .src_host = from,
                                  .src_pitch = X,
                                  .src_height = Y,
                                  .dst_x = 7,
                                  .dst_y = 3,
                                  .dst_z = 1,
                                  .dst_type = CUDA_MEMORYTYPE_DEVICE,
                                  .dst_device = device,
                                  .dst_pitch = X,
                                  .dst_height = Y,
                                  .width = 3,
                                  .height = 5,
                                  .depth = 2};
    OK(cuMemcpy3DAsync_v2(&block, NULL));
    OK(cuMemcpyDtoH_v2(to, device, BOX));
    CHECK(!memcmp(to, wanted, BOX));
    /* A plane of it to packed rows, and a fill around them. */
    cuda_memcpy_2d plane = {.src_x = 7,
                            .src_y = 3 + Y,
                            .src_type = CUDA_MEMORYTYPE_UNIFIED,
                            .src_device = device,
                            .src_pitch = X,
                            .dst_type = CUDA_MEMORYTYPE_HOST,
                            .dst_host = to,
                            .width = 3,
                            .height = 5};
    OK(cuMemcpy2D_v2(&plane));
    for (int y = 0; y < 5; y++)
        CHECK(!memcmp(to + 3 * y, from + (y + 2) * X + 5, 3));
    OK(cuMemsetD2D16_v2(device + 2, X, 0x1234, 2, 3));
    OK(cuMemcpyDtoH_v2(to, device, BOX));
    for (int y = 0; y < 3; y++) {
        const uint16_t filled[2] = {0x1234, 0x1234};
        memcpy(wanted + y * X + 2, filled, sizeof filled);
        CHECK(!memcmp(to + y * X, wanted + y * X, X));
    }
    CHECK(!memcmp(to, wanted, BOX));
    plane.width = X;
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpy2D_v2(&plane)); /* rows that reach into the next one */
    plane.src_type = CUDA_MEMORYTYPE_ARRAY;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemcpy2D_v2(&plane));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemsetD2D32_v2(device, X, 0, X, Y));
    OK(cuMemFree_v2(device));
}

static int attribute_of(int attribute, cuda_device_ptr ptr, size_t bytes)
{
    int value = 77;
    OK(cuMemRangeGetAttribute(&value, sizeof value, attribute, ptr, bytes));
    return value;
}

/* Advice is read back where the whole range has the same. */
static void check_advice(cuda_device_ptr ptr)
{
    enum { READ_MOSTLY = 1, PREFERRED, ACCESSED, PREFETCHED, PREFERRED_TYPE };
    enum { CPU = -1, NOWHERE = -2, HALF = BYTES / 2 };
    int attributes[] = {PREFETCHED, ACCESSED}, place = 77, accesses[3];
    void *to[] = {&place, accesses};
    size_t sizes[] = {sizeof place, sizeof accesses};
    CHECK(attribute_of(READ_MOSTLY, ptr, BYTES) == 0);
    CHECK(attribute_of(PREFERRED, ptr, BYTES) == NOWHERE);
    OK(cuMemAdvise(ptr, BYTES, 1, 0));
    OK(cuMemAdvise(ptr, BYTES, 3, CPU));
    OK(cuMemAdvise(ptr, BYTES, 5, CPU));
    OK(cuMemAdvise(ptr, BYTES, 5, 0));
    CHECK(attribute_of(READ_MOSTLY, ptr, BYTES) == 1);
    CHECK(attribute_of(PREFERRED, ptr, BYTES) == CPU);
    CHECK(attribute_of(PREFERRED_TYPE, ptr, BYTES) == CUDA_MEM_LOCATION_HOST);
    OK(cuMemRangeGetAttributes(to, sizes, attributes, 2, ptr, BYTES));
    CHECK(place == NOWHERE && accesses[0] == 0 && accesses[1] == CPU && accesses[2] == NOWHERE);
    OK(cuMemPrefetchAsync(ptr + HALF, HALF, 0, NULL));
    CHECK(attribute_of(PREFETCHED, ptr, BYTES) == NOWHERE);
    CHECK(attribute_of(PREFETCHED, ptr + HALF, HALF) == 0);
    OK(cuMemAdvise(ptr, 4, 2, 0));
    CHECK(attribute_of(READ_MOSTLY, ptr, BYTES) == 0);
    CHECK(attribute_of(READ_MOSTLY, ptr + 4, BYTES - 4) == 1);
    OK(cuMemAdvise(ptr, BYTES, 1, 0));
    OK(cuMemAdvise(ptr, BYTES, 4, 0));
    OK(cuMemAdvise(ptr, BYTES, 6, 0));
    CHECK(attribute_of(READ_MOSTLY, ptr, BYTES) == 1);
    CHECK(attribute_of(PREFERRED, ptr, BYTES) == NOWHERE);
    OK(cuMemRangeGetAttributes(to, sizes, attributes, 2, ptr, BYTES));
    CHECK(accesses[0] == CPU && accesses[1] == NOWHERE);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemRangeGetAttribute(&place, 2, READ_MOSTLY, ptr, BYTES));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemRangeGetAttribute(accesses, 12, PREFERRED, ptr, BYTES));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemRangeGetAttribute(&place, 4, READ_MOSTLY, ptr, BYTES + 1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemRangeGetAttribute(&place, 4, 9, ptr, BYTES));
}

/* One pointer for both sides: the host writes, a kernel adds, and the host reads. */
void check_managed(const struct work *work)
{
    cuda_device_ptr ptr;
    unsigned type;
    char managed = 0;
    uint32_t *words, times = 5, ordinary[WORDS];
    cuda_pointer_attribute both[] = {CUDA_POINTER_IS_MANAGED, CUDA_POINTER_MEMORY_TYPE};
    void *to[] = {&managed, &type};
    const cuda_mem_location place = {CUDA_MEM_LOCATION_DEVICE, 0};
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemAllocManaged(&ptr, BYTES, 4));
    OK(cuMemAllocManaged(&ptr, BYTES, 1));
    words = (uint32_t *)(uintptr_t)ptr;
    for (int i = 0; i < WORDS; i++)
        words[i] = (uint32_t)i;
    check_advice(ptr);
    OK(cuMemAdvise_v2(ptr, BYTES, 3, place));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemAdvise_v2(ptr, BYTES, 7, place));
    OK(cuMemPrefetchAsync(ptr, BYTES, 0, NULL));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemPrefetchAsync(ptr, BYTES + 1, 0, NULL));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemAdvise(work->words, BYTES, 1, 0));
    OK(cuStreamAttachMemAsync(NULL, ptr, 0, 1));
    void *parameters[] = {&ptr, &times};
    OK(cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuCtxSynchronize());
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(words[i] == i + 5);
    OK(cuPointerGetAttributes(2, both, to, ptr + 8));
    CHECK(managed == 1 && type == CUDA_MEMORYTYPE_DEVICE);
    /* Copies take it as memory of either side. */
    OK(cuMemcpyDtoH_v2(ordinary, ptr, BYTES));
    CHECK(ordinary[WORDS - 1] == WORDS + 4);
    OK(cuMemcpyHtoD_v2(work->words, words, BYTES));
    OK(cuMemcpyDtoH_v2(ordinary, work->words, BYTES));
    CHECK(ordinary[WORDS - 1] == WORDS + 4);
    OK(cuMemsetD32_v2(ptr, 9, WORDS)); /* waits */
    CHECK(words[0] == 9 && words[WORDS - 1] == 9);
    OK(cuMemsetD16_v2_ptds(ptr, 3, 2)); /* waits too */
    CHECK(words[0] == 0x30003 && words[1] == 9);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFreeHost(words));
    OK(cuMemFree_v2(ptr));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(ptr));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}

/* Of two devices: the words go there and back, once each way of copying. */
void check_peers(void)
{
    cuda_context contexts[2];
    cuda_device_ptr words[2];
    cuda_stream stream;
    uint32_t found[WORDS];
    int can = 77;
    OK(cuInit(0));
    for (int i = 0; i < 2; i++) {
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
        OK(cuCtxSetCurrent(contexts[i]));
        OK(cuMemAlloc_v2(&words[i], BYTES));
        OK(cuMemsetD32_v2(words[i], 5 + (uint32_t)i, WORDS));
    }
    OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 0);
    EXPECT(CUDA_ERR_PEER_ACCESS_UNSUPPORTED, cuCtxEnablePeerAccess(contexts[0], 0));
    OK(cuDeviceGetP2PAttribute(&can, 2, 0, 1));
    CHECK(can == 0);
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuMemcpyPeer(words[1], NULL, words[0], contexts[0], BYTES));
    OK(cuMemcpyPeer(words[1], contexts[1], words[0], contexts[0], BYTES / 2));
    OK(cuMemcpyDtoH_v2(found, words[1], BYTES));
    CHECK(found[0] == 5 && found[WORDS / 2 - 1] == 5 && found[WORDS / 2] == 6);
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    OK(cuMemsetD32Async(words[1], 8, WORDS, stream));
    OK(cuMemcpyPeerAsync(words[0], contexts[0], words[1], contexts[1], BYTES, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuMemcpyDtoH_v2(found, words[0], BYTES));
    CHECK(found[0] == 8 && found[WORDS - 1] == 8);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyPeer(words[0], contexts[0], words[0], contexts[1], 4));
    OK(cuMemcpyPeer(words[0], contexts[0], words[0] + 4, contexts[0], 4));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

static cuda_result push_batch(cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes,
                              size_t *failed, cuda_stream stream)
{
    cuda_copy_attributes attributes[] = {
        {.order = CUDA_COPY_ORDER_DURING_CALL, .flags = CUDA_COPY_PREFER_OVERLAP},
        {.order = CUDA_COPY_ORDER_STREAM}};
    size_t firsts[] = {0, 2};
    *failed = 77;
    return cuMemcpyBatchAsync(dsts, srcs, sizes, 3, attributes, firsts, 2, failed, stream);
}

/* No copy of a batch that is not sound is made. */
static void check_batch_refusals(const struct work *work, cuda_device_ptr from, cuda_stream stream)
{
    cuda_device_ptr dsts[] = {work->words, work->words + 4}, srcs[] = {from, from};
    size_t sizes[] = {4, 4}, firsts[] = {0, 1}, failed;
    cuda_copy_attributes attributes[] = {{.order = CUDA_COPY_ORDER_ANY},
                                         {.order = CUDA_COPY_ORDER_ANY}};
#define REFUSED(count, attribute_count, stream)                                                    \
    failed = 77;                                                                                   \
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyBatchAsync(dsts, srcs, sizes, count, attributes,        \
                                                      firsts, attribute_count, &failed, stream));  \
    CHECK(failed == SIZE_MAX)
    REFUSED(2, 2, NULL);
    REFUSED(2, 2, CUDA_STREAM_LEGACY);
    REFUSED(0, 0, stream);
    REFUSED(2, 0, stream);
    REFUSED(1, 2, stream);
    firsts[0] = 1;
    REFUSED(2, 1, stream);
    firsts[0] = firsts[1] = 0;
    REFUSED(2, 2, stream);
    firsts[1] = 2;
    REFUSED(2, 2, stream);
    firsts[1] = 1;
    attributes[1].order = 0;
    REFUSED(2, 2, stream);
    attributes[1].order = 4;
    REFUSED(2, 2, stream);
    attributes[1].order = CUDA_COPY_ORDER_ANY;
    attributes[1].flags = 2;
    REFUSED(2, 2, stream);
#undef REFUSED
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuMemcpyBatchAsync_v2(NULL, srcs, sizes, 2, attributes, firsts, 1, stream));
    OK(cuCtxSynchronize());
    demand(work, 7);
    OK(cuMemcpyBatchAsync_v2_ptsz(dsts, srcs, sizes, 2, attributes, firsts, 1, NULL));
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
}

void check_batches(const struct work *work)
{
    uint32_t ordinary[WORDS], found[WORDS], *pinned;
    cuda_device_ptr other;
    cuda_stream stream;
    size_t failed;
    OK(cuMemAllocHost_v2((void **)&pinned, BYTES));
    OK(cuMemAlloc_v2(&other, BYTES));
    OK(cuStreamCreate(&stream, 1 /* non-blocking */));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuMemsetD32_v2(other, 9, WORDS));
    OK(cuCtxSynchronize());
    check_batch_refusals(work, other, stream);
    for (int i = 0; i < WORDS; i++)
        ordinary[i] = pinned[i] = 11;
    cuda_device_ptr dsts[] = {work->words, work->words + BYTES / 4, work->words + BYTES / 2};
    cuda_device_ptr srcs[] = {(cuda_device_ptr)ordinary, (cuda_device_ptr)pinned, other};
    size_t sizes[] = {BYTES / 4, BYTES / 4, BYTES / 2};
    OK(push_batch(dsts, srcs, sizes, &failed, stream));
    CHECK(failed == SIZE_MAX);
    /* Both were read before the call returned. */
    memset(ordinary, 0, sizeof ordinary);
    memset(pinned, 0, BYTES);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH_v2(found, work->words, BYTES));
    for (int i = 0; i < WORDS; i++)
        CHECK(found[i] == (i < WORDS / 2 ? 11 : 9));
    srcs[2] = 0;
    EXPECT(CUDA_ERR_INVALID_VALUE, push_batch(dsts, srcs, sizes, &failed, stream));
    CHECK(failed == 2);
    /* The copies before the refused one may be under way. */
    OK(cuStreamSynchronize(stream));
    OK(cuStreamDestroy_v2(stream));
    OK(cuMemFree_v2(other));
    OK(cuMemFreeHost(pinned));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}
