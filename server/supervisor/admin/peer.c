/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/peer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/error.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/admin/json.h"

/* A peer that neither asks nor reads for this time loses its place, and so does one whose line
 * takes as long from its first byte to its last. */
#define IDLE_MS 60000

void admin_peer_release(struct admin *admin)
{
    if (--admin->alive == 0)
        free(admin);
}

/* ---- work ---- */

static void work_settle(struct admin_work *work)
{
    struct admin *admin = work->admin;
    if (work->outstanding || work->peer)
        return;
    work->free(work);
    admin_peer_release(admin);
}

/* The peer gets no answer from this work any more. */
static void work_leave(struct admin_work *work)
{
    work->peer->work = NULL;
    work->peer = NULL;
    if (work->left)
        work->left(work);
    work_settle(work);
}

/* The work leaves the peer first: an answer that can't be sent closes the peer, which must not find
 * the work then. */
static void work_answer(struct admin_work *work, bool late)
{
    struct admin_peer *peer = work->peer;
    peer->work = NULL;
    work->peer = NULL;
    uv_read_stop((uv_stream_t *)&peer->pipe); /* admin_peer_watch may have started it */
    peer->reading = false;
    work->answer(work, peer, late);
    work_settle(work);
}

void admin_peer_work_begin(struct admin_work *work, struct admin_peer *peer)
{
    work->admin = peer->admin;
    work->peer = peer;
    peer->work = work;
    peer->admin->alive++;
}

static void on_late(uv_timer_t *timer)
{
    struct admin_peer *peer = timer->data;
    if (peer->work)
        work_answer(peer->work, true);
}

void admin_peer_work_wait(struct admin_work *work, uint64_t milliseconds)
{
    if (work->outstanding == 0)
        work_answer(work, false);
    else if (work->peer)
        uv_timer_start(&work->peer->timer, on_late, milliseconds, 0);
}

void admin_peer_work_came(struct admin_work *work)
{
    work->outstanding--;
    if (work->peer && work->outstanding == 0)
        work_answer(work, false);
    else
        work_settle(work);
}

/* ---- ends ---- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct admin_peer *peer = handle->data;
    if (--peer->handles)
        return;
    struct admin *admin = peer->admin;
    free(peer->output);
    free(peer->input);
    free(peer);
    admin_peer_release(admin);
}

void admin_peer_close(struct admin_peer *peer)
{
    if (peer->closing)
        return;
    peer->closing = true;
    peer->admin->held -= peer->held;
    peer->held = false;
    if (peer->work)
        work_leave(peer->work);
    list_remove(&peer->link);
    uv_close((uv_handle_t *)&peer->pipe, on_handle_closed);
    uv_close((uv_handle_t *)&peer->timer, on_handle_closed);
}

static void on_idle(uv_timer_t *timer)
{
    admin_peer_close(timer->data);
}

/* ---- answers ---- */

static void on_written(uv_write_t *write, int status)
{
    struct admin_peer *peer = write->data;
    free(peer->output);
    peer->output = NULL;
    if (peer->closing)
        return;
    if (status < 0 || peer->last) {
        admin_peer_close(peer);
        return;
    }
    admin_peer_serve(peer);
}

/* Sends the beginning of the answer with the descriptor. Returns the number of bytes, or -errno. */
static ssize_t descriptor_pass(struct admin_peer *peer, const char *line, size_t length, int passed)
{
    uv_os_fd_t fd;
    int result = uv_fileno((const uv_handle_t *)&peer->pipe, &fd);
    return result < 0 ? result : admin_socket_pass(fd, line, length, passed);
}

/* passed: the descriptor that goes with the answer, or -1. */
static void send_answer(struct admin_peer *peer, json_t *json, int passed)
{
    /* If memory is short the connection ends, since half an answer would be worse than none. */
    char *line =
        json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(ADMIN_JSON_DIGITS)) : NULL;
    json_decref(json);
    if (!line) {
        admin_peer_close(peer);
        return;
    }
    size_t length = strlen(line);
    line[length] = '\n'; /* in place of the NUL, since the length is sent with the line */
    peer->output = line;
    peer->write.data = peer;
    ssize_t sent = passed >= 0 ? descriptor_pass(peer, line, length + 1, passed) : 0;
    if (sent < 0) {
        admin_peer_close(peer);
        return;
    }
    peer->answer = uv_buf_init(line + sent, (unsigned)(length + 1 - (size_t)sent));
    uv_timer_start(&peer->timer, on_idle, IDLE_MS, 0);
    peer->held = true;
    peer->admin->held++;
    if (!peer->admin->holds)
        admin_peer_send_held(peer);
}

