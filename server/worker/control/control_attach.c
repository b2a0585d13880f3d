/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control/control_attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/ipc/doorbell.h"
#include "common/ipc/ring.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/control/control_call.h"
#include "server/worker/control/control_limits.h"
#include "server/worker/control/control_quiet.h"
#include "server/worker/control/reply.h"

struct attach_call {
    struct control_call control;
    struct proto_worker_attach wanted;
    uint32_t error;
    struct error why;
};

static struct client *find_attaching(const struct worker *worker, uint32_t number)
{
    struct client *client = worker->attaching;
    while (client && client->number != number)
        client = client->control.next_attaching;
    return client;
}

static void forget_attaching(struct worker *worker, const struct client *client)
{
    struct client **link = &worker->attaching;
    while (*link != client)
        link = &(*link)->control.next_attaching;
    *link = client->control.next_attaching;
}

/* Has the client's rings read from now on, or, of one that is restored, when it has all its objects
 * again. */
static int begin_serving(struct worker *worker, struct client *client)
{
    if (!client->control.restoring)
        return submitter_add(&worker->submitter, client);
    client_lock(client);
    client_state_set(client, CLIENT_RESTORING);
    pthread_mutex_unlock(&client->lock);
    return 0;
}

/* Makes a client known to the other threads. Returns 0 or -errno. */
static int show_client(struct worker *worker, struct client *client)
{
    int error = worker_add_client(worker, client);
    stream_pool_join(&worker->pool, client);
    control_limits_assign_priorities(worker);
    if (error == 0)
        error = begin_serving(worker, client);
    if (error == 0)
        return 0;
    worker_remove_client(worker, client);
    stream_pool_forget(&worker->pool, client);
    control_limits_assign_priorities(worker);
    return error;
}

/* Registered memory is given back in a quiet window. */
static int destroy_unserved(struct worker *worker, struct client *client,
                            struct retirement *request)
{
    struct proto_worker_usage used = {0};
    uint64_t serial = client->control.detach_serial;
    uint32_t number = client->number;
    (void)request;
    client_destroy(client);
    return serial ? reply_send(worker, PROTO_WORKER_USAGE, serial, number, &used) : 0;
}

static int leave_unserved(struct worker *worker, struct client *client)
{
    if (!client_is_registered(client))
        return destroy_unserved(worker, client, NULL);
    control_quiet_leave(worker, client, destroy_unserved);
    return 0;
}

static uint32_t serve_client(struct worker *worker, struct client *client,
                             const struct proto_worker_attach *wanted, struct error *why)
{
    if (!client->control.restoring)
        usage_ledger_settle(&worker->ledger, worker);
    uint32_t error = control_limits_take(worker, client, wanted, why);
    if (error)
        return error;
    if (client->control.restoring)
        usage_ledger_give(&worker->ledger, worker, client);
    int shown = show_client(worker, client);
    if (shown == 0)
        return 0;
    control_limits_give_back(worker, client);
    return error_set(why, error_from_errno(shown), MESSAGE_TEXT(worker_attach), strerror(-shown));
}

static bool make_attach(struct driver_call *driver_call)
{
    struct attach_call *call = container_of(driver_call, struct attach_call, control.call);
    call->error = client_register(call->control.request.client, &call->why);
    return false;
}

static int end_attach(struct control_call *control)
{
    struct attach_call *call = container_of(control, struct attach_call, control);
    struct worker *worker = control->request.worker;
    struct client *client = control->request.client;
    forget_attaching(worker, client);
    if (client->control.detached)
        return leave_unserved(worker, client);
    if (!call->error)
        call->error = serve_client(worker, client, &call->wanted, &call->why);
    if (!call->error)
        return control_limits_answer(&control->request, client,
                                     &(struct limits_answer){.attach = true});
    int left = leave_unserved(worker, client);
    return left < 0 ? left : request_refuse_why(&control->request, &call->why);
}

/* ---- another supervisor ---- */

/* Whether the request is of a supervisor which took over while this worker served. */
static bool is_of_another(const struct worker *worker, uint64_t serial)
{
    return worker->epoch && serial >> PROTO_EPOCH_SHIFT == worker->epoch;
}

struct attach_again {
    uint64_t serial;
    struct proto_worker_limits limits;
};

int control_attach_finish(struct worker *worker, struct client *client)
{
    struct attach_again *again = client->control.again;
    if (!again || client->control.loading || client->control.calling)
        return 0;
    client->control.again = NULL;
    client->control.forgiving = true;
    struct request request = {.worker = worker,
                              .client = client,
                              .body = &again->limits,
                              .serial = again->serial,
                              .number = client->number};
    int result = control_limits_change(&request);
    free(again);
    return result;
}

