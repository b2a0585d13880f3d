/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A program as nvcc would make it, with the calls of nvcc's start-up code and stubs written by
 * hand, so that no toolkit is needed. It is linked once with each libcudart. It exits with 0 if
 * every call did what CUDA's does; otherwise it names the first that did not.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cuda/runtime/device_properties.h"
#include "client/cuda/runtime/runtime_exports.h"
#include "tests/programs/cudart/cudart.h"
#include "tests/programs/cudart/image.h"

/* The build says which library the program is linked with. */
#ifndef RELEASE
#define RELEASE 13
#endif
#if RELEASE == 12
typedef struct device_properties_12 properties_of_release;
#define GET_PROPERTIES cudaGetDeviceProperties_v2
#else
typedef struct device_properties_13 properties_of_release;
#define GET_PROPERTIES cudaGetDeviceProperties
#endif

/* The addresses under which nvcc registers are those of stubs and variables in the program. */
char scale;
static char scaled_add, not_there, foreign, never_registered;
static char name_lost[64], image_lost[64], variable_lost[64];

__asm__(".section .rodata\n"
        "kernels_begin: .incbin \"tests/programs/cudart/kernels.ptx\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char kernels_begin[];

enum {
    COUNT = 50000,
    BLOCK = 256,
    GRID = (COUNT + BLOCK - 1) / BLOCK,
};

/* ---- images --------------------------------------------------------------------------- */

static void **register_image(struct image *image, const char *host, const char *name)
{
    void **handle = __cudaRegisterFatBinary(&image->wrapper);

    CHECK(handle);
    __cudaRegisterFunction(handle, host, (char *)name, name, -1, NULL, NULL, NULL, NULL, NULL);
    return handle;
}

/* ---- launches --------------------------------------------------------------------------- */

static float *input, *device_a, *device_b, *device_c, output[COUNT];
static uint32_t count = COUNT;
static void *params[] = {&device_a, &device_b, &device_c, &count};
static const cudart_dim3 grid = {GRID, 1, 1}, block = {BLOCK, 1, 1};

/* kernel<<<grid, block>>>(...), as nvcc's host code does it */
static cudart_error launch(const char *host)
{
    cudart_kernel kernel = NULL;
    cudart_dim3 popped_grid, popped_block;
    size_t shared_bytes;
    cuda_stream stream;
    cudart_error error;

    CHECK(__cudaPushCallConfiguration(grid, block, 0, NULL) == 0);
    error = __cudaGetKernel(&kernel, host);
    EXPECT(0, __cudaPopCallConfiguration(&popped_grid, &popped_block, &shared_bytes, &stream));
    if (error != 0)
        return error;
    return __cudaLaunchKernel(kernel, popped_grid, popped_block, params, shared_bytes, stream);
}

static void check_output(float factor)
{
    EXPECT(0, cudaMemcpy(output, device_c, sizeof(output), CUDART_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++)
        CHECK(output[i] == factor * input[i] + input[i]);
    EXPECT(0, cudaMemset(device_c, 0, sizeof(output)));
}

static void make_arrays(void)
{
    EXPECT(0, cudaHostAlloc((void **)&input, sizeof(output), 0));
    for (int i = 0; i < COUNT; i++)
        input[i] = (float)i;
    EXPECT(0, cudaMalloc((void **)&device_a, sizeof(output)));
    EXPECT(0, cudaMalloc((void **)&device_b, sizeof(output)));
    EXPECT(0, cudaMalloc((void **)&device_c, sizeof(output)));
    EXPECT(0, cudaMemcpy(device_a, input, sizeof(output), CUDART_HOST_TO_DEVICE));
    EXPECT(0, cudaMemcpy(device_b, input, sizeof(output), CUDART_MEMCPY_DEFAULT));
}

static void check_launches(void)
{
    const float three = 3;
    struct cuda_launch_config config = {.grid = grid, .block = block};
    cuda_stream stream;
    cuda_event start, end;
    float milliseconds = -1, factor = 0;

    make_arrays();
    EXPECT(0, launch(&scaled_add));
    check_output(1);

    EXPECT(0, cudaMemcpyToSymbol(&scale, &three, sizeof(three), 0, CUDART_HOST_TO_DEVICE));
    EXPECT(0, cudaMemcpyFromSymbol(&factor, &scale, sizeof(factor), 0, CUDART_DEVICE_TO_HOST));
    CHECK(factor == three);
    EXPECT(CUDART_INVALID_VALUE,
           cudaMemcpyToSymbol(&scale, &three, sizeof(three), 1, CUDART_HOST_TO_DEVICE));
    EXPECT(CUDART_INVALID_SYMBOL,
           cudaMemcpyToSymbol(&scaled_add, &three, sizeof(three), 0, CUDART_HOST_TO_DEVICE));

    EXPECT(0, cudaStreamCreate(&stream));
    EXPECT(0, cudaEventCreate(&start));
    EXPECT(0, cudaEventCreate(&end));
    EXPECT(0, cudaEventRecord(start, stream));
    EXPECT(0, cudaLaunchKernel(&scaled_add, grid, block, params, 0, stream));
    EXPECT(0, cudaEventRecord(end, stream));
    EXPECT(0, cudaEventSynchronize(end));
    EXPECT(0, cudaEventElapsedTime(&milliseconds, start, end));
    CHECK(milliseconds >= 0);
    check_output(3);
    config.stream = stream;
    EXPECT(0, cudaLaunchKernelExC(&config, &scaled_add, params));
    EXPECT(0, cudaStreamSynchronize(stream));
    check_output(3);
    EXPECT(0, cudaEventDestroy(start));
    EXPECT(0, cudaEventDestroy(end));
    EXPECT(0, cudaStreamDestroy(stream));
}

/* ---- errors ------------------------------------------------------------------------------- */

static void *other_thread(void *unused)
{
    (void)unused;
    EXPECT(0, cudaGetLastError());
    EXPECT(CUDART_INVALID_MEMCPY_DIRECTION, cudaMemcpy(device_a, input, 4, 9));
    return NULL;
}

static void check_errors(void)
{
    const cudart_dim3 large = {2048, 1, 1};
    pthread_t thread;

    (void)cudaGetLastError();
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, launch(&never_registered));
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, cudaPeekAtLastError());
    CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, cudaGetLastError());
    EXPECT(0, cudaGetLastError());
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, launch(&not_there));
    EXPECT(CUDART_INVALID_CONFIGURATION,
           cudaLaunchKernel(&scaled_add, grid, large, params, 0, NULL));
    EXPECT(CUDART_INVALID_DEVICE, cudaSetDevice(1000));
    CHECK(strcmp(cudaGetErrorName(CUDART_INVALID_DEVICE), "cudaErrorInvalidDevice") == 0);
    CHECK(strcmp(cudaGetErrorString(0), "no error") == 0);
    EXPECT(CUDART_MISSING_CONFIGURATION,
           __cudaPopCallConfiguration(&(cudart_dim3){0}, &(cudart_dim3){0}, &(size_t){0},
                                      &(cuda_stream){0}));
    (void)cudaGetLastError();
}

