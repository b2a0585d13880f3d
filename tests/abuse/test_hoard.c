/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: another client waits 0.5 s at most while the events of one go */
/*
 * Clients that pile things up: frees that can never be carried out, links, handles, freed buffers.
 * Others' requests go on being answered, and all of it comes back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/support/neighbour.h"
#include "tests/support/raw.h"

static struct server *server;
static struct neighbour *neighbour;
static pid_t worker;
static size_t fds_before, worker_fds_before;

static bool settles(pid_t pid, size_t most)
{
    for (int i = 0; i < 500; i++) {
        if (server_fd_count(pid) <= most)
            return true;
        usleep(10000);
    }
    return false;
}

static int start(void **state)
{
    (void)state;
    /* A freed buffer is given back: nothing of it is kept for the next client. */
    static const char *const args[] = {"--pinned-pool", "0", NULL};
    server = server_start(args, NULL);
    neighbour = neighbour_start(server);
    if (server_workers(server, &worker, 1) != 1)
        return -1;
    fds_before = server_fd_count(server_pid(server));
    worker_fds_before = server_fd_count(worker);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    pid_t now = 0;
    assert_true(settles(server_pid(server), fds_before + 4));
    assert_true(settles(worker, worker_fds_before + 4));
    assert_int_equal(server_workers(server, &now, 1), 1);
    assert_int_equal(now, worker);
    assert_int_equal(neighbour_stop(neighbour), 0);
    assert_int_equal(server_stop(server), 0);
    return 0;
}

/* Sends without waiting; the answers are read by whoever calls. */
static void post(struct raw *raw, uint16_t opcode, const void *body)
{
    assert_int_equal(channel_send(raw->fd, &(struct channel_packet){.opcode = opcode,
                                                                    .serial = ++raw->serial,
                                                                    .body = body}),
                     0);
}

static void read_answers(struct raw *raw, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct pollfd wait_for = {.fd = raw->fd, .events = POLLIN};
        assert_int_equal(poll(&wait_for, 1, 30000), 1);
        assert_int_equal(
            channel_receive(raw->fd, PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &raw->reply), 0);
        assert_int_not_equal(raw->reply.header.opcode, PROTO_FAILED);
    }
}

/* A ring that waits for what never comes, on the last stream that there is. */
static void wait_for_ever(struct raw *raw)
{
    struct proto_stream_create create = {0};
    uint32_t stream = 0;
    for (uint32_t i = 1; i < raw->attached.streams; i++) {
        assert_int_equal(raw_ask(raw, PROTO_STREAM_CREATE, &create, NULL, 0, -1), 0);
        stream = ((const struct proto_stream_created *)raw->reply.body)->stream;
    }
    struct proto_command_wait wait = {
        .opcode = PROTO_COMMAND_WAIT, .count = 1, .on[0].stream = 0, .on[0].value = 1000};
    raw_push(raw, stream, &wait);
}

static void frees_that_are_never_done_cost_others_no_time(void **state)
{
    (void)state;
    enum { EVENTS = 24000, BATCH = 32 };
    struct raw culprit, other;
    raw_attach(&culprit, server, 64 << 20);
    raw_attach(&other, server, 64 << 20);
    wait_for_ever(&culprit);
    uint32_t *events = calloc(EVENTS, sizeof *events);
    assert_non_null(events);
    for (unsigned i = 0; i < EVENTS; i += BATCH) {
        for (unsigned k = 0; k < BATCH; k++)
            post(&culprit, PROTO_EVENT_CREATE, &(struct proto_event_create){0});
        for (unsigned k = 0; k < BATCH; k++) {
            read_answers(&culprit, 1);
            events[i + k] = ((const struct proto_event_created *)culprit.reply.body)->event;
        }
    }
    double longest = 0;
    for (unsigned i = 0; i < EVENTS; i += BATCH) {
        for (unsigned k = 0; k < BATCH; k++)
            post(&culprit, PROTO_EVENT_DESTROY,
                 &(struct proto_event_destroy){.event = events[i + k]});
        if (i % 1024 == 0) {
            uint64_t began = clock_now();
            uint64_t address = raw_alloc(&other, 2 << 20);
            double took = (double)(clock_now() - began) / 1e9;
            longest = took > longest ? took : longest;
            struct proto_memory_free gone = {.address = address};
            assert_int_equal(raw_ask(&other, PROTO_MEMORY_FREE, &gone, NULL, 0, -1), 0);
        }
        read_answers(&culprit, BATCH);
    }
    print_message("the other waited %.3f s at most\n", longest);
    assert_true(longest < 0.5);
    free(events);
    raw_close(&other);
    raw_close(&culprit);
}

