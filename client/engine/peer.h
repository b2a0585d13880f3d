/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * peer: two connections of the same process: the link by which rings of one can wait for timelines
 * of the other, and the host buffer through which copies between the two go.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_PEER_H
#define GPUSHARE_CLIENT_ENGINE_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gpushare.h"

struct gpushare_stream;
struct peer;

/* A connection's peers. */
struct peers {
    pthread_mutex_t lock;
    struct peer *first;
};

void peer_init(struct peers *peers);

/* Frees what is left. here: false in a forked child, where a thread that does not exist may hold
 * the lock. */
void peer_destroy(struct peers *peers, bool here);

/* The number by which `from`'s rings name timelines of `to`; asks the server once. */
gpushare_error peer_link(gpushare_connection *from, gpushare_connection *to, uint32_t *link);

/*
 * Copies count bytes from source's device memory to destination's, in order with
 * `stream`, which is of one of the two. Pushes everything and returns.
 */
gpushare_error peer_copy(gpushare_connection *destination, uint64_t to, gpushare_connection *source,
                         uint64_t from, uint64_t count, struct gpushare_stream *stream);

/* Ends what this connection and the other open ones have between them. Called at close, with the
 * registry's lock. */
void peer_forget(gpushare_connection *connection);

#endif
