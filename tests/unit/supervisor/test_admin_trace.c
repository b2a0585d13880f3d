/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_trace: a trace asked for, and who hangs up. */
#include "tests/unit/supervisor/fake_admin.h"

/* The first byte, with the descriptor that comes along. */
static int receive_fd(int fd, char *byte)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t got = -1;
    for (int i = 0; i < 20000 && got < 0; i++) {
        turn();
        got = recvmsg(fd, &message, 0);
    }
    assert_int_equal(got, 1);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    assert_non_null(header);
    assert_int_equal(header->cmsg_type, SCM_RIGHTS);
    int passed;
    memcpy(&passed, CMSG_DATA(header), sizeof passed);
    return passed;
}

static void a_trace_comes_with_its_memory(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    static const char lines[] = "{\"request\":\"trace\",\"gpu\":0,\"seconds\":2.5}\n"
                                "{\"request\":\"ping\"}\n";
    int memory = memfd_create("trace", MFD_CLOEXEC);
    struct stat sent, came;
    char line[1000];
    assert_int_equal(fstat(memory, &sent), 0);
    int fd = connect_to();
    send_all(fd, lines, sizeof lines - 1);
    for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
        turn();
    assert_int_equal(supervisor.trace.device, 0);
    assert_int_equal(supervisor.trace.milliseconds, 2500);
    refused_with("{\"request\":\"trace\",\"gpu\":0,\"seconds\":1}", "too_many_objects",
                 "being traced for uid");
    trace_ends(memory, 0);
    close(memory);
    int passed = receive_fd(fd, line);
    assert_int_equal(fstat(passed, &came), 0);
    assert_int_equal(came.st_ino, sent.st_ino);
    close(passed);
    char *rest = read_line(fd);
    snprintf(line + 1, sizeof line - 1, "%s", rest);
    free(rest);
    json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(json_string_value(json_object_get(answer, "name")), "Test GPU");
    assert_true(number_of(answer, "seconds") == 2.5);
    assert_string_equal(json_string_value(json_object_get(answer, "trouble")), "the worker ended");
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    assert_string_equal(json_string_value(json_object_get(client, "name")), "a \"b\" \\");
    assert_int_equal(json_integer_value(json_object_get(client, "pid")), 50);
    client = json_array_get(json_object_get(answer, "clients"), 1);
    assert_true(json_is_null(json_object_get(client, "pid")));
    json_decref(answer);
    answer = read_answer(fd); /* what was asked ahead */
    assert_string_equal(json_string_value(json_object_get(answer, "request")), "ping");
    json_decref(answer);
    close(fd);
}

static void a_trace_that_fails_is_refused_in_words(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    int fd = connect_to();
    static const char line[] = "{\"request\":\"trace\",\"gpu\":1,\"seconds\":600}\n";
    send_all(fd, line, sizeof line - 1);
    for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
        turn();
    trace_ends(-1, PROTO_ERROR_DEVICE_NOT_READY);
    json_t *answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "device_not_ready");
    assert_string_equal(json_string_value(json_object_get(answer, "text")), "no trace");
    json_decref(answer);
    close(fd);
    static const char *const bad[] = {
        "{\"request\":\"trace\",\"gpu\":0}",
        "{\"request\":\"trace\",\"seconds\":1}",
        "{\"request\":\"trace\",\"gpu\":-1,\"seconds\":1}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":0.0009}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":600.001}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":\"5\"}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":1e300}",
        "{\"request\":\"ping\",\"seconds\":1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused_with(bad[i], "invalid_value", "\"");
    assert_null(supervisor.trace.done);
}

static int trace_for_long(void)
{
    static const char line[] = "{\"request\":\"trace\",\"gpu\":0,\"seconds\":600}\n";
    int fd = connect_to();
    send_all(fd, line, sizeof line - 1);
    for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
        turn();
    assert_non_null(supervisor.trace.done);
    return fd;
}

static void closing_the_sending_side_ends_a_trace_with_its_answer(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    int memory = memfd_create("trace", MFD_CLOEXEC);
    char byte;
    int fd = trace_for_long();
    static const char ahead[] = "{\"request\":\"ping\"}\n{\"request\":";
    send_all(fd, ahead, sizeof ahead - 1);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 20000 && !supervisor.trace.ended; i++)
        turn();
    assert_int_equal(supervisor.trace.ended, 1);
    trace_ends(memory, 0);
    close(receive_fd(fd, &byte));
    free(read_line(fd));
    json_t *answer = read_answer(fd); /* what it asked before its end; the half line is none */
    assert_string_equal(json_string_value(json_object_get(answer, "request")), "ping");
    json_decref(answer);
    ssize_t got = -1;
    for (int i = 0; i < 20000 && got < 0; i++) {
        turn();
        got = recv(fd, &byte, 1, MSG_DONTWAIT);
    }
    assert_int_equal(got, 0); /* it is not waited for */
    assert_int_equal(supervisor.trace.abandoned, 0);
    close(fd);
    close(memory);
}

static void a_peer_that_hangs_up_ends_its_trace(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    int memory = memfd_create("trace", MFD_CLOEXEC);
    close(trace_for_long());
    for (int i = 0; i < 20000 && !supervisor.trace.ended; i++)
        turn();
    assert_int_equal(supervisor.trace.ended, 1);
    trace_ends(memory, 0);
    close(memory);
    /* One that nobody waits for when the server ends, and one that somebody does. */
    close(trace_for_long());
    for (int i = 0; i < 20000 && supervisor.trace.ended < 2; i++)
        turn();
    admin_close(&admin);
    assert_int_equal(supervisor.trace.abandoned, 1);
}

static void a_server_that_ends_gives_a_trace_up(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    int fd = trace_for_long();
    admin_close(&admin);
    assert_int_equal(supervisor.trace.abandoned, 1);
    close(fd);
}

static void requests_sent_during_a_trace_are_bounded(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    static const char line[] = "{\"request\":\"trace\",\"gpu\":0,\"seconds\":600}\n";
    char *ahead = malloc(2 * ADMIN_LINE_MAX);
    memset(ahead, ' ', 2 * ADMIN_LINE_MAX);
    int fd = connect_to();
    send_all(fd, line, sizeof line - 1);
    send_all(fd, ahead, 2 * ADMIN_LINE_MAX);
    for (int i = 0; i < 200; i++)
        turn();
    assert_non_null(supervisor.trace.done);
    trace_ends(-1, PROTO_ERROR_DEVICE_NOT_READY);
    json_t *answer = read_answer(fd);
    json_decref(answer);
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "invalid_value");
    json_decref(answer);
    free(ahead);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_trace_comes_with_its_memory),
        CASE(a_trace_that_fails_is_refused_in_words),
        CASE(closing_the_sending_side_ends_a_trace_with_its_answer),
        CASE(a_peer_that_hangs_up_ends_its_trace),
        CASE(a_server_that_ends_gives_a_trace_up),
        CASE(requests_sent_during_a_trace_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
