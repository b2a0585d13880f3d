/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A device has the shape of its profile. Every case is a process, for settings are read
 * once.
 */
#include "tests/unit/softgpu/kernels.h"

#include "common/error.h"
#include "protocol.h"

static int attribute(cuda_device_attribute which)
{
    int value = -1;

    CHECK(cuDeviceGetAttribute(&value, which, 0) == CUDA_OK);
    return value;
}

static size_t memory_bytes(void)
{
    size_t bytes;

    CHECK(cuDeviceTotalMem_v2(&bytes, 0) == CUDA_OK);
    return bytes;
}

static void open_profile(const char *name)
{
    char told[100];

    setenv("SOFTGPU_PROFILE", name, 1);
    CHECK(kernels_open() == 0);
    CHECK(cuDeviceGetName(told, sizeof(told), 0) == CUDA_OK);
    CHECK(strncmp(told, "gpushare software GPU", 21) == 0);
}

/* Multiprocessors of the smallest part that a split gives, and how many such parts there are. */
static unsigned smallest_part(unsigned *parts)
{
    cuda_dev_resource all, part[SETTINGS_MAX_SMS];

    *parts = SETTINGS_MAX_SMS;
    CHECK(cuDeviceGetDevResource(0, &all, CUDA_RESOURCE_SM) == CUDA_OK);
    CHECK(cuDevSmResourceSplitByCount(part, parts, &all, NULL, 0, 1) == CUDA_OK);
    return part[0].sm.sm_count;
}

/* Blocks of 1024 threads that fit on a multiprocessor. */
static int large_blocks(void)
{
    int blocks;

    CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernels.store, 1024, 0) == CUDA_OK);
    return blocks;
}