/* Requests that the supervisor before had asked for are answered before: to nobody, since this one
 * has other serials. */
static int attach_again(struct request *request, struct client *client)
{
    const struct proto_worker_attach *wanted = request->body;
    if (client_state_is_leaving(client_state(client)))
        return request_refuse(request, MESSAGE(worker_client_exists), request->number);
    /* A third supervisor takes the place of the second, which is not answered any more. */
    struct attach_again *again = client->control.again;
    if (!again)
        again = calloc(1, sizeof *again);
    if (!again)
        return request_refuse(request, MESSAGE(worker_no_memory));
    again->serial = request->serial;
    again->limits.allowance = wanted->allowance;
    memcpy(again->limits.accounts, wanted->accounts, sizeof again->limits.accounts);
    client->control.again = again;
    return control_attach_finish(request->worker, client);
}

int control_attach_ledger(struct request *request)
{
    int fd = channel_take_fd(request->message, 0);
    int result = usage_ledger_open(&request->worker->ledger, request->worker, fd);
    if (result == 0)
        return request_done(request);
    close(fd);
    return request_refuse(request, error_from_errno(result), MESSAGE_TEXT(worker_ledger),
                          strerror(-result));
}

int control_attach(struct request *request)
{
    struct worker *worker = request->worker;
    const struct proto_worker_attach *wanted = request->body;
    struct error why;
    struct client *known = worker_find_client(worker, request->number);
    struct client *attaching = find_attaching(worker, request->number);
    if (known && is_of_another(worker, request->serial))
        return attach_again(request, known);
    if (attaching && is_of_another(worker, request->serial)) {
        attaching->control.attaching->serial = request->serial;
        return 0;
    }
    if (known || attaching)
        return request_refuse(request, MESSAGE(worker_client_exists), request->number);
    int fds[4];
    for (unsigned i = 0; i < 4; i++)
        fds[i] = channel_take_fd(request->message, i);
    uint32_t error =
        client_create(&request->client, &worker->gpu, request->number, wanted, fds, &why);
    if (error)
        return request_refuse_why(request, &why);
    struct attach_call *call = control_call_new(request, sizeof *call, make_attach, end_attach);
    request->client->control.last_call = calloc(1, sizeof(struct control_call));
    if (!call || !request->client->control.last_call) {
        free(call);
        client_destroy(request->client);
        return request_refuse(request, MESSAGE(worker_no_memory));
    }
    call->wanted = *wanted;
    request->client->control.attaching = &call->control.request;
    call->control.call.caller.owner = request->client->control.owner = wanted->owner;
    request->client->control.next_attaching = worker->attaching;
    worker->attaching = request->client;
    control_call_leave(&call->control);
    return 0;
}

/* The commands in its rings were rung for at the last worker, and its threads may sleep until there
 * is room, or for a value that this worker is to reach. */
static void look_at_rings(struct client *client)
{
    struct proto_client_header *header = ring_client_header(client->rings.base);
    for (uint32_t i = 0; i < client->stream_count; i++) {
        if (client->streams[i].state == STREAM_FREE)
            continue;
        ring_wake_room(&client->streams[i].ring);
        doorbell_mark(header, i);
    }
}

int control_attach_resume(struct request *request)
{
    struct client *client = request->client;
    if (client_state(client) != CLIENT_RESTORING && client->control.forgiving)
        return request_done(request);
    if (client_state(client) != CLIENT_RESTORING)
        return request_refuse(request, MESSAGE(worker_client_resumed), request->number);
    client->control.restoring = false;
    gate_carry_resume(&request->worker->gate, client);
    look_at_rings(client);
    /* Before the submitter reads the rings: what it hands over comes later in the trace. */
    trace_add_recovery(&request->worker->trace, client->number);
    int error = submitter_add(&request->worker->submitter, client);
    if (error < 0)
        return request_refuse(request, error_from_errno(error), MESSAGE_TEXT(worker_attach),
                              strerror(-error));
    return request_done(request);
}

bool control_attach_detach(const struct request *request)
{
    struct client *client = find_attaching(request->worker, request->number);
    if (!client || client->control.detached)
        return false;
    client->control.detached = true;
    client->control.detach_serial = request->serial;
    return true;
}

void control_attach_give_up(struct worker *worker)
{
    struct client *client = worker->attaching;
    for (; client; client = client->control.next_attaching)
        client->control.detached = true;
}
