/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The library, devices and contexts. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

void check_before_init(void)
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

void check_devices(void)
{
    int count, value;
    cuda_device device;
    char name[64], pci[24];
    const char *text;
    OK(cuDeviceGetCount(&count));
    CHECK(count == 1);
    OK(cuDeviceGet(&device, 0));
    EXPECT(CUDA_ERR_INVALID_DEVICE, cuDeviceGet(&device, 1));
    EXPECT(CUDA_ERR_INVALID_DEVICE, cuDeviceGet(&device, -1));
    /* NVIDIA's own words, with which a test of its bindings compares. */
    OK(cuGetErrorString(CUDA_ERR_INVALID_DEVICE, &text));
    CHECK(!strcmp(text, "invalid device ordinal"));
    OK(cuDeviceGetName(name, sizeof name, 0));
    CHECK(*name);
    OK(cuDeviceGetPCIBusId(pci, sizeof pci, 0));
    device = -1;
    OK(cuDeviceGetByPCIBusId(&device, pci));
    CHECK(device == 0);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_WARP_SIZE, 0));
    CHECK(value == 32);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_MANAGED_MEMORY, 0));
    CHECK(value == 1);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_COOPERATIVE_LAUNCH, 0));
    CHECK(value == 1);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_HOST_NUMA_ID, 0));
    CHECK(value == -1);
    OK(cuDeviceGetAttribute(&value, CUDA_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR, 0));
    CHECK(value >= 16);
    OK(cuDeviceGetExecAffinitySupport(&value, 0, 0));
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
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuStreamBatchMemOp_v2(NULL, 0, NULL, 0));
    OK(cuCtxSetCurrent(primary));
    OK(cuMemAlloc_v2(&ptr, 1));
    OK(cuMemFree_v2(ptr));
    return NULL;
}

/* The server's context serves all, so a client sets no limit of it that others would feel. */
static void check_limits(void)
{
    if (!is_served())
        return;
    const cuda_limit depth = (cuda_limit)3, persisting = (cuda_limit)6, behind = (cuda_limit)11;
    size_t value = 77;
    OK(cuCtxGetLimit(&value, CUDA_LIMIT_STACK_SIZE));
    CHECK(value == 1024);
    OK(cuCtxSetLimit(CUDA_LIMIT_MALLOC_HEAP_SIZE, 8 << 20));
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuCtxSetLimit(CUDA_LIMIT_MALLOC_HEAP_SIZE, (8 << 20) + 1));
    EXPECT(CUDA_ERR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, depth));
    EXPECT(CUDA_ERR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&value, behind));
    OK(cuCtxGetLimit(&value, persisting));
    CHECK(value == 0);
    OK(cuCtxSetLimit(persisting, 0));
    OK(cuCtxResetPersistingL2Cache());
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuCtxSetLimit(persisting, 1));
}

/* Where the primary context is not alive, objects name one that is. */
static void check_created_alone(void)
{
    cuda_context made, named = NULL, popped;
    cuda_device_ptr ptr;
    OK(cuCtxCreate_v2(&made, 0, 0));
    OK(cuMemAlloc_v2(&ptr, 1));
    OK(cuCtxPopCurrent_v2(&popped));
    OK(cuPointerGetAttribute(&named, CUDA_POINTER_CONTEXT, ptr));
    CHECK(named == made);
    OK(cuCtxSetCurrent(named));
    OK(cuMemFree_v2(ptr));
    OK(cuCtxDestroy_v2(made));
}

/* A context that is attached is destroyed by its last user. */
static void check_users(void)
{
    cuda_context made, again, other, current;
    OK(cuCtxCreate_v2(&made, 0, 0));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuCtxAttach(&again, 1));
    OK(cuCtxAttach(&again, 0));
    CHECK(again == made);
    OK(cuCtxCreate_v2(&other, 0, 0));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuCtxDetach(made)); /* not the thread's current one */
    OK(cuCtxDetach(other));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuCtxDetach(other));
    OK(cuCtxDetach(made));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made);
    OK(cuCtxDetach(again));
    OK(cuCtxGetCurrent(&current));
    CHECK(current != made);
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxSetCurrent(made));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuCtxAttach(&again, 0)); /* of the primary one */
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuCtxDetach(current));
}

