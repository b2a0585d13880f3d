/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Images that take many times their size to be read, from several clients at once,
 * and modules that are kept by the hundred: refused in words that name the remedy,
 * while the worker's memory stays within what it may have for that, an honest
 * neighbour computes, and another client's modules load.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "common/error.h"
#include "common/cuda/fatbin.h"
#include "tests/support/neighbour.h"
#include "tests/support/raw.h"

#define HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"

/* Of a worker with 64 MiB one load may have 16, modules 32, those of one client 8. */
#define IMAGE_MEMORY "64M"
enum { MIB = 1 << 20 };
/* The memory it may take: all of it once, and once more by the driver's compiler for loads at work;
 * twice that for the allocator's waste. Without the limit a single load takes a gigabyte. */
#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer keeps some four bytes beside each that the worker writes, which count in its
 * memory too: 35 to 42 MiB are 214 to 260 then. */
enum { GROWTH_MAX_MIB = 512 };
#else
enum { GROWTH_MAX_MIB = 256 };
#endif

static struct server *server;
static struct neighbour *neighbour;
static pid_t worker;

static size_t memory_peak_mib(pid_t pid)
{
    char path[64], line[256];
    size_t kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %zu kB", &kib) == 1)
            break;
    fclose(file);
    assert_int_not_equal(kib, 0);
    return kib / 1024;
}

static int start(void **state)
{
    (void)state;
    static const char *const args[] = {"--image-memory", IMAGE_MEMORY, NULL};
    server = server_start(args, NULL);
    neighbour = neighbour_start(server);
    return server_workers(server, &worker, 1) == 1 ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    pid_t now = 0;
    assert_int_equal(server_workers(server, &now, 1), 1);
    assert_int_equal(now, worker);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
    return 0;
}

/* A kernel of `count` statements. */
static char *repeat(const char *statement, size_t count, size_t *bytes)
{
    static const char head[] = HEADER ".visible .entry k()\n{\n.reg .b32 a;\n",
                      tail[] = "ret;\n}\n";
    size_t step = strlen(statement);
    char *text = malloc(sizeof head + sizeof tail + count * step);
    assert_non_null(text);
    char *at = stpcpy(text, head);
    for (size_t i = 0; i < count; i++, at += step)
        memcpy(at, statement, step);
    at = stpcpy(at, tail);
    *bytes = (size_t)(at - text);
    return text;
}

static void post(struct raw *raw, const void *bytes, size_t count)
{
    struct proto_module_load ask = {.count = count};
    int fd = raw_memfd(bytes, count);
    assert_int_equal(channel_send(raw->fd, &(struct channel_packet){.opcode = PROTO_MODULE_LOAD,
                                                                    .serial = ++raw->serial,
                                                                    .body = &ask,
                                                                    .fds = &fd,
                                                                    .fd_count = 1}),
                     0);
    close(fd);
}

/* 0 or the error; its sentence in text. */
static uint32_t answered(struct raw *raw, char text[400])
{
    struct pollfd wait_for = {.fd = raw->fd, .events = POLLIN};
    struct proto_failed failed;
    text[0] = 0;
    assert_int_equal(poll(&wait_for, 1, 60000), 1);
    assert_int_equal(
        channel_receive(raw->fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &raw->reply), 0);
    if (raw->reply.header.opcode != PROTO_FAILED)
        return 0;
    memcpy(&failed, raw->reply.body, sizeof failed);
    snprintf(text, 400, "%s", failed.text);
    return failed.error;
}

static void loads(struct raw *raw)
{
    char text[400];
    size_t bytes;
    char *honest = repeat("mov.b32 a, 1;\n", 100, &bytes);
    post(raw, honest, bytes);
    free(honest);
    uint32_t error = answered(raw, text);
    if (error)
        fail_msg("an honest module is refused: %s", text);
}

