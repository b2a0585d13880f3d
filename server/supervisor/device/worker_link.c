/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/worker_link.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"

/* A worker that reads nothing for so long is stuck; its clients then find out by their own waits.
 */
#define SEND_QUEUE_BYTES_MAX (UINT64_C(64) << 20)

/* A serial is the slot in the low bits and its turn above; 0 is never one. */
#define SLOT_BITS 20
#define SLOTS_MAX (UINT32_C(1) << SLOT_BITS)
#define TURN_MASK ((UINT32_C(1) << (32 - SLOT_BITS)) - 1)

/* Messages taken in a row before the loop looks at others again. */
#define BATCH 64

struct slot {
    bool taken;
    uint16_t opcode; /* of the request */
    uint32_t turn;
    uint32_t client;
    uint32_t next_free; /* index + 1 */
    worker_link_reply *reply;
    void *context;
};

struct worker_link {
    uv_poll_t poll;
    int fd;
    bool closing;
    bool failed;
    struct send_queue send_queue;
    struct worker_link_events events;
    struct slot *slots;
    uint32_t slot_count, free_first, outstanding;
    struct channel_message message;
};

static void link_ready(uv_poll_t *poll, int status, int events);

static void poll_again(struct worker_link *link)
{
    int events = UV_READABLE | (send_queue_waiting(&link->send_queue) ? UV_WRITABLE : 0);
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

static void link_closed(uv_handle_t *handle)
{
    struct worker_link *link = handle->data;
    close(link->fd);
    free(link->slots);
    free(link);
}

/* Takes the slot back first: the callback may make the next request. */
static void slot_end(struct worker_link *link, uint32_t index, const struct worker_answer *answer)
{
    struct slot *slot = &link->slots[index];
    worker_link_reply *reply = slot->reply;
    void *context = slot->context;
    slot->taken = false;
    slot->next_free = link->free_first;
    link->free_first = index + 1;
    link->outstanding--;
    if (reply)
        reply(context, answer);
}

/* What came as the answer to a request may be a refusal, or nothing that answers it. */
static void slot_answer(struct worker_link *link, uint32_t index, struct channel_message *message)
{
    const struct proto_message *asked = proto_message_find(link->slots[index].opcode);
    struct worker_answer answer = {.outcome = WORKER_REFUSED, .error = PROTO_ERROR_UNKNOWN};
    struct proto_failed failed;
    char text[160];
    if (message->header.opcode == asked->reply) {
        answer = (struct worker_answer){.outcome = WORKER_ANSWERED, .message = message, .text = ""};
    } else if (message->header.opcode == PROTO_FAILED) {
        memcpy(&failed, message->body, sizeof failed);
        if (failed.error)
            answer.error = failed.error;
        answer.text = failed.text;
    } else {
        snprintf(text, sizeof text, "the worker answered with %s, which is no answer to %s",
                 message->type->name, asked->name);
        answer.text = text;
    }
    slot_end(link, index, &answer);
}

void worker_link_close(struct worker_link *link)
{
    if (!link || link->closing)
        return;
    link->closing = true;
    static const struct worker_answer lost = {.outcome = WORKER_LOST,
                                              .error = PROTO_ERROR_WORKER_LOST,
                                              .text = "the worker ended before it had answered"};
    for (uint32_t i = 0; i < link->slot_count; i++)
        if (link->slots[i].taken)
            slot_end(link, i, &lost);
    assert(link->outstanding == 0);
    send_queue_close(&link->send_queue);
    uv_poll_stop(&link->poll);
    /* The worker sees the end now, not when the loop comes round. */
    shutdown(link->fd, SHUT_RDWR);
    uv_close((uv_handle_t *)&link->poll, link_closed);
}

void worker_link_finish(struct worker_link *link)
{
    /* What is queued can still be received after this. */
    shutdown(link->fd, SHUT_RDWR);
}

static int slots_grow(struct worker_link *link)
{
    uint32_t count = link->slot_count ? link->slot_count * 2 : 64;
    if (count > SLOTS_MAX)
        return -ENOBUFS;
    struct slot *slots = realloc(link->slots, count * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    memset(slots + link->slot_count, 0, (count - link->slot_count) * sizeof *slots);
    for (uint32_t i = count; i-- > link->slot_count;) {
        slots[i].next_free = link->free_first;
        link->free_first = i + 1;
    }
    link->slots = slots;
    link->slot_count = count;
    return 0;
}

/* The link's callback `lost` follows from the loop: the caller is in the middle of its own work. */
static int link_fail(struct worker_link *link, int result)
{
    link->failed = true;
    shutdown(link->fd, SHUT_RDWR);
    return result;
}

int worker_link_request(struct worker_link *link, const struct worker_request *request,
                        worker_link_reply *reply, void *context)
{
    if (link->closing || link->failed)
        return -EPIPE;
    if (!link->free_first) {
        int result = slots_grow(link);
        if (result < 0)
            return link_fail(link, result);
    }
    uint32_t index = link->free_first - 1;
    struct slot *slot = &link->slots[index];
    uint32_t turn = (slot->turn + 1) & TURN_MASK;
    turn = turn ? turn : 1;
    uint32_t serial = turn << SLOT_BITS | index;
    int result =
        send_queue_send(&link->send_queue, request->opcode, serial, request->client, request->body,
                        request->tail, request->tail_bytes, request->fds, request->fd_count);
    /* What only this request could not get (a descriptor, memory) leaves the link as it was. */
    if (result == -EPIPE || result == -ECONNRESET || result == -ENOBUFS)
        return link_fail(link, result);
    if (result < 0)
        return result;
    link->free_first = slot->next_free;
    link->outstanding++;
    *slot = (struct slot){.taken = true,
                          .opcode = request->opcode,
                          .turn = turn,
                          .client = request->client,
                          .reply = reply,
                          .context = context};
    if (result == SEND_QUEUE_QUEUED)
        poll_again(link);
    return 0;
}

void worker_link_cancel(struct worker_link *link, uint32_t client)
{
    static const struct worker_answer ended = {.outcome = WORKER_SESSION_ENDED,
                                               .error = PROTO_ERROR_CONNECTION_LOST,
                                               .text =
                                                   "the client ended before the worker answered"};
    /* Callbacks may add requests for other clients and so move the slots: each is looked up anew.
     */
    for (uint32_t i = 0; i < link->slot_count; i++)
        if (link->slots[i].taken && link->slots[i].client == client)
            slot_end(link, i, &ended);
}

uint32_t worker_link_outstanding(const struct worker_link *link)
{
    return link->outstanding;
}

static void message_take(struct worker_link *link)
{
    struct channel_message *message = &link->message;
    uint32_t serial = message->header.serial;
    if (serial == 0) {
        link->events.notice(link->events.context, message);
        return;
    }
    uint32_t index = serial & (SLOTS_MAX - 1);
    struct slot *slot = index < link->slot_count ? &link->slots[index] : NULL;
    if (!slot || !slot->taken || slot->turn != serial >> SLOT_BITS ||
        slot->client != message->header.client) {
        log_debug("a late answer (%s) of a worker for client %u is dropped", message->type->name,
                  message->header.client);
        return;
    }
    slot_answer(link, index, message);
}

static void link_lost(struct worker_link *link, const char *why)
{
    link->failed = true;
    uv_poll_stop(&link->poll);
    link->events.lost(link->events.context, why);
}

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
    bool reset = status < 0;
    for (unsigned i = 0; ((events & UV_READABLE) || reset) && i < BATCH && !link->closing; i++) {
        int result = link_receive(link);
        if (result == CHANNEL_EMPTY)
            break;
        if (result != 0) {
            link_lost(link, result == CHANNEL_CLOSED ? NULL
                            : result == -EPROTO      ? link->message.why
                                                     : strerror(-result));
            return;
        }
        message_take(link);
        channel_close_fds(&link->message);
    }
    if (link->closing)
        return;
    if (link->failed || reset || send_queue_flush(&link->send_queue) < 0) {
        link_lost(link, "it no longer takes requests");
        return;
    }
    poll_again(link);
}
