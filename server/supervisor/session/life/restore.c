/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/restore.h"

#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/ipc/doorbell.h"
#include "common/ipc/ring.h"
#include "common/ipc/shared_word.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/session/accounting.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/owned/forward.h"
#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/host_import.h"
#include "server/supervisor/session/owned/link.h"
#include "server/supervisor/session/owned/lost_copies.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/owned/module.h"
#include "server/supervisor/session/owned/rings.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"
#include "server/supervisor/device/device_request.h"

/* A driver that is broken for good keeps its clients waiting no longer: five starts, by the delays
 * between them. */
#define WAIT_MAX_NS (2 * UNITS_SECOND)

/* Sessions that the worker is told of at a time: as many as keep its threads at work. */
#define AT_A_TIME 8
/* Another one begins after so long, whatever those before it wait for. */
#define PACE_MS 20
/* How long clients that connect wait for those: modules that load slowly are their owner's loss. */
#define FIRST_NS UNITS_SECOND

/* Each step needs the answers of the one before. */
enum step { STEP_NONE, STEP_CLIENT, STEP_OBJECTS, STEP_CODE, STEP_KERNELS, STEP_ATTRIBUTES };

static struct proto_status_header *status_of(struct session *session)
{
    return ring_status_header(session->status.base);
}

void session_restore_hold(struct session *session)
{
    session->held = true;
    session->at_worker = false;
    session->lost = true;
    session->restore.step = STEP_NONE;
    session->restore.due = 0;
    session->restore.adopts = false;
    session_module_lose(session);
    shared_word_publish(&status_of(session)->recovering, 1);
    if (!session->restore.held_at)
        session->restore.held_at = clock_now();
    session_touch(session);
}

bool session_restore_is_whole(const struct session *session)
{
    return !session->held || session->restore.adopts;
}

void session_restore_take_up(struct session *session, bool whole)
{
    if (session->device->state != DEVICE_READY) {
        session_restore_hold(session);
        return;
    }
    session->restore.adopts = whole;
}

static bool words_agree(void *shadow, uint32_t streams)
{
    for (uint32_t i = 0; i < streams; i++)
        if (shared_word_read(ring_shadow_reached(shadow, i)) <
            shared_word_read(ring_shadow_begun(shadow, streams, i)))
            return false;
    return true;
}

bool session_restore_had_work(const struct session *session)
{
    void *shadow = mmap(NULL, session->shadow.bytes, PROT_READ, MAP_SHARED, session->shadow.fd, 0);
    if (shadow == MAP_FAILED)
        return true;
    bool agree = words_agree(shadow, session->server->settings->streams);
    munmap(shadow, session->shadow.bytes);
    return !agree;
}

bool session_restore_judge(struct session *session, const char *text)
{
    uint64_t waited = clock_now() - session->restore.held_at;
    uint64_t ails = ailment_wait(&session->device->ailment, clock_now());
    bool hopeless =
        (!session->device->served && waited > WAIT_MAX_NS) || (ails && waited + ails > WAIT_MAX_NS);
    if (session->state == PROTO_CONNECTION_STATE_LEAVING)
        return false;
    if (hopeless)
        session_fail(session, PROTO_ERROR_WORKER_LOST, MESSAGE_TEXT(session_worker_lost), text);
    else
        session_lost_copies_find(session);
    return session->state != PROTO_CONNECTION_STATE_LEAVING;
}

static void step_answered(void *context, const struct worker_answer *answer);

static void objects_restore(struct session *session)
{
    session_rings_restore(session, step_answered);
    session_memory_restore(session, step_answered);
    session_host_restore(session, step_answered);
    session_host_import_restore(session, step_answered);
    session_link_restore(session, step_answered);
    session_forward_restore_objects(session, step_answered);
    session_module_restore_images(session, step_answered);
}

static void resume_answered(void *context, const struct worker_answer *answer)
{
    struct session *session = context;
    if (answer->outcome == WORKER_REFUSED)
        session_fail(session, answer->error, MESSAGE_TEXT(session_not_restored), answer->text);
}

/* The worker takes messages in order, so what was held comes when the rings are read again. */
static void resume_client(struct session *session)
{
    struct channel_packet packet = {.opcode = PROTO_WORKER_RESUME};
    /* A server that was killed may have noted it and not sent it. */
    session_send_restoring(session, &packet, resume_answered);
    session->held = false;
    session->restore.step = STEP_NONE;
    session->restore.due = 0;
    session->restore.held_at = 0;
    /* A client that sees the end of it sees that it was. */
    if (!session->restore.adopts) {
        shared_word_publish_add(&status_of(session)->recoveries, 1);
        shared_word_publish(&status_of(session)->recovering, 0);
        session_forward_restore_ends(session);
    }
    session->restore.adopts = false;
    session_touch(session);
    device_request_held(session->device, session->number);
    log_info(MESSAGE_TEXT(log_clients_restored), session->device->index, session->number,
             session->name);
    /* The next one's turn, as soon as control is back at the loop. */
    device_pace(session->device, 0);
}

