/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/session_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/printable.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"

static struct session **bucket_of(struct server *server, uint32_t number)
{
    return &server->by_number[number % SERVER_BUCKETS];
}

void session_enlist(struct session *session)
{
    struct server *server = session->server;
    struct session **bucket = bucket_of(server, session->number);
    session->next_of_bucket = *bucket;
    *bucket = session;
    list_append(&server->session_list, &session->link);
    server->sessions++;
}

void session_delist(struct session *session)
{
    struct server *server = session->server;
    struct session **at = bucket_of(server, session->number);
    while (*at != session)
        at = &(*at)->next_of_bucket;
    *at = session->next_of_bucket;
    list_remove(&session->link);
    server->sessions--;
}

struct session *session_find(const struct server *server, uint32_t number)
{
    struct session *session = server->by_number[number % SERVER_BUCKETS];
    while (session && session->number != number)
        session = session->next_of_bucket;
    return session;
}

bool session_is_companion(const struct session *session, const struct session *other,
                          const uint8_t group[16])
{
    return other != session && other->state == PROTO_CONNECTION_STATE_ATTACHED &&
           other->pid == session->pid && other->uid == session->uid &&
           memcmp(other->group, group, sizeof other->group) == 0;
}

void session_touch(struct session *session)
{
    if (!session->server->keeper || session->keeping.touched)
        return;
    session->keeping.touched = true;
    queue_append(&session->server->touched, &session->keeping.link);
}

struct kept_table *session_tables(struct session *session, enum session_part part)
{
    return session->server->keeper ? &session->keeping.tables[part] : NULL;
}

void session_log_about(const struct session *session)
{
    log_about(&(struct log_subject){.client = session->number,
                                    .uid = session->uid,
                                    .pid = (int)session->pid,
                                    .device = session->device ? (int)session->device->index : -1});
}

/* text: the reason in the words of the log. */
static void log_end(const struct session *session, const char *text)
{
    const struct proto_ended *ended = &session->ended;
    session_log_about(session);
    /* Every client first looks at the devices through a connection of its own, and some programs
     * only ask what they would get: their ends are no news. */
    if (!ended->error && session->state < PROTO_CONNECTION_STATE_ATTACHING)
        log_debug(MESSAGE_TEXT(log_connection_gone), session->number, (int)session->pid,
                  session->uid, text);
    else if (!ended->error && !session->announced)
        log_debug(MESSAGE_TEXT(log_client_gone), session->number, session->name, (int)session->pid,
                  session->uid, text);
    else if (!ended->error)
        log_info(MESSAGE_TEXT(log_client_gone), session->number, session->name, (int)session->pid,
                 session->uid, text);
    else
        log_warning(MESSAGE_TEXT(log_client_ended), session->number, session->name,
                    (int)session->pid, session->uid, error_name(ended->error), text);
}

void session_schedule(struct session *session)
{
    if (session->state != PROTO_CONNECTION_STATE_LEAVING || session->due)
        return;
    session->due = true;
    queue_append(&session->server->due, &session->due_link);
}

void session_enter(struct session *session, enum proto_connection_state state)
{
    if (session->state != PROTO_CONNECTION_STATE_LEAVING)
        session->state = state;
    session_touch(session);
}

/* logged: NULL: the reason itself. */
__attribute__((format(printf, 4, 0))) static void fail(struct session *session, uint32_t error,
                                                       const char *logged, const char *format,
                                                       va_list arguments)
{
    if (session->state == PROTO_CONNECTION_STATE_LEAVING)
        return;
    /* A session that was taken over ends again with the text that it has. */
    char text[sizeof session->ended.text];
    vsnprintf(text, sizeof text, format, arguments);
    session->ended.error = error;
    memcpy(session->ended.text, text, sizeof text);
    printable_replace(session->ended.text);
    log_end(session, logged ? logged : session->ended.text);
    session->state = PROTO_CONNECTION_STATE_LEAVING;
    session->parked.present = false;
    session_touch(session);
    session_schedule(session);
}

void session_fail(struct session *session, uint32_t error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(session, error, NULL, format, arguments);
    va_end(arguments);
}

void session_fail_logged(struct session *session, uint32_t error, const char *logged,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(session, error, logged, format, arguments);
    va_end(arguments);
}

void session_fail_why(struct session *session, const struct error *why)
{
    session_fail(session, why->number, "%s", why->text);
}

void session_released(struct session *session)
{
    if (!session->down)
        return;
    session->released = true;
    session_schedule(session);
}
