/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/ipc/channel.h"
#include "server/supervisor/loop/send_queue.h"

static int pair[2];
static struct channel_message message;

static int set_up(void **state)
{
    (void)state;
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

static int tear_down(void **state)
{
    (void)state;
    close(pair[0]);
    close(pair[1]);
    return 0;
}

static int send_number(struct send_queue *send_queue, uint32_t number)
{
    return send_queue_send(send_queue,
                           &(struct channel_packet){.opcode = PROTO_DONE, .serial = number});
}

static void messages_arrive_once_and_in_order(void **state)
{
    (void)state;
    struct send_queue send_queue;
    uint32_t sent = 0, got = 0;
    send_queue_open(&send_queue, pair[0], 1 << 20);
    while (!send_queue_waiting(&send_queue))
        assert_true(send_number(&send_queue, ++sent) >= 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(send_number(&send_queue, ++sent), SEND_QUEUE_QUEUED);
    assert_int_equal(send_queue_flush(&send_queue), SEND_QUEUE_QUEUED);
    while (got < sent) {
        int result = channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message);
        if (result == CHANNEL_EMPTY) {
            assert_true(send_queue_flush(&send_queue) >= 0);
            continue;
        }
        assert_int_equal(result, 0);
        assert_int_equal(message.header.serial, ++got);
    }
    assert_false(send_queue_waiting(&send_queue));
    assert_int_equal(send_queue.bytes, 0);
    send_queue_close(&send_queue);
}

/* Messages that wait go before new ones, also when the socket has room again. */
static void no_message_overtakes_a_queued_one(void **state)
{
    (void)state;
    struct send_queue send_queue;
    uint32_t sent = 0, got = 0;
    send_queue_open(&send_queue, pair[0], 1 << 20);
    while (!send_queue_waiting(&send_queue))
        assert_true(send_number(&send_queue, ++sent) >= 0);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message), 0);
        assert_int_equal(message.header.serial, ++got);
    }
    assert_int_equal(send_number(&send_queue, ++sent), SEND_QUEUE_QUEUED);
    assert_true(send_queue_flush(&send_queue) >= 0);
    while (got < sent) {
        assert_int_equal(
            channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message), 0);
        assert_int_equal(message.header.serial, ++got);
    }
    send_queue_close(&send_queue);
}

static void a_full_queue_refuses(void **state)
{
    (void)state;
    struct send_queue send_queue;
    int result = 0;
    send_queue_open(&send_queue, pair[0], 1000);
    for (int i = 0; i < 100000 && result >= 0; i++)
        result = send_number(&send_queue, 1);
    assert_int_equal(result, -ENOBUFS);
    assert_true(send_queue.bytes <= 1000);
    send_queue_close(&send_queue);
    send_queue_close(&send_queue);
    assert_int_equal(send_queue.bytes, 0);
}

static void queued_descriptors_belong_to_the_queue_and_count(void **state)
{
    (void)state;
    struct send_queue send_queue;
    struct proto_host_allocated body = {.address = 4096, .count = 1};
    send_queue_open(&send_queue, pair[0], 3 * SEND_QUEUE_FD_BYTES);
    while (!send_queue_waiting(&send_queue))
        assert_true(send_number(&send_queue, 1) >= 0);
    int fd = memfd_create("waiting", MFD_CLOEXEC);
    int result = SEND_QUEUE_QUEUED, queued = -1;
    for (; result == SEND_QUEUE_QUEUED; queued++)
        result =
            send_queue_send(&send_queue, &(struct channel_packet){.opcode = PROTO_HOST_ALLOCATED,
                                                                  .serial = 2,
                                                                  .body = &body,
                                                                  .fds = &fd,
                                                                  .fd_count = 1});
    assert_int_equal(result, -ENOBUFS);
    assert_int_equal(queued, 2);
    close(fd);
    int got = 0;
    while (got < queued) {
        result = channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message);
        if (result == CHANNEL_EMPTY)
            assert_true(send_queue_flush(&send_queue) >= 0);
        got += result == 0 && message.header.serial == 2 && message.fds[0] >= 0;
        channel_close_fds(&message);
    }
    send_queue_close(&send_queue);
}

/* Descriptors on their way count against the user of the server, for all its sockets together. */
static void few_descriptors_are_on_their_way_to_a_peer_that_does_not_read(void **state)
{
    (void)state;
    enum { FEW = 8, MANY = 60 };
    struct send_queue send_queue;
    struct proto_host_allocated body = {.address = 4096, .count = 1};
    struct channel_packet packet = {
        .opcode = PROTO_HOST_ALLOCATED, .body = &body, .fds = &pair[0], .fd_count = 1};
    int sent = 0;
    send_queue_open(&send_queue, pair[0], 1 << 20);
    assert_int_equal(send_queue_narrow(&send_queue), 0);
    while (send_queue_send(&send_queue, &packet) == 0)
        sent++;
    assert_in_range(sent, 1, FEW);
    for (int i = sent + 1; i < MANY; i++)
        assert_int_equal(send_queue_send(&send_queue, &packet), SEND_QUEUE_QUEUED);
    for (int got = 0; got < MANY;) {
        int result = channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message);
        if (result == CHANNEL_EMPTY)
            assert_true(send_queue_flush(&send_queue) >= 0);
        got += result == 0;
        channel_close_fds(&message);
    }
    send_queue_close(&send_queue);
}

