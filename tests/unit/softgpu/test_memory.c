/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Virtual memory management, plain and host allocations, and what they cost.
 */
#include "common/ipc/arena.h"
#include "tests/unit/softgpu/kernels.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "server/softgpu/memory/memory.h"

enum { MIB = 1 << 20, TOTAL = 64 * MIB };

static const cuda_mem_allocation_prop prop = {
    .type = CUDA_MEM_ALLOCATION_PINNED,
    .requested_handle_types = CUDA_MEM_HANDLE_POSIX_FD,
    .location = {CUDA_MEM_LOCATION_DEVICE, 0},
};
static const cuda_mem_access_desc read_write = {{CUDA_MEM_LOCATION_DEVICE, 0},
                                                CUDA_MEM_ACCESS_READWRITE};
static const cuda_mem_access_desc read_only = {{CUDA_MEM_LOCATION_DEVICE, 0}, CUDA_MEM_ACCESS_READ};

static size_t used_at_start;

static size_t used(void)
{
    size_t left, total;

    OK(cuMemGetInfo_v2(&left, &total));
    assert_int_equal(total, TOTAL);
    return total - left;
}

static int setup(void **state)
{
    (void)state;
    setenv("SOFTGPU_MEMORY", "64M", 1);
    setenv("SOFTGPU_HINT_ERROR", "0", 1);
    setenv("SOFTGPU_HINT_REFUSAL", "0", 1);
    if (kernels_open() != 0)
        return -1;
    used_at_start = used();
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    assert_int_equal(used(), used_at_start);
    return 0;
}

static cuda_device_ptr map(size_t size, cuda_mem_handle handle, const cuda_mem_access_desc *access)
{
    cuda_device_ptr ptr;

    OK(cuMemAddressReserve(&ptr, size, 0, 0, 0));
    OK(cuMemMap(ptr, size, 0, handle, 0));
    if (access)
        OK(cuMemSetAccess(ptr, size, access, 1));
    return ptr;
}

static void unmap(cuda_device_ptr ptr, size_t size)
{
    OK(cuMemUnmap(ptr, size));
    OK(cuMemAddressFree(ptr, size));
}

