/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * request: one message of the supervisor about a client, as its handler sees it, and
 * the ways to answer it. Control thread; what returns int is 0, or -errno if no answer
 * can be sent, but for what says otherwise.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_REQUEST_H
#define GPUSHARE_SERVER_WORKER_CONTROL_REQUEST_H

#include "common/ipc/channel.h"
#include "server/worker/code/loader.h"
#include "server/worker/worker.h"

struct request {
    struct worker *worker;
    struct client *client; /* NULL where it is about none that is there */
    struct channel_message *message;
    const void *body;
    uint64_t serial;
    uint32_t number;
};

/* As error_set does: a number and a sentence, often MESSAGE(name) with its arguments. */
int request_refuse(const struct request *request, uint32_t error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* With what the operation itself said. */
int request_refuse_why(const struct request *request, const struct error *why);
int request_answer(const struct request *request, uint16_t opcode, const void *body);
int request_done(const struct request *request);

/* Hands a copy of the job to a loader, which answers. 1; else it was refused, and what the job
 * holds is the caller's still. */
int request_submit(const struct request *request, struct loader *loader,
                   const struct loader_job *wanted);

#endif
