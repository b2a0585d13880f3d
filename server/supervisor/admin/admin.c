/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/admin.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/admin/answer.h"
#include "server/supervisor/admin/change.h"
#include "server/supervisor/admin/drain.h"
#include "server/supervisor/loop/events.h"
#include "server/supervisor/admin/gather.h"
#include "server/supervisor/admin/kill.h"
#include "server/supervisor/admin/peer.h"
#include "server/supervisor/admin/reload.h"
#include "server/supervisor/admin/show/configuration.h"
#include "server/supervisor/admin/trace.h"
#include "server/supervisor/loop/peer_uid.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/supervisor.h"

#define BACKLOG 64

/* ---- requests ---- */

static bool may_change(const struct admin_peer *peer)
{
    const struct settings *settings = peer->admin->settings;
    if (peer->uid == PEER_UID_UNMAPPED)
        return false;
    if (peer->uid == 0 || peer->uid == settings->owner)
        return true;
    for (unsigned i = 0; i < settings->admin_count; i++)
        if (settings->admins[i] == peer->uid)
            return true;
    return false;
}

static void refuse_change(struct admin_peer *peer, enum admin_kind kind)
{
    const char *verb = admin_request_kind_name(kind);
    if (peer->uid == PEER_UID_UNMAPPED)
        admin_peer_refuse(peer, MESSAGE(admin_nobody), PEER_UID_UNMAPPED, verb);
    else
        admin_peer_refuse(peer, MESSAGE(admin_not_permitted), (unsigned)peer->uid, verb,
                          (unsigned)peer->uid);
}

static void serve_log_level(struct admin_peer *peer, const struct admin_request *request)
{
    char by[ADMIN_NAME];
    if (request->sets_level) {
        log_set_level(request->level);
        log_notice(MESSAGE_TEXT(log_level_set), log_level_name(request->level),
                   admin_peer_name(peer, by));
    }
    admin_peer_answer(peer, admin_answer_log_level());
}

static void serve_config(struct admin_peer *peer)
{
    json_t *answer;
    struct error why;
    if (configuration_answer(peer->admin->supervisor, &answer, &why))
        admin_peer_refuse(peer, why.number, "%s", why.text);
    else
        admin_peer_answer(peer, answer);
}

static void serve_request(struct admin_peer *peer, const struct admin_request *request)
{
    if (admin_request_kind_changes(request->kind) && !may_change(peer)) {
        char text[ADMIN_REQUEST_TEXT];
        log_warning(MESSAGE_TEXT(log_admin_refused), (unsigned)peer->uid, (int)peer->pid,
                    admin_request_describe(request, text));
        refuse_change(peer, request->kind);
        return;
    }
    switch (request->kind) {
    case ADMIN_PING:
        admin_peer_answer(peer, admin_answer_ping());
        break;
    case ADMIN_VERSION:
        admin_peer_answer(peer, admin_answer_version());
        break;
    case ADMIN_STATUS:
    case ADMIN_CLIENTS:
    case ADMIN_METRICS:
        admin_gather(peer, request);
        break;
    case ADMIN_GET:
    case ADMIN_SET:
        admin_change(peer, request);
        break;
    case ADMIN_KILL:
        admin_kill(peer, request);
        break;
    case ADMIN_RELOAD:
        admin_reload(peer, request);
        break;
    case ADMIN_TRACE:
        admin_trace(peer, request);
        break;
    case ADMIN_EVENTS:
        admin_peer_answer(peer, admin_answer_events(request->after));
        break;
    case ADMIN_LOG_LEVEL:
        serve_log_level(peer, request);
        break;
    case ADMIN_CONFIG:
        serve_config(peer);
        break;
    case ADMIN_DRAIN:
    case ADMIN_RESUME:
        admin_drain(peer, request);
        break;
    }
}

/* ---- connections ---- */

static void on_turned_away(uv_handle_t *handle);

/* libuv goes on listening only after a waiting connection was accepted into some handle. */
static void turn_away(struct admin *admin)
{
    if (admin->turning_away || admin->closing)
        return;
    uv_pipe_init(admin->listener.loop, &admin->turned_away, 0);
    admin->turned_away.data = admin;
    admin->turning_away = true;
    admin->turned_away_one =
        uv_accept((uv_stream_t *)&admin->listener, (uv_stream_t *)&admin->turned_away) == 0;
    admin->alive++;
    uv_close((uv_handle_t *)&admin->turned_away, on_turned_away);
}

