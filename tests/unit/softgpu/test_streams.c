/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Order: within a stream, between streams, and what the default stream adds; with
 * the software GPU as nasty as it is by default.
 */
#include "tests/unit/softgpu/kernels.h"

#include <pthread.h>

static cuda_device_ptr words; /* 64 KiB of device memory */
static uint64_t *page;        /* host memory that the device may write */

enum { WORDS = 16384 };

static int setup(void **state)
{
    (void)state;
    setenv("SOFTGPU_DEVICES", "2", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "4", 1);
    if (kernels_open() != 0 || cuMemAlloc_v2(&words, WORDS * 4) != CUDA_OK)
        return -1;
    return cuMemAllocHost_v2((void **)&page, 4096) == CUDA_OK ? 0 : -1;
}

static cuda_stream new_stream(unsigned flags)
{
    cuda_stream stream;

    OK(cuStreamCreate(&stream, flags));
    return stream;
}

static void destroy(cuda_stream *streams, size_t count)
{
    for (size_t i = 0; i < count; i++)
        OK(cuStreamDestroy_v2(streams[i]));
}

/* The word as a copy on that stream finds it. */
static uint32_t read_word(unsigned index, cuda_stream stream)
{
    uint32_t value = 0;

    OK(cuMemcpyDtoHAsync_v2(&value, words + 4 * index, 4, stream));
    OK(cuStreamSynchronize(stream));
    return value;
}

static void a_stream_keeps_its_order(void **state)
{
    cuda_stream stream = new_stream(CUDA_STREAM_NON_BLOCKING);

    (void)state;
    for (uint32_t i = 1; i <= 300; i++) {
        if (i % 3 == 0)
            OK(cuMemsetD32Async(words, i, 64, stream));
        else
            OK(launch_store(words, i, 2, 32, stream));
        if (i % 50 == 0)
            assert_int_equal(read_word(63, stream), i);
    }
    assert_int_equal(read_word(0, stream), 300);
    destroy(&stream, 1);
}

static void a_program_of_many_kernels_computes_correctly(void **state)
{
    enum { COUNT = 5000 };
    float a[COUNT], b[COUNT], c[COUNT];
    cuda_device_ptr da = words, db = words + 4 * COUNT, dc = words + 8 * COUNT;
    unsigned count = COUNT;
    void *params[] = {&da, &db, &dc, &count};
    struct {
        cuda_device_ptr a, b, c;
        unsigned count;
    } packed = {da, db, dc, COUNT};
    size_t size = sizeof(packed);
    void *extra[] = {CUDA_LAUNCH_PARAM_BUFFER_POINTER, &packed, CUDA_LAUNCH_PARAM_BUFFER_SIZE,
                     &size, CUDA_LAUNCH_PARAM_END};

    (void)state;
    assert_true(3 * COUNT <= WORDS);
    for (int i = 0; i < COUNT; i++) {
        a[i] = (float)i;
        b[i] = 0.25f * (float)i;
    }
    OK(cuMemcpyHtoD_v2(da, a, sizeof(a)));
    OK(cuMemcpyHtoD_v2(db, b, sizeof(b)));
    for (int round = 0; round < 2; round++) {
        OK(cuMemsetD8_v2(dc, 0, sizeof(c)));
        OK(cuLaunchKernel(kernels.add, (COUNT + 127) / 128, 1, 1, 128, 1, 1, 0, NULL,
                          round ? NULL : params, round ? extra : NULL));
        OK(cuMemcpyDtoH_v2(c, dc, sizeof(c)));
        for (int i = 0; i < COUNT; i++)
            assert_true(c[i] == a[i] + b[i]);
    }
    size = 20;
    assert_int_equal(cuLaunchKernel(kernels.add, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra),
                     CUDA_ERR_INVALID_VALUE);
    size = sizeof(packed);
    assert_int_equal(cuLaunchKernel(kernels.add, 1, 1, 1, 32, 1, 1, 0, NULL, params, extra),
                     CUDA_ERR_INVALID_VALUE);
}

