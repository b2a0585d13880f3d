/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Streams that wait for a value in memory.
 *
 * While a stream waits, no call is made that may wait for the device: the software GPU alone would
 * wait for the stream too, as a device does.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

enum { FREED_BYTES = 3 << 20 };

static cuda_device_ptr address_of(const void *at)
{
    return (cuda_device_ptr)(uintptr_t)at;
}

static void store(uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

static uint64_t load(const uint64_t *at)
{
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

static cuda_stream make(void)
{
    cuda_stream stream;
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    return stream;
}

/* Work of another stream, from its beginning to its end. */
static void pass_time(const struct work *work, cuda_stream stream)
{
    for (int i = 0; i < 20; i++)
        OK(count(work, 0, stream));
    OK(cuStreamSynchronize(stream));
}

/* ---- conditions ---- */

static const struct condition {
    unsigned condition, width;
    uint64_t value, before, after; /* in memory: with `before` the stream does not go on */
} conditions[] = {
    {CUDA_STREAM_WAIT_VALUE_GEQ, 4, 7, 6, 8},
    {CUDA_STREAM_WAIT_VALUE_GEQ, 4, 2, 0xfffffffe, 3}, /* cyclic */
    {CUDA_STREAM_WAIT_VALUE_GEQ, 8, 1ull << 40, (1ull << 40) - 1, 1ull << 40},
    {CUDA_STREAM_WAIT_VALUE_EQ, 4, 7, 8, 9ull << 32 | 7},
    {CUDA_STREAM_WAIT_VALUE_EQ, 8, 7ull << 33, 7ull << 32, 7ull << 33},
    {CUDA_STREAM_WAIT_VALUE_AND, 4, 6, 9, 2},
    {CUDA_STREAM_WAIT_VALUE_NOR, 4, 0xf0f0f0f0, 0x0f0f0f0f, 0x0f0f0f0e},
    {CUDA_STREAM_WAIT_VALUE_NOR, 8, 1, ~1ull, ~3ull},
};

static cuda_result wait_for(cuda_stream stream, cuda_device_ptr at, const struct condition *c)
{
    return c->width == 4 ? cuStreamWaitValue32_v2(stream, at, (uint32_t)c->value, c->condition)
                         : cuStreamWaitValue64_v2(stream, at, c->value, c->condition);
}

/* The host writes what a stream waits for. */
static void check_host_writes(const struct work *work, uint64_t *word)
{
    cuda_stream waiting = make(), other = make();
    cuda_event event;
    OK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        store(&word[1], 0);
        store(word, conditions[i].before);
        OK(wait_for(waiting, address_of(word), &conditions[i]));
        OK(cuStreamWriteValue64_v2(waiting, address_of(&word[1]), i + 1, 0));
        OK(cuEventRecord(event, waiting));
        pass_time(work, other);
        EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(waiting));
        EXPECT(CUDA_ERR_NOT_READY, cuEventQuery(event));
        CHECK(load(&word[1]) == 0);
        store(word, conditions[i].after);
        OK(cuEventSynchronize(event));
        CHECK(load(&word[1]) == i + 1);
        /* It is so already. */
        OK(wait_for(waiting, address_of(word), &conditions[i]));
        OK(cuStreamSynchronize(waiting));
    }
    OK(cuEventDestroy_v2(event));
    OK(cuStreamDestroy_v2(waiting));
    OK(cuStreamDestroy_v2(other));
}

/* The device writes what a stream waits for, by a command of another stream. */
static void check_device_writes(const struct work *work, uint64_t *word)
{
    cuda_stream waiting = make(), other = make();
    OK(cuStreamSynchronize(NULL));
    for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
        const struct condition *c = &conditions[i];
        store(word, 0);
        OK(cuStreamWriteValue64_v2(other, work->words, c->before, 0));
        OK(cuStreamSynchronize(other));
        OK(wait_for(waiting, work->words, c));
        OK(cuStreamWriteValue64_v2(waiting, address_of(word), 1, 0));
        pass_time(work, other);
        EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(waiting));
        CHECK(load(word) == 0);
        OK(cuStreamWriteValue64_v2(other, work->words, c->after, 0));
        OK(cuStreamSynchronize(waiting));
        CHECK(load(word) == 1);
    }
    /* A kernel adds one; the value before the stream's own work does not count. */
    OK(cuMemsetD32Async(work->words, 5, WORDS, waiting));
    OK(cuMemsetD32Async(work->words, 0, WORDS, waiting));
    OK(cuStreamWaitValue32_v2(waiting, work->words + 4, 5, CUDA_STREAM_WAIT_VALUE_GEQ));
    OK(cuStreamWriteValue64_v2(waiting, address_of(word), 2, 0));
    pass_time(work, other);
    CHECK(load(word) == 1);
    while (cuStreamQuery(waiting) == CUDA_ERR_NOT_READY && load(word) == 1) {
        OK(count(work, 1, other));
        OK(cuStreamSynchronize(other));
    }
    OK(cuStreamSynchronize(waiting));
    CHECK(load(word) == 2);
    OK(cuStreamDestroy_v2(waiting));
    OK(cuStreamDestroy_v2(other));
}

