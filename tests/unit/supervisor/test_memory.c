/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Device memory and the windows it lies in: limits to the byte, and nothing left behind. */
#include "tests/unit/supervisor/fake.h"

static struct fake fake;

/* ---- memory ---- */

static void a_limit_holds_to_the_granule(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 16 * MIB, NULL, NULL);
    fake_alloc_refused(&fake, fd, 16 * MIB + 1, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB");
    fake_alloc_refused(&fake, fd, UINT64_MAX, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    fake_alloc_refused(&fake, fd, UINT64_MAX - 511, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    fake_alloc_refused(&fake, fd, UINT64_MAX - FAKE_GRAIN, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    uint64_t whole = fake_alloc(&fake, fd, 16 * MIB);
    assert_int_equal(fake_usage(&fake, fd).used, 16 * MIB);
    fake_alloc_refused(&fake, fd, 1, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB of 16 MiB are in use");
    fake_free(&fake, fd, whole);
    fake_alloc(&fake, fd, 14 * MIB + 1);
    assert_int_equal(fake_usage(&fake, fd).used, 16 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    assert_int_equal(fake.worker[0].detached, 1);
    fake_close(&fake);
}

static void small_allocations_fill_the_limit_exactly(void **state)
{
    (void)state;
    static uint64_t addresses[256];
    fake_open(&fake, 1, 256 * MIB);
    struct proto_attached attached;
    int fd = fake_attach(&fake, 0, 64 * MIB, NULL, &attached);
    for (unsigned i = 0; i < 256; i++) {
        addresses[i] = fake_alloc(&fake, fd, 256 << 10);
        assert_true(addresses[i] >= attached.device_base &&
                    addresses[i] + (256 << 10) <= attached.device_base + attached.window_bytes);
        for (unsigned k = 0; k < i; k++)
            assert_true(addresses[k] >= addresses[i] + (256 << 10) ||
                        addresses[k] + (256 << 10) <= addresses[i]);
        assert_true(fake_usage(&fake, fd).used <= 64 * MIB);
    }
    assert_int_equal(fake.worker[0].mapped, 64 * MIB);
    fake_alloc_refused(&fake, fd, 1, PROTO_ERROR_OUT_OF_MEMORY, "64 MiB");
    for (unsigned i = 0; i < 256; i++)
        fake_free(&fake, fd, addresses[i]);
    FAKE_WAIT(&fake, fake.worker[0].mapped == 0 && fake_usage(&fake, fd).used == 0);
    fake_free(&fake, fd, fake_alloc(&fake, fd, 64 * MIB));
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void slabs_that_fill_the_limit_serve_larger_requests(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 6 * MIB, NULL, NULL);
    fake_alloc(&fake, fd, 1000 << 10);
    fake_alloc(&fake, fd, 1000 << 10); /* the first slab of 2 MiB */
    fake_alloc(&fake, fd, 1000 << 10); /* the second: what the limit has left */
    assert_int_equal(fake_usage(&fake, fd).used, 6 * MIB);
    fake_alloc(&fake, fd, 3 * MIB);
    assert_int_equal(fake_usage(&fake, fd).used, 6 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void memory_is_not_reused_before_the_worker_says_so(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    uint64_t large = fake_alloc(&fake, fd, 6 * MIB);
    uint64_t small = fake_alloc(&fake, fd, 2 * MIB - 512 - 1024 * 1024);
    fake.worker[0].hold_frees = true;
    fake_free(&fake, fd, large);
    fake_free(&fake, fd, small);
    assert_int_equal(fake_usage(&fake, fd).used, 8 * MIB); /* charged until it is gone */
    struct proto_memory_free twice = {.address = large};
    fake_send(&fake, fd, PROTO_MEMORY_FREE, &twice);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "0x");
    struct proto_memory_alloc body = {.count = 8 * MIB};
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &body);
    body.count = 512;
    fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &body); /* has room in the slab: does not wait */
    const struct proto_memory_allocated *got = fake_expect(&fake, fd, PROTO_MEMORY_ALLOCATED);
    uint64_t little = got->address;
    assert_true(little != small);
    fake_free(&fake, fd, little);
    fake_settle(&fake);
    assert_int_equal(fake_take(&fake, fd), CHANNEL_EMPTY);
    fake_release(&fake.worker[0]);
    got = fake_expect(&fake, fd, PROTO_MEMORY_ALLOCATED);
    assert_int_equal(got->count, 8 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_full_device_is_tried_with_smaller_slabs(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 64 * MIB, NULL, NULL);
    for (unsigned i = 0; i < 14 * 2; i++) /* 2 + 4 + 8 MiB of slabs */
        fake_alloc(&fake, fd, 512 << 10);
    fake.worker[0].refuse_above = 2 * MIB;
    fake_alloc(&fake, fd, 512 << 10);
    assert_int_equal(fake_usage(&fake, fd).used, 16 * MIB);
    fake.worker[0].refuse_map = 1000;
    fake_alloc_refused(&fake, fd, 5 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "the device is full");
    for (unsigned i = 0; i < 3; i++)
        fake_alloc(&fake, fd, 512 << 10);
    fake_alloc_refused(&fake, fd, 512 << 10, PROTO_ERROR_OUT_OF_MEMORY, "the device is full");
    assert_int_equal(fake_usage(&fake, fd).used, 16 * MIB);
    fake.worker[0].refuse_map = 0;
    fake_alloc(&fake, fd, 512 << 10);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* A window as large as the limit, with two holes of a quarter each: half of it is nowhere free. */
static void an_allocation_that_finds_no_addresses_costs_nothing(void **state)
{
    (void)state;
    struct proto_attached attached;
    uint64_t quarters[4];
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 256 * MIB, NULL, &attached);
    assert_int_equal(attached.window_bytes, 256 * MIB);
    for (int i = 0; i < 4; i++)
        quarters[i] = fake_alloc(&fake, fd, 64 * MIB);
    fake_free(&fake, fd, quarters[0]);
    fake_free(&fake, fd, quarters[2]);
    FAKE_WAIT(&fake, fake_usage(&fake, fd).used == 128 * MIB);
    fake_alloc_refused(&fake, fd, 128 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "fragmented");
    assert_int_equal(fake_usage(&fake, fd).used, 128 * MIB);
    fake_alloc(&fake, fd, 64 * MIB);
    fake_alloc(&fake, fd, 64 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void strangers_addresses_are_no_handles(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, NULL), two = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t address = fake_alloc(&fake, one, 4 * MIB), inside = address + 512;
    struct proto_memory_free body = {.address = address};
    fake_send(&fake, two, PROTO_MEMORY_FREE, &body);
    fake_expect_failed(&fake, two, PROTO_ERROR_INVALID_HANDLE, "of this client");
    body.address = inside;
    fake_send(&fake, one, PROTO_MEMORY_FREE, &body);
    fake_expect_failed(&fake, one, PROTO_ERROR_INVALID_HANDLE, "begins at");
    fake_free(&fake, one, address);
    close(one);
    close(two);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void file_descriptors_are_a_limit_of_their_own(void **state)
{
    (void)state;
    fake_open(&fake, 1, 4096 * MIB);
    fake.supervisor->server.budget.client_max = 3;
    fake.supervisor->server.fds.limit = 6; /* of which a user may have 5 */
    int one = fake_attach(&fake, 0, 0, NULL, NULL), two = fake_attach(&fake, 0, 0, NULL, NULL);
    for (unsigned i = 0; i < 3; i++)
        fake_alloc(&fake, one, 2 * MIB);
    fake_alloc_refused(&fake, one, 2 * MIB, PROTO_ERROR_SERVER_RESOURCES, "3 of 3");
    for (unsigned i = 0; i < 2; i++)
        fake_alloc(&fake, two, 2 * MIB);
    fake_alloc_refused(&fake, two, 2 * MIB, PROTO_ERROR_SERVER_RESOURCES, "5 of 5");
    struct proto_host_alloc host = {.count = 1};
    fake_send(&fake, two, PROTO_HOST_ALLOC, &host);
    fake_expect_failed(&fake, two, PROTO_ERROR_SERVER_RESOURCES, "5 of 5");
    close(one);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    fake_alloc(&fake, two, 2 * MIB);
    close(two);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* ---- windows ---- */

static void a_window_moves_until_something_lies_in_it(void **state)
{
    (void)state;
    struct proto_attached attached;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, &attached);
    uint64_t before = attached.device_base;
    for (unsigned i = 0; i < 3; i++) {
        fake_send(&fake, fd, PROTO_WINDOW_MOVE, NULL);
        const struct proto_window *window = fake_expect(&fake, fd, PROTO_WINDOW);
        assert_true(window->device_base > before);
        assert_int_equal(window->device_base - fake.settings.device_base,
                         window->host_base - fake.settings.host_base);
        assert_int_equal(window->window_bytes, attached.window_bytes);
        before = window->device_base;
    }
    assert_int_equal(fake.supervisor->server.plan.windows, 1);
    assert_true(fake_alloc(&fake, fd, 1) >= before);
    fake_send(&fake, fd, PROTO_WINDOW_MOVE, NULL);
    fake_expect_failed(&fake, fd, PROTO_ERROR_NOT_PERMITTED, "allocated");
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_full_arena_refuses_by_name(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.supervisor->server.plan.bytes = 1024 * MIB; /* four windows */
    int fds[4];
    for (unsigned i = 0; i < 4; i++)
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
    int fd = fake_greet(&fake);
    struct proto_attach body = {.allowance = PROTO_ALLOWANCE_UNSET};
    fake_send(&fake, fd, PROTO_ATTACH, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_ADDRESS_SPACE_FULL, "256 MiB");
    close(fds[2]);
    FAKE_WAIT(&fake, fake.supervisor->server.plan.windows == 3);
    fake_send(&fake, fd, PROTO_ATTACH, &body); /* the refused one may try again */
    fake_expect(&fake, fd, PROTO_ATTACHED);
    channel_close_fds(&fake.message);
    close(fd);
    for (unsigned i = 0; i < 4; i++)
        if (i != 2)
            close(fds[i]);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_holds_to_the_granule),
        cmocka_unit_test(small_allocations_fill_the_limit_exactly),
        cmocka_unit_test(slabs_that_fill_the_limit_serve_larger_requests),
        cmocka_unit_test(memory_is_not_reused_before_the_worker_says_so),
        cmocka_unit_test(a_full_device_is_tried_with_smaller_slabs),
        cmocka_unit_test(an_allocation_that_finds_no_addresses_costs_nothing),
        cmocka_unit_test(strangers_addresses_are_no_handles),
        cmocka_unit_test(file_descriptors_are_a_limit_of_their_own),
        cmocka_unit_test(a_window_moves_until_something_lies_in_it),
        cmocka_unit_test(a_full_arena_refuses_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