void check_contexts(void)
{
    cuda_context primary, again, made, current;
    unsigned flags;
    int active;
    unsigned long long first, second;
    pthread_t thread;
    check_created_alone();
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
    cuda_ctx_create_params parameters = {.affinity_count = 1};
    EXPECT(CUDA_ERR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v4(&made, &parameters, 0, 0));
    parameters = (cuda_ctx_create_params){.graphics = &made};
    EXPECT(CUDA_ERR_NOT_SUPPORTED, cuCtxCreate_v4(&made, &parameters, 0, 0));
    parameters = (cuda_ctx_create_params){.affinities = NULL};
    OK(cuCtxCreate_v4(&made, &parameters, 0, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == made && made != primary);
    EXPECT(CUDA_ERR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v3(&current, &flags, 1, 0, 0));
    OK(cuCtxSetFlags(CUDA_CTX_SCHED_YIELD));
    OK(cuCtxGetFlags(&flags));
    CHECK(flags == CUDA_CTX_SCHED_YIELD);
    OK(cuCtxSetCacheConfig(1));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuCtxSetCacheConfig(4));
    EXPECT(CUDA_ERR_INVALID_DEVICE, cuCtxEnablePeerAccess(primary, 0));
    EXPECT(CUDA_ERR_PEER_ACCESS_NOT_ENABLED, cuCtxDisablePeerAccess(primary));
    check_limits();
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
    check_users();
    CHECK(!pthread_create(&thread, NULL, check_other_thread, primary));
    pthread_join(thread, NULL);
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(CUDA_ERR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
}

/* ---- threads that leave and enter a device ---- */

static atomic_bool entered;

/* Holds a stream up until the other thread is on the device, or no longer: it may wait for this
 * function's end. */
static void hold_up(void *unused)
{
    (void)unused;
    for (int i = 0; i < 150 && !atomic_load(&entered); i++)
        usleep(1000);
}

static void *destroy(void *context)
{
    OK(cuCtxDestroy_v2(context));
    return NULL;
}

/* While one thread destroys a device's last context, and waits for its work, another thread makes
 * the next one: what that one gets is its own, and stays. */
void check_crossing(void)
{
    cuda_context last, next;
    cuda_device_ptr memory, pooled;
    unsigned char *host;
    unsigned version;
    pthread_t thread;
    OK(cuCtxCreate_v2(&last, 0, 0));
    OK(cuLaunchHostFunc(NULL, hold_up, NULL));
    OK(cuCtxPopCurrent_v2(&last));
    CHECK(!pthread_create(&thread, NULL, destroy, last));
    while (cuCtxGetApiVersion(last, &version) == CUDA_OK)
        usleep(1000);
    OK(cuCtxCreate_v2(&next, 0, 0));
    OK(cuMemAlloc_v2(&memory, BYTES));
    OK(cuMemAllocAsync(&pooled, BYTES, NULL));
    OK(cuMemAllocHost_v2((void **)&host, BYTES));
    atomic_store(&entered, true);
    pthread_join(thread, NULL);
    memset(host, 7, BYTES);
    OK(cuMemcpyHtoD_v2(memory, host, BYTES));
    OK(cuMemFree_v2(memory));
    OK(cuMemFreeAsync(pooled, NULL));
    OK(cuMemFreeHost(host));
    OK(cuCtxDestroy_v2(next));
}

/* A reset gives back all memory, and the context can be used anew. */
void check_reset(void)
{
    struct work work;
    size_t before, after, total;
    begin(&work);
    OK(cuMemGetInfo_v2(&before, &total));
    if (is_served())
        OK(cuMemHostRegister_v2(&before, sizeof before, 0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    EXPECT(CUDA_ERR_CONTEXT_IS_DESTROYED, cuMemGetInfo_v2(&after, &total));
    begin(&work);
    OK(cuMemGetInfo_v2(&after, &total));
    CHECK(before == after);
    if (is_served()) {
        OK(cuMemHostRegister_v2(&before, sizeof before, 0));
        OK(cuMemHostUnregister(&before));
    }
    demand(&work, 7);
}

/* A probe of a call that is not carried is told so, and one of another version gets that. */
void check_lookup(void)
{
    static const char *const refused[] = {"cuGraphCreate", "cuMemBatchDecompressAsync",
                                          "cuIpcGetMemHandle", "cuTexObjectCreate"};
    cuda_proc_address_status status;
    void *fn = NULL;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        EXPECT(CUDA_ERR_NOT_FOUND, cuGetProcAddress_v2(refused[i], &fn, 13000, 0, &status));
        CHECK(!fn && status == CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    }
    /* The worker needs green contexts of the software GPU. */
    EXPECT(is_served() ? CUDA_ERR_NOT_FOUND : CUDA_OK,
           cuGetProcAddress_v2("cuGreenCtxCreate", &fn, 13000, 0, &status));
    OK(cuGetProcAddress_v2("cuCtxSynchronize", &fn, 12000, 0, &status));
    CHECK(fn == (void *)cuCtxSynchronize && status == CUDA_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress_v2("cuCtxSynchronize", &fn, 13000, 0, NULL));
    CHECK(fn == (void *)cuCtxSynchronize_v2);
    EXPECT(CUDA_ERR_NOT_FOUND, cuGetProcAddress_v2("cuCtxSynchronize", &fn, 1999, 0, &status));
    CHECK(status == CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    /* Another ABI than the one that is asked for, which is exported and not carried. */
    EXPECT(CUDA_ERR_NOT_FOUND, cuGetProcAddress_v2("cuMemAlloc", &fn, 3000, 0, &status));
    CHECK(!fn && status == CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT(CUDA_ERR_NOT_FOUND,
           cuGetProcAddress_v2("cuStreamBeginCapture", &fn, 13000,
                               CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    OK(cuGetProcAddress_v2("cuLaunchKernel", &fn, 13000,
                           CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
    CHECK(fn == (void *)cuLaunchKernel_ptsz);
    OK(cuGetProcAddress_v2("cuMemAlloc", &fn, 13000, CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                           &status));
    CHECK(fn == (void *)cuMemAlloc_v2);
}

void check_fork(void)
{
    pid_t child = fork();
    cuda_device_ptr ptr;
    int status;
    CHECK(child >= 0);
    if (child == 0)
        _exit(cuMemAlloc_v2(&ptr, 1) == CUDA_ERR_NOT_INITIALIZED ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}
