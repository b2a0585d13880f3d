/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/thread_stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

/* An entry names its connection by id: by address, a closed connection's could be taken for a new
 * one's. The list is singly linked, for all that a thread's key holds is its first entry. */
struct entry {
    uint64_t connection;
    struct gpushare_stream *stream;
    struct entry *next;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error;

/* The entry used last: a launch need not search. */
static __thread struct entry latest;

static void thread_ends(void *first)
{
    for (struct entry *e = first, *next; e; e = next) {
        next = e->next;
        gpushare_connection *connection = connection_hold(e->connection);
        if (connection) {
            (void)stream_retire(e->stream);
            connection_release(connection);
        }
        free(e);
    }
}

static void make_key(void)
{
    key_error = pthread_key_create(&key, thread_ends);
}

/* Frees the entries of closed connections. Returns the rest. */
static struct entry *sweep_entries(struct entry *first)
{
    connection_registry_lock();
    for (struct entry **link = &first; *link;) {
        struct entry *e = *link;
        if (connection_find(e->connection)) {
            link = &e->next;
        } else {
            *link = e->next;
            free(e);
        }
    }
    connection_registry_unlock();
    return first;
}

static gpushare_error get_own_stream(gpushare_connection *connection,
                                     struct gpushare_stream **stream)
{
    if (latest.connection == connection->id) {
        *stream = latest.stream;
        return GPUSHARE_SUCCESS;
    }
    pthread_once(&once, make_key);
    if (key_error)
        return failure(MESSAGE(process_no_keys));
    struct entry *first = pthread_getspecific(key);
    struct entry *e = first;
    while (e && e->connection != connection->id)
        e = e->next;
    if (!e) {
        first = sweep_entries(first);
        pthread_setspecific(key, first);
        e = malloc(sizeof *e);
        if (!e)
            return failure(MESSAGE(process_no_memory));
        gpushare_error error = stream_open(connection, 0, 0, &e->stream);
        if (error) {
            free(e);
            return error;
        }
        e->connection = connection->id;
        e->next = first;
        pthread_setspecific(key, e);
    }
    latest = *e;
    *stream = e->stream;
    return GPUSHARE_SUCCESS;
}

gpushare_error thread_stream_resolve(gpushare_connection *connection, gpushare_stream *handle,
                                     struct gpushare_stream **stream)
{
    if (!handle) {
        *stream = connection->default_stream;
        return GPUSHARE_SUCCESS;
    }
    if (handle == GPUSHARE_STREAM_PER_THREAD)
        return get_own_stream(connection, stream);
    if (handle->connection != connection)
        return failure(MESSAGE(stream_of_another));
    *stream = handle;
    return GPUSHARE_SUCCESS;
}
