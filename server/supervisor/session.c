/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/ring.h"
#include "common/timeline.h"
#include "server/supervisor/supervisor_private.h"

/* Answers that a client has not read; the largest message many times over. */
#define OUTBOX_MOST (UINT64_C(256) << 10)
/* Of the kernel's memory for what the client has not read, descriptors under way among it (they
 * count against this user as a whole). The kernel doubles it: the largest message fits. */
#define SOCKET_BYTES 32768
/* Messages taken in a row before the loop looks at others again. */
#define BATCH 16
/* A client that said hello may look at the devices for so many hello timeouts before it attaches.
 */
#define GREETED_PATIENCE 6

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

const char *session_state_name(enum session_state state)
{
    static const char *const names[] = {"hello", "greeted", "attaching", "attached", "leaving"};
    return names[state];
}

uint32_t session_fds(const struct session *session)
{
    uint32_t held = (session->fd >= 0) + (session->pidfd >= 0) + (session->ring.fd >= 0) +
                    (session->status.fd >= 0) + (session->twin.fd >= 0) + (session->doorbell >= 0);
    return held + (uint32_t)session->fds.used;
}

/* ---- handlers by message ---- */

static void hello(struct session *session, struct channel_message *message);
static void device_query(struct session *session, struct channel_message *message);
static void attach(struct session *session, struct channel_message *message);

#define IN(state) (1u << (state))

/* Which message is allowed when, and who handles it. What is not here is never allowed. */
static const struct row {
    uint16_t opcode;
    unsigned states;
    session_handler *handler;
} rows[] = {
    {PROTO_HELLO, IN(SESSION_HELLO), hello},
    {PROTO_DEVICE_QUERY, IN(SESSION_GREETED) | IN(SESSION_ATTACHED), device_query},
    {PROTO_ATTACH, IN(SESSION_GREETED), attach},
    {PROTO_WINDOW_MOVE, IN(SESSION_ATTACHED), session_window_move},
    {PROTO_LIMITS_QUERY, IN(SESSION_ATTACHED), session_limits_query},
    {PROTO_MEMORY_ALLOC, IN(SESSION_ATTACHED), session_memory_alloc},
    {PROTO_MEMORY_FREE, IN(SESSION_ATTACHED), session_memory_free},
    {PROTO_MEMORY_QUERY, IN(SESSION_ATTACHED), session_memory_query},
    {PROTO_HOST_ALLOC, IN(SESSION_ATTACHED), session_host_alloc},
    {PROTO_HOST_FREE, IN(SESSION_ATTACHED), session_host_free},
    {PROTO_HOST_SHARE, IN(SESSION_ATTACHED), session_host_share},
    {PROTO_LINK, IN(SESSION_ATTACHED), session_link},
    {PROTO_MODULE_LOAD, IN(SESSION_ATTACHED), session_module_load},
    {PROTO_MODULE_UNLOAD, IN(SESSION_ATTACHED), session_module_unload},
    {PROTO_FUNCTION_GET, IN(SESSION_ATTACHED), session_forward},
    {PROTO_FUNCTION_SET, IN(SESSION_ATTACHED), session_forward},
    {PROTO_GLOBAL_GET, IN(SESSION_ATTACHED), session_forward},
    {PROTO_OCCUPANCY_GET, IN(SESSION_ATTACHED), session_forward},
    {PROTO_STREAM_CREATE, IN(SESSION_ATTACHED), session_forward},
    {PROTO_STREAM_DESTROY, IN(SESSION_ATTACHED), session_forward},
    {PROTO_EVENT_CREATE, IN(SESSION_ATTACHED), session_forward},
    {PROTO_EVENT_DESTROY, IN(SESSION_ATTACHED), session_forward},
    {PROTO_EVENT_ELAPSED, IN(SESSION_ATTACHED), session_forward},
};

static const struct row *find_row(uint16_t opcode)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].opcode == opcode)
            return &rows[i];
    return NULL;
}

static void patience_over(uv_timer_t *timer)
{
    struct session *session = timer->data;
    if (session->parked.held) {
        char text[512];
        device_explain(&session->supervisor->devices[session->parked.body.device], text,
                       sizeof text);
        session_refuse(session, session->parked.serial, PROTO_ERROR_DEVICE_NOT_READY, "%s", text);
        session_end(session, PROTO_ERROR_DEVICE_NOT_READY, "%s", text);
        return;
    }
    session_end(session, PROTO_ERROR_CONNECTION_LOST,
                session->state == SESSION_HELLO ? "the client connected and said nothing"
                                                : "the client said hello and did not attach");
}

