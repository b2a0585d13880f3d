/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Which calls wait for other clients' kernels, and which hold up other threads' launches? One
 * call a step: once on an idle device, once beside a kernel on a partition of its own. A second
 * thread launches empty kernels on another partition all the while.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/ipc/shm.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

/* The kernel lasts this much longer than twice the call alone. */
#define KERNEL_NS UINT64_C(300000000)
/* A launch that takes as long has been held up: a busy host delays a thread by less. */
static const double held_up_ms = 50;
/* A host that keeps a sleeping thread waiting for so long can't say who held up whom. */
static const double busy_host_ms = 10;
enum { OWN, NEIGHBOUR, SPARE, PARTITIONS };

/* The objects that the calls work on; a prepare function fills in what its call needs. */
static struct {
    struct probe_partition partitions[PARTITIONS];
    bool green;
    size_t bytes; /* of what is created, mapped, cleared */
    char *ptx;
    void *cubin;
    cuda_module module;
    cuda_function function;
    void *host;
    cuda_stream stream;
    cuda_green_ctx context;
    cuda_resource_desc desc;
    cuda_mem_handle handle, imported;
    cuda_device_ptr reserved, memory;
    cuda_event event;
    int fd;
} on;

/* ---- the neighbour's launches -------------------------------------------------------- */
static struct {
    atomic_bool stop;
    _Atomic uint64_t worst_call_ns, worst_turn_ns, turns;
} neighbour;

static void raise_worst(_Atomic uint64_t *worst, uint64_t ns)
{
    if (ns > atomic_load(worst))
        atomic_store(worst, ns);
}

/* A call that holds the context's lock may catch this thread in its launch or in its query: both
 * are timed. A turn is from the launch to the sight of its end. */
static void take_turn(cuda_function nothing, cuda_stream stream)
{
    uint64_t began = probe_ns(), call_began = began;
    cuda_result result = cu.cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    raise_worst(&neighbour.worst_call_ns, probe_ns() - call_began);
    if (result != CUDA_OK)
        probe_die("the neighbour's launch: %s", probe_error(result));
    do {
        if (atomic_load(&neighbour.stop))
            return;
        call_began = probe_ns();
        result = cu.cuStreamQuery(stream);
        raise_worst(&neighbour.worst_call_ns, probe_ns() - call_began);
    } while (result == CUDA_ERR_NOT_READY);
    raise_worst(&neighbour.worst_turn_ns, probe_ns() - began);
    atomic_fetch_add(&neighbour.turns, 1);
}

/* A thread that does nothing but sleep: what it oversleeps, the host took, and not the driver. */
static _Atomic uint64_t worst_oversleep_ns;

static void *sleep_until_stopped(void *context)
{
    (void)context;
    while (!atomic_load(&neighbour.stop)) {
        uint64_t began = probe_ns();
        probe_sleep_ms(1);
        raise_worst(&worst_oversleep_ns, probe_ns() - began - 1000000);
    }
    return NULL;
}

static void *launch_until_stopped(void *context)
{
    cuda_context current;
    cu.cuDevicePrimaryCtxRetain(&current, 0);
    cu.cuCtxSetCurrent(current);
    while (!atomic_load(&neighbour.stop)) {
        take_turn(context, on.partitions[NEIGHBOUR].stream);
        usleep(100);
    }
    return NULL;
}

/* ---- the calls ------------------------------------------------------------------------ */
static cuda_result nothing_to_do(void)
{
    return CUDA_OK;
}

/* Text that no cache of compiled code has seen. */
static cuda_result prepare_ptx(void)
{
    static unsigned turn;
    free(on.ptx);
    if (asprintf(&on.ptx, "%s\n// %d %u %llu\n", probe_ptx(), (int)getpid(), turn++,
                 (unsigned long long)probe_ns()) < 0)
        probe_die("no memory");
    return CUDA_OK;
}

static cuda_result load_ptx(void)
{
    return cu.cuModuleLoadData(&on.module, on.ptx);
}

static cuda_result unload(void)
{
    return cu.cuModuleUnload(on.module);
}

