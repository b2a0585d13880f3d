/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A worker that stands by says so once, answers whether it is there, and goes on when it is told.
 * The messages are all in the socket before it looks, so no other thread is needed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/ipc/channel.h"
#include "server/worker/standby.h"

static int supervisor, worker;
static struct channel_message message;

static int open_channel(void **state)
{
    int pair[2];
    (void)state;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    supervisor = pair[0];
    worker = pair[1];
    return 0;
}

static int close_channel(void **state)
{
    (void)state;
    close(supervisor);
    close(worker);
    return 0;
}

static void ask(uint16_t opcode, uint64_t serial)
{
    struct channel_packet packet = {.opcode = opcode, .serial = serial};
    assert_int_equal(channel_send(supervisor, &packet), 0);
}

static void expect(uint16_t opcode, uint64_t serial)
{
    assert_int_equal(
        channel_receive(supervisor, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER, &message), 0);
    assert_int_equal(message.header.opcode, opcode);
    assert_int_equal(message.header.serial, serial);
}

static void expect_nothing(void)
{
    fcntl(supervisor, F_SETFL, O_NONBLOCK);
    assert_int_equal(
        channel_receive(supervisor, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER, &message),
        CHANNEL_EMPTY);
}

static void it_answers_questions_until_it_is_told_to_serve(void **state)
{
    (void)state;
    ask(PROTO_WORKER_BEAT, 7);
    ask(PROTO_WORKER_BEAT, 8);
    ask(PROTO_WORKER_SERVE, 9);
    ask(PROTO_WORKER_BEAT, 10);
    assert_int_equal(standby_wait(worker), 0);
    expect(PROTO_WORKER_STANDBY, 0);
    expect(PROTO_DONE, 7);
    expect(PROTO_DONE, 8);
    expect(PROTO_DONE, 9);
    expect_nothing();
    /* The later message is the worker's to read. */
    assert_int_equal(channel_receive(worker, PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR, &message),
                     0);
    assert_int_equal(message.header.serial, 10);
}

static void a_socket_that_does_not_block_is_waited_for(void **state)
{
    (void)state;
    fcntl(worker, F_SETFL, O_NONBLOCK);
    ask(PROTO_WORKER_SERVE, 1);
    assert_int_equal(standby_wait(worker), 0);
    expect(PROTO_WORKER_STANDBY, 0);
    expect(PROTO_DONE, 1);
}

static void it_ends_when_the_supervisor_hangs_up(void **state)
{
    (void)state;
    shutdown(supervisor, SHUT_WR);
    assert_int_equal(standby_wait(worker), STANDBY_UNWANTED);
    shutdown(supervisor, SHUT_RDWR);
    assert_int_equal(standby_wait(worker), STANDBY_UNWANTED);
}

static void other_messages_end_it(void **state)
{
    (void)state;
    ask(PROTO_WORKER_TRACE_STOP, 3);
    assert_int_equal(standby_wait(worker), -EPROTO);
}

static void kinds_have_names(void **state)
{
    (void)state;
    assert_int_equal(standby_kind_of("none"), STANDBY_NONE);
    assert_int_equal(standby_kind_of("driver"), STANDBY_DRIVER);
    assert_int_equal(standby_kind_of("context"), STANDBY_CONTEXT);
    assert_int_equal(standby_kind_of(""), -1);
    assert_int_equal(standby_kind_of("contexts"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_answers_questions_until_it_is_told_to_serve,
                                        open_channel, close_channel),
        cmocka_unit_test_setup_teardown(a_socket_that_does_not_block_is_waited_for, open_channel,
                                        close_channel),
        cmocka_unit_test_setup_teardown(it_ends_when_the_supervisor_hangs_up, open_channel,
                                        close_channel),
        cmocka_unit_test_setup_teardown(other_messages_end_it, open_channel, close_channel),
        cmocka_unit_test(kinds_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