/* ---- functions on the host, stream-ordered memory ---------------------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int called_back;

static void wait_at_gate(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
}

static void note_callback(cuda_stream stream, cuda_result status, void *user)
{
    called_back = status == CUDA_OK && stream == *(cuda_stream *)user ? 1 : -1;
}

static void check_callback(cuda_stream stream)
{
    pthread_mutex_lock(&gate);
    EXPECT(0, cudaLaunchHostFunc(stream, wait_at_gate, NULL));
    EXPECT(CUDART_INVALID_VALUE, cudaStreamAddCallback(stream, NULL, NULL, 0));
    EXPECT(CUDART_INVALID_VALUE, cudaStreamAddCallback(stream, note_callback, &stream, 1));
    EXPECT(0, cudaStreamAddCallback(stream, note_callback, &stream, 0));
    CHECK(called_back == 0);
    pthread_mutex_unlock(&gate);
    EXPECT(0, cudaStreamSynchronize(stream));
    CHECK(called_back == 1);
    (void)cudaGetLastError();
}

/* A freed block is given out again where the order of streams allows it, and nowhere else. */
static void check_ordered_memory(cuda_stream stream, cuda_stream other)
{
    enum { SIZE = 3 << 20 };
    void *first = NULL, *second = NULL, *third = NULL;
    size_t before, after, total;
    const time_t began = time(NULL);

    EXPECT(0, cudaMemGetInfo(&before, &total));
    EXPECT(0, cudaMallocAsync(&first, SIZE, stream));
    EXPECT(CUDART_INVALID_VALUE, cudaFreeAsync((char *)first + 1, stream));
    pthread_mutex_lock(&gate);
    EXPECT(0, cudaLaunchHostFunc(stream, wait_at_gate, NULL));
    EXPECT(0, cudaMemsetAsync(first, 1, SIZE, stream));
    EXPECT(0, cudaFreeAsync(first, stream));
    EXPECT(CUDART_INVALID_VALUE, cudaFreeAsync(first, other));
    EXPECT(CUDART_INVALID_VALUE, cudaFree(first));
    EXPECT(0, cudaMallocAsync(&second, SIZE, other));
    CHECK(second != first);
    EXPECT(0, cudaMallocAsync(&third, SIZE, stream));
    CHECK(third == first);
    pthread_mutex_unlock(&gate);
    EXPECT(0, cudaFreeAsync(third, stream));
    EXPECT(0, cudaStreamSynchronize(stream));
    /* The driver's own pool may have released it, and ours keeps it. */
    EXPECT(0, cudaMallocAsync(&third, SIZE, other));
    EXPECT(0, cudaFree(third));
    EXPECT(0, cudaFreeAsync(second, other));
    EXPECT(0, cudaFreeAsync(NULL, other));
    EXPECT(0, cudaDeviceSynchronize());
    /* A server has it back a moment after it has seen that no work uses it. */
    do
        EXPECT(0, cudaMemGetInfo(&after, &total));
    while (after != before && time(NULL) - began < 60);
    CHECK(after == before);

    /* Memory that is short is found in freed blocks. */
    EXPECT(0, cudaMallocAsync(&first, before / 4 * 3, stream));
    EXPECT(0, cudaFreeAsync(first, stream));
    EXPECT(0, cudaMalloc(&second, before / 3 * 2));
    EXPECT(0, cudaFreeAsync(second, stream));
    EXPECT(0, cudaMallocAsync(&first, before / 4 * 3, other));
    EXPECT(0, cudaFree(first));
    (void)cudaGetLastError();
}