static void body_t4(void)
{
    unsigned parts;

    open_profile("t4");
    CHECK(attribute(CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR) == 7);
    CHECK(attribute(CUDA_ATTR_COMPUTE_CAPABILITY_MINOR) == 5);
    CHECK(attribute(CUDA_ATTR_MULTIPROCESSOR_COUNT) == 40);
    CHECK(attribute(CUDA_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR) == 16);
    CHECK(attribute(CUDA_ATTR_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 64 << 10);
    CHECK(memory_bytes() == (size_t)15 << 30);
    CHECK(smallest_part(&parts) == 2 && parts == 20);
    CHECK(large_blocks() == 1);
    CHECK(cuFuncSetAttribute(kernels.store, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10) ==
          CUDA_OK);
    CHECK(cuFuncSetAttribute(kernels.store, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65 << 10) ==
          CUDA_ERR_INVALID_VALUE);
}

static void body_h200(void)
{
    unsigned parts;

    open_profile("h200");
    CHECK(attribute(CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR) == 9);
    CHECK(attribute(CUDA_ATTR_MULTIPROCESSOR_COUNT) == 132);
    CHECK(memory_bytes() == (size_t)143771 << 20);
    CHECK(smallest_part(&parts) == 8 && parts == 16);
    CHECK(large_blocks() == 2);
}

/* Milliseconds for 16 MiB in each direction at once, at 1 GB/s. */
static float two_copies(void)
{
    enum { BYTES = 16 << 20 };
    cuda_stream streams[2], gate;
    cuda_event start, ends[2];
    float milliseconds[2];
    cuda_device_ptr device;
    void *host;

    CHECK(cuMemAlloc_v2(&device, 2 * BYTES) == CUDA_OK);
    CHECK(cuMemAllocHost_v2(&host, 2 * BYTES) == CUDA_OK);
    CHECK(cuStreamCreate(&gate, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK);
    CHECK(launch_sleep(1, 32, 1000000, 20, gate) == CUDA_OK);
    CHECK(cuEventRecord(start, gate) == CUDA_OK);
    for (int i = 0; i < 2; i++) {
        cuda_device_ptr here = device + (unsigned)i * BYTES;
        char *there = (char *)host + i * BYTES;

        CHECK(cuStreamCreate(&streams[i], CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
        CHECK(cuEventCreate(&ends[i], 0) == CUDA_OK);
        CHECK(cuStreamWaitEvent(streams[i], start, 0) == CUDA_OK);
        CHECK((i ? cuMemcpyHtoDAsync_v2(here, there, BYTES, streams[i])
                 : cuMemcpyDtoHAsync_v2(there, here, BYTES, streams[i])) == CUDA_OK);
        CHECK(cuEventRecord(ends[i], streams[i]) == CUDA_OK);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(cuEventSynchronize(ends[i]) == CUDA_OK);
        CHECK(cuEventElapsedTime(&milliseconds[i], start, ends[i]) == CUDA_OK);
    }
    return milliseconds[0] > milliseconds[1] ? milliseconds[0] : milliseconds[1];
}

static void body_mig(void)
{
    unsigned parts;

    setenv("SOFTGPU_COPY_BYTES_PER_SECOND", "1000000000", 1);
    open_profile("mig");
    CHECK(attribute(CUDA_ATTR_MULTIPROCESSOR_COUNT) == 16);
    CHECK(attribute(CUDA_ATTR_ASYNC_ENGINE_COUNT) == 1);
    CHECK(memory_bytes() == (size_t)16896 << 20);
    CHECK(smallest_part(&parts) == 8 && parts == 2);
    CHECK(two_copies() > 33.0f);
}

/* Two engines, so that the directions do not wait for each other. */
static void body_usual(void)
{
    setenv("SOFTGPU_COPY_BYTES_PER_SECOND", "1000000000", 1);
    setenv("SOFTGPU_SMS", "20", 1);
    open_profile("");
    CHECK(attribute(CUDA_ATTR_MULTIPROCESSOR_COUNT) == 20);
    CHECK(memory_bytes() == (size_t)8 << 30);
    CHECK(two_copies() < 25.0f);
}

static void a_device_has_the_shape_of_its_profile(void **state)
{
    (void)state;
    in_child(body_t4);
    in_child(body_h200);
    in_child(body_mig);
    in_child(body_usual);
}

/* The UUIDs of the first device that is seen: its own, and its GPU's. */
static void read_uuids(cuda_uuid *own, cuda_uuid *gpu)
{
    int count;

    CHECK(cuInit(0) == CUDA_OK);
    CHECK(cuDeviceGetCount(&count) == CUDA_OK);
    CHECK(count == (device_profile()->instance ? 1 : 3));
    CHECK(cuDeviceGetUuid_v2(own, 0) == CUDA_OK);
    CHECK(cuDeviceGetUuid(gpu, 0) == CUDA_OK);
}

static void body_instance(void)
{
    cuda_uuid own, gpu;

    setenv("SOFTGPU_PROFILE", "mig", 1);
    setenv("SOFTGPU_DEVICES", "3", 1);
    read_uuids(&own, &gpu);
    CHECK(own.bytes[15] == 0 && memcmp(&own, &gpu, sizeof(own)) != 0);
}

static void body_other_instance(void)
{
    cuda_uuid own, gpu;

    setenv("SOFTGPU_PROFILE", "mig", 1);
    setenv("SOFTGPU_DEVICES", "3", 1);
    setenv("CUDA_VISIBLE_DEVICES",
           "MIG-736f6674-6770-4075-8000-000000000002,MIG-736f6674-6770-4075-8000-000000000001", 1);
    read_uuids(&own, &gpu);
    CHECK(own.bytes[15] == 2 && gpu.bytes[15] == 0);
}

static void body_whole(void)
{
    cuda_uuid own, gpu;

    setenv("SOFTGPU_PROFILE", "h200", 1);
    setenv("SOFTGPU_DEVICES", "3", 1);
    read_uuids(&own, &gpu);
    CHECK(memcmp(&own, &gpu, sizeof(own)) == 0);
}

static void one_instance_is_seen_and_has_a_uuid_beside_its_gpus(void **state)
{
    (void)state;
    in_child(body_instance);
    in_child(body_other_instance);
    in_child(body_whole);
}

static void an_unknown_profile_is_refused_with_the_known_ones(void **state)
{
    struct softgpu_settings settings;
    struct error why;

    (void)state;
    setenv("SOFTGPU_PROFILE", "h300", 1);
    assert_int_equal(softgpu_settings_read(&settings, &why), PROTO_ERROR_INVALID_VALUE);
    unsetenv("SOFTGPU_PROFILE");
    assert_non_null(strstr(why.text, "h300"));
    assert_non_null(strstr(why.text, profile_names()));
    for (const char *name = profile_names(); name;) {
        char one[16];

        snprintf(one, sizeof(one), "%.*s", (int)strcspn(name, ","), name);
        assert_non_null(profile_find(one));
        name = strchr(name, ',');
        name += name ? 2 : 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_the_shape_of_its_profile),
        cmocka_unit_test(one_instance_is_seen_and_has_a_uuid_beside_its_gpus),
        cmocka_unit_test(an_unknown_profile_is_refused_with_the_known_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
