/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Device memory, host buffers, modules: limits to the byte, and nothing left behind. */
#include "tests/unit/supervisor/fake.h"

#include <sys/stat.h>

static struct fake fake;

/* ---- device memory ---- */

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

/* ---- host buffers ---- */

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
    FAKE_WAIT(&fake, fake.supervisor->server.accounts[RESOURCE_HOST_MEMORY].used == 48 * MIB);
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

/* The client still has the descriptor when nobody is charged for the memory any more. */
static void a_buffer_is_empty_when_it_is_paid_back(void **state)
{
    (void)state;
    int kept;
    fake_open(&fake, 1, 256 * MIB);
    const struct quota *all = &fake.supervisor->server.accounts[RESOURCE_HOST_MEMORY];
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

/* What a link hands to the other worker can only be read, and ends with the client. */
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
            assert_null(fake_first(&fake)->imports);
        }
        close(round & 1 ? two : one);
        fake_expect_nothing_left(&fake);
    }
    fake_close(&fake);
}

/* ---- modules ---- */

static int image_fd(const char *text)
{
    int fd = memfd_create("test-image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

static void send_image(int fd, const char *text, uint64_t count)
{
    struct proto_module_load body = {.count = count};
    int image = image_fd(text);
    fake_send_fd(&fake, fd, PROTO_MODULE_LOAD, &body, &image, 1);
    close(image);
}

static uint32_t load(int fd, const char *text)
{
    send_image(fd, text, strlen(text));
    return ((const struct proto_module_loaded *)fake_expect(&fake, fd, PROTO_MODULE_LOADED))
        ->module;
}

static void images_are_shared_by_content(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int one = fake_attach(&fake, 0, 0, NULL, NULL), two = fake_attach(&fake, 0, 0, NULL, NULL);
    uint32_t module = load(one, "the same text");
    load(two, "the same text");
    assert_int_equal(fake.supervisor->server.cache.images, 1);
    assert_int_equal(fake.supervisor->server.cache.first->references, 2);
    load(two, "another text!");
    assert_int_equal(fake.supervisor->server.cache.images, 2);
    struct proto_module_unload body = {.module = module};
    fake_send(&fake, one, PROTO_MODULE_UNLOAD, &body);
    fake_expect(&fake, one, PROTO_DONE);
    assert_int_equal(fake.supervisor->server.cache.images, 2);
    fake_send(&fake, one, PROTO_MODULE_UNLOAD, &body);
    fake_expect_failed(&fake, one, PROTO_ERROR_INVALID_HANDLE, "module 1");
    close(two);
    FAKE_WAIT(&fake, fake.supervisor->server.cache.images == 0);
    close(one);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void images_that_lie_are_refused(void **state)
{
    (void)state;
    struct proto_module_load body = {.count = 5};
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    send_image(fd, "shorter", 8);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_IMAGE, "shorter than");
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    fake_send_fd(&fake, fd, PROTO_MODULE_LOAD, &body, &pipes[0], 1);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_IMAGE, "memfd");
    int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    fake_send_fd(&fake, fd, PROTO_MODULE_LOAD, &body, &file, 1);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_IMAGE, "memfd");
    close(pipes[0]);
    close(pipes[1]);
    close(file);
    assert_int_equal(fake.worker[0].inspected, 0);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void variables_are_charged_and_come_back(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].global_bytes = 5 * MIB;
    uint32_t module = load(fd, "module with variables");
    assert_int_equal(fake_usage(&fake, fd).used, 6 * MIB);
    /* The variables' memory is not the client's to free. */
    struct proto_memory_free body = {.address = fake_first(&fake)->heap.first->address};
    fake_send(&fake, fd, PROTO_MEMORY_FREE, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "of this client");
    /* A second one does not fit: the worker is told to forget what it has inspected. */
    send_image(fd, "another", 7);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY, "variables");
    FAKE_WAIT(&fake, fake.worker[0].unloads == 1);
    assert_int_equal(fake_first(&fake)->module_count, 1);
    struct proto_module_unload unload = {.module = module};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    FAKE_WAIT(&fake, fake_usage(&fake, fd).used == 0);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void variables_that_the_driver_places_are_charged_too(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].resident_bytes = 5 * MIB + 1;
    uint32_t module = load(fd, "module with constants");
    assert_int_equal(fake_usage(&fake, fd).used, 5 * MIB + 1);
    send_image(fd, "another", 7);
    fake_expect_failed(&fake, fd, PROTO_ERROR_OUT_OF_MEMORY,
                       "5 MiB of 8 MiB are in use and 5 MiB more");
    fake_alloc_refused(&fake, fd, 3 * MIB, PROTO_ERROR_OUT_OF_MEMORY, "limit");
    fake_alloc(&fake, fd, 2 * MIB);
    struct proto_module_unload unload = {.module = module};
    fake_send(&fake, fd, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, fd, PROTO_DONE);
    FAKE_WAIT(&fake, fake_usage(&fake, fd).used == 2 * MIB);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void images_are_a_limit_of_their_own(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    fake.supervisor->server.images.limit = 40; /* of which each client may have a quarter */
    int one = fake_attach(&fake, 0, 0, NULL, NULL), two = fake_attach(&fake, 0, 0, NULL, NULL);
    uint32_t module = load(one, "sixofs");
    send_image(one, "fiveB", 5);
    fake_expect_failed(&fake, one, PROTO_ERROR_OUT_OF_MEMORY, "module image memory of this client");
    load(one, "four");
    assert_int_equal(fake.supervisor->server.images.used, 10);
    /* Each client pays for what it loaded, though the bytes are kept once. */
    load(two, "sixofs");
    assert_int_equal(fake.supervisor->server.images.used, 16);
    assert_int_equal(fake.supervisor->server.cache.images, 2);
    struct proto_module_unload unload = {.module = module};
    fake_send(&fake, one, PROTO_MODULE_UNLOAD, &unload);
    fake_expect(&fake, one, PROTO_DONE);
    load(one, "fiveB");
    close(one);
    close(two);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* Many connections are no way around the part of one. */
static void a_user_with_many_clients_leaves_a_quarter_to_others(void **state)
{
    (void)state;
    enum { CLIENTS = 4 };
    int fds[CLIENTS];
    char who[64];
    fake_open(&fake, 1, 256 * MIB);
    fake.supervisor->server.images.limit = 40;
    fake.supervisor->server.fds.limit = 40;
    for (unsigned i = 0; i < CLIENTS; i++)
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
    int other = fake_greet(&fake);
    fake_session(&fake, CLIENTS)->uid = getuid() + 1;
    fake_attach_greeted(&fake, other, 0, 0, NULL, NULL);
    for (unsigned i = 0; i + 1 < CLIENTS; i++)
        load(fds[i], "ten bytes.");
    snprintf(who, sizeof who, "of all clients of user %u together", getuid());
    send_image(fds[3], "a", 1);
    fake_expect_failed(&fake, fds[3], PROTO_ERROR_OUT_OF_MEMORY, who);
    assert_int_equal(fake.supervisor->server.images.used, 30);
    load(other, "ten bytes.");
    uint64_t buffer = 0;
    for (unsigned i = 3; i < 30; i++)
        buffer = fake_host_alloc(&fake, fds[i % CLIENTS], 1, NULL);
    fake_host_refused(&fake, fds[0], 1, PROTO_ERROR_SERVER_RESOURCES, who);
    fake_alloc_refused(&fake, fds[3], 2 * MIB, PROTO_ERROR_SERVER_RESOURCES, who);
    fake_host_alloc(&fake, other, 1, NULL);
    fake_alloc(&fake, other, 2 * MIB);
    /* What one client gives back another one of the user may have. */
    fake_host_free(&fake, fds[29 % CLIENTS], buffer);
    FAKE_WAIT(&fake, fake.supervisor->server.fds.used == 32);
    fake_alloc(&fake, fds[3], 2 * MIB);
    for (unsigned i = 0; i < CLIENTS; i++)
        close(fds[i]);
    close(other);
    fake_expect_nothing_left(&fake);
    assert_null(fake.supervisor->server.user_shares.first);
    fake_close(&fake);
}

static void a_module_that_does_not_load_leaves_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 8 * MIB, NULL, NULL);
    fake.worker[0].global_bytes = 1000;
    fake.worker[0].refuse_load = true;
    send_image(fd, "text", 4);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_PTX, "line 3");
    FAKE_WAIT(&fake, fake.worker[0].unloads == 1 && fake_usage(&fake, fd).used == 0);
    assert_int_equal(fake_first(&fake)->module_count, 0);
    assert_int_equal(fake.supervisor->server.cache.images, 0);
    assert_int_equal(fake.supervisor->server.fds.used, 0);
    fake.worker[0].refuse_load = false;
    /* Each module is charged a descriptor, and a second one while it is loaded. */
    fake.supervisor->server.fds.limit = 4;
    load(fd, "one"); /* with the slab of its variables: two */
    load(fd, "two");
    send_image(fd, "four", 4);
    fake_expect_failed(&fake, fd, PROTO_ERROR_SERVER_RESOURCES, "4 of 4");
    assert_int_equal(fake.supervisor->server.fds.used, 3);
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void unknown_modules_do_not_reach_the_worker(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    struct proto_function_get body = {.module = 9};
    fake_send(&fake, fd, PROTO_FUNCTION_GET, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "module 9");
    fake_send(&fake, fd, PROTO_GLOBAL_GET, &body);
    fake_expect_failed(&fake, fd, PROTO_ERROR_INVALID_HANDLE, "module 9");
    close(fd);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

/* ---- ends at the worst moment ---- */

/* Every request of a client that is gone before the worker, or the copy, has answered. */
static void a_client_that_vanishes_at_any_point_leaves_nothing(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    for (unsigned what = 0; what < 5; what++) {
        fake.worker[0].automatic = true;
        int fd = fake_attach(&fake, 0, 64 * MIB, NULL, NULL);
        uint64_t small = fake_alloc(&fake, fd, 4096);
        fake.worker[0].automatic = false;
        struct proto_memory_alloc alloc = {.count = what == 1 ? MIB / 2 : 4 * MIB};
        struct proto_memory_free give = {.address = small};
        struct proto_host_alloc host = {.count = MIB};
        for (unsigned i = 0; what < 2 && i < 5; i++)
            fake_send(&fake, fd, PROTO_MEMORY_ALLOC, &alloc);
        if (what == 2)
            fake_send(&fake, fd, PROTO_MEMORY_FREE, &give);
        if (what == 3)
            fake_send(&fake, fd, PROTO_HOST_ALLOC, &host);
        if (what == 4)
            send_image(fd, "text", 4);
        fake_settle(&fake);
        close(fd);
        fake_settle(&fake);
        fake.worker[0].automatic = true;
        fake_expect_nothing_left(&fake);
    }
    fake_close(&fake);
}

static void a_lost_worker_takes_its_clients_along_by_name(void **state)
{
    (void)state;
    fake_open(&fake, 2, 256 * MIB);
    int fds[3], elsewhere = fake_attach(&fake, 1, 0, NULL, NULL);
    for (unsigned i = 0; i < 3; i++) {
        fds[i] = fake_attach(&fake, 0, 0, NULL, NULL);
        fake_alloc(&fake, fds[i], 3 * MIB);
        fake_alloc(&fake, fds[i], 1000);
        load(fds[i], "text");
        fake_host_alloc(&fake, fds[i], MIB, NULL);
    }
    fake.worker[0].automatic = false;
    struct proto_memory_alloc alloc = {.count = 4 * MIB};
    fake_send(&fake, fds[0], PROTO_MEMORY_ALLOC, &alloc);
    struct proto_worker_fault fault = {.error = PROTO_ERROR_ILLEGAL_ADDRESS,
                                       .text = "kernel f used 0x0"};
    fake_settle(&fake);
    /* The fault word is what a sleeping client sees. */
    struct session *last = LIST_LAST(&fake.supervisor->server.session_list, struct session, link);
    if (!last) {
        fail_msg("the server has no session");
        return;
    }
    struct proto_status_header *status = last->status.base;
    struct proto_status_header *copy = mmap(NULL, 4096, PROT_READ, MAP_SHARED, last->status.fd, 0);
    assert_ptr_not_equal(copy, MAP_FAILED);
    assert_int_equal(status->fault, 0);
    channel_send(fake.worker[0].fd, PROTO_WORKER_FAULT, 0, 0, &fault, NULL, 0, NULL, 0);
    for (unsigned i = 0; i < 3; i++)
        fake_expect_ended(&fake, fds[i], PROTO_ERROR_ILLEGAL_ADDRESS, "kernel f used 0x0");
    assert_int_equal(copy->fault, PROTO_ERROR_ILLEGAL_ADDRESS);
    munmap(copy, 4096);
    FAKE_WAIT(&fake, fake.supervisor->server.sessions == 1);
    fake_usage(&fake, elsewhere);
    fake_kill_worker(&fake, 0);
    uv_timer_stop(&fake.supervisor->server.devices[0].timer);
    fake_start_worker(&fake, 0, 256 * MIB);
    int next = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, next, MIB);
    fake_kill_worker(&fake, 0); /* without a word, this time */
    fake_expect_ended(&fake, next, PROTO_ERROR_WORKER_LOST, "worker of device 0");
    close(elsewhere);
    fake_expect_nothing_left(&fake);
    fake_close(&fake);
}

