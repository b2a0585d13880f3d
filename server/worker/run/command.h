/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * command: one descriptor of a ring: checked against its client's tables, then
 * handed to the driver.
 *
 * The descriptor is a private copy. A value that an honest client library can't have
 * written is a violation: nothing of it is carried out, and nothing after it.
 *
 * Submitter thread, under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_COMMAND_H
#define GPUSHARE_SERVER_WORKER_RUN_COMMAND_H

#include "common/ipc/ring.h"
#include "server/worker/client/client.h"

enum {
    COMMAND_BLOCKED = 1,   /* stays at the head: stream->hold says what for */
    COMMAND_VIOLATION = 2, /* client->shared.violation says which */
    COMMAND_FATAL = 3,     /* the device context is lost: command->fatal, command->during */
};

/* The memory and events that carrying out needs; one a submitter. */
struct command {
    const struct cuda_driver *cuda;
    struct account *account;
    cuda_event order[16]; /* for waits between CUstreams, in turn */
    uint32_t order_next;
    uint32_t weight; /* added for large copies, in commands; the submitter resets it */
    cuda_result fatal;
    const char *during;
    _Alignas(64) uint8_t parameters[PROTO_PARAMETERS_MAX + 4];
};

/* Makes the events. Returns the driver's result. */
cuda_result command_open(struct command *command, const struct gpu *device,
                         struct account *account);
void command_close(struct command *command);

/* The event whose last use lies longest back: enough for an order that is set up at once. */
cuda_event command_event(struct command *command);

/*
 * Carries out a descriptor of a bound stream. 0: it takes its place on the
 * timeline (its failure, if any, was reported in the stream's status).
 */
int command_run(struct command *command, struct client_stream *stream,
                const struct ring_descriptor *descriptor);

/* Has the device write the stream's value when all so far is done. 0 or COMMAND_FATAL. */
int command_complete(struct command *command, struct client_stream *stream);

#endif