static cuda_result prepare_module(void)
{
    prepare_ptx();
    return load_ptx();
}

static cuda_result prepare_cubin(void)
{
    extra_link link;
    size_t size;
    void *cubin;
    if (!extra_has_link(&extra))
        probe_die("the driver has no cuLinkCreate: no cubin can be made here");
    CU(extra.cuLinkCreate(0, NULL, NULL, &link));
    CU(extra.cuLinkAddData(link, EXTRA_JIT_INPUT_PTX, (void *)(uintptr_t)probe_ptx(),
                           strlen(probe_ptx()) + 1, "probe.ptx", 0, NULL, NULL));
    CU(extra.cuLinkComplete(link, &cubin, &size));
    free(on.cubin);
    on.cubin = malloc(size);
    if (!on.cubin)
        probe_die("no memory");
    memcpy(on.cubin, cubin, size);
    CU(extra.cuLinkDestroy(link));
    return CUDA_OK;
}

static cuda_result load_cubin(void)
{
    return cu.cuModuleLoadData(&on.module, on.cubin);
}

static cuda_result prepare_host(void)
{
    struct shm shm;
    if (shm_create(&shm, "gpushare-check", PROBE_REGISTER_STEP) < 0)
        probe_die("no sealed memfd of 64 MiB");
    on.host = shm.base;
    memset(on.host, 1, PROBE_REGISTER_STEP);
    close(shm.fd);
    return CUDA_OK;
}

static cuda_result register_host(void)
{
    return cu.cuMemHostRegister(on.host, PROBE_REGISTER_STEP,
                                CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP);
}

static cuda_result unregister_host(void)
{
    return cu.cuMemHostUnregister(on.host);
}

static cuda_result unmap_host(void)
{
    munmap(on.host, PROBE_REGISTER_STEP);
    return CUDA_OK;
}

static cuda_result unregister_and_unmap_host(void)
{
    cuda_result result = unregister_host();
    unmap_host();
    return result;
}

static cuda_result prepare_registered_host(void)
{
    prepare_host();
    return register_host();
}

static cuda_result create_stream(void)
{
    return cu.cuStreamCreateWithPriority(&on.stream, CUDA_STREAM_NON_BLOCKING, 0);
}

static void need_green(void)
{
    if (!on.green)
        probe_die("this driver has no green contexts");
}

static cuda_result prepare_green(void)
{
    need_green();
    return CUDA_OK;
}

static cuda_result create_green_stream(void)
{
    return cu.cuGreenCtxStreamCreate(&on.stream, on.partitions[SPARE].green,
                                     CUDA_STREAM_NON_BLOCKING, 0);
}

static cuda_result destroy_stream(void)
{
    return cu.cuStreamDestroy(on.stream);
}

static cuda_result prepare_green_stream(void)
{
    need_green();
    return create_green_stream();
}

static cuda_result prepare_desc(void)
{
    static cuda_dev_resource resource;
    need_green();
    CU(cu.cuGreenCtxGetDevResource(on.partitions[SPARE].green, &resource, CUDA_RESOURCE_SM));
    return cu.cuDevResourceGenerateDesc(&on.desc, &resource, 1);
}

static cuda_result create_green(void)
{
    return cu.cuGreenCtxCreate(&on.context, on.desc, 0, CUDA_GREEN_CTX_DEFAULT_STREAM);
}

static cuda_result destroy_green(void)
{
    return cu.cuGreenCtxDestroy(on.context);
}

static cuda_result prepare_green_context(void)
{
    prepare_desc();
    return create_green();
}

static cuda_result create_memory(void)
{
    cuda_mem_allocation_prop properties = probe_properties();
    return cu.cuMemCreate(&on.handle, on.bytes, &properties, 0);
}

static cuda_result release_memory(void)
{
    return cu.cuMemRelease(on.handle);
}

static cuda_result prepare_address(void)
{
    if (!on.reserved)
        CU(cu.cuMemAddressReserve(&on.reserved, on.bytes, 0, 0, 0));
    return create_memory();
}

static cuda_result map_memory(void)
{
    return cu.cuMemMap(on.reserved, on.bytes, 0, on.handle, 0);
}

