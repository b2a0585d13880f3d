/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"

void session_limits_query(struct session *session, struct channel_message *message)
{
    struct proto_limits body = {
        .memory_limit = session->grant.memory_limit,
        .host_memory_limit = session->grant.host_limit,
        .thread_percentage = session->grant.thread_percentage,
        .multiprocessors = session->worker.multiprocessors,
        .priority = session->grant.priority,
        .partitioned = session->worker.partitioned,
        .thread_request = session->grant.thread_request,
        .time_request = session->grant.time_request,
        .time_limit = session->grant.time_limit,
        .mode = session->device->schedule.mode,
        .memory_request = session->grant.memory_request,
        .host_memory_request = session->grant.host_request,
    };
    session_answer(session, PROTO_LIMITS, message->header.serial, &body, NULL, 0);
}

static uint64_t memory_wanted(const struct session *session, const struct grant_change *change)
{
    if (!change->memory_share)
        return change->memory_limit;
    return limits_share(session->device->info.memory, change->memory_share);
}

static uint64_t request_wanted(const struct session *session, const struct grant_change *change)
{
    if (!change->memory_request_share)
        return change->memory_request;
    return limits_share(session->device->info.memory, change->memory_request_share);
}

static uint32_t too_much(const struct session *session, const char *what, uint64_t wanted,
                         uint64_t most, const char *reason, char *why, size_t why_size)
{
    char a[UNITS_TEXT], b[UNITS_TEXT];
    snprintf(why, why_size,
             "client %u can have at most %s (%llu bytes) of %s: %s; %s (%llu bytes) "
             "is more",
             session->number, units_format_bytes(most, a), (unsigned long long)most, what, reason,
             units_format_bytes(wanted, b), (unsigned long long)wanted);
    return PROTO_ERROR_INVALID_VALUE;
}

/* What the worker is asked for; 0 and UINT32_MAX leave alone what the change before leaves, which
 * may be on its way. */
static struct proto_worker_limits share_wanted(const struct session *session,
                                               const struct grant_change *change)
{
    struct proto_worker_limits share =
        session->sharing ? session->share
                         : (struct proto_worker_limits){
                               session->grant.thread_percentage, session->grant.priority,
                               session->grant.thread_request,    session->grant.time_request,
                               session->grant.time_limit,
                           };
    if (change->thread_percentage)
        share.thread_percentage = change->thread_percentage;
    if (change->thread_request != UINT32_MAX)
        share.thread_request = change->thread_request;
    if (change->time_request != UINT32_MAX)
        share.time_request = change->time_request;
    if (change->time_limit)
        share.time_limit = change->time_limit;
    if (change->priority != UINT32_MAX)
        share.priority = change->priority;
    return share;
}

static bool changes_share(const struct grant_change *change)
{
    return change->thread_percentage || change->thread_request != UINT32_MAX ||
           change->time_request != UINT32_MAX || change->time_limit ||
           change->priority != UINT32_MAX;
}

bool session_limits_change_empty(const struct grant_change *change)
{
    return !changes_share(change) && change->memory_limit == PROTO_UNSET && !change->memory_share &&
           change->memory_request == PROTO_UNSET && !change->memory_request_share &&
           change->host_limit == PROTO_UNSET && change->host_request == PROTO_UNSET;
}

static uint32_t above_limit(const struct session *session, const char *what, uint32_t request,
                            uint32_t limit, char *why, size_t why_size)
{
    char a[UNITS_TEXT], b[UNITS_TEXT];
    snprintf(why, why_size,
             "client %u would have a %s.request of %s%% above its %s.limit of %s%%: set both",
             session->number, what, units_format_percentage(request, a), what,
             units_format_percentage(limit, b));
    return PROTO_ERROR_INVALID_VALUE;
}

/* A guarantee must be within its limit, as both are after the change. */
static uint32_t check_request(const struct session *session, const char *what, uint64_t request,
                              uint64_t limit, char *why, size_t why_size)
{
    char a[UNITS_TEXT], b[UNITS_TEXT];
    if (request <= limit)
        return 0;
    snprintf(
        why, why_size, "client %u would have a %s.request of %s above its %s.limit of %s: set both",
        session->number, what, units_format_size(request, a), what, units_format_size(limit, b));
    return PROTO_ERROR_INVALID_VALUE;
}

