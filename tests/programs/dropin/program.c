/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A program that is linked with libcuda.so.1 and knows nothing of gpushare. It exits with 0 if
 * every call did what CUDA's does; otherwise it names the first that did not.
 *
 *   program calls          goes through the driver API
 *   program share          prints its multiprocessors and the bytes of memory that it may have
 *   program fault          faults, and demands CUDA's sticky error from then on
 *   program steady         counts until its standard input ends, then prints how often it did
 *   program idle           waits for its standard input, and goes on
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cuda/driver/driver_exports.h"

__asm__(".section .rodata\n"
        "dropin_kernels: .incbin \"tests/programs/dropin/kernels.ptx\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char dropin_kernels[];

enum { WORDS = 64, BYTES = WORDS * 4 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        cuda_result result_ = (call);                                                              \
        if (result_ != (expected)) {                                                               \
            const char *name_ = "?";                                                               \
            cuGetErrorName(result_, &name_);                                                       \
            fprintf(stderr, "%s:%d: %s: %s (%d), not %d\n", __FILE__, __LINE__, #call, name_,      \
                    (int)result_, (int)(expected));                                                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT(CUDA_OK, call)

struct work {
    cuda_context context;
    cuda_module module;
    cuda_function count;
    cuda_device_ptr words;
};

static void begin(struct work *work)
{
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&work->context, 0));
    OK(cuCtxSetCurrent(work->context));
    OK(cuModuleLoadData(&work->module, dropin_kernels));
    OK(cuModuleGetFunction(&work->count, work->module, "count"));
    OK(cuMemAlloc_v2(&work->words, BYTES));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
}

static cuda_result count(const struct work *work, uint32_t times, cuda_stream stream)
{
    void *parameters[] = {(void *)&work->words, &times};
    return cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, stream, parameters, NULL);
}

static void demand(const struct work *work, uint32_t word)
{
    uint32_t found[WORDS];
    OK(cuMemcpyDtoH_v2(found, work->words, BYTES));
    for (int i = 0; i < WORDS; i++)
        CHECK(found[i] == word);
}

/* ---- calls ---- */

static void check_before_init(void)
{
    cuda_device device;
    cuda_context context;
    int count;
    EXPECT(CUDA_ERR_NOT_INITIALIZED, cuDeviceGetCount(&count));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, cuDeviceGet(&device, 0));
    EXPECT(CUDA_ERR_NOT_INITIALIZED, cuCtxGetCurrent(&context));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuInit(1));
    OK(cuInit(0));
    OK(cuInit(0));
}

static void check_devices(void)
{
    int count, value;
    cuda_device device;
    char name[64], pci[24];
    OK(cuDeviceGetCount(&count));
    CHECK(count == 1);
    OK(cuDeviceGet(&device, 0));
    EXPECT(CUDA_ERR_INVALID_DEVICE, cuDeviceGet(&device, 1));
    EXPECT(CUDA_ERR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    OK(cuDeviceGetName(name, sizeof name, 0));
    CHECK(*name);
    OK(cuDeviceGetPCIBusId(pci, sizeof pci, 0));
    device = -1;
    OK(cuDeviceGetByPCIBusId(&device, pci));
    CHECK(device == 0);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_WARP_SIZE, 0));
    CHECK(value == 32);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_MANAGED_MEMORY, 0));
    CHECK(value == 0);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuDeviceGetAttribute(&value, (cuda_device_attribute)0, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuDeviceGetAttribute(&value, (cuda_device_attribute)4000, 0));
}

/* No call works without a context, and each thread has its own stack of them. */
static void *check_other_thread(void *primary)
{
    cuda_context current = primary;
    cuda_device_ptr ptr;
    OK(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuMemAlloc_v2(&ptr, 1));
    OK(cuCtxSetCurrent(primary));
    OK(cuMemAlloc_v2(&ptr, 1));
    OK(cuMemFree_v2(ptr));
    return NULL;
}

