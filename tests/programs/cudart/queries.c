/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Pools, pointers, attributes, preferences and captures. Compiled once for each release: some calls
 * have other parameters in each. */
#include <string.h>

#include "tests/programs/cudart/cudart.h"

#ifndef RELEASE
#define RELEASE 13
#endif

enum { BYTES = 1 << 20, RESERVED_FILL = 0x5a };

#if RELEASE == 12
cudart_error cudaMemPrefetchAsync(const void *ptr, size_t size, int device, cuda_stream stream);
cudart_error cudaMemAdvise(const void *ptr, size_t size, int advice, int device);
cudart_error cudaStreamGetCaptureInfo(cuda_stream stream, int *status, unsigned long long *id);
cudart_error cudaMemcpyBatchAsync(void **dsts, void **srcs, size_t *sizes, size_t count,
                                  cuda_copy_attributes *attributes, size_t *firsts,
                                  size_t attribute_count, size_t *failed, cuda_stream stream);
cudart_error cudaMemcpyBatchAsync_ptsz(void **dsts, void **srcs, size_t *sizes, size_t count,
                                       cuda_copy_attributes *attributes, size_t *firsts,
                                       size_t attribute_count, size_t *failed, cuda_stream stream);
#define BATCH(name, dsts, srcs, sizes, attributes, firsts, stream)                                 \
    name(dsts, srcs, sizes, 2, attributes, firsts, 1, &failed, stream)
cudart_error cudaMemcpy3DBatchAsync(size_t count, cuda_batch_3d *blocks, size_t *failed,
                                    unsigned long long flags, cuda_stream stream);
cudart_error cudaMemcpy3DBatchAsync_ptsz(size_t count, cuda_batch_3d *blocks, size_t *failed,
                                         unsigned long long flags, cuda_stream stream);
#define COPY_BLOCK(block, stream)         cudaMemcpy3DBatchAsync(1, block, &(size_t){0}, 0, stream)
#define COPY_BLOCK_OWN(block, stream)     cudaMemcpy3DBatchAsync_ptsz(1, block, NULL, 0, stream)
#define PREFETCH(ptr, size, device)       cudaMemPrefetchAsync(ptr, size, device, NULL)
#define ADVISE(ptr, size, advice, device) cudaMemAdvise(ptr, size, advice, device)
#define CAPTURE(stream, status)           cudaStreamGetCaptureInfo(stream, status, NULL)
enum { POINTER_BYTES = sizeof(struct cudart_pointer_attributes) };
#else
cudart_error cudaMemPrefetchAsync(const void *ptr, size_t size, cuda_mem_location place,
                                  unsigned flags, cuda_stream stream);
cudart_error cudaMemAdvise(const void *ptr, size_t size, int advice, cuda_mem_location place);
cudart_error cudaStreamGetCaptureInfo(cuda_stream stream, int *status, unsigned long long *id,
                                      void **graph, const void **dependencies, const void **edges,
                                      size_t *count);
cudart_error cudaMemcpyBatchAsync(void *const *dsts, const void *const *srcs, const size_t *sizes,
                                  size_t count, cuda_copy_attributes *attributes, size_t *firsts,
                                  size_t attribute_count, cuda_stream stream);
cudart_error cudaMemcpyBatchAsync_ptsz(void *const *dsts, const void *const *srcs,
                                       const size_t *sizes, size_t count,
                                       cuda_copy_attributes *attributes, size_t *firsts,
                                       size_t attribute_count, cuda_stream stream);
#define BATCH(name, dsts, srcs, sizes, attributes, firsts, stream)                                 \
    name(dsts, (const void *const *)srcs, sizes, 2, attributes, firsts, 1, stream)
cudart_error cudaMemcpy3DBatchAsync(size_t count, cuda_batch_3d *blocks, unsigned long long flags,
                                    cuda_stream stream);
cudart_error cudaMemcpy3DBatchAsync_ptsz(size_t count, cuda_batch_3d *blocks,
                                         unsigned long long flags, cuda_stream stream);
