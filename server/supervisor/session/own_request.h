/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_own_request: what clients request for themselves, where nobody else says what they may
 * have. It is lowered to an equal part of what there is among the accounts that are there
 * (account/equal_part.h), and rises again up to what was asked for.
 *
 * Requests are lowered before the client of another account attaches, so that its own finds room. A
 * second after a client has left, and after a reload, all of them are set anew. So a visitor does
 * not make them rise and fall all the time. A request of memory below what its client uses takes
 * nothing away.
 *
 * Multiprocessors and time are the worker's, device memory is the device's: its clients share
 * them. Pinned memory is the server's. A lowered request that is less than one SM group is none.
 *
 * Clients whose requests are lowered are told, and again when they have asked the server for
 * something since. The log says once that requests are lowered, and once that none is any more.
 * Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_OWN_REQUEST_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_OWN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "common/limits/allowance.h"
#include "server/supervisor/account/client_accounts.h"

struct server;
struct session;

/* A part of struct server. */
struct own_requests {
    uv_timer_t timer; /* until all are set anew */
    bool lowered;     /* some are, as the log says */
    bool waits;       /* a client waits to attach until another one has */
    bool look;        /* it may go on now */
};

/* Makes the server's part ready, after its loop. session_own_requests_close must follow. */
void session_own_requests_open(struct server *server);
/* No client is attached or attaches any more. The loop closes the timer later. */
void session_own_requests_close(struct server *server);

/* A client as it requests, or would under another configuration. */
struct own_request {
    struct session *session;
    struct client_accounts accounts;
    uint64_t asked[RESOURCES];    /* by itself; 0: nothing */
    uint64_t reserved[RESOURCES]; /* what others requested for it */
    uint64_t granted[RESOURCES];  /* set by session_own_requests_divide, of what it asked for */
};

/* Divides what there is on all devices among these clients. Returns 0 or -ENOMEM. */
int session_own_requests_divide(const struct server *server, struct own_request *requests,
                                size_t count);

/* Whether what an attached client asks for itself of this resource is its request there: nobody
 * else said one since. */
bool session_own_request_counts(const struct session *session, enum resource resource);

/*
 * The client is about to attach: it has its device, its accounts and a grant. Lowers what it
 * requests for itself, and what others do. Returns 0; 1: it has to wait, because a client that is
 * being attached would have to give way; nothing has changed, and own_requests.look says when to
 * come again. Or -ENOMEM.
 */
int session_own_request_begin(struct session *session);

/* The client has attached: it is told if it has less than it asked for. */
void session_own_request_attached(struct session *session);

/* The client has left its device, or did not come to attach. */
void session_own_request_end(struct session *session);

/* Sets all requests of clients' own anew in a second. */
void session_own_requests_settle_soon(struct server *server);

/* Sets all requests of clients' own anew: another configuration is in force. */
void session_own_requests_settle(struct server *server);

#endif