/* Two streams take turns; each notes the turn that it had. */
static void check_turns(cuda_device_ptr turn, cuda_device_ptr notes)
{
    enum { TURNS = 24 };
    uint32_t found[2 * TURNS];
    cuda_stream streams[2] = {make(), make()};
    OK(cuMemsetD32_v2(turn, 0, 1));
    OK(cuCtxSynchronize());
    for (uint32_t i = 0; i < 2 * TURNS; i++) {
        cuda_mem_op_params ops[] = {{.write_value = {.operation = CUDA_MEM_OP_WAIT_VALUE_32,
                                                     .address = turn,
                                                     .value = i,
                                                     .flags = CUDA_STREAM_WAIT_VALUE_EQ}},
                                    {.operation = CUDA_MEM_OP_BARRIER},
                                    {.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_32,
                                                     .address = notes + 4ull * i,
                                                     .value = i + 1}},
                                    {.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_32,
                                                     .address = turn,
                                                     .value = i + 1}}};
        OK(cuStreamBatchMemOp_v2(streams[i % 2], 4, ops, 0));
    }
    OK(cuStreamSynchronize(streams[0]));
    OK(cuStreamSynchronize(streams[1]));
    OK(cuMemcpyDtoH_v2(found, notes, sizeof found));
    for (uint32_t i = 0; i < 2 * TURNS; i++)
        CHECK(found[i] == i + 1);
    OK(cuStreamDestroy_v2(streams[0]));
    OK(cuStreamDestroy_v2(streams[1]));
}