static void hello(struct session *session, struct channel_message *message)
{
    struct proto_hello body;
    memcpy(&body, message->body, sizeof body);
    uint32_t serial = message->header.serial;
    if (body.major != PROTO_MAJOR) {
        session_refuse(
            session, serial, PROTO_ERROR_PROTOCOL_VERSION,
            "the client speaks protocol %u.%u and this server (gpushare " GPUSHARE_VERSION
            ") %u.%u: use the client library of the server's release",
            body.major, body.minor, PROTO_MAJOR, PROTO_MINOR);
        session_end(session, PROTO_ERROR_PROTOCOL_VERSION, "protocol %u.%u is not spoken here",
                    body.major, body.minor);
        return;
    }
    if (session->surplus == SURPLUS_USER) {
        uint32_t most = supervisor_user_most(session->supervisor);
        session_refuse(session, serial, PROTO_ERROR_TOO_MANY_CLIENTS,
                       "user %u has %u clients, as many as one user may have: end some, or have "
                       "the administrator raise --max-clients-per-user",
                       (unsigned)session->uid, most);
        session_end(session, PROTO_ERROR_TOO_MANY_CLIENTS, "user %u has %u clients already",
                    (unsigned)session->uid, most);
        return;
    }
    if (session->surplus) {
        uint32_t most = session->supervisor->budget.clients;
        session_refuse(session, serial, PROTO_ERROR_TOO_MANY_CLIENTS,
                       "the server has %u clients, as many as it may have (--max-clients)", most);
        session_end(session, PROTO_ERROR_TOO_MANY_CLIENTS, "%u clients are served already", most);
        return;
    }
    session->state = SESSION_GREETED;
    uv_timer_start(&session->patience, patience_over,
                   (uint64_t)session->supervisor->settings->hello_timeout_ms * GREETED_PATIENCE, 0);
    struct proto_welcome welcome = {.major = PROTO_MAJOR,
                                    .minor = PROTO_MINOR,
                                    .features = 0,
                                    .devices = session->supervisor->device_count,
                                    .version = GPUSHARE_VERSION};
    session_answer(session, PROTO_WELCOME, serial, &welcome, NULL, 0);
}

/* The request waits until the device's worker is ready and no reload is under way; nothing else is
 * read meanwhile. */
static void park(struct session *session, const struct channel_message *message)
{
    session->parked.held = true;
    session->parked.serial = message->header.serial;
    session->parked.opcode = message->header.opcode;
    memset(&session->parked.body, 0, sizeof session->parked.body);
    /* Both messages that can be parked begin with the device. */
    _Static_assert(offsetof(struct proto_attach, device) == 0 &&
                       offsetof(struct proto_device_query, device) == 0,
                   "the device comes first");
    memcpy(&session->parked.body, message->body, message->type->bytes);
}

/* The device that a message names, or NULL: then it has been refused. */
static struct device *device_of(struct session *session, uint32_t serial, uint32_t index)
{
    struct supervisor *supervisor = session->supervisor;
    if (index < supervisor->device_count)
        return &supervisor->devices[index];
    session_refuse(session, serial, PROTO_ERROR_INVALID_DEVICE,
                   "there is no device %u: this server has %u", index, supervisor->device_count);
    return NULL;
}

static void describe(struct session *session, uint32_t serial, const struct device *device)
{
    session_answer(session, PROTO_DEVICE_INFO, serial, &device->info, NULL, 0);
}

static void device_query(struct session *session, struct channel_message *message)
{
    struct proto_device_query body;
    memcpy(&body, message->body, sizeof body);
    const struct device *device = device_of(session, message->header.serial, body.device);
    if (device && device->known)
        describe(session, message->header.serial, device);
    else if (device)
        park(session, message);
}

static void attach(struct session *session, struct channel_message *message)
{
    struct proto_attach body;
    memcpy(&body, message->body, sizeof body);
    const struct device *device = device_of(session, message->header.serial, body.device);
    if (device && device->state == SUPERVISOR_DEVICE_READY && !session->supervisor->reload)
        session_attach_now(session, message->header.serial, &body);
    else if (device)
        park(session, message);
}

static void poll_again(struct session *session);