static cuda_result unmap_memory(void)
{
    return cu.cuMemUnmap(on.reserved, on.bytes);
}

static cuda_result unmap_and_release(void)
{
    cuda_result result = unmap_memory();
    return result != CUDA_OK ? result : release_memory();
}

static cuda_result prepare_mapping(void)
{
    prepare_address();
    return map_memory();
}

static cuda_result set_access(void)
{
    cuda_mem_access_desc access = {{CUDA_MEM_LOCATION_DEVICE, 0}, CUDA_MEM_ACCESS_READWRITE};
    return cu.cuMemSetAccess(on.reserved, on.bytes, &access, 1);
}

static cuda_result prepare_access(void)
{
    prepare_mapping();
    return set_access();
}

static cuda_result export_memory(void)
{
    return cu.cuMemExportToShareableHandle(&on.fd, on.handle, CUDA_MEM_HANDLE_POSIX_FD, 0);
}

static cuda_result close_and_release(void)
{
    close(on.fd);
    return release_memory();
}

static cuda_result prepare_export(void)
{
    create_memory();
    return export_memory();
}

static cuda_result import_memory(void)
{
    return cu.cuMemImportFromShareableHandle(&on.imported, (void *)(intptr_t)on.fd,
                                             CUDA_MEM_HANDLE_POSIX_FD);
}

static cuda_result drop_import(void)
{
    cuda_result result = cu.cuMemRelease(on.imported);
    return result != CUDA_OK ? result : close_and_release();
}

static cuda_result allocate(void)
{
    return cu.cuMemAlloc(&on.memory, on.bytes);
}

static cuda_result free_memory(void)
{
    return cu.cuMemFree(on.memory);
}

static cuda_result clear(void)
{
    cuda_result result = cu.cuMemsetD8(on.memory, 0, on.bytes);
    return result != CUDA_OK ? result : cu.cuStreamSynchronize(NULL);
}

static cuda_result prepare_sharing(void)
{
    cuda_result result = prepare_module();
    return result != CUDA_OK ? result : cu.cuModuleGetFunction(&on.function, on.module, "sharing");
}

static cuda_result raise_shared_memory(void)
{
    return cu.cuFuncSetAttribute(on.function, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10);
}

static cuda_result prepare_deep(void)
{
    cuda_result result = prepare_module();
    if (result == CUDA_OK)
        result = cu.cuModuleGetFunction(&on.function, on.module, "deep");
    return result == CUDA_OK && !on.memory ? allocate() : result;
}

/* As the worker does in a quiet window: room for more than the kernel needs. */
static cuda_result prepare_deep_with_room(void)
{
    cuda_result result = prepare_deep();
    return result != CUDA_OK ? result : cu.cuCtxSetLimit(CUDA_LIMIT_STACK_SIZE, 16 << 10);
}

/* Local memory grows with the first launch that needs as much: on an idle device, and no more in
 * the second turn, so `first-launch` has one turn only. */
static cuda_result launch_deep(void)
{
    unsigned step = 1;
    void *parameters[] = {&on.memory, &step};
    return cu.cuLaunchKernel(on.function, 1, 1, 1, 64, 1, 1, 0, on.partitions[SPARE].stream,
                             parameters, NULL);
}

static cuda_result finish_launch_and_unload(void)
{
    cuda_result result = cu.cuStreamSynchronize(on.partitions[SPARE].stream);
    return result != CUDA_OK ? result : unload();
}

static cuda_result prepare_nothing_kernel(void)
{
    cuda_result result = prepare_module();
    return result != CUDA_OK ? result : cu.cuModuleGetFunction(&on.function, on.module, "nothing");
}

static cuda_result launch_first(void)
{
    return cu.cuLaunchKernel(on.function, 1, 1, 1, 1, 1, 1, 0, on.partitions[SPARE].stream, NULL,
                             NULL);
}

static cuda_result create_event(void)
{
    return cu.cuEventCreate(&on.event, CUDA_EVENT_DEFAULT);
}

static cuda_result destroy_event(void)
{
    return cu.cuEventDestroy(on.event);
}

