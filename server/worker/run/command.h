/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * command: one descriptor of a ring, checked against its client's tables and then handed to the
 * driver.
 *
 * The caller passes a private copy of the descriptor. A value that an honest client library can't
 * have written is a violation: neither this command nor any later one is carried out.
 *
 * Submitter thread, under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_COMMAND_H
#define GPUSHARE_SERVER_WORKER_RUN_COMMAND_H

#include "common/ipc/ring.h"
#include "server/worker/client/client.h"
#include "server/worker/device/context_loss.h"
#include "server/worker/run/batch_ends.h"

enum {
    COMMAND_BLOCKED = 1,   /* stays at the head: stream->blocked_on says what for */
    COMMAND_VIOLATION = 2, /* client->shared.violation says which */
    COMMAND_FATAL = 3,     /* the device context is lost: command->fatal, command->loss */
    COMMAND_FULL = 4,      /* the hardware queue has no room: submitting would block */
};

/* Entries that a command uses at most (a wait for three streams, whose events may stand in the same
 * queue), and what stands around a batch: two timing events and the timeline's two writes. */
enum { COMMAND_EVENTS_MAX = 3, COMMAND_ENTRIES_MAX = 6, COMMAND_BATCH_ENTRIES = 4 };

/* Pieces of constants that one copy or fill writes at most: with the command itself they are as
 * many entries as any command uses. */
enum { COMMAND_TWINS_MAX = COMMAND_ENTRIES_MAX - 1 };

/* Memory and events that commands need to be carried out; the submitter has one. */
struct command {
    const struct cuda_driver *cuda;
    struct meter *meter;
    struct batch_ends *ends; /* NULL: the device writes timelines */
    struct stream_pool *pool;
    cuda_event order[16]; /* for waits between CUstreams, used one after the other */
    uint32_t order_next;
    uint32_t weight;  /* of large copies within a visit, in commands; the caller resets it */
    uint32_t entries; /* of hardware queues that were used; the caller resets */
    bool weighs;      /* the caller's: clients' widths are wanted (launch_width.h) */
    cuda_result fatal;
    enum context_loss loss;
    _Alignas(64) uint8_t parameters[PROTO_PARAMETERS_MAX + 4];
};

/* Makes the events; the calling thread has the context. Returns the driver's result; after a
 * failure nothing is left open. */
cuda_result command_open(struct command *command, const struct gpu *gpu, struct meter *meter,
                         struct stream_pool *pool);
void command_close(struct command *command);

/* One of the events for an order that the caller sets up at once: the one whose last use lies
 * longest back. */
cuda_event command_event(struct command *command);

/* Whether a descriptor, well formed or not, asks to wait for other streams. */
bool command_is_wait(const struct ring_descriptor *descriptor);

/*
 * Whether a descriptor of a stream that is bound to a CUstream can be carried out now: a wait whose
 * time has not come can't. Returns 0 or one of the values above, but COMMAND_FATAL. The driver is
 * asked nothing, so the command need not be noted before.
 */
int command_look(struct command *command, struct client_stream *stream,
                 const struct ring_descriptor *descriptor);

/*
 * Carries out a descriptor that command_look has just let through. Returns 0 if the command takes
 * its place on the timeline; a failure of the driver that is not fatal is then reported in the
 * stream's status. Else returns one of the values above.
 */
int command_run(struct command *command, struct client_stream *stream,
                const struct ring_descriptor *descriptor);

/* Sees to it that the stream's timeline value is written when all work so far is done. Returns 0 or
 * COMMAND_FATAL. */
int command_complete(struct command *command, struct client_stream *stream);

#endif
