/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* channel: what is well-formed arrives whole, what is not is refused without a trace. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/ipc/channel.h"
#include "tests/support/granted.h"

static int pair[2]; /* 0: the peer's end, 1: ours */
static struct channel_message got;
static unsigned fds_before;

static unsigned count_fds(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static int set_up(void **state)
{
    (void)state;
    fds_before = count_fds();
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
}

/* No descriptor may be left, whatever came. */
static int tear_down(void **state)
{
    (void)state;
    channel_close_fds(&got);
    close(pair[0]);
    close(pair[1]);
    assert_int_equal(count_fds(), fds_before);
    return 0;
}

static int receive_as(int self, int sender)
{
    return channel_receive(pair[1], self, sender, &got);
}

/* One packet, as a hostile peer may write it. */
static void send_raw(const void *data, size_t length, const int *fds, unsigned count)
{
    struct iovec part = {(void *)(uintptr_t)data, length};
    char control[CMSG_SPACE(sizeof(int) * 253)] __attribute__((aligned(8)));
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(control, 0, sizeof control);
    if (count) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    }
    assert_int_equal(sendmsg(pair[0], &message, MSG_NOSIGNAL), (ssize_t)length);
}

static void refused(const char *words)
{
    int result = receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT);
    if (result != -EPROTO || !got.why || !strstr(got.why, words))
        fail_msg("got %d, \"%s\", not \"%s\"", result, got.why ? got.why : "", words);
    assert_int_equal(got.fd_count, 0);
    for (unsigned i = 0; i < PROTO_FDS_MAX; i++)
        assert_int_equal(got.fds[i], -1);
}

struct hello {
    struct proto_message_header header;
    struct proto_hello body;
};

static struct hello good_hello(void)
{
    return (struct hello){
        .header = {.bytes = sizeof(struct hello), .opcode = PROTO_HELLO, .serial = 77},
        .body = {.major = 1}};
}

static void a_message_arrives_whole(void **state)
{
    (void)state;
    struct proto_function_get body = {.module = 5};
    assert_int_equal(channel_send(pair[0], &(struct channel_packet){.opcode = PROTO_FUNCTION_GET,
                                                                    .serial = 9,
                                                                    .client = 3,
                                                                    .body = &body,
                                                                    .tail = "kernel",
                                                                    .tail_bytes = 6}),
                     0);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
    assert_int_equal(got.header.opcode, PROTO_FUNCTION_GET);
    assert_int_equal(got.header.serial, 9);
    assert_int_equal(got.header.client, 3);
    assert_string_equal(got.type->name, "function_get");
    assert_int_equal(((const struct proto_function_get *)got.body)->module, 5);
    assert_int_equal(got.tail_bytes, 6);
    assert_memory_equal(got.tail, "kernel", 6);
    assert_int_equal((uintptr_t)got.body % 8, 0);
    assert_null(got.why);
}

/* Each message of the schema, at its shortest and at its longest. */
static void every_message_of_the_schema_travels(void **state)
{
    (void)state;
    static uint8_t body[PROTO_MESSAGE_MAX], tail[PROTO_MESSAGE_MAX];
    memset(tail, 'n', sizeof tail);
    unsigned sent = 0;
    for (unsigned opcode = 0; opcode < 65536; opcode++) {
        const struct proto_message *type = proto_message_find((uint16_t)opcode);
        if (!type)
            continue;
        /* Zeros pass most checks; what they do not pass is refused with a sentence. */
        memset(body, 0, sizeof body);
        for (size_t i = 0; i + 4 <= type->bytes && type->check(body); i += 4)
            body[i] = 1;
        if (type->check(body))
            continue;
        int fds[PROTO_FDS_MAX] = {0, 0, 0, 0};
        uint32_t tails[] = {0, type->tail};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(
                channel_send(pair[0], &(struct channel_packet){.opcode = (uint16_t)opcode,
                                                               .serial = 1,
                                                               .client = 2,
                                                               .body = body,
                                                               .tail = tail,
                                                               .tail_bytes = tails[i],
                                                               .fds = fds,
                                                               .fd_count = type->fds}),
                0);
            int result = receive_as(type->to & -type->to, type->from & -type->from);
            if (result != 0)
                fail_msg("%s: %d, %s", type->name, result, got.why ? got.why : "");
            assert_int_equal(got.fd_count, type->fds);
            assert_int_equal(got.tail_bytes, tails[i]);
            assert_memory_equal(got.body, body, type->bytes);
            channel_close_fds(&got);
            sent++;
        }
    }
    assert_true(sent > 80);
}

