/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session: the socket to the server. It carries one request and its reply at a time, and the
 * message with which the server ends the session.
 *
 * A session ends when the server says so ("ended"), closes the socket, or breaks the protocol.
 * From then on every call returns the error that ended it, at once. Any thread may call; the
 * requests of several threads go one after another.
 */
#ifndef GPUSHARE_CLIENT_SESSION_SESSION_H
#define GPUSHARE_CLIENT_SESSION_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/ipc/channel.h"

struct session {
    int fd; /* -1 when closed; blocking */
    uint64_t serial;
    char path[108];                           /* where the server was found */
    _Atomic uint32_t ended;                   /* the error that ended it, 0 while it lives */
    const struct proto_status_header *status; /* NULL before attach; holds the fault word */
    pthread_mutex_t lock;                     /* socket, serial, message, text */
    struct channel_message *message;
    char text[384]; /* the sentence that came with `ended`; written once, before it */
};

/* One request and where its reply goes. A member that is zero is not sent, or not expected. */
struct session_call {
    uint16_t request; /* opcode */
    uint16_t reply;   /* opcode; "failed" is always possible */
    const void *body; /* of the request, as long as the schema says */
    const void *tail;
    size_t tail_bytes;
    const int *fd;         /* a descriptor to pass; stays the caller's */
    void *reply_body;      /* gets the reply's fixed part */
    size_t reply_bytes;    /* its size, which must be the schema's */
    int *reply_fds;        /* gets the descriptors, which are the caller's then */
    unsigned reply_fd_max; /* how many the reply has by the schema */
    void **reply_tail;     /* gets a malloc'ed copy of the tail; NULL where it is empty */
    size_t *reply_tail_bytes;
};

/*
 * Connects to the first of two paths that a server listens on ("" ends the list) and
 * greets it. Returns GPUSHARE_SUCCESS and the server's welcome, or CONNECTION_FAILED,
 * PROTOCOL_VERSION, or the server's refusal.
 */
gpushare_error session_dial(struct session *session, const char *first, const char *second,
                            struct proto_welcome *welcome);

/* Sends the request and waits for the reply. Returns SUCCESS, the server's refusal, or the error
 * that ended the session. */
gpushare_error session_call(struct session *session, const struct session_call *call);

/*
 * Reads what the server sent unasked, without waiting. Returns false if the session has ended.
 * While another thread waits for a reply, that thread reads instead, and nothing is read here.
 */
bool session_alive(struct session *session);

/* The error that ended it, with its sentence set; looks at the socket first. SUCCESS while it
 * lives. */
gpushare_error session_ended(struct session *session);

/* Closes; idempotent. */
void session_close(struct session *session);

/* In a forked child, where other threads' locks are as they were: closes the descriptor alone. */
void session_abandon(struct session *session);

#endif
