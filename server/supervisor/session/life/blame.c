/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/blame.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/ipc/ring.h"
#include "common/ipc/shared_word.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/session/life/lost_kernels.h"
#include "server/supervisor/session/life/restore.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/device/device_singly.h"

/* By then a client that faults alone would have been named. */
#define COMMON_FAULTS_MAX 3

/* A suspect that has asked for something since the fault is at it for so long from then on; all of
 * them together have PROBATION_MAX_NS. */
#define AT_IT_NS         (3 * UNITS_SECOND)
#define PROBATION_MAX_NS (10 * UNITS_SECOND)
/* Faults beside suspects that left may each have been made by another one of these. */
#define FORGET_NS (600 * UNITS_SECOND)

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

/* The client reads it when it finds a stream interrupted, which is after it is restored. */
static void say_lost_by(const struct session *session, enum proto_lost_by lost_by)
{
    if (session->status.base)
        shared_word_publish(&ring_status_header(session->status.base)->lost_by, lost_by);
}

static bool goes_on(const struct session *session, const struct device *device)
{
    return session->device == device && session->state != PROTO_CONNECTION_STATE_LEAVING;
}

/* A crash may also come from a request that the worker was carrying out. */
static bool is_suspect(const struct session *session, const struct device *device, bool crash)
{
    return goes_on(session, device) && session->held &&
           (session_restore_had_work(session) || (crash && session->blame.asked));
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
    device->suspects = 0;
    device_singly_forget(device);
}

static void find_guilty(struct server *server, struct device *device, struct session *session)
{
    char kernels[LOST_KERNELS_TEXT], logged[64];
    session_lost_kernels(session, kernels);
    session_log_about(session);
    log_error(MESSAGE_TEXT(log_guilty), device->index, session->number, session->name,
              (int)session->pid, session->uid, error_name(device->loss), kernels);
    offenders_note(&server->offenders, session->uid, clock_now());
    history_lose(&server->history, device->index, session->uid, device->loss, device->ended_at);
    absolve_all(server, device);
    snprintf(logged, sizeof logged, MESSAGE_TEXT(guilty_logged), device->index);
    session_fail_logged(session, device->loss, logged, MESSAGE_TEXT(session_guilty),
                        device->trouble, kernels);
}

static void isolate(const struct device *device, struct session *session)
{
    uint32_t faults = session->blame.common + session->blame.beside_left;
    if (faults < COMMON_FAULTS_MAX || session->blame.isolated)
        return;
    session->blame.isolated = true;
    session_log_about(session);
    log_warning(MESSAGE_TEXT(log_isolated), device->index, session->number, session->name, faults);
}

/* A fault, or a crash, of which this client may be the author as well as any other. */
static void count_common(const struct device *device, struct session *session)
{
    session->blame.common++;
    isolate(device, session);
}

static void forget_beside_left(struct session *session)
{
    if (session->blame.beside_left && clock_now() - session->blame.beside_left_at >= FORGET_NS)
        session->blame.beside_left = 0;
}

