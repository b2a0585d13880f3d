/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A buffer is a region of the client's host heap. Another connection of the same group may use the
 * buffer on its own device (host_import.h).
 *
 * A buffer that is freed goes to the pool (pinned_pool.h) if its own worker alone had it. Any other
 * is emptied when its worker and every share have let go: the client may keep the descriptor for
 * ever, and with it all the memory that nobody is charged for any more. Then the buffer's addresses
 * and charge are given back. Whatever the client writes through its descriptor afterwards is memory
 * of the client's own.
 */
#include "server/supervisor/session/owned/host.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/messages.h"
#include "common/util.h"
#include "server/supervisor/session/owned/host_import.h"
#include "server/supervisor/session/owned/pinned_pool.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

static struct session *session_of(const struct heap_region *region)
{
    return container_of(region->heap, struct session, buffers);
}

static void wants_retry(struct session *session);

/* ---- buffers ---- */

/* The buffer's own session can't have it unmapped. */
static void refuse_unmap(struct session *session, const struct heap_region *region,
                         const struct worker_answer *answer)
{
    pinned_pool_log_refused(session->number, region, answer);
    session->host_unmapping--;
    wants_retry(session);
}

static void buffer_unmap_answered(void *context, const struct worker_answer *answer)
{
    struct heap_region *region = context;
    struct session *session = session_of(region);
    session_touch(session);
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        region->gone = true;
        heap_region_mark(region);
        pinned_pool_buffer_settle(region);
        break;
    case WORKER_REFUSED:
        refuse_unmap(session, region, answer);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        break; /* session_host_release takes it */
    }
}

/* The worker keeps it, and nothing uses it any more. */
static void buffer_keep_answered(void *context, const struct worker_answer *answer)
{
    struct heap_region *region = context;
    struct session *session = session_of(region);
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        session->host_unmapping--;
        if (!pinned_pool_take(region))
            pinned_pool_drop(region);
        wants_retry(session);
        break;
    case WORKER_REFUSED:
        refuse_unmap(session, region, answer);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        break; /* session_host_release takes it */
    }
}

static void buffer_return(struct session *session, struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    struct proto_worker_host_keep keep = {.address = region->address, .count = region->bytes};
    struct proto_worker_host_unmap unmap = {.address = region->address, .count = region->bytes};
    heap_region_withdraw(region);
    session->host_unmapping++;
    /* Another worker's use of it would outlast the pool's next loan. */
    buffer->keep &= !region->imports;
    if (buffer->keep)
        session_ask_surely(session, PROTO_WORKER_HOST_KEEP, &keep, buffer_keep_answered, region);
    else
        session_ask_surely(session, PROTO_WORKER_HOST_UNMAP, &unmap, buffer_unmap_answered, region);
}

void session_host_unmap_again(struct session *session, struct heap_region *region)
{
    struct proto_worker_host_unmap unmap = {.address = region->address, .count = region->bytes};
    session->host_unmapping++;
    session_ask_surely(session, PROTO_WORKER_HOST_UNMAP, &unmap, buffer_unmap_answered, region);
}

/* ---- host_alloc ---- */

static void alloc_failed(struct request *request, uint32_t error, const char *text)
{
    if (request->region)
        pinned_pool_buffer_forget(request->region);
    session_refuse(request->session, request->serial, error, "%s", text);
    request_end(request);
}

static void buffer_map_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    struct heap_region *region = request->region;
    struct proto_host_allocated body = {.address = region->address, .count = region->bytes};
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        heap_region_ready(region);
        session_answer(session, PROTO_HOST_ALLOCATED, request->serial, &body,
                       &region->charged_fd.fd, 1);
        request_end(request);
        break;
    case WORKER_REFUSED:
        alloc_failed(request, answer->error, answer->text);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        request_end(request); /* session_host_release takes the region */
        break;
    }
}