static void a_mapping_goes_through_its_life(void **state)
{
    uint32_t words[256], back[256];
    cuda_mem_handle handle;
    cuda_device_ptr ptr;
    struct memory_range range;

    (void)state;
    OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
    assert_int_equal(used(), used_at_start + 4 * MIB);
    ptr = map(4 * MIB, handle, NULL);
    assert_false(memory_find(ptr, &range));
    assert_int_equal(cuMemcpyHtoD_v2(ptr, words, sizeof(words)), CUDA_ERR_INVALID_VALUE);
    OK(cuMemSetAccess(ptr, 4 * MIB, &read_write, 1));
    assert_true(memory_find(ptr + 4 * MIB - 1, &range));
    assert_int_equal(range.start, ptr);
    assert_int_equal(range.end, ptr + 4 * MIB);
    assert_int_equal(range.access, MEMORY_READ | MEMORY_WRITE);
    assert_false(memory_find(ptr + 4 * MIB, &range));
    for (uint32_t i = 0; i < 256; i++)
        words[i] = i * 2654435761u;
    OK(cuMemcpyHtoD_v2(ptr + MIB, words, sizeof(words)));
    OK(cuMemcpyDtoD_v2(ptr, ptr + MIB, sizeof(words)));
    OK(cuMemcpyDtoH_v2(back, ptr, sizeof(words)));
    assert_memory_equal(words, back, sizeof(words));
    /* The handle may go first: the mapping keeps the memory, and its charge. */
    OK(cuMemRelease(handle));
    assert_int_equal(cuMemRelease(handle), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(used(), used_at_start + 4 * MIB);
    OK(cuMemcpyDtoH_v2(back, ptr + MIB, sizeof(words)));
    assert_memory_equal(words, back, sizeof(words));
    unmap(ptr, 4 * MIB);
    assert_false(memory_find(ptr, &range));
    assert_int_equal(used(), used_at_start);
}

static void new_memory_has_what_its_last_owner_left(void **state)
{
    const cuda_device_ptr granule = 2 * MIB;
    cuda_mem_handle handle;
    cuda_device_ptr ptr;
    uint64_t first = 0, last = 0;

    (void)state;
    OK(cuMemCreate(&handle, 2 * granule, &prop, 0));
    ptr = map(2 * granule, handle, &read_write);
    OK(cuMemRelease(handle));
    OK(cuMemcpyDtoH_v2(&first, ptr + granule, sizeof(first)));
    OK(cuMemcpyDtoH_v2(&last, ptr + 2 * granule - sizeof(last), sizeof(last)));
    assert_true(first && last);
    unmap(ptr, 2 * granule);
}

static void wrong_arguments_are_refused(void **state)
{
    cuda_mem_allocation_prop other = prop;
    cuda_mem_handle handle, second;
    cuda_device_ptr ptr;

    (void)state;
    assert_int_equal(cuMemCreate(&handle, MIB, &prop, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 0, &prop, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 2 * MIB, &prop, 1), CUDA_ERR_INVALID_VALUE);
    other.location.id = 7;
    assert_int_equal(cuMemCreate(&handle, 2 * MIB, &other, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemAddressReserve(&ptr, MIB, 0, 0, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemAddressReserve(&ptr, 2 * MIB, 3 * MIB, 0, 0), CUDA_ERR_INVALID_VALUE);
    OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
    OK(cuMemCreate(&second, 4 * MIB, &prop, 0));
    OK(cuMemAddressReserve(&ptr, 8 * MIB, 0, 0, 0));
    assert_int_equal(cuMemMap(ptr, 4 * MIB, 2 * MIB, handle, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemMap(ptr, 2 * MIB, 0, handle, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemMap(ptr + MIB, 4 * MIB, 0, handle, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemMap(ptr + 6 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemMap(ptr, 4 * MIB, 0, 12345, 0), CUDA_ERR_INVALID_VALUE);
    OK(cuMemMap(ptr, 4 * MIB, 0, handle, 0));
    assert_int_equal(cuMemMap(ptr + 2 * MIB, 4 * MIB, 0, second, 0), CUDA_ERR_ALREADY_MAPPED);
    assert_int_equal(cuMemSetAccess(ptr, 2 * MIB, &read_write, 1), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemSetAccess(ptr, 8 * MIB, &read_write, 1), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemUnmap(ptr, 2 * MIB), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemUnmap(ptr + 2 * MIB, 2 * MIB), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemAddressFree(ptr, 8 * MIB), CUDA_ERR_INVALID_VALUE);
    OK(cuMemUnmap(ptr, 4 * MIB));
    assert_int_equal(cuMemUnmap(ptr, 4 * MIB), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemAddressFree(ptr, 4 * MIB), CUDA_ERR_INVALID_VALUE);
    OK(cuMemAddressFree(ptr, 8 * MIB));
    OK(cuMemRelease(handle));
    OK(cuMemRelease(second));
}

static void a_hint_is_honoured_where_it_is_free(void **state)
{
    const cuda_device_ptr hint = ARENA_DEVICE_BASE;
    cuda_device_ptr ptr, other;

    (void)state;
    OK(cuMemAddressReserve(&ptr, 64 * MIB, 0, hint, 0));
    assert_int_equal(ptr, hint);
    OK(cuMemAddressReserve(&other, 64 * MIB, 0, hint, 0));
    assert_int_not_equal(other, hint);
    OK(cuMemAddressFree(ptr, 64 * MIB));
    OK(cuMemAddressFree(other, 64 * MIB));
    OK(cuMemAddressReserve(&ptr, 64 * MIB, 0, hint, 0));
    assert_int_equal(ptr, hint);
    OK(cuMemAddressFree(ptr, 64 * MIB));
}

static void an_address_is_mapped_again_at_once(void **state)
{
    cuda_mem_handle handles[2];
    cuda_device_ptr ptr;
    uint32_t value;

    (void)state;
    OK(cuMemAddressReserve(&ptr, 2 * MIB, 0, 0, 0));
    for (int i = 0; i < 2; i++)
        OK(cuMemCreate(&handles[i], 2 * MIB, &prop, 0));
    for (uint32_t i = 0; i < 200; i++) {
        OK(cuMemMap(ptr, 2 * MIB, 0, handles[i % 2], 0));
        OK(cuMemSetAccess(ptr, 2 * MIB, &read_write, 1));
        if (i >= 2) {
            OK(cuMemcpyDtoH_v2(&value, ptr, sizeof(value)));
            assert_int_equal(value, i - 2);
        }
        OK(cuMemcpyHtoD_v2(ptr, &i, sizeof(i)));
        OK(cuMemUnmap(ptr, 2 * MIB));
    }
    OK(cuMemAddressFree(ptr, 2 * MIB));
    OK(cuMemRelease(handles[0]));
    OK(cuMemRelease(handles[1]));
}

static void memory_is_counted_exactly(void **state)
{
    size_t left = TOTAL - used();
    cuda_mem_handle handles[TOTAL / (2 * MIB)] = {0};
    size_t count = left / (2 * MIB);
    cuda_mem_handle more;
    cuda_device_ptr ptr = 0;

    (void)state;
    for (size_t i = 0; i < count; i++)
        OK(cuMemCreate(&handles[i], 2 * MIB, &prop, 0));
    assert_int_equal(used(), used_at_start + count * 2 * MIB);
    assert_int_equal(cuMemCreate(&more, 2 * MIB, &prop, 0), CUDA_ERR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&ptr, 2 * MIB), CUDA_ERR_OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(&ptr, SIZE_MAX), CUDA_ERR_OUT_OF_MEMORY);
    assert_int_equal(cuMemCreate(&more, SIZE_MAX / (2 * MIB) * (2 * MIB), &prop, 0),
                     CUDA_ERR_OUT_OF_MEMORY);
    OK(cuMemRelease(handles[0]));
    OK(cuMemCreate(&handles[0], 2 * MIB, &prop, 0));
    for (size_t i = 0; i < count; i++)
        OK(cuMemRelease(handles[i]));
    OK(cuMemAlloc_v2(&ptr, 1000));
    assert_true(used() >= used_at_start + 1000);
    OK(cuMemFree_v2(ptr));
    assert_int_equal(cuMemFree_v2(ptr), CUDA_ERR_INVALID_VALUE);
    OK(cuMemFree_v2(0));
}

static void a_descriptor_is_the_same_memory(void **state)
{
    cuda_mem_handle handle, again;
    cuda_device_ptr a, b;
    uint32_t value = 0x1234abcd, back = 0;
    int fd = -1;

    (void)state;
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CUDA_MEM_HANDLE_POSIX_FD, 0));
    OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CUDA_MEM_HANDLE_POSIX_FD));
    /* The same memory twice is one charge. */
    assert_int_equal(used(), used_at_start + 2 * MIB);
    a = map(2 * MIB, handle, &read_write);
    b = map(2 * MIB, again, &read_only);
    OK(cuMemcpyHtoD_v2(a + 64, &value, sizeof(value)));
    OK(cuMemcpyDtoH_v2(&back, b + 64, sizeof(back)));
    assert_int_equal(back, value);
    assert_int_equal(cuMemcpyHtoD_v2(b, &value, sizeof(value)), CUDA_ERR_INVALID_VALUE);
    unmap(a, 2 * MIB);
    unmap(b, 2 * MIB);
    OK(cuMemRelease(handle));
    OK(cuMemRelease(again));
    /* A descriptor alone keeps memory, and its charge. */
    assert_int_equal(used(), used_at_start + 2 * MIB);
    OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CUDA_MEM_HANDLE_POSIX_FD));
    assert_int_equal(used(), used_at_start + 2 * MIB);
    OK(cuMemRelease(again));
    close(fd);
    assert_int_equal(used(), used_at_start);
}

