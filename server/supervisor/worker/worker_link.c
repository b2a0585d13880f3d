/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/worker_link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/error.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/worker/worker_requests.h"

/* A worker that lets so many bytes wait is stuck: it reads nothing. */
#define SEND_QUEUE_BYTES_MAX (UINT64_C(64) << 20)

/* Number of messages taken in a row before the loop looks at other descriptors. */
#define BATCH 64

struct worker_link {
    uv_poll_t poll;
    int fd;
    bool closing;
    bool failed;         /* takes no more requests: what the worker has sent is read, then `lost` */
    const char *trouble; /* why it failed; NULL: the worker hung up */
    struct send_queue send_queue;
    struct worker_link_events events;
    struct worker_requests requests;
    uint64_t base; /* smaller serials, and this one, were an earlier supervisor's */
    struct channel_message message;
};

static void link_ready(uv_poll_t *poll, int status, int events);

static void poll_again(struct worker_link *link)
{
    bool writes = !link->failed && send_queue_waiting(&link->send_queue);
    int events = UV_READABLE | (writes ? UV_WRITABLE : 0);
    uv_poll_start(&link->poll, events, link_ready);
}

int worker_link_open(struct worker_link **out, uv_loop_t *loop, int fd,
                     const struct worker_link_events *events)
{
    *out = NULL;
    struct worker_link *link = calloc(1, sizeof *link);
    int result = -ENOMEM;
    if (!link)
        goto close_fd;
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
        result = -errno;
        goto free_link;
    }
    link->fd = fd;
    link->events = *events;
    send_queue_open(&link->send_queue, fd, SEND_QUEUE_BYTES_MAX);
    result = uv_poll_init(loop, &link->poll, fd);
    if (result < 0)
        goto free_link;
    link->poll.data = link;
    poll_again(link);
    *out = link;
    return 0;

free_link:
    free(link);
close_fd:
    close(fd);
    return result;
}

void worker_link_begin(struct worker_link *link, uint64_t base, struct send_hold *hold)
{
    link->base = base;
    link->requests.last = max(link->requests.last, base);
    link->send_queue.hold = hold;
}

int worker_link_fd(const struct worker_link *link)
{
    return link->fd;
}

void worker_link_redirect(struct worker_link *link, const struct worker_link_events *events)
{
    link->events = *events;
}

static void link_closed(uv_handle_t *handle)
{
    struct worker_link *link = handle->data;
    close(link->fd);
    worker_requests_close(&link->requests);
    free(link);
}

/* A message with a request's serial may be its answer, a refusal, or no answer to it. */
static void request_answer(struct worker_link *link, struct worker_request_row *row,
                           struct channel_message *message)
{
    const struct proto_message *asked = proto_message_find(row->opcode);
    struct worker_answer answer = {.outcome = WORKER_REFUSED, .error = PROTO_ERROR_UNKNOWN};
    struct proto_failed failed;
    struct error why;
    if (message->header.opcode == asked->reply) {
        answer = (struct worker_answer){.outcome = WORKER_ANSWERED, .message = message, .text = ""};
    } else if (message->header.opcode == PROTO_FAILED) {
        memcpy(&failed, message->body, sizeof failed);
        if (failed.error)
            answer.error = failed.error;
        answer.text = failed.text;
    } else {
        error_set(&why, MESSAGE(worker_link_wrong_answer), message->type->name, asked->name);
        answer.text = why.text;
    }
    if (row->opcode == PROTO_WORKER_DETACH)
        worker_requests_forget(&link->requests, row->client);
    worker_requests_end(&link->requests, row, &answer);
}

void worker_link_close(struct worker_link *link,
                       bool (*take)(void *context, const struct worker_request_row *row),
                       void *context)
{
    if (!link || link->closing)
        return;
    link->closing = true;
    uint64_t serial = 0;
    struct worker_request_row *row;
    while ((row = worker_requests_after(&link->requests, serial))) {
        serial = row->serial;
        if (row->packet && take(context, row))
            worker_requests_remove(&link->requests, row);
        else
            worker_requests_end(&link->requests, row, &worker_answer_lost);
    }
    assert(link->requests.outstanding == 0);
    send_queue_close(&link->send_queue);
    uv_poll_stop(&link->poll);
    /* The worker sees the end at once, and not when the loop closes the descriptor. */
    shutdown(link->fd, SHUT_RDWR);
    uv_close((uv_handle_t *)&link->poll, link_closed);
}

void worker_link_finish(struct worker_link *link)
{
    /* Messages that are queued in the socket can still be received after this. */
    shutdown(link->fd, SHUT_RDWR);
}

static bool peer_is_gone(int result)
{
    return result == -EPIPE || result == -ECONNRESET;
}

/* The link's callback `lost` follows from the loop: the caller is in the middle of its own work,
 * and the worker may have said why it ends. */
