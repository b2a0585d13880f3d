/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Memory that was freed, which gpushare keeps for the program's next allocation. */
#include <unistd.h>

#include "tests/programs/dropin/dropin.h"

enum { SIZE = 8 << 20 };

static size_t free_bytes(void)
{
    size_t bytes, total;
    OK(cuMemGetInfo_v2(&bytes, &total));
    return bytes;
}

/* It is no allocation any more, whoever has it. */
static void check_gone(cuda_device_ptr ptr)
{
    uint32_t word = 0;
    unsigned kind;
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFree_v2(ptr));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemFreeAsync(ptr, NULL));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuMemcpyHtoD_v2(ptr, &word, sizeof word));
    EXPECT(CUDA_ERR_INVALID_VALUE, cuPointerGetAttribute(&kind, CUDA_POINTER_MEMORY_TYPE, ptr));
}

void check_freed(const struct work *work)
{
    cuda_device_ptr ptr, again, small;
    uint32_t word = 5, found = 0;
    OK(cuCtxSynchronize());
    size_t before = free_bytes();
    OK(cuMemAlloc_v2(&ptr, SIZE));
    OK(cuMemAlloc_v2(&small, 512));
    OK(cuMemFree_v2(small));
    OK(cuMemFree_v2(ptr));
    check_gone(ptr);
    CHECK(free_bytes() == before);
    OK(cuMemAlloc_v2(&again, SIZE));
    if (is_served())
        CHECK(again == ptr);
    OK(cuMemcpyHtoD_v2(again + SIZE - 4, &word, sizeof word));
    OK(cuMemcpyDtoH_v2(&found, again + SIZE - 4, sizeof found));
    CHECK(found == word && free_bytes() < before);
    /* Freed at once, it serves an allocation in a stream's order too, and the reverse. */
    OK(cuMemFree_v2(again));
    OK(cuMemAllocAsync(&ptr, SIZE, NULL));
    OK(count(work, 0, NULL));
    OK(cuMemFreeAsync(ptr, NULL));
    OK(cuCtxSynchronize());
    check_gone(ptr);
    OK(cuMemAlloc_v2(&again, SIZE));
    if (is_served())
        CHECK(again == ptr);
    OK(cuMemFree_v2(again));
    CHECK(free_bytes() == before);
}

/* Keeps three eighths of the memory idle until standard input ends, and has as much then. */
void keep_idle(void)
{
    struct work work;
    size_t bytes, total;
    cuda_device_ptr ptr;
    begin(&work);
    OK(cuMemGetInfo_v2(&bytes, &total));
    OK(cuMemAlloc_v2(&ptr, total / 8 * 3));
    OK(cuMemFree_v2(ptr));
    printf("ready\n");
    fflush(stdout);
    (void)!read(STDIN_FILENO, &(char){0}, 1);
    /* The server may notice the end of a program that had the memory only later. The test's own
     * limit of time ends this. */
    cuda_result result;
    while ((result = cuMemAlloc_v2(&ptr, total / 8 * 3)) == CUDA_ERR_OUT_OF_MEMORY)
        usleep(1000);
    OK(result);
    OK(cuMemsetD32_v2(ptr, 9, SIZE / 4));
    uint32_t found;
    OK(cuMemcpyDtoH_v2(&found, ptr + SIZE - 4, sizeof found));
    CHECK(found == 9);
    OK(cuMemFree_v2(ptr));
    demand(&work, 7);
    printf("right\n");
}

/* Has three quarters of the memory. */
void fill_memory(void)
{
    struct work work;
    size_t bytes, total;
    cuda_device_ptr ptr;
    begin(&work);
    OK(cuMemGetInfo_v2(&bytes, &total));
    OK(cuMemAlloc_v2(&ptr, total / 4 * 3));
    OK(cuMemFree_v2(ptr));
}