static const struct blocking_call {
    const char *name;
    cuda_result (*prepare)(void), (*call)(void), (*undo)(void);
    bool once; /* not tried alone before, for the second time would not be the same */
} calls[] = {
    {"module-load-ptx", prepare_ptx, load_ptx, unload, false},
    {"module-load-cubin", prepare_cubin, load_cubin, unload, false},
    {"module-unload", prepare_module, unload, nothing_to_do, false},
    {"host-register", prepare_host, register_host, unregister_and_unmap_host, false},
    {"host-unregister", prepare_registered_host, unregister_host, unmap_host, false},
    {"stream-create", nothing_to_do, create_stream, destroy_stream, false},
    {"green-stream-create", prepare_green, create_green_stream, destroy_stream, false},
    {"stream-destroy", prepare_green_stream, destroy_stream, nothing_to_do, false},
    {"green-context-create", prepare_desc, create_green, destroy_green, false},
    {"green-context-destroy", prepare_green_context, destroy_green, nothing_to_do, false},
    {"memory-create", nothing_to_do, create_memory, release_memory, false},
    {"memory-map", prepare_address, map_memory, unmap_and_release, false},
    {"memory-set-access", prepare_mapping, set_access, unmap_and_release, false},
    {"memory-unmap", prepare_access, unmap_memory, release_memory, false},
    {"memory-release", create_memory, release_memory, nothing_to_do, false},
    {"memory-export", create_memory, export_memory, close_and_release, false},
    {"memory-import", prepare_export, import_memory, drop_import, false},
    {"memory-alloc", nothing_to_do, allocate, free_memory, false},
    {"memory-free", allocate, free_memory, nothing_to_do, false},
    {"memset-default-stream", allocate, clear, free_memory, false},
    {"function-attribute", prepare_sharing, raise_shared_memory, unload, false},
    {"event-create", nothing_to_do, create_event, destroy_event, false},
    {"event-destroy", create_event, destroy_event, nothing_to_do, false},
    {"first-launch", prepare_nothing_kernel, launch_first, finish_launch_and_unload, false},
    {"first-launch-local-memory", prepare_deep, launch_deep, finish_launch_and_unload, true},
    {"first-launch-after-limit", prepare_deep_with_room, launch_deep, finish_launch_and_unload,
     true},
};

struct turn {
    double call_ms, worst_launch_ms, worst_turn_ms, oversleep_ms;
    unsigned long long launches;
    bool kernel_outlived; /* it still ran when the call returned */
};

static void run_turn(const struct blocking_call *call, uint64_t kernel_ns, struct turn *turn)
{
    cuda_result prepared = call->prepare();
    if (prepared != CUDA_OK)
        probe_die("what %s needs could not be prepared: %s", call->name, probe_error(prepared));
    CU(cu.cuCtxSynchronize());
    if (kernel_ns) {
        probe_launch_last(on.partitions[OWN].stream, kernel_ns);
        cu.cuStreamQuery(on.partitions[OWN].stream); /* some drivers batch until asked */
    }
    probe_sleep_ms(20);
    if (kernel_ns && cu.cuStreamQuery(on.partitions[OWN].stream) != CUDA_ERR_NOT_READY)
        probe_die("the kernel beside which %s is to be tried has ended already", call->name);
    atomic_store(&neighbour.worst_call_ns, 0);
    atomic_store(&neighbour.worst_turn_ns, 0);
    atomic_store(&neighbour.turns, 0);
    atomic_store(&worst_oversleep_ns, 0);
    probe_call(call->name);
    uint64_t began = probe_ns();
    cuda_result result = call->call();
    turn->call_ms = (double)(probe_ns() - began) / 1e6;
    turn->kernel_outlived = cu.cuStreamQuery(on.partitions[OWN].stream) == CUDA_ERR_NOT_READY;
    /* A launch that began during the call may still be held up. */
    probe_sleep_ms(5);
    turn->launches = atomic_load(&neighbour.turns);
    if (result != CUDA_OK)
        probe_die("%s: %s", call->name, probe_error(result));
    CU(cu.cuStreamSynchronize(on.partitions[OWN].stream));
    turn->worst_launch_ms = (double)atomic_load(&neighbour.worst_call_ns) / 1e6;
    turn->worst_turn_ms = (double)atomic_load(&neighbour.worst_turn_ns) / 1e6;
    turn->oversleep_ms = (double)atomic_load(&worst_oversleep_ns) / 1e6;
    if (call->undo() != CUDA_OK)
        probe_die("%s could not be undone", call->name);
}

