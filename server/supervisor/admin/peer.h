/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_peer: one administrator's connection to the admin socket.
 *
 * It reads a line, has it carried out (admin.carry_out), and reads no further before
 * the answer has been taken. A request whose answer needs others, a worker mostly, is
 * a struct admin_work: it outlives its peer, because every callee calls back in any
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

/* Of the administrators' connections as a whole. */
struct admin {
    uv_pipe_t listener;
    /* Answers the request, or begins work that will. The peer is not freed before control returns
     * to the loop, but may have been closed. */
    void (*carry_out)(struct admin_peer *peer, const struct admin_request *request);
    struct supervisor *supervisor;
    const struct settings *settings;
    struct admin_socket socket;
    struct list peer_list;
    unsigned peers;
    unsigned alive;        /* the listener, peers and work that have not ended */
    uv_pipe_t turned_away; /* takes a connection for which there is no memory */
    bool turning_away;     /* that handle is open */
    bool turned_away_one;
    bool closing;
};

/* Stands first in what it is the work of. */
struct admin_work {
    struct admin *admin;
    struct admin_peer *peer; /* NULL once answered, or when the peer has gone */
    size_t outstanding;      /* callbacks that are still to come */
    /* Answers the peer, once: everything has come, or (late) time is up. */
    void (*answer)(struct admin_work *work, struct admin_peer *peer, bool late);
    /* The peer will ask nothing more, and waits (or has gone without a word). May be NULL: then it
     * counts as gone. */
    void (*hurry)(struct admin_work *work);
    /* The peer has gone before its answer. May be NULL; may lower outstanding. */
    void (*left)(struct admin_work *work);
    /* Nobody calls back any more, and the peer has gone. */
    void (*free)(struct admin_work *work);
};

struct admin_peer {
    uv_pipe_t pipe;
    uv_timer_t timer; /* idle, or the work's */
    uv_write_t write;
    struct admin *admin;
    struct list_link link; /* in admin->peer_list */
    struct admin_work *work;
    char *output; /* being written */
    char *input;  /* ADMIN_LINE_MAX bytes */
    size_t used;
    uid_t uid;
    pid_t pid;
    unsigned handles;
    bool reading;
    bool ended;   /* it sends nothing more */
    bool last;    /* close once the answer is out */
    bool closing; /* uv_close was called */
};

/* NULL: memory is short. The pipe is open for uv_accept; serve or close it after that. */
struct admin_peer *admin_peer_new(struct admin *admin);

/* Fills in uid and pid, as the kernel reports them. False: it does not. */
bool admin_peer_identify(struct admin_peer *peer);

/* Carries out the first line that stands in the input, or reads on. */
void admin_peer_serve(struct admin_peer *peer);

/* Idempotent; frees itself from the loop. */
void admin_peer_close(struct admin_peer *peer);

/* Sends the answer to the present request; takes json over, and ends the connection for NULL. */
void admin_peer_answer(struct admin_peer *peer, json_t *json);
/* The same with a copy of a descriptor, which stays the caller's. */
void admin_peer_pass(struct admin_peer *peer, json_t *json, int passed);
/* MESSAGE(name) and its arguments. */
void admin_peer_refuse(struct admin_peer *peer, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "uid 0 (pid 17)", for the log. Returns name. */
enum { ADMIN_NAME = 48 };
const char *admin_peer_name(const struct admin_peer *peer, char name[ADMIN_NAME]);

/* ---- work ---- */

/* answer, free and left are set; the rest is filled here. */
void admin_work_begin(struct admin_work *work, struct admin_peer *peer);

/* All questions have been asked (outstanding counts them): answers now, or within this time. */
void admin_work_wait(struct admin_work *work, uint64_t milliseconds);

/* Its work takes long: reads on meanwhile, so that it is seen when the peer hangs up. */
void admin_peer_watch(struct admin_peer *peer);

/* One callback came; work may be freed by this. */
void admin_work_came(struct admin_work *work);

/* One of what admin->alive counts has ended; frees admin after the last. */
void admin_release(struct admin *admin);

#endif
