/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/calls/activity.h"
#include "server/worker/control/control_attach.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_client.h"
#include "server/worker/control/control_retire.h"
#include "server/worker/control/control_memory.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/control_module.h"
#include "server/worker/control/control_kept.h"
#include "server/worker/control/control_limits.h"
#include "server/worker/control/control_stream.h"
#include "server/worker/control/control_trace.h"
#include "server/worker/control/reply.h"

/* ---- what had to wait ---- */

static int progress_client(struct worker *worker, struct client *client)
{
    struct proto_worker_misbehaved misbehaved = {0};
    bool tell = false, gone;
    client_lock(client);
    if (client_state(client) == CLIENT_VIOLATED) {
        client_state_set(client, CLIENT_REPORTED);
        tell = true;
        misbehaved.error = client->shared.violation.number;
        snprintf(misbehaved.text, sizeof misbehaved.text, "%.*s", (int)sizeof misbehaved.text - 1,
                 client->shared.violation.text);
    }
    pthread_mutex_unlock(&client->lock);
    if (tell) {
        int error = reply_send(worker, PROTO_WORKER_MISBEHAVED, 0, client->number, &misbehaved);
        if (error < 0)
            return error;
    }
    int error = control_retire_finish(worker, client);
    if (error < 0)
        return error;
    error = control_attach_finish(worker, client);
    if (error < 0)
        return error;
    error = control_stream_finish(worker, client);
    if (error < 0)
        return error;
    client_lock(client);
    gone = client_state(client) == CLIENT_LEFT && !client->control.loading &&
           !client->control.calling && queue_is_empty(&client->control.ready) &&
           queue_is_empty(&client->shared.frees) && !client->control.deferred &&
           client_is_quiet(client);
    pthread_mutex_unlock(&client->lock);
    if (gone)
        control_client_leave(worker, client);
    return 0;
}