void session_unpark(struct session *session)
{
    if (!session->parked.held || session_leaves(session))
        return;
    struct device *device = &session->supervisor->devices[session->parked.body.device];
    uint32_t serial = session->parked.serial;
    if (session->supervisor->reload && session->parked.opcode == PROTO_ATTACH &&
        device->state == SUPERVISOR_DEVICE_READY)
        return;
    session->parked.held = false;
    if (device->state != SUPERVISOR_DEVICE_READY) {
        char text[512];
        device_explain(device, text, sizeof text);
        session_refuse(session, serial, PROTO_ERROR_DEVICE_NOT_READY, "%s", text);
    } else if (session->parked.opcode == PROTO_ATTACH) {
        session_attach_now(session, serial, &session->parked.body);
    } else {
        describe(session, serial, device);
    }
    poll_again(session);
}

/* ---- the connection ---- */

static void dispatch(struct session *session, struct channel_message *message)
{
    const struct row *row = find_row(message->header.opcode);
    if (message->header.client)
        session_end(session, PROTO_ERROR_PROTOCOL_VIOLATION,
                    "message_header.client must be zero on a client's connection");
    else if (!row)
        session_end(session, PROTO_ERROR_PROTOCOL_VIOLATION,
                    "%s is a message that a client may not send", message->type->name);
    else if (!message->header.serial)
        session_end(session, PROTO_ERROR_PROTOCOL_VIOLATION, "%s came without a serial",
                    message->type->name);
    else if (!(row->states & IN(session->state)))
        session_end(session, PROTO_ERROR_PROTOCOL_VIOLATION,
                    "%s is not allowed in the state '%s' of a connection", message->type->name,
                    session_state_name(session->state));
    else
        row->handler(session, message);
}

static bool must_pause(const struct session *session)
{
    return session->parked.held || session->state == SESSION_ATTACHING ||
           session->requests >= SESSION_REQUESTS_MOST;
}

static void session_ready(uv_poll_t *poll, int status, int events);

static void poll_again(struct session *session)
{
    if (session_leaves(session))
        return;
    session->paused = must_pause(session);
    int events = UV_DISCONNECT | (session->paused ? 0 : UV_READABLE) |
                 (outbox_waiting(&session->outbox) ? UV_WRITABLE : 0);
    uv_poll_start(&session->poll, events, session_ready);
}

static void receive_some(struct session *session)
{
    struct channel_message *message = &session->supervisor->message;
    for (unsigned i = 0; i < BATCH && !session_leaves(session) && !must_pause(session); i++) {
        int result =
            channel_receive(session->fd, PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT, message);
        if (result == CHANNEL_EMPTY)
            return;
        if (result == CHANNEL_CLOSED)
            session_end(session, PROTO_ERROR_SUCCESS, "hung up");
        else if (result == -EPROTO)
            session_end(session, PROTO_ERROR_PROTOCOL_VIOLATION, "%s", message->why);
        else if (result < 0)
            session_end(session, PROTO_ERROR_CONNECTION_LOST, "receiving failed: %s",
                        strerror(-result));
        else
            dispatch(session, message);
        channel_close_fds(message);
    }
}

static void session_ready(uv_poll_t *poll, int status, int events)
{
    struct session *session = poll->data;
    if (status < 0 || ((events & UV_DISCONNECT) && session->paused)) {
        session_end(session, PROTO_ERROR_SUCCESS, "hung up");
        return;
    }
    if ((events & UV_WRITABLE) && outbox_flush(&session->outbox) < 0) {
        session_end(session, PROTO_ERROR_SUCCESS, "hung up");
        return;
    }
    if (events & (UV_READABLE | UV_DISCONNECT))
        receive_some(session);
    poll_again(session);
}

static void life_over(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    session_end(poll->data, PROTO_ERROR_SUCCESS, "the process ended");
}

static void handle_closed(uv_handle_t *handle)
{
    struct session *session = handle->data;
    if (--session->handles)
        return;
    identity_free(&session->identity);
    free(session);
}

static int identify(struct session *session)
{
    struct ucred credentials;
    socklen_t bytes = sizeof credentials;
    if (getsockopt(session->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) < 0)
        return -errno;
    session->pid = credentials.pid;
    session->uid = credentials.uid;
    /* Where the kernel has it: a child may keep the socket open when the client has died. */
    bytes = sizeof session->pidfd;
    if (getsockopt(session->fd, SOL_SOCKET, SO_PEERPIDFD, &session->pidfd, &bytes) < 0)
        session->pidfd = -1;
    else
        fcntl(session->pidfd, F_SETFD, FD_CLOEXEC);
    return 0;
}

