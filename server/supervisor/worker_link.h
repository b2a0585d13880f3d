/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_link: requests to one worker and their answers.
 *
 * Every request gets a serial of the link's own and a callback that is called
 * exactly once: with the answer, or with NULL when the link is closed or the
 * client's requests are cancelled. A slot is found from the serial at once, and a
 * slot used again has another serial, so a late answer can't meet a stranger.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_LINK_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/channel.h"
#include "server/supervisor/outbox.h"

/*
 * answer: NULL if there will be none. It is the caller's only during the call; take
 * descriptors out with channel_take_fd, the link closes the rest.
 */
typedef void worker_link_reply(void *context, struct channel_message *answer);

struct worker_link_events {
    /* A message that answers nothing (serial 0). As above. */
    void (*notice)(void *context, struct channel_message *message);
    /* The worker hung up (why is NULL), or broke the protocol (a sentence). Close the link now. */
    void (*lost)(void *context, const char *why);
    void *context;
};

struct worker_link;

/* Takes over fd (SOCK_SEQPACKET), on failure too. Returns 0 or -errno. */
int worker_link_open(struct worker_link **link, uv_loop_t *loop, int fd,
                     const struct worker_link_events *events);

/* The worker will send no more: `lost` follows from the loop, after what it has sent. */
void worker_link_finish(struct worker_link *link);

/* Calls every outstanding callback with NULL, closes. The pointer is dead then. NULL is allowed. */
void worker_link_close(struct worker_link *link);

/*
 * Sends a request; reply may be NULL if the answer does not matter. fds stay the
 * caller's. Returns 0, or -errno: the callback is not called then; if the link is
 * of no more use, `lost` follows from the loop.
 */
int worker_link_request(struct worker_link *link, uint16_t opcode, uint32_t client,
                        const void *body, const void *tail, size_t tail_bytes, const int *fds,
                        unsigned fd_count, worker_link_reply *reply, void *context);

/* Calls the outstanding callbacks of one client with NULL. Later answers are dropped. */
void worker_link_cancel(struct worker_link *link, uint32_t client);

/* Requests without an answer so far. */
uint32_t worker_link_outstanding(const struct worker_link *link);

#endif
