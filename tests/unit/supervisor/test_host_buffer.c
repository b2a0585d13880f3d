/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Host buffers and what processes share of them: limits, and nothing left behind. */
#include "tests/unit/supervisor/fake.h"

#include <sys/stat.h>

static struct fake fake;

/* ---- of one client ---- */

static void pinned_memory_has_two_limits(void **state)
{
    (void)state;
    int fds[5];
    struct proto_attached attached;
    fake_open(&fake, 1, 256 * MIB);
    for (unsigned i = 0; i < 5; i++)
        fds[i] = fake_attach(&fake, 0, 0, NULL, &attached);
    fake_host_refused(&fake, fds[0], 16 * MIB + 1, PROTO_ERROR_OUT_OF_MEMORY, "16 MiB");
    fake_host_refused(&fake, fds[0], UINT64_MAX, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    uint64_t first = fake_host_alloc(&fake, fds[0], 16 * MIB, NULL);
    fake_host_refused(&fake, fds[0], 1, PROTO_ERROR_OUT_OF_MEMORY, "this client: 16 MiB of 16 MiB");
    for (unsigned i = 1; i < 4; i++)
        fake_host_alloc(&fake, fds[i], 16 * MIB, NULL);
    fake_host_refused(&fake, fds[4], 1, PROTO_ERROR_OUT_OF_MEMORY,
                      "of the server (--host-memory-total): 64 MiB of 64 MiB");
    struct proto_host_free body = {.address = first};
    fake_send(&fake, fds[1], PROTO_HOST_FREE, &body);
    fake_expect_failed(&fake, fds[1], PROTO_ERROR_INVALID_HANDLE, "of this client");
    fake_send(&fake, fds[0], PROTO_HOST_FREE, &body);
    fake_expect(&fake, fds[0], PROTO_DONE);
    FAKE_WAIT(&fake, fake.supervisor->server.quotas[RESOURCE_HOST_MEMORY].used == 48 * MIB);
    uint64_t last = fake_host_alloc(&fake, fds[4], 16 * MIB, NULL);
    assert_true(last >= attached.host_base &&
                last + 16 * MIB <= attached.host_base + attached.window_bytes);
    for (unsigned i = 0; i < 5; i++)
        close(fds[i]);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_buffer_waits_for_one_that_is_being_freed(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    struct proto_host_free body = {.address = fake_host_alloc(&fake, fd, 16 * MIB, NULL)};
    struct proto_host_alloc more = {.count = 16 * MIB};
    fake.worker[0].hold_frees = true;
    fake_send(&fake, fd, PROTO_HOST_FREE, &body);
    fake_expect(&fake, fd, PROTO_DONE);
    assert_int_equal(fake_usage(&fake, fd).host_used, 16 * MIB);
    fake_send(&fake, fd, PROTO_HOST_ALLOC, &more);
    fake_settle(&fake);
    assert_int_equal(fake_take(&fake, fd), CHANNEL_EMPTY);
    fake_release(&fake.worker[0]);
    fake_expect(&fake, fd, PROTO_HOST_ALLOCATED);
    channel_close_fds(&fake.message);
    /* And one that vanishes while it waits. */
    fake.worker[0].hold_frees = true;
    body.address = ((const struct proto_host_allocated *)fake.message.body)->address;
    fake_send(&fake, fd, PROTO_HOST_FREE, &body);
    fake_expect(&fake, fd, PROTO_DONE);
    fake_send(&fake, fd, PROTO_HOST_ALLOC, &more);
    fake_settle(&fake);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static uint64_t memory_of(int fd)
{
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

/* Asks for a ring; it must come with these. Returns the descriptor, which the caller closes. */
static int make_rings(int fd, uint32_t stream, uint32_t first, uint32_t count)
{
    struct proto_ring_make make = {.stream = stream};
    fake_send(&fake, fd, PROTO_RING_MAKE, &make);
    const struct proto_rings_made *made = fake_expect(&fake, fd, PROTO_RINGS_MADE);
    assert_int_equal(made->first, first);
    assert_int_equal(made->count, count);
    return channel_take_fd(&fake.message, 0);
}

/* The fake server's clients have four streams each. */
static void rings_are_charged_before_they_are_made(void **state)
{
    (void)state;
    const uint64_t ring = PROTO_RING_STRIDE;
    fake_open(&fake, 1, 256 * MIB);
    const struct quota *all = &fake.supervisor->server.quotas[RESOURCE_HOST_MEMORY];
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    assert_int_equal(all->used, 0);
    int memory[3] = {make_rings(fd, 0, 0, 1), -1, -1};
    assert_int_equal(all->used, ring);
    assert_int_equal(lseek(memory[0], 0, SEEK_END), ring);
    /* The rest is less than the three others need, since a buffer has its part. */
    uint64_t rest = (16 * MIB - ring - 3 * ring) / 4096 * 4096 + 4096;
    uint64_t address = fake_host_alloc(&fake, fd, rest, NULL);
    struct proto_ring_make make = {.stream = 3};
    fake_send(&fake, fd, PROTO_RING_MAKE, &make);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY, "streams need 588 KiB");
    assert_int_equal(all->used, ring + rest);
    fake_host_free(&fake, fd, address);
    FAKE_WAIT(&fake, all->used == ring);
    memory[1] = make_rings(fd, 3, 1, 3);
    memory[2] = make_rings(fd, 1, 1, 3);
    assert_int_equal(all->used, 4 * ring);
    assert_int_equal(lseek(memory[1], 0, SEEK_END), 3 * ring);
    make.stream = 4;
    fake_send(&fake, fd, PROTO_RING_MAKE, &make);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_VALUE, "no ring of stream 4");
    /* Nobody makes more of it than was charged. */
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(ftruncate(memory[i], 16 * MIB), 0);
        assert_int_not_equal(fallocate(memory[i], 0, 0, 16 * MIB), 0);
        close(memory[i]);
    }
    close(fd);
    fake_expect_nothing_left(&fake);
    assert_int_equal(all->used, 0);
    fake_close(&fake);
}

static void the_rings_memory_goes_with_its_client(void **state)
{
    (void)state;
    static const char text[4096] = "what the client wrote";
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    int kept[2] = {dup(fake_first(&fake)->header.fd), make_rings(fd, 0, 0, 1)};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pwrite(kept[i], text, sizeof text, 0), sizeof text);
        assert_int_equal(memory_of(kept[i]), sizeof text);
    }
    close(fd);
    fake_expect_nothing_left(&fake);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(memory_of(kept[i]), 0);
        close(kept[i]);
    }
    fake_close(&fake);
}

