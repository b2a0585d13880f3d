/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: of calls that do not wait, most come back within 50 ms */
/*
 * Calls that wait for a kernel that runs, and the calls behind them. Every case is a
 * process, for settings are read once; in each an endless kernel runs until the test
 * writes its flag.
 */
#include "tests/unit/softgpu/kernels.h"

#include <pthread.h>
#include <sys/mman.h>

static uint32_t *flag;
static cuda_stream busy, other;
static cuda_device_ptr plain, words;
static void *pages, *pinned, *registered;
static cuda_module spare;
static cuda_green_ctx green;
static cuda_resource_desc desc;
static cuda_function deep;
static cuda_device_ptr reserved;
static cuda_mem_handle handle;

/* deep(): a kilobyte of local memory is what a thread has to begin with; this needs two. */
static const char deep_ptx[] = ".version 7.0\n"
                               ".target sm_70\n"
                               ".address_size 64\n"
                               ".visible .entry deep()\n"
                               "{\n"
                               "    .local .align 8 .b8 depot[2048];\n"
                               "    .reg .b32 %r<2>;\n"
                               "    mov.u32 %r1, 1;\n"
                               "    st.local.u32 [depot], %r1;\n"
                               "    ret;\n"
                               "}\n";

static const cuda_mem_allocation_prop prop = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                              .location = {CUDA_MEM_LOCATION_DEVICE, 0}};

enum { STEP = 2 << 20 };

static void load_module(void)
{
    cuda_module module;

    CHECK(cuModuleLoadData(&module, kernels_ptx) == CUDA_OK);
}

static void unload_module(void)
{
    CHECK(cuModuleUnload(spare) == CUDA_OK);
}

static void free_plain(void)
{
    CHECK(cuMemFree_v2(plain) == CUDA_OK);
}

static void free_host(void)
{
    CHECK(cuMemFreeHost(pinned) == CUDA_OK);
}

static void unregister(void)
{
    CHECK(cuMemHostUnregister(registered) == CUDA_OK);
}

static void create_stream(void)
{
    cuda_stream stream;

    CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
}

static void create_green_stream(void)
{
    cuda_stream stream;

    CHECK(cuGreenCtxStreamCreate(&stream, green, CUDA_STREAM_NON_BLOCKING, 0) == CUDA_OK);
}

static cuda_stream spare_stream;

static void destroy_stream(void)
{
    CHECK(cuStreamDestroy_v2(spare_stream) == CUDA_OK);
}

static void grow_local(void)
{
    CHECK(launch(deep, 1, 32, other, NULL) == CUDA_OK);
}

static cuda_stream green_stream;

static void grow_green(void)
{
    CHECK(launch(deep, 1, 32, green_stream, NULL) == CUDA_OK);
}

static void limit_stack(void)
{
    CHECK(cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 4096) == CUDA_OK);
}

static void register_pages(void)
{
    CHECK(cuMemHostRegister_v2(pages, 4096, 0) == CUDA_OK);
}

static void map_memory(void)
{
    const cuda_mem_access_desc access = {.location = {CUDA_MEM_LOCATION_DEVICE, 0},
                                         .flags = CUDA_MEM_ACCESS_READWRITE};

    CHECK(cuMemMap(reserved, STEP, 0, handle, 0) == CUDA_OK);
    CHECK(cuMemSetAccess(reserved, STEP, &access, 1) == CUDA_OK);
    CHECK(cuMemUnmap(reserved, STEP) == CUDA_OK);
}

