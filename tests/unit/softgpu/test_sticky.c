/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Errors: those that end the process's use of its devices, and those that don't.
 * Every case is a process of its own.
 */
#include "tests/unit/softgpu/kernels.h"

#include <sys/mman.h>

enum { MIB = 1 << 20 };

static const cuda_mem_allocation_prop prop = {
    .type = CUDA_MEM_ALLOCATION_PINNED,
    .location = {CUDA_MEM_LOCATION_DEVICE, 0},
};
static const cuda_mem_access_desc read_write = {{CUDA_MEM_LOCATION_DEVICE, 0},
                                                CUDA_MEM_ACCESS_READWRITE};

/* Every call's answer from now on. */
static void check_everything_says(cuda_result error, cuda_stream stream, cuda_event event)
{
    cuda_device_ptr ptr;
    size_t left, total;
    float elapsed;
    void *host;

    CHECK(cuStreamSynchronize(stream) == error);
    CHECK(cuStreamQuery(stream) == error);
    CHECK(cuStreamSynchronize(NULL) == error);
    CHECK(cuCtxSynchronize() == error);
    CHECK(cuEventQuery(event) == error);
    CHECK(cuEventSynchronize(event) == error);
    CHECK(cuEventElapsedTime(&elapsed, event, event) == error);
    CHECK(cuMemAlloc_v2(&ptr, 16) == error);
    CHECK(cuMemAllocHost_v2(&host, 16) == error);
    CHECK(cuMemGetInfo_v2(&left, &total) == error);
    CHECK(launch_sleep(1, 32, 1, 1, stream) == error);
    CHECK(cuEventRecord(event, stream) == error);
    CHECK(cuStreamDestroy_v2(stream) == error);
}

static void *seen;

static void note(void *user)
{
    seen = user;
}

static void check_either(cuda_result result, cuda_result error)
{
    CHECK(result == CUDA_OK || result == error);
}

static void fault_on(cuda_result error, cuda_result (*launch_it)(cuda_stream))
{
    cuda_stream stream, other;
    cuda_event event;
    uint64_t *words;

    CHECK(kernels_open() == 0);
    CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuStreamCreate(&other, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuEventCreate(&event, 0) == CUDA_OK);
    CHECK(cuMemAllocHost_v2((void **)&words, 4096) == CUDA_OK);
    CHECK(launch_it(stream) == CUDA_OK);
    /* The kernel may have failed already, or not. */
    check_either(cuStreamWriteValue64_v2(stream, (uintptr_t)words, 1, 0), error);
    check_either(cuLaunchHostFunc(stream, note, words), error);
    check_either(cuEventRecord(event, stream), error);
    CHECK(cuStreamSynchronize(stream) == error);
    check_everything_says(error, other, event);
    CHECK(__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) == 0);
    CHECK(seen == NULL);
}

static cuda_result wild_store(cuda_stream stream)
{
    return launch_store(0x123456789000, 1, 1, 32, stream);
}

static cuda_result null_store(cuda_stream stream)
{
    return launch_store(0, 1, 1, 32, stream);
}

static cuda_result trap(cuda_stream stream)
{
    return launch(kernels.trapper, 1, 32, stream, NULL);
}

/* The last thread's word lies one past the end. */
static cuda_result overrun(cuda_stream stream)
{
    cuda_device_ptr ptr;

    CHECK(cuMemAlloc_v2(&ptr, 4096) == CUDA_OK);
    return launch_store(ptr + 16, 1, 4, 256, stream);
}

static void body_wild_store(void)
{
    fault_on(CUDA_ERR_ILLEGAL_ADDRESS, wild_store);
}

static void body_null_store(void)
{
    fault_on(CUDA_ERR_ILLEGAL_ADDRESS, null_store);
}

static void body_overrun(void)
{
    fault_on(CUDA_ERR_ILLEGAL_ADDRESS, overrun);
}

static void body_trap(void)
{
    fault_on(CUDA_ERR_LAUNCH_FAILED, trap);
}

static void a_wild_store_is_sticky(void **state)
{
    (void)state;
    in_child(body_wild_store);
}

static void a_null_store_is_sticky(void **state)
{
    (void)state;
    in_child(body_null_store);
}

static void an_overrun_is_sticky(void **state)
{
    (void)state;
    in_child(body_overrun);
}

