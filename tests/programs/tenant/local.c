/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Questions whose answers the process has. A tracer sees a line for each, and the system calls of
 * its answer. The size of the memory depends on others, so it is none of them. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/cuda/memory_pool.h"
#include "tests/programs/tenant/tenant.h"

static struct tenant tenant;
static cuda_stream stream;
static cuda_event event;
static cuda_device_ptr device_memory;
static void *host_memory, *managed_memory;
static cuda_mem_pool pool;

static union {
    int number;
    unsigned flags;
    size_t bytes;
    unsigned long long id;
    uint64_t address;
    const char *text;
    void *pointer;
    char room[4096];
} out, other;

static void ask_all_attributes(void)
{
    for (int attribute = 1; attribute < 140; attribute++) {
        const int of_driver = (int)cuDeviceGetAttribute(&out.number, attribute, 0);
        CHECK(of_driver == 0 || of_driver == CUDA_ERR_INVALID_VALUE);
    }
}

static void ask_function_attributes(void)
{
    for (int attribute = 0; attribute < 8; attribute++)
        OK(cuFuncGetAttribute(&out.number, attribute, tenant.add));
}

static void ask_pointers(void)
{
    const cuda_device_ptr pointers[] = {device_memory, (cuda_device_ptr)(uintptr_t)host_memory,
                                        (cuda_device_ptr)(uintptr_t)managed_memory};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        OK(cuPointerGetAttribute(&out, CUDA_POINTER_MEMORY_TYPE, pointers[i]));
        OK(cudaPointerGetAttributes(&out, (void *)(uintptr_t)pointers[i]));
        OK(cuMemGetAddressRange_v2(&out.address, &other.bytes, pointers[i]));
    }
}

static void push_and_pop(void)
{
    cuda_context popped;
    OK(cuCtxPushCurrent_v2(tenant.context));
    OK(cuCtxPopCurrent_v2(&popped));
    CHECK(popped == tenant.context);
}

/* One statement each, whose text is the line. */
#define QUESTIONS(X)                                                                               \
    X(cuInit(0))                                                                                   \
    X(cuDriverGetVersion(&out.number))                                                             \
    X(cuGetErrorName(1, &out.text))                                                                \
    X(cuGetErrorString(1, &out.text))                                                              \
    X(cuGetProcAddress_v2("cuMemAlloc", &out.pointer, 12000, 0, NULL))                             \
    X(cuDeviceGet(&out.number, 0))                                                                 \
    X(cuDeviceGetCount(&out.number))                                                               \
    X(cuDeviceGetName(out.room, sizeof out, 0))                                                    \
    X(cuDeviceGetUuid((cuda_uuid *)&out, 0))                                                       \
    X(cuDeviceGetPCIBusId(out.room, sizeof out, 0))                                                \
    X(cuDeviceGetDefaultMemPool((cuda_mem_pool *)&out, 0))                                         \
    X(cuDevicePrimaryCtxGetState(0, &out.flags, &other.number))                                    \
    X(cuCtxGetCurrent((cuda_context *)&out))                                                       \
    X(cuCtxSetCurrent(tenant.context))                                                             \
    X(cuCtxGetDevice(&out.number))                                                                 \
    X(cuCtxGetFlags(&out.flags))                                                                   \
    X(cuCtxGetApiVersion(tenant.context, &out.flags))                                              \
    X(cuCtxGetLimit(&out.bytes, 0))                                                                \
    X(cuCtxGetStreamPriorityRange(&out.number, &other.number))                                     \
    X(cuFuncGetName(&out.text, tenant.add))                                                        \
    X(cuFuncGetModule((cuda_module *)&out, tenant.add))                                            \
    X(cuFuncGetParamInfo(tenant.add, 1, &out.bytes, &other.bytes))                                 \
    X(cuModuleGetFunction((cuda_function *)&out, tenant.module, "add"))                            \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor(&out.number, tenant.add, 128, 0))                \
    X(cuOccupancyMaxPotentialBlockSize(&out.number, &other.number, tenant.add, NULL, 0, 0))        \
    X(cuOccupancyAvailableDynamicSMemPerBlock(&out.bytes, tenant.add, 2, 64))                      \
    X(cuMemHostGetDevicePointer_v2(&out.address, host_memory, 0))                                  \
    X(cuMemHostGetFlags(&out.flags, host_memory))                                                  \
    X(cuMemPoolGetAttribute(pool, MEMORY_POOL_USED_CURRENT, &out))                                 \
    X(cuStreamGetCtx(stream, (cuda_context *)&out))                                                \
    X(cuStreamGetFlags(stream, &out.flags))                                                        \
    X(cuStreamGetPriority(stream, &out.number))                                                    \
    X(cuStreamGetId(stream, &out.id))                                                              \
    X(cuStreamQuery(stream))                                                                       \
    X(cuEventQuery(event))                                                                         \
    X(cudaGetDevice(&out.number))                                                                  \
    X(cudaSetDevice(0))                                                                            \
    X(cudaGetDeviceCount(&out.number))                                                             \
    X(cudaDeviceGetAttribute(&out.number, CUDA_ATTR_MULTIPROCESSOR_COUNT, 0))                      \
    X(cudaDeviceGetLimit(&out.bytes, 0))                                                           \
    X(cudaDeviceGetStreamPriorityRange(&out.number, &other.number))                                \
    X(cudaDriverGetVersion(&out.number))                                                           \
    X(cudaRuntimeGetVersion(&out.number))                                                          \
    X(cudaGetLastError())                                                                          \
    X(cudaPeekAtLastError())                                                                       \
    X(cudaFuncGetAttributes((void *)&out, &tenant_add))                                            \
    X(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&out.number, &tenant_add, 128, 0))             \
    X(cudaStreamQuery(stream))                                                                     \
    X(cudaEventQuery(event))                                                                       \
    X((ask_all_attributes(), 0))                                                                   \
    X((ask_function_attributes(), 0))                                                              \
    X((ask_pointers(), 0))                                                                         \
    X((push_and_pop(), 0))

static bool aloud;

static void say(const char *line)
{
    CHECK(!aloud || write(STDERR_FILENO, line, strlen(line)) == (ssize_t)strlen(line));
}

static void ask_all(void)
{
#define ASK(question)                                                                              \
    say("asks " #question "\n");                                                                   \
    OK(question);
    QUESTIONS(ASK)
#undef ASK
    say("asked\n");
}

void ask_what_is_local(void)
{
    tenant_begin(&tenant);
    OK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuMemAlloc_v2(&device_memory, 4096));
    OK(cuMemHostAlloc(&host_memory, 4096, 0));
    OK(cudaMallocManaged(&managed_memory, 4096, 1));
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuEventRecord(event, stream));
    OK(cuCtxSynchronize());
    /* Kernels are loaded, and the driver's answers known, from the first time on. */
    ask_all();
    aloud = true;
    ask_all();
}