/* A client in this very process (tests) is watched by its socket alone. */
static void watch_life(struct session *session)
{
    if (session->pidfd < 0 ||
        uv_poll_init(session->supervisor->loop, &session->life, session->pidfd) < 0)
        return;
    session->life.data = session;
    session->handles++;
    uv_poll_start(&session->life, UV_READABLE, life_over);
}

int session_open(struct session **out, struct supervisor *supervisor, int fd, uint32_t number,
                 enum session_surplus surplus)
{
    *out = NULL;
    struct session *session = calloc(1, sizeof *session);
    int result = -ENOMEM;
    if (!session)
        goto close_fd;
    session->supervisor = supervisor;
    session->fd = fd;
    session->pidfd = session->doorbell = -1;
    session->ring = session->status = session->twin = SHM_NONE;
    session->number = number;
    session->surplus = surplus;
    session->connected_at = timeline_now();
    session->slab_most = HEAP_SLAB_MOST;
    int most = SOCKET_BYTES;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof most) < 0 ||
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        result = -errno;
    else
        result = identify(session);
    if (result == 0)
        result = uv_poll_init(supervisor->loop, &session->poll, fd);
    if (result < 0)
        goto free_session;
    outbox_open(&session->outbox, fd, OUTBOX_MOST);
    session->poll.data = session->patience.data = session;
    uv_timer_init(supervisor->loop, &session->patience);
    uv_timer_start(&session->patience, patience_over, supervisor->settings->hello_timeout_ms, 0);
    session->handles = 2;
    watch_life(session);
    poll_again(session);
    *out = session;
    return 0;

free_session:
    if (session->pidfd >= 0)
        close(session->pidfd);
    free(session);
close_fd:
    close(fd);
    return result;
}

/* ---- answers ---- */

static void format_text(char *text, size_t bytes, const char *format, va_list arguments)
{
    vsnprintf(text, bytes, format, arguments);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

static void sent(struct session *session, int result)
{
    if (result == OUTBOX_QUEUED)
        poll_again(session);
    else if (result == -ENOBUFS)
        session_end(session, PROTO_ERROR_PROTOCOL_VIOLATION,
                    "the client asks and does not read the answers");
    else if (result == -EPIPE || result == -ECONNRESET)
        session_end(session, PROTO_ERROR_SUCCESS, "hung up");
    else if (result < 0)
        session_end(session, PROTO_ERROR_SERVER_RESOURCES, "an answer could not be sent: %s",
                    strerror(-result));
}

void session_answer(struct session *session, uint16_t opcode, uint32_t serial, const void *body,
                    const int *fds, unsigned fd_count)
{
    if (!session_leaves(session))
        sent(session,
             outbox_send(&session->outbox, opcode, serial, 0, body, NULL, 0, fds, fd_count));
}

void session_pass(struct session *session, uint32_t serial, const struct channel_message *answer)
{
    if (!session_leaves(session))
        sent(session, outbox_send(&session->outbox, answer->header.opcode, serial, 0, answer->body,
                                  answer->tail, answer->tail_bytes, NULL, 0));
}

void session_refuse(struct session *session, uint32_t serial, uint32_t error, const char *format,
                    ...)
{
    struct proto_failed body = {.error = error ? error : PROTO_ERROR_UNKNOWN};
    va_list arguments;
    va_start(arguments, format);
    format_text(body.text, sizeof body.text, format, arguments);
    va_end(arguments);
    session_answer(session, PROTO_FAILED, serial, &body, NULL, 0);
}

struct request *session_request_own(struct session *session)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->session = session;
    request->fd = -1;
    request->want.session = session;
    session->requests++;
    return request;
}

struct request *session_request(struct session *session, uint32_t serial, uint16_t reply)
{
    struct request *request = session_request_own(session);
    if (!request) {
        session_refuse(session, serial, PROTO_ERROR_SERVER_RESOURCES,
                       "the server has no memory for another request");
        return NULL;
    }
    request->serial = serial;
    request->reply = reply;
    return request;
}

void session_request_end(struct request *request)
{
    struct session *session = request->session;
    if (request->fd >= 0)
        close(request->fd);
    charge_return(&request->charge);
    image_release(request->image);
    free(request);
    session->requests--;
    if (session_leaves(session))
        session_settle(session);
    else if (session->paused && !must_pause(session))
        poll_again(session);
}

