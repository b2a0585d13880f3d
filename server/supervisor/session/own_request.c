/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/own_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/account/equal_part.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_client.h"

/* A client that connects for a moment, as `gpushare info` does, should not cause two changes. */
#define SETTLE_MS 1000

static const char by[] = "an equal part";

bool session_own_request_counts(const struct session *session, enum resource resource)
{
    return session->grant.own[resource] &&
           allowance_source(&session->grant.allowance, resource, ALLOWANCE_REQUEST).origin !=
               ALLOWANCE_BY_ADMIN;
}

/* ---- dividing ---- */

static bool is_of_device(enum resource resource)
{
    return allowance_resource(resource)->by_worker || allowance_resource(resource)->of_device;
}

/* The whole of a resource; device: NULL where the server has one of it. */
static uint64_t whole_of(const struct server *server, const struct device *device,
                         enum resource resource)
{
    const struct allowance_resource *row = allowance_resource(resource);
    if (row->by_worker)
        return row->unit == DIALECT_SHARE ? ALLOWANCE_WHOLE : ALLOWANCE_ENDLESS;
    return device ? device->quotas[resource].limit : server->quotas[resource].limit;
}

/* The request of a client's account; 0: none, as of all that the supervisor has quotas of. */
static uint64_t of_account(const struct own_request *request, enum resource resource)
{
    const struct proto_worker_account *account = &request->accounts.of[0];
    return resource == RESOURCE_TIME      ? account->time_request
           : resource == RESOURCE_THREADS ? account->threads_request
                                          : 0;
}

/* The scheduler rounds a share of the multiprocessors up to one SM group. Of a share that was
 * lowered that could be more than there are. */
static uint64_t trim_granted(const struct own_request *request, enum resource resource,
                             uint64_t granted)
{
    const struct proto_device_info *info = &request->session->device->info;
    if (resource != RESOURCE_THREADS || granted == request->asked[resource])
        return granted;
    const uint64_t multiprocessors = info->multiprocessors * granted / ALLOWANCE_WHOLE;
    return multiprocessors < info->partition_multiprocessors ? 0 : granted;
}

/* clients: has room for all requests. */
static void divide_resource(const struct server *server, const struct device *device,
                            enum resource resource, struct own_request *requests, size_t count,
                            struct equal_part_client *clients)
{
    const uint64_t whole = whole_of(server, device, resource);
    size_t sharing = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t bound = of_account(&requests[i], resource);
        /* More than there is will be refused. */
        const uint64_t reserved = requests[i].reserved[resource];
        if (device && requests[i].session->device != device)
            continue;
        /* A part of the account's request takes nothing from others. */
        requests[i].granted[resource] = requests[i].asked[resource];
        clients[sharing++] =
            (struct equal_part_client){.account = requests[i].accounts.of[0].account,
                                       .of_account = bound,
                                       .reserved = reserved <= whole ? reserved : 0,
                                       .asked = bound ? 0 : requests[i].asked[resource],
                                       .of = i};
    }
    equal_part_divide(clients, sharing, whole);
    for (size_t i = 0; i < sharing; i++) {
        struct own_request *request = &requests[clients[i].of];
        if (!clients[i].of_account)
            request->granted[resource] = trim_granted(request, resource, clients[i].granted);
    }
}

static bool any_asks(const struct own_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (enum resource resource = 0; resource < RESOURCES; resource++)
            if (requests[i].asked[resource])
                return true;
    return false;
}

int session_own_requests_divide(const struct server *server, struct own_request *requests,
                                size_t count)
{
    if (!any_asks(requests, count))
        return 0;
    struct equal_part_client *clients = calloc(count, sizeof *clients);
    if (!clients)
        return -ENOMEM;
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (!is_of_device(i))
            divide_resource(server, NULL, i, requests, count, clients);
        for (uint32_t at = 0; is_of_device(i) && at < server->device_count; at++)
            divide_resource(server, &server->devices[at], i, requests, count, clients);
    }
    free(clients);
    return 0;
}

