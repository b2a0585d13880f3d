/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session: the socket to the server. It carries requests and their replies, and the message with
 * which the server ends the session.
 *
 * Any thread may call. Requests of several threads are under way at the same time: a thread sends
 * its request and waits for the reply with its serial (client/session/waiter.h), and the server
 * may answer in any order. The library has no thread of its own. One of the waiting threads reads
 * the socket, for all of them; when it has its own reply, it leaves the reading to another one.
 *
 * The server carries out a thread's requests in the order of its calls, since each call waits for
 * its reply. Between threads nothing is promised but this: what one thread asks for after another
 * thread's call has returned comes later.
 *
 * A session ends when the server says so ("ended"), closes the socket, or breaks the protocol, for
 * example by a reply that nobody waits for. Every call that waits then returns the error that
 * ended it, and every later call does so at once.
 *
 * No call is a point of cancellation (pthread_cancel).
 *
 * A forked child has no session: their sockets are closed in it, whatever they are doing. It must
 * not call the functions below with one of its parent's.
 */
#ifndef GPUSHARE_CLIENT_SESSION_SESSION_H
#define GPUSHARE_CLIENT_SESSION_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/limits/limits.h"
#include "common/ipc/channel.h"
#include "common/list.h"

struct session {
    int fd; /* -1 when closed; blocking. In a forked child it is closed, and only its number stands
               here. */
    struct list_link link;                    /* of those that have a socket */
    char path[108];                           /* where the server was found */
    _Atomic uint32_t ended;                   /* the error that ended it, 0 while it lives */
    const struct proto_status_header *status; /* NULL before attach; holds the fault word */
    /* Held while a request is sent, because serials must grow. Taken before `lock`. */
    pthread_mutex_t sending;
    uint64_t serial; /* of the latest request; guarded by `sending` */
    /* Guards the members below. Never held while the socket is read or written. */
    pthread_mutex_t lock;
    struct list waiters; /* of struct waiter */
    unsigned requests;   /* waiters that have sent a request: PROTO_REQUESTS_MAX at most */
    pthread_cond_t room; /* there are fewer, or the session has ended */
    bool reading;        /* a thread reads the socket */
    struct channel_message *message; /* the reading thread's alone */
    char text[384];                  /* the sentence of that error; written once, before `ended` */
    /* Gets what the server tells without being asked, in the order in which it came, on the thread
     * that reads the socket, without a lock. NULL: nobody. Set before attaching. */
    gpushare_warn notice;
    void *notice_context;
};

/* One request, and where its reply goes. A member that is zero is not sent, or not expected. */
struct session_call {
    uint16_t request; /* opcode */
    uint16_t reply;   /* opcode; the server may also answer "failed" */
    const void *body; /* the request's fixed part, as long as the schema says */
    const void *tail;
    size_t tail_bytes;
    const int *fd;         /* a descriptor to pass; stays the caller's */
    void *reply_body;      /* gets the reply's fixed part */
    size_t reply_bytes;    /* bytes of reply_body, which must be the schema's */
    int *reply_fds;        /* gets the descriptors; the caller owns them then */
    unsigned reply_fd_max; /* number of descriptors that the schema gives to the reply */
    void **reply_tail;     /* gets a malloc'ed copy of the tail; NULL if it is empty */
    size_t *reply_tail_bytes;
};

/* Where a server's socket may be. */
struct session_address {
    char paths[2][LIMITS_SOCKET_MAX + 1]; /* tried in this order; the second may be "", for none */
    const char *from; /* what names the only path, for refusals; NULL: nothing does. Static. */
};

/*
 * Connects to the first path on which a server listens, and says hello. *welcome is the server's
 * welcome, on success. Returns SUCCESS, CONNECTION_FAILED, PROTOCOL_VERSION, or the server's
 * refusal.
 */
gpushare_error session_dial(struct session *session, const struct session_address *address,
                            struct proto_welcome *welcome);

/* Sends the request and waits for the reply. It waits first while PROTO_REQUESTS_MAX requests are
 * under way. Returns SUCCESS, the server's refusal, or the error that ended the session. */
gpushare_error session_call(struct session *session, const struct session_call *call);

/*
 * Reads messages that the server sent without a request, and does not wait for any. Returns false
 * if the session has ended. If another thread waits for a reply, that thread reads such messages,
 * and this call reads nothing.
 */
bool session_alive(struct session *session);

/* Returns the error that ended the session, with its sentence set, or SUCCESS while it lives. It
 * looks at the socket first, and does not wait for replies to other threads' requests. */
gpushare_error session_ended(struct session *session);

/* Ends the session from this side, with error CONNECTION_LOST. Threads in calls return. */
void session_give_up(struct session *session);

/* Closes the session. No other thread is in a call. Idempotent. */
void session_close(struct session *session);

#endif
