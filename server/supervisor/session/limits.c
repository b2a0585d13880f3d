/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits/allowance.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/session/accounting.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

static void lower_share(struct allowance_range *share, uint64_t limit)
{
    share->limit = min(share->limit, limit);
    share->request = min(share->request, share->limit);
}

struct allowance session_limits_in_force(const struct session *session)
{
    struct allowance to = session->grant.allowance;
    for (uint32_t i = 0; i < session->counts_in.count; i++) {
        lower_share(&to.time, session->counts_in.of[i].time_limit);
        lower_share(&to.threads, session->counts_in.of[i].threads_limit);
    }
    QUOTA_FOR_EACH (i)
        to.of[i].limit = min(to.of[i].limit, max(total_members_limit(session->totals.of[i]),
                                                 session->quotas[i].guarantee));
    return to;
}

struct proto_grant session_limits_granted(const struct session *session)
{
    const struct allowance in_force = session_limits_in_force(session);
    return (struct proto_grant){
        .allowance = allowance_to_wire(&in_force),
        .multiprocessors = session->worker.multiprocessors,
        .partitioned = session->worker.partitioned,
        .mode = session->device->schedule.mode,
    };
}

void session_limits_query(struct session *session, struct channel_message *message)
{
    struct proto_limits body = {.grant = session_limits_granted(session)};
    session_answer(session, PROTO_LIMITS, message->header.serial, &body, NULL, 0);
}

/* Turns a part of the device's memory into bytes. */
static struct allowance change_in_bytes(const struct session *session,
                                        const struct allowance *change)
{
    struct allowance bytes = *change;
    QUOTA_FOR_EACH (i)
        if (allowance_resource(i)->of_device)
            allowance_resolve(&bytes, i, session->device->info.memory);
    return bytes;
}

/* The client's limits after the changes before, one of which may be on its way, and this one.
 * change: in bytes. */
static struct allowance allowance_wanted(const struct session *session,
                                         const struct allowance *change)
{
    struct allowance to = session->grant.allowance;
    if (session->answers_due)
        allowance_change(&to, &session->limits_sent);
    QUOTA_FOR_EACH (i)
        to.of[i].request = session->quotas[i].guarantee;
    allowance_change(&to, change);
    return to;
}

/* The part of an allowance that the worker enforces, or the one that the supervisor has quotas of;
 * the rest is unset. */
static struct allowance allowance_part_by(const struct allowance *allowance, bool worker)
{
    struct allowance to = allowance_none;
    for (enum resource i = 0; i < RESOURCES; i++) {
        if (allowance_resource(i)->by_worker != worker)
            continue;
        to.of[i] = allowance->of[i];
        to.of_from[i] = allowance->of_from[i];
    }
    if (worker) {
        memcpy(to.scalar, allowance->scalar, sizeof to.scalar);
        memcpy(to.scalar_from, allowance->scalar_from, sizeof to.scalar_from);
    }
    return to;
}

static struct allowance allowance_of_worker(const struct allowance *allowance)
{
    return allowance_part_by(allowance, true);
}

static bool concerns_worker(const struct allowance *change)
{
    struct allowance asked = allowance_of_worker(change);
    return !allowance_equal(&asked, &allowance_none);
}

bool session_limits_change_empty(const struct allowance *change)
{
    return allowance_equal(change, &allowance_none);
}

/* The guarantees after a change, which is in bytes. A value that it leaves alone stays. */
static struct allowance guarantees_after(const struct session *session,
                                         const struct allowance *change)
{
    struct allowance to = session_quota_guarantees(session);
    QUOTA_FOR_EACH (i)
        if (change->of[i].request != ALLOWANCE_UNSET) {
            to.of[i].request = change->of[i].request;
            to.of_from[i].request = allowance_source(change, i, ALLOWANCE_REQUEST);
        }
    return to;
}

/* More is taken at once, so that nobody else gets it meanwhile; less is given back when all else
 * is done. */
static struct allowance guarantees_with(const struct session *session,
                                        const struct allowance *change)
{
    struct allowance to = guarantees_after(session, change);
    QUOTA_FOR_EACH (i)
        to.of[i].request = max(to.of[i].request, session->quotas[i].guarantee);
    return to;
}

