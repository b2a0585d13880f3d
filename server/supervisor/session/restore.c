/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/restore.h"

#include <string.h>
#include <sys/mman.h>

#include "common/ipc/ring.h"
#include "common/ipc/shared_word.h"
#include "common/ipc/timeline.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/session/attach.h"
#include "server/supervisor/session/forward.h"
#include "server/supervisor/session/host.h"
#include "server/supervisor/session/memory.h"
#include "server/supervisor/session/module.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/rings.h"
#include "server/supervisor/session/server.h"

/* A driver that is broken for good keeps its clients waiting no longer: five starts, by the delays
 * between them. */
#define WAIT_MAX_NS UINT64_C(2000000000)

/* Each step needs the answers of the one before. */
enum step { STEP_NONE, STEP_CLIENT, STEP_OBJECTS, STEP_CODE, STEP_KERNELS, STEP_ATTRIBUTES };

void session_restore_hold(struct session *session)
{
    session->held = true;
    session->at_worker = false;
    session->lost = true;
    session->restore.step = STEP_NONE;
    session->restore.due = 0;
    if (!session->restore.since)
        session->restore.since = timeline_now();
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
    uint32_t module = session_module_resident(session);
    bool hopeless =
        !session->device->served && timeline_now() - session->restore.since > WAIT_MAX_NS;
    if (session->state == PROTO_CONNECTION_STATE_LEAVING)
        return false;
    if (hopeless)
        session_fail(session, PROTO_ERROR_WORKER_LOST, MESSAGE_TEXT(session_worker_lost), text);
    else if (module)
        session_fail(session, MESSAGE(session_variables_lost), text, module);
    return session->state != PROTO_CONNECTION_STATE_LEAVING;
}

static void step_answered(void *context, const struct worker_answer *answer);

static void objects_restore(struct session *session)
{
    session_rings_restore(session, step_answered);
    session_memory_restore(session, step_answered);
    session_host_restore(session, step_answered);
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
static void resume(struct session *session)
{
    struct channel_packet packet = {.opcode = PROTO_WORKER_RESUME};
    session_send_restoring(session, &packet, resume_answered);
    session->held = false;
    session->restore.step = STEP_NONE;
    session->restore.due = 0;
    session->restore.since = 0;
    session_forward_restore_ends(session);
    device_send_held(session->device, session->number);
    log_info(MESSAGE_TEXT(log_clients_restored), session->device->index, session->number,
             session->name);
}

/* Goes on to the next step that has something to be waited for. */
static void steps_advance(struct session *session)
{
    while (session->restore.due == 0 && session->held &&
           session->state != PROTO_CONNECTION_STATE_LEAVING) {
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
            resume(session);
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
        memcpy(&session->worker, answer->message->body, sizeof session->worker);
    session->restore.due--;
    steps_advance(session);
}

void session_restore_begin(struct session *session)
{
    if (session->held && session->restore.step == STEP_NONE)
        steps_advance(session);
}
