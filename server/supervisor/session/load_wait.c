/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/load_wait.h"

#include <stdio.h>
#include <string.h>

#include "common/error.h"
#include "common/messages.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

/* A load that waits for less is nobody's trouble: windows may take that long anyway. */
#define TOLD_AFTER_MS 1000

/* A client that has left can't be ended any more, only its worker; so the remedies differ. A client
 * that is not in the list is described as another user's: without a name. */
static void explain_other(const struct session *session, uint32_t number, struct error *why)
{
    const struct session *other = session_find(session->server, number);
    bool same_user = other && other->uid == session->uid;
    bool left = other && other->state == PROTO_CONNECTION_STATE_LEAVING;
    if (same_user && left)
        error_set(why, MESSAGE(load_waits_left_same_user), number, other->name, number, number);
    else if (same_user)
        error_set(why, MESSAGE(load_waits_same_user), number, other->name, (int)other->pid, number,
                  number);
    else if (left)
        error_set(why, MESSAGE(load_waits_left_other), number, number, number);
    else
        error_set(why, MESSAGE(load_waits_other), number, number, number);
}

/* Describes a wait for the work of this client; 0: for nobody's. A client that the driver makes no
 * partition for, for this reason, waits for itself. */
static struct proto_load_wait describe_wait(const struct session *session, uint32_t number,
                                            uint32_t partition_error)
{
    number = partition_error ? session->number : number;
    struct proto_load_wait wait = {.client = number, .own = number == session->number};
    struct error why = {0};
    if (!number)
        return wait;
    if (partition_error)
        error_set(&why, MESSAGE(partition_awaited), error_sentence(partition_error));
    else if (wait.own)
        error_set(&why, MESSAGE(load_waits_own), number);
    else
        explain_other(session, number, &why);
    snprintf(wait.text, sizeof wait.text, "%.*s", (int)sizeof wait.text - 1, why.text);
    return wait;
}

static void query_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    if (answer->outcome == WORKER_ANSWERED) {
        struct proto_worker_usage usage;
        memcpy(&usage, answer->message->body, sizeof usage);
        struct proto_load_wait wait =
            describe_wait(session, usage.loads_wait_for, usage.partition_error);
        session_answer(session, PROTO_LOAD_WAIT, request->serial, &wait, NULL, 0);
    } else {
        session_pass(session, request->serial, answer);
    }
    request_end(request);
}

void session_load_wait_query(struct session *session, struct channel_message *message)
{
    struct request *request = request_make(session, message->header.serial, PROTO_LOAD_WAIT);
    if (!request)
        return;
    if (session_ask(session, PROTO_WORKER_USAGE_QUERY, NULL, query_answered, request) == 0)
        return;
    session_refuse(session, request->serial, MESSAGE(request_no_memory));
    request_end(request);
}

/* ---- without being asked ---- */

static void usage_came(void *context, const struct worker_answer *answer)
{
    struct session *session = context;
    session->load_wait.asks = false;
    if (answer->outcome != WORKER_ANSWERED || !session->load_wait.loads)
        return;
    struct proto_worker_usage usage;
    memcpy(&usage, answer->message->body, sizeof usage);
    if (!usage.waits_for || usage.waits_for == session->load_wait.told)
        return;
    session->load_wait.told = usage.waits_for;
    struct proto_load_wait wait = describe_wait(session, usage.waits_for, 0);
    session_answer(session, PROTO_LOAD_WAIT, 0, &wait, NULL, 0);
}

static void still_waits(uv_timer_t *timer)
{
    struct session *session = timer->data;
    /* A worker that does not answer is asked once. */
    if (!session->load_wait.asks)
        session->load_wait.asks =
            session_ask(session, PROTO_WORKER_USAGE_QUERY, NULL, usage_came, session) == 0;
}

void session_load_wait_begin(struct session *session)
{
    if (session->load_wait.loads++)
        return;
    session->load_wait.told = 0;
    /* An attached client has no other deadline. */
    uv_timer_start(&session->deadline, still_waits, TOLD_AFTER_MS, TOLD_AFTER_MS);
}

void session_load_wait_end(struct session *session)
{
    if (--session->load_wait.loads == 0)
        uv_timer_stop(&session->deadline);
}