void admin_peer_send_held(struct admin_peer *peer)
{
    peer->held = false;
    peer->admin->held--;
    if (uv_write(&peer->write, (uv_stream_t *)&peer->pipe, &peer->answer, 1, on_written) < 0)
        admin_peer_close(peer);
}

void admin_peer_answer(struct admin_peer *peer, json_t *json)
{
    send_answer(peer, json, -1);
}

void admin_peer_pass(struct admin_peer *peer, json_t *json, int passed)
{
    send_answer(peer, json, passed);
}

void admin_peer_refuse(struct admin_peer *peer, uint32_t error, const char *format, ...)
{
    char text[ERROR_TEXT_BYTES + 128]; /* a sentence of struct error, and words before it */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    admin_peer_answer(peer, admin_answer_refusal(error, text));
}

const char *admin_peer_name(const struct admin_peer *peer, char name[ADMIN_NAME])
{
    snprintf(name, ADMIN_NAME, "uid %u (pid %d)", (unsigned)peer->uid, (int)peer->pid);
    return name;
}

/* ---- lines ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct admin_peer *peer = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(peer->input + peer->used, (unsigned)(ADMIN_LINE_MAX - peer->used));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct admin_peer *peer = stream->data;
    (void)buffer;
    if (count == UV_EOF && peer->work && peer->work->hurry) {
        uv_read_stop(stream);
        peer->ended = true;
        peer->work->hurry(peer->work);
        return;
    }
    if (count < 0) {
        admin_peer_close(peer);
        return;
    }
    peer->used += (size_t)count;
    if (!peer->work)
        admin_peer_serve(peer);
    else if (peer->used == ADMIN_LINE_MAX)
        uv_read_stop(stream); /* requests that come ahead of time have to wait */
}

static void read_on(struct admin_peer *peer)
{
    if (!peer->reading && uv_read_start((uv_stream_t *)&peer->pipe, on_alloc, on_read) < 0)
        admin_peer_close(peer);
    peer->reading = true;
}

void admin_peer_watch(struct admin_peer *peer)
{
    if (peer->used < ADMIN_LINE_MAX)
        read_on(peer);
}

void admin_peer_serve(struct admin_peer *peer)
{
    uv_stream_t *stream = (uv_stream_t *)&peer->pipe;
    char *end = memchr(peer->input, '\n', peer->used);
    if (!end && peer->ended) {
        admin_peer_close(peer);
        return;
    }
    if (!end && peer->used < ADMIN_LINE_MAX) {
        if (!peer->timed)
            uv_timer_start(&peer->timer, on_idle, IDLE_MS, 0);
        peer->timed = peer->used > 0;
        read_on(peer);
        return;
    }
    peer->timed = false;
    uv_read_stop(stream);
    peer->reading = false;
    if (!end) {
        /* Where the next request begins can't be known any more. */
        peer->last = true;
        admin_peer_refuse(peer, MESSAGE(admin_line_max), ADMIN_LINE_MAX);
        return;
    }
    struct admin_request request;
    struct error why;
    size_t length = (size_t)(end - peer->input);
    uint32_t error = admin_request_parse(&request, peer->input, length, &why);
    peer->used -= length + 1;
    memmove(peer->input, end + 1, peer->used);
    if (error)
        admin_peer_refuse(peer, error, "%s", why.text);
    else
        peer->admin->carry_out(peer, &request);
    admin_request_free(&request);
}

/* ---- life ---- */

bool admin_peer_identify(struct admin_peer *peer)
{
    struct ucred who;
    socklen_t size = sizeof who;
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&peer->pipe, &fd) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return false;
    peer->uid = who.uid;
    peer->pid = who.pid;
    return true;
}

struct admin_peer *admin_peer_new(struct admin *admin)
{
    struct admin_peer *peer = calloc(1, sizeof *peer);
    char *input = malloc(ADMIN_LINE_MAX);
    if (!peer || !input) {
        free(peer);
        free(input);
        return NULL;
    }
    uv_loop_t *loop = admin->listener.loop;
    peer->admin = admin;
    peer->input = input;
    /* On Linux neither call can fail for an initialised loop. */
    uv_pipe_init(loop, &peer->pipe, 0);
    uv_timer_init(loop, &peer->timer);
    peer->pipe.data = peer->timer.data = peer;
    peer->handles = 2;
    list_prepend(&admin->peer_list, &peer->link);
    admin->alive++;
    return peer;
}
