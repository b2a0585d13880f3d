/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/channel.h"
#include "common/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void channel_close_fds(struct channel_message *message)
{
    for (unsigned i = 0; i < message->fd_count; i++) {
        if (message->fds[i] >= 0)
            close(message->fds[i]);
        message->fds[i] = -1;
    }
    message->fd_count = 0;
}

int channel_take_fd(struct channel_message *message, unsigned i)
{
    if (i >= message->fd_count)
        return -1;
    int fd = message->fds[i];
    message->fds[i] = -1;
    return fd;
}

int channel_above_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (above < 0)
        return fd;
    close(fd);
    return above;
}

/* Every descriptor is collected before the message is checked, so that no way out of the check
 * can leak one. */
static void collect_fds(struct msghdr *header, struct channel_message *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && message->fd_count < CHANNEL_FDS_MAX; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            message->fds[message->fd_count++] = channel_above_standard(fd);
        }
    }
}

static const char *check_message(struct channel_message *message, size_t length, int self,
                                 int sender)
{
    if (length < sizeof message->header)
        return MESSAGE_TEXT(protocol_short);
    memcpy(&message->header, message->data, sizeof message->header);
    const struct proto_message_header *header = &message->header;
    if (header->bytes != length)
        return MESSAGE_TEXT(protocol_length);
    if (header->reserved || header->reserved2)
        return MESSAGE_TEXT(protocol_reserved);
    const struct proto_message *type = proto_message_find(header->opcode);
    if (!type)
        return MESSAGE_TEXT(protocol_opcode);
    if (!(type->to & self) || !(type->from & sender))
        return MESSAGE_TEXT(protocol_peer);
    size_t rest = length - sizeof *header;
    if (rest < type->bytes || rest > (size_t)type->bytes + type->tail)
        return MESSAGE_TEXT(protocol_body);
    if (message->fd_count != type->fds)
        return MESSAGE_TEXT(protocol_descriptors);
    message->type = type;
    message->body = message->data + sizeof *header;
    message->tail = message->data + sizeof *header + type->bytes;
    message->tail_bytes = rest - type->bytes;
    return type->check(message->body);
}

/* As recvmsg(), with its flags in and out. *controlled: whether anything came beside the bytes.
 * Returns the length of the packet, or -errno. */
static ssize_t packet_receive(int fd, struct channel_message *message, int *flags, bool *controlled)
{
    _Static_assert(offsetof(struct channel_message, data) % 8 == 0 &&
                       sizeof(struct proto_message_header) % 8 == 0,
                   "bodies are aligned");
    union {
        /* As many descriptors as a packet can have: the kernel would close those that do not fit,
         * on this thread. And the sender's credentials, which channel_discard asks for. */
        char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_FDS_MAX) + CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct iovec part = {message->data, sizeof message->data};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes};
    memset(&message->header, 0, sizeof message->header);
    message->type = NULL;
    message->length = 0;
    message->fd_count = 0;
    message->why = NULL;
    for (unsigned i = 0; i < PROTO_FDS_MAX; i++)
        message->fds[i] = -1;

    ssize_t length;
    do
        length = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | *flags);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return -errno;
    collect_fds(&header, message);
    message->length = (size_t)length;
    *flags = header.msg_flags;
    *controlled = header.msg_controllen > 0;
    return length;
}

static int receive_one(int fd, int flags, int self, int sender, struct channel_message *message)
{
    bool controlled;
    ssize_t length = packet_receive(fd, message, &flags, &controlled);
    if (length == -EAGAIN || length == -EWOULDBLOCK)
        return CHANNEL_EMPTY;
    /* A peer that closes its end with messages unread resets the connection: that is an end like
     * any other. */
    if (length == 0 || length == -ECONNRESET)
        return CHANNEL_CLOSED;
    if (length < 0)
        return (int)length;
    if (flags & MSG_TRUNC)
        message->why = MESSAGE_TEXT(protocol_long);
    else if ((flags & MSG_CTRUNC) || message->fd_count > PROTO_FDS_MAX)
        message->why = MESSAGE_TEXT(protocol_descriptors_max);
    else
        message->why = check_message(message, (size_t)length, self, sender);
    return message->why ? -EPROTO : 0;
}

int channel_receive_all(int fd, int self, int sender, struct channel_message *message)
{
    return receive_one(fd, 0, self, sender, message);
}

int channel_peek_all(int fd, int self, int sender, struct channel_message *message)
{
    return receive_one(fd, MSG_PEEK, self, sender, message);
}

void channel_drop(int fd, struct channel_message *message)
{
    int flags = MSG_DONTWAIT;
    bool controlled;
    packet_receive(fd, message, &flags, &controlled);
}