/* One that it may have made as well as a client that has left. */
static void count_beside_left(const struct device *device, struct session *session)
{
    forget_beside_left(session);
    session->blame.beside_left++;
    session->blame.beside_left_at = clock_now();
    isolate(device, session);
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

/*
 * The probation of the latest fault is over. If each suspect has run alone since, one of them
 * faults in company only, and nobody knows which. Otherwise it was one that has not: the others
 * have done alone what they did then. Where all such ones have left, it was one of them or one that
 * faults in company only; the latter stays, and so is the one that is there at each of the faults.
 */
static void settle_suspects(struct server *server, struct device *device)
{
    struct session *session;
    uint32_t there = 0, proven = 0;
    LIST_FOR_EACH (session, &server->session_list, link) {
        bool suspect = goes_on(session, device) && session->blame.suspect;
        there += suspect;
        proven += suspect && session->blame.proven;
    }
    LIST_FOR_EACH (session, &server->session_list, link) {
        if (!goes_on(session, device) || !session->blame.suspect)
            continue;
        if (proven == device->suspects || !session->blame.proven)
            count_common(device, session);
        else if (proven == there)
            count_beside_left(device, session);
        session->blame.suspect = false;
        session_touch(session);
    }
    device->suspects = 0;
}

static void log_marked(const struct device *device, const char *names, bool crash)
{
    log_about_device(device->index);
    log_error(crash ? MESSAGE_TEXT(log_crash_suspects) : MESSAGE_TEXT(log_suspects), device->index,
              names, device->departed_suspects);
}

static void mark_suspects(struct server *server, struct device *device, bool crash)
{
    char names[320] = "";
    struct session *session;
    settle_suspects(server, device);
    device->suspects = device->departed_suspects;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (is_suspect(session, device, crash)) {
            list_add(names, sizeof names, session);
            say_lost_by(session, PROTO_LOST_BY_SUSPECTS);
            session->blame.suspect = true;
            session->blame.proven = false;
            device->suspects++;
        }
    log_marked(device, names, crash);
    device_singly_begin(device);
}

/* Nobody is guilty of a crash: the driver may have made it. But who was alone at one was not alone
 * by chance, and the suspects of the one before are suspects no more. */
static void note_lone_crash(struct server *server, struct device *device, struct session *only)
{
    char names[40] = "";
    struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device)
            session->blame.suspect = false;
    device->suspects = 0;
    list_add(names, sizeof names, only);
    say_lost_by(only, PROTO_LOST_BY_SUSPECTS);
    log_marked(device, names, true);
    count_common(device, only);
    if (only->blame.isolated)
        device_singly_begin(device);
}

static void find_among(struct server *server, struct device *device, bool crash)
{
    struct session *session, *only = NULL;
    uint32_t suspects = device->departed_suspects;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (is_suspect(session, device, crash)) {
            only = session;
            suspects++;
        }
    if (suspects > 1 && only)
        mark_suspects(server, device, crash);
    else if (only && crash)
        note_lone_crash(server, device, only);
    else if (only)
        find_guilty(server, device, only);
    else if (!crash)
        log_error(MESSAGE_TEXT(log_guilty_left), device->index, suspects);
}

void session_blame_find(struct server *server, struct device *device)
{
    struct session *session;
    const bool crash = device->crashed && device->loss == PROTO_ERROR_WORKER_LOST;
    const bool authored = has_author(device->loss) || crash;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device)
            say_lost_by(session, authored ? PROTO_LOST_BY_ANOTHER : PROTO_LOST_BY_NOBODY);
    if (authored)
        find_among(server, device, crash);
    /* Unless an author was found. */
    history_lose(&server->history, device->index, HISTORY_NOBODY, device->loss, device->ended_at);
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device) {
            session->blame.asked = false;
            session_touch(session);
        }
}

void session_blame_prove(struct server *server, struct session *session)
{
    const struct session *other;
    if (!session->blame.suspect)
        return;
    session->blame.proven = true;
    session_touch(session);
    LIST_FOR_EACH (other, &server->session_list, link)
        if (goes_on(other, session->device) && other->blame.suspect && !other->blame.proven)
            return;
    device_singly_look_soon(session->device);
}

/* A suspect that is about to run alone what was interrupted. Its program may have to recover its
 * streams before, to load modules, and to copy, which the server does not hear of. */
static bool is_at_it(const struct session *session)
{
    return session->blame.suspect && !session->blame.proven &&
           (session->held || session->requests || session_restore_had_work(session) ||
            (session->heard_at > session->device->ended_at &&
             clock_now() - session->heard_at < AT_IT_NS));
}

static bool is_isolated(struct session *session)
{
    forget_beside_left(session);
    if (session->blame.common + session->blame.beside_left < COMMON_FAULTS_MAX)
        session->blame.isolated = false;
    return session->blame.isolated;
}

bool session_blame_absolve(struct server *server, struct device *device)
{
    struct session *session;
    bool isolated = false;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (goes_on(session, device) && is_at_it(session) &&
            clock_now() - device->ready_at < PROBATION_MAX_NS)
            return false;
    settle_suspects(server, device);
    LIST_FOR_EACH (session, &server->session_list, link)
        isolated |= goes_on(session, device) && is_isolated(session);
    return !isolated;
}