/* Each is below every limit on images' own bytes, and its tree would take a gigabyte. */
static void texts_with_giant_trees_are_refused_and_take_no_memory(void **state)
{
    (void)state;
    enum { CULPRITS = 6 };
    struct raw culprits[CULPRITS], honest;
    char text[400];
    size_t bytes, before = memory_peak_mib(worker);
    unsigned long rounds = neighbour_rounds(neighbour);
    char *giant = repeat("a{a,a,a,a,a,a,a,a,a,a,a,a};", 300000, &bytes);
    raw_attach(&honest, server, PROTO_UNSET);
    for (int i = 0; i < CULPRITS; i++) {
        raw_attach(&culprits[i], server, PROTO_UNSET);
        post(&culprits[i], giant, bytes);
    }
    loads(&honest);
    for (int i = 0; i < CULPRITS; i++) {
        assert_int_equal(answered(&culprits[i], text), PROTO_ERROR_SERVER_RESOURCES);
        assert_non_null(strstr(text, "the module's PTX"));
        assert_non_null(strstr(text, "--image-memory"));
        loads(&culprits[i]);
        raw_close(&culprits[i]);
    }
    raw_close(&honest);
    size_t grown = memory_peak_mib(worker) - before;
    print_message("%zu KiB of text six times: the worker grew by %zu MiB\n", bytes / 1024, grown);
    assert_true(grown < GROWTH_MAX_MIB);
    while (neighbour_rounds(neighbour) == rounds)
        usleep(1000);
    free(giant);
}

/* 20 KiB that say 20 MiB. */
static void fatbins_that_unpack_to_more_are_refused(void **state)
{
    (void)state;
    struct raw raw;
    size_t plain_bytes;
    char said[400];
    char *plain = repeat("                                ", 20 * MIB / 32, &plain_bytes);
    size_t room = ZSTD_compressBound(plain_bytes);
    uint8_t *fatbin = calloc(1, 80 + room);
    assert_non_null(fatbin);
    size_t packed = ZSTD_compress(fatbin + 80, room, plain, plain_bytes, 1);
    assert_false(ZSTD_isError(packed));
    packed = (packed + 7) & ~(size_t)7;
    const uint32_t magic = FATBIN_MAGIC, header = 64, arch = 80, compressed = (uint32_t)packed;
    const uint16_t version = 1, header_bytes = 16, kind = FATBIN_PTX;
    const uint64_t inside = 64 + packed, stored = packed, flags = FATBIN_FLAG_ZSTD,
                   unpacked = plain_bytes;
    memcpy(fatbin, &magic, 4);
    memcpy(fatbin + 4, &version, 2);
    memcpy(fatbin + 6, &header_bytes, 2);
    memcpy(fatbin + 8, &inside, 8);
    memcpy(fatbin + 16, &kind, 2);
    memcpy(fatbin + 20, &header, 4);
    memcpy(fatbin + 24, &stored, 8);
    memcpy(fatbin + 32, &compressed, 4);
    memcpy(fatbin + 44, &arch, 4);
    memcpy(fatbin + 56, &flags, 8);
    memcpy(fatbin + 72, &unpacked, 8);
    raw_attach(&raw, server, PROTO_UNSET);
    post(&raw, fatbin, 80 + packed);
    assert_int_equal(answered(&raw, said), PROTO_ERROR_SERVER_RESOURCES);
    assert_non_null(strstr(said, "unpack to"));
    assert_non_null(strstr(said, "--image-memory"));
    raw_close(&raw);
    free(fatbin);
    free(plain);
}

/* Each is small; who keeps them all is stopped at its own part, and gets it back by unloading. */
static void modules_that_are_kept_are_counted(void **state)
{
    (void)state;
    enum { MODULES_MAX = 64 };
    struct raw raw, honest;
    uint32_t modules[MODULES_MAX], count = 0, error = 0;
    char text[400];
    size_t bytes, before = memory_peak_mib(worker);
    char *some = repeat("mov.b32 a, 1;\n", 2000, &bytes);
    raw_attach(&raw, server, PROTO_UNSET);
    raw_attach(&honest, server, PROTO_UNSET);
    while (count < MODULES_MAX) {
        post(&raw, some, bytes);
        error = answered(&raw, text);
        if (error)
            break;
        modules[count++] = ((const struct proto_module_loaded *)raw.reply.body)->module;
    }
    print_message("%u modules of %zu KiB: %s\n", count, bytes / 1024, text);
    assert_int_equal(error, PROTO_ERROR_SERVER_RESOURCES);
    assert_true(count > 1);
    assert_non_null(strstr(text, "unload modules"));
    loads(&honest);
    struct proto_module_unload gone = {.module = modules[0]};
    assert_int_equal(raw_ask(&raw, PROTO_MODULE_UNLOAD, &gone, NULL, 0, -1), 0);
    post(&raw, some, bytes);
    assert_int_equal(answered(&raw, text), 0);
    raw_close(&raw);
    raw_close(&honest);
    assert_true(memory_peak_mib(worker) - before < GROWTH_MAX_MIB);
    free(some);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_with_giant_trees_are_refused_and_take_no_memory),
        cmocka_unit_test(fatbins_that_unpack_to_more_are_refused),
        cmocka_unit_test(modules_that_are_kept_are_counted),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
