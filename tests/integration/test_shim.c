/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a call that does not wait comes back beside an endless kernel within ten seconds */
/* light: it waits beside an endless kernel */
/* draining: not, for it says itself which calls of the driver wait */
/*
 * Two drivers that hold up others are the same to a program: the software GPU with its context's
 * lock, and tests/programs/shim over a software GPU without one. Of each call that either can make
 * wait: it waits for a kernel that runs, and a launch on another stream waits behind it.
 *
 * Every case is a process, for settings are read once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"
#include "server/softgpu/context_call.h"
#include "tests/support/kernels.h"
#include "tests/support/server.h"

enum { PAGE = 4096, STEP = 2 << 20, SOON_MS = 30, EVER_MS = 10000 };

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == CUDA_OK)

static struct cuda_driver cuda;
static cuda_context context;
static _Atomic uint32_t *flag;
static cuda_stream busy, other, spare_stream;
static cuda_device_ptr plain, word, reserved, mapped, leaving;
static void *pages, *pinned;
static cuda_module module, spare;
static cuda_function until, deep;
static cuda_mem_handle memory;
static cuda_resource_desc part;
static cuda_green_ctx green, spare_green;
static const cuda_mem_access_desc access_all = {.location = {CUDA_MEM_LOCATION_DEVICE, 0},
                                                .flags = CUDA_MEM_ACCESS_READWRITE};

/* ---- the calls ---- */

static void set_limit(void)
{
    OK(cuda.cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 2048));
}