static void a_trap_is_sticky(void **state)
{
    (void)state;
    in_child(body_trap);
}

/* Unmapping does not wait for the kernel, and the kernel meets a fault, not a signal. */
static void body_unmap(void)
{
    cuda_mem_handle handle;
    cuda_device_ptr ptr;

    CHECK(kernels_open() == 0);
    CHECK(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_OK);
    CHECK(cuMemAddressReserve(&ptr, 2 * MIB, 0, 0, 0) == CUDA_OK);
    CHECK(cuMemMap(ptr, 2 * MIB, 0, handle, 0) == CUDA_OK);
    CHECK(cuMemSetAccess(ptr, 2 * MIB, &read_write, 1) == CUDA_OK);
    CHECK(cuMemsetD8_v2(ptr, 0, 4096) == CUDA_OK);
    CHECK(launch_spin(ptr, NULL) == CUDA_OK);
    usleep(20000); /* let it run; the outcome is the same if it has not begun */
    CHECK(cuStreamQuery(NULL) == CUDA_ERR_NOT_READY);
    CHECK(cuMemUnmap(ptr, 2 * MIB) == CUDA_OK);
    CHECK(cuStreamSynchronize(NULL) == CUDA_ERR_ILLEGAL_ADDRESS);
}

static void unmapping_under_a_kernel_is_a_fault(void **state)
{
    (void)state;
    in_child(body_unmap);
}

/* A driver may wait instead: then the kernel has ended unharmed when the call returns. */
static void body_waiting_unmap(void)
{
    cuda_mem_handle handle;
    cuda_device_ptr ptr;

    setenv("SOFTGPU_UNMAP_WAITS", "1", 1);
    CHECK(kernels_open() == 0);
    CHECK(cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_OK);
    CHECK(cuMemAddressReserve(&ptr, 2 * MIB, 0, 0, 0) == CUDA_OK);
    CHECK(cuMemMap(ptr, 2 * MIB, 0, handle, 0) == CUDA_OK);
    CHECK(cuMemSetAccess(ptr, 2 * MIB, &read_write, 1) == CUDA_OK);
    CHECK(launch_sleep(1, 1, 1000000, 100, NULL) == CUDA_OK);
    CHECK(cuStreamQuery(NULL) == CUDA_ERR_NOT_READY);
    CHECK(cuMemUnmap(ptr, 2 * MIB) == CUDA_OK);
    CHECK(cuStreamQuery(NULL) == CUDA_OK);
}

static void unmapping_may_be_made_to_wait(void **state)
{
    (void)state;
    in_child(body_waiting_unmap);
}

/* With the context's lock the call can be made not to wait. */
static void body_unregister(void)
{
    void *host = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    setenv("SOFTGPU_CONTEXT_LOCK", "1", 1);
    setenv("SOFTGPU_DRAIN_PERCENT", "0", 1);
    CHECK(kernels_open() == 0);
    CHECK(cuMemHostRegister_v2(host, 4096, 0) == CUDA_OK);
    CHECK(launch_spin((uintptr_t)host, NULL) == CUDA_OK);
    usleep(20000);
    CHECK(cuMemHostUnregister(host) == CUDA_OK);
    /* From here on the pages are the program's, gone at once. */
    CHECK(munmap(host, 4096) == 0);
    CHECK(cuStreamSynchronize(NULL) == CUDA_ERR_ILLEGAL_ADDRESS);
}

static void unregistering_under_a_kernel_is_a_fault(void **state)
{
    (void)state;
    in_child(body_unregister);
}

static void body_remap(void)
{
    cuda_mem_handle handles[2];
    cuda_device_ptr ptr;
    cuda_stream stream;

    CHECK(kernels_open() == 0);
    CHECK(cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuMemAddressReserve(&ptr, 2 * MIB, 0, 0, 0) == CUDA_OK);
    for (int i = 0; i < 2; i++)
        CHECK(cuMemCreate(&handles[i], 2 * MIB, &prop, 0) == CUDA_OK);
    /* Again and again from under a kernel that reads it: whatever it meets, no signal. */
    for (int i = 0; i < 300; i++) {
        cuda_result result = cuMemMap(ptr, 2 * MIB, 0, handles[i % 2], 0);

        if (result == CUDA_OK)
            result = cuMemSetAccess(ptr, 2 * MIB, &read_write, 1);
        if (result == CUDA_OK && i == 0)
            result = launch_spin(ptr, stream);
        if (result == CUDA_OK && i > 0)
            result = cuMemUnmap(ptr, 2 * MIB);
        else if (result == CUDA_OK) {
            usleep(2000);
            result = cuMemUnmap(ptr, 2 * MIB);
        }
        CHECK(result == CUDA_OK || result == CUDA_ERR_ILLEGAL_ADDRESS);
    }
    cuStreamSynchronize(stream);
}