static void foreign_descriptors_are_refused(void **state)
{
    cuda_mem_handle handle;
    int plain = memfd_create("softgpu-0", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int named = memfd_create("other-0", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    int pair[2];

    (void)state;
    assert_int_equal(ftruncate(plain, 2 * MIB), 0);
    assert_int_equal(
        cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)plain, CUDA_MEM_HANDLE_POSIX_FD),
        CUDA_ERR_INVALID_VALUE); /* no seals: it could shrink under a kernel */
    assert_int_equal(ftruncate(named, 2 * MIB), 0);
    assert_int_equal(fcntl(named, F_ADD_SEALS, seals), 0);
    assert_int_equal(
        cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)named, CUDA_MEM_HANDLE_POSIX_FD),
        CUDA_ERR_INVALID_VALUE);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)pair[0],
                                                    CUDA_MEM_HANDLE_POSIX_FD),
                     CUDA_ERR_INVALID_VALUE);
    assert_int_equal(
        cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)-1, CUDA_MEM_HANDLE_POSIX_FD),
        CUDA_ERR_INVALID_VALUE);
    close(plain);
    close(named);
    close(pair[0]);
    close(pair[1]);
}

static void registered_host_memory_is_at_its_own_address(void **state)
{
    enum { BYTES = 8192 };
    uint32_t *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cuda_device_ptr device = 0;
    struct memory_range range;

    (void)state;
    assert_true(host != MAP_FAILED);
    assert_int_equal(cuMemHostGetDevicePointer_v2(&device, host, 0), CUDA_ERR_INVALID_VALUE);
    OK(cuMemHostRegister_v2(host, BYTES, CUDA_HOST_REGISTER_DEVICEMAP));
    assert_int_equal(cuMemHostRegister_v2((char *)host + 4096, 4096, 0),
                     CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED);
    OK(cuMemHostGetDevicePointer_v2(&device, host + 5, 0));
    assert_int_equal(device, (uintptr_t)(host + 5));
    OK(launch_store((uintptr_t)host, 77, 4, 64, NULL));
    OK(cuStreamSynchronize(NULL));
    for (int i = 0; i < 256; i++)
        assert_int_equal(host[i], 77);
    assert_int_equal(host[256], 0);
    OK(cuMemHostUnregister(host));
    assert_int_equal(cuMemHostUnregister(host), CUDA_ERR_HOST_MEMORY_NOT_REGISTERED);
    assert_false(memory_find((uintptr_t)host, &range));
    OK(cuMemHostRegister_v2(host, BYTES, CUDA_HOST_REGISTER_READ_ONLY));
    assert_true(memory_find((uintptr_t)host, &range));
    assert_int_equal(range.access, MEMORY_READ);
    OK(cuMemHostUnregister(host));
    assert_int_equal(munmap(host, BYTES), 0);
    assert_int_equal(cuMemHostRegister_v2(host, BYTES, 0), CUDA_ERR_INVALID_VALUE);
}