static void create_green(void)
{
    cuda_green_ctx made;

    CHECK(cuGreenCtxCreate(&made, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK);
    CHECK(cuGreenCtxDestroy(made) == CUDA_OK);
}

static void allow_shared(void)
{
    CHECK(cuFuncSetAttribute(kernels.store, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024) ==
          CUDA_OK);
}

static void launch_other(void)
{
    CHECK(launch_store(words, 1, 1, 32, other) == CUDA_OK);
}

static void copy_other(void)
{
    CHECK(cuMemsetD32Async(words, 1, 32, other) == CUDA_OK);
}

static void record_other(void)
{
    cuda_event event;

    CHECK(cuEventCreate(&event, 0) == CUDA_OK);
    CHECK(cuEventRecord(event, other) == CUDA_OK);
}

static void write_other(void)
{
    CHECK(cuStreamWriteValue32_v2(other, words, 1, 0) == CUDA_OK);
}

typedef void driver_call(void);

/* The last three are the unsure ones, which drain too unless a test says otherwise. */
enum { UNSURE = 3 };
static driver_call *const draining[] = {
    load_module, unload_module, free_plain,    free_host,           unregister,    grow_local,
    limit_stack, create_green,  create_stream, create_green_stream, destroy_stream};
static driver_call *const locking[] = {register_pages, map_memory, allow_shared};
static driver_call *const submitting[] = {launch_other, copy_other, record_other, write_other};

/* One call on a thread of its own. */
struct caller {
    pthread_t thread;
    driver_call *call;
    atomic_bool back;
};

static void *caller_main(void *user)
{
    struct caller *caller = user;

    CHECK(cuCtxSetCurrent(kernels.context) == CUDA_OK);
    caller->call();
    atomic_store(&caller->back, true);
    return NULL;
}

static void start_call(struct caller *caller, driver_call *call)
{
    caller->call = call;
    atomic_init(&caller->back, false);
    CHECK(pthread_create(&caller->thread, NULL, caller_main, caller) == 0);
}

/* Long enough for a call that does not wait, short where it is known that it will. */
static bool comes_back(struct caller *caller, unsigned milliseconds)
{
    for (unsigned i = 0; i < milliseconds && !atomic_load(&caller->back); i++)
        usleep(1000);
    return atomic_load(&caller->back);
}

enum { SOON = 20, EVER = 10000 };

static void prepare(void)
{
    cuda_dev_resource all, part;
    cuda_module module;
    unsigned groups = 1;

    CHECK(kernels_open() == 0);
    CHECK(cuMemAllocHost_v2((void **)&flag, 4096) == CUDA_OK);
    CHECK(cuStreamCreate(&busy, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuStreamCreate(&spare_stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&plain, 4096) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&words, 4096) == CUDA_OK);
    CHECK(cuMemAllocHost_v2(&pinned, 4096) == CUDA_OK);
    pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    registered = (char *)pages + 4096;
    CHECK(cuMemHostRegister_v2(registered, 4096, 0) == CUDA_OK);
    CHECK(cuModuleLoadData(&spare, kernels_ptx) == CUDA_OK);
    CHECK(cuModuleLoadData(&module, deep_ptx) == CUDA_OK);
    CHECK(cuModuleGetFunction(&deep, module, "deep") == CUDA_OK);
    CHECK(cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM) == CUDA_OK);
    CHECK(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, 8) == CUDA_OK);
    CHECK(cuDevResourceGenerateDesc(&desc, &part, 1) == CUDA_OK);
    CHECK(cuGreenCtxCreate(&green, desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM) == CUDA_OK);
    CHECK(cuMemAddressReserve(&reserved, STEP, 0, 0, 0) == CUDA_OK);
    CHECK(cuMemCreate(&handle, STEP, &prop, 0) == CUDA_OK);
}

static void run_endless(void)
{
    *flag = 0;
    CHECK(launch_spin((uintptr_t)flag, busy) == CUDA_OK);
}

static void end_endless(void)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    CHECK(cuStreamSynchronize(busy) == CUDA_OK);
}

/* The call waits for the kernel, and a submission on another stream waits behind the call. */
static void waits(driver_call *call, struct caller *behind, unsigned count)
{
    struct caller caller;

    run_endless();
    start_call(&caller, call);
    CHECK(!comes_back(&caller, SOON));
    for (unsigned i = 0; i < count; i++)
        start_call(&behind[i], submitting[i]);
    for (unsigned i = 0; i < count; i++)
        CHECK(!comes_back(&behind[i], SOON));
    /* Questions are answered meanwhile. */
    CHECK(cuStreamQuery(busy) == CUDA_ERR_NOT_READY);
    end_endless();
    CHECK(comes_back(&caller, EVER));
    pthread_join(caller.thread, NULL);
    for (unsigned i = 0; i < count; i++) {
        CHECK(comes_back(&behind[i], EVER));
        pthread_join(behind[i].thread, NULL);
    }
}

/* All of them come back beside the kernel. */
static void do_not_wait(driver_call *const *calls, size_t count)
{
    run_endless();
    for (size_t i = 0; i < count; i++) {
        struct caller caller;

        start_call(&caller, calls[i]);
        CHECK(comes_back(&caller, EVER));
        pthread_join(caller.thread, NULL);
    }
    CHECK(cuStreamQuery(busy) == CUDA_ERR_NOT_READY);
    end_endless();
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static void body_draining(void)
{
    struct caller behind[COUNT(submitting)];

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    prepare();
    do_not_wait(locking, COUNT(locking));
    do_not_wait(submitting, COUNT(submitting));
    waits(draining[0], behind, COUNT(submitting));
    for (size_t i = 1; i < COUNT(draining); i++)
        waits(draining[i], behind, 1);
    /* The local memory is there now. */
    do_not_wait(&(driver_call *){grow_local}, 1);
}

static void draining_calls_wait_and_hold_up_submissions(void **state)
{
    (void)state;
    in_child(body_draining);
}

static void body_locking_drains(void)
{
    struct caller behind[COUNT(submitting)];

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    setenv("SOFTGPU_LOCKING_DRAINS", "1", 1);
    prepare();
    for (size_t i = 0; i < COUNT(locking); i++)
        waits(locking[i], behind, 1);
}

static void locking_calls_can_be_made_to_wait_too(void **state)
{
    (void)state;
    in_child(body_locking_drains);
}

/* Of the draining calls these alone do not wait. */
static void body_unsure(void)
{
    struct caller behind;
    size_t sure = COUNT(draining) - UNSURE;

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    setenv("SOFTGPU_UNSURE_DRAINS", "0", 1);
    prepare();
    do_not_wait(&draining[sure], UNSURE);
    waits(create_green, &behind, 1);
}

/* A driver that waits in them does so each time. */
static void body_unsure_always(void)
{
    struct caller behind;

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "0", 1);
    setenv("SOFTGPU_UNSURE_DRAINS", "1", 1);
    prepare();
    for (int i = 0; i < 8; i++)
        waits(create_stream, &behind, 1);
    do_not_wait(&(driver_call *){load_module}, 1);
}

