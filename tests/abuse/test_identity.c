/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The kernel says which process a client is: a secret that one process has overheard is of no use
 * to another, a socket that a child keeps open keeps no dead client alive, and of clients that were
 * killed nothing stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/raw.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

static struct server *server;

static int start(void **state)
{
    const char *env[] = {"SOFTGPU_DEVICES=2", NULL};
    /* Nothing is kept for clients to come. */
    const char *args[] = {"--pinned-pool", "0", NULL};
    *state = server = server_start(args, env);
    return 0;
}

/* Attaches to device 1 as one of this group. Returns 0 or the error. */
static uint32_t attach_as(struct raw *raw, const uint8_t group[16], uint8_t granted[16])
{
    struct proto_hello hello = {.major = PROTO_MAJOR, .minor = PROTO_MINOR};
    struct proto_attach attach = {.device = 1, .allowance = PROTO_ALLOWANCE_UNSET};
    memcpy(attach.group, group, 16);
    raw_connect(raw, server);
    uint32_t error = raw_ask(raw, PROTO_HELLO, &hello, NULL, 0, -1);
    if (!error)
        error = raw_ask(raw, PROTO_ATTACH, &attach, NULL, 0, -1);
    if (error)
        return error;
    memcpy(granted, ((const struct proto_attached *)raw->reply.body)->group, 16);
    channel_close_fds(&raw->reply);
    return 0;
}

/* Exit status: 0 if the token joined nothing, and nothing of its owner could be reached. */
static int use_overheard(const struct proto_attached *owner, uint64_t buffer)
{
    struct raw raw;
    uint8_t granted[16];
    struct proto_link link = {.client = owner->client};
    struct proto_host_import share = {.client = owner->client, .address = buffer};
    if (attach_as(&raw, owner->group, granted))
        return 1;
    if (!memcmp(granted, owner->group, 16))
        return 2;
    if (raw_ask(&raw, PROTO_LINK, &link, NULL, 0, -1) != PROTO_ERROR_NOT_PERMITTED)
        return 3;
    if (raw_ask(&raw, PROTO_HOST_IMPORT, &share, NULL, 0, -1) != PROTO_ERROR_NOT_PERMITTED)
        return 4;
    return 0;
}

static void a_token_that_another_process_overheard_joins_nothing(void **state)
{
    (void)state;
    struct raw owner, companion;
    uint8_t granted[16];
    int status;
    raw_attach(&owner, server, PROTO_UNSET);
    struct proto_host_alloc host = {.count = 1 << 16};
    assert_int_equal(raw_ask(&owner, PROTO_HOST_ALLOC, &host, NULL, 0, -1), 0);
    uint64_t buffer = ((const struct proto_host_allocated *)owner.reply.body)->address;
    channel_close_fds(&owner.reply);
    pid_t child = fork();
    if (child == 0)
        _exit(use_overheard(&owner.attached, buffer));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* The same token, from the process that it was given to. */
    assert_int_equal(attach_as(&companion, owner.attached.group, granted), 0);
    assert_memory_equal(granted, owner.attached.group, 16);
    struct proto_link link = {.client = owner.attached.client};
    assert_int_equal(raw_ask(&companion, PROTO_LINK, &link, NULL, 0, -1), 0);
    raw_close(&companion);
    raw_close(&owner);
}

static void need_pidfds_of_peers(void)
{
    int pair[2], pidfd = -1;
    socklen_t bytes = sizeof pidfd;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    int result = getsockopt(pair[0], SOL_SOCKET, SO_PEERPIDFD, &pidfd, &bytes);
    close(pair[0]);
    close(pair[1]);
    if (result == 0) {
        close(pidfd);
        return;
    }
    print_message("this kernel tells no pidfd of a socket's peer (Linux 6.5 does)\n");
    skip();
}

