/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * peer: the link and the buffer between two connections of the same process. A link lets the rings
 * of one wait for timelines of the other. A host buffer that both devices reach carries copies
 * between them. Any thread.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_PEER_H
#define GPUSHARE_CLIENT_ENGINE_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"
#include "common/list.h"

struct gpushare_stream;

/* The peers of one connection. */
struct peers {
    pthread_mutex_t lock;
    struct list members; /* struct peer */
};

void peer_init(struct peers *peers);

/* Frees the peers that are left. here: false in a forked child, where a thread that does not
 * exist there may hold the lock; then the lock is left alone. */
void peer_destroy(struct peers *peers, bool here);

/* Gives the number by which the rings of `from` name timelines of `to`. The server is asked
 * once. */
gpushare_error peer_link(gpushare_connection *from, gpushare_connection *to, uint32_t *link);

/*
 * Copies count bytes from source's device memory to destination's, in order with `stream`, which is
 * of one of the two connections. Returns when everything has been pushed.
 */
gpushare_error peer_copy(gpushare_connection *destination, uint64_t to, gpushare_connection *source,
                         uint64_t from, uint64_t count, struct gpushare_stream *stream);

/* Ends the links and buffers between this connection and the other open ones, when it closes and
 * is in the registry no more. */
void peer_forget(gpushare_connection *connection);

#endif