/* ---- the clients that are there ---- */

static bool is_there(const struct session *session)
{
    return session->device && (session->state == PROTO_CONNECTION_STATE_ATTACHED ||
                               session->state == PROTO_CONNECTION_STATE_ATTACHING);
}

static void describe_request(struct session *session, struct own_request *request)
{
    *request = (struct own_request){.session = session, .accounts = session->counts_in};
    for (enum resource i = 0; i < RESOURCES; i++)
        if (session_own_request_counts(session, i))
            request->asked[i] = session->grant.own[i];
        else
            request->reserved[i] = session->grant.allowance.of[i].request;
}

/* Lists the clients that are there, and `coming`, which may be NULL, as the last one. Returns 0 and
 * *requests, which the caller frees; or -ENOMEM. */
static int list_all(const struct server *server, struct session *coming,
                    struct own_request **requests, size_t *count)
{
    struct session *session;
    *count = 0;
    *requests = calloc((size_t)server->sessions + 1, sizeof **requests);
    if (!*requests)
        return -ENOMEM;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session != coming && is_there(session))
            describe_request(session, &(*requests)[(*count)++]);
    if (coming)
        describe_request(coming, &(*requests)[(*count)++]);
    int result = session_own_requests_divide(server, *requests, *count);
    if (result < 0)
        free(*requests);
    return result;
}

/* ---- words ---- */

static void tell_client(struct session *session)
{
    const struct allowance *grant = &session->grant.allowance;
    char has[UNITS_TEXT], asked[UNITS_TEXT];
    /* A client that reads nothing should not fill its queue. */
    if (session->own_told == session->last_serial)
        return;
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct proto_notice notice = {.text = ""};
        struct error why;
        if (!session_own_request_counts(session, i) ||
            grant->of[i].request >= session->grant.own[i])
            continue;
        error_set(&why, MESSAGE(own_request_lowered), allowance_resource(i)->phrase,
                  allowance_format(i, grant->of[i].request, has),
                  allowance_format(i, session->grant.own[i], asked));
        snprintf(notice.text, sizeof notice.text, "%.*s", (int)sizeof notice.text - 1, why.text);
        session_answer(session, PROTO_NOTICE, 0, &notice, NULL, 0);
        session->own_told = session->last_serial;
    }
}

/* granted: as the requests will be. */
static void log_lowered(struct server *server, const struct own_request *requests, size_t count)
{
    const struct own_request *lowest = NULL;
    enum resource of = 0;
    for (size_t i = 0; i < count && !lowest; i++)
        for (enum resource resource = 0; resource < RESOURCES && !lowest; resource++)
            if (requests[i].granted[resource] < requests[i].asked[resource]) {
                lowest = &requests[i];
                of = resource;
            }
    if (!lowest == !server->own_requests.lowered)
        return;
    server->own_requests.lowered = lowest != NULL;
    char has[UNITS_TEXT], asked[UNITS_TEXT];
    if (lowest)
        log_notice(MESSAGE_TEXT(log_own_requests_lowered), lowest->session->number,
                   lowest->session->name, allowance_resource(of)->phrase,
                   allowance_format(of, lowest->granted[of], has),
                   allowance_format(of, lowest->asked[of], asked));
    else
        log_notice(MESSAGE_TEXT(log_own_requests_whole));
}

/* ---- changing ---- */

static void request_lowered(void *context, uint32_t number, uint32_t error, const char *text)
{
    if (error && error != PROTO_ERROR_NOT_FOUND)
        log_warning(MESSAGE_TEXT(log_own_request_stays), number, text);
    else if (!error)
        tell_client(context);
}

/* A request that rises finds no room where a client that has left still works. Its end is the next
 * occasion. */
static void request_risen(void *context, uint32_t number, uint32_t error, const char *text)
{
    (void)context;
    if (error)
        log_debug(MESSAGE_TEXT(log_own_request_stays), number, text);
}