static void a_server_that_stops_tells_its_clients(void **state)
{
    (void)state;
    fake_open(&fake, 1, 256 * MIB);
    int fd = fake_attach(&fake, 0, 0, NULL, NULL);
    fake_alloc(&fake, fd, 3 * MIB);
    fake.worker[0].automatic = false; /* and the worker does not even answer */
    supervisor_stop(fake.supervisor);
    fake_expect_ended(&fake, fd, PROTO_ERROR_CONNECTION_LOST, "stopping");
    fake_close(&fake);
}

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
        cmocka_unit_test(pinned_memory_has_two_limits),
        cmocka_unit_test(a_buffer_waits_for_one_that_is_being_freed),
        cmocka_unit_test(a_buffer_is_empty_when_it_is_paid_back),
        cmocka_unit_test(buffers_are_shared_within_a_process_only),
        cmocka_unit_test(a_shared_buffer_counts_for_both),
        cmocka_unit_test(a_link_shows_a_timeline_and_its_end),
        cmocka_unit_test(shares_do_not_outlive_their_owner),
        cmocka_unit_test(images_are_shared_by_content),
        cmocka_unit_test(images_that_lie_are_refused),
        cmocka_unit_test(variables_are_charged_and_come_back),
        cmocka_unit_test(variables_that_the_driver_places_are_charged_too),
        cmocka_unit_test(images_are_a_limit_of_their_own),
        cmocka_unit_test(a_user_with_many_clients_leaves_a_quarter_to_others),
        cmocka_unit_test(a_module_that_does_not_load_leaves_nothing),
        cmocka_unit_test(unknown_modules_do_not_reach_the_worker),
        cmocka_unit_test(a_client_that_vanishes_at_any_point_leaves_nothing),
        cmocka_unit_test(a_lost_worker_takes_its_clients_along_by_name),
        cmocka_unit_test(a_server_that_stops_tells_its_clients),
        cmocka_unit_test(a_window_moves_until_something_lies_in_it),
        cmocka_unit_test(a_full_arena_refuses_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