static void set_function(void)
{
    OK(cuda.cuFuncSetAttribute(until, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
}

static void green_create(void)
{
    cuda_green_ctx made;
    OK(cuda.cuGreenCtxCreate(&made, part, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
}

static void green_destroy(void)
{
    OK(cuda.cuGreenCtxDestroy(spare_green));
}

static void green_stream(void)
{
    cuda_stream stream;
    OK(cuda.cuGreenCtxStreamCreate(&stream, green, CUDA_STREAM_NON_BLOCKING, 0));
}

static void grow_local(void)
{
    void *parameters[] = {&word};
    OK(cuda.cuLaunchKernel(deep, 1, 1, 1, 1, 1, 1, 0, other, parameters, NULL));
}

static void alloc(void)
{
    cuda_device_ptr made;
    OK(cuda.cuMemAlloc(&made, PAGE));
}

static void free_plain(void)
{
    OK(cuda.cuMemFree(plain));
}

static void free_host(void)
{
    OK(cuda.cuMemFreeHost(pinned));
}

static void alloc_host(void)
{
    void *made;
    OK(cuda.cuMemHostAlloc(&made, PAGE, 0));
}

static void register_pages(void)
{
    OK(cuda.cuMemHostRegister(pages, PAGE, 0));
}

static void unregister(void)
{
    OK(cuda.cuMemHostUnregister((char *)pages + PAGE));
}

static void map(void)
{
    OK(cuda.cuMemMap(reserved, STEP, 0, memory, 0));
}

static void set_access(void)
{
    OK(cuda.cuMemSetAccess(mapped, STEP, &access_all, 1));
}

static void unmap(void)
{
    OK(cuda.cuMemUnmap(leaving, STEP));
}

static void load(void)
{
    cuda_module made;
    OK(cuda.cuModuleLoadDataEx(&made, kernels_ptx, 0, NULL, NULL));
}

static void unload(void)
{
    OK(cuda.cuModuleUnload(spare));
}

static void create_stream(void)
{
    cuda_stream made;
    OK(cuda.cuStreamCreateWithPriority(&made, CUDA_STREAM_NON_BLOCKING, 0));
}

static void destroy_stream(void)
{
    OK(cuda.cuStreamDestroy(spare_stream));
}

static void launch_other(void)
{
    uint64_t done = (uint64_t)(uintptr_t)flag + 64; /* not 0 */
    void *parameters[] = {&done};
    OK(cuda.cuLaunchKernel(until, 1, 1, 1, 1, 1, 1, 0, other, parameters, NULL));
}

typedef void driver_call(void);

static const struct {
    const char *name;
    driver_call *call;
} calls[] = {
    {"cuCtxSetLimit", set_limit},
    {"cuFuncSetAttribute", set_function},
    {"cuGreenCtxCreate", green_create},
    {"cuGreenCtxDestroy", green_destroy},
    {"cuGreenCtxStreamCreate", green_stream},
    {"cuLaunchKernel", grow_local},
    {"cuMemAlloc", alloc},
    {"cuMemFree", free_plain},
    {"cuMemFreeHost", free_host},
    {"cuMemHostAlloc", alloc_host},
    {"cuMemHostRegister", register_pages},
    {"cuMemHostUnregister", unregister},
    {"cuMemMap", map},
    {"cuMemSetAccess", set_access},
    {"cuMemUnmap", unmap},
    {"cuModuleLoadDataEx", load},
    {"cuModuleUnload", unload},
    {"cuStreamCreateWithPriority", create_stream},
    {"cuStreamDestroy", destroy_stream},
};
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
_Static_assert(sizeof calls / sizeof *calls == CONTEXT_CALLS_COUNT, "each call has its row");

/* ---- a device with something to call about ---- */

static void prepare_memory(void)
{
    const cuda_mem_allocation_prop prop = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                           .location = access_all.location};
    void *page;
    OK(cuda.cuMemHostAlloc(&page, PAGE, 0));
    flag = page;
    atomic_store(&flag[16], 1);
    OK(cuda.cuMemHostAlloc(&pinned, PAGE, 0));
    OK(cuda.cuMemAlloc(&plain, PAGE));
    OK(cuda.cuMemAlloc(&word, PAGE));
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    OK(cuda.cuMemHostRegister((char *)pages + PAGE, PAGE, 0));
    OK(cuda.cuMemAddressReserve(&reserved, STEP, 0, 0, 0));
    OK(cuda.cuMemAddressReserve(&mapped, STEP, 0, 0, 0));
    OK(cuda.cuMemAddressReserve(&leaving, STEP, 0, 0, 0));
    OK(cuda.cuMemCreate(&memory, STEP, &prop, 0));
    OK(cuda.cuMemMap(mapped, STEP, 0, memory, 0));
    OK(cuda.cuMemMap(leaving, STEP, 0, memory, 0));
}

static void prepare(void)
{
    cuda_dev_resource all, group;
    unsigned groups = 1;
    OK(cuda.cuInit(0));
    OK(cuda.cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuda.cuCtxSetCurrent(context));
    prepare_memory();
    OK(cuda.cuModuleLoadDataEx(&module, kernels_ptx, 0, NULL, NULL));
    OK(cuda.cuModuleLoadDataEx(&spare, kernels_ptx, 0, NULL, NULL));
    OK(cuda.cuModuleGetFunction(&until, module, "until"));
    OK(cuda.cuModuleGetFunction(&deep, module, "deep"));
    OK(cuda.cuStreamCreateWithPriority(&busy, CUDA_STREAM_NON_BLOCKING, 0));
    OK(cuda.cuStreamCreateWithPriority(&other, CUDA_STREAM_NON_BLOCKING, 0));
    OK(cuda.cuStreamCreateWithPriority(&spare_stream, CUDA_STREAM_NON_BLOCKING, 0));
    OK(cuda.cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM));
    OK(cuda.cuDevSmResourceSplitByCount(&group, &groups, &all, NULL, 0, 8));
    OK(cuda.cuDevResourceGenerateDesc(&part, &group, 1));
    OK(cuda.cuGreenCtxCreate(&green, part, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
    OK(cuda.cuGreenCtxCreate(&spare_green, part, 0, CUDA_GREEN_CTX_DEFAULT_STREAM));
}

/* ---- one call beside a kernel that does not end ---- */

struct caller {
    pthread_t thread;
    driver_call *call;
    atomic_bool back;
};

static void *caller_main(void *argument)
{
    struct caller *caller = argument;
    OK(cuda.cuCtxSetCurrent(context));
    caller->call();
    atomic_store(&caller->back, true);
    return NULL;
}

static void caller_start(struct caller *caller, driver_call *call)
{
    caller->call = call;
    atomic_init(&caller->back, false);
    CHECK(pthread_create(&caller->thread, NULL, caller_main, caller) == 0);
}

static bool comes_back(struct caller *caller, unsigned milliseconds)
{
    for (unsigned i = 0; i < milliseconds && !atomic_load(&caller->back); i++)
        usleep(1000);
    return atomic_load(&caller->back);
}

static void caller_end(struct caller *caller)
{
    CHECK(comes_back(caller, EVER_MS));
    CHECK(pthread_join(caller->thread, NULL) == 0);
}

static void endless_start(void)
{
    uint64_t address = (uint64_t)(uintptr_t)flag;
    void *parameters[] = {&address};
    atomic_store(flag, 0);
    OK(cuda.cuLaunchKernel(until, 1, 1, 1, 1, 1, 1, 0, busy, parameters, NULL));
}

static void endless_end(void)
{
    atomic_store(flag, 1);
    OK(cuda.cuStreamSynchronize(busy));
}

/* The call comes back beside the kernel, and so does a launch behind it. */
static void stops_nobody(driver_call *call)
{
    struct caller caller, behind;
    endless_start();
    caller_start(&caller, call);
    caller_end(&caller);
    caller_start(&behind, launch_other);
    caller_end(&behind);
    CHECK(cuda.cuStreamQuery(busy) == CUDA_ERR_NOT_READY);
    endless_end();
}

static void stops_all(driver_call *call)
{
    struct caller caller, behind;
    endless_start();
    caller_start(&caller, call);
    CHECK(!comes_back(&caller, SOON_MS));
    caller_start(&behind, launch_other);
    CHECK(!comes_back(&behind, SOON_MS));
    CHECK(cuda.cuStreamQuery(busy) == CUDA_ERR_NOT_READY);
    endless_end();
    caller_end(&caller);
    caller_end(&behind);
}

/* ---- both drivers ---- */

static void open_driver(const char *path)
{
    struct error why;
    char file[512];
    CHECK(realpath(server_build_path(path, file, sizeof file), file));
    CHECK(cuda_driver_open(&cuda, file, &why) == 0);
    prepare();
}

/* Names the one call that waits. */
static void open_softgpu(const char *waits)
{
    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    setenv("SOFTGPU_DRAINS", waits, 1);
    open_driver("lib/softgpu/libcuda.so.1");
}

static void open_shim(const char *waits)
{
    char path[512], below[512];
    CHECK(realpath(server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path), below));
    setenv("SHIM_DRIVER", below, 1);
    setenv("SHIM_WAITS", waits, 1);
    setenv("SOFTGPU_CONTEXT_LOCK", "0", 1);
    open_driver("tests/programs/shim/libcuda.so.1");
}

typedef void open_waiting(const char *waits);

static void in_child(open_waiting *open, size_t which)
{
    int status = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        size_t next = (which + 1) % COUNT(calls);
        open(calls[which].name);
        driver_call *call = calls[next].call;
        /* Taking memory away waits on the software GPU without a lock too. */
        if (call != free_plain && call != free_host && call != unregister)
            stops_nobody(call);
        stops_all(calls[which].call);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("%s: status %d", calls[which].name, status);
}

static void the_softgpu_makes_each_call_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(calls); i++)
        in_child(open_softgpu, i);
}

static void the_shim_makes_the_same_calls_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(calls); i++)
        in_child(open_shim, i);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_softgpu_makes_each_call_wait),
        cmocka_unit_test(the_shim_makes_the_same_calls_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
