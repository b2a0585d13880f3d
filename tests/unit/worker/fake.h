/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake: a driver for tests that records calls, and a client's end of the rings.
 *
 * Device addresses are host addresses. Work completes inside the call that submits
 * it, but after fake_hold: then it waits in its CUstream until fake_release.
 */
#ifndef GPUSHARE_TESTS_UNIT_WORKER_FAKE_H
#define GPUSHARE_TESTS_UNIT_WORKER_FAKE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/ipc/channel.h"
#include "common/cuda/cuda_driver.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/ring.h"
#include "common/ipc/shm.h"
#include "common/ipc/timeline.h"
#include "server/worker/device/local_kernel.h"

enum { FAKE_LOG = 65536, FAKE_GRANULE = 1 << 21, FAKE_QUEUE = 4096 };

enum fake_kind {
    FAKE_LAUNCH,
    FAKE_COPY,
    FAKE_FILL,
    FAKE_RECORD,
    FAKE_WAIT,
    FAKE_WRITE,
    FAKE_MAP,
    FAKE_UNMAP,
    FAKE_REGISTER,
    FAKE_UNREGISTER,
    FAKE_LOAD,
    FAKE_UNLOAD,
    FAKE_EVENT_DESTROY,
    FAKE_STREAM_CREATE,
    FAKE_STREAM_DESTROY,
    FAKE_GROW,
    FAKE_ATTRIBUTE,
    FAKE_ROOM, /* a launch of the worker's own, which makes room for local memory: a bytes */
};

struct fake_call {
    enum fake_kind kind;
    pid_t thread;
    uint64_t a, b, c;
    uint32_t numbers[7];
    const void *stream, *object;
    uint8_t parameters[64];
};

/* Something that a CUstream holds back. */
struct fake_entry {
    enum { FAKE_ENTRY_WRITE, FAKE_ENTRY_AFTER, FAKE_ENTRY_KERNEL } kind;
    union {
        cuda_mem_op_params op;
        struct {
            const struct cuda_stream_object *stream;
            uint64_t entries; /* that it must have done */
        } after;
        uint8_t parameters[16];
    };
};

struct cuda_stream_object {
    cuda_green_ctx green;
    int priority;
    bool alive;
    uint32_t count;
    uint64_t done; /* entries; queue[done % FAKE_QUEUE] is next */
    struct fake_entry queue[FAKE_QUEUE];
};

struct cuda_event_object {
    uint64_t at;
    bool alive;
    const struct cuda_stream_object *stream; /* where it was recorded, and behind how much */
    uint64_t entries;
};

struct cuda_green_ctx_object {
    unsigned multiprocessors;
    cuda_dev_resource resources[64];
    unsigned count;
};

struct cuda_resource_desc_object {
    cuda_dev_resource resources[64];
    unsigned count;
};

static struct fake {
    pthread_mutex_t lock;
    pthread_cond_t compiles; /* compiling or compiled changed */
    int compiling;           /* texts that say WAIT FOR ME and whose compiler waits */
    bool compiled;           /* none waits any more */
    uint64_t base;           /* the constant of that name in the last module */
    struct fake_call log[FAKE_LOG];
    uint32_t calls;
    bool hold;
    unsigned multiprocessors, sm_group; /* of the device; SM group 0: no green contexts */
    cuda_result split;                  /* result of a split of the device */
    unsigned split_loses;               /* a split makes so many groups fewer than would fit */
    bool refuse_remainder;              /* the remainder may not stand beside groups of the split */
    bool refuse_whole;       /* as a description: a driver may take the groups of a split alone */
    unsigned work_queues;    /* that green contexts may ask for; 0: an older driver */
    bool refuse_work_queues; /* in a description */
    int green_max; /* green contexts that there is room for; 0: any number, negative: none */
    cuda_result next_launch;
    uint32_t local_bytes;  /* that functions need, from when they are looked up */
    cuda_result next_grow; /* of the local memory, until changed */
    cuda_result next_room; /* of the launch that makes it, until changed */
    cuda_result next_unmap;
    /* of one unmap alone */ /* result of the next launches, until changed */
    cuda_result query;       /* of cuStreamQuery */
    cuda_result copy_result;
    bool no_memops; /* streams of green contexts refuse them */
    int live_streams, live_events, live_maps, live_registers, live_modules, live_green;
    struct cuda_stream_object *streams[256];
    int stream_count;
    /* A kernel that was held back runs now. Under the lock. */
    void (*on_kernel)(const struct cuda_stream_object *stream, const uint8_t parameters[16]);
    uint64_t backwards;      /* writes that took a timeline back */
    uint64_t destroyed_busy; /* CUstreams and green contexts destroyed with something in them */
    uint32_t param_count;
    size_t param_offset[8], param_size[8];
    uint64_t clock;
    uint64_t drained_busy;  /* calls that wait for the device, made while something was held back */
    uint64_t unmapped_busy; /* unmaps while something was held back */
} fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .multiprocessors = 132, .sm_group = 8};

