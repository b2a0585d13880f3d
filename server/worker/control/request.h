/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * request: one message of the supervisor about a client, as its handler sees it, and the ways to
 * answer it. Control thread. Functions return 0, or -errno if no answer can be sent, except where
 * they say otherwise.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_REQUEST_H
#define GPUSHARE_SERVER_WORKER_CONTROL_REQUEST_H

#include "common/ipc/channel.h"
#include "server/worker/code/loader.h"
#include "server/worker/worker.h"

struct request {
    struct worker *worker;
    struct client *client; /* NULL: the message is about no client, or about an unknown one */
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

/* For whom the request is, to those who order calls of the driver. A request about no client is
 * nobody's, at the lowest priority. */
struct quiet_caller request_caller(const struct request *request);
struct quiet_caller request_caller_of(const struct client *client);

/* Hands a copy of the job to a loader, with the request's client and serial; the request is
 * answered when the job is collected. Returns 1. Otherwise the request was refused for lack of
 * memory, and the caller still owns the job's descriptor and module; then returns 0 or -errno. */
int request_submit(const struct request *request, struct loader *loader,
                   const struct loader_job *wanted);

#endif
