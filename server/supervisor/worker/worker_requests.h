/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_requests: the requests that one worker has been sent and has not answered, by serial.
 *
 * Serials count from 1 over 64 bits, so no serial is used twice. When a client ends, its requests
 * are cancelled: nobody waits for their answers any more. A cancelled row stays until the answer
 * comes, or until the worker has said that it has nothing of that client left. So an answer without
 * a row answers a request that was never made, or answers one twice.
 *
 * An addition may move the rows, so a row is found by its serial each time. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_WORKER_REQUESTS_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_WORKER_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct channel_message;
struct channel_packet;

enum worker_outcome {
    WORKER_ANSWERED,     /* the worker sent the answer of such a request (proto_message.reply) */
    WORKER_REFUSED,      /* the worker said why, or sent a message that is no answer */
    WORKER_LOST,         /* the worker or its link ended before the answer */
    WORKER_SESSION_ENDED /* worker_link_cancel: the request's client is taken down */
};

struct worker_answer {
    enum worker_outcome outcome;
    struct channel_message *message; /* the answer of WORKER_ANSWERED; else NULL */
    uint32_t error;                  /* 0 for WORKER_ANSWERED; else an error number */
    const char *text;                /* "" for WORKER_ANSWERED; else a sentence */
};

/* The answers to requests that no worker answers. */
extern const struct worker_answer worker_answer_lost, worker_answer_session_ended;

struct worker_request_row {
    uint64_t serial;
    uint32_t client; /* 0: the request is about no client */
    uint16_t opcode;
    bool answered;  /* the row is of no more use */
    bool cancelled; /* reply was called */
    void (*reply)(void *context, const struct worker_answer *answer); /* may be NULL */
    void *context;
    struct channel_packet *packet; /* to be sent to another worker; the row's own; NULL: never */
};

/* All zero: no requests. */
struct worker_requests {
    struct worker_request_row *rows; /* in order of serial */
    uint32_t count, room;
    uint32_t kept;        /* rows that have not been answered */
    uint32_t outstanding; /* of these: rows that are not cancelled */
    uint64_t last;        /* the latest serial */
};

/* Frees the rows without calling their replies. */
void worker_requests_close(struct worker_requests *requests);

/* Makes room for one more row, so that worker_requests_add can't fail. Returns 0; -ENOMEM; -ENOBUFS
 * if there are as many rows as there may be. */
int worker_requests_reserve(struct worker_requests *requests);

/* The serial that the next addition gets. */
uint64_t worker_requests_next(const struct worker_requests *requests);

/* Adds a row after worker_requests_reserve; fills in its serial. */
void worker_requests_add(struct worker_requests *requests, struct worker_request_row row);

/* The row with this serial that has not been answered, or NULL. */
struct worker_request_row *worker_requests_find(struct worker_requests *requests, uint64_t serial);

/* The first row with a greater serial that has not been answered, or NULL. 0 finds the oldest. */
struct worker_request_row *worker_requests_after(struct worker_requests *requests, uint64_t serial);

/* The row's answer has come, or will not come: the row goes. */
void worker_requests_remove(struct worker_requests *requests, struct worker_request_row *row);

/* Answers a request: the row goes, and its reply, if it has one, is called with *answer. The row
 * goes first, since the reply may make another request. */
void worker_requests_end(struct worker_requests *requests, struct worker_request_row *row,
                         const struct worker_answer *answer);

/* Nobody waits for the row's answer any more. Forgets the row's reply, without calling it. */
void worker_requests_cancel(struct worker_requests *requests, struct worker_request_row *row);

/* The worker has nothing of this client left: its cancelled requests will not be answered, and
 * their rows go. */
void worker_requests_forget(struct worker_requests *requests, uint32_t client);

#endif