static void check_contexts(void)
{
    cuda_context primary, again, made, current;
    unsigned flags;
    int active;
    unsigned long long first, second;
    pthread_t thread;
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxSetFlags_v2(0, CUDA_CTX_SCHED_BLOCKING_SYNC));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(flags == CUDA_CTX_SCHED_BLOCKING_SYNC && !active);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    CHECK(primary == again);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    OK(cuCtxSetCurrent(primary));
    OK(cuCtxCreate_v2(&made, 0, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made && made != primary);
    OK(cuCtxGetId(primary, &first));
    OK(cuCtxGetId(NULL, &second));
    CHECK(first != second);
    OK(cuCtxPopCurrent_v2(&current));
    CHECK(current == made);
    OK(cuCtxPushCurrent_v2(made));
    OK(cuCtxDestroy_v2(made));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxDestroy_v2(made));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxSetCurrent(made));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuCtxDestroy_v2(primary));
    CHECK(!pthread_create(&thread, NULL, check_other_thread, primary));
    pthread_join(thread, NULL);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
}

/* A reset gives back all memory, and the context can be used anew. */
static void check_reset(void)
{
    struct work work;
    size_t before, after, total;
    begin(&work);
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuMemHostRegister_v2(&before, sizeof before, 0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuMemGetInfo_v2(&after, &total));
    begin(&work);
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK(before == after);
    OK(cuMemHostRegister_v2(&before, sizeof before, 0));
    OK(cuMemHostUnregister(&before));
    demand(&work, 7);
}

static void check_pointers(const struct work *work)
{
    cuda_device_ptr base;
    size_t size;
    unsigned type = 77;
    int ordinal = 77, ordinary = 0;
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
    OK(cuMemFreeHost(buffer));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFreeHost(buffer));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE,
                                                         (cuda_device_ptr)(uintptr_t)&ordinary));
    OK(cuPointerGetAttributes(2, both, to, (cuda_device_ptr)(uintptr_t)&ordinary));
    CHECK(type == 0 && ordinal == -2);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(work->words + 4));
    OK(cuMemFree_v2(0));
}

static void check_registered(const struct work *work)
{
    static uint32_t memory[WORDS];
    cuda_device_ptr ptr;
    unsigned type;
    void *buffer;
    EXPECT(CUDA_ERR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(memory));
    OK(cuMemHostRegister_v2(memory, BYTES, CUDA_HOST_REGISTER_DEVICEMAP));
    EXPECT(CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(memory + 1, 4, 0));
    OK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (cuda_device_ptr)(uintptr_t)memory));
    CHECK(type == CUDA_MEMORYTYPE_HOST);
    /* The device can't reach it, and nobody is told that it could. */
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemHostGetDevicePointer_v2(&ptr, memory, 0));
    OK(cuMemcpyDtoHAsync_v2(memory, work->words, BYTES, NULL));
    OK(cuStreamSynchronize(NULL));
    CHECK(memory[WORDS - 1] == 7);
    EXPECT(CUDA_ERR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(memory + 1));
    OK(cuMemHostUnregister(memory));
    OK(cuMemAllocHost_v2(&buffer, BYTES));
    EXPECT(CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(buffer, 16, 0));
    OK(cuMemFreeHost(buffer));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemHostRegister_v2(memory, SIZE_MAX, 0));
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuMemHostRegister_v2(memory, 4, CUDA_HOST_REGISTER_IOMEMORY));
}

static void check_copies(const struct work *work)
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
static void check_blocks(void)
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

static void check_streams(const struct work *work)
{
    cuda_stream stream;
    cuda_event start, end, untimed;
    unsigned flags;
    float milliseconds = -1;
    cuda_context context;
    uint32_t found[WORDS];
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    OK(cuStreamGetFlags(stream, &flags));
    CHECK(flags == CUDA_STREAM_NON_BLOCKING);
    OK(cuStreamGetCtx(stream, &context));
    CHECK(context == work->context);
    OK(cuEventCreate(&start, CUDA_EVENT_DEFAULT));
    OK(cuEventCreate(&end, CUDA_EVENT_BLOCKING_SYNC));
    OK(cuEventCreate(&untimed, CUDA_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(start));
    OK(cuCtxSynchronize());
    OK(cuEventRecord(start, stream));
    OK(count(work, 1, stream));
    OK(cuEventRecord(end, stream));
    OK(cuStreamWaitEvent(CUDA_STREAM_PER_THREAD, end, 0));
    OK(count(work, 2, CUDA_STREAM_PER_THREAD));
    OK(cuEventRecord(untimed, CUDA_STREAM_PER_THREAD));
    OK(cuEventSynchronize(untimed));
    OK(cuStreamSynchronize(stream));
    OK(cuStreamQuery(stream));
    OK(cuEventElapsedTime_v2(&milliseconds, start, end));
    CHECK(milliseconds >= 0);
    EXPECT(CUDA_ERR_INVALID_HANDLE, cuEventElapsedTime_v2(&milliseconds, start, untimed));
    OK(cuMemcpyDtoHAsync_v2(found, work->words, BYTES, stream));
    OK(cuStreamSynchronize(stream));
    CHECK(found[0] == 10 && found[WORDS - 1] == 10);
    OK(cuEventDestroy_v2(start));
    OK(cuEventDestroy_v2(end));
    OK(cuEventDestroy_v2(untimed));
    OK(cuStreamDestroy_v2(stream));
    EXPECT(CUDA_ERR_INVALID_HANDLE, cuStreamDestroy_v2(NULL));
    EXPECT(CUDA_ERR_INVALID_HANDLE, cuStreamDestroy_v2(CUDA_STREAM_LEGACY));
    EXPECT(CUDA_ERR_NOT_SUPPORTED,
           cuEventCreate(&start, CUDA_EVENT_INTERPROCESS | CUDA_EVENT_DISABLE_TIMING));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamCreate(&stream, 64));
}