/* The client still has the descriptor when nobody is charged for the memory any more. */
static void a_buffer_is_empty_when_it_is_paid_back(void **state)
{
    (void)state;
    int kept;
    fake_open(&fake, 1, 256 * MIB);
    const struct quota *all = &fake.supervisor->server.quotas[RESOURCE_HOST_MEMORY];
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    uint64_t address = fake_host_alloc(&fake, fd, 8 * MIB, &kept);
    assert_int_equal(memory_of(kept), 8 * MIB);
    fake_host_free(&fake, fd, address);
    FAKE_WAIT(&fake, all->used == 0);
    assert_int_equal(memory_of(kept), 0);
    close(kept);
    fake_host_alloc(&fake, fd, 8 * MIB, &kept);
    assert_int_equal(memory_of(kept), 8 * MIB);
    close(fd);
    FAKE_WAIT(&fake, all->used == 0);
    assert_int_equal(memory_of(kept), 0);
    close(kept);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* ---- shared ---- */

static void buffers_are_shared_within_a_process_only(void **state)
{
    (void)state;
    struct proto_attached a, b, c;
    fake_open(&fake, 2, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, &a);
    int two = fake_attach(&fake, 1, 0, a.group, &b);
    uint8_t guess[16] = {1, 2, 3};
    int stranger = fake_attach(&fake, 1, 0, guess, &c);
    assert_memory_not_equal(guess, c.group, 16);
    assert_memory_equal(a.group, b.group, 16);
    assert_memory_not_equal(a.group, c.group, 16);
    struct proto_host_import share = {.client = a.client,
                                      .address = fake_host_alloc(&fake, one, MIB, NULL)};
    struct proto_link link = {.client = a.client};
    fake_send(&fake, stranger, PROTO_HOST_IMPORT, &share);
    fake_expect_failed(&fake, stranger, PROTO_ERROR_NOT_PERMITTED, "group");
    fake_send(&fake, stranger, PROTO_LINK, &link);
    fake_expect_failed(&fake, stranger, PROTO_ERROR_NOT_PERMITTED, "group");
    fake_send(&fake, two, PROTO_LINK, &link);
    fake_expect(&fake, two, PROTO_LINKED);
    fake_send(&fake, two, PROTO_HOST_IMPORT, &share);
    fake_expect(&fake, two, PROTO_DONE);
    assert_int_equal(fake.worker[1].host_mapped, MIB);
    fake_send(&fake, two, PROTO_HOST_IMPORT, &share);
    fake_expect_failed(&fake, two, PROTO_ERROR_INVALID_HANDLE, "already");
    /* Freed by its owner it stays, with its addresses, until the other lets go. */
    struct proto_host_free body = {.address = share.address};
    fake_send(&fake, one, PROTO_HOST_FREE, &body);
    fake_expect(&fake, one, PROTO_DONE);
    FAKE_WAIT(&fake, fake.worker[0].host_mapped == 0);
    fake_settle(&fake);
    assert_int_equal(fake_usage(&fake, one).host_used, MIB);
    assert_true(fake_host_alloc(&fake, one, 4096, NULL) != share.address);
    fake_send(&fake, two, PROTO_HOST_FREE, &body);
    fake_expect(&fake, two, PROTO_DONE);
    FAKE_WAIT(&fake, fake.worker[1].host_mapped == 0 && fake_usage(&fake, one).host_used == 4096);
    close(one);
    close(two);
    close(stranger);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_shared_buffer_counts_for_both(void **state)
{
    (void)state;
    struct proto_attached a, b;
    fake_open(&fake, 2, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, &a);
    int two = fake_attach(&fake, 1, 0, a.group, &b);
    int same = fake_attach(&fake, 0, 0, a.group, NULL);
    struct proto_host_import share = {.client = a.client,
                                      .address = fake_host_alloc(&fake, one, 10 * MIB, NULL)};
    /* On the same device both workers are one, and the buffer is mapped there already. */
    fake_send(&fake, same, PROTO_HOST_IMPORT, &share);
    fake_expect_failed(&fake, same, PROTO_ERROR_NOT_PERMITTED, "device 0");
    assert_int_equal(fake_usage(&fake, two).host_used, 0);
    fake_send(&fake, two, PROTO_HOST_IMPORT, &share);
    fake_expect(&fake, two, PROTO_DONE);
    assert_int_equal(fake_usage(&fake, two).host_used, 10 * MIB);
    /* The limit of each is 16 MiB: what it borrows must fit as well. */
    share.address = fake_host_alloc(&fake, one, 6 * MIB, NULL);
    fake_host_alloc(&fake, two, 4096, NULL);
    fake_send(&fake, two, PROTO_HOST_IMPORT, &share);
    fake_expect_failed(&fake, two, PROTO_ERROR_OUT_OF_MEMORY, "pinned host memory limit");
    assert_int_equal(fake.worker[1].host_mapped, 10 * MIB + 4096);
    close(one);
    close(two);
    close(same);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* A buffer that a link hands to the other worker can only be read, and ends with the client. */
static void a_link_shows_a_timeline_and_its_end(void **state)
{
    (void)state;
    struct proto_attached a;
    fake_open(&fake, 2, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, &a);
    int two = fake_attach(&fake, 1, 0, a.group, NULL);
    struct proto_link link = {.client = a.client};
    struct proto_linked linked = {.link = 1};
    fake.worker[1].automatic = false;
    fake_send(&fake, two, PROTO_LINK, &link);
    struct channel_message *asked = fake_worker_expect(&fake, 1, PROTO_WORKER_LINK);
    int shadow = channel_take_fd(asked, 0);
    assert_int_equal(fcntl(shadow, F_GETFL) & O_ACCMODE, O_RDONLY);
    fake_reply(&fake.worker[1], asked, PROTO_LINKED, &linked, NULL, 0);
    fake_expect(&fake, two, PROTO_LINKED);
    const uint64_t *words = mmap(NULL, 4096, PROT_READ, MAP_SHARED, shadow, 0);
    assert_true(words != MAP_FAILED);
    for (unsigned i = 0; i < fake.settings.streams; i++)
        assert_int_equal(words[i], 0);
    close(one);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    for (unsigned i = 0; i < fake.settings.streams; i++)
        assert_true(words[i] == UINT64_MAX);
    munmap((void *)(uintptr_t)words, 4096);
    close(shadow);
    fake.worker[1].automatic = true;
    close(two);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* Each lends to the other, and they end in either order or together. */
static void shares_do_not_outlive_their_owner(void **state)
{
    (void)state;
    fake_open(&fake, 2, 256 * MIB);
    for (unsigned round = 0; round < 4; round++) {
        struct proto_attached a, b;
        int one = fake_attach(&fake, 0, 0, NULL, &a);
        int two = fake_attach(&fake, 1, 0, a.group, &b);
        struct proto_host_import there = {.client = a.client,
                                          .address = fake_host_alloc(&fake, one, MIB, NULL)};
        struct proto_host_import back = {.client = b.client,
                                         .address = fake_host_alloc(&fake, two, MIB, NULL)};
        fake_send(&fake, two, PROTO_HOST_IMPORT, &there);
        fake_expect(&fake, two, PROTO_DONE);
        fake_send(&fake, one, PROTO_HOST_IMPORT, &back);
        fake_expect(&fake, one, PROTO_DONE);
        close(round & 1 ? one : two);
        if (round & 2) {
            FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
            assert_int_equal(fake_first(&fake)->lent, 0);
            assert_true(list_is_empty(&fake_first(&fake)->imports));
        }
        close(round & 1 ? two : one);
        fake_expect_nothing_left(&fake);
    }
    fake_close(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pinned_memory_has_two_limits),
        cmocka_unit_test(a_buffer_waits_for_one_that_is_being_freed),
        cmocka_unit_test(a_buffer_is_empty_when_it_is_paid_back),
        cmocka_unit_test(rings_are_charged_before_they_are_made),
        cmocka_unit_test(the_rings_memory_goes_with_its_client),
        cmocka_unit_test(buffers_are_shared_within_a_process_only),
        cmocka_unit_test(a_shared_buffer_counts_for_both),
        cmocka_unit_test(a_link_shows_a_timeline_and_its_end),
        cmocka_unit_test(shares_do_not_outlive_their_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
