/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The forms of the runtime's functions for default streams of each thread. A kernel that waits for
 * a word tells these from the one default stream: work behind the kernel comes too late for it. It
 * does not wait for ever, so a wrong order fails and does not hang.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/programs/cudart/cudart.h"

enum { VALUE = 7, WORDS = 4096, BYTES = WORDS * 4 };

/* LONG is far more than all work of a check takes, and SHORT more than a launch. */
static const uint64_t LONG_NS = 20000000000, SHORT_NS = 50000000;

static char await_word, set_word;
static const cudart_dim3 one = {1, 1, 1};

/* Memory of the host that kernels reach. */
struct shared {
    _Atomic uint32_t word, never; /* never: nothing sets it */
    uint32_t seen;
    uint32_t words[WORDS];
};

static struct shared *shared;
static char *shared_on_device;

static void *on_device(const volatile void *member)
{
    return shared_on_device + ((const volatile char *)member - (const volatile char *)shared);
}

/* ---- two threads ---------------------------------------------------------------------------- */

/* Ways to launch a kernel in the default stream. */

static cudart_error plainly(const char *host, void **params)
{
    return cudaLaunchKernel(host, one, one, params, 0, NULL);
}

static cudart_error by_address(const char *host, void **params)
{
    return cudaLaunchKernel_ptsz(host, one, one, params, 0, NULL);
}

static cudart_error by_handle(const char *host, void **params)
{
    cudart_kernel kernel = NULL;

    EXPECT(0, __cudaGetKernel(&kernel, host));
    return __cudaLaunchKernel_ptsz(kernel, one, one, params, 0, NULL);
}

static cudart_error by_config(const char *host, void **params)
{
    const struct cuda_launch_config config = {.grid = one, .block = one};

    return cudaLaunchKernelExC_ptsz(&config, host, params);
}

struct pair {
    cudart_error (*launch)(const char *host, void **params);
    cudart_error (*synchronize)(cuda_stream stream);
    pthread_barrier_t step;
};

static void *set_second(void *context)
{
    struct pair *pair = context;
    uint32_t value = 0;
    void *word = on_device(&shared->word), *params[] = {&word, &value};

    /* The thread's stream is made here: making it may wait for the device. */
    EXPECT(0, pair->launch(&set_word, params));
    EXPECT(0, pair->synchronize(NULL));
    value = VALUE;
    pthread_barrier_wait(&pair->step);
    pthread_barrier_wait(&pair->step); /* the first kernel is launched */
    EXPECT(0, pair->launch(&set_word, params));
    EXPECT(0, pair->synchronize(NULL));
    return NULL;
}

/* One thread's kernel waits for the kernel that another thread launches behind it. Returns what the
 * first kernel saw: 0 if it waited in vain. */
static uint32_t seen_by_first(cudart_error (*launch)(const char *host, void **params),
                              cudart_error (*synchronize)(cuda_stream stream), uint64_t limit_ns)
{
    struct pair pair = {.launch = launch, .synchronize = synchronize};
    void *word = on_device(&shared->word), *seen = on_device(&shared->seen);
    void *params[] = {&word, &seen, &limit_ns};
    pthread_t second;

    shared->seen = ~0U;
    CHECK(pthread_barrier_init(&pair.step, NULL, 2) == 0);
    CHECK(pthread_create(&second, NULL, set_second, &pair) == 0);
    pthread_barrier_wait(&pair.step);
    EXPECT(0, launch(&await_word, params));
    pthread_barrier_wait(&pair.step);
    EXPECT(0, synchronize(NULL));
    CHECK(pthread_join(second, NULL) == 0);
    CHECK(pthread_barrier_destroy(&pair.step) == 0);
    CHECK(shared->word == VALUE);
    return shared->seen;
}

static void check_threads(void)
{
    CHECK(seen_by_first(by_address, cudaStreamSynchronize_ptsz, LONG_NS) == VALUE);
    CHECK(seen_by_first(by_handle, cudaStreamSynchronize_ptsz, LONG_NS) == VALUE);
    CHECK(seen_by_first(by_config, cudaStreamSynchronize_ptsz, LONG_NS) == VALUE);
    CHECK(seen_by_first(plainly, cudaStreamSynchronize, SHORT_NS) == 0);
    EXPECT(CUDART_INVALID_VALUE, cudaLaunchKernelExC_ptsz(NULL, &set_word, NULL));
    (void)cudaGetLastError();
}

/* A cooperative kernel may have to itself the device, so it shows by its own thread's stream alone
 * where it is. A driver may have none: both forms answer the same then. */
