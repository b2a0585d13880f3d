/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * connection: one client of one device: its session, its shared memory, and the lists of
 * the objects that were made on it. Any thread.
 *
 * Every call of an API begins with connection_check(). Locks are taken in this order: registry,
 * peer, stream (the default stream's before another's), lists, session. staging's and
 * allocations' locks are taken last, and no lock after them. No thread waits for the device with
 * `lists` held. One thread may wait for room in a ring with it: the default stream, while it joins
 * the blocking streams.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_CONNECTION_H
#define GPUSHARE_CLIENT_ENGINE_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/engine/allocation.h"
#include "client/engine/peer.h"
#include "client/engine/staging.h"
#include "client/gpushare.h"
#include "client/session/failure.h"
#include "client/session/session.h"
#include "common/ipc/shared_word.h"
#include "common/ipc/shm.h"
#include "protocol.h"

struct gpushare_connection {
    /* The hot path reads these; constant once connected. */
    const struct proto_status_header *status;
    struct proto_client_header *header;
    int eventfd;
    uint32_t generation; /* of forks, when it was made */
    uint64_t device_base, host_base, window_bytes;
    uint64_t spin_ns; /* before a waiter sleeps; 0 where only one processor is usable */
    struct gpushare_device device;
    uint64_t id; /* no other connection of this process ever has it */

    struct gpushare_stream *default_stream;
    _Atomic uint32_t blocking; /* streams in `streams` that are ordered with the default stream */
    pthread_mutex_t lists;     /* streams, modules, events, links of all of them */
    struct gpushare_stream *streams; /* without the default stream */
    struct gpushare_module *modules;
    struct gpushare_event *events;

    struct allocations allocations;
    struct session session;
    struct shm ring_memory, status_memory;
    bool windows_reserved;
    struct staging staging;
    struct peers peers;
    struct proto_attached attached;
    _Atomic uint32_t multiprocessors; /* the most that it may have, as the server said last */
    struct proto_allowance asked;
    struct gpushare_connection *next; /* in the registry */
};

/* Grows by one in every forked child. */
extern uint32_t connection_generation;

/* The slow half of connection_check: the error with its sentence. */
gpushare_error connection_dead(gpushare_connection *connection) __attribute__((cold));

/* May this connection be used here and now? SUCCESS, or the error with its sentence set. */
static inline gpushare_error connection_check(gpushare_connection *connection)
{
    if (__builtin_expect(!connection || connection->generation != connection_generation ||
                             shared_word_hint(&connection->status->fault) ||
                             atomic_load_explicit(&connection->session.ended, memory_order_relaxed),
                         0))
        return FAILURE_SAYS(connection_dead(connection));
    return GPUSHARE_SUCCESS;
}

/* timeline_wait's and the ring's question, about ten times a second while asleep. */
bool connection_alive(void *connection);

/*
 * The error that ended the connection, SUCCESS while it lives; looks at the socket. *text gets
 * its sentence, "" while it lives: the connection's own, or the thread's where connection is
 * NULL or of the process that forked this one.
 */
gpushare_error connection_ended(gpushare_connection *connection, const char **text);

/* The device, whole, with the multiprocessors that this client was told of last. */
void connection_device(const gpushare_connection *connection, struct gpushare_device *device);

/* Asks the server for what is granted now. *limits is written whole, on success only. */
gpushare_error connection_limits(gpushare_connection *connection, struct gpushare_limits *limits);

/* Asks the server; connection_check() has passed. As session_call. */
gpushare_error connection_call(gpushare_connection *connection, const struct session_call *call);

/* Puts a finished connection into the registry, with an id, and makes forks known. */
void connection_register(gpushare_connection *connection);

/* Takes it out. With the registry's lock. */
void connection_unregister(gpushare_connection *connection);

/* The registry's lock: no connection closes while it is held. */
void connection_registry_lock(void);
void connection_registry_unlock(void);

/* With the registry's lock: the open connection of this id in this process, or NULL. */
gpushare_connection *connection_find(uint64_t id);

/* Is this an address of device memory of any open connection of this process? No lock of the
 * caller's. */
bool connection_any_window(uint64_t address);

/* With the registry's lock: all open connections, by ->next. */
gpushare_connection *connection_first(void);

#endif
