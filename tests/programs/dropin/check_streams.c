/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Streams, events, and functions of the program in a stream's order. */
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

void check_streams(const struct work *work)
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
void check_per_thread(const struct work *work)
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

/* ---- functions of the program in a stream's order ---- */

enum { CALLS = 40 };

struct note {
    const uint32_t *word; /* a host buffer's, which a copy before the function writes */
    atomic_uint *open;    /* the function returns when it is 0 */
    uint32_t found[CALLS];
    atomic_uint count;
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
        note->found[note->count] = *note->word;
    note->count++;
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
void check_full(const struct work *work)
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

/* A fill and a copy within the device return while work before them runs, unless the memory says
 * otherwise. */
void check_sync_memory(const struct work *work)
{
    enum { CALLS_BEFORE = 50 };
    const cuda_device_ptr halves[2] = {work->words, work->words + BYTES / 2};
    atomic_uint open = 1, ran = 0;
    char is_set = 77;
    unsigned on = 1;
    OK(cuLaunchHostFunc(NULL, await_closed, &open));
    OK(cuMemsetD32_v2(halves[0], 3, WORDS));
    OK(cuMemsetD2D8_v2(halves[0], BYTES, 3, BYTES, 1));
    atomic_store(&open, 0);
    OK(cuPointerSetAttribute(&on, CUDA_POINTER_SYNC_MEMOPS, halves[1]));
    OK(cuPointerGetAttribute(&is_set, CUDA_POINTER_SYNC_MEMOPS, halves[0]));
    CHECK(is_set == 1);
    for (unsigned round = 1; round <= 3; round++) {
        for (int i = 0; i < CALLS_BEFORE; i++)
            OK(cuLaunchHostFunc(NULL, be_slow, &ran));
        if (round == 1)
            OK(cuMemsetD32_v2(halves[0], 7, WORDS));
        else if (round == 2)
            OK(cuMemsetD2D32_v2(halves[0], BYTES, 7, WORDS, 1));
        else
            OK(cuMemcpyDtoD_v2(halves[0], halves[1], BYTES / 2));
        CHECK(atomic_load(&ran) == round * CALLS_BEFORE);
    }
    on = 0;
    OK(cuPointerSetAttribute(&on, CUDA_POINTER_SYNC_MEMOPS, halves[0]));
    OK(cuPointerGetAttribute(&is_set, CUDA_POINTER_SYNC_MEMOPS, halves[0]));
    CHECK(is_set == 0);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuPointerSetAttribute(&on, CUDA_POINTER_MAPPED, halves[0]));
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuPointerSetAttribute(&on, CUDA_POINTER_SYNC_MEMOPS, (uint64_t)(uintptr_t)&on));
}

void check_functions(const struct work *work)
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
    while (held.count == 0)
        sched_yield();
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

/* Hints are kept, and what a stream can't change is refused. */
void check_stream_attributes(const struct work *work)
{
    cuda_stream stream, other;
    cuda_context context;
    cuda_green_ctx green = (cuda_green_ctx)work;
    cuda_device device = 77;
    unsigned long long id, another;
    int status = 77, mode = 1;
    struct cuda_launch_attribute value = {.number = 4};
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING));
    OK(cuStreamGetId(stream, &id));
    OK(cuStreamGetId(NULL, &another));
    CHECK(id != another);
    OK(cuStreamGetDevice(stream, &device));
    CHECK(device == 0);
    OK(cuStreamGetCtx_v2(stream, &context, &green));
    CHECK(context == work->context && green == NULL);
    OK(cuStreamSetAttribute(stream, CUDA_LAUNCH_SYNCHRONIZATION_POLICY, &value.number));
    value.number = 1;
    OK(cuStreamSetAttribute(stream, CUDA_LAUNCH_MEM_SYNC_DOMAIN, &value.number));
    OK(cuStreamCopyAttributes(other, stream));
    OK(cuStreamGetAttribute(other, CUDA_LAUNCH_SYNCHRONIZATION_POLICY, &value.number));
    CHECK(value.number == 4);
    OK(cuStreamGetAttribute(other, CUDA_LAUNCH_MEM_SYNC_DOMAIN, &value.number));
    CHECK(value.number == 1);
    OK(cuStreamGetAttribute(other, CUDA_LAUNCH_PRIORITY, &value.number));
    OK(cuStreamSetAttribute(other, CUDA_LAUNCH_PRIORITY, &value.number));
    value.number--;
    EXPECT(CUDA_ERR_NOT_SUPPORTED,
           cuStreamSetAttribute(other, CUDA_LAUNCH_PRIORITY, &value.number));
    value.number = 5;
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuStreamSetAttribute(other, CUDA_LAUNCH_SYNCHRONIZATION_POLICY, &value.number));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamGetAttribute(other, CUDA_LAUNCH_IGNORE, &value.number));
    OK(cuStreamIsCapturing(stream, &status));
    CHECK(status == 0);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == 0);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == 1);
    OK(cuStreamDestroy_v2(other));
    OK(cuStreamDestroy_v2(stream));
}