static void an_empty_and_a_closed_socket(void **state)
{
    (void)state;
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), CHANNEL_EMPTY);
    shutdown(pair[0], SHUT_WR);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), CHANNEL_CLOSED);
    close(pair[1]);
    pair[1] = -1;
    struct proto_hello body = {.major = 1};
    assert_int_equal(
        channel_send(pair[0],
                     &(struct channel_packet){.opcode = PROTO_HELLO, .serial = 1, .body = &body}),
        -EPIPE);
    assert_int_equal(channel_receive(-1, PROTO_PEER_ANY, PROTO_PEER_ANY, &got), -EBADF);
}

static void lengths_that_lie(void **state)
{
    (void)state;
    struct hello hello = good_hello();
    static char large[PROTO_MESSAGE_MAX + 100];
    send_raw(&hello, 1, NULL, 0);
    refused("shorter than its header");
    send_raw(&hello, sizeof hello.header - 1, NULL, 0);
    refused("shorter than its header");
    send_raw(&hello, sizeof hello - 1, NULL, 0);
    refused("not what its header says");
    assert_int_equal(got.header.serial, 77); /* a refusal can name the request */
    hello.header.bytes = sizeof hello - 4;
    send_raw(&hello, sizeof hello - 4, NULL, 0);
    refused("does not fit its kind");
    struct {
        struct hello hello;
        uint32_t more;
    } longer = {.hello = good_hello()};
    longer.hello.header.bytes = sizeof longer;
    send_raw(&longer, sizeof longer, NULL, 0);
    refused("does not fit its kind");
    memcpy(large, &hello, sizeof hello);
    send_raw(large, PROTO_MESSAGE_MAX + 1, NULL, 0);
    refused("longer than any message");
    hello = good_hello();
    hello.header.bytes = UINT32_MAX;
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("not what its header says");
    /* And the next one is served as if nothing had been. */
    hello = good_hello();
    send_raw(&hello, sizeof hello, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
}

static void a_tail_one_byte_too_long(void **state)
{
    (void)state;
    static struct {
        struct proto_message_header header;
        struct proto_function_get body;
        char name[PROTO_NAME_MAX + 1];
    } message = {.body = {.module = 1}};
    message.header.opcode = PROTO_FUNCTION_GET;
    uint32_t most = sizeof message.header + sizeof message.body + PROTO_NAME_MAX;
    message.header.bytes = most;
    send_raw(&message, most, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
    assert_int_equal(got.tail_bytes, PROTO_NAME_MAX);
    message.header.bytes = most + 1;
    send_raw(&message, most + 1, NULL, 0);
    refused("does not fit its kind");
}

static void opcodes_and_directions(void **state)
{
    (void)state;
    struct hello hello = good_hello();
    hello.header.opcode = 0;
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("unknown message");
    hello.header.opcode = 65535;
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("unknown message");
    hello.header.opcode = PROTO_WELCOME; /* a server's */
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("may not send");
    hello.header.opcode = PROTO_WORKER_FAULT; /* a worker's */
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("may not send");
    hello = good_hello();
    send_raw(&hello, sizeof hello, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR), -EPROTO);
}

static void reserved_fields_and_ranges(void **state)
{
    (void)state;
    struct hello hello = good_hello();
    hello.header.reserved = 1;
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("reserved must be zero");
    struct {
        struct proto_message_header header;
        struct proto_attach body;
    } attach = {.header = {.bytes = sizeof attach, .opcode = PROTO_ATTACH}};
    struct {
        struct proto_message_header header;
        struct proto_module_unload body;
    } unload = {.header = {.bytes = sizeof unload, .opcode = PROTO_MODULE_UNLOAD},
                .body = {.module = 1, .pad0 = 1}};
    send_raw(&unload, sizeof unload, NULL, 0);
    refused("module_unload.pad0 must be zero");
    attach.body.allowance = granted_whole();
    send_raw(&attach, sizeof attach, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
    attach.body.allowance.threads.limit = 10001;
    send_raw(&attach, sizeof attach, NULL, 0);
    refused("attach.allowance.threads.limit is above 10000");
    attach.body.allowance.threads.limit = PROTO_UNSET;
    attach.body.sources.memory.limit = PROTO_SOURCE_COUNT;
    send_raw(&attach, sizeof attach, NULL, 0);
    refused("attach.sources.memory.limit is no source");
    attach.body.sources.memory.limit = PROTO_SOURCE_NONE;
    memset(attach.body.name, 'n', sizeof attach.body.name);
    send_raw(&attach, sizeof attach, NULL, 0);
    refused("attach.name is not");
    attach.body.name[sizeof attach.body.name - 1] = '\0';
    send_raw(&attach, sizeof attach, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
    attach.body.name[3] = '\n';
    send_raw(&attach, sizeof attach, NULL, 0);
    refused("attach.name is not");
}

static void unexpected_descriptors_are_refused(void **state)
{
    (void)state;
    int many[253];
    for (unsigned i = 0; i < 253; i++)
        many[i] = STDERR_FILENO;
    static const unsigned counts[] = {1, 2, 4, 5, 31, 32, 33, 253};
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct hello hello = good_hello();
        send_raw(&hello, sizeof hello, many, counts[i]);
        refused("file descriptors");
        assert_int_equal(count_fds(), fds_before + 2);
    }
}

static void a_descriptor_too_few(void **state)
{
    (void)state;
    struct {
        struct proto_message_header header;
        struct proto_module_load body;
    } load = {.header = {.bytes = sizeof load, .opcode = PROTO_MODULE_LOAD}, .body = {.count = 1}};
    send_raw(&load, sizeof load, NULL, 0);
    refused("wrong number of file descriptors");
    int fds[2] = {pair[0], pair[0]};
    send_raw(&load, sizeof load, fds, 2);
    refused("wrong number of file descriptors");
    send_raw(&load, sizeof load, fds, 1);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
    int taken = channel_take_fd(&got, 0);
    assert_true(taken >= 0);
    assert_int_equal(fcntl(taken, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(channel_take_fd(&got, 1), -1);
    assert_int_equal(got.fds[0], -1);
    channel_close_fds(&got);
    assert_true(fcntl(taken, F_GETFD) >= 0); /* taken is taken */
    close(taken);
}

static void a_descriptor_more_than_any_message_has(void **state)
{
    (void)state;
    struct {
        struct proto_message_header header;
        struct proto_worker_attach body;
    } attach = {.header = {.bytes = sizeof attach, .opcode = PROTO_WORKER_ATTACH, .serial = 1},
                .body = {.streams = 1, .allowance = granted_whole()}};
    int fds[PROTO_FDS_MAX + 1];
    for (unsigned i = 0; i <= PROTO_FDS_MAX; i++)
        fds[i] = pair[0];
    send_raw(&attach, sizeof attach, fds, PROTO_FDS_MAX + 1);
    assert_int_equal(receive_as(PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR), -EPROTO);
    assert_non_null(strstr(got.why, "too many file descriptors"));
    send_raw(&attach, sizeof attach, fds, PROTO_FDS_MAX);
    assert_int_equal(receive_as(PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR), 0);
    channel_close_fds(&got);
    assert_int_equal(count_fds(), fds_before + 2);
}

static void no_descriptor_left_in_this_process(void **state)
{
    (void)state;
    struct {
        struct proto_message_header header;
        struct proto_module_load body;
    } load = {.header = {.bytes = sizeof load, .opcode = PROTO_MODULE_LOAD}, .body = {.count = 1}};
    send_raw(&load, sizeof load, pair, 1);
    struct rlimit old, none;
    getrlimit(RLIMIT_NOFILE, &old);
    none = (struct rlimit){.rlim_cur = (rlim_t)pair[1] + 1, .rlim_max = old.rlim_max};
    /* Every number below the limit is in use. */
    int filler[64];
    unsigned count = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    while (count < 64 && (filler[count] = dup(0)) >= 0)
        count++;
    int result = receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT);
    setrlimit(RLIMIT_NOFILE, &old);
    while (count)
        close(filler[--count]);
    assert_int_equal(result, -EPROTO);
    assert_non_null(strstr(got.why, "file descriptors"));
}

static void a_packet_of_nothing_with_descriptors(void **state)
{
    (void)state;
    send_raw("", 0, pair, 2);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), CHANNEL_CLOSED);
    assert_int_equal(count_fds(), fds_before + 2);
}

static void random_packets(void **state)
{
    (void)state;
    static uint8_t packet[4096];
    unsigned seed = 12345, accepted = 0;
    for (int i = 0; i < 20000; i++) {
        size_t length = (seed = seed * 1103515245u + 12345u) >> 8 & 1023;
        for (size_t j = 0; j < length; j++)
            packet[j] = (uint8_t)((seed = seed * 1103515245u + 12345u) >> 16);
        /* Mostly right headers, so that the later checks are reached. */
        struct proto_message_header header = {.bytes = (uint32_t)length,
                                              .opcode = (uint16_t)(seed >> 8 & 127)};
        if (i % 4 && length >= sizeof header)
            memcpy(packet, &header, sizeof header);
        send_raw(packet, length, (int[]){0, 0, 0}, seed >> 20 & 3);
        int result = receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT);
        if (result == 0)
            accepted++;
        else if (length)
            assert_true(result == -EPROTO && got.why);
        channel_close_fds(&got);
    }
    assert_int_equal(count_fds(), fds_before + 2);
    assert_true(accepted < 2000);
}

