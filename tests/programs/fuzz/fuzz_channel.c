/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Fuzzes one packet of a peer, received as supervisor and as worker. The first byte says how many
 * descriptors come with it. Besides memory errors it finds a refusal without a sentence,
 * descriptors that are left open, and a body or tail that leaves the packet.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/ipc/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int ends[2] = {-1, -1};

static void must(int holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz_channel: %s\n", what);
    abort();
}

static void send_packet(const uint8_t *data, size_t size, unsigned fds)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * 8)];
        struct cmsghdr align;
    } control;
    struct iovec part = {(void *)(uintptr_t)data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    memset(&control, 0, sizeof control);
    if (fds) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fds); /* each is descriptor 0, standard input */
    }
    must(sendmsg(ends[0], &message, MSG_NOSIGNAL) >= 0, "cannot send");
}

/* The number that the next descriptor will get. A descriptor that is left open changes it. */
static int lowest_free(void)
{
    int fd = dup(0);
    close(fd);
    /* cppcheck-suppress deallocret ; its number is the answer, not what it stood for */
    return fd;
}

static void receive(int self, int sender)
{
    static struct channel_message message;
    int free_before = lowest_free();
    int result = channel_receive(ends[1], self, sender, &message);
    if (result == 0) {
        const uint8_t *body = message.body;
        must(message.type && message.fd_count == message.type->fds, "descriptors");
        must(body >= message.data && body + message.type->bytes == message.tail &&
                 message.tail + message.tail_bytes == message.data + message.header.bytes,
             "a body or tail outside of the packet");
        must(message.tail_bytes <= message.type->tail, "a tail that is too long");
        channel_close_fds(&message);
    } else {
        must(result == CHANNEL_CLOSED || (result == -EPROTO && message.why), "without a sentence");
    }
    must(lowest_free() == free_before, "a descriptor stayed behind");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        int self, sender;
    } roles[] = {{PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT},
                 {PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR},
                 {PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER},
                 {PROTO_PEER_CLIENT, PROTO_PEER_SUPERVISOR}};
    if (ends[0] < 0)
        must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0, "no socket");
    if (size == 0)
        return 0;
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        send_packet(data + 1, size - 1, data[0] % 8);
        receive(roles[i].self, roles[i].sender);
    }
    /* A descriptor of a ring, every byte of which comes from the client. */
    if (size >= 65) {
        _Alignas(16) uint8_t descriptor[64];
        memcpy(descriptor, data + 1, sizeof descriptor);
        const char *why = proto_command_check(descriptor);
        must(!why || why[0], "a command is refused without a word");
    }
    return 0;
}
