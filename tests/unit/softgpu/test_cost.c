/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The cost of calls, and the delay of ends. Every case is a process, for settings are
 * read once. Costs are set far above what a busy machine adds; what is measured is that
 * they are paid, so that a slow machine changes nothing.
 */
#include "tests/unit/softgpu/kernels.h"

#include <pthread.h>
#include <sys/mman.h>

#include "server/softgpu/device/cost.h"

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void open_device(const char *variable, const char *value)
{
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    setenv(variable, value, 1);
    CHECK(kernels_open() == 0);
}

static cuda_stream new_stream(void)
{
    cuda_stream stream;

    CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    return stream;
}

/* Each kind of submission pays once. */
static void body_enqueue(void)
{
    const uint64_t cost = 2000000;
    cuda_device_ptr words;
    cuda_stream stream;
    cuda_event event;
    uint64_t start;

    open_device("SOFTGPU_ENQUEUE_NS", "2000000");
    stream = new_stream();
    CHECK(cuMemAlloc_v2(&words, 4096) == CUDA_OK);
    CHECK(cuEventCreate(&event, 0) == CUDA_OK);
    start = now();
    CHECK(launch_store(words, 1, 1, 1, stream) == CUDA_OK);
    CHECK(now() - start >= cost);
    start = now();
    CHECK(cuMemsetD32Async(words, 1, 1, stream) == CUDA_OK);
    CHECK(cuMemcpyDtoDAsync_v2(words + 64, words, 4, stream) == CUDA_OK);
    CHECK(cuEventRecord(event, stream) == CUDA_OK);
    CHECK(cuStreamWriteValue32_v2(stream, words, 1, 0) == CUDA_OK);
    CHECK(now() - start >= 4 * cost);
}

static void a_submission_costs_its_caller_time(void **state)
{
    (void)state;
    in_child(body_enqueue);
}

static void body_launch(void)
{
    uint64_t stamps[2], start;
    cuda_device_ptr out;
    cuda_stream stream;

    open_device("SOFTGPU_LAUNCH_NS", "30000000");
    stream = new_stream();
    CHECK(cuMemAlloc_v2(&out, sizeof(stamps)) == CUDA_OK);
    start = now();
    CHECK(launch_stamp(out, 1, 1, 1000, stream) == CUDA_OK);
    CHECK(cuStreamSynchronize(stream) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(stamps, out, sizeof(stamps)) == CUDA_OK);
    CHECK(stamps[0] >= start + 30000000);
}

static void a_first_block_begins_later(void **state)
{
    (void)state;
    in_child(body_launch);
}

/* The kernel's own stamp says when it ended; everything that a program can ask says so later. */
static void body_completion(void)
{
    const uint64_t delay = 30000000;
    uint64_t stamps[2];
    uint32_t *word;
    cuda_device_ptr out;
    cuda_stream stream;
    cuda_event event;

    open_device("SOFTGPU_COMPLETION_NS", "30000000");
    stream = new_stream();
    CHECK(cuMemAllocHost_v2((void **)&word, 4096) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&out, sizeof(stamps)) == CUDA_OK);
    CHECK(cuEventCreate(&event, 0) == CUDA_OK);
    CHECK(launch_stamp(out, 1, 1, 1000000, stream) == CUDA_OK);
    CHECK(cuEventRecord(event, stream) == CUDA_OK);
    while (cuEventQuery(event) == CUDA_ERR_NOT_READY)
        ;
    uint64_t by_query = now();
    CHECK(cuStreamSynchronize(stream) == CUDA_OK);
    CHECK(cuStreamQuery(stream) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(stamps, out, sizeof(stamps)) == CUDA_OK);
    CHECK(by_query >= stamps[1] + delay);

    CHECK(launch_stamp(out, 1, 1, 1000000, stream) == CUDA_OK);
    CHECK(cuStreamSynchronize(stream) == CUDA_OK);
    uint64_t by_wait = now();
    CHECK(cuMemcpyDtoH_v2(stamps, out, sizeof(stamps)) == CUDA_OK);
    CHECK(by_wait >= stamps[1] + delay);

    CHECK(launch_stamp(out, 1, 1, 1000000, stream) == CUDA_OK);
    CHECK(cuStreamWriteValue32_v2(stream, (uintptr_t)word, 7, 0) == CUDA_OK);
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != 7)
        ;
    uint64_t by_word = now();
    CHECK(cuMemcpyDtoH_v2(stamps, out, sizeof(stamps)) == CUDA_OK);
    CHECK(by_word >= stamps[1] + delay);
}

