/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/messages.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/life/owners.h"
#include "server/supervisor/session/life/end.h"
#include "server/supervisor/session/owned/forward.h"
#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/host_import.h"
#include "server/supervisor/session/owned/link.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/load_wait.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/owned/module.h"
#include "server/supervisor/session/life/restore.h"
#include "server/supervisor/session/owned/rings.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"

/* Bytes of answers that a client has not read: many times the largest message. */
#define SEND_QUEUE_BYTES_MAX (UINT64_C(256) << 10)
/* Number of messages taken in a row before the loop looks at other clients. */
#define BATCH 16
/* A client that said hello may look at the devices for so many hello timeouts before it
 * attaches. */
#define GREETED_TIMEOUTS 6

uint32_t session_fds(const struct session *session)
{
    uint32_t own = (session->fd >= 0) + (session->pidfd >= 0) + (session->header.fd >= 0) +
                   (session->status.fd >= 0) + (session->shadow.fd >= 0) + (session->doorbell >= 0);
    return own + (uint32_t)session->fds.used;
}

/* ---- handlers by message ---- */

static void hello_handle(struct session *session, struct channel_message *message);
static void device_query(struct session *session, struct channel_message *message);
static void kernel_heap_query(struct session *session, struct channel_message *message);
static void attach_handle(struct session *session, struct channel_message *message);

/* The handler of each message. In which states it is allowed stands in the schema. */
static const struct row {
    uint16_t opcode;
    session_handler *handler;
} rows[] = {
    {PROTO_HELLO, hello_handle},
    {PROTO_DEVICE_QUERY, device_query},
    {PROTO_KERNEL_HEAP_QUERY, kernel_heap_query},
    {PROTO_ATTACH, attach_handle},
    {PROTO_WINDOW_MOVE, session_attach_move},
    {PROTO_LIMITS_QUERY, session_limits_query},
    {PROTO_OWNERS_QUERY, session_owners_query},
    {PROTO_LOAD_WAIT_QUERY, session_load_wait_query},
    {PROTO_MEMORY_ALLOC, session_memory_alloc},
    {PROTO_MEMORY_FREE, session_memory_free},
    {PROTO_MEMORY_QUERY, session_memory_query},
    {PROTO_HOST_ALLOC, session_host_alloc},
    {PROTO_HOST_FREE, session_host_free},
    {PROTO_HOST_IMPORT, session_host_import},
    {PROTO_LINK, session_link},
    {PROTO_MODULE_LOAD, session_module_load},
    {PROTO_MODULE_UNLOAD, session_module_unload},
    {PROTO_MODULE_QUERY, session_module_query},
    {PROTO_FUNCTION_GET, session_forward_function_get},
    {PROTO_FUNCTION_SET, session_forward_function_set},
    {PROTO_GLOBAL_GET, session_forward_global_get},
    {PROTO_OCCUPANCY_GET, session_forward_occupancy_get},
    {PROTO_STREAM_CREATE, session_forward_stream_create},
    {PROTO_RING_MAKE, session_rings_make},
    {PROTO_STREAM_DESTROY, session_forward_stream_destroy},
    {PROTO_STREAM_RECOVER, session_forward_stream_recover},
    {PROTO_EVENT_CREATE, session_forward_event_create},
    {PROTO_EVENT_DESTROY, session_forward_event_destroy},
    {PROTO_EVENT_ELAPSED, session_forward_event_elapsed},
};

static const struct row *find_row(uint16_t opcode)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].opcode == opcode)
            return &rows[i];
    return NULL;
}

static void deadline_passed(uv_timer_t *timer)
{
    struct session *session = timer->data;
    if (session->parked.present) {
        struct error why;
        device_refuse(&session->server->devices[session->parked.body.device], &why);
        session_refuse_why(session, session->parked.serial, &why);
        session_fail_why(session, &why);
        return;
    }
    if (session->state == PROTO_CONNECTION_STATE_ATTACHING) {
        struct error why;
        if (device_serves(session->device))
            error_set(&why, MESSAGE(attach_unanswered), session->device->index);
        else
            device_refuse(session->device, &why);
        session_refuse_why(session, session->attach_serial, &why);
        session_fail_why(session, &why);
        return;
    }
    if (session->state == PROTO_CONNECTION_STATE_HELLO)
        session_fail(session, MESSAGE(hello_late));
    else
        session_fail(session, MESSAGE(attach_late));
}

