/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/blame.h"

#include <stdio.h>
#include <string.h>

#include "common/ipc/timeline.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/session/lost_kernels.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/restore.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"

/* By then a client that faults alone would have been named. */
#define COMMON_FAULTS_MAX 3

/* Whether an error that ended a context comes from a kernel: errors of kernels, but not those of
 * the machine (ECC, NVLink), of the server, and those without a name. */
static bool has_author(uint32_t error)
{
    switch (error) {
    case PROTO_ERROR_ILLEGAL_ADDRESS:
    case PROTO_ERROR_LAUNCH_TIMEOUT:
    case PROTO_ERROR_ASSERT:
    case PROTO_ERROR_HARDWARE_STACK_ERROR:
    case PROTO_ERROR_ILLEGAL_INSTRUCTION:
    case PROTO_ERROR_MISALIGNED_ADDRESS:
    case PROTO_ERROR_INVALID_ADDRESS_SPACE:
    case PROTO_ERROR_INVALID_PC:
    case PROTO_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

static bool is_suspect(const struct session *session, const struct device *device)
{
    return session->device == device && session->held &&
           session->state != PROTO_CONNECTION_STATE_LEAVING && session_restore_had_work(session);
}

void session_blame_departed(const struct server *server, struct device *device)
{
    const struct session *session;
    device->departed_suspects = 0;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device && session->at_worker &&
            session->state == PROTO_CONNECTION_STATE_LEAVING && session_restore_had_work(session))
            device->departed_suspects++;
}

/* Once an author is found, the faults that the others had in common with somebody count no more: a
 * client that always works would be isolated for them. */
static void absolve_all(struct server *server, struct device *device)
{
    struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device)
            memset(&session->blame, 0, sizeof session->blame);
    device_serve_together(device);
}

static void find_guilty(struct server *server, struct device *device, struct session *session)
{
    char kernels[200];
    session_lost_kernels(session, kernels, sizeof kernels);
    log_error(MESSAGE_TEXT(log_guilty), device->index, session->number, session->name,
              (int)session->pid, session->uid, device->trouble, kernels);
    offenders_note(&server->offenders, session->uid, timeline_now());
    absolve_all(server, device);
    session_fail(session, device->loss, MESSAGE_TEXT(session_guilty), device->trouble, kernels);
}

static void isolate(const struct device *device, struct session *session)
{
    session->blame.isolated = true;
    log_warning(MESSAGE_TEXT(log_isolated), device->index, session->number, session->name,
                session->blame.common);
}

/* Adds a client to a list that is as long as a line of the log may be. */
static void list_add(char *names, size_t size, const struct session *session)
{
    size_t used = strlen(names);
    int wanted = snprintf(names + used, size - used, "%s%u '%.16s'", used ? ", " : "",
                          session->number, session->name);
    if (wanted >= (int)(size - used))
        memcpy(names + size - 4, "...", 4);
}

static void mark_suspects(struct server *server, struct device *device)
{
    char names[320] = "";
    struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (is_suspect(session, device)) {
            list_add(names, sizeof names, session);
            session->blame.suspect = true;
            if (++session->blame.common == COMMON_FAULTS_MAX)
                isolate(device, session);
        }
    log_error(MESSAGE_TEXT(log_suspects), device->index, names, device->departed_suspects);
    device_serve_singly(device);
}

void session_blame_find(struct server *server, struct device *device)
{
    struct session *session, *only = NULL;
    uint32_t suspects = device->departed_suspects;
    if (!has_author(device->loss))
        return;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (is_suspect(session, device)) {
            only = session;
            suspects++;
        }
    if (suspects > 1 && only)
        mark_suspects(server, device);
    else if (only)
        find_guilty(server, device, only);
    else
        log_error(MESSAGE_TEXT(log_guilty_left), device->index, suspects);
}

bool session_blame_absolve(struct server *server, const struct device *device)
{
    struct session *session;
    bool isolated = false;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device) {
            session->blame.suspect = false;
            isolated |= session->blame.isolated && session->state != PROTO_CONNECTION_STATE_LEAVING;
        }
    return !isolated;
}