/* Programs register what they have, which begins and ends within pages. */
static void host_memory_within_pages_can_be_registered(void **state)
{
    enum { PAGE = 4096, BYTES = 2 * PAGE };
    char *host = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct memory_range range;

    (void)state;
    assert_true(host != MAP_FAILED);
    OK(cuMemHostRegister_v2(host + 4000, 160, 0));
    assert_int_equal(cuMemHostRegister_v2(host + 4080, 160, 0),
                     CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED);
    assert_true(memory_find((uintptr_t)host + 4000, &range));
    assert_int_equal(range.end, (uintptr_t)host + 4160);
    assert_int_equal(cuMemHostUnregister(host + 4080), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemHostUnregister(host + 4160), CUDA_ERR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemHostUnregister(host + 4000));
    assert_int_equal(munmap(host + PAGE, PAGE), 0);
    assert_int_equal(cuMemHostRegister_v2(host + 4000, 160, 0), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(munmap(host, PAGE), 0);
}

static void fills_write_what_they_say_and_no_more(void **state)
{
    unsigned char bytes[4096];
    cuda_device_ptr ptr;

    (void)state;
    OK(cuMemAlloc_v2(&ptr, sizeof(bytes)));
    OK(cuMemsetD8_v2(ptr, 0x11, sizeof(bytes)));
    OK(cuMemsetD16_v2(ptr + 512, 0x2233, 16));
    OK(cuMemsetD32_v2(ptr + 1024, 0x44556677, 16));
    OK(cuMemcpyDtoH_v2(bytes, ptr, sizeof(bytes)));
    assert_int_equal(bytes[511], 0x11);
    assert_int_equal(bytes[512], 0x33);
    assert_int_equal(bytes[543], 0x22);
    assert_int_equal(bytes[544], 0x11);
    assert_int_equal(bytes[1024], 0x77);
    assert_int_equal(bytes[1087], 0x44);
    assert_int_equal(bytes[1088], 0x11);
    assert_int_equal(cuMemsetD32_v2(ptr + 2, 0, 1), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemsetD32_v2(ptr, 0, SIZE_MAX / 2), CUDA_ERR_INVALID_VALUE);
    assert_int_equal(cuMemsetD8_v2(ptr, 0, sizeof(bytes) + 16), CUDA_ERR_INVALID_VALUE);
    OK(cuMemFree_v2(ptr));
}

/* Larger than what is done in one go, from and to odd addresses. */
static void large_copies_arrive_whole(void **state)
{
    enum { BYTES = 11 * MIB + 12345 };
    unsigned char *host = malloc(BYTES), *back = malloc(BYTES);
    cuda_device_ptr a, b;
    uint32_t random = 1;

    (void)state;
    assert_non_null(host);
    assert_non_null(back);
    for (size_t i = 0; i < BYTES; i++) {
        random = random * 1664525 + 1013904223;
        host[i] = (unsigned char)(random >> 24);
    }
    OK(cuMemAlloc_v2(&a, BYTES + 3));
    OK(cuMemAlloc_v2(&b, BYTES + 7));
    OK(cuMemcpyHtoD_v2(a + 3, host, BYTES));
    OK(cuMemcpyDtoD_v2(b + 7, a + 3, BYTES));
    OK(cuMemcpyDtoH_v2(back, b + 7, BYTES));
    assert_memory_equal(host, back, BYTES);
    OK(cuMemsetD16_v2(a, 0x5aa5, BYTES / 2));
    OK(cuMemcpyDtoH_v2(back, a, BYTES / 2 * 2));
    for (size_t i = 0; i < BYTES / 2 * 2; i++)
        assert_int_equal(back[i], i % 2 ? 0x5a : 0xa5);
    OK(cuMemFree_v2(a));
    OK(cuMemFree_v2(b));
    free(host);
    free(back);
}

static void pointers_tell_what_they_are(void **state)
{
    unsigned type = 0;
    cuda_device_ptr ptr, base = 0;
    size_t size = 0;
    void *host;

    (void)state;
    OK(cuMemAlloc_v2(&ptr, 4096));
    OK(cuMemAllocHost_v2(&host, 4096));
    OK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, ptr + 8));
    assert_int_equal(type, CUDA_MEMORYTYPE_DEVICE);
    OK(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, (uintptr_t)host));
    assert_int_equal(type, CUDA_MEMORYTYPE_HOST);
    OK(cuMemGetAddressRange_v2(&base, &size, ptr + 100));
    assert_int_equal(base, ptr);
    assert_int_equal(size, 4096);
    OK(cuMemFree_v2(ptr));
    OK(cuMemFreeHost(host));
    assert_int_equal(cuPointerGetAttribute(&type, CUDA_POINTER_MEMORY_TYPE, ptr),
                     CUDA_ERR_INVALID_VALUE);
}

#define CASE(name) cmocka_unit_test_teardown(name, nothing_is_left)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_mapping_goes_through_its_life),
        CASE(new_memory_has_what_its_last_owner_left),
        CASE(wrong_arguments_are_refused),
        CASE(a_hint_is_honoured_where_it_is_free),
        CASE(an_address_is_mapped_again_at_once),
        CASE(memory_is_counted_exactly),
        CASE(a_descriptor_is_the_same_memory),
        CASE(foreign_descriptors_are_refused),
        CASE(registered_host_memory_is_at_its_own_address),
        CASE(host_memory_within_pages_can_be_registered),
        CASE(fills_write_what_they_say_and_no_more),
        CASE(large_copies_arrive_whole),
        CASE(pointers_tell_what_they_are),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