static void check_order(void)
{
    cuda_stream stream, other;

    EXPECT(0, cudaStreamCreateWithFlags(&stream, CUDA_STREAM_NON_BLOCKING));
    EXPECT(0, cudaStreamCreateWithFlags(&other, CUDA_STREAM_NON_BLOCKING));
    check_callback(stream);
    check_ordered_memory(stream, other);
    EXPECT(0, cudaStreamDestroy(other));
    EXPECT(0, cudaStreamDestroy(stream));
}

/* ---- devices ------------------------------------------------------------------------------ */

static void check_device(void)
{
    struct cudart_function_attributes attributes;
    int devices, ordinal, sms, version;
    properties_of_release properties;

    EXPECT(0, cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == RELEASE);
    EXPECT(0, cudaGetDeviceCount(&devices));
    CHECK(devices >= 1);
    EXPECT(0, cudaSetDevice(0));
    EXPECT(0, cudaGetDevice(&ordinal));
    CHECK(ordinal == 0);
    EXPECT(0, cudaDeviceGetAttribute(&sms, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0));
    EXPECT(0, GET_PROPERTIES(&properties, 0));
    CHECK(properties.multiprocessor_count[0] == sms && properties.max_threads_dim[2] == 64);
    CHECK(properties.name[0] && properties.total_global_memory[0] > 0);
    EXPECT(0, cudaFuncGetAttributes(&attributes, &scaled_add));
    CHECK(attributes.max_threads_per_block == 1024 && attributes.ptx_version == 75);
}

static void *symbol_of_driver(const char *symbol)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found = driver ? dlsym(driver, symbol) : NULL;

    CHECK(driver);
    dlclose(driver);
    return found;
}

/* NULL for a function that the driver exports and does not carry. */
static void *of_driver(const char *name)
{
    cuda_result (*find)(const char *, void **, int, uint64_t, cuda_proc_address_status *);
    void *symbol = symbol_of_driver("cuGetProcAddress_v2"), *found = NULL;

    CHECK(symbol);
    memcpy(&find, &symbol, sizeof(find));
    return find(name, &found, CUDA_API_VERSION, 0, NULL) == CUDA_OK ? found : NULL;
}

static void check_limits(void)
{
    size_t stack = 0;

    EXPECT(0, cudaCtxResetPersistingL2Cache());
    EXPECT(0, cudaDeviceSetLimit(CUDA_LIMIT_STACK_SIZE, 8192));
    EXPECT(0, cudaDeviceGetLimit(&stack, CUDA_LIMIT_STACK_SIZE));
    CHECK(stack == 8192);
    EXPECT(CUDA_ERR_UNSUPPORTED_LIMIT, cudaDeviceSetLimit(1000, 1));
    (void)cudaGetLastError();
}