static void link_fail(struct worker_link *link, int result)
{
    if (!link->failed)
        link->trouble = peer_is_gone(result) ? NULL : MESSAGE_TEXT(worker_link_stuck);
    link->failed = true;
    shutdown(link->fd, SHUT_RDWR);
}

/* The link owns `copy` if 0 is returned. */
static int request_send(struct worker_link *link, const struct channel_packet *request,
                        struct channel_packet *copy, worker_link_reply *reply, void *context)
{
    if (link->closing)
        return -EPIPE;
    int result = worker_requests_reserve(&link->requests);
    if (result == -ENOBUFS)
        link_fail(link, result);
    if (result < 0)
        return result;
    struct channel_packet packet = *request;
    packet.serial = worker_requests_next(&link->requests);
    if (!link->failed)
        result = send_queue_send(&link->send_queue, &packet);
    /* Why the worker ended is known when its last messages have been read: until then the request
     * waits, and its client is told that reason. */
    if (peer_is_gone(result) || result == -ENOBUFS)
        link_fail(link, result);
    /* If only this request lacked something (a descriptor, memory), the link stays as it was. */
    else if (result < 0)
        return result;
    worker_requests_add(&link->requests, (struct worker_request_row){.client = request->client,
                                                                     .opcode = request->opcode,
                                                                     .reply = reply,
                                                                     .context = context,
                                                                     .packet = copy});
    if (result == SEND_QUEUE_QUEUED)
        poll_again(link);
    return 0;
}

int worker_link_request(struct worker_link *link, const struct channel_packet *request,
                        worker_link_reply *reply, void *context)
{
    return request_send(link, request, NULL, reply, context);
}

int worker_link_request_again(struct worker_link *link, const struct channel_packet *request,
                              worker_link_reply *reply, void *context)
{
    struct channel_packet *copy = channel_packet_copy(request);
    int result = copy ? request_send(link, request, copy, reply, context) : -ENOMEM;
    if (result < 0)
        free(copy);
    return result;
}

void worker_link_cancel(struct worker_link *link, uint32_t client)
{
    /* A callback may add requests for other clients and so move the rows: each is looked up anew.
     */
    struct worker_request_row *row = worker_requests_after(&link->requests, 0);
    while (row) {
        uint64_t serial = row->serial;
        if (row->client == client && !row->cancelled) {
            worker_link_reply *reply = row->reply;
            void *context = row->context;
            worker_requests_cancel(&link->requests, row);
            if (reply)
                reply(context, &worker_answer_session_ended);
        }
        row = worker_requests_after(&link->requests, serial);
    }
}

uint32_t worker_link_outstanding(const struct worker_link *link)
{
    return link->requests.outstanding;
}

/* Handles one message. Returns NULL, or how the worker broke the protocol. */
static const char *message_take(struct worker_link *link)
{
    struct channel_message *message = &link->message;
    uint64_t serial = message->header.serial;
    if (serial == 0) {
        link->events.notice(link->events.context, message);
        return NULL;
    }
    struct worker_request_row *row = worker_requests_find(&link->requests, serial);
    if (!row && serial <= link->base)
        return NULL;
    if (!row || row->client != message->header.client)
        return MESSAGE_TEXT(worker_link_unasked);
    if (row->cancelled && row->opcode != PROTO_WORKER_DETACH)
        worker_requests_remove(&link->requests, row);
    else
        request_answer(link, row, message);
    return NULL;
}

static void link_lost(struct worker_link *link, const char *why)
{
    link->failed = true;
    uv_poll_stop(&link->poll);
    link->events.lost(link->events.context, why);
}

/* Tries twice: an error of the socket, left by a worker that died with requests unread, is reported
 * once and hides the worker's last messages. */
static int link_receive(struct worker_link *link)
{
    int result =
        channel_receive(link->fd, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER, &link->message);
    if (result == CHANNEL_CLOSED)
        result =
            channel_receive(link->fd, PROTO_PEER_SUPERVISOR, PROTO_PEER_WORKER, &link->message);
    return result;
}

static void link_ready(uv_poll_t *poll, int status, int events)
{
    struct worker_link *link = poll->data;
    /* A worker that died with requests unread leaves an error on the socket (status < 0), which is
     * reported once, before its last words. */
    if (status < 0)
        link_fail(link, -ECONNRESET);
    for (unsigned i = 0; ((events & UV_READABLE) || link->failed) && i < BATCH && !link->closing;
         i++) {
        int result = link_receive(link);
        if (result == CHANNEL_EMPTY)
            break;
        if (result != 0) {
            link_lost(link, result == CHANNEL_CLOSED ? link->trouble
                            : result == -EPROTO      ? link->message.why
                                                     : strerror(-result));
            return;
        }
        const char *fault = message_take(link);
        channel_close_fds(&link->message);
        if (fault) {
            link_lost(link, fault);
            return;
        }
    }
    if (link->closing)
        return;
    int flushed = link->failed ? 0 : send_queue_flush(&link->send_queue);
    if (flushed < 0)
        link_fail(link, flushed);
    poll_again(link);
}