#define COPY_BLOCK(block, stream)     cudaMemcpy3DBatchAsync(1, block, 0, stream)
#define COPY_BLOCK_OWN(block, stream) cudaMemcpy3DBatchAsync_ptsz(1, block, 0, stream)
#define PLACE(device)                                                                              \
    ((device) < 0 ? (cuda_mem_location){CUDA_MEM_LOCATION_HOST, 0}                                 \
                  : (cuda_mem_location){CUDA_MEM_LOCATION_DEVICE, (device)})
#define PREFETCH(ptr, size, device)       cudaMemPrefetchAsync(ptr, size, PLACE(device), 0, NULL)
#define ADVISE(ptr, size, advice, device) cudaMemAdvise(ptr, size, advice, PLACE(device))
#define CAPTURE(stream, status)                                                                    \
    cudaStreamGetCaptureInfo(stream, status, NULL, NULL, NULL, NULL, NULL)
enum { POINTER_BYTES = sizeof(struct cudart_pointer_attributes) + 64 };
#endif

static void check_pools(void)
{
    enum { RELEASE_THRESHOLD = 4, RESERVED_CURRENT = 5 }; /* CU_MEMPOOL_ATTR_... */
    const cuda_mem_pool_props props = {.type = 1 /* pinned */,
                                       .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
    cuda_mem_pool first = NULL, current = NULL, own = NULL;
    uint64_t value = 7;
    void *memory = NULL;

    EXPECT(0, cudaDeviceGetDefaultMemPool(&first, 0));
    EXPECT(0, cudaDeviceGetMemPool(&current, 0));
    CHECK(first && first == current);
    EXPECT(0, cudaMemPoolGetAttribute(first, RELEASE_THRESHOLD, &value));
    CHECK(value == 0);
    EXPECT(0, cudaMemPoolCreate(&own, &props));
    value = UINT64_MAX;
    EXPECT(0, cudaMemPoolSetAttribute(own, RELEASE_THRESHOLD, &value));
    EXPECT(0, cudaMallocFromPoolAsync(&memory, BYTES, own, NULL));
    EXPECT(0, cudaFreeAsync(memory, NULL));
    EXPECT(0, cudaDeviceSynchronize());
    EXPECT(0, cudaMemPoolGetAttribute(own, RESERVED_CURRENT, &value));
    CHECK(value >= BYTES); /* kept, as the threshold says */
    EXPECT(0, cudaMemPoolTrimTo(own, 0));
    EXPECT(0, cudaMemPoolGetAttribute(own, RESERVED_CURRENT, &value));
    CHECK(value == 0);
    EXPECT(0, cudaDeviceSetMemPool(0, own));
    EXPECT(0, cudaDeviceGetMemPool(&current, 0));
    CHECK(current == own);
    EXPECT(0, cudaMallocAsync(&memory, BYTES, NULL));
    EXPECT(0, cudaFree(memory));
    EXPECT(0, cudaDeviceSetMemPool(0, first));
    EXPECT(0, cudaMemPoolDestroy(own));
    EXPECT(CUDART_INVALID_VALUE, cudaMallocAsync(NULL, BYTES, NULL));
    (void)cudaGetLastError();
}

static struct cudart_pointer_attributes describe(const void *ptr)
{
    unsigned char room[POINTER_BYTES + 8];
    struct cudart_pointer_attributes found;

    memset(room, RESERVED_FILL, sizeof room);
    EXPECT(0, cudaPointerGetAttributes(room, ptr));
    memcpy(&found, room, sizeof found);
    /* The release's size is written, and no byte behind it. */
    CHECK(room[POINTER_BYTES] == RESERVED_FILL);
    if (POINTER_BYTES > sizeof found)
        CHECK(room[POINTER_BYTES - 1] == 0);
    return found;
}

static void check_pointers(void)
{
    static int ordinary;
    struct cudart_pointer_attributes found;
    void *device = NULL, *other = NULL, *host = NULL, *managed = NULL;
    unsigned flags = 0;
    int attributes[] = {2 /* preferred location */, 4 /* last prefetch */}, place = 77;
    void *place_at = &place;
    size_t place_size = sizeof place;

    EXPECT(0, cudaMalloc(&device, BYTES));
    EXPECT(0, cudaMallocHost(&host, BYTES));
    EXPECT(0, cudaMallocManaged(&managed, BYTES, 1 /* global */));
    found = describe((char *)device + 5);
    CHECK(found.type == CUDART_MEMORY_DEVICE && found.device == 0 && !found.host_ptr);
    CHECK(found.device_ptr == (char *)device + 5);
    found = describe(host);
    CHECK(found.type == CUDART_MEMORY_HOST && found.host_ptr == host && found.device == 0);
    found = describe(managed);
    CHECK(found.type == CUDART_MEMORY_MANAGED && found.device_ptr == managed);
    found = describe(&ordinary);
    CHECK(found.type == CUDART_MEMORY_UNREGISTERED && !found.device_ptr);
    CHECK(found.host_ptr == &ordinary);
    EXPECT(0, cudaHostGetFlags(&flags, host));
    CHECK(flags & CUDA_HOST_ALLOC_DEVICEMAP);

    memset(managed, 3, BYTES);
    EXPECT(0, ADVISE(managed, BYTES, 3 /* preferred location */, 0));
    EXPECT(0, PREFETCH(managed, BYTES, 0));
    EXPECT(0, PREFETCH(managed, BYTES, -1));
    EXPECT(0, cudaDeviceSynchronize());
    CHECK(((char *)managed)[BYTES - 1] == 3);
    EXPECT(0, cudaMemRangeGetAttribute(&place, sizeof place, attributes[0], managed, BYTES));
    CHECK(place == 0);
    EXPECT(0, cudaMemRangeGetAttributes(&place_at, &place_size, &attributes[1], 1, managed, BYTES));
    CHECK(place == -1);
    CHECK(PREFETCH(device, BYTES, 77) != 0);
    (void)cudaGetLastError();

    /* Between one device and itself a copy between peers is a copy. */
    EXPECT(0, cudaMalloc(&other, BYTES));
    EXPECT(0, cudaMemset(device, 5, 32));
    EXPECT(0, cudaMemcpyPeer(other, 0, device, 0, 16));
    EXPECT(0, cudaMemcpyPeerAsync((char *)other + 16, 0, device, 0, 16, NULL));
    memset(host, 0, 32);
    EXPECT(0, cudaMemcpy(host, other, 32, CUDART_DEVICE_TO_HOST));
    CHECK(((char *)host)[15] == 5 && ((char *)host)[31] == 5);
    EXPECT(0, cudaFree(other));
    EXPECT(CUDART_INVALID_DEVICE, cudaMemcpyPeer(device, 0, host, 63, 16));
    EXPECT(0, cudaFree(device));
    EXPECT(0, cudaFree(managed));
    EXPECT(0, cudaFreeHost(host));
    (void)cudaGetLastError();
}

static void check_streams(void)
{
    enum { NON_BLOCKING = 1, SYNCHRONIZATION = 3, SPIN = 2, CAPTURE_NONE = 0, EXTERNAL = 1 };
    cuda_stream stream, other;
    cuda_event event;
    unsigned flags = 7;
    unsigned long long id = 0, other_id = 0;
    char value[64] = {0};
    int number = SPIN, status = 7;

    EXPECT(0, cudaStreamCreateWithFlags(&stream, NON_BLOCKING));
    EXPECT(0, cudaStreamCreate(&other));
    EXPECT(0, cudaStreamGetFlags(stream, &flags));
    CHECK(flags == NON_BLOCKING);
    EXPECT(0, cudaStreamGetId(stream, &id));
    EXPECT(0, cudaStreamGetId(other, &other_id));
    CHECK(id != other_id);
    memcpy(value, &number, sizeof number);
    EXPECT(0, cudaStreamSetAttribute(stream, SYNCHRONIZATION, value));
    EXPECT(0, cudaStreamCopyAttributes(other, stream));
    memset(value, 0, sizeof value);
    EXPECT(0, cudaStreamGetAttribute(other, SYNCHRONIZATION, value));
    memcpy(&number, value, sizeof number);
    CHECK(number == SPIN);
    EXPECT(0, CAPTURE(stream, &status));
    CHECK(status == CAPTURE_NONE);
    EXPECT(CUDART_INVALID_VALUE, CAPTURE(stream, NULL));
    number = 1;
    EXPECT(0, cudaThreadExchangeStreamCaptureMode(&number));

    EXPECT(0, cudaEventCreate(&event));
    EXPECT(0, cudaEventRecordWithFlags(event, stream, 0));
    EXPECT(0, cudaEventSynchronize(event));
    EXPECT(0, cudaEventQuery(event));
    /* Only a captured stream records for others. */
    CHECK(cudaEventRecordWithFlags(event, stream, EXTERNAL) != 0);
    EXPECT(0, cudaEventDestroy(event));
    EXPECT(0, cudaStreamDestroy(stream));
    EXPECT(0, cudaStreamDestroy(other));
    (void)cudaGetLastError();
}

static void check_preferences(const char *kernel)
{
    enum { PREFER_L1 = 2, MAP_HOST = 8 };
    int config = 7, can = 7, ordinal = 7;
    unsigned flags = 0;
    char id[32];
    const char *name = NULL;
    cuda_function function = NULL;
    size_t bytes = 0, offset = 7, size = 0;

    EXPECT(0, cudaDeviceSetCacheConfig(PREFER_L1));
    EXPECT(0, cudaDeviceGetCacheConfig(&config));
    EXPECT(0, cudaFuncSetCacheConfig(kernel, PREFER_L1));
    CHECK(cudaFuncSetCacheConfig(kernel, 17) != 0);
    EXPECT(0, cudaDeviceGetSharedMemConfig(&config));
    EXPECT(0, cudaFuncSetSharedMemConfig(kernel, 0));
    EXPECT(0, cudaFuncGetName(&name, kernel));
    CHECK(strcmp(name, "scaled_add") == 0);
    EXPECT(0, cudaFuncGetParamInfo(kernel, 1, &offset, &size));
    CHECK(offset == 8 && size == 8);
    EXPECT(0, cudaGetFuncBySymbol(&function, kernel));
    CHECK(function);
    EXPECT(0, cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, kernel, 1, 128));
    CHECK(bytes >= 48 << 10);
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, cudaGetFuncBySymbol(&function, id));

    EXPECT(0, cudaGetDeviceFlags(&flags));
    CHECK(flags & MAP_HOST);
    EXPECT(0, cudaInitDevice(0, 0, 0));
    EXPECT(CUDART_INVALID_DEVICE, cudaInitDevice(63, 0, 0));
    EXPECT(0, cudaDeviceGetPCIBusId(id, sizeof id, 0));
    EXPECT(0, cudaDeviceGetByPCIBusId(&ordinal, id));
    CHECK(ordinal == 0);
    EXPECT(0, cudaDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0); /* a device is no peer of its own */
    CHECK(cudaDeviceEnablePeerAccess(0, 0) != 0);
    EXPECT(CUDART_INVALID_DEVICE, cudaDeviceDisablePeerAccess(63));
    (void)cudaGetLastError();
}

