/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/connection.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/session/limit_members.h"
#include "client/session/failure.h"
#include "common/messages.h"

uint32_t connection_generation;

/* Never held while the server is asked: every connecting and closing of the process needs it. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER; /* a connection is held by fewer */
static struct list registry = LIST_INIT(registry);
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- fork ---- */

static void fork_prepare(void)
{
    pthread_mutex_lock(&registry_lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&registry_lock);
}

/* In the child only the forking thread lives. A thread that does not exist here may have held any
 * other lock, so nothing but descriptors is touched. Sockets are closed by their sessions. */
static void fork_child(void)
{
    connection_generation++;
    gpushare_connection *c;
    LIST_FOR_EACH (c, &registry, in_registry)
        close(c->eventfd);
    list_init(&registry);
    /* Threads that waited for it do not exist here. */
    released = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    fork_parent();
}

static void watch_forks(void)
{
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- registry ---- */

void connection_registry_lock(void)
{
    pthread_mutex_lock(&registry_lock);
}

void connection_registry_unlock(void)
{
    pthread_mutex_unlock(&registry_lock);
}

gpushare_connection *connection_find(uint64_t id)
{
    gpushare_connection *c;
    LIST_FOR_EACH (c, &registry, in_registry)
        if (c->id == id)
            break;
    return c;
}

gpushare_connection *connection_find_server(const char *path)
{
    gpushare_connection *c;
    LIST_FOR_EACH (c, &registry, in_registry)
        if (strcmp(c->session.path, path) == 0 && session_alive(&c->session))
            break;
    return c;
}

gpushare_connection *connection_hold(uint64_t id)
{
    connection_registry_lock();
    gpushare_connection *connection = connection_find(id);
    if (connection)
        connection->holders++;
    connection_registry_unlock();
    return connection;
}

gpushare_connection *connection_hold_next(uint64_t id)
{
    gpushare_connection *c, *next = NULL;
    connection_registry_lock();
    LIST_FOR_EACH (c, &registry, in_registry)
        if (c->id > id && (!next || c->id < next->id))
            next = c;
    if (next)
        next->holders++;
    connection_registry_unlock();
    return next;
}

void connection_release(gpushare_connection *connection)
{
    connection_registry_lock();
    connection->holders--;
    pthread_cond_broadcast(&released);
    connection_registry_unlock();
}

bool connection_any_window(uint64_t address)
{
    gpushare_connection *c;
    connection_registry_lock();
    LIST_FOR_EACH (c, &registry, in_registry)
        if (address - c->device_base < c->window_bytes)
            break;
    connection_registry_unlock();
    return c != NULL;
}

void connection_register(gpushare_connection *connection)
{
    static uint64_t ids;
    pthread_once(&once, watch_forks);
    connection_registry_lock();
    connection->generation = connection_generation;
    connection->id = ++ids;
    list_prepend(&registry, &connection->in_registry);
    connection_registry_unlock();
}

void connection_unregister(gpushare_connection *connection)
{
    connection_registry_lock();
    list_remove(&connection->in_registry);
    while (connection->holders)
        pthread_cond_wait(&released, &registry_lock);
    connection_registry_unlock();
}

/* ---- use ---- */

gpushare_error connection_dead(gpushare_connection *connection)
{
    if (!connection)
        return failure(MESSAGE(connection_null));
    if (connection->generation != connection_generation)
        return failure(MESSAGE(connection_of_parent));
    gpushare_error error = session_ended(&connection->session);
    observer_look(&connection->observer, error != GPUSHARE_SUCCESS);
    return error;
}

bool connection_alive(void *opaque)
{
    gpushare_connection *connection = opaque;
    bool alive = session_alive(&connection->session);
    observer_look(&connection->observer, !alive);
    return alive;
}

static bool has_ended(gpushare_connection *connection)
{
    return atomic_load_explicit(&connection->session.ended, memory_order_acquire);
}

void connection_give_up(gpushare_connection *connection)
{
    session_give_up(&connection->session);
}

gpushare_error connection_call(gpushare_connection *connection, const struct session_call *call)
{
    gpushare_error error = session_call(&connection->session, call);
    observer_look(&connection->observer, has_ended(connection));
    return error;
}

gpushare_error connection_state(gpushare_connection *connection,
                                struct gpushare_connection_state *state)
{
    if (!connection || connection->generation != connection_generation)
        return connection_dead(connection);
    bool ended = !connection_alive(connection) || shared_word_read(&connection->status->fault);
    *state = observer_read(&connection->observer, ended);
    return GPUSHARE_SUCCESS;
}

gpushare_error connection_ended(gpushare_connection *connection, const char **text)
{
    if (!connection || connection->generation != connection_generation) {
        gpushare_error error = connection_dead(connection);
        *text = failure_sentence();
        return error;
    }
    gpushare_error error = session_ended(&connection->session);
    observer_look(&connection->observer, error != GPUSHARE_SUCCESS);
    *text = error ? connection->session.text : "";
    return error;
}

void connection_device(const gpushare_connection *connection, struct gpushare_device *device)
{
    *device = connection->device;
    device->multiprocessors =
        atomic_load_explicit(&connection->multiprocessors, memory_order_relaxed);
}

gpushare_error connection_limits(gpushare_connection *connection, struct gpushare_limits *limits)
{
    struct proto_limits answer;
    struct session_call call = {.request = PROTO_LIMITS_QUERY,
                                .reply = PROTO_LIMITS,
                                .reply_body = &answer,
                                .reply_bytes = sizeof answer};
    gpushare_error error = connection_call(connection, &call);
    if (error)
        return error;
    const struct proto_grant *grant = &answer.grant;
    *limits = (struct gpushare_limits){
        .size = sizeof *limits,
        .client = connection->attached.client,
        .streams = connection->attached.streams,
        .multiprocessors = grant->multiprocessors,
        .partitioned = grant->partitioned,
        .mode = grant->mode,
        .time_enforced = grant->mode == GPUSHARE_MODE_STRICT || grant->mode == GPUSHARE_MODE_FAIR,
    };
    limit_members_write(limits, &connection->asked, &grant->allowance);
    atomic_store_explicit(&connection->multiprocessors, grant->multiprocessors,
                          memory_order_relaxed);
    return GPUSHARE_SUCCESS;
}

/* The minor version of the protocol that has owners_query. */
enum { OWNERS_SINCE = 2 };

gpushare_error connection_owners(gpushare_connection *connection, struct proto_owners *owners)
{
    struct proto_owners answer = {0};
    struct session_call call = {.request = PROTO_OWNERS_QUERY,
                                .reply = PROTO_OWNERS,
                                .reply_body = &answer,
                                .reply_bytes = sizeof answer};
    gpushare_error error =
        connection->server_minor < OWNERS_SINCE ? 0 : connection_call(connection, &call);
    if (!error)
        *owners = answer;
    return error;
}

gpushare_error connection_load_wait(gpushare_connection *connection,
                                    struct gpushare_load_wait *wait)
{
    struct proto_load_wait answer;
    struct session_call call = {.request = PROTO_LOAD_WAIT_QUERY,
                                .reply = PROTO_LOAD_WAIT,
                                .reply_body = &answer,
                                .reply_bytes = sizeof answer};
    gpushare_error error = connection_call(connection, &call);
    if (error)
        return error;
    *wait = (struct gpushare_load_wait){
        .size = sizeof *wait, .client = answer.client, .own = answer.own};
    snprintf(wait->text, sizeof wait->text, "%s", answer.text);
    return GPUSHARE_SUCCESS;
}