static void await_closed(void *open)
{
    while (atomic_load((atomic_uint *)open))
        usleep(100);
}

/* The thread's own default stream does not wait for a stream apart from it, as the legacy one does
 * for blocking ones: a function that has not returned tells the two from each other. */
static void check_per_thread(const struct work *work)
{
    uint32_t found[WORDS], times = 3;
    void *parameters[] = {(void *)&work->words, &times};
    cuda_stream blocking;
    atomic_uint open = 1;
    OK(cuStreamCreate(&blocking, CUDA_STREAM_DEFAULT));
    OK(cuMemsetD32_v2_ptds(work->words, 7, WORDS));
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
    OK(cuLaunchHostFunc(blocking, await_closed, &open));
    OK(cuLaunchKernel_ptsz(work->count, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2_ptds(found, work->words, BYTES));
    CHECK(found[0] == 10 && found[WORDS - 1] == 10);
    EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(NULL));
    OK(cuStreamQuery_ptsz(NULL));
    atomic_store(&open, 0);
    OK(cuStreamSynchronize(blocking));
    OK(cuStreamDestroy_v2(blocking));
}

/* ---- functions of the program in a stream's order ---- */

enum { CALLS = 40 };

struct note {
    const uint32_t *word; /* a host buffer's, which a copy before the function writes */
    atomic_uint *open;    /* the function returns when it is 0 */
    uint32_t found[CALLS];
    unsigned count;
    cuda_result status, inside;
};

static void take_note(void *user)
{
    struct note *note = user;
    cuda_device_ptr ptr;
    note->inside = cuMemAlloc_v2(&ptr, 1);
    if (cuDevicePrimaryCtxReset_v2(0) != CUDA_ERR_NOT_PERMITTED)
        note->inside = CUDA_ERR_UNKNOWN;
    if (note->count < CALLS)
        note->found[note->count++] = *note->word;
    if (note->open)
        await_closed(note->open);
}

static void take_status(cuda_stream stream, cuda_result status, void *user)
{
    (void)stream;
    take_note(user);
    ((struct note *)user)->status = status;
}

/* Each function sees the work before it and none of the work behind it. */
static void check_order(const struct work *work, cuda_stream stream, const uint32_t *word,
                        bool by_stream)
{
    struct note note = {.word = word, .status = CUDA_ERR_UNKNOWN};
    OK(cuCtxSynchronize());
    OK(cuMemsetD32_v2(work->words, 0, WORDS));
    OK(cuCtxSynchronize());
    for (uint32_t i = 0; i < CALLS; i++) {
        OK(count(work, 1, stream));
        OK(cuMemcpyDtoHAsync_v2((void *)word, work->words, 4, stream));
        if (i % 2)
            OK(cuLaunchHostFunc(stream, take_note, &note));
        else
            OK(cuStreamAddCallback(stream, take_status, &note, 0));
    }
    if (by_stream)
        OK(cuStreamSynchronize(stream));
    else
        OK(cuCtxSynchronize());
    CHECK(note.count == CALLS && note.status == CUDA_OK && note.inside == CUDA_ERR_NOT_PERMITTED);
    for (uint32_t i = 0; i < CALLS; i++)
        CHECK(note.found[i] == i + 1);
}

static void be_slow(void *ran)
{
    usleep(100);
    atomic_fetch_add((atomic_uint *)ran, 1);
}