static void on_turned_away(uv_handle_t *handle)
{
    struct admin *admin = handle->data;
    admin->turning_away = false;
    if (admin->turned_away_one) /* another connection may wait by now */
        turn_away(admin);
    admin_peer_release(admin);
}

/* Whether the peer, which is in the list already, is one too many. If so it is told. */
static bool refuse_crowd(struct admin_peer *peer)
{
    const struct settings *settings = peer->admin->settings;
    bool changes = may_change(peer);
    bool master = changes && (peer->uid == 0 || peer->uid == settings->owner);
    unsigned share = master ? ADMIN_CONNECTIONS_MAX : ADMIN_USER_CONNECTIONS_MAX;
    unsigned all = 0, own = 0;
    struct admin_peer *other;
    LIST_FOR_EACH (other, &peer->admin->peer_list, link) {
        all += !may_change(other);
        own += other->uid == peer->uid;
    }
    bool crowded = !changes && all > ADMIN_CONNECTIONS_MAX;
    if (own <= share && !crowded)
        return false;
    peer->last = true;
    if (own > share)
        admin_peer_refuse(peer, MESSAGE(admin_user_connections_max), (unsigned)peer->uid, share);
    else
        admin_peer_refuse(peer, MESSAGE(admin_connections_max), ADMIN_CONNECTIONS_MAX);
    return true;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct admin *admin = listener->data;
    if (status < 0)
        return;
    struct admin_peer *peer = admin_peer_new(admin);
    if (!peer) {
        turn_away(admin);
        return;
    }
    if (uv_accept(listener, (uv_stream_t *)&peer->pipe) < 0 || !admin_peer_identify(peer)) {
        admin_peer_close(peer);
        return;
    }
    if (!refuse_crowd(peer))
        admin_peer_serve(peer);
}

/* ---- life ---- */

static void on_listener_closed(uv_handle_t *handle)
{
    admin_peer_release(handle->data);
}

uint32_t admin_open(struct admin **out, struct supervisor *supervisor, struct error *why)
{
    *out = NULL;
    struct admin *admin = calloc(1, sizeof *admin);
    if (!admin) {
        return error_set(why, MESSAGE(server_no_memory));
    }
    /* libuv writes without MSG_NOSIGNAL: a peer that has left would end the server with SIGPIPE. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    events_begin();
    list_init(&admin->peer_list);
    admin->carry_out = serve_request;
    admin->supervisor = supervisor;
    admin->settings = supervisor_settings(supervisor);
    uint32_t error = admin_socket_open(&admin->socket, admin->settings->admin_socket,
                                       admin->settings->admin_socket_fd, why);
    if (error) {
        free(admin);
        return error;
    }
    uv_pipe_init(supervisor_loop(supervisor), &admin->listener, 0);
    admin->listener.data = admin;
    admin->alive = 1;
    int result = uv_pipe_open(&admin->listener, admin->socket.fd);
    if (result < 0)
        close(admin->socket.fd);
    else
        result = uv_listen((uv_stream_t *)&admin->listener, BACKLOG, on_connection);
    if (result < 0) {
        admin_close(&admin);
        return error_set(why, error_from_errno(result), MESSAGE_TEXT(admin_listen),
                         uv_strerror(result));
    }
    *out = admin;
    return 0;
}

void admin_hold(struct admin *admin)
{
    admin->holds = true;
}

/* Sending may close any peer, so each search begins anew; few answers wait at a time. */
void admin_send_held(struct admin *admin)
{
    while (admin && admin->held) {
        struct admin_peer *peer = LIST_FIRST(&admin->peer_list, struct admin_peer, link);
        while (!peer->held)
            peer = LIST_ENTRY(list_next(&admin->peer_list, &peer->link), struct admin_peer, link);
        admin_peer_send_held(peer);
    }
}

void admin_close(struct admin **out)
{
    struct admin *admin = *out;
    *out = NULL;
    if (!admin || admin->closing)
        return;
    admin->closing = true;
    admin_socket_remove(&admin->socket);
    struct admin_peer *peer;
    while ((peer = LIST_FIRST(&admin->peer_list, struct admin_peer, link)))
        admin_peer_close(peer);
    uv_close((uv_handle_t *)&admin->listener, on_listener_closed);
}