static void write_values_come_after_earlier_work(void **state)
{
    cuda_stream stream = new_stream(CUDA_STREAM_NON_BLOCKING);
    volatile uint32_t *half = (volatile uint32_t *)(page + 8);

    (void)state;
    memset(page, 0, 4096);
    for (uint64_t i = 1; i <= 100; i++) {
        cuda_mem_op_params ops[2] = {
            {.write_value =
                 {CUDA_MEM_OP_WRITE_VALUE_64, (uintptr_t)&page[0], {.value64 = i << 33}, 0, 0}},
            {.write_value =
                 {CUDA_MEM_OP_WRITE_VALUE_32, (uintptr_t)half, {.value = (uint32_t)i}, 0, 0}},
        };

        OK(launch_store((uintptr_t)&page[16], (uint32_t)i, 1, 8, stream));
        if (i % 2)
            OK(cuStreamBatchMemOp_v2(stream, 2, ops, 0));
        else {
            OK(cuStreamWriteValue64_v2(stream, (uintptr_t)&page[0], i << 33, 0));
            OK(cuStreamWriteValue32_v2(stream, (uintptr_t)half, (uint32_t)i, 0));
        }
    }
    /* Whoever sees the word sees what the kernel before it wrote. */
    for (uint64_t seen = 0; seen < 100;) {
        uint64_t now = __atomic_load_n(&page[0], __ATOMIC_ACQUIRE) >> 33;
        uint32_t stored = __atomic_load_n((uint32_t *)&page[16], __ATOMIC_RELAXED);

        assert_true(now >= seen);
        assert_true(stored >= now);
        seen = now;
    }
    OK(cuStreamSynchronize(stream));
    assert_int_equal(*half, 100);
    destroy(&stream, 1);
}

static void store_host(unsigned index, uint64_t value)
{
    __atomic_store_n(&page[index], value, __ATOMIC_RELEASE);
}

/* Each row: what lets a stream go on, and what was in memory before, which does not. */
static void a_stream_waits_for_a_value_that_the_host_writes(void **state)
{
    static const struct {
        unsigned condition, width;
        uint64_t value, before, after;
    } rows[] = {
        {CUDA_STREAM_WAIT_VALUE_GEQ, 4, 7, 6, 8},
        {CUDA_STREAM_WAIT_VALUE_GEQ, 4, 2, 0xfffffffe, 3}, /* cyclic */
        {CUDA_STREAM_WAIT_VALUE_GEQ, 4, 7, UINT64_C(9) << 32 | 6, 7},
        {CUDA_STREAM_WAIT_VALUE_GEQ, 8, UINT64_C(1) << 40, (UINT64_C(1) << 40) - 1,
         UINT64_C(1) << 40},
        {CUDA_STREAM_WAIT_VALUE_EQ, 4, 7, 8, UINT64_C(9) << 32 | 7},
        {CUDA_STREAM_WAIT_VALUE_EQ, 8, UINT64_C(7) << 33, UINT64_C(7) << 32, UINT64_C(7) << 33},
        {CUDA_STREAM_WAIT_VALUE_AND, 4, 6, 9, 2},
        {CUDA_STREAM_WAIT_VALUE_AND, 8, UINT64_C(1) << 63, ~UINT64_C(0) >> 1, UINT64_C(3) << 62},
        {CUDA_STREAM_WAIT_VALUE_NOR, 4, 0xf0f0f0f0, 0x0f0f0f0f, 0x0f0f0f0e},
        {CUDA_STREAM_WAIT_VALUE_NOR, 8, 1, ~UINT64_C(1), ~UINT64_C(3)},
    };
    /* Of two hardware queues: a wait holds up all behind it in its own. */
    cuda_stream streams[2] = {new_stream(CUDA_STREAM_NON_BLOCKING),
                              new_stream(CUDA_STREAM_NON_BLOCKING)};
    cuda_stream stream = streams[0];
    volatile uint64_t *ran = &page[8];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memset(page, 0, 4096);
        store_host(0, rows[i].before);
        if (rows[i].width == 4)
            OK(cuStreamWaitValue32_v2(stream, (uintptr_t)page, (uint32_t)rows[i].value,
                                      rows[i].condition));
        else
            OK(cuStreamWaitValue64_v2_ptsz(stream, (uintptr_t)page, rows[i].value,
                                           rows[i].condition));
        OK(cuStreamWriteValue64_v2(stream, (uintptr_t)ran, 1, 0));
        /* Another stream's work, which takes a while, ends meanwhile. */
        OK(launch_sleep(1, 32, 300000, 1, streams[1]));
        OK(cuStreamSynchronize(streams[1]));
        assert_int_equal(cuStreamQuery(stream), CUDA_ERR_NOT_READY);
        assert_int_equal(*ran, 0);
        store_host(0, rows[i].after);
        OK(cuStreamSynchronize(stream));
        assert_int_equal(*ran, 1);
    }
    destroy(streams, 2);
}