int channel_receive(int fd, int self, int sender, struct channel_message *message)
{
    int result = channel_receive_all(fd, self, sender, message);
    if (result != 0)
        channel_close_fds(message);
    return result;
}

int channel_discard(int fd, struct channel_message *message)
{
    /* An empty packet and the end look the same but for the credentials, which come with every
     * packet. */
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
    ssize_t length;
    bool controlled = false;
    do {
        int flags = MSG_DONTWAIT;
        length = packet_receive(fd, message, &flags, &controlled);
    } while (length == -ECONNRESET); /* reported once, before what the peer left */
    if (length < 0)
        return CHANNEL_EMPTY;
    return length > 0 || controlled ? 0 : CHANNEL_CLOSED;
}

bool channel_brings_fds(int fd)
{
    /* Descriptors and credentials are what a packet can have beside its bytes. Without room for
     * either, the kernel says that something was cut off. */
    int off = 0;
    char byte;
    struct iovec part = {&byte, sizeof byte};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof off);
    ssize_t length;
    do
        length = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT);
    while (length < 0 && errno == EINTR);
    return length >= 0 && (header.msg_flags & MSG_CTRUNC);
}

int channel_send(int fd, const struct channel_packet *packet)
{
    const struct proto_message *type = proto_message_find(packet->opcode);
    if (!type || packet->fd_count != type->fds || packet->tail_bytes > type->tail)
        return -EINVAL;
    struct proto_message_header header = {
        .bytes = (uint32_t)(sizeof header + type->bytes + packet->tail_bytes),
        .opcode = packet->opcode,
        .serial = packet->serial,
        .client = packet->client,
    };
    union {
        char bytes[CMSG_SPACE(sizeof(int) * PROTO_FDS_MAX)];
        struct cmsghdr align;
    } control;
    struct iovec parts[3] = {
        {&header, sizeof header},
        {(void *)(uintptr_t)packet->body, type->bytes},
        {(void *)(uintptr_t)packet->tail, packet->tail_bytes},
    };
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    if (packet->fd_count) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * packet->fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * packet->fd_count);
        memcpy(CMSG_DATA(c), packet->fds, sizeof(int) * packet->fd_count);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

struct channel_packet *channel_packet_copy(const struct channel_packet *packet)
{
    const struct proto_message *type = proto_message_find(packet->opcode);
    size_t fds = packet->fd_count * sizeof(int);
    struct {
        struct channel_packet packet;
        _Alignas(16) uint8_t rest[];
    } *copy = malloc(sizeof *copy + type->bytes + packet->tail_bytes + fds);
    if (!copy)
        return NULL;
    uint8_t *at = copy->rest;
    copy->packet = *packet;
    copy->packet.body = at;
    memcpy(at, packet->body ? packet->body : "", packet->body ? type->bytes : 0);
    at += type->bytes;
    copy->packet.fds = (const int *)(const void *)at;
    if (fds)
        memcpy(at, packet->fds, fds);
    at += fds;
    copy->packet.tail = at;
    if (packet->tail_bytes)
        memcpy(at, packet->tail, packet->tail_bytes);
    return &copy->packet;
}

int channel_send_waiting(int fd, const struct channel_packet *packet)
{
    for (;;) {
        int error = channel_send(fd, packet);
        if (error != -EAGAIN)
            return error;
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (poll(&room, 1, -1) < 0 && errno != EINTR)
            return -errno;
    }
}

uint32_t channel_old_hello(const struct channel_message *message)
{
    struct proto_hello_of_major_1 hello;
    if (message->length != sizeof hello)
        return 0;
    memcpy(&hello, message->data, sizeof hello);
    if (hello.bytes != sizeof hello || hello.opcode != PROTO_HELLO || hello.reserved ||
        hello.client || hello.major != 1)
        return 0;
    return hello.serial;
}

int channel_refuse_old_hello(int fd, uint32_t serial, const char *text)
{
    struct proto_failed_of_major_1 failed = {.bytes = sizeof failed,
                                             .opcode = PROTO_FAILED,
                                             .serial = serial,
                                             .error = PROTO_ERROR_PROTOCOL_VERSION};
    snprintf(failed.text, sizeof failed.text, "%s", text);
    return send(fd, &failed, sizeof failed, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

bool channel_is_old_refusal(const struct channel_message *message)
{
    struct proto_failed_of_major_1 failed;
    if (message->length != sizeof failed)
        return false;
    memcpy(&failed, message->data, sizeof failed);
    return failed.bytes == sizeof failed &&
           (failed.opcode == PROTO_FAILED || failed.opcode == PROTO_ENDED) && !failed.reserved &&
           !failed.client;
}