static void unsure_calls_wait_always_or_never(void **state)
{
    (void)state;
    in_child(body_unsure);
    in_child(body_unsure_always);
}

static void body_named(void)
{
    struct caller behind[COUNT(submitting)];

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    setenv("SOFTGPU_DRAINS", "cuMemHostRegister  cuFuncSetAttribute", 1);
    prepare();
    do_not_wait(draining, COUNT(draining));
    waits(register_pages, behind, 1);
    waits(allow_shared, behind, 1);
    do_not_wait(&(driver_call *){create_green}, 1);
}

static void body_misspelt(void)
{
    setenv("SOFTGPU_DRAINS", "cuMemHostRegister cuMemHostRegiste", 1);
    CHECK(cuInit(0) == CUDA_ERR_INVALID_VALUE);
}

static void the_calls_that_wait_can_be_named(void **state)
{
    (void)state;
    in_child(body_named);
    in_child(body_misspelt);
}

/* Calls that take memory away wait in any case where there is no lock. */
static void body_no_lock(void)
{
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    prepare();
    for (size_t i = 0; i < COUNT(draining); i++)
        if (draining[i] == free_plain || draining[i] == free_host || draining[i] == unregister)
            waits(draining[i], NULL, 0);
        else
            do_not_wait(&draining[i], 1);
}

static void without_the_lock_only_what_takes_memory_away_waits(void **state)
{
    (void)state;
    in_child(body_no_lock);
}

static void body_never(void)
{
    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "0", 1);
    setenv("SOFTGPU_UNSURE_DRAINS", "0", 1);
    prepare();
    do_not_wait(draining, COUNT(draining));
}

/* Half of them: of forty calls some wait and some don't. */
static void body_sometimes(void)
{
    unsigned waited = 0;

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "50", 1);
    setenv("SOFTGPU_UNSURE_DRAINS", "0", 1);
    setenv("SOFTGPU_SEED", "5", 1);
    prepare();
    for (int i = 0; i < 40; i++) {
        struct caller caller;

        run_endless();
        start_call(&caller, create_green);
        waited += !comes_back(&caller, 50);
        end_endless();
        CHECK(comes_back(&caller, EVER));
        pthread_join(caller.thread, NULL);
    }
    CHECK(waited > 5 && waited < 35);
}

static void a_draining_call_sometimes_does_not_wait(void **state)
{
    (void)state;
    in_child(body_never);
    in_child(body_sometimes);
}

/* Neither the limit nor a launch elsewhere makes room in a green context. */
static void body_apart(void)
{
    struct caller behind;

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "100", 1);
    setenv("SOFTGPU_LIMIT_RESERVES", "0", 1);
    setenv("SOFTGPU_LOCAL_APART", "1", 1);
    prepare();
    CHECK(cuGreenCtxStreamCreate(&green_stream, green, CUDA_STREAM_NON_BLOCKING, 0) == CUDA_OK);
    limit_stack();
    waits(grow_green, &behind, 1);
    do_not_wait(&(driver_call *){grow_green}, 1);
    waits(grow_local, &behind, 1);
    do_not_wait(&(driver_call *){grow_local}, 1);
}

static void local_memory_can_be_apart(void **state)
{
    (void)state;
    in_child(body_apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draining_calls_wait_and_hold_up_submissions),
        cmocka_unit_test(locking_calls_can_be_made_to_wait_too),
        cmocka_unit_test(unsure_calls_wait_always_or_never),
        cmocka_unit_test(the_calls_that_wait_can_be_named),
        cmocka_unit_test(without_the_lock_only_what_takes_memory_away_waits),
        cmocka_unit_test(a_draining_call_sometimes_does_not_wait),
        cmocka_unit_test(local_memory_can_be_apart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
