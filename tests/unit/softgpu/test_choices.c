/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Random choices of the software GPU: the seed decides them, and a switch takes them away. Every
 * case is a process, for settings are read once.
 */
#include "common/ipc/arena.h"
#include "tests/unit/softgpu/kernels.h"

#include <stdbool.h>
#include <sys/mman.h>

enum { SMS = 16, CHOICES = 40 };

/* The multiprocessor that each of some kernels began on, and the hints that were refused. Shared
 * with the process that looks. */
struct choices {
    uint8_t sm[CHOICES];
    bool refused[CHOICES];
};

static struct choices *made;

static void open_device(void)
{
    setenv("SOFTGPU_SMS", "16", 1);
    setenv("SOFTGPU_ARRIVAL_NS", "0", 1);
    setenv("SOFTGPU_PRIVATE_QUEUES", "1", 1);
    CHECK(kernels_open() == 0);
}

static uint8_t next_sm(cuda_device_ptr counts)
{
    uint32_t histogram[SMS];
    uint8_t sm = 0;

    CHECK(cuMemsetD32_v2(counts, 0, SMS) == CUDA_OK);
    CHECK(launch_smid(counts, 1, 1, 1000, NULL) == CUDA_OK);
    CHECK(cuMemcpyDtoH_v2(histogram, counts, sizeof(histogram)) == CUDA_OK);
    while (sm < SMS - 1 && histogram[sm] == 0)
        sm++;
    CHECK(histogram[sm] == 1);
    return sm;
}

static void body_choose(void)
{
    cuda_device_ptr counts, address;

    setenv("SOFTGPU_HINT_ERROR", "50", 1);
    open_device();
    CHECK(cuMemAlloc_v2(&counts, SMS * 4) == CUDA_OK);
    for (int i = 0; i < CHOICES; i++) {
        cuda_result result = cuMemAddressReserve(&address, 2 << 20, 0, ARENA_DEVICE_BASE, 0);

        made->refused[i] = result != CUDA_OK;
        CHECK(result != CUDA_OK || cuMemAddressFree(address, 2 << 20) == CUDA_OK);
        made->sm[i] = next_sm(counts);
    }
}

static struct choices choices_by(const char *seed)
{
    setenv("SOFTGPU_SEED", seed, 1);
    in_child(body_choose);
    unsetenv("SOFTGPU_SEED");
    return *made;
}

static void a_seed_repeats_its_choices_and_another_makes_others(void **state)
{
    struct choices first, again, other;

    (void)state;
    made = mmap(NULL, sizeof(*made), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(made != MAP_FAILED);
    first = choices_by("7");
    again = choices_by("7");
    other = choices_by("8");
    munmap(made, sizeof(*made));
    assert_memory_equal(first.sm, again.sm, sizeof(first.sm));
    assert_memory_equal(first.refused, again.refused, sizeof(first.refused));
    assert_memory_not_equal(first.sm, other.sm, sizeof(first.sm));
    assert_memory_not_equal(first.refused, other.refused, sizeof(first.refused));
}

/* Of some rounds, those in which a later grid of one wave overtook one of three waves of 2 ms. */
static unsigned overtaken(void)
{
    enum { ROUNDS = 12 };
    cuda_stream gate, early, late;
    cuda_event start, end;
    unsigned count = 0;

    CHECK(cuStreamCreate(&gate, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuStreamCreate(&early, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuStreamCreate(&late, CUDA_STREAM_NON_BLOCKING) == CUDA_OK);
    CHECK(cuEventCreate(&start, 0) == CUDA_OK && cuEventCreate(&end, 0) == CUDA_OK);
    for (int i = 0; i < ROUNDS; i++) {
        float milliseconds;

        CHECK(launch_sleep(1, 32, 1000000, 10, gate) == CUDA_OK);
        CHECK(cuEventRecord(start, gate) == CUDA_OK);
        CHECK(cuStreamWaitEvent(early, start, 0) == CUDA_OK);
        CHECK(cuStreamWaitEvent(late, start, 0) == CUDA_OK);
        CHECK(launch_sleep(6 * SMS, 1024, 1000000, 2, early) == CUDA_OK);
        CHECK(launch_sleep(2 * SMS, 1024, 1000000, 2, late) == CUDA_OK);
        CHECK(cuEventRecord(end, late) == CUDA_OK);
        CHECK(cuCtxSynchronize() == CUDA_OK);
        CHECK(cuEventElapsedTime(&milliseconds, start, end) == CUDA_OK);
        count += milliseconds < 5.5f;
    }
    return count;
}

static void body_in_order(void)
{
    open_device();
    CHECK(overtaken() == 0);
}

static void body_in_no_order(void)
{
    setenv("SOFTGPU_GRID_ORDER", "0", 1);
    open_device();
    CHECK(overtaken() > 0);
}

static void an_earlier_grid_comes_first_unless_switched_off(void **state)
{
    (void)state;
    in_child(body_in_order);
    in_child(body_in_no_order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_repeats_its_choices_and_another_makes_others),
        cmocka_unit_test(an_earlier_grid_comes_first_unless_switched_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