/* Goes on to the next step that has something to be waited for. */
static void steps_advance(struct session *session)
{
    while (session->restore.due == 0 && session->held &&
           session->state != PROTO_CONNECTION_STATE_LEAVING) {
        /* A worker that has the client's objects is told nothing of them. */
        if (session->restore.adopts && session->restore.step == STEP_CLIENT)
            session->restore.step = STEP_ATTRIBUTES;
        switch (++session->restore.step) {
        case STEP_CLIENT:
            session_attach_restore(session, step_answered);
            break;
        case STEP_OBJECTS:
            objects_restore(session);
            break;
        case STEP_CODE:
            session_module_restore_code(session, step_answered);
            break;
        case STEP_KERNELS:
            session_forward_restore_kernels(session, step_answered);
            break;
        case STEP_ATTRIBUTES:
            session_forward_restore_attributes(session, step_answered);
            break;
        default:
            resume_client(session);
        }
    }
}

static void step_answered(void *context, const struct worker_answer *answer)
{
    struct session *session = context;
    if (answer->outcome == WORKER_REFUSED)
        session_fail(session, answer->error, MESSAGE_TEXT(session_not_restored), answer->text);
    /* A worker that is lost again was told about before: the session is held anew. */
    if (answer->outcome != WORKER_ANSWERED)
        return;
    if (session->restore.step == STEP_CLIENT)
        accounting_share(session, answer->message->body);
    session->restore.due--;
    steps_advance(session);
}

/* ---- whose turn it is ---- */

/* Whether commands were rung for that no worker has looked at. The client can write this memory, so
 * it is good for its turn and for nothing else. */
static bool has_rung(const struct session *session)
{
    size_t bytes = session->header.bytes;
    struct proto_client_header *header =
        mmap(NULL, bytes, PROT_READ, MAP_SHARED, session->header.fd, 0);
    if (header == MAP_FAILED)
        return false;
    bool rung = doorbell_pending(header);
    munmap(header, bytes);
    return rung;
}

/* A user's turns before one of an idle client, as far as others wait. */
enum { IDLE_BEHIND = 8 };

/* A client can ring for commands and ask for something at any moment, and a user may have very many
 * clients. So each user has a turn before the next of one of them. */
static uint32_t turns_before(const struct session *session)
{
    uint32_t restored = session->user_share ? session->user_share->restored : 0;
    return restored + (session->restore.busy ? 0 : IDLE_BEHIND);
}

int session_restore_compare(const struct session *one, const struct session *other)
{
    uint32_t before = turns_before(one), others = turns_before(other);
    if (before != others)
        return before < others ? -1 : 1;
    if (one->restore.busy != other->restore.busy)
        return one->restore.busy ? -1 : 1;
    return one->heard_at == other->heard_at ? 0 : one->heard_at > other->heard_at ? -1 : 1;
}

static bool is_restored_now(const struct session *session)
{
    return session->held && session->restore.step != STEP_NONE &&
           session->state != PROTO_CONNECTION_STATE_LEAVING;
}

static bool waits_for_its_turn(const struct session *session)
{
    return session->held && session->restore.step == STEP_NONE &&
           session->state != PROTO_CONNECTION_STATE_LEAVING;
}

static struct session *find_next(struct server *server, const struct device *device, unsigned *now)
{
    struct session *session, *next = NULL;
    *now = 0;
    LIST_FOR_EACH (session, &server->session_list, link) {
        if (session->device != device)
            continue;
        *now += is_restored_now(session);
        if (waits_for_its_turn(session) && (!next || session_restore_compare(session, next) < 0))
            next = session;
    }
    return next;
}

bool session_restore_goes_first(const struct server *server, const struct device *device)
{
    const struct session *session;
    if (clock_now() - device->ready_at > FIRST_NS)
        return false;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device && session->held &&
            session->state != PROTO_CONNECTION_STATE_LEAVING)
            return true;
    return false;
}

/* least: so many begin, whatever the number that are restored now. */
static void begin_some(struct server *server, struct device *device, unsigned least)
{
    struct session *next = NULL;
    unsigned now;
    while (device_serves(device) && (next = find_next(server, device, &now)) &&
           (least || now < AT_A_TIME)) {
        least -= least != 0;
        if (next->user_share)
            next->user_share->restored++;
        steps_advance(next);
    }
    /* A session that ends instead of going on is noticed by the look after this one. */
    if (next || session_restore_goes_first(server, device))
        device_pace(device, PACE_MS);
}

void session_restore_all(struct server *server, struct device *device)
{
    struct session *session;
    LIST_FOR_EACH (session, &server->session_list, link)
        if (session->device == device && waits_for_its_turn(session)) {
            session->restore.busy = session_restore_had_work(session) || has_rung(session);
            if (session->user_share)
                session->user_share->restored = 0;
        }
    begin_some(server, device, 0);
}

void session_restore_more(struct server *server, struct device *device)
{
    begin_some(server, device, 1);
}