/* More functions than a stream has room for: their pushes wait, and the functions go on. */
static void check_full(const struct work *work)
{
    enum { FULL = 1500 };
    atomic_uint ran = 0;
    for (int i = 0; i < FULL; i++) {
        OK(count(work, 1, CUDA_STREAM_PER_THREAD));
        OK(cuLaunchHostFunc(CUDA_STREAM_PER_THREAD, be_slow, &ran));
    }
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
    CHECK(atomic_load(&ran) == FULL);
}

static void check_functions(const struct work *work)
{
    cuda_stream apart, ordered;
    cuda_event event;
    uint32_t *word;
    atomic_uint open = 1;
    OK(cuStreamCreate(&apart, CUDA_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&ordered, CUDA_STREAM_DEFAULT));
    OK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
    OK(cuMemAllocHost_v2((void **)&word, 4));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchHostFunc(NULL, NULL, NULL));
    check_order(work, NULL, word, false);
    check_order(work, CUDA_STREAM_PER_THREAD, word, true);
    check_order(work, apart, word, false);
    check_order(work, ordered, word, true);
    /* A stream with a function that has not returned is not ready; another one goes on. */
    struct note held = {.word = word, .open = &open};
    OK(cuLaunchHostFunc(ordered, take_note, &held));
    EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(ordered));
    OK(count(work, 1, apart));
    OK(cuStreamSynchronize(apart));
    EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(ordered));
    /* Work behind the function is taken, and waits. */
    OK(cuMemsetD32_v2(work->words, 70, WORDS));
    for (int i = 0; i < 3; i++)
        OK(count(work, 1, ordered));
    OK(cuEventRecord(event, ordered));
    EXPECT(CUDA_ERR_NOT_READY, cuEventQuery(event));
    CHECK(held.count == 1);
    atomic_store(&open, 0);
    OK(cuEventSynchronize(event));
    demand(work, 73);
    OK(cuStreamQuery(ordered));
    OK(cuStreamDestroy_v2(apart));
    OK(cuStreamDestroy_v2(ordered));
    OK(cuEventDestroy_v2(event));
    OK(cuMemFreeHost(word));
}