static void an_end_is_seen_later(void **state)
{
    (void)state;
    in_child(body_completion);
}

static void body_tail(void)
{
    enum { DRAWS = 2000000 };
    unsigned fifty = 0, thousand = 0;

    setenv("SOFTGPU_COMPLETION_NS", "2000", 1);
    setenv("SOFTGPU_COMPLETION_TAIL", "1", 1);
    CHECK(cuInit(0) == CUDA_OK);
    engine_lock();
    for (int i = 0; i < DRAWS; i++) {
        uint64_t delay = cost_completion_ns();

        CHECK(delay == 2000 || delay == 50000 || delay == 1000000);
        fifty += delay == 50000;
        thousand += delay == 1000000;
    }
    engine_unlock();
    /* 2000 and 20 are expected. */
    CHECK(fifty > 1700 && fifty < 2300);
    CHECK(thousand > 5 && thousand < 45);
}

static void a_few_ends_are_seen_much_later(void **state)
{
    (void)state;
    in_child(body_tail);
}

static void body_creation(void)
{
    const uint64_t cost = 50000000;
    cuda_dev_resource all;
    cuda_resource_desc desc;
    cuda_green_ctx green;
    cuda_stream stream;
    uint64_t start;

    open_device("SOFTGPU_CREATION_US", "50000");
    CHECK(cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM) == CUDA_OK);
    CHECK(cuDevResourceGenerateDesc(&desc, &all, 1) == CUDA_OK);
    start = now();
    (void)new_stream();
    CHECK(now() - start >= cost);
    start = now();
    CHECK(cuGreenCtxCreate(&green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK);
    CHECK(now() - start >= cost);
    start = now();
    CHECK(cuGreenCtxStreamCreate(&stream, green, CUDA_STREAM_NON_BLOCKING, 0) == CUDA_OK);
    CHECK(now() - start >= cost);
}

static void streams_and_green_contexts_take_time_to_make(void **state)
{
    (void)state;
    in_child(body_creation);
}

static void body_registration(void)
{
    enum { BYTES = 4 << 20 };
    void *pages = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *pinned;
    uint64_t start;

    open_device("SOFTGPU_REGISTER_US_PER_MIB", "10000");
    CHECK(pages != MAP_FAILED);
    start = now();
    CHECK(cuMemHostRegister_v2(pages, BYTES, 0) == CUDA_OK);
    CHECK(now() - start >= 40000000);
    start = now();
    CHECK(cuMemHostAlloc(&pinned, BYTES, 0) == CUDA_OK);
    CHECK(now() - start >= 40000000);
}

static void registering_takes_time_by_size(void **state)
{
    (void)state;
    in_child(body_registration);
}

/* ---- costs and the context's lock ---- */

enum { CALLS = 10, COST_NS = 20000000 };

typedef void some_call(void);

static void submit(void)
{
    CHECK(launch_sleep(1, 32, 1000, 1, NULL) == CUDA_OK);
}

static void make_stream(void)
{
    (void)new_stream();
}

static void pin(void)
{
    void *pinned;

    CHECK(cuMemHostAlloc(&pinned, 1 << 20, 0) == CUDA_OK);
}