/* A word is written behind the work before it, in memory of either side. */
void check_values(const struct work *work)
{
    uint32_t *word;
    OK(cuMemAllocHost_v2((void **)&word, 8));
    *word = 1;
    OK(cuMemsetD32Async(work->words, 7, WORDS, NULL));
    OK(cuStreamWriteValue32_v2(NULL, (cuda_device_ptr)(uintptr_t)word, 2, 0));
    OK(cuStreamSynchronize(NULL));
    CHECK(*word == 2);
    OK(cuStreamWriteValue32_v2(NULL, work->words, 70, CUDA_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    OK(cuMemcpyDtoH_v2(word, work->words, 8));
    CHECK(word[0] == 70 && word[1] == 7);
    cuda_mem_op_params ops[] = {{.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_32,
                                                 .address = work->words,
                                                 .value = 3}},
                                {.operation = CUDA_MEM_OP_BARRIER},
                                {.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_32,
                                                 .address = work->words + 4,
                                                 .value = 4}}};
    OK(cuStreamBatchMemOp_v2(NULL, 3, ops, 0));
    OK(cuMemcpyDtoH_v2(word, work->words, 8));
    CHECK(word[0] == 3 && word[1] == 4);
    uint64_t *wide = (uint64_t *)(void *)word;
    OK(cuStreamWriteValue64_v2(NULL, work->words, 1ull << 40 | 5, 0));
    OK(cuMemcpyDtoH_v2(wide, work->words, 8));
    CHECK(*wide == (1ull << 40 | 5));
    OK(cuStreamWriteValue64_v2(CUDA_STREAM_PER_THREAD, (cuda_device_ptr)(uintptr_t)wide, 1ull << 50,
                               0));
    OK(cuStreamSynchronize(CUDA_STREAM_PER_THREAD));
    CHECK(*wide == 1ull << 50);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWriteValue64_v2(NULL, work->words + 4, 0, 0));
    cuda_mem_op_params wide_op = {.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_64,
                                                  .address = work->words,
                                                  .value64 = 4ull << 32 | 3}};
    OK(cuStreamBatchMemOp_v2(NULL, 1, &wide_op, 0));
    /* Nothing is done if one of them is not carried. */
    ops[0].write_value.value = 5;
    ops[1].operation = CUDA_MEM_OP_FLUSH_REMOTE_WRITES;
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuStreamBatchMemOp_v2(NULL, 3, ops, 0));
    OK(cuMemcpyDtoH_v2(word, work->words, 8));
    CHECK(word[0] == 3);
    EXPECT(CUDA_ERR_INVALID_VALUE, cuStreamWriteValue32_v2(NULL, work->words + 2, 0, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE,
           cuStreamWriteValue32_v2(NULL, (cuda_device_ptr)(uintptr_t)&word, 0, 0));
    OK(cuMemsetD32_v2(work->words, 7, WORDS));
    OK(cuMemFreeHost(word));
}