static int memory_create(struct request *request)
{
    request->fd = memfd_create("gpushare-host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return request->fd < 0 || ftruncate(request->fd, (off_t)request->count) < 0 ? -errno : 0;
}

/* Runs on another thread, since the kernel clears every page here. */
static int memory_make(struct request *request)
{
    uint64_t at = request->job.at;
    uint64_t bytes = min(request->count - at, JOB_STEP_BYTES);
    int result = at ? 0 : memory_create(request);
    while (result == 0 && fallocate(request->fd, 0, (off_t)at, (off_t)bytes) < 0)
        if (errno != EINTR)
            result = -errno;
    if (result < 0)
        return result;
    request->job.at += bytes;
    if (request->job.at < request->count)
        return JOB_AGAIN;
    return fcntl(request->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ? -errno
                                                                                          : 0;
}

static void memory_made(struct request *request, int result)
{
    struct session *session = request->session;
    struct heap_region *region = request->region;
    if (result == -ECANCELED) {
        request_end(request); /* session_host_release takes the region */
        return;
    }
    if (result < 0) {
        if (result == -EMFILE || result == -ENFILE)
            alloc_failed(request, MESSAGE(host_no_descriptor));
        else
            alloc_failed(request, MESSAGE(host_no_memory));
        return;
    }
    region->charged_fd.fd = request->fd;
    heap_region_mark(region);
    request->fd = -1;
    const struct pinned_buffer *buffer = region->user;
    struct proto_worker_host_map body = {
        .address = region->address, .count = region->bytes, .keep = buffer->keep};
    struct channel_packet message = {.opcode = PROTO_WORKER_HOST_MAP,
                                     .body = &body,
                                     .fds = &region->charged_fd.fd,
                                     .fd_count = 1};
    if (session_send(session, &message, buffer_map_answered, request) < 0)
        alloc_failed(request, MESSAGE(worker_just_ended));
}

/* Charges the buffer and finds its addresses. Returns 0; HEAP_FULL, with the quota in *culprit or
 * NULL if the window is full; or -ENOMEM. */
static int alloc_reserve(struct request *request, uint64_t bytes, const struct quota **culprit)
{
    struct session *session = request->session;
    struct charge charge = CHARGE_NONE;
    struct charged_fd charged = CHARGED_FD_NONE;
    *culprit = NULL;
    if (quota_charge(&session->quotas[RESOURCE_HOST_MEMORY], &charge, bytes, culprit))
        return HEAP_FULL;
    int result = fd_budget_charge(&charged, &session->fds, culprit) ? HEAP_FULL : 0;
    struct pinned_buffer *buffer = result ? NULL : pinned_pool_buffer_make(session, bytes);
    if (result == 0 && !buffer)
        result = -ENOMEM;
    if (result == 0)
        result = heap_region_add(&session->buffers, bytes, false, &request->region);
    if (result) {
        pinned_pool_buffer_free(buffer);
        fd_budget_release(&charged);
        quota_return(&charge);
        return result;
    }
    request->region->charge = charge;
    request->region->charged_fd = charged;
    request->region->user = buffer;
    buffer->region = request->region;
    return 0;
}

static void alloc_wait(struct request *request)
{
    queue_append(&request->session->host_wants, &request->link);
}

/* The pool gives way in a quiet window, and beside a kernel that does not end there is none. */
enum { POOL_WAIT_MS = 2000 };

static void wait_is_over(uv_timer_t *timer)
{
    wants_retry(timer->data);
}

/* Waits for the pool if that can help, and not for ever. The session's timer ends the earliest of
 * these waits. */
static bool alloc_wait_for_pool(struct request *request, const struct quota *culprit,
                                uint64_t bytes)
{
    struct session *session = request->session;
    uv_timer_t *timer = &session->host_wait;
    uint64_t now = uv_now(session->server->loop);
    if (!request->pool_until)
        request->pool_until = now + POOL_WAIT_MS;
    if (now >= request->pool_until || !pinned_pool_make_room(session, culprit, bytes))
        return false;
    alloc_wait(request);
    uint64_t left = request->pool_until - now;
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > left)
        uv_timer_start(timer, wait_is_over, left, 0);
    return true;
}

/* Makes a buffer out of one of the pool. */
static int alloc_lend(struct request *request, struct heap_region *region,
                      const struct quota **culprit)
{
    struct session *session = request->session;
    struct proto_worker_host_lend body = {.address = region->address, .count = region->bytes};
    int result = pinned_pool_lend(session, region, culprit);
    if (result)
        return result;
    request->region = region;
    if (session_ask(session, PROTO_WORKER_HOST_LEND, &body, buffer_map_answered, request) < 0) {
        /* It has the buffer still, at addresses that go to others now. */
        device_abandon(session->device);
        alloc_failed(request, MESSAGE(worker_just_ended));
    }
    return 0;
}

static int alloc_new(struct request *request, uint64_t bytes, const struct quota **culprit)
{
    int result = alloc_reserve(request, bytes, culprit);
    if (result)
        return result;
    request->count = bytes;
    request_work(request, memory_make, memory_made);
    return 0;
}

static void alloc_try(struct request *request)
{
    struct session *session = request->session;
    uint64_t bytes = heap_round_region(&session->buffers, request->count);
    const struct quota *culprit = &session->quotas[RESOURCE_HOST_MEMORY];
    if (!bytes || bytes > culprit->limit) {
        request_refuse_room(request, RESOURCE_HOST_MEMORY, culprit, bytes ? bytes : request->count);
        return;
    }
    bool soon;
    struct heap_region *kept = pinned_pool_find(session, bytes, &soon);
    if (soon && !kept) {
        alloc_wait(request);
        return;
    }
    int result = kept ? alloc_lend(request, kept, &culprit) : alloc_new(request, bytes, &culprit);
    if (result == HEAP_FULL && (session->host_unmapping || session->host_emptying))
        alloc_wait(request);
    else if (result == HEAP_FULL && !alloc_wait_for_pool(request, culprit, bytes))
        request_refuse_room(request, RESOURCE_HOST_MEMORY, culprit, bytes);
    else if (result < 0)
        alloc_failed(request, MESSAGE(host_request_no_memory));
}

/* Tries again for requests that waited for a buffer to be freed. */
static void wants_retry(struct session *session)
{
    struct queue all = session->host_wants;
    struct request *request;
    session->host_wants = (struct queue){0};
    while ((request = QUEUE_TAKE(&all, struct request, link)))
        alloc_try(request);
}

void session_host_retry(struct server *server, struct session *session)
{
    if (session) {
        wants_retry(session);
        return;
    }
    LIST_FOR_EACH (session, &server->session_list, link)
        wants_retry(session);
}

void session_host_alloc(struct session *session, struct channel_message *message)
{
    struct proto_host_alloc body;
    memcpy(&body, message->body, sizeof body);
    struct request *request = request_make(session, message->header.serial, PROTO_HOST_ALLOCATED);
    if (!request)
        return;
    request->count = body.count;
    alloc_try(request);
}

void session_host_flush(struct session *session)
{
    struct request *request;
    while ((request = QUEUE_TAKE(&session->host_wants, struct request, link)))
        request_end(request);
}

/* Whether the worker may have the buffer registered still, and for whom. */
static void release_used(struct session *session, struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    bool kept = buffer->keep && !session->lost && !pinned_pool_buffer_is_lost(buffer);
    /* A buffer that is being registered, or that is not to be kept, goes with the client. */
    if (session->at_worker && (!kept || region->state == HEAP_REGION_MAPPING))
        return;
    bool whole = region->state != HEAP_REGION_MAPPING;
    if (region->state == HEAP_REGION_LIVE) {
        heap_region_clear(region);
        heap_region_withdraw(region);
    }
    if (!kept)
        pinned_pool_buffer_empty(region);
    else if (!whole || !pinned_pool_take(region))
        pinned_pool_drop(region);
}

bool session_host_release(struct session *session)
{
    struct heap *heap = &session->buffers;
    for (struct heap_region *region = heap->first, *next; region; region = next) {
        const struct pinned_buffer *buffer = region->user;
        next = region->next;
        if (buffer->state == PINNED_USED)
            release_used(session, region);
        else if (buffer->state == PINNED_STUCK && session->lost && !list_is_linked(&buffer->link))
            pinned_pool_buffer_empty(region);
    }
    if (!heap->regions)
        return true;
    for (const struct heap_region *region = heap->first; region; region = region->next)
        if (!list_is_linked(&((const struct pinned_buffer *)region->user)->link))
            return false;
    return pinned_pool_give_window(session);
}

bool session_host_has_any(const struct session *session)
{
    return !pinned_pool_has_all(session);
}

void session_host_free(struct session *session, struct channel_message *message)
{
    struct proto_host_free body;
    memcpy(&body, message->body, sizeof body);
    struct heap_block *block = heap_find(&session->buffers, body.address);
    struct host_import *import = block ? NULL : session_host_import_find(session, body.address);
    if (block) {
        heap_block_retire(block);
        buffer_return(session, block->region);
    } else if (import && import->state == IMPORT_LIVE) {
        session_host_import_return(import);
    } else {
        session_refuse(session, message->header.serial, MESSAGE(host_buffer_not_begun),
                       (unsigned long long)body.address);
        return;
    }
    session_answer(session, PROTO_DONE, message->header.serial, NULL, NULL, 0);
}

/* ---- another worker ---- */

/* A buffer that the worker could not register must not go to the pool: the next client that it is
 * lent to would be refused. */
static void buffer_answered(void *context, const struct worker_answer *answer)
{
    struct pinned_buffer *buffer = context;
    if (answer->outcome == WORKER_REFUSED)
        buffer->start = 0;
    buffer->answered(buffer->restoring, answer);
}

static bool buffer_restore(struct session *session, const struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    struct proto_worker_host_map body = {
        .address = region->address, .count = region->bytes, .keep = buffer->keep};
    struct channel_packet packet = {.opcode = PROTO_WORKER_HOST_MAP,
                                    .body = &body,
                                    .fds = &region->charged_fd.fd,
                                    .fd_count = 1};
    return session_send_restoring_of(session, &packet, buffer_answered, buffer);
}

/* A buffer of the pool was lent, but the new worker keeps none: it has to be mapped. */
static void lending_change(struct session *session, struct worker_request_row *row)
{
    const struct request *request = row->context;
    const struct heap_region *region = request->region;
    struct proto_worker_host_map body = {
        .address = region->address, .count = region->bytes, .keep = 1};
    struct channel_packet packet = {.opcode = PROTO_WORKER_HOST_MAP,
                                    .client = session->number,
                                    .body = &body,
                                    .fds = &region->charged_fd.fd,
                                    .fd_count = 1};
    struct channel_packet *copy = channel_packet_copy(&packet);
    if (copy)
        held_requests_change(row, copy);
    else
        session_fail(session, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(session_not_restored),
                     strerror(ENOMEM));
}

void session_host_restore(struct session *session, worker_link_reply *answered)
{
    struct held_requests *held = &session->device->held;
    struct worker_request_row *row = held_requests_after(held, session->number, 0);
    for (; row; row = held_requests_after(held, session->number, row->serial))
        if (row->opcode == PROTO_WORKER_HOST_LEND)
            lending_change(session, row);
    for (struct heap_region *at = session->buffers.first; at; at = at->next) {
        struct pinned_buffer *buffer = at->user;
        if (buffer->state != PINNED_USED)
            continue;
        buffer->start = session->device->starts;
        buffer->restoring = session;
        buffer->answered = answered;
        /* One that is being mapped has its request among the held ones; or it was for the last
         * server, and has no descriptor. */
        if (at->state != HEAP_REGION_MAPPING && !at->gone && at->charged_fd.fd >= 0 &&
            !buffer_restore(session, at))
            buffer->start = 0; /* the worker never heard of it */
    }
}