static void malformed_messages_are_not_sent(void **state)
{
    (void)state;
    static uint8_t body[PROTO_MESSAGE_MAX];
    int fd = pair[0];
    assert_int_equal(
        channel_send(fd, &(struct channel_packet){.opcode = 65535, .serial = 1, .body = body}),
        -EINVAL);
    assert_int_equal(channel_send(fd, &(struct channel_packet){.opcode = PROTO_HELLO,
                                                               .serial = 1,
                                                               .body = body,
                                                               .fds = &fd,
                                                               .fd_count = 1}),
                     -EINVAL);
    assert_int_equal(
        channel_send(
            fd, &(struct channel_packet){.opcode = PROTO_MODULE_LOAD, .serial = 1, .body = body}),
        -EINVAL);
    assert_int_equal(channel_send(fd, &(struct channel_packet){.opcode = PROTO_HELLO,
                                                               .serial = 1,
                                                               .body = body,
                                                               .tail = body,
                                                               .tail_bytes = 1}),
                     -EINVAL);
    assert_int_equal(channel_send(fd, &(struct channel_packet){.opcode = PROTO_FUNCTION_GET,
                                                               .serial = 1,
                                                               .body = body,
                                                               .tail = body,
                                                               .tail_bytes = PROTO_NAME_MAX + 1}),
                     -EINVAL);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), CHANNEL_EMPTY);
}