static inline struct fake_call *fake_note(enum fake_kind kind)
{
    struct fake_call *call = &fake.log[fake.calls++ % FAKE_LOG];
    memset(call, 0, sizeof *call);
    call->kind = kind;
    call->thread = gettid();
    return call;
}

static inline uint32_t fake_count(enum fake_kind kind)
{
    uint32_t count = 0;
    pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < fake.calls && i < FAKE_LOG; i++)
        count += fake.log[i].kind == kind;
    pthread_mutex_unlock(&fake.lock);
    return count;
}

/* The n-th call of a kind, from 0. */
static inline struct fake_call fake_call(enum fake_kind kind, uint32_t n)
{
    struct fake_call found = {0};
    bool any = false;
    pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < fake.calls && i < FAKE_LOG && !any; i++)
        if (fake.log[i].kind == kind && n-- == 0) {
            found = fake.log[i];
            any = true;
        }
    pthread_mutex_unlock(&fake.lock);
    assert_true(any);
    return found;
}

static inline void fake_write(const cuda_mem_op_params *op)
{
    uint64_t *word = (uint64_t *)(uintptr_t)op->write_value.address;
    if (__atomic_exchange_n(word, op->write_value.value64, __ATOMIC_SEQ_CST) >
        op->write_value.value64)
        fake.backwards++;
}

static inline void fake_hold_back(cuda_stream stream, struct fake_entry entry)
{
    assert_true(stream->count < FAKE_QUEUE);
    stream->queue[(stream->done + stream->count++) % FAKE_QUEUE] = entry;
}

/* The next thing of one CUstream happens, unless it waits for another's. Under the lock. */
static inline bool fake_step(struct cuda_stream_object *stream)
{
    if (!stream->alive || !stream->count)
        return false;
    const struct fake_entry *entry = &stream->queue[stream->done % FAKE_QUEUE];
    if (entry->kind == FAKE_ENTRY_AFTER && entry->after.stream->done < entry->after.entries)
        return false;
    if (entry->kind == FAKE_ENTRY_WRITE)
        fake_write(&entry->op);
    if (entry->kind == FAKE_ENTRY_KERNEL && fake.on_kernel)
        fake.on_kernel(stream, entry->parameters);
    stream->done++;
    stream->count--;
    return true;
}

/* Work waits in its CUstream from now on. */
static inline void fake_hold(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.hold = true;
    pthread_mutex_unlock(&fake.lock);
}

/* Lets everything that was held back happen, in each CUstream's order and that of events. */
static inline void fake_release(void)
{
    pthread_mutex_lock(&fake.lock);
    fake.hold = false;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < fake.stream_count; i++)
            while (fake_step(fake.streams[i]))
                moved = true;
    }
    pthread_mutex_unlock(&fake.lock);
}

static inline bool fake_anything_held(void)
{
    for (int i = 0; i < fake.stream_count; i++)
        if (fake.streams[i]->alive && fake.streams[i]->count)
            return true;
    return false;
}

/* ---- the driver ---- */

static inline cuda_result fake_cuInit(unsigned flags)
{
    (void)flags;
    return CUDA_OK;
}