/* Memory is the supervisor's own, and changes at once. by_worker: says which part to change. */
static void change_some(const struct own_request *to, bool by_worker, bool rise)
{
    struct session *session = to->session;
    const struct allowance *now = &session->grant.allowance;
    struct allowance change = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++) {
        const uint64_t request = now->of[i].request;
        if (allowance_resource(i)->by_worker != by_worker || !to->asked[i] ||
            (rise ? to->granted[i] <= request : to->granted[i] >= request))
            continue;
        change.of[i].request = to->granted[i];
        change.of_from[i].request = allowance_source(now, i, ALLOWANCE_REQUEST);
    }
    if (session_limits_change_empty(&change))
        return;
    const struct change_asker asker = {by, rise ? request_risen : request_lowered, session};
    int result = session_limits_set(session, &change, &asker);
    if (result < 0 && !rise)
        log_warning(MESSAGE_TEXT(log_own_request_stays), session->number, strerror(-result));
    else if (result > 0 && !rise)
        tell_client(session);
}

static void change_all(const struct own_request *requests, size_t count, bool rise)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i].session->state != PROTO_CONNECTION_STATE_ATTACHED)
            continue;
        change_some(&requests[i], false, rise);
        change_some(&requests[i], true, rise);
    }
}

/* ---- clients that come and go ---- */

/* Whether a client that is being attached would have to give way: its worker does not know it yet.
 */
static bool any_attaching_gives(const struct own_request *requests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (enum resource resource = 0; resource < RESOURCES; resource++)
            if (requests[i].session->state == PROTO_CONNECTION_STATE_ATTACHING &&
                requests[i].asked[resource] &&
                requests[i].granted[resource] <
                    requests[i].session->grant.allowance.of[resource].request)
                return true;
    return false;
}

int session_own_request_begin(struct session *session)
{
    struct server *server = session->server;
    struct own_request *requests;
    size_t count;
    int result = list_all(server, session, &requests, &count);
    if (result < 0)
        return result;
    if (any_attaching_gives(requests, count)) {
        server->own_requests.waits = true;
        result = 1;
    } else {
        const struct own_request *coming = &requests[count - 1];
        for (enum resource i = 0; i < RESOURCES; i++)
            if (coming->asked[i])
                session->grant.allowance.of[i].request = coming->granted[i];
        change_all(requests, count - 1, false);
        log_lowered(server, requests, count);
    }
    free(requests);
    return result;
}

static void look_again(struct server *server)
{
    server->own_requests.look |= server->own_requests.waits;
    server->own_requests.waits = false;
}

void session_own_request_attached(struct session *session)
{
    tell_client(session);
    look_again(session->server);
}

static void settle_later(uv_timer_t *timer)
{
    struct server *server = timer->data;
    if (server->attaching_waits)
        uv_timer_start(timer, settle_later, SETTLE_MS, 0);
    else
        session_own_requests_settle(server);
}

void session_own_request_end(struct session *session)
{
    look_again(session->server);
    session_own_requests_settle_soon(session->server);
}

void session_own_requests_settle_soon(struct server *server)
{
    if (!uv_is_active((uv_handle_t *)&server->own_requests.timer))
        uv_timer_start(&server->own_requests.timer, settle_later, SETTLE_MS, 0);
}

void session_own_requests_settle(struct server *server)
{
    struct own_request *requests;
    size_t count;
    if (list_all(server, NULL, &requests, &count) < 0)
        return;
    change_all(requests, count, false);
    change_all(requests, count, true);
    log_lowered(server, requests, count);
    free(requests);
}

void session_own_requests_open(struct server *server)
{
    uv_timer_init(server->loop, &server->own_requests.timer);
    server->own_requests.timer.data = server;
}

void session_own_requests_close(struct server *server)
{
    uv_close((uv_handle_t *)&server->own_requests.timer, NULL);
}