static uint32_t version_refuse(unsigned major, unsigned minor, struct error *why)
{
    return error_set(why, MESSAGE(protocol_unknown), major, minor, GPUSHARE_VERSION, PROTO_MAJOR,
                     PROTO_MINOR);
}

static void hello_handle(struct session *session, struct channel_message *message)
{
    struct proto_hello body;
    memcpy(&body, message->body, sizeof body);
    uint64_t serial = message->header.serial;
    if (body.major != PROTO_MAJOR) {
        struct error why;
        version_refuse(body.major, body.minor, &why);
        session_refuse_why(session, serial, &why);
        session_fail_why(session, &why);
        return;
    }
    if (session->over_limit == OVER_LIMIT_USER) {
        uint32_t most = session->server->user_clients_max;
        session_refuse(session, serial, MESSAGE(user_clients_max), (unsigned)session->uid, most);
        session_fail(session, MESSAGE(user_clients_ended), (unsigned)session->uid, most);
        return;
    }
    if (session->over_limit) {
        uint32_t most = session->server->budget.clients;
        session_refuse(session, serial, MESSAGE(clients_max), most);
        session_fail(session, MESSAGE(clients_ended), most);
        return;
    }
    session_enter(session, PROTO_CONNECTION_STATE_GREETED);
    uv_timer_start(&session->deadline, deadline_passed,
                   (uint64_t)session->server->settings->hello_timeout_ms * GREETED_TIMEOUTS, 0);
    struct proto_welcome welcome = {.major = PROTO_MAJOR,
                                    .minor = PROTO_MINOR,
                                    .features = 0,
                                    .devices = session->server->device_count,
                                    .version = GPUSHARE_VERSION};
    session_answer(session, PROTO_WELCOME, serial, &welcome, NULL, 0);
}

/* Whether a client may attach to a device that serves: no reload is under way, and those that the
 * device's worker does not know yet go first. */
static bool attaching_opens(const struct server *server, const struct device *device)
{
    return !server->attaching_waits && !session_restore_goes_first(server, device);
}

/* Has the request wait until the device's worker is ready, answers, and attaching_opens. No other
 * message of the client is read meanwhile. */
static void request_park(struct session *session, const struct channel_message *message)
{
    session->parked.present = true;
    session->parked.serial = message->header.serial;
    session->parked.opcode = message->header.opcode;
    memset(&session->parked.body, 0, sizeof session->parked.body);
    /* Both messages that can be parked begin with the device's index. */
    _Static_assert(offsetof(struct proto_attach, device) == 0 &&
                       offsetof(struct proto_device_query, device) == 0,
                   "the device comes first");
    memcpy(&session->parked.body, message->body, message->type->bytes);
}

/* The device that a message names. Otherwise refuses the message and returns NULL. */
static struct device *device_of(struct session *session, uint64_t serial, uint32_t index)
{
    struct server *server = session->server;
    if (index < server->device_count)
        return &server->devices[index];
    session_refuse(session, serial, MESSAGE(device_unknown), index, server->device_count);
    return NULL;
}

static void device_describe(struct session *session, uint64_t serial, const struct device *device)
{
    session_answer(session, PROTO_DEVICE_INFO, serial, &device->info, NULL, 0);
}

static void device_query(struct session *session, struct channel_message *message)
{
    struct proto_device_query body;
    memcpy(&body, message->body, sizeof body);
    const struct device *device = device_of(session, message->header.serial, body.device);
    if (device && device->known)
        device_describe(session, message->header.serial, device);
    else if (device)
        request_park(session, message);
}

static void kernel_heap_query(struct session *session, struct channel_message *message)
{
    struct proto_kernel_heap_query body;
    memcpy(&body, message->body, sizeof body);
    const struct device *device = device_of(session, message->header.serial, body.device);
    if (device)
        session_answer(session, PROTO_KERNEL_HEAP, message->header.serial, &device->heap, NULL, 0);
}

/* A client that is attached already goes on, also with the next worker. */
static bool refuse_drained(struct session *session, uint64_t serial, const struct device *device)
{
    if (device->drained)
        session_refuse(session, serial, MESSAGE(attach_drained), device->index, device->index);
    return device->drained;
}

static void attach_handle(struct session *session, struct channel_message *message)
{
    struct proto_attach body;
    memcpy(&body, message->body, sizeof body);
    const struct device *device = device_of(session, message->header.serial, body.device);
    if (device && refuse_drained(session, message->header.serial, device))
        return;
    if (device && ailment_wait(&device->ailment, clock_now()) > AILMENT_CLIENTS_WAIT) {
        struct error why;
        device_refuse(device, &why);
        session_refuse_why(session, message->header.serial, &why);
        return;
    }
    bool taken = device && device_serves(device) && attaching_opens(session->server, device) &&
                 session_attach_now(session, message->header.serial, &body);
    if (device && !taken)
        request_park(session, message);
}