static void the_largest_message_and_the_last_one_find_room(void **state)
{
    (void)state;
    static const uint32_t tail[32768 / sizeof(uint32_t)];
    struct proto_function_info body = {.function = 1};
    struct proto_ended ended = {.error = PROTO_ERROR_UNKNOWN, .text = "over"};
    struct send_queue send_queue;
    send_queue_open(&send_queue, pair[0], 1 << 20);
    assert_int_equal(send_queue_narrow(&send_queue), 0);
    assert_int_equal(
        send_queue_send(&send_queue, &(struct channel_packet){.opcode = PROTO_FUNCTION_INFO,
                                                              .body = &body,
                                                              .tail = tail,
                                                              .tail_bytes = sizeof tail}),
        0);
    assert_int_equal(send_number(&send_queue, 1), SEND_QUEUE_QUEUED);
    send_queue_widen(&send_queue);
    assert_int_equal(
        channel_send(pair[0], &(struct channel_packet){.opcode = PROTO_ENDED, .body = &ended}), 0);
    assert_int_equal(channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message),
                     0);
    assert_int_equal(message.header.opcode, PROTO_FUNCTION_INFO);
    assert_int_equal(message.tail_bytes, sizeof tail);
    assert_int_equal(channel_receive(pair[1], PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR, &message),
                     0);
    assert_int_equal(message.header.opcode, PROTO_ENDED);
    send_queue_close(&send_queue);
}

static void a_peer_that_is_gone_is_an_error(void **state)
{
    (void)state;
    struct send_queue send_queue;
    send_queue_open(&send_queue, pair[0], 1000);
    close(pair[1]);
    assert_int_equal(send_number(&send_queue, 1), -EPIPE);
    pair[1] = -1;
    send_queue_close(&send_queue);
}

static void messages_unknown_to_the_schema_are_not_sent(void **state)
{
    (void)state;
    struct send_queue send_queue;
    send_queue_open(&send_queue, pair[0], 1000);
    assert_int_equal(
        send_queue_send(&send_queue, &(struct channel_packet){.opcode = 9999, .serial = 1}),
        -EINVAL);
    assert_int_equal(send_queue_send(&send_queue, &(struct channel_packet){.opcode = PROTO_DONE,
                                                                           .serial = 1,
                                                                           .tail = "x",
                                                                           .tail_bytes = 1}),
                     -EINVAL);
    assert_int_equal(send_queue_send(&send_queue, &(struct channel_packet){.opcode = PROTO_DONE,
                                                                           .serial = 1,
                                                                           .fds = &pair[0],
                                                                           .fd_count = 1}),
                     -EINVAL);
    send_queue_close(&send_queue);
}

static void expect_no_standard_fd(void *context, const struct channel_packet *packet,
                                  size_t body_bytes)
{
    (void)body_bytes;
    for (unsigned i = 0; i < packet->fd_count; i++)
        assert_true(packet->fds[i] > STDERR_FILENO);
    *(unsigned *)context += packet->fd_count;
}

static void queued_descriptors_are_no_standard_ones(void **state)
{
    (void)state;
    struct send_queue send_queue;
    struct proto_host_allocated body = {.address = 4096, .count = 1};
    unsigned seen = 0;
    send_queue_open(&send_queue, pair[0], 1 << 20);
    while (!send_queue_waiting(&send_queue))
        assert_true(send_number(&send_queue, 1) >= 0);
    int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 100);
    if (input >= 0)
        close(STDIN_FILENO);
    int result =
        send_queue_send(&send_queue, &(struct channel_packet){.opcode = PROTO_HOST_ALLOCATED,
                                                              .serial = 1,
                                                              .body = &body,
                                                              .fds = &pair[0],
                                                              .fd_count = 1});
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
        close(input);
    }
    assert_int_equal(result, SEND_QUEUE_QUEUED);
    send_queue_each(&send_queue, expect_no_standard_fd, &seen);
    assert_int_equal(seen, 1);
    send_queue_close(&send_queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(messages_arrive_once_and_in_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_message_overtakes_a_queued_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(queued_descriptors_belong_to_the_queue_and_count, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(queued_descriptors_are_no_standard_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            few_descriptors_are_on_their_way_to_a_peer_that_does_not_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_largest_message_and_the_last_one_find_room, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_peer_that_is_gone_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_unknown_to_the_schema_are_not_sent, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
