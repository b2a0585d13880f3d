/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_requests: the requests that one worker has been sent and has not answered, by serial.
 *
 * Serials grow by one from 1 on, over 64 bits, so no serial is used twice. A request whose client
 * has ended is cancelled: nobody waits for it any more, and its row stays until the answer comes
 * or the worker has said that it has nothing of that client left. So an answer that finds no row
 * is an answer to a request that was never made, or a second one.
 *
 * A row is found by its serial each time: any addition moves the rows. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_WORKER_REQUESTS_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_WORKER_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct worker_answer;

struct worker_request_row {
    uint64_t serial;
    uint32_t client; /* 0: it is about none */
    uint16_t opcode;
    bool answered;  /* the row is of no more use */
    bool cancelled; /* its callback was called */
    void (*reply)(void *context, const struct worker_answer *answer); /* may be NULL */
    void *context;
};

/* All zero: empty. */
struct worker_requests {
    struct worker_request_row *rows; /* in order of serial */
    uint32_t count, room;
    uint32_t kept;        /* rows that have not been answered */
    uint32_t outstanding; /* of these, those that are not cancelled */
    uint64_t last;        /* serial */
};

/* Frees the memory; what is in it is forgotten. */
void worker_requests_close(struct worker_requests *requests);

/* Makes room for one more, which worker_requests_add then never lacks. 0; -ENOMEM; -ENOBUFS: there
 * are as many as there may be. */
int worker_requests_reserve(struct worker_requests *requests);

/* The serial that the next addition gets. */
uint64_t worker_requests_next(const struct worker_requests *requests);

/* Adds a row; its serial is filled in here. */
void worker_requests_add(struct worker_requests *requests, struct worker_request_row row);

/* The row of this serial that has not been answered, or NULL. */
struct worker_request_row *worker_requests_find(struct worker_requests *requests, uint64_t serial);

/* The first row with a greater serial that has not been answered, or NULL; 0 finds the oldest. */
struct worker_request_row *worker_requests_after(struct worker_requests *requests, uint64_t serial);

/* Its answer has come, or will not come. */
void worker_requests_remove(struct worker_requests *requests, struct worker_request_row *row);

/* Nobody waits for the answer any more. */
void worker_requests_cancel(struct worker_requests *requests, struct worker_request_row *row);

/* The worker has nothing of this client left: no cancelled request of it will be answered. */
void worker_requests_forget(struct worker_requests *requests, uint32_t client);

#endif
