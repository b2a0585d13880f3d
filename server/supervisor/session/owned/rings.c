/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/account/fd_budget.h"
#include "server/supervisor/session/owned/pinned_pool.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_worker.h"

/* A segment has a descriptor in two processes' tables, so it holds several rings; but for the
 * default stream's, which is the only one of most clients. */
enum { SEGMENT_RINGS = 4 };

/* Segments leave with the session alone, all at once, so their list is singly linked. */
struct ring_segment {
    struct ring_segment *next;
    uint32_t first, count; /* rings */
    struct charge charge;
    struct charged_fd charged_fd;
    uint32_t kept; /* number of the descriptor */
};

static uint64_t segment_bytes(const struct ring_segment *segment)
{
    return (uint64_t)segment->count * PROTO_RING_STRIDE;
}

static struct ring_segment *segment_find(const struct session *session, uint32_t stream)
{
    struct ring_segment *segment = session->rings;
    while (segment && stream - segment->first >= segment->count)
        segment = segment->next;
    return segment;
}

/* The client may keep the descriptor. So the memory, for which it is charged no more, goes now:
 * what it writes there from now on is memory of its own. */
static void segment_free(struct ring_segment *segment)
{
    if (segment->charged_fd.fd >= 0)
        fallocate(segment->charged_fd.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  (off_t)segment_bytes(segment));
    fd_budget_release(&segment->charged_fd);
    quota_return(&segment->charge);
    free(segment);
}

/* Charges a segment and makes its memory. Returns 0 or the number of the error. */
static uint32_t segment_fill(struct session *session, struct ring_segment *segment,
                             struct error *why)
{
    const struct quota *culprit = NULL;
    uint64_t bytes = segment_bytes(segment);
    if (quota_charge(&session->quotas[RESOURCE_HOST_MEMORY], &segment->charge, bytes, &culprit) ||
        fd_budget_charge(&segment->charged_fd, &session->fds, &culprit)) {
        char size[UNITS_TEXT];
        /* The pool may hold what is missing. It has given way when the client asks again. */
        pinned_pool_make_room(session, culprit, bytes);
        session_quota_refuse_room(session, RESOURCE_HOST_MEMORY, culprit, bytes, why);
        return error_prefix(why, MESSAGE_TEXT(rings_need), units_format_bytes(bytes, size));
    }
    struct shm memory;
    int result = shm_create(&memory, "gpushare-rings", bytes);
    if (result < 0)
        return error_set(why, MESSAGE(rings_memory), strerror(-result));
    segment->charged_fd.fd = memory.fd;
    memory.fd = -1;
    shm_release(&memory); /* the supervisor never reads a client's rings */
    return 0;
}

/* The segment that holds a ring, which is made if it is not there. NULL: *why says why not. */
static struct ring_segment *segment_of(struct session *session, uint32_t stream, struct error *why)
{
    struct ring_segment *segment = segment_find(session, stream);
    if (segment)
        return segment;
    segment = malloc(sizeof *segment);
    if (!segment) {
        error_set(why, MESSAGE(request_no_memory));
        return NULL;
    }
    uint32_t first = stream - stream % SEGMENT_RINGS, end = first + SEGMENT_RINGS;
    if (first == 0) {
        first = stream ? 1 : 0;
        end = stream ? SEGMENT_RINGS : 1;
    }
    end = min(end, session->server->settings->streams);
    *segment =
        (struct ring_segment){.first = first, .count = end - first, .charged_fd = CHARGED_FD_NONE};
    if (segment_fill(session, segment, why)) {
        segment_free(segment);
        return NULL;
    }
    segment->next = session->rings;
    session->rings = segment;
    return segment;
}

/* A segment that the worker refuses stays, and is offered again when the client asks again. */
static void rings_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    if (answer->outcome == WORKER_ANSWERED) {
        const struct ring_segment *segment = segment_find(session, request->object);
        struct proto_rings_made made = {.first = segment->first, .count = segment->count};
        session_answer(session, PROTO_RINGS_MADE, request->serial, &made, &segment->charged_fd.fd,
                       1);
    } else if (answer->outcome == WORKER_REFUSED) {
        session_refuse(session, request->serial, answer->error, "%s", answer->text);
    }
    request_end(request);
}