static void check_arguments(const struct work *work, uint64_t *word)
{
    const unsigned flush = (unsigned)CUDA_STREAM_WAIT_VALUE_FLUSH;
    uint64_t own = 1;
    int can;
    cuda_device_ptr at = work->words;
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue32_v2(NULL, at + 2, 1, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue64_v2(NULL, at + 4, 1, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue32_v2(NULL, at, 1, 4));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue32_v2(NULL, 0, 1, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue32_v2(NULL, 0x1000, 1, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue64_v2_ptsz(NULL, address_of(&own), 1, 0));
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuStreamWaitValue32_v2(NULL, at, 1, flush));
    /* Nothing is done if one of them is refused. */
    cuda_mem_op_params ops[] = {{.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_64,
                                                 .address = address_of(word),
                                                 .value64 = 9}},
                                {.write_value = {.operation = CUDA_MEM_OP_WAIT_VALUE_64,
                                                 .address = address_of(word),
                                                 .value64 = 9,
                                                 .flags = flush}}};
    store(word, 1);
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuStreamBatchMemOp_v2(NULL, 2, ops, 0));
    ops[1].write_value.operation = CUDA_MEM_OP_FLUSH_REMOTE_WRITES;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuStreamBatchMemOp_v2(NULL, 2, ops, 0));
    OK(cuStreamSynchronize(NULL));
    CHECK(load(word) == 1);
    ops[1].write_value.operation = CUDA_MEM_OP_WAIT_VALUE_64;
    ops[1].write_value.flags = CUDA_STREAM_WAIT_VALUE_EQ;
    OK(cuStreamBatchMemOp_v2_ptsz(NULL, 2, ops, 0));
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
    OK(cuDeviceGetAttribute(&can, CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    CHECK(can == 1);
    OK(cuDeviceGetAttribute(&can, CUDA_ATTR_CAN_USE_STREAM_WAIT_VALUE_NOR, 0));
    CHECK(can == 1);
    OK(cuDeviceGetAttribute(&can, CUDA_ATTR_CAN_FLUSH_REMOTE_WRITES, 0));
    CHECK(can == 0);
}

/* ---- a stream that is full ---- */

struct filler {
    const struct work *work;
    cuda_stream stream;
    uint64_t *word;
};

static void *fill_stream(void *user)
{
    const struct filler *filler = user;
    OK(cuCtxSetCurrent(filler->work->context));
    OK(cuStreamWaitValue64_v2(filler->stream, address_of(filler->word), 1, 0));
    store(&filler->word[1], 1);
    for (int i = 0; i < 3000; i++)
        OK(count(filler->work, 1, filler->stream));
    return NULL;
}

/* More work behind a wait than a stream has room for: its pusher waits, and nobody else does. That
 * is the server's promise: on a device of its own the pusher may have the context's lock. */
static void check_full_stream(const struct work *work, uint64_t *word)
{
    struct filler filler = {work, make(), word};
    cuda_stream other = make();
    pthread_t thread;
    uint32_t found;
    store(word, 0);
    store(&word[1], 0);
    OK(cuMemsetD32_v2(work->words, 0, WORDS));
    OK(cuCtxSynchronize());
    CHECK(!pthread_create(&thread, NULL, fill_stream, &filler));
    while (!load(&word[1]))
        sched_yield();
    store(&word[2], 0);
    OK(cuStreamWaitValue64_v2(other, address_of(&word[2]), 1, 0));
    OK(cuStreamWriteValue64_v2(other, address_of(word), 1, 0));
    store(&word[2], 1);
    OK(cuStreamSynchronize(other));
    pthread_join(thread, NULL);
    OK(cuStreamSynchronize(filler.stream));
    OK(cuMemcpyDtoH_v2(&found, work->words, sizeof found));
    CHECK(found == 3000);
    OK(cuStreamDestroy_v2(filler.stream));
    OK(cuStreamDestroy_v2(other));
}

/* ---- memory that is freed while a stream waits for it ---- */

static size_t free_bytes(void)
{
    size_t bytes, total;
    OK(cuMemGetInfo_v2(&bytes, &total));
    return bytes;
}

/* A value is written there by work that was pushed before the memory was freed. */
static void check_held_device(uint64_t *word)
{
    cuda_stream waiting = make(), writer = make();
    cuda_device_ptr ptr, next;
    OK(cuCtxSynchronize());
    size_t before = free_bytes();
    OK(cuMemAlloc_v2(&ptr, FREED_BYTES));
    OK(cuMemsetD32_v2(ptr, 0, FREED_BYTES / 4));
    OK(cuCtxSynchronize());
    store(word, 0);
    store(&word[1], 0);
    OK(cuStreamWaitValue64_v2(writer, address_of(word), 1, 0));
    OK(cuStreamWriteValue32_v2(writer, ptr + 64, 3, 0));
    OK(cuStreamWaitValue32_v2(waiting, ptr + 64, 3, CUDA_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64_v2(waiting, address_of(&word[1]), 1, 0));
    OK(cuMemFree_v2(ptr));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(ptr));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWaitValue32_v2(waiting, ptr + 64, 3, 0));
    /* Nobody else has it, and what the next owner writes is no value of it. */
    OK(cuMemAlloc_v2(&next, FREED_BYTES));
    CHECK(next != ptr);
    OK(cuMemsetD32_v2(next, 3, FREED_BYTES / 4));
    EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(waiting));
    CHECK(load(&word[1]) == 0);
    OK(cuMemFree_v2(next));
    store(word, 1);
    OK(cuStreamSynchronize(waiting));
    CHECK(load(&word[1]) == 1);
    while (free_bytes() < before) /* soon after the stream has gone on */
        sched_yield();
    OK(cuStreamDestroy_v2(waiting));
    OK(cuStreamDestroy_v2(writer));
}

static void check_held_buffer(uint64_t *word, bool managed)
{
    cuda_stream waiting = make();
    void *buffer, *next;
    cuda_device_ptr ptr;
    if (managed) {
        OK(cuMemAllocManaged(&ptr, 4096, 1));
        buffer = (void *)(uintptr_t)ptr;
    } else {
        OK(cuMemAllocHost_v2(&buffer, 4096));
    }
    uint64_t *inside = (uint64_t *)buffer + 8;
    store(inside, 0);
    store(word, 0);
    OK(cuStreamWaitValue64_v2(waiting, address_of(inside), 5, CUDA_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue64_v2(waiting, address_of(word), 1, 0));
    OK(managed ? cuMemFree_v2(address_of(buffer)) : cuMemFreeHost(buffer));
    OK(cuMemAllocHost_v2(&next, 4096));
    CHECK(next != buffer);
    store((uint64_t *)next + 8, 5);
    EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(waiting));
    CHECK(load(word) == 0);
    OK(cuMemFreeHost(next));
    store(inside, 5); /* mapped as long as the stream waits */
    OK(cuStreamSynchronize(waiting));
    CHECK(load(word) == 1);
    OK(cuStreamDestroy_v2(waiting));
}