static void check_symbols(void)
{
    const float five = 5;
    float factor = 0;

    EXPECT(0, cudaMemcpyToSymbolAsync(&scale, &five, sizeof five, 0, CUDART_HOST_TO_DEVICE, NULL));
    EXPECT(0, cudaMemcpyFromSymbolAsync(&factor, &scale, sizeof factor, 0, CUDART_DEVICE_TO_HOST,
                                        NULL));
    EXPECT(0, cudaDeviceSynchronize());
    CHECK(factor == five);
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION,
           cudaMemcpyToSymbolAsync(&scale, &five, sizeof five, 0, CUDART_DEVICE_TO_HOST, NULL));
    EXPECT(CUDART_INVALID_VALUE,
           cudaMemcpyFromSymbolAsync(&factor, &scale, 8, 0, CUDART_DEVICE_TO_HOST, NULL));
    factor = 1;
    EXPECT(0, cudaMemcpyToSymbol(&scale, &factor, sizeof factor, 0, CUDART_HOST_TO_DEVICE));
    (void)cudaGetLastError();
}

/* PyTorch makes 32 of each priority at its first one. */
static void check_many_streams(void)
{
    enum { STREAMS = 160 };
    static cuda_stream streams[STREAMS];
    static char *words;

    EXPECT(0, cudaMalloc((void **)&words, STREAMS));
    for (int i = 0; i < STREAMS; i++) {
        EXPECT(0, cudaStreamCreateWithFlags(&streams[i], 1 /* non-blocking */));
        EXPECT(0, cudaMemsetAsync(words + i, i, 1, streams[i]));
    }
    for (int i = 0; i < STREAMS; i++) {
        unsigned char word = 0;
        EXPECT(0, cudaStreamSynchronize(streams[i]));
        EXPECT(0, cudaMemcpy(&word, words + i, 1, CUDART_DEVICE_TO_HOST));
        CHECK(word == i);
        EXPECT(0, cudaStreamDestroy(streams[i]));
    }
    EXPECT(0, cudaFree(words));
}

