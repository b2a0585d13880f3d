/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_link: requests to one worker and their answers.
 *
 * Every request gets a serial of the link's own, greater than all before it, and a
 * callback that is called exactly once, with one of four outcomes (enum worker_outcome).
 * A worker that answers a request which it was not asked, or has answered already, has
 * broken the protocol: the link is lost.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_WORKER_LINK_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_WORKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/ipc/channel.h"
#include "server/supervisor/loop/send_queue.h"

enum worker_outcome {
    WORKER_ANSWERED,     /* with the message that answers such a request (proto_message.reply) */
    WORKER_REFUSED,      /* the worker said why, or sent a message that is no answer */
    WORKER_LOST,         /* the worker ended, or its link did */
    WORKER_SESSION_ENDED /* worker_link_cancel: the client of the request is taken down */
};

struct worker_answer {
    enum worker_outcome outcome;
    struct channel_message *message; /* of WORKER_ANSWERED; else NULL */
    uint32_t error;                  /* of the error table; 0 of WORKER_ANSWERED */
    const char *text;                /* a sentence that goes with the error; else "" */
};

/*
 * The end of a request. answer is the callee's only during the call; it takes
 * descriptors out with channel_take_fd, the link closes the rest. The callee may make
 * requests and may mark sessions to end; nothing that the link's caller holds (link,
 * device, session) is freed before control returns to the loop.
 */
typedef void worker_link_reply(void *context, const struct worker_answer *answer);

/* Called from the loop. Both may close the link: its memory is freed later, by the loop. */
struct worker_link_events {
    /* A message that answers nothing (serial 0). It is the callee's only during the call. */
    void (*notice)(void *context, struct channel_message *message);
    /* The worker hung up (why is NULL), or broke the protocol (a sentence). Close the link now. */
    void (*lost)(void *context, const char *why);
    void *context;
};

struct worker_request {
    uint16_t opcode;
    uint32_t client;  /* whom it is about; 0: the device */
    const void *body; /* of the opcode's type; may be NULL where that has no bytes */
    const void *tail;
    size_t tail_bytes;
    const int *fds; /* stay the caller's */
    unsigned fd_count;
};

struct worker_link;

/* Takes over fd (SOCK_SEQPACKET), on failure too. Returns 0 or -errno. */
int worker_link_open(struct worker_link **link, uv_loop_t *loop, int fd,
                     const struct worker_link_events *events);

/* The worker will send no more: `lost` follows from the loop, after what it has sent. */
void worker_link_finish(struct worker_link *link);

/* Ends every outstanding request with WORKER_LOST, closes. The pointer is dead then. NULL is
 * allowed. */
void worker_link_close(struct worker_link *link);

/*
 * Sends a request; reply may be NULL if the answer does not matter. Returns 0, or
 * -errno: the callback is not called then. A worker that is gone is no failure: `lost`
 * follows from the loop, after what the worker had sent, and ends the request with
 * WORKER_LOST.
 */
int worker_link_request(struct worker_link *link, const struct worker_request *request,
                        worker_link_reply *reply, void *context);

/* Ends the outstanding requests of one client with WORKER_SESSION_ENDED. Answers that come later
 * are dropped. */
void worker_link_cancel(struct worker_link *link, uint32_t client);

/* Requests without an answer so far. */
uint32_t worker_link_outstanding(const struct worker_link *link);

#endif