static inline cuda_result fake_cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGet(cuda_device *device, int ordinal)
{
    *device = ordinal;
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGetName(char *name, int size, cuda_device device)
{
    snprintf(name, (size_t)size, "fake %d", device);
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGetUuid(cuda_uuid *uuid, cuda_device device)
{
    memset(uuid, device + 1, sizeof *uuid);
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceTotalMem(size_t *bytes, cuda_device device)
{
    (void)device;
    *bytes = (size_t)1 << 34;
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGetAttribute(int *value, cuda_device_attribute which,
                                                    cuda_device device)
{
    (void)device;
    *value = which == CUDA_ATTR_MULTIPROCESSOR_COUNT                ? (int)fake.multiprocessors
             : which == CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR          ? 9
             : which == CUDA_ATTR_COMPUTE_CAPABILITY_MINOR          ? 0
             : which == CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK       ? 49152
             : which == CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 65536
             : which == CUDA_ATTR_MAX_THREADS_PER_BLOCK             ? 1024
                                                                    : 1;
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGetPCIBusId(char *id, int size, cuda_device device)
{
    snprintf(id, (size_t)size, "0000:0%d:00.0", device);
    return CUDA_OK;
}

static inline cuda_result fake_cuDeviceGetCount(int *count)
{
    *count = 3;
    return CUDA_OK;
}

static inline cuda_result fake_cuDevicePrimaryCtxSetFlags(cuda_device device, unsigned flags)
{
    (void)device;
    (void)flags;
    return CUDA_OK;
}

static inline cuda_result fake_cuDevicePrimaryCtxRetain(cuda_context *context, cuda_device device)
{
    (void)device;
    *context = (cuda_context)(uintptr_t)1;
    return CUDA_OK;
}

static inline cuda_result fake_cuDevicePrimaryCtxRelease(cuda_device device)
{
    (void)device;
    return CUDA_OK;
}

static inline cuda_result fake_cuCtxSetCurrent(cuda_context context)
{
    (void)context;
    return CUDA_OK;
}

static inline cuda_result fake_cuCtxGetLimit(size_t *value, cuda_limit limit)
{
    (void)limit;
    *value = 1024;
    return CUDA_OK;
}

static inline cuda_result fake_cuCtxSetLimit(cuda_limit limit, size_t value)
{
    (void)limit;
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_GROW)->a = value;
    fake.drained_busy += fake_anything_held();
    cuda_result result = fake.next_grow;
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static inline cuda_result fake_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return CUDA_OK;
}

static inline cuda_result fake_cuGreenCtxStreamCreate(cuda_stream *out, cuda_green_ctx green,
                                                      unsigned flags, int priority)
{
    (void)flags;
    struct cuda_stream_object *made = NULL;
    pthread_mutex_lock(&fake.lock);
    /* The first ones are never used again, so that tests can tell them apart. */
    for (int i = 0; fake.stream_count == 256 && i < 256 && !made; i++)
        if (!fake.streams[i]->alive)
            made = fake.streams[i];
    if (!made) {
        assert_true(fake.stream_count < 256);
        made = fake.streams[fake.stream_count++] = calloc(1, sizeof *made);
    }
    made->green = green;
    made->priority = priority;
    made->alive = true;
    fake.drained_busy += fake_anything_held();
    fake_note(FAKE_STREAM_CREATE)->stream = made;
    fake.live_streams++;
    pthread_mutex_unlock(&fake.lock);
    *out = made;
    return CUDA_OK;
}

/* The worker's own, which no client's work is on. */
static struct cuda_stream_object fake_own_stream;

static inline cuda_result fake_cuStreamCreate(cuda_stream *out, unsigned flags)
{
    assert_int_equal(flags, CUDA_STREAM_NON_BLOCKING);
    *out = &fake_own_stream;
    return CUDA_OK;
}

/* Lets what is held back in all CUstreams but one happen; what is submitted later is held back
 * again. */
static inline void fake_release_all_but(const struct cuda_stream_object *kept)
{
    pthread_mutex_lock(&fake.lock);
    for (int i = 0; i < fake.stream_count; i++)
        while (fake.streams[i] != kept && fake_step(fake.streams[i]))
            ;
    pthread_mutex_unlock(&fake.lock);
}

static inline cuda_result fake_cuStreamCreateWithPriority(cuda_stream *out, unsigned flags,
                                                          int priority)
{
    return fake_cuGreenCtxStreamCreate(out, NULL, flags, priority);
}

/* A wait with nothing behind it holds nobody up: a ring that left a shared CUstream waits in its
 * new one for the other rings' work too, and may have been unbound from there by the time that this
 * ends. */
static inline bool fake_has_work(const struct cuda_stream_object *stream)
{
    for (uint32_t i = 0; i < stream->count; i++)
        if (stream->queue[(stream->done + i) % FAKE_QUEUE].kind != FAKE_ENTRY_AFTER)
            return true;
    return false;
}

static inline cuda_result fake_cuStreamDestroy(cuda_stream stream)
{
    if (stream == &fake_own_stream)
        return CUDA_OK;
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_STREAM_DESTROY)->stream = stream;
    fake.live_streams--;
    /* A wait that is over holds nobody up. */
    while (stream->count && stream->queue[stream->done % FAKE_QUEUE].kind == FAKE_ENTRY_AFTER &&
           fake_step(stream))
        ;
    fake.destroyed_busy += fake_has_work(stream);
    stream->alive = false;
    fake.drained_busy += fake_anything_held();
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuStreamQuery(cuda_stream stream)
{
    (void)stream;
    pthread_mutex_lock(&fake.lock);
    cuda_result result = fake.query;
    pthread_mutex_unlock(&fake.lock);
    return result;
}

static inline cuda_result fake_cuStreamWaitEvent(cuda_stream stream, cuda_event event,
                                                 unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_WAIT);
    call->stream = stream;
    call->object = event;
    if (fake.hold)
        fake_hold_back(stream, (struct fake_entry){.kind = FAKE_ENTRY_AFTER,
                                                   .after = {event->stream, event->entries}});
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuStreamBatchMemOp(cuda_stream stream, unsigned count,
                                                  cuda_mem_op_params *ops, unsigned flags)
{
    (void)flags;
    if (fake.no_memops && stream->green)
        return CUDA_ERR_NOT_SUPPORTED;
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_WRITE)->stream = stream;
    for (unsigned i = 0; i < count; i++)
        if (fake.hold)
            fake_hold_back(stream, (struct fake_entry){.kind = FAKE_ENTRY_WRITE, .op = ops[i]});
        else
            fake_write(&ops[i]);
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuEventCreate(cuda_event *out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof **out);
    pthread_mutex_lock(&fake.lock);
    (*out)->alive = true;
    fake.live_events++;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuEventRecord(cuda_event event, cuda_stream stream)
{
    pthread_mutex_lock(&fake.lock);
    struct fake_call *call = fake_note(FAKE_RECORD);
    call->object = event;
    call->stream = stream;
    event->at = ++fake.clock;
    event->stream = stream;
    event->entries = stream ? stream->done + stream->count : 0;
    pthread_mutex_unlock(&fake.lock);
    return CUDA_OK;
}

static inline cuda_result fake_cuEventQuery(cuda_event event)
{
    if (!fake.no_memops)
        return CUDA_OK; /* a span of the account's, which is asked for once its batch is done */
    pthread_mutex_lock(&fake.lock);
    bool done = !event->stream || event->stream->done >= event->entries;
    pthread_mutex_unlock(&fake.lock);
    return done ? CUDA_OK : CUDA_ERR_NOT_READY;
}

static inline cuda_result fake_cuEventDestroy(cuda_event event)
{
    pthread_mutex_lock(&fake.lock);
    fake_note(FAKE_EVENT_DESTROY)->object = event;
    fake.live_events--;
    pthread_mutex_unlock(&fake.lock);
    free(event);
    return CUDA_OK;
}

static inline cuda_result fake_cuEventElapsedTime(float *ms, cuda_event start, cuda_event end)
{
    *ms = (float)((double)end->at - (double)start->at);
    return CUDA_OK;
}

#include "tests/unit/worker/fake_memory.h"
#include "tests/unit/worker/fake_module.h"

static inline struct cuda_driver fake_driver(void)
{
    struct cuda_driver driver = {
#define E(name) .name = fake_##name
        E(cuInit),
        E(cuDriverGetVersion),
        E(cuDeviceGet),
        E(cuDeviceGetName),
        E(cuDeviceGetUuid),
        E(cuDeviceTotalMem),
        E(cuDeviceGetAttribute),
        E(cuDeviceGetPCIBusId),
        E(cuDeviceGetCount),
        E(cuDevicePrimaryCtxSetFlags),
        E(cuDevicePrimaryCtxRetain),
        E(cuDevicePrimaryCtxRelease),
        E(cuCtxSetCurrent),
        E(cuCtxGetLimit),
        E(cuCtxSetLimit),
        E(cuCtxGetStreamPriorityRange),
        E(cuMemGetAllocationGranularity),
        E(cuMemAddressReserve),
        E(cuMemAddressFree),
        E(cuMemCreate),
        E(cuMemRelease),
        E(cuMemMap),
        E(cuMemUnmap),
        E(cuMemSetAccess),
        E(cuMemExportToShareableHandle),
        E(cuMemHostRegister),
        E(cuMemHostUnregister),
        E(cuMemHostGetDevicePointer),
        E(cuMemcpyHtoD),
        E(cuMemcpyHtoDAsync),
        E(cuMemAllocHost),
        E(cuMemFreeHost),
        E(cuStreamSynchronize),
        E(cuMemcpyDtoH),
        E(cuMemcpyAsync),
        E(cuMemsetD8Async),
        E(cuMemsetD16Async),
        E(cuMemsetD32Async),
        E(cuStreamCreate),
        E(cuStreamCreateWithPriority),
        E(cuStreamDestroy),
        E(cuStreamQuery),
        E(cuStreamWaitEvent),
        E(cuStreamBatchMemOp),
        E(cuEventCreate),
        E(cuEventRecord),
        E(cuEventQuery),
        E(cuEventDestroy),
        E(cuEventElapsedTime),
        E(cuLinkCreate),
        E(cuLinkAddData),
        E(cuLinkComplete),
        E(cuLinkDestroy),
        E(cuModuleLoadDataEx),
        E(cuModuleUnload),
        E(cuModuleGetFunction),
        E(cuModuleGetGlobal),
        E(cuFuncGetAttribute),
        E(cuFuncSetAttribute),
        E(cuFuncGetParamInfo),
        E(cuLaunchKernel),
#undef E
    };
    driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = fake_cuOccupancy;
    if (fake.sm_group) {
        driver.cuDeviceGetDevResource = fake_cuDeviceGetDevResource;
        driver.cuDevSmResourceSplitByCount = fake_cuDevSmResourceSplitByCount;
        driver.cuDevResourceGenerateDesc = fake_cuDevResourceGenerateDesc;
        driver.cuGreenCtxCreate = fake_cuGreenCtxCreate;
        driver.cuGreenCtxDestroy = fake_cuGreenCtxDestroy;
        driver.cuGreenCtxStreamCreate = fake_cuGreenCtxStreamCreate;
        driver.cuGreenCtxGetDevResource = fake_cuGreenCtxGetDevResource;
    }
    return driver;
}

/* Forgets everything between two tests. */
static inline void fake_reset(void)
{
    for (int i = 0; i < fake.stream_count; i++)
        free(fake.streams[i]);
    memset(&fake, 0, sizeof fake);
    pthread_mutex_init(&fake.lock, NULL);
    pthread_cond_init(&fake.compiles, NULL);
    fake.multiprocessors = 132;
    fake.sm_group = 8;
    fake.param_count = 2;
    fake.param_size[0] = fake.param_size[1] = 8;
    fake.param_offset[1] = 8;
}

#endif