static void load_module(void)
{
    cuda_module module;

    CHECK(cuModuleLoadData(&module, kernels_ptx) == CUDA_OK);
}

static some_call *repeated;

static void *repeat(void *unused)
{
    CHECK(cuCtxSetCurrent(kernels.context) == CUDA_OK);
    for (int i = 0; i < CALLS; i++)
        repeated();
    return unused;
}

/* Nanoseconds that two threads take for as many calls each, at the same time. */
static uint64_t take_together(some_call *call)
{
    pthread_t other;
    uint64_t start = now();

    repeated = call;
    CHECK(pthread_create(&other, NULL, repeat, NULL) == 0);
    repeat(NULL);
    CHECK(pthread_join(other, NULL) == 0);
    return now() - start;
}

static const struct {
    const char *variable, *value;
    some_call *call;
} costly[] = {
    {"SOFTGPU_ENQUEUE_NS", "20000000", submit},
    {"SOFTGPU_CREATION_US", "20000", make_stream},
    {"SOFTGPU_LOAD_US", "20000", load_module},
    {"SOFTGPU_REGISTER_US_PER_MIB", "20000", pin},
};

static size_t tried;

static void body_with_lock(void)
{
    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "0", 1);
    open_device(costly[tried].variable, costly[tried].value);
    CHECK(take_together(costly[tried].call) >= UINT64_C(2) * CALLS * COST_NS);
}

/* A busy machine can keep two threads from being at it at the same time, but not each time. */
static void body_without_lock(void)
{
    int attempts = 10;

    open_device(costly[tried].variable, costly[tried].value);
    while (attempts > 0 && take_together(costly[tried].call) >= UINT64_C(2) * CALLS * COST_NS)
        attempts--;
    CHECK(attempts > 0);
}

static void costs_are_paid_while_the_lock_is_held(void **state)
{
    (void)state;
    for (tried = 0; tried < sizeof(costly) / sizeof(costly[0]); tried++) {
        in_child(body_with_lock);
        in_child(body_without_lock);
    }
}

/* Work of the device takes its time there, and nobody's lock. */
static void body_device_time(void)
{
    uint64_t start;

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_COMPLETION_NS", "500000000", 1);
    open_device("SOFTGPU_LAUNCH_NS", "500000000");
    start = now();
    for (int i = 0; i < CALLS; i++)
        submit();
    CHECK(now() - start < 500000000);
    CHECK(cuCtxSynchronize() == CUDA_OK);
    CHECK(now() - start >= 1000000000);
}

static void the_device_takes_its_time_without_the_lock(void **state)
{
    (void)state;
    in_child(body_device_time);
}

static void body_timer(void)
{
    enum { BLOCKS = 64 };
    uint64_t stamps[2 * BLOCKS];
    cuda_device_ptr out;

    open_device("SOFTGPU_GLOBALTIMER_NS", "7000");
    CHECK(cuMemAlloc_v2(&out, sizeof(stamps)) == CUDA_OK);
    CHECK(launch_stamp(out, BLOCKS, 32, 12345, NULL) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(stamps, out, sizeof(stamps)) == CUDA_OK);
    for (int i = 0; i < 2 * BLOCKS; i++)
        CHECK(stamps[i] != 0 && stamps[i] % 7000 == 0);
}

static void the_timer_moves_in_steps(void **state)
{
    (void)state;
    in_child(body_timer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submission_costs_its_caller_time),
        cmocka_unit_test(a_first_block_begins_later),
        cmocka_unit_test(an_end_is_seen_later),
        cmocka_unit_test(a_few_ends_are_seen_much_later),
        cmocka_unit_test(streams_and_green_contexts_take_time_to_make),
        cmocka_unit_test(registering_takes_time_by_size),
        cmocka_unit_test(costs_are_paid_while_the_lock_is_held),
        cmocka_unit_test(the_device_takes_its_time_without_the_lock),
        cmocka_unit_test(the_timer_moves_in_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