static cudart_error launch_with(struct cuda_launch_attribute attribute)
{
    const struct cuda_launch_attribute both[] = {{.id = CUDA_LAUNCH_PRIORITY, .number = -1},
                                                 attribute};
    const struct cuda_launch_config config = {
        .grid = grid, .block = block, .attributes = both, .attribute_count = 2};

    return cudaLaunchKernelExC(&config, &scaled_add, params);
}

#define LAUNCH_WITH(name, ...)                                                                     \
    launch_with((struct cuda_launch_attribute){.id = CUDA_LAUNCH_##name, __VA_ARGS__})

/* Hints change nothing. An attribute that would change something is carried out or refused. */
static void check_attributes(void)
{
    const struct cuda_launch_config no_list = {.grid = grid, .block = block, .attribute_count = 1};
    int window = 0;

    EXPECT(0, cudaDeviceGetAttribute(&window, 109, 0));
    EXPECT(0, LAUNCH_WITH(IGNORE, .number = 7));
    EXPECT(0, LAUNCH_WITH(PROGRAMMATIC_SERIALIZATION, .number = 1));
    EXPECT(0, LAUNCH_WITH(SHARED_CARVEOUT, .number = 50));
    EXPECT(0, LAUNCH_WITH(CLUSTER_SCHEDULING, .number = 2));
    EXPECT(0, LAUNCH_WITH(CLUSTER_DIMENSION, .cluster = {1, 1, 1}));
    EXPECT(0, LAUNCH_WITH(MEM_SYNC_DOMAIN, .number = 1));
    EXPECT(0, LAUNCH_WITH(COOPERATIVE, .number = 0));
    EXPECT(0, LAUNCH_WITH(ACCESS_POLICY_WINDOW, .window = {.bytes = (size_t)window}));
    EXPECT(0, cudaDeviceSynchronize());
    check_output(3);
    EXPECT(CUDART_INVALID_VALUE,
           LAUNCH_WITH(ACCESS_POLICY_WINDOW, .window = {.bytes = (size_t)window + 1}));
    EXPECT(CUDART_INVALID_VALUE, LAUNCH_WITH(ACCESS_POLICY_WINDOW, .window = {.miss = 2}));
    EXPECT(CUDART_INVALID_VALUE, LAUNCH_WITH(SHARED_CARVEOUT, .number = 101));
    EXPECT(CUDART_INVALID_VALUE, LAUNCH_WITH(SYNCHRONIZATION_POLICY, .number = 1));
    EXPECT(CUDART_INVALID_VALUE, LAUNCH_WITH(CLUSTER_DIMENSION, .cluster = {2, 0, 1}));
    EXPECT(CUDART_INVALID_VALUE, cudaLaunchKernelExC(&no_list, &scaled_add, params));
    EXPECT(CUDART_NOT_SUPPORTED, LAUNCH_WITH(CLUSTER_DIMENSION, .cluster = {2, 1, 1}));
    EXPECT(CUDART_NOT_SUPPORTED, LAUNCH_WITH(PROGRAMMATIC_EVENT, .number = 0));
    EXPECT(CUDART_NOT_SUPPORTED, LAUNCH_WITH(LAUNCH_COMPLETION_EVENT, .number = 0));
    EXPECT(CUDART_NOT_SUPPORTED, launch_with((struct cuda_launch_attribute){.id = 1000}));
    EXPECT(0, cudaDeviceSynchronize());
    EXPECT(0, cudaMemcpy(output, device_c, sizeof(output), CUDART_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++)
        CHECK(output[i] == 0);
    (void)cudaGetLastError();
}

/* A call that the driver may lack is refused, and nothing happens. */
static void check_optional(void)
{
    const cudart_error cooperative =
        of_driver("cuLaunchCooperativeKernel") ? CUDART_OK : CUDART_NOT_SUPPORTED;
    void *managed = NULL;

    EXPECT(cooperative, LAUNCH_WITH(COOPERATIVE, .number = 1));
    EXPECT(cooperative, cudaLaunchCooperativeKernel(&scaled_add, grid, block, params, 0, NULL));
    EXPECT(0, cudaDeviceSynchronize());
    if (cooperative == CUDART_OK)
        check_output(3);
    if (of_driver("cuMemAllocManaged")) {
        EXPECT(0, cudaMallocManaged(&managed, sizeof(output), 1));
        memset(managed, 1, sizeof(output));
        EXPECT(0, cudaFree(managed));
    } else {
        EXPECT(CUDART_NOT_SUPPORTED, cudaMallocManaged(&managed, sizeof(output), 1));
        CHECK(!managed);
    }
    (void)cudaGetLastError();
}

static bool context_is_active(void)
{
    cuda_result (*state)(cuda_device, unsigned *, int *);
    void *found = of_driver("cuDevicePrimaryCtxGetState");
    unsigned flags;
    int active;

    CHECK(found);
    memcpy(&state, &found, sizeof(state));
    CHECK(state(0, &flags, &active) == CUDA_OK);
    return active;
}

enum { LIBRARY_KERNELS = 20000, LIBRARY_ROUNDS = 20 };
static char library_kernels[LIBRARY_KERNELS][16];
static _Atomic bool library_done;

/* A library with many kernels comes and goes. */
static void *come_and_go(void *context)
{
    struct image *image = context;

    for (int round = 0; round < LIBRARY_ROUNDS; round++) {
        void **handle = __cudaRegisterFatBinary(&image->wrapper);

        CHECK(handle);
        for (int i = 0; i < LIBRARY_KERNELS; i++)
            __cudaRegisterFunction(handle, library_kernels[i], NULL, "scaled_add", -1, NULL, NULL,
                                   NULL, NULL, NULL);
        EXPECT(0, cudaLaunchKernel(library_kernels[round], grid, block, params, 0, NULL));
        EXPECT(0, cudaDeviceSynchronize());
        __cudaUnregisterFatBinary(handle);
        EXPECT(CUDART_INVALID_DEVICE_FUNCTION,
               cudaLaunchKernel(library_kernels[round], grid, block, params, 0, NULL));
    }
    library_done = true;
    return NULL;
}

/* Launches find their kernels without a lock, whatever is registered meanwhile. */
static void check_registering_beside_launches(struct image *image)
{
    pthread_t library;

    CHECK(pthread_create(&library, NULL, come_and_go, image) == 0);
    for (int launches = 0; !library_done || launches < 10; launches++) {
        EXPECT(0, cudaLaunchKernel(&scaled_add, grid, block, params, 0, NULL));
        EXPECT(0, cudaDeviceSynchronize());
    }
    CHECK(pthread_join(library, NULL) == 0);
}

/* ---- reset -------------------------------------------------------------------------------- */

static pthread_barrier_t both;

/* Has the context before the reset, and calls again after it. */
static void *outlive_reset(void *unused)
{
    void *memory = NULL;

    (void)unused;
    EXPECT(0, cudaFree(NULL));
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    EXPECT(0, cudaMalloc(&memory, 4096));
    EXPECT(0, cudaMemset(memory, 0, 4096));
    EXPECT(0, cudaDeviceSynchronize()); /* a fill is not waited for, and freeing need not wait */
    EXPECT(0, cudaFree(memory));
    return NULL;
}

static atomic_bool is_running, is_resetting;

/* It may not call, and a reset that waits for it must not keep it from being told. */
static void call_beside_reset(void *unused)
{
    enum { NOT_PERMITTED = 800, CALLS = 10000 };
    void *memory = NULL;

    (void)unused;
    is_running = true;
    while (!is_resetting)
        ;
    for (int i = 0; i < CALLS; i++)
        EXPECT(NOT_PERMITTED, cudaMalloc(&memory, 4096));
    EXPECT(NOT_PERMITTED, cudaDeviceReset());
}

/* Everything goes, and the next call begins anew: with the module's first values, too. */
static void check_reset(void)
{
    pthread_t other;
    void *freed = NULL;
    int device = -1;

    pthread_barrier_init(&both, NULL, 2);
    CHECK(pthread_create(&other, NULL, outlive_reset, NULL) == 0);
    pthread_barrier_wait(&both);
    EXPECT(0, cudaMallocAsync(&freed, 4096, NULL));
    EXPECT(0, cudaFreeAsync(freed, NULL));
    EXPECT(0, launch(&scaled_add));
    EXPECT(0, cudaLaunchHostFunc(NULL, call_beside_reset, NULL));
    while (!is_running)
        ;
    is_resetting = true;
    EXPECT(0, cudaDeviceReset());
    CHECK(!context_is_active());
    reset_by_old_name();
    EXPECT(0, cudaGetDevice(&device));
    CHECK(device == 0);
    pthread_barrier_wait(&both);
    CHECK(pthread_join(other, NULL) == 0);
    make_arrays();
    EXPECT(0, launch(&scaled_add));
    check_output(1);
    EXPECT(0, cudaGetLastError());
}

/* Of the functions that ours does not carry. A test looks at what it says of them. */
cudart_error cudaGraphCreate(void **graph, unsigned flags);
cudart_error cudaIpcGetMemHandle(void *handle, void *memory);

static void check_absent(void)
{
    const struct cudart_channel_format format = cudaCreateChannelDesc(32, 16, 8, 4, 2);
    void *graph = NULL;
    int handle = 7;

    EXPECT(CUDART_NOT_SUPPORTED, cudaGraphCreate(&graph, 0));
    EXPECT(CUDART_NOT_SUPPORTED, cudaGraphCreate(&graph, 0));
    EXPECT(CUDART_NOT_SUPPORTED, cudaGetLastError());
    EXPECT(CUDART_NOT_SUPPORTED, cudaIpcGetMemHandle(&handle, NULL));
    CHECK(!graph && handle == 7);
    CHECK(format.x == 32 && format.y == 16 && format.z == 8 && format.w == 4 && format.kind == 2);
}

/* The library's calls come here too. */
static bool memory_is_short;
API char *strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = memory_is_short ? NULL : malloc(bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* An address that could not be registered is no unknown one. */
static void check_short_memory(void **handle)
{
    const float three = 3;

    memory_is_short = true;
    __cudaRegisterFunction(handle, name_lost, NULL, "scaled_add", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, variable_lost, NULL, "scale", 0, sizeof(float), 0, 0);
    memory_is_short = false;
    __cudaRegisterFunction(NULL, image_lost, NULL, "scaled_add", -1, NULL, NULL, NULL, NULL, NULL);
    EXPECT(CUDART_MEMORY_ALLOCATION, cudaLaunchKernel(name_lost, grid, block, params, 0, NULL));
    EXPECT(CUDART_MEMORY_ALLOCATION, launch(image_lost));
    EXPECT(CUDART_MEMORY_ALLOCATION,
           cudaMemcpyToSymbol(variable_lost, &three, sizeof(three), 0, CUDART_HOST_TO_DEVICE));
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, launch(&never_registered));
    (void)cudaGetLastError();
}

int main(int argc, char **argv)
{
    static struct image image, newer;
    void **handle, **newer_handle;
    int devices;

    image_make(&image, kernels_begin, 75);
    image_make(&newer, kernels_begin, 200);
    handle = register_image(&image, &scaled_add, "scaled_add");
    __cudaRegisterFunction(handle, &not_there, NULL, "not_there", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &scale, NULL, "scale", 0, sizeof(float), 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    newer_handle = register_image(&newer, &foreign, "scaled_add");
    __cudaRegisterFatBinaryEnd(newer_handle);

    if (argc > 1 && strcmp(argv[1], "no-driver") == 0) {
        EXPECT(CUDART_INSUFFICIENT_DRIVER, cudaGetDeviceCount(&devices));
        EXPECT(CUDART_INSUFFICIENT_DRIVER, cudaFree(NULL));
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "absent") == 0) {
        check_absent();
        return 0;
    }
    EXPECT(0, cudaGetDeviceCount(&devices));
    CHECK(!context_is_active());
    EXPECT(0, cudaFree(NULL));
    CHECK(context_is_active());
    check_device();
    check_launches();
    check_errors();
    check_limits();
    check_attributes();
    check_optional();
    check_order();
    check_blocks();
    check_queries(&scaled_add);
    check_libraries(&scaled_add, kernels_begin);
    check_rest(&scaled_add);
    check_per_thread(handle);
    check_short_memory(handle);
    check_registering_beside_launches(&image);
    check_reset();
    EXPECT(CUDA_ERR_NO_BINARY_FOR_GPU, launch(&foreign));
    EXPECT(0, cudaDeviceSynchronize());
    __cudaUnregisterFatBinary(newer_handle);
    __cudaUnregisterFatBinary(handle);
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, launch(&scaled_add));
    EXPECT(0, cudaFree(device_a));
    EXPECT(0, cudaFreeHost(input));
    check_parts();
    check_managed_variables();
    return 0;
}