static void check_kernels(const struct work *work)
{
    cuda_function function;
    cuda_module module;
    cuda_device_ptr sum;
    size_t size, offset, bytes;
    int value, blocks;
    const char *name;
    uint32_t found;
    struct {
        cuda_device_ptr words;
        uint32_t times;
    } block = {work->words, 5};
    size_t block_bytes = 12, too_few = 8;
    void *extra[] = {CUDA_LAUNCH_PARAM_BUFFER_POINTER, &block, CUDA_LAUNCH_PARAM_BUFFER_SIZE,
                     &block_bytes, CUDA_LAUNCH_PARAM_END};
    char log[200] = "";
    cuda_jit_option options[] = {CUDA_JIT_ERROR_LOG_BUFFER, CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    EXPECT(CUDA_ERR_NOT_FOUND, cuModuleGetFunction(&function, work->module, "nothing"));
    OK(cuModuleGetGlobal_v2(&sum, &size, work->module, "sum"));
    CHECK(size == 4);
    OK(cuMemcpyDtoH_v2(&found, sum, 4));
    CHECK(found == 5 + 3 * WORDS); /* check_streams counted by 1 and by 2 */
    OK(cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, NULL, NULL, extra));
    demand(work, 15);
    extra[3] = &too_few;
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuLaunchKernel(work->count, 1, 1, 1, WORDS, 1, 1, 0, NULL, NULL, extra));
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuLaunchKernel(work->count, 1, 1, 1, 2000, 1, 1, 0, NULL, NULL, NULL));
    OK(cuFuncGetAttribute(&value, CUDA_FUNC_MAX_THREADS_PER_BLOCK, work->count));
    CHECK(value >= 256);
    OK(cuFuncGetParamInfo(work->count, 1, &offset, &bytes));
    CHECK(offset == 8 && bytes == 4);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuFuncGetParamInfo(work->count, 2, &offset, &bytes));
    OK(cuFuncGetName(&name, work->count));
    CHECK(!strcmp(name, "count"));
    OK(cuFuncGetModule(&module, work->count));
    CHECK(module == work->module);
    OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, work->count, 64, 0));
    CHECK(blocks >= 1);
    OK(cuFuncSetAttribute(work->count, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
    EXPECT(
        CUDA_ERR_INVALID_PTX,
        cuModuleLoadDataEx(&module, ".version 7.0\n.target sm_70\nnonsense\n", 2, options, values));
    CHECK(*log && (uintptr_t)values[1] == strlen(log));
    EXPECT(CUDA_ERR_INVALID_IMAGE, cuModuleLoadData(&module, ""));
    EXPECT(CUDA_ERR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nonexistent/image"));
}

/* A library needs no current context, and outlives the primary one. */
static void check_libraries(void)
{
    cuda_library library, of;
    cuda_kernel kernel;
    cuda_function function;
    cuda_module module;
    cuda_context context;
    cuda_device_ptr words, sum;
    size_t size;
    int value;
    const char *name;
    uint32_t times = 4, found[WORDS];
    void *parameters[] = {&words, &times};
    OK(cuCtxSetCurrent(NULL));
    EXPECT(CUDA_ERR_INVALID_IMAGE, cuLibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(CUDA_ERR_INVALID_PTX,
           cuLibraryLoadData(&library, ".version 7.0\n.target sm_70\nnonsense\n", NULL, NULL, 0,
                             NULL, NULL, 0));
    EXPECT(CUDA_ERR_FILE_NOT_FOUND,
           cuLibraryLoadFromFile(&library, "/nonexistent/image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryLoadData(&library, dropin_kernels, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(CUDA_ERR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nothing"));
    OK(cuLibraryGetKernel(&kernel, library, "count"));
    OK(cuKernelGetName(&name, kernel));
    CHECK(!strcmp(name, "count"));
    OK(cuKernelGetLibrary(&of, kernel));
    CHECK(of == library);
    OK(cuKernelGetAttribute(&value, CUDA_FUNC_MAX_THREADS_PER_BLOCK, kernel, 0));
    CHECK(value >= 256);
    OK(cuLibraryGetModule(&module, library));
    OK(cuLibraryGetGlobal(&sum, &size, library, "sum"));
    CHECK(size == 4);
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&words, BYTES));
    OK(cuMemsetD32_v2(words, 1, WORDS));
    OK(cuKernelGetFunction(&function, kernel));
    OK(cuLaunchKernel(function, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuLaunchKernel((cuda_function)kernel, 1, 1, 1, WORDS, 1, 1, 0, NULL, parameters, NULL));
    OK(cuMemcpyDtoH_v2(found, words, BYTES));
    CHECK(found[0] == 9 && found[WORDS - 1] == 9);
    OK(cuMemFree_v2(words));
    OK(cuLibraryUnload(library));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* A hint changes nothing; an attribute that would change what a kernel is gets refused. */
static void check_attributes(const struct work *work)
{
    uint32_t times = 1;
    void *parameters[] = {(void *)&work->words, &times};
    struct cuda_launch_attribute attributes[2] = {
        {.id = CUDA_LAUNCH_PRIORITY, .number = -1},
        {.id = CUDA_LAUNCH_CLUSTER_DIMENSION, .cluster = {1, 1, 1}}};
    struct cuda_launch_config config = {
        .grid = {1, 1, 1}, .block = {WORDS, 1, 1}, .attributes = attributes, .attribute_count = 2};
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchKernelEx(NULL, work->count, parameters, NULL));
    OK(cuMemsetD32_v2(work->words, 0, WORDS));
    OK(cuLaunchKernelEx(&config, work->count, parameters, NULL));
    attributes[1].cluster.x = 2;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuLaunchKernelEx(&config, work->count, parameters, NULL));
    attributes[1] = (struct cuda_launch_attribute){.id = CUDA_LAUNCH_COOPERATIVE, .number = 1};
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuLaunchKernelEx(&config, work->count, parameters, NULL));
    config.attributes = NULL;
    EXPECT(CUDA_ERR_INVALID_VALUE, cuLaunchKernelEx(&config, work->count, parameters, NULL));
    demand(work, 1);
}