void session_unpark(struct session *session)
{
    if (!session->parked.present)
        return;
    struct device *device = &session->server->devices[session->parked.body.device];
    uint64_t serial = session->parked.serial;
    const bool drained = session->parked.opcode == PROTO_ATTACH && device->drained;
    if (!drained && session->parked.opcode == PROTO_ATTACH && device->state == DEVICE_READY &&
        (device->watchdog.silent || !attaching_opens(session->server, device)))
        return;
    session->parked.present = false;
    if (drained || device->state != DEVICE_READY)
        session->room_until = 0; /* another attempt has its own time */
    if (drained) {
        refuse_drained(session, serial, device);
    } else if (device->state != DEVICE_READY) {
        struct error why;
        device_refuse(device, &why);
        session_refuse_why(session, serial, &why);
    } else if (session->parked.opcode == PROTO_ATTACH) {
        session->parked.present = !session_attach_now(session, serial, &session->parked.body);
    } else {
        device_describe(session, serial, device);
    }
    session_poll(session);
}

/* ---- the connection ---- */

/* Serials must grow, so that a request which is sent twice is not carried out twice. */
static bool serial_is_new(struct session *session, const struct channel_message *message)
{
    uint64_t serial = message->header.serial;
    if (serial > session->last_serial) {
        session->last_serial = serial;
        return true;
    }
    session_refuse(session, serial, MESSAGE(message_serial), message->type->name,
                   (unsigned long long)serial, (unsigned long long)session->last_serial);
    return false;
}

/* Requests that `gpushare info` makes, which scripts run each minute. */
static bool only_looks(uint16_t opcode)
{
    return opcode == PROTO_LIMITS_QUERY || opcode == PROTO_OWNERS_QUERY ||
           opcode == PROTO_LOAD_WAIT_QUERY || opcode == PROTO_MEMORY_QUERY ||
           opcode == PROTO_DEVICE_QUERY || opcode == PROTO_KERNEL_HEAP_QUERY;
}

static void request_handle(struct session *session, const struct row *row,
                           struct channel_message *message)
{
    if (session->state == PROTO_CONNECTION_STATE_ATTACHED && !only_looks(row->opcode))
        session_attach_announce(session);
    if (session_inbox_add(session, message) < 0)
        session_refuse(session, message->header.serial, MESSAGE(request_no_memory));
    else
        row->handler(session, message);
}

static void message_dispatch(struct session *session, struct channel_message *message)
{
    const struct row *row = find_row(message->header.opcode);
    session->heard_at = clock_now();
    if (message->header.client)
        session_fail(session, MESSAGE(client_number_set));
    else if (!row)
        session_fail(session, MESSAGE(message_forbidden), message->type->name);
    else if (!message->header.serial)
        session_fail(session, MESSAGE(message_no_serial), message->type->name);
    /* It is in the inbox, or was answered. First, since it may have changed the state. */
    else if (message->header.serial == session->keeping.seen)
        session->keeping.seen = 0;
    else if (!(message->type->states & 1u << session->state))
        session_fail(session, MESSAGE(message_state), message->type->name,
                     proto_connection_state_name(session->state));
    else if (serial_is_new(session, message))
        request_handle(session, row, message);
}

void session_handle_again(struct session *session, struct channel_message *message)
{
    find_row(message->header.opcode)->handler(session, message);
}

/* A message that breaks the protocol may be the hello of a client from before the header had its
 * present form. Such a client is told in the form that it knows. */
static void message_refuse(struct session *session, const struct channel_message *message)
{
    uint32_t serial =
        session->state == PROTO_CONNECTION_STATE_HELLO ? channel_old_hello(message) : 0;
    if (!serial) {
        session_fail(session, MESSAGE(protocol_broken), message->why);
        return;
    }
    struct error why;
    version_refuse(1, 0, &why);
    channel_refuse_old_hello(session->fd, serial, why.text);
    session_fail_why(session, &why);
}