void session_rings_make(struct session *session, struct channel_message *message)
{
    struct proto_ring_make body;
    memcpy(&body, message->body, sizeof body);
    uint64_t serial = message->header.serial;
    if (body.stream >= session->server->settings->streams) {
        session_refuse(session, serial, MESSAGE(ring_unknown), body.stream,
                       session->server->settings->streams);
        return;
    }
    struct error why;
    const struct ring_segment *segment = segment_of(session, body.stream, &why);
    if (!segment) {
        session_refuse_why(session, serial, &why);
        return;
    }
    struct request *request = request_make(session, serial, PROTO_RINGS_MADE);
    if (!request)
        return;
    request->object = body.stream;
    struct proto_worker_rings rings = {.first = segment->first, .count = segment->count};
    struct channel_packet forwarded = {.opcode = PROTO_WORKER_RINGS,
                                       .body = &rings,
                                       .fds = &segment->charged_fd.fd,
                                       .fd_count = 1};
    if (session_send(session, &forwarded, rings_answered, request) < 0) {
        session_refuse(session, serial, MESSAGE(worker_ended), session->device->index);
        request_end(request);
    }
}

void session_rings_restore(struct session *session, worker_link_reply *answered)
{
    for (const struct ring_segment *at = session->rings; at; at = at->next) {
        struct proto_worker_rings rings = {.first = at->first, .count = at->count};
        struct channel_packet packet = {
            .opcode = PROTO_WORKER_RINGS, .body = &rings, .fds = &at->charged_fd.fd, .fd_count = 1};
        session_send_restoring(session, &packet, answered);
    }
}

int session_rings_describe(const struct session *session, uint32_t stream,
                           struct proto_rings_made *made)
{
    const struct ring_segment *segment = segment_find(session, stream);
    if (!segment)
        return -1;
    *made = (struct proto_rings_made){.first = segment->first, .count = segment->count};
    return segment->charged_fd.fd;
}

/* A segment that the worker has not answered for is kept too: it is offered again. */
void session_rings_pack(struct session *session, struct pack *pack)
{
    uint32_t count = 0;
    for (const struct ring_segment *at = session->rings; at; at = at->next)
        count++;
    pack_number(pack, count);
    for (struct ring_segment *at = session->rings; at; at = at->next) {
        pack_number(pack, at->first);
        pack_number(pack, at->count);
        keeper_pack_fd(session->server->keeper, pack, KEEPER_DATA, at->charged_fd.fd, &at->kept);
    }
}

static int segment_unpack(struct session *session, struct unpack *unpack)
{
    uint32_t streams = session->server->settings->streams;
    struct ring_segment *segment = malloc(sizeof *segment);
    if (!segment)
        return -ENOMEM;
    *segment = (struct ring_segment){.charged_fd = CHARGED_FD_NONE, .next = session->rings};
    segment->first = (uint32_t)unpack_number_max(unpack, streams - 1);
    segment->count = (uint32_t)unpack_number_max(unpack, streams - segment->first);
    segment->kept = unpack_fd(unpack);
    session->rings = segment;
    if (unpack->failed)
        return -EINVAL;
    quota_charge_again(&session->quotas[RESOURCE_HOST_MEMORY], &segment->charge,
                       segment_bytes(segment));
    fd_budget_charge_again(&segment->charged_fd, &session->fds,
                           keeper_take(session->server->keeper, segment->kept, KEEPER_DATA));
    return segment->charged_fd.fd < 0 ? -EBADF : 0;
}

int session_rings_unpack(struct session *session, struct unpack *unpack)
{
    uint64_t count = unpack_number_max(unpack, session->server->settings->streams);
    int result = 0;
    for (uint64_t i = 0; i < count && result == 0; i++)
        result = segment_unpack(session, unpack);
    return result;
}

void session_rings_release(struct session *session)
{
    struct ring_segment *segment;
    while ((segment = session->rings)) {
        session->rings = segment->next;
        segment_free(segment);
    }
}
