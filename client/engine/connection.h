/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * connection: one client of one device: its session, its shared memory, and the lists of the
 * objects that were made on it. Any thread.
 *
 * Every call of an API begins with connection_check(). A thread takes locks in this order:
 * registry, peer, stream (the default stream's before another's), lists, session. That of held
 * memory is taken with none behind it but the table's of allocations. The locks of staging,
 * allocations and idle memory are taken last, with no lock after them.
 *
 * The registry's lock is held for no longer than it takes to look: a thread that has more to do
 * with a connection that is not its caller's holds the connection instead.
 *
 * No thread waits for the device, or for room in a ring, while it holds `lists`.
 */
#ifndef GPUSHARE_CLIENT_ENGINE_CONNECTION_H
#define GPUSHARE_CLIENT_ENGINE_CONNECTION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/engine/range/allocation.h"
#include "client/engine/range/held_memory.h"
#include "client/engine/range/idle_memory.h"
#include "client/engine/observer.h"
#include "client/engine/peer.h"
#include "client/engine/staging.h"
#include "client/engine/value_slot.h"
#include "client/gpushare.h"
#include "client/session/failure.h"
#include "client/session/session.h"
#include "common/ipc/shared_word.h"
#include "common/ipc/ring_memory.h"
#include "common/ipc/shm.h"
#include "common/ipc/timeline.h"
#include "common/list.h"
#include "protocol.h"

/* Where the default stream has to wait. Guarded by that stream's lock. */
struct stream_joins {
    struct proto_dependency *on;
    size_t count, room;
};

struct gpushare_connection {
    /* The hot path reads these; constant once connected, but for the spin's guess. */
    const struct proto_status_header *status;
    struct proto_client_header *header;
    int eventfd;
    uint32_t generation; /* connection_generation at the time when it was made */
    uint64_t device_base, host_base, window_bytes;
    /* How a waiter waits before it sleeps; not at all if the machine has one processor. */
    struct timeline_spin spin;
    struct gpushare_device device;
    uint64_t id;           /* unique in the process, also after the connection has closed */
    uint32_t server_minor; /* of the protocol that the server speaks */

    struct gpushare_stream *default_stream;
    _Atomic uint32_t blocking; /* streams in `streams` that are ordered with the default stream */
    pthread_mutex_t lists;     /* guards the three lists and the links of their members */
    struct list streams;       /* struct gpushare_stream, without the default stream */
    struct list modules;       /* struct gpushare_module */
    struct list events;        /* struct gpushare_event */

    struct allocations allocations;
    struct idle_memory idle;
    struct held_memory held;
    struct session session;
    struct observer observer;
    struct ring_memory rings; /* grows under `lists` */
    struct stream_joins joins;
    struct shm status_memory;
    bool windows_reserved;
    struct staging staging;
    struct value_slots values;
    struct peers peers;
    struct proto_attached attached;
    _Atomic uint32_t multiprocessors; /* the most that it may have, as the server said last */
    struct proto_allowance asked;
    struct list_link in_registry;
    uint32_t holders; /* threads that keep it from closing; under the registry's lock */
};

/* Counts forks: greater by one in every forked child. */
extern uint32_t connection_generation;

/* The slow half of connection_check: returns the error, with its sentence set. */
gpushare_error connection_dead(gpushare_connection *connection) __attribute__((cold));

/* Returns SUCCESS if the connection can be used in this process now; else the error, with its
 * sentence set. NULL is allowed, and refused. */
static inline gpushare_error connection_check(gpushare_connection *connection)
{
    if (__builtin_expect(!connection || connection->generation != connection_generation ||
                             shared_word_hint(&connection->status->fault) ||
                             atomic_load_explicit(&connection->session.ended, memory_order_relaxed),
                         0))
        return FAILURE_SAYS(connection_dead(connection));
    return GPUSHARE_SUCCESS;
}

/* Whether the connection is still there: timeline_wait and the ring ask this about ten times a
 * second while they sleep. connection: a gpushare_connection. */
bool connection_alive(void *connection);

/*
 * Returns the error that ended the connection, or SUCCESS while it lives. It looks at the socket
 * first. *text becomes the error's sentence, "" while the connection lives. The sentence is the
 * connection's; it is the thread's if connection is NULL, or belongs to the process that forked
 * this one.
 */
gpushare_error connection_ended(gpushare_connection *connection, const char **text);

/* The state of a connection of this process; NULL and a parent process's are refused. Looks at the
 * socket first. */
gpushare_error connection_state(gpushare_connection *connection,
                                struct gpushare_connection_state *state);

/* Writes the whole description of the device. Its number of multiprocessors is the granted one,
 * from the server's latest message about it. */
void connection_device(const gpushare_connection *connection, struct gpushare_device *device);

/* Asks the server for the limits that are granted now. *limits is written whole, on success
 * only. */
gpushare_error connection_limits(gpushare_connection *connection, struct gpushare_limits *limits);

/* Asks the server which limits hold for this client beside its own. An older server is not asked,
 * and *owners is all zero. Written whole, on success only. */
gpushare_error connection_owners(gpushare_connection *connection, struct proto_owners *owners);

/* Asks the server for whom module loads wait. *wait is written whole, on success only. */
gpushare_error connection_load_wait(gpushare_connection *connection,
                                    struct gpushare_load_wait *wait);

/* Sends one request to the server and waits for its reply, after connection_check() has passed.
 * Returns as session_call does. */
gpushare_error connection_call(gpushare_connection *connection, const struct session_call *call);

/* Ends the connection from this side: threads that wait for work that may never be done return
 * CONNECTION_LOST, and so does every later call. connect_close comes next. */
void connection_give_up(gpushare_connection *connection);

/* Puts a finished connection into the registry, and gives it an id. The first call installs the
 * handlers that make forks known. */
void connection_register(gpushare_connection *connection);

/* Takes a connection out of the registry, and waits until no thread holds it. The caller holds no
 * connection. */
void connection_unregister(gpushare_connection *connection);

/* Keep an open connection of this process from closing, until connection_release: the one with
 * this id; the one with the smallest id above this. They return NULL if there is none. Any thread,
 * without locks. */
gpushare_connection *connection_hold(uint64_t id);
gpushare_connection *connection_hold_next(uint64_t id);
void connection_release(gpushare_connection *connection);

/* Take and release the registry's lock. No connection closes while it is held, and the server is
 * not asked meanwhile. */
void connection_registry_lock(void);
void connection_registry_unlock(void);

/* Returns the open connection of this process with this id, or NULL. The caller holds the
 * registry's lock. */
gpushare_connection *connection_find(uint64_t id);

/* Whether this address is in the device window of any open connection of this process. The
 * caller needs no lock. */
bool connection_any_window(uint64_t address);

/* Returns a living connection of this process to the server at this path, or NULL. It looks at the
 * connection's socket. The caller holds the registry's lock. */
gpushare_connection *connection_find_server(const char *path);

#endif
