/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/clients.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/life/record.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/supervisor_private.h"

/* Connections above the limit that are kept until their hello, to be refused with a sentence. */
#define OVER_LIMIT_MAX 16
/* As many of these may one user have, so that other users' clients are told too. */
#define OVER_LIMIT_USER_MAX 4

static uint32_t number_take(struct supervisor *supervisor)
{
    do
        supervisor->next_number++;
    while (!supervisor->next_number || session_find(&supervisor->server, supervisor->next_number));
    return supervisor->next_number;
}

/* A connection that is not even kept until its hello. MESSAGE(name) and its arguments. */
__attribute__((format(printf, 5, 6))) static void connection_refuse(struct supervisor *supervisor,
                                                                    int fd, uid_t uid,
                                                                    uint32_t error,
                                                                    const char *format, ...)
{
    struct proto_ended ended = {.error = error};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(ended.text, sizeof ended.text, format, arguments);
    va_end(arguments);
    channel_send(fd, &(struct channel_packet){.opcode = PROTO_ENDED, .body = &ended});
    closer_hang_up(supervisor->server.closer, fd, false, (struct closer_sender){.uid = uid});
}

/* Sessions of every peer, and how many of them only wait to be refused. */
static int peer_count(const struct supervisor *supervisor, int fd, uid_t *uid, uint32_t *served,
                      uint32_t *over_limit)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    *served = *over_limit = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
        return -errno;
    *uid = peer.uid;
    const struct session *session;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (session->uid == peer.uid)
            ++*(session->over_limit ? over_limit : served);
    return 0;
}

static void client_admit(struct supervisor *supervisor, int fd, enum session_over_limit over_limit)
{
    struct session *session;
    int result =
        session_open(&session, &supervisor->server, fd, number_take(supervisor), over_limit);
    if (result < 0) {
        log_warning(MESSAGE_TEXT(log_connection_refused), strerror(-result));
        return;
    }
    session_enlist(session);
    supervisor->over_limit += over_limit != OVER_LIMIT_NONE;
}

int clients_adopt(struct supervisor *supervisor, uint32_t number,
                  const struct state_log_entry *entry)
{
    struct session *session;
    int result = session_record_open(&session, &supervisor->server, number, entry);
    if (result < 0)
        return result;
    session_enlist(session);
    supervisor->over_limit += session->over_limit != OVER_LIMIT_NONE;
    return 0;
}

void clients_accept(struct supervisor *supervisor, int fd)
{
    enum session_over_limit over_limit = OVER_LIMIT_NONE;
    uint32_t served, waiting;
    uid_t uid = (uid_t)-1;
    int result = peer_count(supervisor, fd, &uid, &served, &waiting);
    if (result < 0) {
        connection_refuse(supervisor, fd, uid, MESSAGE(peer_unknown), strerror(-result));
        return;
    }
    if (supervisor->stopping) {
        connection_refuse(supervisor, fd, uid, MESSAGE(server_ended));
        return;
    }
    if (supervisor->server.sessions - supervisor->over_limit >= supervisor->server.budget.clients)
        over_limit = OVER_LIMIT_SERVER;
    else if (served >= supervisor->server.user_clients_max)
        over_limit = OVER_LIMIT_USER;
    supervisor->server.refused += over_limit != OVER_LIMIT_NONE;
    if (!over_limit || (supervisor->over_limit < OVER_LIMIT_MAX && waiting < OVER_LIMIT_USER_MAX))
        client_admit(supervisor, fd, over_limit);
    else if (over_limit == OVER_LIMIT_SERVER)
        connection_refuse(supervisor, fd, uid, MESSAGE(clients_max),
                          supervisor->server.budget.clients);
    else
        connection_refuse(supervisor, fd, uid, MESSAGE(user_clients_max), (unsigned)uid,
                          supervisor->server.user_clients_max);
}

struct session *clients_find_attached(const struct supervisor *supervisor, uint32_t client)
{
    struct session *session = session_find(&supervisor->server, client);
    return session && session->state == PROTO_CONNECTION_STATE_ATTACHED ? session : NULL;
}

void clients_remove(struct supervisor *supervisor, struct session *session)
{
    if (supervisor->server.keeper)
        session_record_remove(session);
    session_delist(session);
    supervisor->over_limit -= session->over_limit != OVER_LIMIT_NONE;
}

int clients_kill(struct supervisor *supervisor, uint32_t client, const char *by)
{
    struct session *session = session_find(&supervisor->server, client);
    if (!session || session->state == PROTO_CONNECTION_STATE_LEAVING)
        return -ENOENT;
    session_fail(session, MESSAGE(client_killed), by);
    return 0;
}

void clients_drain(struct supervisor *supervisor, uint32_t device, bool drained)
{
    struct session *session;
    supervisor->server.devices[device].drained = drained;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link)
        if (drained && session->parked.present && session->parked.body.device == device)
            session_unpark(session);
}

/* Writes the clients that end with this one's worker: "1 'a' (uid 0), 4 'b' (uid 7)". Returns how
 * many they are. */
static unsigned neighbours_format(const struct supervisor *supervisor, const struct session *of,
                                  char names[160])
{
    const struct session *session;
    unsigned others = 0;
    size_t used = 0;
    names[0] = 0;
    LIST_FOR_EACH (session, &supervisor->server.session_list, link) {
        if (session == of || session->device != of->device ||
            session->state == PROTO_CONNECTION_STATE_LEAVING)
            continue;
        if (used < 160)
            used += (size_t)snprintf(names + used, 160 - used, "%s%u '%.16s' (uid %u)",
                                     others ? ", " : "", session->number, session->name,
                                     (unsigned)session->uid);
        others++;
    }
    if (used >= 160)
        strcpy(names + 160 - sizeof "...", "...");
    return others;
}

/* A new worker would end others for nothing. */
static uint32_t refuse_idle(const struct supervisor *supervisor, uint32_t client,
                            uint32_t waits_for, struct error *why)
{
    const struct session *other =
        waits_for != client ? session_find(&supervisor->server, waits_for) : NULL;
    return other ? error_set(why, MESSAGE(client_leaving_waits), client, waits_for, other->name)
                 : error_set(why, MESSAGE(client_leaving_idle), client);
}

uint32_t clients_kill_leaving(struct supervisor *supervisor, uint32_t client,
                              const struct proto_worker_usage *usage, bool force, const char *by,
                              struct error *why)
{
    struct session *session = session_find(&supervisor->server, client);
    char names[160];
    if (!session || !session->device || !session->at_worker)
        return error_set(why, MESSAGE(client_unknown), client);
    if (usage && !usage->in_flight)
        return refuse_idle(supervisor, client, usage->waits_for, why);
    if (!force) {
        unsigned others = neighbours_format(supervisor, session, names);
        return others ? error_set(why, MESSAGE(client_leaving), client, session->device->index,
                                  others, names, client)
                      : error_set(why, MESSAGE(client_leaving_alone), client,
                                  session->device->index, client);
    }
    struct error lost;
    error_set(&lost, MESSAGE(client_forced), by, session->device->index, client, session->name);
    device_replace(session->device, &lost);
    return 0;
}