static void remapping_under_a_kernel_never_kills(void **state)
{
    (void)state;
    in_child(body_remap);
}

static void body_launch_errors(void)
{
    int value = 0;
    void *params[2] = {&value, &value};

    CHECK(kernels_open() == 0);
    CHECK(launch(kernels.sleep, 0, 32, NULL, params) == CUDA_ERR_INVALID_VALUE);
    CHECK(launch(kernels.sleep, 1, 1025, NULL, params) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuLaunchKernel(kernels.sleep, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(cuLaunchKernel(kernels.sleep, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(cuLaunchKernel(kernels.sleep, 1, 1, 1, 32, 1, 1, 49153, NULL, params, NULL) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) ==
          CUDA_ERR_INVALID_HANDLE);
    CHECK(launch(kernels.sleep, 1, 32, NULL, NULL) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuFuncSetAttribute(kernels.sleep, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232449) ==
          CUDA_ERR_INVALID_VALUE);
    CHECK(cuFuncSetAttribute(kernels.sleep, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448) ==
          CUDA_OK);
    CHECK(cuLaunchKernel(kernels.sleep, 1, 1, 1, 32, 1, 1, 232448, NULL, params, NULL) == CUDA_OK);
    CHECK(launch(kernels.sleep, 1, 32, NULL, params) == CUDA_OK);
    CHECK(cuCtxSynchronize() == CUDA_OK);
}

static void launch_errors_are_not_sticky(void **state)
{
    (void)state;
    in_child(body_launch_errors);
}

static void body_not_initialized(void)
{
    int count;
    cuda_device_ptr ptr;
    cuda_context context;

    CHECK(cuDeviceGetCount(&count) == CUDA_ERR_NOT_INITIALIZED);
    CHECK(cuMemAlloc_v2(&ptr, 16) == CUDA_ERR_NOT_INITIALIZED);
    CHECK(cuInit(1) == CUDA_ERR_INVALID_VALUE);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&ptr, 16) == CUDA_ERR_INVALID_CONTEXT);
    CHECK(cuDevicePrimaryCtxRetain(&context, 1) == CUDA_ERR_INVALID_DEVICE);
}

static void calls_before_init_are_refused(void **state)
{
    (void)state;
    in_child(body_not_initialized);
}

static void body_fork(void)
{
    cuda_device_ptr ptr;
    int status = -1;
    pid_t child;

    CHECK(kernels_open() == 0);
    child = fork();
    if (child == 0)
        _exit(cuMemAlloc_v2(&ptr, 16) == CUDA_ERR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERR_NOT_INITIALIZED
                  ? 0
                  : 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(cuMemAlloc_v2(&ptr, 16) == CUDA_OK);
}

static void a_forked_child_is_not_initialised(void **state)
{
    (void)state;
    in_child(body_fork);
}

static void body_bad_setting(void)
{
    setenv("SOFTGPU_SMS", "many", 1);
    CHECK(cuInit(0) == CUDA_ERR_INVALID_VALUE);
}

static void a_malformed_setting_is_refused(void **state)
{
    (void)state;
    in_child(body_bad_setting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wild_store_is_sticky),
        cmocka_unit_test(a_null_store_is_sticky),
        cmocka_unit_test(an_overrun_is_sticky),
        cmocka_unit_test(a_trap_is_sticky),
        cmocka_unit_test(unmapping_under_a_kernel_is_a_fault),
        cmocka_unit_test(unmapping_may_be_made_to_wait),
        cmocka_unit_test(unregistering_under_a_kernel_is_a_fault),
        cmocka_unit_test(remapping_under_a_kernel_never_kills),
        cmocka_unit_test(launch_errors_are_not_sticky),
        cmocka_unit_test(calls_before_init_are_refused),
        cmocka_unit_test(a_forked_child_is_not_initialised),
        cmocka_unit_test(a_malformed_setting_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