/* change: in bytes. 0, or an error number with a sentence. */
static uint32_t take_guarantees(struct session *session, const struct allowance *change,
                                struct error *why)
{
    const struct allowance more = guarantees_with(session, change);
    uint32_t error = session_quota_guarantee(session, &more, why);
    /* Other clients may keep idle what it lacks. They have given way when it is asked for again. */
    if (error)
        session->server->make_room(session, more.of[RESOURCE_MEMORY].request);
    return error;
}

/* Sets guarantees that are no higher than the present ones: there is always room for them. */
static void keep_guarantees(struct session *session, const struct allowance *guarantees)
{
    struct error unused;
    session_quota_guarantee(session, guarantees, &unused);
}

/* Whether there is room is tried, and given back. */
static uint32_t check_guarantees(struct session *session, const struct allowance *change,
                                 struct error *why)
{
    const struct allowance before = session_quota_guarantees(session);
    uint32_t error = take_guarantees(session, change, why);
    if (!error)
        keep_guarantees(session, &before);
    return error;
}

/* A limit of memory must not exceed what there is, or the client's window of addresses. */
static uint32_t check_limits(const struct session *session, const struct allowance *change,
                             struct error *why)
{
    char most[UNITS_TEXT], wanted[UNITS_TEXT];
    uint64_t device = session->device->info.memory, window = session->window.bytes;
    QUOTA_FOR_EACH (i) {
        const struct allowance_resource *resource = allowance_resource(i);
        uint64_t limit = change->of[i].limit;
        if (limit == ALLOWANCE_UNSET)
            continue;
        units_format_bytes(limit, wanted);
        if (resource->of_device && limit > device)
            return error_set(why, MESSAGE(change_over_device), session->number,
                             units_format_bytes(device, most), (unsigned long long)device,
                             resource->phrase, wanted, (unsigned long long)limit);
        if (!resource->of_device && limit > session_quota_whole(session, i))
            return error_set(why, MESSAGE(change_over_server), session->number,
                             units_format_bytes(session_quota_whole(session, i), most),
                             (unsigned long long)session_quota_whole(session, i), resource->phrase,
                             wanted, (unsigned long long)limit);
        if (limit > window)
            return error_set(why, MESSAGE(change_over_window), session->number,
                             units_format_bytes(window, most), (unsigned long long)window,
                             resource->phrase, wanted, (unsigned long long)limit);
    }
    return 0;
}

uint32_t session_limits_check(struct session *session, const struct allowance *change,
                              struct error *why)
{
    char asked[UNITS_TEXT], limit[UNITS_TEXT];
    struct allowance bytes = change_in_bytes(session, change);
    struct allowance_excess excess;
    uint32_t error = check_limits(session, &bytes, why);
    if (error)
        return error;
    bool asks = false;
    QUOTA_FOR_EACH (i)
        asks |= bytes.of[i].request != ALLOWANCE_UNSET;
    /* Two changes at once would leave the guarantee of the one that is answered last. */
    if (asks && session->answers_due)
        return error_set(why, MESSAGE(change_under_way), session->number);
    struct allowance wanted = allowance_wanted(session, &bytes);
    if (!allowance_exceeds(&wanted, &excess))
        return check_guarantees(session, &bytes, why);
    const char *name = allowance_resource(excess.resource)->name;
    return error_set(why, MESSAGE(change_request_over_limit), session->number, name,
                     dialect_format(excess.request, asked), name,
                     dialect_format(excess.limit, limit));
}

/* A change that waits for the worker. */
struct limits_change {
    struct session *session;
    struct request *request; /* keeps the session from being freed until the worker answers */
    struct allowance change; /* in bytes */
    struct allowance asked;  /* as the worker was asked */
    change_done *done;
    void *context;
    uint32_t number; /* that done is told */
    char by[64];
};

/* Changes everything that the worker does not enforce. change: in bytes. */
static void set_memory(struct session *session, const struct allowance *change)
{
    struct allowance *grant = &session->grant.allowance;
    const struct allowance guarantees = guarantees_after(session, change);
    keep_guarantees(session, &guarantees);
    const struct allowance own = allowance_part_by(change, false);
    allowance_change(grant, &own);
    QUOTA_FOR_EACH (i)
        session->quotas[i].limit = grant->of[i].limit;
    session->server->make_room(session, 0);
    session_touch(session);
}