static void a_full_socket_says_so(void **state)
{
    (void)state;
    struct proto_hello body = {.major = 1};
    int result = 0;
    for (int i = 0; i < 100000 && result == 0; i++)
        result = channel_send(
            pair[0], &(struct channel_packet){.opcode = PROTO_HELLO, .serial = 1, .body = &body});
    assert_int_equal(result, -EAGAIN);
}

/* A whole packet as a client or a server of major version 1 wrote it. */
static void peers_of_major_1_are_known_by_their_packets(void **state)
{
    (void)state;
    struct proto_hello_of_major_1 hello = {
        .bytes = sizeof hello, .opcode = PROTO_HELLO, .serial = 77, .major = 1, .minor = 4};
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("does not fit its kind");
    assert_int_equal(channel_old_hello(&got), 77);
    assert_false(channel_is_old_refusal(&got));
    hello.major = 2;
    send_raw(&hello, sizeof hello, NULL, 0);
    refused("does not fit its kind");
    assert_int_equal(channel_old_hello(&got), 0);

    assert_int_equal(channel_refuse_old_hello(pair[0], 77, "use another release"), 0);
    assert_int_equal(receive_as(PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR), -EPROTO);
    assert_true(channel_is_old_refusal(&got));
    assert_int_equal(channel_old_hello(&got), 0);
    struct proto_failed_of_major_1 *failed = (void *)got.data;
    assert_int_equal(failed->serial, 77);
    assert_int_equal(failed->error, PROTO_ERROR_PROTOCOL_VERSION);
    assert_string_equal(failed->text, "use another release");
    struct proto_failed_of_major_1 ended = {.bytes = sizeof ended, .opcode = PROTO_ENDED};
    send_raw(&ended, sizeof ended, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR), -EPROTO);
    assert_true(channel_is_old_refusal(&got));
    send_raw(&ended, sizeof ended - 1, NULL, 0);
    assert_int_equal(receive_as(PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR), -EPROTO);
    assert_false(channel_is_old_refusal(&got));
}

static void serials_have_64_bits(void **state)
{
    (void)state;
    uint64_t serial = UINT64_C(0x123456789abcdef0);
    assert_int_equal(channel_send(pair[0], &(struct channel_packet){.opcode = PROTO_MEMORY_QUERY,
                                                                    .serial = serial}),
                     0);
    assert_int_equal(receive_as(PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT), 0);
    assert_true(got.header.serial == serial);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_message_arrives_whole),
        CASE(every_message_of_the_schema_travels),
        CASE(an_empty_and_a_closed_socket),
        CASE(lengths_that_lie),
        CASE(a_tail_one_byte_too_long),
        CASE(opcodes_and_directions),
        CASE(reserved_fields_and_ranges),
        CASE(unexpected_descriptors_are_refused),
        CASE(a_descriptor_too_few),
        CASE(a_descriptor_more_than_any_message_has),
        CASE(no_descriptor_left_in_this_process),
        CASE(a_packet_of_nothing_with_descriptors),
        CASE(random_packets),
        CASE(malformed_messages_are_not_sent),
        CASE(a_full_socket_says_so),
        CASE(peers_of_major_1_are_known_by_their_packets),
        CASE(serials_have_64_bits),
    };
    for (unsigned i = 0; i < PROTO_FDS_MAX; i++)
        got.fds[i] = -1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