static void check_batches(void)
{
    char text[] = "two halves", found[sizeof text] = "";
    char *memory;
    size_t sizes[] = {4, sizeof text - 4}, firsts[] = {0}, failed = 7;
    cuda_copy_attributes attributes[] = {{.order = CUDA_COPY_ORDER_DURING_CALL}};

    EXPECT(0, cudaMalloc((void **)&memory, sizeof text));
    void *dsts[] = {memory, memory + 4}, *srcs[] = {text, text + 4};
    void *back[] = {found, found + 4};

    EXPECT(CUDART_INVALID_VALUE,
           BATCH(cudaMemcpyBatchAsync, dsts, srcs, sizes, attributes, firsts, NULL));
    CHECK(failed == (RELEASE == 12 ? SIZE_MAX : 7));
    EXPECT(0, BATCH(cudaMemcpyBatchAsync_ptsz, dsts, srcs, sizes, attributes, firsts, NULL));
    EXPECT(0, BATCH(cudaMemcpyBatchAsync, back, dsts, sizes, attributes, firsts,
                    CUDA_STREAM_PER_THREAD));
    CHECK(strcmp(found, text) == 0);

    /* The second and the fourth of four letters, as two rows of one byte. */
    cuda_batch_3d block = {
        .src = {CUDA_COPY_OPERAND_POINTER, (cuda_device_ptr)(uintptr_t)memory + 1, 2, 0, {0}},
        .dst = {CUDA_COPY_OPERAND_POINTER, (cuda_device_ptr)(uintptr_t)found, 0, 0, {0}},
        .width = 1,
        .height = 2,
        .depth = 1,
        .order = CUDA_COPY_ORDER_STREAM};
    EXPECT(CUDART_INVALID_VALUE, COPY_BLOCK(&block, NULL));
    EXPECT(0, COPY_BLOCK(&block, CUDA_STREAM_PER_THREAD));
    EXPECT(0, cudaStreamSynchronize(CUDA_STREAM_PER_THREAD));
    CHECK(found[0] == text[1] && found[1] == text[3] && found[2] == text[2]);
    block.dst.ptr += 2;
    EXPECT(0, COPY_BLOCK_OWN(&block, NULL));
    EXPECT(0, cudaStreamSynchronize(CUDA_STREAM_PER_THREAD));
    CHECK(found[2] == text[1] && found[3] == text[3] && found[4] == text[4]);
    EXPECT(0, cudaFree(memory));
    (void)cudaGetLastError();
}

void check_queries(const char *kernel)
{
    check_batches();
    check_many_streams();
    check_pools();
    check_pointers();
    check_streams();
    check_preferences(kernel);
    check_symbols();
}