static void links_are_bounded_and_take_no_descriptors(void **state)
{
    (void)state;
    struct raw first, second;
    raw_attach(&first, server, 64 << 20);
    raw_connect(&second, server);
    struct proto_hello hello = {PROTO_MAJOR, PROTO_MINOR, 0};
    struct proto_attach attach = {.allowance = PROTO_ALLOWANCE_UNSET, .name = "second"};
    attach.allowance.memory.limit = 64 << 20;
    memcpy(attach.group, first.attached.group, sizeof attach.group);
    assert_int_equal(raw_ask(&second, PROTO_HELLO, &hello, NULL, 0, -1), 0);
    assert_int_equal(raw_ask(&second, PROTO_ATTACH, &attach, NULL, 0, -1), 0);
    channel_close_fds(&second.reply);
    size_t before = server_fd_count(worker);
    struct proto_link link = {.client = first.attached.client};
    unsigned made = 0;
    uint32_t error = 0;
    while (!error && made < 1000) {
        error = raw_ask(&second, PROTO_LINK, &link, NULL, 0, -1);
        made += !error;
    }
    assert_int_equal(error, PROTO_ERROR_TOO_MANY_OBJECTS);
    assert_true(made >= 8);
    assert_true(server_fd_count(worker) <= before + 4);
    raw_close(&second);
    raw_close(&first);
}

/* Bytes of memory behind descriptors. */
static uint64_t memory_behind(const int *fds, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        struct stat status;
        assert_int_equal(fstat(fds[i], &status), 0);
        sum += (uint64_t)status.st_blocks * 512;
    }
    return sum;
}

static bool memory_goes(const int *fds, unsigned count)
{
    for (int i = 0; i < 1000 && memory_behind(fds, count); i++)
        usleep(10000);
    return memory_behind(fds, count) == 0;
}

static void buffers_that_are_freed_and_kept_are_no_memory(void **state)
{
    (void)state;
    enum { BUFFERS = 8, BYTES = 16 << 20 };
    struct raw culprit;
    int kept[BUFFERS];
    struct proto_host_alloc ask = {.count = BYTES};
    raw_attach(&culprit, server, 64 << 20);
    for (unsigned i = 0; i < BUFFERS; i++) {
        assert_int_equal(raw_ask(&culprit, PROTO_HOST_ALLOC, &ask, NULL, 0, -1), 0);
        struct proto_host_free gone = {
            .address = ((const struct proto_host_allocated *)culprit.reply.body)->address};
        kept[i] = channel_take_fd(&culprit.reply, 0);
        assert_int_equal(memory_behind(&kept[i], 1), BYTES);
        /* The last one is left to the end of the connection. */
        if (i + 1 < BUFFERS)
            assert_int_equal(raw_ask(&culprit, PROTO_HOST_FREE, &gone, NULL, 0, -1), 0);
    }
    assert_true(memory_goes(kept, BUFFERS - 1));
    assert_int_equal(memory_behind(kept, BUFFERS), BYTES);
    raw_close(&culprit);
    assert_true(memory_goes(kept, BUFFERS));
    for (unsigned i = 0; i < BUFFERS; i++)
        close(kept[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_that_are_never_done_cost_others_no_time),
        cmocka_unit_test(links_are_bounded_and_take_no_descriptors),
        cmocka_unit_test(buffers_that_are_freed_and_kept_are_no_memory),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
