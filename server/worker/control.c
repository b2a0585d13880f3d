/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "server/worker/control_client.h"

static int progress_client(struct worker *worker, struct client *client)
{
    struct proto_worker_misbehaved misbehaved = {0};
    bool tell = false, gone;
    pthread_mutex_lock(&client->lock);
    if (client->violated) {
        client->violated = false;
        tell = true;
        misbehaved.error = client->violation;
        memcpy(misbehaved.text, client->violation_text, sizeof misbehaved.text);
    }
    pthread_mutex_unlock(&client->lock);
    if (tell) {
        log_warning("%s", misbehaved.text);
        int error = control_send(worker, PROTO_WORKER_MISBEHAVED, 0, client->number, &misbehaved);
        if (error < 0)
            return error;
    }
    int error = control_finish_frees(worker, client);
    if (error < 0)
        return error;
    control_finish_streams(worker, client);
    pthread_mutex_lock(&client->lock);
    gone = client->detaching && !client->loading && !client->frees && client_is_quiet(client) &&
           __atomic_load_n(&client->left, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&client->lock);
    if (!gone)
        return 0;
    uint32_t number = client->number, serial = client->detach_serial;
    struct proto_worker_usage used;
    control_client_usage(worker, client, &used);
    control_drop_client(worker, client);
    return control_send(worker, PROTO_WORKER_USAGE, serial, number, &used);
}

int control_progress(struct worker *worker)
{
    int collected = control_finish_loads(worker);
    if (collected < 0)
        return collected;
    for (uint32_t i = worker->client_count; i-- > 0;) {
        int error = progress_client(worker, worker->clients[i]);
        if (error < 0)
            return error;
    }
    return 0;
}

static void drain(int event)
{
    uint64_t count;
    ssize_t got = read(event, &count, sizeof count);
    (void)got;
}

/* Returns 0 to go on. */
static int serve_channel(struct worker *worker, struct channel_message *message)
{
    int error = channel_receive(worker->channel, PROTO_PEER_WORKER, PROTO_PEER_SUPERVISOR, message);
    if (error == CHANNEL_EMPTY)
        return 0;
    if (error == CHANNEL_CLOSED)
        return CONTROL_SUPERVISOR_GONE;
    if (error == -EPROTO) {
        log_error("the supervisor sent what the protocol does not allow: %s", message->why);
        return channel_send_failed(worker->channel, message->header.serial, message->header.client,
                                   PROTO_ERROR_PROTOCOL_VIOLATION, "%s", message->why);
    }
    if (error < 0)
        return error;
    error = control_handle(worker, message);
    channel_close_fds(message);
    return error;
}

/* How often it looks whether a partition that nobody has is drained, or one can be made now. */
#define PLACES_MS 10

static int serve(struct worker *worker, struct channel_message *message)
{
    struct pollfd polled[2] = {{.fd = worker->channel, .events = POLLIN},
                               {.fd = worker->control_event, .events = POLLIN}};
    for (;;) {
        if (poll(polled, 2, control_finish_places(worker) ? PLACES_MS : -1) < 0 && errno != EINTR)
            return -errno;
        if (__atomic_load_n(&worker->failed, __ATOMIC_SEQ_CST))
            return CONTROL_CONTEXT_LOST;
        int error = 0;
        if (polled[1].revents & POLLIN) {
            drain(worker->control_event);
            error = control_progress(worker);
        }
        if (!error && polled[0].revents & (POLLIN | POLLHUP | POLLERR))
            error = serve_channel(worker, message);
        if (__atomic_load_n(&worker->failed, __ATOMIC_SEQ_CST))
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
    int result = control_send(worker, PROTO_DEVICE_INFO, 0, 0, &worker->device.info);
    if (result == 0)
        result = serve(worker, message);
    free(message);
    if (result != CONTROL_CONTEXT_LOST)
        worker_end_clients(worker, PROTO_ERROR_CONNECTION_LOST);
    return result;
}