/* A value that the change leaves alone stays. */
static uint64_t wanted_or_now(uint64_t wanted, uint64_t now)
{
    return wanted == PROTO_UNSET ? now : wanted;
}

/* More is taken at once, so that nobody else gets it meanwhile; less is given back when all else
 * is done. 0, or an error number with a sentence. */
static uint32_t take_guarantees(struct session *session, const struct grant_change *change,
                                char *why, size_t why_size)
{
    uint64_t memory = session->memory.guarantee, host = session->host.guarantee;
    return session_quota_guarantee(
        session, max(memory, wanted_or_now(request_wanted(session, change), memory)),
        max(host, wanted_or_now(change->host_request, host)), why, why_size);
}

/* Less than there is, or as much: there is always room. */
static void keep_guarantees(struct session *session, uint64_t memory, uint64_t host)
{
    char why[400];
    session_quota_guarantee(session, memory, host, why, sizeof why);
}

/* Whether there is room is tried, and given back. */
static uint32_t check_guarantees(struct session *session, const struct grant_change *change,
                                 char *why, size_t why_size)
{
    const struct grant *grant = &session->grant;
    uint64_t memory = session->memory.guarantee, host = session->host.guarantee;
    bool asks =
        request_wanted(session, change) != PROTO_UNSET || change->host_request != PROTO_UNSET;
    if (asks && session->sharing) {
        /* Two changes at once would leave the guarantee of the one that is answered last. */
        snprintf(why, why_size, "another change of client %u is under way: try again",
                 session->number);
        return PROTO_ERROR_NOT_READY;
    }
    uint32_t error = check_request(
        session, "memory", wanted_or_now(request_wanted(session, change), memory),
        wanted_or_now(memory_wanted(session, change), grant->memory_limit), why, why_size);
    if (!error)
        error = check_request(session, "host_memory", wanted_or_now(change->host_request, host),
                              wanted_or_now(change->host_limit, grant->host_limit), why, why_size);
    if (!error)
        error = take_guarantees(session, change, why, why_size);
    if (!error)
        keep_guarantees(session, memory, host);
    return error;
}

uint32_t session_limits_check(struct session *session, const struct grant_change *change, char *why,
                              size_t why_size)
{
    static const char window[] = "that is its window of addresses, fixed when it attached";
    uint64_t memory = memory_wanted(session, change), most = session->window.bytes;
    if (memory != PROTO_UNSET && memory > session->device->info.memory)
        return too_much(session, "device memory", memory, session->device->info.memory,
                        "that is what the device has", why, why_size);
    if (memory != PROTO_UNSET && memory > most)
        return too_much(session, "device memory", memory, most, window, why, why_size);
    if (change->host_limit != PROTO_UNSET && change->host_limit > most)
        return too_much(session, "pinned host memory", change->host_limit, most, window, why,
                        why_size);
    uint32_t error = check_guarantees(session, change, why, why_size);
    if (error)
        return error;
    struct proto_worker_limits share = share_wanted(session, change);
    if (share.thread_request > share.thread_percentage)
        return above_limit(session, "threads", share.thread_request, share.thread_percentage, why,
                           why_size);
    if (share.time_request > share.time_limit)
        return above_limit(session, "time", share.time_request, share.time_limit, why, why_size);
    return 0;
}

/* A change that the worker has to carry out first. */
struct setting {
    struct session *session;
    struct request *request; /* keeps the session until the worker has answered */
    struct grant_change change;
    struct proto_worker_limits share;
    change_done *done;
    void *context;
    char by[64];
};

static void set_memory(struct session *session, const struct grant_change *change)
{
    uint64_t request = request_wanted(session, change);
    keep_guarantees(session, wanted_or_now(request, session->memory.guarantee),
                    wanted_or_now(change->host_request, session->host.guarantee));
    if (request != PROTO_UNSET)
        session->grant.memory_request = request;
    if (change->host_request != PROTO_UNSET)
        session->grant.host_request = change->host_request;
    uint64_t memory = memory_wanted(session, change);
    if (memory != PROTO_UNSET)
        session->memory.limit = session->grant.memory_limit = memory;
    if (change->host_limit != PROTO_UNSET)
        session->host.limit = session->grant.host_limit = change->host_limit;
}