int session_ask(struct session *session, uint16_t opcode, const void *body, const int *fds,
                unsigned fd_count, worker_link_reply *reply, void *context)
{
    return device_request(session->device, opcode, session->number, body, fds, fd_count, reply,
                          context);
}

/* ---- the end ---- */

/* What the client sent and nobody has read would reset the connection on close, and the
 * client's next receive would report that instead of the last message. */
static void hang_up(struct session *session, const struct proto_ended *ended)
{
    uint8_t rest[64];
    shutdown(session->fd, SHUT_RD);
    for (unsigned i = 0; i < 4096 && recv(session->fd, rest, sizeof rest, MSG_DONTWAIT) > 0; i++)
        ;
    if (ended->error)
        channel_send(session->fd, PROTO_ENDED, 0, 0, ended, NULL, 0, NULL, 0);
    outbox_close(&session->outbox);
    uv_close((uv_handle_t *)&session->poll, handle_closed);
    close(session->fd);
    session->fd = -1;
    uv_timer_stop(&session->patience);
    if (session->pidfd < 0)
        return;
    if (session->life.data)
        uv_close((uv_handle_t *)&session->life, handle_closed);
    close(session->pidfd);
    session->pidfd = -1;
}

static void report(const struct session *session, const struct proto_ended *ended)
{
    /* Every client looks at the devices by a connection of its own first: no news. */
    if (!ended->error && session->state < SESSION_ATTACHING)
        log_debug("connection %u (pid %d, uid %u) is gone before it became a client: %s",
                  session->number, (int)session->pid, session->uid, ended->text);
    else if (!ended->error)
        log_info("client %u '%s' (pid %d, uid %u) is gone: %s", session->number, session->name,
                 (int)session->pid, session->uid, ended->text);
    else
        log_warning("client %u '%s' (pid %d, uid %u) is disconnected: %s: %s", session->number,
                    session->name, (int)session->pid, session->uid, error_name(ended->error),
                    ended->text);
}

/* The client's bill, for the journal: what it used in its whole life. */
static void report_usage(const struct session *session, const struct proto_worker_usage *used)
{
    log_info("client %u '%s' (pid %d, uid %u) used %.6f GPU seconds, %llu launches, %llu copies of "
             "%llu bytes",
             session->number, session->name, (int)session->pid, session->uid,
             (double)used->gpu_nanoseconds / 1e9, (unsigned long long)used->launches,
             (unsigned long long)used->copies, (unsigned long long)used->copied_bytes);
}

static void detached(void *context, struct channel_message *answer)
{
    struct session *session = context;
    if (answer && answer->header.opcode == PROTO_WORKER_USAGE)
        report_usage(session, answer->body);
    /* Nothing of it is left there: what it had asked will not be answered any more. */
    if (session->device->link)
        worker_link_cancel(session->device->link, session->number);
    session->at_worker = false;
    session_host_unshare(session);
    session_settle(session);
}

void session_end(struct session *session, uint32_t error, const char *format, ...)
{
    if (session_leaves(session))
        return;
    struct proto_ended ended = {.error = error};
    va_list arguments;
    va_start(arguments, format);
    format_text(ended.text, sizeof ended.text, format, arguments);
    va_end(arguments);
    report(session, &ended);
    session->state = SESSION_LEAVING;
    session->parked.held = false;
    if (session->status.base)
        timeline_fail(
            session->status.base, (void *)((uint8_t *)session->status.base + PROTO_STATUS_FIRST),
            session->supervisor->settings->streams, error ? error : PROTO_ERROR_CONNECTION_LOST);
    hang_up(session, &ended);
    /* Stands for this function: the session must not be settled in the middle of it. */
    session->requests++;
    session_memory_flush(session);
    session_host_flush(session);
    session_host_recall(session);
    if (session->at_worker &&
        session_ask(session, PROTO_WORKER_DETACH, NULL, NULL, 0, detached, session) < 0)
        detached(session, NULL);
    session->requests--;
    session_settle(session);
}

void session_settle(struct session *session)
{
    if (!session_leaves(session) || session->at_worker || session->requests || session->lent ||
        uv_is_closing((uv_handle_t *)&session->patience))
        return;
    if (session->device)
        session_attach_release(session);
    supervisor_session_gone(session->supervisor, session);
    /* Freed from the loop, never under a caller that still looks at it. */
    uv_close((uv_handle_t *)&session->patience, handle_closed);
}