static void receive_some(struct session *session)
{
    struct channel_message *message = &session->server->message;
    for (unsigned i = 0; i < BATCH && session_reads(session); i++) {
        /* Before it attaches a client has no share of the server's descriptors to send any in. */
        if (session->state < PROTO_CONNECTION_STATE_ATTACHED && channel_brings_fds(session->fd)) {
            session_fail(session, MESSAGE(descriptors_early));
            return;
        }
        bool peeks = session->server->keeper != NULL;
        int result = (peeks ? channel_peek_all : channel_receive_all)(
            session->fd, PROTO_PEER_SUPERVISOR, PROTO_PEER_CLIENT, message);
        if (result == CHANNEL_EMPTY)
            return;
        if (result == CHANNEL_CLOSED)
            session_fail(session, MESSAGE(client_hung_up));
        else if (result == -EPROTO)
            message_refuse(session, message);
        else if (result < 0)
            session_fail(session, MESSAGE(receive_failed), strerror(-result));
        else
            message_dispatch(session, message);
        if (!closer_take_message(session->server->closer, message, session_sender(session)))
            session_fail(session, MESSAGE(closes_wait));
        /* It stays in the socket until its request is kept: there is no next one before that. */
        if (peeks) {
            session->keeping.peeked = true;
            session_touch(session);
            return;
        }
    }
}

static void session_ready(uv_poll_t *poll, int status, int events)
{
    struct session *session = poll->data;
    if (status < 0 || ((events & UV_DISCONNECT) && session->paused)) {
        session_fail(session, MESSAGE(client_hung_up));
        return;
    }
    if ((events & UV_WRITABLE) && send_queue_flush(&session->send_queue) < 0) {
        session_fail(session, MESSAGE(client_hung_up));
        return;
    }
    if (events & (UV_READABLE | UV_DISCONNECT))
        receive_some(session);
    session_poll(session);
}

static void process_ended(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    session_fail(poll->data, MESSAGE(process_ended));
}

static int peer_identify(struct session *session)
{
    struct ucred credentials;
    socklen_t bytes = sizeof credentials;
    if (getsockopt(session->fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) < 0)
        return -errno;
    session->pid = credentials.pid;
    session->uid = credentials.uid;
    /* A child may keep the socket open when the client has died. */
    session->pidfd = identity_pidfd(session->fd, session->pid, &session->pidfd_by_number);
    return 0;
}

/* A client in this very process, as in tests, is watched by its socket alone. */
static void process_watch(struct session *session)
{
    if (session->pidfd < 0 ||
        uv_poll_init(session->server->loop, &session->process_poll, session->pidfd) < 0)
        return;
    session->process_poll.data = session;
    session->handles++;
    uv_poll_start(&session->process_poll, UV_READABLE, process_ended);
}

int session_open(struct session **out, struct server *server, int fd, uint32_t number,
                 enum session_over_limit over_limit)
{
    *out = NULL;
    struct session *session = calloc(1, sizeof *session);
    int result = -ENOMEM;
    if (!session)
        goto close_fd;
    session->server = server;
    session->fd = fd;
    session->pidfd = session->doorbell = -1;
    session->header = session->status = session->shadow = SHM_NONE;
    session->number = number;
    session->over_limit = over_limit;
    session->ready = session_ready;
    session->connected_at = clock_now();
    session->slab_max = HEAP_SLAB_MAX;
    list_init(&session->keeping.inbox);
    list_init(&session->imports);
    list_init(&session->modules);
    /* Of these each may have a long name. */
    session->keeping.tables[PART_FUNCTIONS].page_rows = 4;
    session->keeping.tables[PART_INBOX].page_rows = 1;
    send_queue_open(&session->send_queue, fd, SEND_QUEUE_BYTES_MAX);
    session->send_queue.hold = server->keeper ? &server->hold : NULL;
    result = send_queue_narrow(&session->send_queue);
    if (result == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        result = -errno;
    if (result == 0)
        result = peer_identify(session);
    if (result == 0)
        result = uv_poll_init(server->loop, &session->poll, fd);
    if (result < 0)
        goto free_session;
    session->poll.data = session->deadline.data = session;
    session->host_wait.data = session->memory_wait.data = session;
    uv_timer_init(server->loop, &session->deadline);
    uv_timer_init(server->loop, &session->host_wait);
    uv_timer_init(server->loop, &session->memory_wait);
    uv_timer_start(&session->deadline, deadline_passed, server->settings->hello_timeout_ms, 0);
    session->handles = 4;
    process_watch(session);
    session_poll(session);
    session_touch(session);
    *out = session;
    return 0;

free_session:
    if (session->pidfd >= 0)
        close(session->pidfd);
    free(session);
close_fd:
    closer_hang_up(server->closer, fd, false, CLOSER_SERVER);
    return result;
}