static void a_socket_that_a_child_keeps_does_not_keep_a_dead_client(void **state)
{
    (void)state;
    need_pidfds_of_peers();
    int numbers[2], life[2];
    uint32_t number;
    char expected[64];
    assert_int_equal(pipe(numbers), 0);
    assert_int_equal(pipe(life), 0);
    pid_t client = fork();
    if (client == 0) {
        struct raw raw;
        raw_attach(&raw, server, PROTO_UNSET);
        raw_alloc(&raw, 1); /* of a client that asks for nothing the log says nothing */
        if (fork() == 0) {  /* has the socket, and lives until the test is over */
            char byte;
            close(life[1]);
            _exit(read(life[0], &byte, 1) != 0);
        }
        _exit(write(numbers[1], &raw.attached.client, 4) != 4);
    }
    assert_int_equal(read(numbers[0], &number, 4), 4);
    waitpid(client, NULL, 0);
    snprintf(expected, sizeof expected, "client %u 'raw' (pid %d", number, (int)client);
    assert_true(server_log_wait(server, "the process ended"));
    assert_true(server_log_wait(server, expected));
    for (int i = 0; i < 2; i++) {
        close(numbers[i]);
        close(life[i]);
    }
}

static size_t settled_fds(pid_t pid, size_t most)
{
    for (int i = 0; i < 1000 && server_fd_count(pid) > most; i++)
        usleep(10000);
    return server_fd_count(pid);
}

/* The fewest within a while: what earlier clients left may still be on its way out. */
static size_t fewest_fds(pid_t pid)
{
    size_t fewest = server_fd_count(pid);
    for (int i = 0; i < 20; i++) {
        usleep(10000);
        size_t now = server_fd_count(pid);
        fewest = now < fewest ? now : fewest;
    }
    return fewest;
}

/* Whether a fresh client gets this window, or a lower one that a client of before had while this
 * was given, and in it this address for 4 MiB. */
static bool gets(uint64_t window, uint64_t address)
{
    struct raw raw;
    raw_attach(&raw, server, PROTO_UNSET);
    uint64_t base = raw.attached.device_base;
    bool same = base <= window && raw_alloc(&raw, 4 << 20) - base == address - window;
    raw_close(&raw);
    return same;
}

static void nothing_of_killed_clients_stays(void **state)
{
    (void)state;
    struct raw raw;
    pid_t workers[2];
    assert_int_equal(server_workers(server, workers, 2), 2);
    raw_attach(&raw, server, PROTO_UNSET);
    uint64_t window = raw.attached.device_base;
    uint64_t first = raw_alloc(&raw, 4 << 20);
    raw_close(&raw);
    size_t before[3] = {fewest_fds(server_pid(server)), fewest_fds(workers[0]),
                        fewest_fds(workers[1])};
    for (int i = 0; i < 8; i++) {
        int ready[2];
        char byte;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) {
            raw_attach(&raw, server, PROTO_UNSET);
            uint64_t base = raw_alloc(&raw, 4 << 20);
            struct proto_host_alloc host = {.count = 1 << 20};
            raw_ask(&raw, PROTO_HOST_ALLOC, &host, NULL, 0, -1);
            struct proto_command_fill fill = {
                .opcode = PROTO_COMMAND_FILL, .width = 4, .destination = base, .count = 1 << 20};
            for (int n = 0; n < 500; n++)
                raw_push(&raw, 0, &fill);
            if (write(ready[1], "!", 1) != 1)
                _exit(1);
            pause();
        }
        assert_int_equal(read(ready[0], &byte, 1), 1);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(ready[0]);
        close(ready[1]);
    }
    assert_true(settled_fds(server_pid(server), before[0]) <= before[0]);
    assert_true(settled_fds(workers[0], before[1]) <= before[1]);
    assert_true(settled_fds(workers[1], before[2]) <= before[2]);
    /* Windows and addresses are the lowest that are free: they come back too. */
    bool back = false;
    for (int i = 0; i < 500 && !back; i++) {
        back = gets(window, first);
        if (!back)
            usleep(10000);
    }
    assert_true(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_that_another_process_overheard_joins_nothing),
        cmocka_unit_test(a_socket_that_a_child_keeps_does_not_keep_a_dead_client),
        cmocka_unit_test(nothing_of_killed_clients_stays),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