static void judge(const struct blocking_call *call, const struct turn *alone,
                  const struct turn *beside, uint64_t kernel_ns)
{
    char assumption[64];
    double kernel_ms = (double)kernel_ns / 1e6;
    snprintf(assumption, sizeof assumption, "%s-does-not-wait", call->name);
    bool waits = !beside->kernel_outlived && beside->call_ms > alone->call_ms + kernel_ms / 3;
    bool holds_up = beside->worst_launch_ms > held_up_ms || beside->worst_turn_ms > kernel_ms / 2;
    if ((!beside->kernel_outlived && !waits) ||
        ((waits || holds_up) && beside->oversleep_ms > busy_host_ms)) {
        probe_unknown(
            assumption,
            "this host is too slow to tell: %.3f ms beside a kernel of %.0f ms, %.3f ms "
            "alone; a neighbour's worst call %.3f ms; a thread that only sleeps overslept "
            "by %.3f ms",
            beside->call_ms, kernel_ms, alone->call_ms, beside->worst_launch_ms,
            beside->oversleep_ms);
        return;
    }
    probe_judge(
        !waits && !holds_up, assumption,
        "%.3f ms alone, %.3f ms beside a kernel of %.0f ms%s; a neighbour's worst call of "
        "launch or query %.3f ms (%.3f ms while alone), its worst launch to end %.3f ms, of "
        "%llu%s",
        alone->call_ms, beside->call_ms, kernel_ms, waits ? ": it WAITS" : "",
        beside->worst_launch_ms, alone->worst_launch_ms, beside->worst_turn_ms, beside->launches,
        holds_up ? ": it HOLDS UP a neighbour" : "");
}

void step_blocking(const char *argument)
{
    const struct blocking_call *call = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i].name, argument))
            call = &calls[i];
    if (!call)
        probe_die("no such call: %s", argument);
    probe_open();
    probe_context();
    on.green = probe_partitions(on.partitions, PARTITIONS, 8);
    size_t granularity = probe_granularity();
    on.bytes = ((64u << 20) + granularity - 1) / granularity * granularity;
    cuda_function nothing = probe_function("nothing");
    /* A first launch may load code. */
    for (int i = 0; i < PARTITIONS; i++)
        probe_launch_last(on.partitions[i].stream, 1000);
    CU(cu.cuCtxSynchronize());

    pthread_t thread, control;
    if (pthread_create(&thread, NULL, launch_until_stopped, nothing) != 0 ||
        pthread_create(&control, NULL, sleep_until_stopped, NULL) != 0)
        probe_die("no thread");
    struct turn alone = {0}, beside = {0};
    if (!call->once)
        run_turn(call, 0, &alone);
    uint64_t kernel_ns = KERNEL_NS + (uint64_t)(2 * alone.call_ms * 1e6);
    run_turn(call, kernel_ns, &beside);
    atomic_store(&neighbour.stop, true);
    pthread_join(thread, NULL);
    pthread_join(control, NULL);
    probe_measure("alone_ms", alone.call_ms, "ms");
    probe_measure("beside_ms", beside.call_ms, "ms");
    probe_measure("kernel_ms", (double)kernel_ns / 1e6, "ms");
    probe_measure("worst_oversleep_ms", beside.oversleep_ms, "ms");
    probe_measure("worst_launch_alone_ms", alone.worst_launch_ms, "ms");
    probe_measure("worst_launch_beside_ms", beside.worst_launch_ms, "ms");
    probe_measure("worst_launch_to_end_beside_ms", beside.worst_turn_ms, "ms");
    judge(call, &alone, &beside, kernel_ns);
}
