/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_peer: one administrator's connection to the admin socket.
 *
 * It reads a line, has it carried out (admin.carry_out), and reads no further until the answer has
 * been taken. A request that needs an answer from elsewhere, mostly from a worker, is a struct
 * admin_work. The work outlives its peer, because every callback that it waits for comes in any
 * case. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_PEER_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>
#include <uv.h>

#include "common/list.h"
#include "server/supervisor/admin/request.h"
#include "server/supervisor/admin/socket.h"

struct settings;
struct supervisor;
struct admin_peer;

/* All administrators' connections. */
struct admin {
    uv_pipe_t listener;
    /* Answers the request, or begins work that will. It may close the peer, which is not freed
     * before control returns to the loop. */
    void (*carry_out)(struct admin_peer *peer, const struct admin_request *request);
    struct supervisor *supervisor;
    const struct settings *settings;
    struct admin_socket socket;
    struct list peer_list;
    unsigned alive;        /* number of: the listener, peers and work that have not ended */
    uv_pipe_t turned_away; /* takes a connection for which there is no memory */
    bool turning_away;     /* turned_away is open */
    bool turned_away_one;
    bool closing;
    bool holds;    /* answers wait for admin_send_held, which comes when what they say is kept */
    unsigned held; /* number of those that wait */
};

/* Must be the first member of the struct that it is the work of. */
struct admin_work {
    struct admin *admin;
    struct admin_peer *peer; /* NULL once answered, or when the peer has gone */
    size_t outstanding;      /* number of callbacks that are still to come */
    /* Answers the peer. Called once: when every callback has come, or when time is up (late). */
    void (*answer)(struct admin_work *work, struct admin_peer *peer, bool late);
    /* The peer has shut its sending side: it asks nothing more, and waits for the answer or has
     * gone. NULL: the peer counts as gone. */
    void (*hurry)(struct admin_work *work);
    /* The peer has gone before its answer. May be NULL; may lower outstanding. */
    void (*left)(struct admin_work *work);
    /* No callback is to come any more, and the peer has gone or is answered. */
    void (*free)(struct admin_work *work);
};

struct admin_peer {
    uv_pipe_t pipe;
    uv_timer_t timer; /* for an idle peer, or for the time limit of its work */
    uv_write_t write;
    struct admin *admin;
    struct list_link link; /* in admin->peer_list */
    struct admin_work *work;
    char *output;    /* the answer that is being written; or NULL */
    uv_buf_t answer; /* what is left of it to write */
    bool held;       /* it waits (admin->holds) */
    char *input;     /* ADMIN_LINE_MAX bytes */
    size_t used;
    uid_t uid;
    pid_t pid;
    unsigned handles;
    bool reading;
    bool timed;   /* the timer runs since the first byte of the line that is incomplete */
    bool ended;   /* the peer sends nothing more */
    bool last;    /* close the connection after the answer */
    bool closing; /* uv_close was called */
};

/* Makes a peer whose pipe is ready for uv_accept; admin_peer_serve or admin_peer_close must follow.
 * NULL: memory is short. */
struct admin_peer *admin_peer_new(struct admin *admin);

/* Sets uid and pid as the kernel reports them. False: the kernel does not report them. */
bool admin_peer_identify(struct admin_peer *peer);

/* Carries out the first line of the input; without a whole line, reads on. */
void admin_peer_serve(struct admin_peer *peer);

/* Writes the answer that waits. */
void admin_peer_send_held(struct admin_peer *peer);

/* Closes the connection; the loop frees the peer. Idempotent. */
void admin_peer_close(struct admin_peer *peer);

/* Send the answer to the present request, and take json over; NULL ends the connection.
 * admin_peer_pass sends a copy of a descriptor with it, which stays the caller's.
 * admin_peer_refuse sends an error number with its sentence. */
void admin_peer_answer(struct admin_peer *peer, json_t *json);
void admin_peer_pass(struct admin_peer *peer, json_t *json, int passed);
/* MESSAGE(name) and its arguments. */
void admin_peer_refuse(struct admin_peer *peer, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "uid 0 (pid 17)", for the log. Returns name. */
enum { ADMIN_NAME = 48 };
const char *admin_peer_name(const struct admin_peer *peer, char name[ADMIN_NAME]);

/* ---- work ---- */

/* Begins work for a peer. The caller has set answer and free, and left and hurry if it has any; the
 * rest is filled in here. */
void admin_peer_work_begin(struct admin_work *work, struct admin_peer *peer);

/* All questions have been asked, and outstanding counts them. Answers at once if there are none;
 * otherwise when all callbacks have come, at the latest after this time. */
void admin_peer_work_wait(struct admin_work *work, uint64_t milliseconds);

/* For work that takes long: reads on meanwhile, so that the peer's hanging up is noticed. */
void admin_peer_watch(struct admin_peer *peer);

/* One callback has come. The work may be freed by this call. */
void admin_peer_work_came(struct admin_work *work);

/* One thing that admin->alive counts has ended; after the last one admin is freed. */
void admin_peer_release(struct admin *admin);

#endif