/* Two streams whose kernels take turns; each turn adds one to the same word. */
static void streams_take_turns_by_values(void **state)
{
    enum { TURNS = 50 };
    cuda_stream streams[2] = {new_stream(CUDA_STREAM_NON_BLOCKING),
                              new_stream(CUDA_STREAM_NON_BLOCKING)};
    const cuda_device_ptr turn = words + 4096, record = words;

    (void)state;
    OK(cuMemsetD32_v2(turn, 0, 1));
    OK(cuCtxSynchronize());
    for (uint32_t i = 0; i < TURNS; i++)
        for (unsigned side = 0; side < 2; side++) {
            cuda_mem_op_params ops[3] = {
                {.write_value = {CUDA_MEM_OP_WAIT_VALUE_32,
                                 turn,
                                 {.value = 2 * i + side},
                                 CUDA_STREAM_WAIT_VALUE_EQ,
                                 0}},
                {.operation = CUDA_MEM_OP_BARRIER},
                {.write_value = {CUDA_MEM_OP_WRITE_VALUE_32,
                                 record + 4 * (uint64_t)(2 * i + side),
                                 {.value = 2 * i + side + 1},
                                 0,
                                 0}},
            };

            OK(cuStreamBatchMemOp_v2(streams[side], 3, ops, 0));
            OK(cuStreamWriteValue32_v2(streams[side], turn, 2 * i + side + 1, 0));
        }
    OK(cuStreamSynchronize(streams[0]));
    OK(cuStreamSynchronize(streams[1]));
    for (uint32_t i = 0; i < 2 * TURNS; i++)
        assert_int_equal(read_word(i, NULL), i + 1);
    destroy(streams, 2);
}

