/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Remains of a client: the next one finds nothing of it in device
 * memory, in host buffers or in rings, however the first one ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/raw.h"

enum { MIB = 1 << 20, DEVICE_BYTES = 48 * MIB, SMALL_BYTES = 64 << 10, HOST_BYTES = 4 * MIB };

static struct server *server;

static int start(void **state)
{
    (void)state;
    /* So little that a second client must be given what the first one had. */
    const char *env[] = {"SOFTGPU_MEMORY=64M", "GPUSHARE_PINNED_HOST_MEM_LIMIT=16M", NULL};
    server = server_start(NULL, env);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(server_stop(server), 0);
    return 0;
}

struct owned {
    struct raw raw;
    uint64_t large, small, host;
    uint8_t *buffer;
    uint64_t value; /* of stream 0 */
};

static void own(struct owned *owned)
{
    memset(owned, 0, sizeof *owned);
    raw_attach(&owned->raw, server, PROTO_UNSET);
    assert_int_equal(raw_ring(&owned->raw, 1), 0); /* and its neighbours 2 and 3 */
    for (int i = 0; i < 500 && !owned->large; i++) {
        owned->large = raw_alloc(&owned->raw, DEVICE_BYTES);
        if (!owned->large)
            usleep(10000); /* the one before is still on its way out */
    }
    assert_int_not_equal(owned->large, 0);
    owned->small = raw_alloc(&owned->raw, SMALL_BYTES);
    assert_int_not_equal(owned->small, 0);
    struct proto_host_alloc alloc = {.count = HOST_BYTES};
    assert_int_equal(raw_ask(&owned->raw, PROTO_HOST_ALLOC, &alloc, NULL, 0, -1), 0);
    owned->host = ((const struct proto_host_allocated *)owned->raw.reply.body)->address;
    int fd = channel_take_fd(&owned->raw.reply, 0);
    void *buffer = mmap(NULL, HOST_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (buffer == MAP_FAILED) {
        fail_msg("mmap: %s", strerror(errno));
        abort();
    }
    owned->buffer = buffer;
    close(fd);
}

static void disown(struct owned *owned)
{
    munmap(owned->buffer, HOST_BYTES);
    raw_close(&owned->raw);
}

static void fill(struct owned *owned, uint64_t address, uint64_t bytes)
{
    struct proto_command_fill command = {.opcode = PROTO_COMMAND_FILL,
                                         .width = 4,
                                         .value = 0x5ec2e75a,
                                         .destination = address,
                                         .count = bytes / 4};
    raw_push(&owned->raw, 0, &command);
    owned->value++;
}

static void write_secrets(struct owned *owned)
{
    fill(owned, owned->large, DEVICE_BYTES);
    fill(owned, owned->small, SMALL_BYTES);
    assert_true(raw_wait_value(&owned->raw, 0, owned->value));
    memset(owned->buffer, 0x5a, HOST_BYTES);
    /* The arena of a ring holds kernels' parameters. */
    memset(ring_at(owned->raw.rings, owned->raw.status, 1).arena, 0x5a, 4096);
}

static bool is_zero(const uint8_t *bytes, size_t count)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, count - 1) == 0;
}

static void check_device(struct owned *owned, uint64_t address, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += HOST_BYTES) {
        uint64_t count = bytes - at < HOST_BYTES ? bytes - at : HOST_BYTES;
        struct proto_command_copy copy = {.opcode = PROTO_COMMAND_COPY,
                                          .destination = owned->host,
                                          .source = address + at,
                                          .count = count};
        raw_push(&owned->raw, 0, &copy);
        assert_true(raw_wait_value(&owned->raw, 0, ++owned->value));
        assert_true(is_zero(owned->buffer, count));
    }
}

static void check_nothing_remains(void)
{
    struct owned owned;
    own(&owned);
    assert_true(is_zero(owned.buffer, HOST_BYTES));
    for (uint32_t i = 0; i < 4; i++)
        assert_true(is_zero(ring_at(owned.raw.rings, owned.raw.status, i).arena, 4096));
    check_device(&owned, owned.large, DEVICE_BYTES);
    check_device(&owned, owned.small, SMALL_BYTES);
    disown(&owned);
}

static void nothing_remains_of_a_client_that_left(void **state)
{
    (void)state;
    struct owned first;
    own(&first);
    write_secrets(&first);
    disown(&first);
    check_nothing_remains();
}

static void nothing_remains_of_a_client_that_was_killed(void **state)
{
    (void)state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (child == 0) {
        struct owned first;
        own(&first);
        write_secrets(&first);
        for (;;) {
            fill(&first, first.large, DEVICE_BYTES);
            if (write(ready[1], "x", 1) != 1)
                _exit(1);
            usleep(20000);
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    check_nothing_remains();
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_remains_of_a_client_that_left),
        cmocka_unit_test(nothing_remains_of_a_client_that_was_killed),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
