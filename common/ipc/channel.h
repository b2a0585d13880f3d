/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * channel: messages with file descriptors over a SOCK_SEQPACKET socket.
 *
 * A received message has passed every check that needs no state: length, opcode,
 * direction, number of descriptors, field ranges, texts, reserved fields. It is a
 * private copy. The caller checks the rest: object, permission and quota.
 */
#ifndef GPUSHARE_COMMON_CHANNEL_H
#define GPUSHARE_COMMON_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

struct channel_message {
    struct proto_message_header header;
    const struct proto_message *type;
    size_t length;       /* of the packet */
    const void *body;    /* type->bytes long, aligned to 8 */
    const uint8_t *tail; /* tail_bytes long */
    size_t tail_bytes;
    int fds[PROTO_FDS_MAX]; /* -1 where none; the caller closes or takes them */
    unsigned fd_count;
    const char *why; /* static sentence, set when channel_receive returns -EPROTO */
    _Alignas(16) uint8_t data[PROTO_MESSAGE_MAX];
};

enum { CHANNEL_EMPTY = 1, CHANNEL_CLOSED = 2 };

/*
 * Receives one message. self: which peer the caller is (PROTO_PEER_*); sender: which
 * one is at the other end. Blocks or not as the socket does.
 * Returns 0; CHANNEL_EMPTY (non-blocking, nothing there); CHANNEL_CLOSED;
 * -EPROTO with message->why (descriptors that came are closed; header and length are
 * filled as far as they were read, so that a refusal can carry the serial); or another
 * -errno.
 */
int channel_receive(int fd, int self, int sender, struct channel_message *message);

/*
 * Sends one message of the given opcode; its fixed size comes from the schema.
 * fds stay the caller's. Returns 0, or -errno: -EAGAIN where the socket is
 * non-blocking and full, -EPIPE where the peer is gone (never a SIGPIPE).
 */
int channel_send(int fd, uint16_t opcode, uint64_t serial, uint32_t client, const void *body,
                 const void *tail, size_t tail_bytes, const int *fds, unsigned fd_count);

/*
 * Peers of major version 1 have another header, so channel_receive refuses their messages. The
 * hello of such a client: its serial, else 0. Of a message for which channel_receive returned
 * -EPROTO.
 */
uint32_t channel_old_hello(const struct channel_message *message);

/* Answers such a hello as major version 1 did, with PROTO_ERROR_PROTOCOL_VERSION. 0 or -errno. */
int channel_refuse_old_hello(int fd, uint32_t serial, const char *text);

/* Whether the message, for which channel_receive returned -EPROTO, is how a server of major version
 * 1 refuses our hello. */
bool channel_is_old_refusal(const struct channel_message *message);

/* channel_send of "failed": error and one formatted sentence. */
int channel_send_failed(int fd, uint64_t serial, uint32_t client, uint32_t error,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Closes what a message still holds and sets the slots to -1. */
void channel_close_fds(struct channel_message *message);

/*
 * Takes a new descriptor over and returns the same file's above the three standard ones: a program
 * that was started without standard error would else write its errors into it. Where there is no
 * room, the descriptor as it was. Those that are received have been through this.
 */
int channel_above_standard(int fd);

/* Takes descriptor i out of the message; the caller owns it then. */
int channel_take_fd(struct channel_message *message, unsigned i);

#endif
