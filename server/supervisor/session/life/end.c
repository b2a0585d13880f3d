/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/end.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/ipc/timeline.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/host_import.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/owned/module.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/device/device_request.h"

#define DETACH_AGAIN_MS 100

/* Frees the session after the last of its handles. */
static void handle_closed(uv_handle_t *handle)
{
    struct session *session = handle->data;
    if (--session->handles)
        return;
    session_inbox_close(session);
    if (session->keeping.touched)
        queue_remove(&session->server->touched, &session->keeping.link);
    identity_free(&session->identity);
    free(session);
}

/* Threads that wait on the client's completion words learn the end from them, without a message. */
static void fail_timelines(struct session *session)
{
    uint32_t error = session->ended.error;
    void *status = session->status.base;
    if (status)
        timeline_fail(status, (void *)((uint8_t *)status + PROTO_STATUS_FIRST),
                      session->server->settings->streams,
                      error ? error : PROTO_ERROR_CONNECTION_LOST);
}

/* Messages of the client that are not read would reset the connection on close, and the client's
 * next receive would report the reset instead of the last message. So they are read first, but for
 * descriptors that the client was not allowed to send: all of these wait in one place. */
static void hang_up(struct session *session)
{
    struct closer_sender sender = session_sender(session);
    closer_drain(session->server->closer, session->fd, session->device, sender);
    if (session->ended.error) {
        send_queue_widen(&session->send_queue);
        channel_send(session->fd,
                     &(struct channel_packet){.opcode = PROTO_ENDED, .body = &session->ended});
    }
    send_queue_close(&session->send_queue);
    quota_return(&session->unread);
    uv_close((uv_handle_t *)&session->poll, handle_closed);
    closer_hang_up(session->server->closer, session->fd, session->device, sender);
    session->fd = -1;
    uv_timer_stop(&session->deadline);
    uv_timer_stop(&session->host_wait);
    uv_timer_stop(&session->memory_wait);
    if (session->pidfd < 0)
        return;
    if (session->process_poll.data)
        uv_close((uv_handle_t *)&session->process_poll, handle_closed);
    close(session->pidfd);
    session->pidfd = -1;
}

/* Writes the client's use in its whole life to the log. A program that only asks what it would get,
 * as `gpushare info` does, uses nothing, and that is no news. */
static void log_usage(const struct session *session, const struct proto_worker_usage *used)
{
    char copied[UNITS_TEXT];
    if (!used->gpu_nanoseconds && !used->launches && !used->copies)
        return;
    session_log_about(session);
    log_info(MESSAGE_TEXT(log_client_used), session->number, session->name, (int)session->pid,
             session->uid, (double)used->gpu_nanoseconds / 1e9, (unsigned long long)used->launches,
             (unsigned long long)used->copies, units_format_bytes(used->copied_bytes, copied));
}

/* The worker is dead, or has nothing of the client any more. */
static void detach_done(struct session *session, bool lost)
{
    session->at_worker = false;
    session->lost = lost;
    session->released = true;
    session_host_import_end(session);
    session_schedule(session);
}

static void detach_answered(void *context, const struct worker_answer *answer)
{
    struct session *session = context;
    if (answer->outcome == WORKER_ANSWERED) {
        struct proto_worker_usage used;
        memcpy(&used, answer->message->body, sizeof used);
        log_usage(session, &used);
        history_use_read(&session->used, &used);
    }
    detach_done(session, answer->outcome == WORKER_LOST);
}

static void worker_detach(struct session *session);

/* The deadline is of no other use to a session that was taken down. */
static void detach_again(uv_timer_t *timer)
{
    worker_detach(timer->data);
}

static void worker_detach(struct session *session)
{
    struct channel_packet request = {.opcode = PROTO_WORKER_DETACH, .client = session->number};
    int result = session->device->starts == session->worker_start
                     ? device_request(session->device, &request, detach_answered, session)
                     : -EPIPE;
    if (result == 0)
        return;
    /* Memory that is missing may come back, and the worker serves others meanwhile. */
    if (result == -ENOMEM) {
        uv_timer_start(&session->deadline, detach_again, DETACH_AGAIN_MS, 0);
        return;
    }
    /* A worker that can't be told keeps the memory and the addresses that go to others now. */
    if (session->device->starts == session->worker_start)
        device_abandon(session->device);
    detach_done(session, true);
}

static void take_down(struct session *session)
{
    fail_timelines(session);
    hang_up(session);
    session_memory_flush(session);
    session_host_flush(session);
    session_host_import_recall(session);
    session->down = true;
    if (!session->device)
        return;
    if (session->at_worker || session->held)
        device_request_cancel(session->device, session->number);
    if (session->at_worker)
        worker_detach(session);
    else if (session->held)
        detach_done(session, true);
}

bool session_end(struct session *session)
{
    if (!session->down)
        take_down(session);
    /* A request may still hold blocks of this memory. */
    if (session->requests || session->lent)
        return false;
    bool buffers_left = false;
    if (session->device && (session->released || !session->at_worker)) {
        session_memory_release(session);
        session_module_forget_memory(session);
        buffers_left = !session_host_release(session);
    }
    if (session->at_worker || buffers_left)
        return false;
    if (session->device)
        session_attach_release(session);
    log_debug(MESSAGE_TEXT(log_client_over), session->number);
    uv_close((uv_handle_t *)&session->deadline, handle_closed);
    uv_close((uv_handle_t *)&session->host_wait, handle_closed);
    uv_close((uv_handle_t *)&session->memory_wait, handle_closed);
    return true;
}
