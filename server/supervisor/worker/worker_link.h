/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker_link: requests to one worker and their answers.
 *
 * Each request gets a serial, which grows by one, and a callback. The callback is called exactly
 * once, with one of four outcomes (enum worker_outcome). A worker that answers a request which does
 * not exist, or which it has answered already, has broken the protocol: the link is lost. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_WORKER_LINK_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_WORKER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "common/ipc/channel.h"
#include "server/supervisor/worker/worker_requests.h"
#include "server/supervisor/loop/send_queue.h"

/*
 * The end of a request. *answer belongs to the callee only during the call. The callee takes
 * descriptors out with channel_take_fd; the link closes the others. The callee may make requests
 * and may mark sessions to end. Link, device and session are not freed before control returns to
 * the loop, so they stay valid for the link's caller.
 */
typedef void worker_link_reply(void *context, const struct worker_answer *answer);

/* Called from the loop. Both may close the link, whose memory the loop frees later. */
struct worker_link_events {
    /* A message that answers no request (serial 0). It belongs to the callee during the call. */
    void (*notice)(void *context, struct channel_message *message);
    /* The worker hung up (why is NULL) or broke the protocol (why says how). The callee closes the
     * link. */
    void (*lost)(void *context, const char *why);
    void *context;
};

struct worker_link;

/* Makes a link from a socket (SOCK_SEQPACKET), which it takes over, on failure too. Returns 0, or
 * -errno with *link NULL. */
int worker_link_open(struct worker_link **link, uv_loop_t *loop, int fd,
                     const struct worker_link_events *events);

/* The worker may still answer requests that an earlier supervisor made: serials of this link are
 * greater than `base`, and answers to others are dropped. hold: see send_queue.h; NULL: none. To be
 * called before the first request. */
void worker_link_begin(struct worker_link *link, uint64_t base, struct send_hold *hold);

/* The socket; it stays the link's. */
int worker_link_fd(const struct worker_link *link);

/* Somebody else is called from now on. */
void worker_link_redirect(struct worker_link *link, const struct worker_link_events *events);

/* Tells the worker to send no more. `lost` follows from the loop, after the messages that the
 * worker has sent already. */
void worker_link_finish(struct worker_link *link);

/* Ends every outstanding request with WORKER_LOST and closes the link. The pointer is invalid
 * afterwards. NULL is allowed. take: is called with each request that was made by
 * worker_link_request_again; where it returns true, it has taken the request over, whose callback
 * is not called then. */
void worker_link_close(struct worker_link *link,
                       bool (*take)(void *context, const struct worker_request_row *row),
                       void *context);

/*
 * Sends a request, whose serial is chosen here; client 0 is the device. reply may be NULL if the
 * answer does not matter. Returns 0, or -errno: the callback is not called then. A worker that is
 * gone is no failure: `lost` follows from the loop, after what the worker had sent, and ends the
 * request with WORKER_LOST.
 */
int worker_link_request(struct worker_link *link, const struct channel_packet *request,
                        worker_link_reply *reply, void *context);

/* The same, for a request that the next worker may be sent if this one is lost before its answer.
 * The descriptors must stay open until the callback. */
int worker_link_request_again(struct worker_link *link, const struct channel_packet *request,
                              worker_link_reply *reply, void *context);

/* Ends one client's outstanding requests with WORKER_SESSION_ENDED. Answers to them that come later
 * are dropped. */
void worker_link_cancel(struct worker_link *link, uint32_t client);

/* Number of requests whose callback has not been called. For tests. */
uint32_t worker_link_outstanding(const struct worker_link *link);

#endif