static void log_change(const struct session *session, const char *by)
{
    const struct grant *grant = &session->grant;
    char text[4][UNITS_TEXT];
    log_info("client %u '%s' has by %s: threads %s to %s %% (%u multiprocessors at most), time %s "
             "to %s %%, priority %u, %llu bytes of device memory, %llu of pinned host memory",
             session->number, session->name, by,
             units_format_percentage(grant->thread_request, text[0]),
             units_format_percentage(grant->thread_percentage, text[1]),
             session->worker.multiprocessors, units_format_percentage(grant->time_request, text[2]),
             units_format_percentage(grant->time_limit, text[3]), grant->priority,
             (unsigned long long)grant->memory_limit, (unsigned long long)grant->host_limit);
}

static void share_answered(void *context, const struct worker_answer *answer)
{
    struct setting *setting = context;
    struct session *session = setting->session;
    uint32_t error = answer->error;
    const char *text = answer->text;
    session->sharing--;
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        memcpy(&session->worker, answer->message->body, sizeof session->worker);
        session->grant.thread_percentage = setting->share.thread_percentage;
        session->grant.thread_request = setting->share.thread_request;
        session->grant.time_request = setting->share.time_request;
        session->grant.time_limit = setting->share.time_limit;
        session->grant.priority = setting->share.priority;
        set_memory(session, &setting->change);
        log_change(session, setting->by);
        break;
    case WORKER_REFUSED:
        keep_guarantees(session, session->grant.memory_request, session->grant.host_request);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        error = PROTO_ERROR_NOT_FOUND;
        text = "the client left before the change was made";
        break;
    }
    setting->done(setting->context, session->number, error, text);
    session_request_end(setting->request);
    free(setting);
}

/* The guarantees have been taken. */
static int carry_out(struct session *session, const struct grant_change *change, const char *by,
                     change_done *done, void *context)
{
    if (!changes_share(change)) {
        set_memory(session, change);
        log_change(session, by);
        return 1;
    }
    struct setting *setting = calloc(1, sizeof *setting);
    struct request *request = setting ? session_request_own(session) : NULL;
    if (!request) {
        keep_guarantees(session, session->grant.memory_request, session->grant.host_request);
        free(setting);
        return -ENOMEM;
    }
    *setting = (struct setting){.session = session,
                                .request = request,
                                .change = *change,
                                .done = done,
                                .context = context};
    snprintf(setting->by, sizeof setting->by, "%s", by);
    setting->share = share_wanted(session, change);
    int result =
        session_ask(session, PROTO_WORKER_LIMITS, &setting->share, share_answered, setting);
    if (result < 0) {
        keep_guarantees(session, session->grant.memory_request, session->grant.host_request);
        session_request_end(request);
        free(setting);
        return result;
    }
    session->share = setting->share;
    session->sharing++;
    return 0;
}

int session_limits_set(struct session *session, const struct grant_change *change, const char *by,
                       change_done *done, void *context)
{
    char why[400];
    if (take_guarantees(session, change, why, sizeof why))
        return -ENOSPC;
    return carry_out(session, change, by, done, context);
}

int session_limits_put_back(struct session *session, const struct grant_change *change,
                            const char *by, change_done *done, void *context)
{
    struct grant_change back = *change;
    uint64_t memory = session->memory.guarantee, host = session->host.guarantee;
    if (!session_quota_restore(session,
                               max(memory, wanted_or_now(request_wanted(session, change), memory)),
                               max(host, wanted_or_now(change->host_request, host)))) {
        log_error(
            "client %u: its guarantee of before can't be restored: other clients have the memory",
            session->number);
        back.memory_request = back.host_request = PROTO_UNSET;
        back.memory_request_share = 0;
    }
    return carry_out(session, &back, by, done, context);
}
