/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * held_requests: requests of clients whose worker was lost, in the order in which they were made.
 *
 * They wait until the next worker has all that their client had when they were made: a request that
 * the lost worker did not answer has had no effect that a client could know of. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_WORKER_HELD_REQUESTS_H
#define GPUSHARE_SERVER_SUPERVISOR_WORKER_HELD_REQUESTS_H

#include <stdint.h>

#include "server/supervisor/worker/worker_link.h"
#include "server/supervisor/worker/worker_requests.h"

/* All zero: none. */
struct held_requests {
    struct worker_requests requests;
};

/* Holds a request, whose packet is copied; its descriptors must stay open until the callback.
 * Returns 0 or -errno. */
int held_requests_add(struct held_requests *held, const struct channel_packet *packet,
                      worker_link_reply *reply, void *context);

/* The client's first held request after this one (0: its oldest), whose packet may be looked at; or
 * NULL. */
struct worker_request_row *held_requests_after(struct held_requests *held, uint32_t client,
                                               uint64_t serial);

/* Puts another packet in the place of a request's, which is freed. The packet is a copy that
 * channel_packet_copy made. */
void held_requests_change(struct worker_request_row *row, struct channel_packet *packet);

/* Sends a client's requests to its new worker. One that can't be sent is answered with
 * WORKER_LOST. */
void held_requests_send(struct held_requests *held, uint32_t client, struct worker_link *link);

/* Ends a client's requests with WORKER_SESSION_ENDED. */
void held_requests_cancel(struct held_requests *held, uint32_t client);

/* Ends none: frees what is left of a server that ends. */
void held_requests_close(struct held_requests *held);

#endif
