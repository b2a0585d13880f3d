/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * channel: messages with file descriptors over a SOCK_SEQPACKET socket.
 *
 * A message that channel_receive returned is a private copy, and it has passed every check that
 * needs no state: length, opcode, direction, number of descriptors, ranges of fields, texts,
 * reserved fields. The caller checks what depends on state: object, permission and quota.
 *
 * Any thread may call; one channel_message belongs to one thread at a time. Two threads that
 * receive from one socket each get whole messages.
 */
#ifndef GPUSHARE_COMMON_IPC_CHANNEL_H
#define GPUSHARE_COMMON_IPC_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/* Number of descriptors that the kernel lets one packet carry (SCM_MAX_FD). */
enum { CHANNEL_FDS_MAX = 253 };

struct channel_message {
    struct proto_message_header header;
    const struct proto_message *type;
    size_t length;       /* bytes of the packet */
    const void *body;    /* the fixed part, type->bytes long, aligned to 8; points into data */
    const uint8_t *tail; /* the rest, tail_bytes long; points into data */
    size_t tail_bytes;
    int fds[CHANNEL_FDS_MAX]; /* -1: no descriptor; the caller closes or takes the others */
    unsigned fd_count;
    /* after -EPROTO: the fault of the message, as a static sentence; else NULL */
    const char *why;
    _Alignas(16) uint8_t data[PROTO_MESSAGE_MAX];
};

enum { CHANNEL_EMPTY = 1, CHANNEL_CLOSED = 2 };

/*
 * Receives one message. self: the role of the caller (PROTO_PEER_*). sender: the role of the peer
 * at the other end. The call blocks if the socket does.
 *
 * Returns 0; CHANNEL_EMPTY if a non-blocking socket has no message; CHANNEL_CLOSED if the peer has
 * closed it; or -errno. -EPROTO means that the message broke the protocol. Then message->why says
 * how, its descriptors are closed, and its header and length hold as much as could be read, so that
 * a refusal can repeat the serial.
 */
int channel_receive(int fd, int self, int sender, struct channel_message *message);

/*
 * As channel_receive, but a message that broke the protocol keeps its descriptors, all that came
 * with it, and so does an empty packet, which is reported as CHANNEL_CLOSED. The caller closes or
 * takes them after every result. For a receiver that must not close what a peer has sent, since
 * that may sleep.
 */
int channel_receive_all(int fd, int self, int sender, struct channel_message *message);

/* The same, and the message stays in the socket, with its descriptors; *message has duplicates of
 * these. */
int channel_peek_all(int fd, int self, int sender, struct channel_message *message);

/* Takes the message that was peeked at out of the socket. *message is good for its descriptors
 * alone, which are the caller's. Does not block. */
void channel_drop(int fd, struct channel_message *message);

/* Receives one packet and checks nothing: the message is good for its descriptors alone, which are
 * the caller's. Does not block. Returns 0; CHANNEL_CLOSED if the peer has closed the socket, or the
 * receiving side is shut and empty; or CHANNEL_EMPTY. */
int channel_discard(int fd, struct channel_message *message);

/* Whether the packet that is next has descriptors. It stays in the socket, and they with it. Does
 * not block. */
bool channel_brings_fds(int fd);

/* A message that is to be sent. Its pointers' targets and its descriptors stay the caller's. */
struct channel_packet {
    uint16_t opcode;
    uint32_t client;  /* that the message is about; 0 for none */
    uint64_t serial;  /* of the request, or of the one that is answered; 0 for none */
    const void *body; /* as long as the schema says for the opcode; NULL if that is 0 */
    const void *tail; /* tail_bytes long; NULL without a tail */
    size_t tail_bytes;
    const int *fds; /* fd_count descriptors; NULL for none */
    unsigned fd_count;
};

/* Returns a copy of a packet in one piece of memory, which the caller frees; NULL: no memory. Its
 * descriptors' numbers are copied, and stay the owner's of the descriptors. The opcode must be
 * known. */
struct channel_packet *channel_packet_copy(const struct channel_packet *packet);

/*
 * Sends one message. Returns 0 or -errno: -EINVAL if the opcode is unknown, or fd_count or
 * tail_bytes is not what it allows; -EAGAIN if a non-blocking socket is full; -EPIPE if the peer is
 * gone. SIGPIPE is never raised.
 */
int channel_send(int fd, const struct channel_packet *packet);

/* As channel_send, but waits for room where the socket is full. */
int channel_send_waiting(int fd, const struct channel_packet *packet);

/*
 * Peers of major version 1 have another header, so channel_receive refuses their messages with
 * -EPROTO. Pass such a message here. Returns its serial if it is the hello of a client of version
 * 1, else 0.
 */
uint32_t channel_old_hello(const struct channel_message *message);

/* Answers such a hello with PROTO_ERROR_PROTOCOL_VERSION in the form of major version 1. text:
 * one sentence; it is cut to the size of the field. Returns 0 or -errno. */
int channel_refuse_old_hello(int fd, uint32_t serial, const char *text);

/* Whether this message is the form in which a server of major version 1 refuses our hello.
 * message: one for which channel_receive returned -EPROTO. */
bool channel_is_old_refusal(const struct channel_message *message);

/* Closes the descriptors that the message still holds, and sets their slots to -1. Idempotent. */
void channel_close_fds(struct channel_message *message);

/*
 * Moves a descriptor above the three standard ones and returns its new number; the old number is
 * closed. A program that was started without standard error would otherwise write its error
 * messages into this file.
 *
 * Returns the descriptor unchanged if it is above already, is negative, or no descriptor is free.
 * channel_receive has done this to the descriptors of its messages.
 */
int channel_above_standard(int fd);

/* Takes descriptor i out of the message. The caller owns it from then on. Returns -1 if the
 * message has no such descriptor, or it was taken before. */
int channel_take_fd(struct channel_message *message, unsigned i);

#endif
