/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Crowds: a thousand clients at once, each asking for 64 MiB, and a server that runs
 * out of descriptors. All of it must come back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/neighbour.h"
#include "tests/support/patience.h"
#include "tests/support/raw.h"

enum { CROWD = 1000, MIB = 1 << 20, SETTLE_SECONDS = 30 };

/* Waits until a process holds at most so many descriptors, as long as they become fewer: how fast
 * a thousand clients are cleared away depends on the machine and on a sanitizer. */
static bool fds_settle(pid_t pid, size_t most)
{
    size_t least = SIZE_MAX;
    time_t since = time(NULL);
    while ((double)(time(NULL) - since) < patience_seconds(SETTLE_SECONDS)) {
        size_t count = server_fd_count(pid);
        if (count <= most)
            return true;
        if (count < least) {
            least = count;
            since = time(NULL);
        }
        usleep(10000);
    }
    fprintf(stderr, "process %d holds %zu descriptors, not %zu, and none less for %.0f s\n",
            (int)pid, least, most, patience_seconds(SETTLE_SECONDS));
    return false;
}

static void need_descriptors(rlim_t count)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < count) {
        print_message("only %llu descriptors allowed here\n", (unsigned long long)limit.rlim_cur);
        skip();
    }
}

static void a_thousand_clients_at_once_each_get_their_64_mib(void **state)
{
    (void)state;
    need_descriptors(16000);
    /* Each gets its memory: device memory enough for all and a neighbour, and windows of 128 MiB,
     * of which ThreadSanitizer's arenas hold 1,024. All of them share eight hardware queues, though
     * the server asks the driver for more. */
    const char *env[] = {"SOFTGPU_MEMORY=80G", "SOFTGPU_QUEUES=8",
                         "GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=64M",
                         "GPUSHARE_PINNED_HOST_MEM_LIMIT=64M", NULL};
    struct server *server = server_start(NULL, env);
    pid_t worker;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    struct neighbour *neighbour = neighbour_start(server);
    struct raw *crowd = calloc(CROWD, sizeof *crowd);
    assert_non_null(crowd);
    size_t before = server_fd_count(server_pid(server)), worker_before = server_fd_count(worker);
    for (int i = 0; i < CROWD; i++) {
        raw_attach(&crowd[i], server, 64 * MIB);
        assert_int_equal(crowd[i].attached.grant.allowance.memory.limit, 64 * MIB);
    }
    for (int i = 0; i < CROWD; i++) {
        uint64_t address = raw_alloc(&crowd[i], 64 * MIB);
        if (!address)
            fail_msg("client %d got no memory", i);
        struct proto_command_fill fill = {.opcode = PROTO_COMMAND_FILL,
                                          .width = 4,
                                          .value = (uint32_t)i,
                                          .destination = address,
                                          .count = 16};
        raw_push(&crowd[i], 0, &fill);
    }
    for (int i = 0; i < CROWD; i++)
        assert_true(raw_wait_value(&crowd[i], 0, 1));
    /* No two windows share an address. */
    for (int i = 0; i < CROWD; i++)
        for (int k = i + 1; k < CROWD; k++) {
            uint64_t a = crowd[i].attached.device_base, b = crowd[k].attached.device_base;
            assert_true(a + crowd[i].attached.window_bytes <= b ||
                        b + crowd[k].attached.window_bytes <= a);
        }
    for (int i = 0; i < CROWD; i++)
        raw_close(&crowd[i]);
    free(crowd);
    assert_true(fds_settle(server_pid(server), before + 4));
    assert_true(fds_settle(worker, worker_before + 4));
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
}

static void a_server_out_of_descriptors_refuses_and_recovers(void **state)
{
    (void)state;
    server_limit_descriptors(248);
    struct server *server = server_start(NULL, NULL);
    server_limit_descriptors(0);
    struct neighbour *neighbour = neighbour_start(server);
    size_t before = server_fd_count(server_pid(server));
    enum { MANY = 60 };
    struct raw raw[MANY];
    struct proto_hello hello = {PROTO_MAJOR, PROTO_MINOR, 0};
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "one of many"};
    unsigned attached = 0, refused = 0;
    for (int i = 0; i < MANY; i++) {
        raw_connect(&raw[i], server);
        if (raw_ask(&raw[i], PROTO_HELLO, &hello, NULL, 0, -1) ||
            raw_ask(&raw[i], PROTO_ATTACH, &attach, NULL, 0, -1))
            refused++;
        else
            attached++;
        channel_close_fds(&raw[i].reply);
    }
    assert_true(attached > 0);
    assert_true(refused > 0);
    for (int i = 0; i < MANY; i++)
        raw_close(&raw[i]);
    assert_true(fds_settle(server_pid(server), before + 4));
    struct raw again;
    raw_attach(&again, server, PROTO_UNSET);
    raw_close(&again);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_clients_at_once_each_get_their_64_mib),
        cmocka_unit_test(a_server_out_of_descriptors_refuses_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