int control_progress(struct worker *worker)
{
    int collected = control_module_finish(worker);
    if (collected < 0)
        return collected;
    collected = control_quiet_finish(worker);
    if (collected < 0)
        return collected;
    collected = control_call_finish(worker);
    if (collected < 0)
        return collected;
    if (!control_quiet_grow(worker))
        return -ENOMEM;
    /* Backwards: a client that is gone gives its place to the last one, which was looked at. */
    for (uint32_t i = worker->client_count; i-- > 0;) {
        activity_beat();
        int error = progress_client(worker, worker->clients[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

/* ---- which message ---- */

/* Also to worker_serve: this worker serves. */
static int answer_beat(struct request *request)
{
    return request_done(request);
}

struct handler {
    uint16_t opcode;
    int (*handle)(struct request *request);
};

/* A message about no client, or about one that may not be known. */
static const struct handler worker_handlers[] = {
    {PROTO_WORKER_ATTACH, control_attach},
    {PROTO_WORKER_BEAT, answer_beat},
    {PROTO_WORKER_LEDGER, control_attach_ledger},
    {PROTO_WORKER_SERVE, answer_beat},
    {PROTO_WORKER_MEMORY_QUERY, control_memory_available},
    {PROTO_WORKER_SCHEDULE, control_limits_schedule},
    {PROTO_WORKER_ACCOUNT, control_limits_account},
    {PROTO_WORKER_HOST_DROP, control_kept_drop},
    {PROTO_WORKER_TRACE_START, control_trace_start},
    {PROTO_WORKER_TRACE_STOP, control_trace_stop},
};

static const struct handler client_handlers[] = {
    {PROTO_WORKER_WINDOW, control_client_window},
    {PROTO_WORKER_DETACH, control_client_detach},
    {PROTO_WORKER_RESUME, control_attach_resume},
    {PROTO_WORKER_LIMITS, control_limits_change},
    {PROTO_WORKER_MAP, control_memory_map},
    {PROTO_WORKER_REMAP, control_memory_remap},
    {PROTO_WORKER_UNMAP, control_memory_unmap},
    {PROTO_WORKER_QUIESCE, control_memory_quiesce},
    {PROTO_WORKER_HOST_MAP, control_memory_host_map},
    {PROTO_WORKER_HOST_UNMAP, control_memory_host_unmap},
    {PROTO_WORKER_HOST_KEEP, control_memory_host_keep},
    {PROTO_WORKER_HOST_LEND, control_kept_lend},
    {PROTO_WORKER_LINK, control_client_link},
    {PROTO_WORKER_RINGS, control_client_rings},
    {PROTO_WORKER_MODULE_INSPECT, control_module_inspect},
    {PROTO_WORKER_MODULE_LOAD, control_module_load},
    {PROTO_WORKER_MODULE_LOST, control_module_lost},
    {PROTO_WORKER_FUNCTION_LOST, control_function_lost},
    {PROTO_WORKER_USAGE_QUERY, control_client_usage},
    {PROTO_MODULE_UNLOAD, control_module_unload},
    {PROTO_FUNCTION_GET, control_function_get},
    {PROTO_FUNCTION_SET, control_function_set},
    {PROTO_GLOBAL_GET, control_global_get},
    {PROTO_OCCUPANCY_GET, control_occupancy_get},
    {PROTO_STREAM_CREATE, control_stream_create},
    {PROTO_STREAM_DESTROY, control_stream_destroy},
    {PROTO_STREAM_RECOVER, control_stream_recover},
    {PROTO_EVENT_CREATE, control_event_create},
    {PROTO_EVENT_DESTROY, control_event_destroy},
    {PROTO_EVENT_ELAPSED, control_event_elapsed},
};

#define HANDLERS(table) table, sizeof(table) / sizeof *(table)

static const struct handler *find_handler(uint16_t opcode, const struct handler *handlers,
                                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (handlers[i].opcode == opcode)
            return &handlers[i];
    return NULL;
}

int control_handle(struct worker *worker, struct channel_message *message)
{
    struct request request = {
        .worker = worker,
        .message = message,
        .body = message->body,
        .serial = message->header.serial,
        .number = message->header.client,
    };
    uint16_t opcode = message->header.opcode;
    worker->epoch = max(worker->epoch, request.serial >> PROTO_EPOCH_SHIFT);
    const struct handler *handler = find_handler(opcode, HANDLERS(worker_handlers));
    if (handler)
        return handler->handle(&request);
    request.client = worker_find_client(worker, request.number);
    if (!request.client && opcode == PROTO_WORKER_DETACH && control_attach_detach(&request))
        return 0;
    /* Of a client that leaves no more is asked than what keeps it. */
    bool for_leaving = opcode == PROTO_WORKER_DETACH || opcode == PROTO_WORKER_USAGE_QUERY;
    if (!request.client || (client_state_is_leaving(client_state(request.client)) && !for_leaving))
        return request_refuse(&request, MESSAGE(worker_client_unknown), request.number);
    handler = find_handler(opcode, HANDLERS(client_handlers));
    return handler ? handler->handle(&request)
                   : request_refuse(&request, MESSAGE(worker_message_unknown), (unsigned)opcode);
}

/* ---- the channel ---- */

/* Receives and handles one message. Returns 0 to go on. */
static int serve_channel(struct worker *worker, struct channel_message *message)
{
    int error = channel_receive(worker->channel, PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR, message);
    if (error == CHANNEL_EMPTY)
        return 0;
    if (error == CHANNEL_CLOSED)
        return CONTROL_SUPERVISOR_GONE;
    if (error == -EPROTO) {
        struct error why;
        log_error(MESSAGE_TEXT(supervisor_message), message->why);
        error_set(&why, MESSAGE(protocol_broken), message->why);
        return reply_refuse(worker, message->header.serial, message->header.client, &why);
    }
    if (error < 0)
        return error;
    error = control_handle(worker, message);
    channel_close_fds(message);
    return error;
}

/* How often the control thread looks whether a request has waited long enough for a partition, or a
 * partition that could not be made can be made now. */
#define PLACES_MS 10

/* How often it looks whether it is an orphan. */
#define ORPHAN_LOOK_MS 250

/* A supervisor asks now and then. The socket of one that was killed stays open where a service
 * manager keeps it for the next. */
static bool is_orphan(const struct worker *worker, uint64_t heard)
{
    if (!worker->orphan_ns || clock_now() - heard < worker->orphan_ns)
        return false;
    log_warning(MESSAGE_TEXT(orphaned), (unsigned)(worker->orphan_ns / UNITS_SECOND));
    return true;
}

static int serve_messages(struct worker *worker, struct channel_message *message)
{
    struct pollfd polled[2] = {{.fd = worker->channel, .events = POLLIN},
                               {.fd = worker->wake.control_event, .events = POLLIN}};
    uint64_t heard = clock_now();
    for (;;) {
        int error;
        activity_beat();
        bool again = control_limits_finish(worker, &error);
        int wait = again ? PLACES_MS : worker->orphan_ns ? ORPHAN_LOOK_MS : -1;
        if (error >= 0 && poll(polled, 2, wait) < 0 && errno != EINTR)
            return -errno;
        if (polled[0].revents)
            heard = clock_now();
        else if (is_orphan(worker, heard))
            return CONTROL_SUPERVISOR_GONE;
        if (atomic_load(&worker->failed))
            return CONTROL_CONTEXT_LOST;
        if (!error && polled[1].revents & POLLIN) {
            wake_control_taken(&worker->wake);
            error = control_progress(worker);
        }
        if (!error && polled[0].revents & (POLLIN | POLLHUP | POLLERR))
            error = serve_channel(worker, message);
        /* Again: the request may have been the call that found the context lost. */
        if (atomic_load(&worker->failed))
            return CONTROL_CONTEXT_LOST;
        if (error == -EPIPE || error == -ECONNRESET)
            return CONTROL_SUPERVISOR_GONE;
        if (error)
            return error;
    }
}

int control_serve(struct worker *worker)
{
    struct channel_message *message = malloc(sizeof *message);
    if (!message)
        return -ENOMEM;
    int result = reply_send(worker, PROTO_KERNEL_HEAP, 0, 0, &worker->gpu.heap);
    if (result == 0)
        result = reply_send(worker, PROTO_DEVICE_INFO, 0, 0, &worker->gpu.info);
    if (result == 0)
        result = serve_messages(worker, message);
    free(message);
    return result;
}