/* A probe of a call that is not carried is told so, and one of another version gets that. */
static void check_lookup(void)
{
    static const char *const refused[] = {"cuGraphCreate", "cuMemAllocManaged", "cuIpcGetMemHandle",
                                          "cuTexObjectCreate", "cuGreenCtxCreate"};
    cuda_proc_address_status status;
    void *fn = NULL;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        EXPECT(CUDA_ERR_NOT_FOUND, cuGetProcAddress_v2(refused[i], &fn, 13000, 0, &status));
        CHECK(!fn && status == CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    }
    OK(cuGetProcAddress_v2("cuCtxSynchronize", &fn, 12000, 0, &status));
    CHECK(fn == (void *)cuCtxSynchronize && status == CUDA_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress_v2("cuCtxSynchronize", &fn, 13000, 0, NULL));
    CHECK(fn == (void *)cuCtxSynchronize_v2);
    EXPECT(CUDA_ERR_NOT_FOUND, cuGetProcAddress_v2("cuMemAlloc", &fn, 3000, 0, &status));
    CHECK(status == CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress_v2("cuLaunchKernel", &fn, 13000,
                           CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    CHECK(fn == (void *)cuLaunchKernel_ptsz);
    OK(cuGetProcAddress_v2("cuMemAlloc", &fn, 13000, CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                           &status));
    CHECK(fn == (void *)cuMemAlloc_v2);
}

static void check_fork(void)
{
    pid_t child = fork();
    cuda_device_ptr ptr;
    int status;
    CHECK(child >= 0);
    if (child == 0)
        _exit(cuMemAlloc_v2(&ptr, 1) == CUDA_ERR_NOT_INITIALIZED ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void calls(void)
{
    struct work work;
    check_before_init();
    check_devices();
    check_contexts();
    check_reset();
    OK(cuDevicePrimaryCtxReset_v2(0));
    check_libraries();
    begin(&work);
    check_copies(&work);
    check_pointers(&work);
    check_registered(&work);
    check_blocks();
    check_streams(&work);
    check_kernels(&work);
    check_lookup();
    check_fork();
    demand(&work, 15);
    check_attributes(&work);
    check_functions(&work);
    check_full(&work);
    check_per_thread(&work);
    OK(cuModuleUnload(work.module));
    OK(cuDevicePrimaryCtxRelease_v2(0));
}

/* ---- the others ---- */

static void share(void)
{
    int multiprocessors;
    size_t bytes, free_bytes, total;
    struct work work;
    begin(&work);
    OK(cuDeviceGetAttribute(&multiprocessors, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    OK(cuDeviceTotalMem_v2(&bytes, 0));
    OK(cuMemGetInfo_v2(&free_bytes, &total));
    CHECK(total == bytes && free_bytes < total);
    cuda_device_ptr ptr;
    EXPECT(CUDA_ERR_OUT_OF_MEMORY, cuMemAlloc_v2(&ptr, total + 1));
    printf("%d %zu\n", multiprocessors, bytes);
}

/* Every call on the context returns the same, but for those that end it. */
static void fault(void)
{
    struct work work;
    cuda_function stray;
    cuda_device_ptr ptr;
    cuda_stream stream;
    begin(&work);
    OK(cuModuleGetFunction(&stray, work.module, "stray"));
    OK(cuCtxSynchronize());
    OK(cuLaunchKernel(stray, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuMemAlloc_v2(&ptr, 1));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, count(&work, 1, NULL));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuStreamCreate(&stream, 0));
    EXPECT(CUDA_ERR_ILLEGAL_ADDRESS, cuModuleUnload(work.module));
    OK(cuDevicePrimaryCtxReset_v2(0));
    begin(&work);
    OK(count(&work, 1, NULL));
    demand(&work, 8);
}

/* Ends at the first error, as a CUDA program does. */
static void steady(void)
{
    struct work work;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    uint32_t times = 0;
    begin(&work);
    demand(&work, 7);
    printf("ready\n");
    fflush(stdout);
    do {
        OK(count(&work, 1, NULL));
        demand(&work, 7 + ++times);
    } while (poll(&input, 1, 0) == 0);
    printf("%u\n", times);
}

/* Idle meanwhile, so it loses nothing. */
static void idle(void)
{
    struct work work;
    begin(&work);
    OK(count(&work, 1, NULL));
    demand(&work, 8);
    printf("ready\n");
    fflush(stdout);
    (void)!read(STDIN_FILENO, &(char){0}, 1);
    OK(count(&work, 1, NULL));
    demand(&work, 9);
    printf("right\n");
}

int main(int count_of_words, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"calls", calls}, {"share", share}, {"fault", fault}, {"steady", steady}, {"idle", idle}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (count_of_words == 2 && !strcmp(words[1], modes[i].name)) {
            modes[i].run();
            return 0;
        }
    fprintf(stderr, "usage: program calls|share|fault|steady|idle\n");
    return 2;
}