static void memory_operations_are_checked(void **state)
{
    cuda_mem_op_params wait = {
        .write_value = {CUDA_MEM_OP_FLUSH_REMOTE_WRITES, (uintptr_t)page, {0}, 0, 0}};
    int value;

    (void)state;
    assert_int_equal(cuStreamBatchMemOp_v2(NULL, 1, &wait, 0), CUDA_ERR_NOT_SUPPORTED);
    wait.operation = CUDA_MEM_OP_WAIT_VALUE_32;
    wait.write_value.flags = (unsigned)CUDA_STREAM_WAIT_VALUE_FLUSH;
    assert_int_equal(cuStreamBatchMemOp_v2(NULL, 1, &wait, 0), CUDA_ERR_NOT_SUPPORTED);
    wait.write_value.flags = CUDA_STREAM_WAIT_VALUE_NOR + 1;
    assert_int_equal(cuStreamBatchMemOp_v2(NULL, 1, &wait, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitValue32_v2(NULL, (uintptr_t)page + 2, 1, 0),
                     CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitValue64_v2(NULL, (uintptr_t)page + 4, 1, 0),
                     CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWaitValue64_v2(NULL, 0x1000, 1, 0), CUDA_ERR_INVALID_VALUE);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS, 0));
    assert_int_equal(value, 1);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_CAN_USE_STREAM_WAIT_VALUE_NOR, 0));
    assert_int_equal(value, 1);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_CAN_FLUSH_REMOTE_WRITES, 0));
    assert_int_equal(value, 0);
    assert_int_equal(cuStreamBatchMemOp_v2(NULL, 0, &wait, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamBatchMemOp_v2(NULL, 257, &wait, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue32_v2(NULL, (uintptr_t)page + 2, 1, 0),
                     CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue64_v2(NULL, (uintptr_t)page + 4, 1, 0),
                     CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue64_v2(NULL, 0x1000, 1, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuStreamWriteValue64_v2(NULL, (uintptr_t)page, 1, 2), CUDA_ERR_INVALID_VALUE);
}

static void an_event_holds_another_stream_back(void **state)
{
    cuda_stream streams[2] = {new_stream(CUDA_STREAM_NON_BLOCKING),
                              new_stream(CUDA_STREAM_NON_BLOCKING)};
    cuda_event event;

    (void)state;
    OK(cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING));
    OK(cuEventQuery(event)); /* never recorded: nothing to wait for */
    OK(cuEventSynchronize(event));
    for (uint32_t i = 0; i < 30; i++) {
        OK(launch_sleep(1, 32, 200000, 1, streams[0]));
        OK(launch_store(words, 1000 + i, 1, 1, streams[0]));
        OK(cuEventRecord(event, streams[0]));
        OK(cuStreamWaitEvent(streams[1], event, 0));
        assert_int_equal(read_word(0, streams[1]), 1000 + i);
        OK(cuEventQuery(event));
    }
    /* The wait is for what was recorded when it was asked for. */
    OK(launch_sleep(1, 32, 1000000, 1, streams[0]));
    OK(cuEventRecord(event, streams[0]));
    OK(cuEventDestroy_v2(event));
    assert_int_equal(cuEventQuery(event), CUDA_ERR_INVALID_HANDLE);
    OK(cuCtxSynchronize());
    destroy(streams, 2);
}

static void the_default_stream_waits_and_is_waited_for(void **state)
{
    cuda_stream blocking = new_stream(CUDA_STREAM_DEFAULT);
    cuda_stream free_one = new_stream(CUDA_STREAM_NON_BLOCKING);

    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        OK(launch_sleep(1, 32, 300000, 1, blocking));
        OK(launch_store(words, 2 * i, 1, 1, blocking));
        assert_int_equal(read_word(0, NULL), 2 * i);
        OK(launch_sleep(1, 32, 300000, 1, NULL));
        OK(launch_store(words, 2 * i + 1, 1, 1, CUDA_STREAM_LEGACY));
        assert_int_equal(read_word(0, blocking), 2 * i + 1);
    }
    /* A non-blocking stream has nothing to do with it. */
    page[0] = 0;
    OK(launch_spin((uintptr_t)page, free_one));
    OK(launch_store(words, 7, 1, 1, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuStreamQuery(NULL));
    assert_int_equal(cuStreamQuery(free_one), CUDA_ERR_NOT_READY);
    __atomic_store_n(&page[0], 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(free_one));
    destroy(&blocking, 1);
    destroy(&free_one, 1);
}

/* Four queues: the fifth stream shares the first's, and waits for a kernel it has nothing to do
 * with. */
static void streams_that_share_a_queue_wait_for_each_other(void **state)
{
    enum { STREAMS = 5 };
    cuda_stream streams[STREAMS];

    (void)state;
    for (int i = 0; i < STREAMS; i++)
        streams[i] = new_stream(CUDA_STREAM_NON_BLOCKING);
    page[0] = 0;
    OK(launch_spin((uintptr_t)page, streams[0]));
    OK(launch_store(words, 1, 1, 1, streams[0])); /* cannot begin yet, and heads the queue */
    for (int i = 1; i < STREAMS; i++)
        OK(launch_store(words + 4 * (unsigned)i, 9, 1, 1, streams[i]));
    for (int i = 1; i < STREAMS - 1; i++)
        OK(cuStreamSynchronize(streams[i]));
    usleep(20000);
    assert_int_equal(cuStreamQuery(streams[STREAMS - 1]), CUDA_ERR_NOT_READY);
    __atomic_store_n(&page[0], 1, __ATOMIC_RELEASE);
    OK(cuStreamSynchronize(streams[STREAMS - 1]));
    destroy(streams, STREAMS);
}

static void add_one(void *user)
{
    uint32_t *count = user;

    count[0]++;
}

static void host_functions_run_in_their_place(void **state)
{
    cuda_stream stream = new_stream(CUDA_STREAM_NON_BLOCKING);
    uint32_t count = 0;

    (void)state;
    for (int i = 0; i < 50; i++) {
        OK(launch_sleep(1, 32, 10000, 1, stream));
        OK(cuLaunchHostFunc(stream, add_one, &count));
    }
    OK(cuStreamSynchronize(stream));
    assert_int_equal(count, 50);
    destroy(&stream, 1);
}

static void host_memory_is_taken_away_when_the_work_is_done(void **state)
{
    enum { BYTES = 1 << 16 };
    const uint32_t long_ns = 50000000;
    cuda_stream stream = new_stream(CUDA_STREAM_NON_BLOCKING);
    void *pinned, *registered = aligned_alloc(4096, BYTES);

    (void)state;
    OK(cuMemAllocHost_v2(&pinned, BYTES));
    OK(launch_sleep(1, 32, long_ns, 1, stream));
    OK(cuMemsetD8Async((uintptr_t)pinned, 1, BYTES, stream));
    OK(cuMemFreeHost(pinned));
    OK(cuStreamQuery(stream));
    OK(cuMemHostRegister_v2(registered, BYTES, 0));
    OK(launch_sleep(1, 32, long_ns, 1, stream));
    OK(cuMemsetD8Async((uintptr_t)registered, 2, BYTES, stream));
    OK(cuMemHostUnregister(registered));
    OK(cuStreamQuery(stream));
    assert_int_equal(*(uint8_t *)registered, 2);
    free(registered);
    destroy(&stream, 1);
}

static void a_destroyed_stream_finishes_its_work(void **state)
{
    cuda_stream stream = new_stream(CUDA_STREAM_NON_BLOCKING);

    (void)state;
    OK(cuMemsetD32_v2(words, 0, 1));
    OK(launch_sleep(1, 32, 1000000, 3, stream));
    OK(launch_store(words, 5, 1, 1, stream));
    OK(cuStreamDestroy_v2(stream));
    assert_int_equal(cuStreamQuery(stream), CUDA_ERR_INVALID_HANDLE);
    OK(cuCtxSynchronize());
    assert_int_equal(read_word(0, NULL), 5);
}

static void a_module_may_go_while_its_kernel_runs(void **state)
{
    cuda_stream stream = new_stream(CUDA_STREAM_NON_BLOCKING);
    cuda_module module;
    cuda_function sleep;
    unsigned ns = 500000, times = 4;
    void *params[] = {&ns, &times};

    (void)state;
    OK(cuModuleLoadData(&module, kernels_ptx));
    OK(cuModuleGetFunction(&sleep, module, "sleep"));
    OK(launch(sleep, 8, 64, stream, params));
    OK(cuModuleUnload(module));
    assert_int_equal(cuModuleUnload(module), CUDA_ERR_INVALID_HANDLE);
    assert_int_equal(launch(sleep, 1, 32, stream, params), CUDA_ERR_INVALID_HANDLE);
    OK(cuStreamSynchronize(stream));
    destroy(&stream, 1);
}

static void two_devices_are_two(void **state)
{
    cuda_context second;
    cuda_uuid uuids[2];
    size_t left, total, before;
    cuda_device_ptr there;
    cuda_device device;
    cuda_event event;
    cuda_stream here = new_stream(CUDA_STREAM_NON_BLOCKING), stream;
    struct kernels first = kernels;

    (void)state;
    OK(cuDeviceGetUuid_v2(&uuids[0], 0));
    OK(cuDeviceGetUuid_v2(&uuids[1], 1));
    assert_memory_not_equal(&uuids[0], &uuids[1], sizeof(uuids[0]));
    OK(cuMemGetInfo_v2(&before, &total));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    OK(cuMemAlloc_v2(&there, 1 << 20));
    OK(cuMemGetInfo_v2(&left, &total));
    assert_true(total - left >= 1 << 20);
    assert_int_equal(kernels_load(), 0);
    /* A stream of the other device can wait for an event of this one; a kernel cannot go there. */
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    assert_int_equal(launch_sleep(1, 32, 1, 1, here), CUDA_ERR_INVALID_HANDLE);
    OK(cuCtxSetCurrent(first.context));
    OK(cuMemGetInfo_v2(&left, &total));
    assert_int_equal(left, before);
    OK(cuEventCreate(&event, 0));
    page[0] = 0;
    OK(cuLaunchKernel(first.sleep, 1, 1, 1, 32, 1, 1, 0, here,
                      (void *[]){&(unsigned){1000000}, &(unsigned){5}}, NULL));
    OK(cuStreamWriteValue64_v2(here, (uintptr_t)page, 11, 0));
    OK(cuEventRecord(event, here));
    OK(cuCtxSetCurrent(second));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(launch_store(there, 3, 1, 1, stream));
    OK(cuStreamSynchronize(stream));
    assert_int_equal(page[0], 11);
    OK(cuMemFree_v2(there));
    OK(cuModuleUnload(kernels.module));
    OK(cuStreamDestroy_v2(stream));
    kernels = first;
    OK(cuCtxSetCurrent(kernels.context));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    OK(cuEventDestroy_v2(event));
    destroy(&here, 1);
}

static void *hammer(void *user)
{
    unsigned slot = *(unsigned *)user;
    cuda_stream stream;
    uint32_t value = 0;

    if (cuCtxSetCurrent(kernels.context) != CUDA_OK ||
        cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) != CUDA_OK)
        return user;
    for (uint32_t i = 1; i <= 200; i++) {
        if (launch_store(words + 64 * slot, i, 1, 8, stream) != CUDA_OK ||
            cuMemcpyDtoHAsync_v2(&value, words + 64 * slot + 28, 4, stream) != CUDA_OK ||
            cuStreamSynchronize(stream) != CUDA_OK || value != i)
            return user;
    }
    return cuStreamDestroy_v2(stream) == CUDA_OK ? NULL : user;
}

static void threads_may_call_at_once(void **state)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    unsigned slots[THREADS];
    void *failed;

    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        slots[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &slots[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_keeps_its_order),
        cmocka_unit_test(a_program_of_many_kernels_computes_correctly),
        cmocka_unit_test(write_values_come_after_earlier_work),
        cmocka_unit_test(a_stream_waits_for_a_value_that_the_host_writes),
        cmocka_unit_test(streams_take_turns_by_values),
        cmocka_unit_test(memory_operations_are_checked),
        cmocka_unit_test(an_event_holds_another_stream_back),
        cmocka_unit_test(the_default_stream_waits_and_is_waited_for),
        cmocka_unit_test(streams_that_share_a_queue_wait_for_each_other),
        cmocka_unit_test(host_functions_run_in_their_place),
        cmocka_unit_test(host_memory_is_taken_away_when_the_work_is_done),
        cmocka_unit_test(a_destroyed_stream_finishes_its_work),
        cmocka_unit_test(a_module_may_go_while_its_kernel_runs),
        cmocka_unit_test(two_devices_are_two),
        cmocka_unit_test(threads_may_call_at_once),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