static void check_cooperative(void)
{
    uint32_t value = VALUE;
    uint64_t limit_ns = LONG_NS;
    void *word = on_device(&shared->word), *seen = on_device(&shared->seen);
    void *set[] = {&word, &value}, *await[] = {&word, &seen, &limit_ns};
    const cudart_error expected = cudaLaunchCooperativeKernel(&set_word, one, one, set, 0, NULL);

    EXPECT(0, cudaDeviceSynchronize());
    shared->word = 0;
    EXPECT(expected, cudaLaunchCooperativeKernel_ptsz(&await_word, one, one, await, 0, NULL));
    if (expected == CUDART_OK)
        EXPECT(CUDA_ERR_NOT_READY, cudaStreamQuery_ptsz(NULL));
    shared->word = VALUE;
    EXPECT(0, cudaStreamSynchronize_ptsz(NULL));
    (void)cudaGetLastError();
}

/* ---- each form in the thread's own stream --------------------------------------------------- */

/* Puts some time into the thread's stream, in which a call that does not wait is too early. */
static void be_slow(void)
{
    uint64_t limit_ns = SHORT_NS;
    void *never = on_device(&shared->never), *seen = on_device(&shared->words[0]);
    void *params[] = {&never, &seen, &limit_ns};

    EXPECT(0, by_address(&await_word, params));
}

static void check_words(const uint32_t *words, uint32_t expected)
{
    for (int i = 0; i < WORDS; i++)
        CHECK(words[i] == expected);
}

static void check_copies(char *memory)
{
    static uint32_t words[WORDS];

    be_slow();
    EXPECT(0, cudaMemset_ptds(memory, 1, BYTES));
    EXPECT(0, cudaMemcpy_ptds(shared->words, memory, BYTES, CUDART_DEVICE_TO_HOST));
    check_words(shared->words, 0x01010101);
    be_slow();
    EXPECT(0, cudaMemset_ptds(on_device(shared->words), 2, BYTES));
    check_words(shared->words, 0x02020202);
    EXPECT(0, cudaMemcpy_ptds(memory, shared->words, BYTES, CUDART_MEMCPY_DEFAULT));
    EXPECT(0, cudaMemcpy_ptds(memory + BYTES, memory, BYTES, CUDART_DEVICE_TO_DEVICE));
    EXPECT(0, cudaMemcpy_ptds(words, memory + BYTES, BYTES, CUDART_DEVICE_TO_HOST));
    check_words(words, 0x02020202);
    EXPECT(0, cudaMemsetAsync_ptsz(memory, 3, BYTES, NULL));
    EXPECT(0, cudaMemcpyAsync_ptsz(shared->words, memory, BYTES, CUDART_DEVICE_TO_HOST, NULL));
    EXPECT(0, cudaStreamSynchronize_ptsz(NULL));
    check_words(shared->words, 0x03030303);
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION, cudaMemcpy_ptds(memory, words, BYTES, 9));
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION, cudaGetLastError());
}

static void check_variables(void)
{
    const float five = 5;
    float before = 0, found = 0;

    EXPECT(0, cudaMemcpyFromSymbol_ptds(&before, &scale, 4, 0, CUDART_DEVICE_TO_HOST));
    EXPECT(0, cudaMemcpyToSymbol_ptds(&scale, &five, 4, 0, CUDART_HOST_TO_DEVICE));
    EXPECT(0, cudaMemcpyFromSymbol_ptds(&found, &scale, 4, 0, CUDART_DEVICE_TO_HOST));
    EXPECT(0, cudaMemcpyToSymbol_ptds(&scale, &before, 4, 0, CUDART_HOST_TO_DEVICE));
    CHECK(before != five && found == five);
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION,
           cudaMemcpyToSymbol_ptds(&scale, &five, 4, 0, CUDART_DEVICE_TO_HOST));
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION, cudaGetLastError());
}

static void check_ordered_memory(void)
{
    void *first = NULL, *second = NULL;

    EXPECT(0, cudaMallocAsync_ptsz(&first, BYTES, NULL));
    EXPECT(0, cudaMemsetAsync_ptsz(first, 4, BYTES, NULL));
    EXPECT(0, cudaMemcpy_ptds(shared->words, first, BYTES, CUDART_DEVICE_TO_HOST));
    check_words(shared->words, 0x04040404);
    be_slow();
    EXPECT(0, cudaFreeAsync_ptsz(first, NULL));
    EXPECT(0, cudaMallocAsync_ptsz(&second, BYTES, NULL));
    CHECK(second == first);
    EXPECT(0, cudaFreeAsync_ptsz(second, NULL));
    EXPECT(0, cudaStreamSynchronize_ptsz(NULL));
}