void session_limits_log(const struct session *session, const char *by)
{
    const struct allowance grant = session_limits_in_force(session);
    char text[RESOURCES * 96], request[UNITS_TEXT], limit[UNITS_TEXT];
    char scalars[SCALARS * 64], value[UNITS_TEXT];
    size_t used = 0;
    for (enum resource i = 0; i < RESOURCES && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s to %s", i ? ", " : "",
                                 allowance_resource(i)->phrase,
                                 allowance_format(i, grant.of[i].request, request),
                                 allowance_format(i, grant.of[i].limit, limit));
    used = 0;
    for (enum scalar i = 0; i < SCALARS && used < sizeof scalars; i++)
        used += (size_t)snprintf(scalars + used, sizeof scalars - used, "%s%s %s", i ? ", " : "",
                                 allowance_scalar(i)->name,
                                 allowance_format_scalar(i, grant.scalar[i], value));
    session_log_about(session);
    log_info(MESSAGE_TEXT(log_client_changed), session->number, session->name, by, text,
             session->worker.multiprocessors, scalars);
}

static void worker_answered(void *context, const struct worker_answer *answer)
{
    struct limits_change *pending = context;
    struct session *session = pending->session;
    uint32_t error = answer->error;
    const char *text = answer->text;
    session->answers_due--;
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        accounting_share(session, answer->message->body);
        allowance_change(&session->grant.allowance, &pending->asked);
        set_memory(session, &pending->change);
        if (*pending->by)
            session_limits_log(session, pending->by);
        break;
    case WORKER_REFUSED:
        keep_guarantees(session, &session->grant.allowance);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        error = PROTO_ERROR_NOT_FOUND;
        text = MESSAGE_TEXT(change_client_left);
        break;
    }
    pending->done(pending->context, pending->number, error, text);
    request_end(pending->request);
    free(pending);
}

/* Asks the worker for a change whose guarantees are taken already. change: in bytes. accounts: in
 * which the client counts from now on; NULL: those that it has. */
static int ask_limits(struct session *session, const struct allowance *change,
                      const struct client_accounts *accounts, uint32_t number,
                      const struct change_asker *asker)
{
    struct limits_change *pending = calloc(1, sizeof *pending);
    struct request *request = pending ? request_make_own(session) : NULL;
    if (!request) {
        keep_guarantees(session, &session->grant.allowance);
        free(pending);
        return -ENOMEM;
    }
    *pending = (struct limits_change){.session = session,
                                      .request = request,
                                      .change = *change,
                                      .done = asker->done,
                                      .context = asker->context,
                                      .number = number};
    snprintf(pending->by, sizeof pending->by, "%s", asker->by);
    struct allowance wanted = allowance_wanted(session, change);
    pending->asked = allowance_of_worker(&wanted);
    struct proto_worker_limits body = {.allowance = allowance_to_wire(&wanted)};
    if (accounts)
        client_accounts_numbers(accounts, body.accounts);
    int result = session_ask(session, PROTO_WORKER_LIMITS, &body, worker_answered, pending);
    if (result < 0) {
        keep_guarantees(session, &session->grant.allowance);
        request_end(request);
        free(pending);
        return result;
    }
    session->limits_sent = pending->asked;
    session->answers_due++;
    return 0;
}

/* Makes a change whose guarantees are taken already. change: in bytes. */
static int change_limits(struct session *session, const struct allowance *change,
                         const struct change_asker *asker)
{
    if (!concerns_worker(change)) {
        set_memory(session, change);
        if (*asker->by)
            session_limits_log(session, asker->by);
        return 1;
    }
    return ask_limits(session, change, NULL, session->number, asker);
}

int session_limits_move(struct session *session, const struct client_accounts *accounts,
                        uint32_t number, change_done *done, void *context)
{
    return ask_limits(session, &allowance_none, accounts, number,
                      &(struct change_asker){"", done, context});
}

int session_limits_set(struct session *session, const struct allowance *change,
                       const struct change_asker *asker)
{
    struct error unused;
    struct allowance bytes = change_in_bytes(session, change);
    if (take_guarantees(session, &bytes, &unused))
        return -ENOSPC;
    return change_limits(session, &bytes, asker);
}

int session_limits_put_back(struct session *session, const struct allowance *change,
                            const struct change_asker *asker)
{
    struct allowance back = change_in_bytes(session, change);
    const struct allowance more = guarantees_with(session, &back);
    if (!session_quota_restore(session, &more)) {
        log_error(MESSAGE_TEXT(log_guarantee_lost), session->number);
        QUOTA_FOR_EACH (i)
            back.of[i].request = ALLOWANCE_UNSET;
    }
    return change_limits(session, &back, asker);
}
