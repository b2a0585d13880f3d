/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Fills: which memory they write, and which multiprocessors they wait for. Time is modelled time,
 * so that a busy machine changes nothing. Every case is a process, for settings are read once.
 */
#include "tests/unit/softgpu/kernels.h"

enum { SMS = 16, KERNEL_MS = 100 };

static cuda_event start;
static cuda_stream gate;

static void open_device(void)
{
    setenv("SOFTGPU_SMS", "16", 1);
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    setenv("SOFTGPU_PRIVATE_QUEUES", "1", 1);
    CHECK(kernels_open() == 0);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK);
    CHECK(cuStreamCreate(&gate, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
}

/* Milliseconds until a fill ends on a stream, from the beginning of a kernel on another one that is
 * `blocks` blocks of half a multiprocessor each and lasts KERNEL_MS. */
static float fill_beside(unsigned blocks, cuda_stream busy, cuda_stream stream)
{
    cuda_device_ptr memory;
    cuda_event end;
    float milliseconds;

    CHECK(busy != NULL && stream != NULL);
    CHECK(cuEventCreate(&end, 0) == CUDA_OK);
    CHECK(cuMemAlloc_v2(&memory, 1 << 20) == CUDA_OK);
    CHECK(launch_sleep(1, 32, 1000000, 20, gate) == CUDA_OK);
    CHECK(cuEventRecord(start, gate) == CUDA_OK);
    CHECK(cuStreamWaitEvent(busy, start, 0) == CUDA_OK);
    CHECK(cuStreamWaitEvent(stream, start, 0) == CUDA_OK);
    CHECK(launch_sleep(blocks, 1024, 1000000, KERNEL_MS, busy) == CUDA_OK);
    CHECK(cuMemsetD8Async(memory, 7, 1 << 20, stream) == CUDA_OK);
    CHECK(cuEventRecord(end, stream) == CUDA_OK);
    CHECK(cuEventSynchronize(end) == CUDA_OK);
    CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_OK);
    return milliseconds;
}

static void try_on_full_device(bool waits)
{
    cuda_stream streams[2];

    for (int i = 0; i < 2; i++)
        CHECK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK((fill_beside(2 * SMS, streams[0], streams[1]) >= KERNEL_MS) == waits);
}

static void body_full_device(void)
{
    open_device();
    try_on_full_device(true);
}

static void body_no_kernels(void)
{
    setenv("SOFTGPU_FILL_KERNELS", "0", 1);
    open_device();
    try_on_full_device(false);
}

static void body_partitions(void)
{
    open_device();
    CHECK(fill_beside(SMS, kernels_partition_stream(0), kernels_partition_stream(0)) >= KERNEL_MS);
    CHECK(fill_beside(SMS, kernels_partition_stream(0), kernels_partition_stream(1)) < KERNEL_MS);
}

static void a_fill_waits_for_room_unless_switched_off(void **state)
{
    (void)state;
    in_child(body_full_device);
    in_child(body_no_kernels);
}

static void a_fill_waits_in_its_own_partition_alone(void **state)
{
    (void)state;
    in_child(body_partitions);
}

/* Element i of an array of this width. */
static uint32_t element(const void *array, unsigned width, size_t i)
{
    return width == 1   ? ((const uint8_t *)array)[i]
           : width == 2 ? ((const uint16_t *)array)[i]
                        : ((const uint32_t *)array)[i];
}

/* More elements than a block of a fill has, and an odd number of them. */
static void try_width(unsigned width, uint32_t value)
{
    enum { COUNT = (3 << 20) + 5 };
    static uint32_t host[COUNT + 2];
    cuda_device_ptr memory;

    CHECK(cuMemAlloc_v2(&memory, (size_t)(COUNT + 2) * width) == CUDA_OK);
    CHECK(cuMemsetD8_v2(memory, 0x55, (size_t)(COUNT + 2) * width) == CUDA_OK);
    if (width == 1)
        CHECK(cuMemsetD8_v2(memory + width, (unsigned char)value, COUNT) == CUDA_OK);
    else if (width == 2)
        CHECK(cuMemsetD16_v2(memory + width, (unsigned short)value, COUNT) == CUDA_OK);
    else
        CHECK(cuMemsetD32_v2(memory + width, value, COUNT) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(host, memory, (size_t)(COUNT + 2) * width) == CUDA_OK);
    for (size_t i = 1; i <= COUNT; i++)
        CHECK(element(host, width, i) == value);
    for (unsigned i = 0; i < width; i++) {
        CHECK(element(host, 1, i) == 0x55);
        CHECK(element(host, 1, (size_t)(COUNT + 1) * width + i) == 0x55);
    }
}

static void body_values(void)
{
    open_device();
    try_width(1, 0xa1);
    try_width(2, 0xa1b2);
    try_width(4, 0xa1b2c3d4);
    try_width(4, 0);
}

static void a_fill_writes_its_elements_and_no_others(void **state)
{
    (void)state;
    in_child(body_values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fill_waits_for_room_unless_switched_off),
        cmocka_unit_test(a_fill_waits_in_its_own_partition_alone),
        cmocka_unit_test(a_fill_writes_its_elements_and_no_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