static void count_call(void *calls)
{
    atomic_fetch_add((_Atomic int *)calls, 1);
}

static void count_callback(cuda_stream stream, cuda_result status, void *calls)
{
    (void)stream;
    if (status == CUDA_OK)
        count_call(calls);
}

/* closed: a stream in which a kernel waits. */
static void check_streams(cuda_stream closed, cuda_event event)
{
    _Atomic int calls = 0;
    int priority = -100, expected = 100, status = 7;

    EXPECT(0, cudaLaunchHostFunc_ptsz(NULL, count_call, &calls));
    EXPECT(0, cudaStreamAddCallback_ptsz(NULL, count_callback, &calls, 0));
    EXPECT(0, cudaEventRecord_ptsz(event, NULL));
    EXPECT(0, cudaEventSynchronize(event));
    CHECK(calls == 2);
    EXPECT(0, cudaStreamSynchronize_ptsz(NULL));
    EXPECT(0, cudaStreamQuery_ptsz(NULL));
    EXPECT(0, cudaStreamGetPriority_ptsz(NULL, &priority));
    EXPECT(0, cudaStreamGetPriority(CUDA_STREAM_PER_THREAD, &expected));
    CHECK(priority == expected);
    EXPECT(0, cudaStreamIsCapturing_ptsz(NULL, &status));
    CHECK(status == 0);
    status = 7;
    EXPECT(0, cudaStreamIsCapturing(closed, &status));
    CHECK(status == 0);
    EXPECT(CUDART_INVALID_VALUE, cudaStreamIsCapturing(closed, NULL));

    /* Other handles mean what they always mean. */
    EXPECT(0, cudaEventRecord_ptsz(event, closed));
    EXPECT(CUDA_ERR_NOT_READY, cudaEventQuery(event));
    EXPECT(0, cudaStreamWaitEvent_ptsz(NULL, event, 0));
    EXPECT(CUDA_ERR_NOT_READY, cudaStreamQuery_ptsz(NULL));
    EXPECT(0, cudaEventRecord_ptsz(event, CUDA_STREAM_LEGACY));
    EXPECT(CUDA_ERR_NOT_READY, cudaEventQuery(event));
    (void)cudaGetLastError();
}

/* The one default stream waits for a blocking stream, in which a kernel waits until the end of this
 * check. The thread's own does not. A call that may wait for the device, whatever its stream,
 * stands before that kernel. */
static void check_forms(void)
{
    uint64_t limit_ns = LONG_NS;
    void *word = on_device(&shared->word), *seen = on_device(&shared->seen);
    void *params[] = {&word, &seen, &limit_ns};
    cuda_stream closed;
    cuda_event event;
    char *memory = NULL;
    void *kept = NULL;

    EXPECT(0, cudaMalloc((void **)&memory, 2 * (size_t)BYTES));
    EXPECT(0, cudaStreamCreate(&closed));
    EXPECT(0, cudaEventCreate(&event));
    EXPECT(0, cudaMallocAsync_ptsz(&kept, BYTES, NULL));
    EXPECT(0, cudaFreeAsync_ptsz(kept, NULL));
    shared->word = 0;
    shared->seen = ~0U;
    EXPECT(0, cudaLaunchKernel_ptsz(&await_word, one, one, params, 0, closed));
    check_copies(memory);
    check_variables();
    check_ordered_memory();
    check_streams(closed, event);
    shared->word = VALUE;
    EXPECT(0, cudaStreamSynchronize_ptsz(closed));
    CHECK(shared->seen == VALUE);
    EXPECT(0, cudaStreamSynchronize_ptsz(NULL));
    EXPECT(0, cudaEventDestroy(event));
    EXPECT(0, cudaStreamDestroy(closed));
    EXPECT(0, cudaFree(memory));
}

static void add_function(void **handle, const char *host, char *name)
{
    __cudaRegisterFunction(handle, host, name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

void check_per_thread(void **handle)
{
    add_function(handle, &await_word, "await_word");
    add_function(handle, &set_word, "set_word");
    EXPECT(0, cudaHostAlloc((void **)&shared, sizeof(*shared), 0));
    EXPECT(0, cudaHostGetDevicePointer((void **)&shared_on_device, shared, 0));
    memset(shared, 0, sizeof(*shared));
    check_threads();
    check_cooperative();
    check_forms();
    EXPECT(0, cudaDeviceSynchronize());
    EXPECT(0, cudaFreeHost(shared));
}
