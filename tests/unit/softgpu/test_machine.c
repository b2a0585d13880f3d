/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The state of the machine: memory that others used before, contexts of other programs, and
 * hardware that fails. Each setting is tried, and so is its absence. Every case is a process.
 */
#include "tests/unit/softgpu/kernels.h"

enum { GRANULE = 2 << 20 };

/* How many of the words at both ends of the granules of new memory are not 0. */
static unsigned count_remains(void)
{
    enum { GRANULES = 3 };
    static const cuda_mem_allocation_prop prop = {.type = CUDA_MEM_ALLOCATION_PINNED,
                                                  .location = {CUDA_MEM_LOCATION_DEVICE, 0}};
    static const cuda_mem_access_desc access = {{CUDA_MEM_LOCATION_DEVICE, 0},
                                                CUDA_MEM_ACCESS_READWRITE};
    cuda_mem_handle handle;
    cuda_device_ptr memory;
    unsigned count = 0;

    CHECK(kernels_open() == 0);
    CHECK(cuMemCreate(&handle, GRANULES * GRANULE, &prop, 0) == CUDA_OK);
    CHECK(cuMemAddressReserve(&memory, GRANULES * GRANULE, 0, 0, 0) == CUDA_OK);
    CHECK(cuMemMap(memory, GRANULES * GRANULE, 0, handle, 0) == CUDA_OK);
    CHECK(cuMemSetAccess(memory, GRANULES * GRANULE, &access, 1) == CUDA_OK);
    for (unsigned i = 0; i < 2 * GRANULES; i++) {
        uint64_t word = 0;

        CHECK(cuMemcpyDtoH_v2(&word, memory + (i + 1) / 2 * GRANULE - (i % 2) * sizeof(word),
                              sizeof(word)) == CUDA_OK);
        count += word != 0;
    }
    return count;
}

static void body_remains(void)
{
    CHECK(count_remains() == 6);
}

static void body_no_remains(void)
{
    setenv("SOFTGPU_REMAINS", "0", 1);
    CHECK(count_remains() == 0);
}

static void new_memory_has_what_its_last_owner_left(void **state)
{
    (void)state;
    in_child(body_remains);
    in_child(body_no_remains);
}

/* Bytes that are used when a context has been made. */
static size_t used_by_a_context(void)
{
    cuda_context context;
    size_t left, total;

    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_OK);
    CHECK(cuCtxSetCurrent(context) == CUDA_OK);
    CHECK(cuMemGetInfo_v2(&left, &total) == CUDA_OK);
    return total - left;
}

static void body_context_memory(void)
{
    setenv("SOFTGPU_MEMORY", "64M", 1);
    setenv("SOFTGPU_CONTEXT_MEMORY", "24M", 1);
    CHECK(used_by_a_context() == (24 << 20));
}

static void body_no_context_memory(void)
{
    setenv("SOFTGPU_MEMORY", "64M", 1);
    CHECK(used_by_a_context() == 0);
}

static void body_no_room_for_a_context(void)
{
    cuda_context context;

    setenv("SOFTGPU_MEMORY", "64M", 1);
    setenv("SOFTGPU_CONTEXT_MEMORY", "65M", 1);
    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_ERR_OUT_OF_MEMORY);
}

static void a_context_takes_memory(void **state)
{
    (void)state;
    in_child(body_context_memory);
    in_child(body_no_context_memory);
    in_child(body_no_room_for_a_context);
}

static cuda_result make_context(const char *mode, const char *taken)
{
    cuda_context context;

    setenv("SOFTGPU_COMPUTE_MODE", mode, 1);
    setenv("SOFTGPU_TAKEN", taken, 1);
    CHECK(cuInit(0) == CUDA_OK);
    return cuDevicePrimaryCtxRetain(&context, 0);
}

static void body_shared(void)
{
    CHECK(make_context("0", "1") == CUDA_OK);
}

static void body_prohibited(void)
{
    CHECK(make_context("2", "0") == CUDA_ERR_UNKNOWN);
}

static void body_exclusive(void)
{
    CHECK(make_context("3", "0") == CUDA_OK);
}

static void body_taken(void)
{
    CHECK(make_context("3", "1") == CUDA_ERR_DEVICE_UNAVAILABLE);
}

static void an_exclusive_device_that_is_taken_refuses(void **state)
{
    (void)state;
    in_child(body_shared);
    in_child(body_prohibited);
    in_child(body_exclusive);
    in_child(body_taken);
}

static cuda_result trap(void)
{
    CHECK(kernels_open() == 0);
    CHECK(launch(kernels.trapper, 1, 1, NULL, NULL) == CUDA_OK);
    return cuCtxSynchronize();
}

static void body_trap(void)
{
    CHECK(trap() == CUDA_ERR_LAUNCH_FAILED);
}

static void body_trap_error(void)
{
    setenv("SOFTGPU_TRAP_ERROR", "214", 1);
    CHECK((int)trap() == 214);
    CHECK((int)cuCtxSynchronize() == 214);
}

static void a_trap_can_stand_for_a_failure_of_hardware(void **state)
{
    (void)state;
    in_child(body_trap);
    in_child(body_trap_error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_memory_has_what_its_last_owner_left),
        cmocka_unit_test(a_context_takes_memory),
        cmocka_unit_test(an_exclusive_device_that_is_taken_refuses),
        cmocka_unit_test(a_trap_can_stand_for_a_failure_of_hardware),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