/* ---- all of it ---- */

void check_waits(const struct work *work)
{
    uint64_t *word, *managed;
    cuda_device_ptr notes, ptr;
    OK(cuMemAllocHost_v2((void **)&word, 4096));
    OK(cuMemAllocManaged(&ptr, 4096, 1));
    OK(cuMemAlloc_v2(&notes, 4096));
    managed = (uint64_t *)(uintptr_t)ptr;
    check_arguments(work, word);
    /* A first launch may wait for the device. */
    pass_time(work, NULL);
    check_host_writes(work, word);
    check_host_writes(work, managed);
    check_device_writes(work, word);
    check_turns(work->words, notes);
    check_turns(address_of(word), notes);
    if (is_served()) {
        check_full_stream(work, word);
        check_held_device(word);
        check_held_buffer(word, false);
        check_held_buffer(word, true);
    }
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuMemFree_v2(notes));
    OK(cuMemFree_v2(ptr));
    OK(cuMemFreeHost(word));
}

static atomic_uint called;
static _Atomic cuda_result told;

static void note_call(void *unused)
{
    (void)unused;
    atomic_fetch_add(&called, 1);
}

static void note_status(cuda_stream stream, cuda_result status, void *unused)
{
    (void)stream;
    (void)unused;
    atomic_store(&told, status);
}

/* The end of a context whose stream waits for what nobody will write: nothing behind the wait is
 * done, and the next context works. */
void check_waits_reset(void)
{
    struct work work;
    cuda_stream stream;
    uint64_t *word;
    begin(&work);
    OK(cuMemAllocHost_v2((void **)&word, 8));
    store(word, 0);
    stream = make();
    OK(cuStreamWaitValue64_v2(stream, address_of(word), 1, 0));
    OK(cuLaunchHostFunc(stream, note_call, NULL));
    OK(cuStreamAddCallback(stream, note_status, NULL, 0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    CHECK(atomic_load(&called) == 0 && atomic_load(&told) == CUDA_ERR_LAUNCH_FAILED);
    begin(&work);
    OK(count(&work, 1, NULL));
    demand(&work, 8);
}

/* As many streams as a device has hardware queues, and more, wait until standard input ends. */
static void wait_until_told(bool on_device)
{
    enum { STREAMS = 40 };
    struct work work;
    cuda_stream streams[STREAMS], writer;
    uint64_t *words;
    begin(&work);
    writer = make();
    OK(cuMemAllocHost_v2((void **)&words, 4096));
    memset(words, 0, 4096);
    OK(cuMemsetD32_v2(work.words, 0, WORDS));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < STREAMS; i++) {
        cuda_device_ptr at = on_device ? work.words : address_of(words);
        streams[i] = make();
        OK(cuStreamWaitValue32_v2(streams[i], at, 1, CUDA_STREAM_WAIT_VALUE_EQ));
        OK(cuStreamWriteValue64_v2(streams[i], address_of(&words[i + 1]), i + 1, 0));
    }
    OK(count(&work, 0, writer));
    OK(cuStreamSynchronize(writer));
    printf("ready\n");
    fflush(stdout);
    (void)!read(STDIN_FILENO, &(char){0}, 1);
    for (unsigned i = 0; i < STREAMS; i++) {
        EXPECT(CUDA_ERR_NOT_READY, cuStreamQuery(streams[i]));
        CHECK(load(&words[i + 1]) == 0);
    }
    OK(cuStreamWriteValue32_v2(writer, on_device ? work.words : address_of(words), 1, 0));
    OK(cuCtxSynchronize());
    for (unsigned i = 0; i < STREAMS; i++)
        CHECK(load(&words[i + 1]) == i + 1);
    printf("right\n");
}

void wait_on_host(void)
{
    wait_until_told(false);
}

void wait_on_device(void)
{
    wait_until_told(true);
}
