/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/session/owned/idle_memory.h"
#include "server/supervisor/session/owned/lend.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"

static void wants_retry(struct session *session);
static void memory_quiesce(struct session *session);

static bool frees_pending(const struct session *session)
{
    return session->unmapping || session->retired_now || session->retired_next;
}

static void want_serve(struct want *want, struct heap_block *block)
{
    struct want_answer answer = {.outcome = WANT_SERVED, .block = block, .text = ""};
    want->done(want, &answer);
}

static void want_refuse(struct want *want, uint32_t error, const char *text)
{
    struct want_answer answer = {.outcome = WANT_REFUSED, .error = error, .text = text};
    want->done(want, &answer);
}

static void want_end(struct want *want)
{
    struct want_answer answer = {.outcome = WANT_SESSION_ENDED, .text = ""};
    want->done(want, &answer);
}

static void want_refuse_limit(struct want *want, uint64_t asked, const struct quota *culprit)
{
    struct error why;
    session_quota_refuse(want->session, culprit, asked, &why);
    want_refuse(want, why.number, why.text);
}

static void want_queue(struct want *want)
{
    queue_append(&want->session->wants, &want->link);
}

/* ---- memory that clients keep idle ---- */

/* Memory that is taken from a client comes when that client's work is done, which may be never. */
enum { OTHERS_WAIT_MS = 2000 };

static bool others_free(const struct session *session)
{
    const struct session *other;
    LIST_FOR_EACH (other, &session->server->session_list, link)
        if (session_lend_is_other(session, other) && frees_pending(other))
            return true;
    return false;
}

static void others_wait_is_over(uv_timer_t *timer)
{
    struct session *session = timer->data;
    session->server->attaching_again |= session->state != PROTO_CONNECTION_STATE_ATTACHED;
    session_touch(session);
    wants_retry(session);
}

bool session_memory_await_others(struct session *session, const struct quota *culprit,
                                 uint64_t bytes, uint64_t *until)
{
    uv_timer_t *timer = &session->memory_wait;
    uint64_t now = uv_now(session->server->loop);
    uint64_t left = culprit ? session_lend_due_in(session) : 0;
    if (!left) {
        if (culprit && session_lend_look(session, culprit, bytes, session_memory_return) && !*until)
            *until = now + OTHERS_WAIT_MS;
        if (now >= *until || !others_free(session))
            return false;
        left = *until - now;
    }
    session->server->memory_awaited = true;
    if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > left)
        uv_timer_start(timer, others_wait_is_over, left, 0);
    return true;
}

/* Memory of this session has come back: others may wait for it, or want to attach. */
static void others_retry(const struct session *session)
{
    struct server *server = session->server;
    struct session *other;
    if (!server->memory_awaited)
        return;
    server->memory_awaited = false;
    server->attaching_again = true;
    LIST_FOR_EACH (other, &server->session_list, link)
        if (uv_is_active((uv_handle_t *)&other->memory_wait)) {
            server->memory_awaited = true;
            session_touch(other);
            wants_retry(other);
        }
}

/* Whether memory is on its way to a want that lacks room in this quota; NULL: in its window. The
 * client's own comes first, freed or idle. */
static bool want_waits(struct want *want, const struct quota *culprit, uint64_t bytes)
{
    struct session *session = want->session;
    if (!frees_pending(session))
        session_lend_take_own(session, session_memory_return);
    return frees_pending(session) ||
           session_memory_await_others(session, culprit, bytes, &want->until);
}

void session_memory_make_room(struct session *session, uint64_t request)
{
    const struct quota *memory = &session->quotas[RESOURCE_MEMORY];
    if (memory->used > memory->limit)
        session_lend_take_own(session, session_memory_return);
    if (request && request <= memory->parent->limit)
        session_lend_take(session, memory->parent, request, session_memory_return);
}

/* ---- regions: from the worker and back to it ---- */

/* Forgets a region that was never mapped, or that the worker has unmapped. */
static void region_forget(struct heap_region *region)
{
    fd_budget_release(&region->charged_fd);
    quota_return(&region->charge);
    heap_region_remove(region);
}

static void unmap_answered(void *context, const struct worker_answer *answer)
{
    struct heap_region *region = context;
    struct session *session = region->user;
    char size[UNITS_TEXT];
    session_touch(session);
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        region_forget(region);
        others_retry(session);
        break;
    case WORKER_REFUSED:
        /* It is there still: so are its charge and its addresses, until the session's end. */
        log_error(MESSAGE_TEXT(log_unmap_refused), session->number,
                  units_format_bytes(region->bytes, size),
                  allowance_resource(RESOURCE_MEMORY)->phrase, answer->text);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        return; /* session_memory_release takes it */
    }
    session->unmapping--;
    wants_retry(session);
}

static void region_ask_unmap(struct session *session, struct heap_region *region)
{
    struct proto_worker_unmap body = {.address = region->address, .count = region->bytes};
    region->user = session;
    session->unmapping++;
    session_ask_surely(session, PROTO_WORKER_UNMAP, &body, unmap_answered, region);
}

/* Unmaps a region without used blocks. It stays charged until the worker answers. */
static void region_unmap(struct session *session, struct heap_region *region)
{
    heap_region_withdraw(region);
    region_ask_unmap(session, region);
}

/* The device had no room for a region. Smaller slabs may fit; otherwise the wants are refused. */
static void map_refused(struct session *session, struct heap_region *region,
                        const struct worker_answer *answer)
{
    struct want *want = region->user;
    uint64_t bytes = region->bytes;
    bool slab = region->slab;
    bool full = answer->error == PROTO_ERROR_OUT_OF_MEMORY;
    const struct quota *device = session->quotas[RESOURCE_MEMORY].parent;
    region_forget(region);
    if (!slab) {
        if (full && want_waits(want, device, bytes))
            want_queue(want);
        else
            want_refuse(want, answer->error, answer->text);
        return;
    }
    uint64_t least = heap_round_region(&session->heap, HEAP_SMALL_BELOW);
    if (full && bytes > least) {
        session->slab_max = heap_round_region(&session->heap, bytes / 2);
        wants_retry(session);
        return;
    }
    if (full && frees_pending(session))
        return;
    /* All are taken off the queue first: being refused, a want may add another. */
    struct queue all = session->wants;
    session->wants = (struct queue){0};
    while ((want = QUEUE_TAKE(&all, struct want, link)))
        if (heap_round(want->count) < HEAP_SMALL_BELOW &&
            !(full && want_waits(want, device, bytes)))
            want_refuse(want, answer->error, answer->text);
        else
            want_queue(want);
}

/* A slab that nobody needs any more, since memory was freed meanwhile, would stay charged until
 * something of it was taken and freed. */
static void slab_offer(struct session *session, struct heap_region *region)
{
    wants_retry(session);
    if (region->first->state == HEAP_BLOCK_FREE && region->first->bytes == region->bytes)
        region_unmap(session, region);
}

static void map_answered(void *context, const struct worker_answer *answer)
{
    struct heap_region *region = context;
    struct session *session = container_of(region->heap, struct session, heap);
    struct want *want = region->user;
    struct heap_block *block;
    switch (answer->outcome) {
    case WORKER_ANSWERED:
        region->charged_fd.fd = channel_take_fd(answer->message, 0);
        region->user = NULL;
        block = heap_region_ready(region);
        if (block)
            want_serve(want, block);
        else
            slab_offer(session, region);
        break;
    case WORKER_REFUSED:
        map_refused(session, region, answer);
        break;
    case WORKER_LOST:
    case WORKER_SESSION_ENDED:
        /* session_memory_release takes the region. A slab's wants are in the queue, and told
         * there. */
        region->user = NULL;
        if (want)
            want_end(want);
        break;
    }
}

enum { REGION_WAITS = 1, REGION_NO_ROOM = 2 };

/*
 * Charges a region and asks the worker for it. Returns 0; REGION_NO_ROOM, with the quota in
 * *culprit or NULL if the window is full; or -errno.
 */
static int region_map(struct session *session, uint64_t bytes, bool slab, struct want *want,
                      const struct quota **culprit)
{
    struct charge charge = CHARGE_NONE;
    struct charged_fd charged = CHARGED_FD_NONE;
    struct heap_region *region;
    *culprit = NULL;
    if (quota_charge(&session->quotas[RESOURCE_MEMORY], &charge, bytes, culprit))
        return REGION_NO_ROOM;
    if (fd_budget_charge(&charged, &session->fds, culprit)) {
        quota_return(&charge);
        return REGION_NO_ROOM;
    }
    int result = heap_region_add(&session->heap, bytes, slab, &region);
    if (result) {
        fd_budget_release(&charged);
        quota_return(&charge);
        return result == HEAP_FULL ? REGION_NO_ROOM : result;
    }
    region->charge = charge;
    region->charged_fd = charged;
    region->user = want;
    struct proto_worker_map body = {.address = region->address, .count = bytes};
    result = session_ask(session, PROTO_WORKER_MAP, &body, map_answered, region);
    if (result < 0)
        region_forget(region);
    return result;
}

/* Asks for a slab as large as the next one should be, the limit and the device allow; at least
 * `bytes`. */
static int region_map_slab(struct session *session, uint64_t bytes, const struct quota **culprit)
{
    struct heap *heap = &session->heap;
    uint64_t needed = heap_round_region(heap, bytes);
    uint64_t left = quota_left(&session->quotas[RESOURCE_MEMORY]) & ~(heap->granularity - 1);
    uint64_t size = heap->next_slab;
    size = min(size, session->slab_max);
    size = min(size, left);
    size = max(size, needed);
    int result = region_map(session, size, true, NULL, culprit);
    if (result == REGION_NO_ROOM && !*culprit && size > needed)
        result = region_map(session, needed, true, NULL, culprit);
    return result;
}

/* ---- wanting ---- */

static void want_refuse_room(struct want *want, uint64_t bytes, const struct quota *culprit)
{
    struct error why;
    session_quota_refuse_room(want->session, RESOURCE_MEMORY, culprit, bytes, &why);
    want_refuse(want, why.number, why.text);
}

/* Serves a want, queues it, or refuses it. */
static void want_try(struct want *want)
{
    struct session *session = want->session;
    struct heap *heap = &session->heap;
    uint64_t bytes = heap_round(want->count), whole = heap_round_region(heap, want->count);
    const struct quota *culprit = &session->quotas[RESOURCE_MEMORY];
    struct heap_block *block;
    int result;
    if (!bytes || !whole || whole > session->quotas[RESOURCE_MEMORY].limit) {
        want_refuse_limit(want, want->count, culprit);
        return;
    }
    /* Blocks that were freed and wait for the device count too. Otherwise their number would have
     * no bound. */
    if (heap->used_blocks + heap->retired_blocks >= SESSION_ALLOCATIONS_MAX &&
        heap->retired_blocks) {
        want_queue(want);
        return;
    }
    if (heap->used_blocks >= SESSION_ALLOCATIONS_MAX && want_waits(want, NULL, bytes)) {
        want_queue(want);
        return;
    }
    if (heap->used_blocks >= SESSION_ALLOCATIONS_MAX) {
        want_refuse(want, MESSAGE(allocations_max));
        return;
    }
    bool small = bytes < HEAP_SMALL_BELOW;
    if (small) {
        result = heap_take(heap, bytes, &block);
        if (result == HEAP_FULL && heap->mapping) {
            want_queue(want);
            return;
        }
        if (result == HEAP_FULL) {
            result = region_map_slab(session, bytes, &culprit);
            if (result == 0) {
                want_queue(want);
                return;
            }
        } else if (result == 0) {
            want_serve(want, block);
            return;
        }
    } else {
        result = region_map(session, whole, false, want, &culprit);
        if (result == 0)
            return;
        /* Slabs that have room may have used up the limit. */
        if (result == REGION_NO_ROOM && heap_take(heap, bytes, &block) == 0) {
            want_serve(want, block);
            return;
        }
    }
    if (result == REGION_NO_ROOM && want_waits(want, culprit, whole))
        want_queue(want);
    else if (result == REGION_NO_ROOM)
        want_refuse_room(want, whole, culprit);
    else
        want_refuse(want, MESSAGE(memory_request_failed));
}

void session_memory_want(struct want *want)
{
    want_try(want);
}

static void wants_retry(struct session *session)
{
    struct queue all = session->wants;
    struct want *want;
    session->wants = (struct queue){0};
    while ((want = QUEUE_TAKE(&all, struct want, link)))
        want_try(want);
}

void session_memory_flush(struct session *session)
{
    struct want *want;
    while ((want = QUEUE_TAKE(&session->wants, struct want, link)))
        want_end(want);
}

/* ---- returning ---- */

static void quiesce_answered(void *context, const struct worker_answer *answer)
{
    struct session *session = context;
    if (answer->outcome == WORKER_LOST || answer->outcome == WORKER_SESSION_ENDED)
        return; /* session_memory_release takes the blocks */
    session_touch(session);
    struct heap_block *block = session->retired_now;
    session->retired_now = NULL;
    /* Work that uses these blocks may still run: they are given to nobody until the session's end.
     */
    if (answer->outcome == WORKER_REFUSED) {
        log_error(MESSAGE_TEXT(log_quiesce_refused), session->number, answer->text);
        block = NULL;
    }
    for (struct heap_block *next; block; block = next) {
        next = block->next;
        block->next = NULL;
        struct heap_region *empty = heap_block_reclaim(block);
        if (empty)
            region_unmap(session, empty);
    }
    session->slab_max = HEAP_SLAB_MAX;
    if (session->retired_next)
        memory_quiesce(session);
    wants_retry(session);
}

/* One quiesce at a time: everything that is freed before the next one shares it. */
static void memory_quiesce(struct session *session)
{
    session->retired_now = session->retired_next;
    session->retired_next = NULL;
    session_ask_surely(session, PROTO_WORKER_QUIESCE, NULL, quiesce_answered, session);
}

void session_memory_return(struct session *session, struct heap_block *block)
{
    heap_block_retire(block);
    if (!block->region->slab) {
        region_unmap(session, block->region);
        return;
    }
    block->next = session->retired_next;
    session->retired_next = block;
    if (!session->retired_now)
        memory_quiesce(session);
}

/* The worker has nothing of this client any more, so nothing has to wait for the device. */
void session_memory_release(struct session *session)
{
    struct heap *heap = &session->heap;
    for (struct heap_region *region = heap->first, *next; region; region = next) {
        next = region->next;
        if (region->state == HEAP_REGION_LIVE) {
            heap_region_clear(region);
            heap_region_withdraw(region);
        }
        region_forget(region);
    }
    session->retired_now = session->retired_next = NULL;
    session->unmapping = 0;
}

/* A region that is being mapped, or that is to be unmapped again, has its request among the held
 * ones. */
void session_memory_restore(struct session *session, worker_link_reply *answered)
{
    for (const struct heap_region *at = session->heap.first; at; at = at->next) {
        /* One without a descriptor was being mapped for the last server. */
        if (at->state == HEAP_REGION_MAPPING || at->charged_fd.fd < 0)
            continue;
        struct proto_worker_remap body = {.address = at->address, .count = at->bytes};
        struct channel_packet packet = {
            .opcode = PROTO_WORKER_REMAP, .body = &body, .fds = &at->charged_fd.fd, .fd_count = 1};
        session_send_restoring(session, &packet, answered);
    }
}

/* ---- another server ---- */

enum { REGION_LIVE = 1, REGION_SLAB = 2, REGION_RESERVED = 4 };
enum { BLOCK_RETIRED = 1, BLOCK_RESERVED = 2 };

static uint64_t region_flags(const struct heap_region *region)
{
    bool live = region->state == HEAP_REGION_LIVE;
    return (live ? REGION_LIVE : 0) | (region->slab ? REGION_SLAB : 0) |
           (live && !region->slab && region->first->reserved ? REGION_RESERVED : 0);
}

void session_memory_region_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    struct session *session = context;
    struct heap_region *region = item;
    (void)row;
    if (!region)
        return;
    pack_number(pack, region->address);
    pack_number(pack, region->bytes);
    pack_number(pack, region_flags(region));
    keeper_pack_fd(session->server->keeper, pack, KEEPER_DATA, region->charged_fd.fd,
                   &region->kept);
}

struct kept_block {
    uint64_t address;
    uint64_t bytes; /* and flags */
};

void session_memory_block_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    const struct heap_block *block = item;
    (void)context;
    (void)row;
    if (!block)
        return;
    const struct kept_block kept = {
        .address = block->address,
        .bytes = block->bytes | (block->state == HEAP_BLOCK_RETIRED ? BLOCK_RETIRED : 0) |
                 (block->reserved ? BLOCK_RESERVED : 0)};
    pack_bytes(pack, &kept, sizeof kept);
}

static int region_unpack(struct session *session, struct unpack *unpack)
{
    uint64_t address = unpack_number(unpack), bytes = unpack_number(unpack);
    uint64_t flags = unpack_number(unpack);
    uint32_t kept = unpack_fd(unpack);
    struct heap_region *region;
    if (unpack->failed)
        return -EINVAL;
    int result =
        heap_region_put(&session->heap, address, bytes, (flags & REGION_SLAB) != 0, &region);
    if (result < 0)
        return result;
    quota_charge_again(&session->quotas[RESOURCE_MEMORY], &region->charge, bytes);
    fd_budget_charge_again(&region->charged_fd, &session->fds,
                           keeper_take(session->server->keeper, kept, KEEPER_DATA));
    region->kept = kept;
    struct heap_block *whole = heap_region_ready(region);
    if (!(flags & REGION_LIVE)) {
        heap_region_clear(region);
        heap_region_withdraw(region);
    } else if (whole && flags & REGION_RESERVED) {
        heap_block_reserve(whole);
    }
    return 0;
}

int session_memory_regions_unpack(struct session *session, struct unpack *unpack)
{
    int result = 0;
    while (result == 0 && !unpack_is_whole(unpack))
        result = region_unpack(session, unpack);
    return result;
}

static int block_compare(const void *a, const void *b)
{
    const struct kept_block *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Retired blocks wait for the next quiesce. */
static int block_take(struct session *session, struct heap_region *region, struct heap_block *from,
                      const struct kept_block *kept, struct heap_block **block)
{
    int result =
        heap_take_at(region, from, kept->address, kept->bytes & ~(HEAP_ALIGNMENT - 1), block);
    if (result < 0)
        return result;
    if (kept->bytes & BLOCK_RESERVED)
        heap_block_reserve(*block);
    if (kept->bytes & BLOCK_RETIRED) {
        heap_block_retire(*block);
        (*block)->next = session->retired_next;
        session->retired_next = *block;
    }
    return 0;
}

/* In the order of addresses, so that nothing is looked for twice. */
static int blocks_take(struct session *session, const struct kept_block *blocks, size_t count)
{
    struct heap_region *region = session->heap.first;
    struct heap_block *latest = NULL;
    for (size_t i = 0; i < count; i++) {
        for (; region && region->address + region->bytes <= blocks[i].address;
             region = region->next)
            latest = NULL;
        if (!region || !region->slab || region->state != HEAP_REGION_LIVE)
            return -EINVAL;
        int result = block_take(session, region, latest, &blocks[i], &latest);
        if (result < 0)
            return result;
    }
    return 0;
}

int session_memory_blocks_unpack(struct session *session, const struct state_log_entry *entries,
                                 size_t count)
{
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        bytes += entries[i].bytes;
    if (!bytes || bytes % sizeof(struct kept_block))
        return bytes ? -EINVAL : 0;
    struct kept_block *blocks = malloc(bytes);
    if (!blocks)
        return -ENOMEM;
    for (size_t i = 0; i < count; at += entries[i++].bytes)
        memcpy((uint8_t *)blocks + at, entries[i].data, entries[i].bytes);
    qsort(blocks, bytes / sizeof *blocks, sizeof *blocks, block_compare);
    int result = blocks_take(session, blocks, bytes / sizeof *blocks);
    free(blocks);
    return result;
}

void session_memory_resume(struct session *session)
{
    struct heap_region *next;
    for (struct heap_region *region = session->heap.first; region; region = next) {
        next = region->next;
        if (region->state == HEAP_REGION_UNMAPPING)
            region_ask_unmap(session, region);
    }
    if (session->retired_next)
        memory_quiesce(session);
}

/* ---- messages ---- */

static void alloc_done(struct want *want, const struct want_answer *answer)
{
    struct request *request = container_of(want, struct request, want);
    struct session *session = request->session;
    struct heap_block *block = answer->block;
    if (answer->outcome == WANT_SERVED) {
        struct proto_memory_allocated body = {.address = block->address, .count = block->bytes};
        session_answer(session, request->reply, request->serial, &body, NULL, 0);
    } else if (answer->outcome == WANT_REFUSED) {
        session_refuse(session, request->serial, answer->error, "%s", answer->text);
    }
    request_end(request);
}

void session_memory_alloc(struct session *session, struct channel_message *message)
{
    struct proto_memory_alloc body;
    memcpy(&body, message->body, sizeof body);
    struct request *request = request_make(session, message->header.serial, PROTO_MEMORY_ALLOCATED);
    if (!request)
        return;
    request->want.count = body.count;
    request->want.done = alloc_done;
    session_memory_want(&request->want);
}

void session_memory_free(struct session *session, struct channel_message *message)
{
    struct proto_memory_free body;
    memcpy(&body, message->body, sizeof body);
    struct heap_block *block = heap_find(&session->heap, body.address);
    if (!block || block->reserved) {
        session_refuse(session, message->header.serial, MESSAGE(device_memory_not_begun),
                       (unsigned long long)body.address);
        return;
    }
    session_memory_return(session, block);
    session_answer(session, PROTO_DONE, message->header.serial, NULL, NULL, 0);
}

/* Clients take what is free to be the limit without this, so it has what others hold of a total. A
 * limit may have been lowered below what the client uses. */
static uint64_t used_of(const struct session *session, enum resource resource, uint64_t limit,
                        uint64_t idle)
{
    const struct quota *quota = &session->quotas[resource];
    const bool lent = resource == RESOURCE_MEMORY && !session_lend_due_in(session);
    idle = min(idle, quota->used);
    return max(quota->used - idle,
               limit - quota_left_in_totals(quota, idle, lent ? session_lend_idle : NULL, session));
}

/* Memory of the device that others hold is not free either, whoever they are. Host memory that the
 * server keeps gives way at once. */
static uint64_t device_used_of(const struct session *session, uint64_t limit, uint64_t idle)
{
    const struct quota *quota = &session->quotas[RESOURCE_MEMORY];
    const uint64_t used = used_of(session, RESOURCE_MEMORY, limit, idle);
    idle = min(idle, quota->used);
    uint64_t left = quota_left_above(quota, idle, NULL, NULL);
    if (left < saturating_sub(limit, used) && !session_lend_due_in(session))
        left = quota_left_above(quota, idle, session_lend_idle, session);
    return max(used, saturating_sub(limit, left));
}

void session_memory_query(struct session *session, struct channel_message *message)
{
    const struct allowance granted = session_limits_in_force(session);
    const uint64_t idle = session_idle_memory_charged(session);
    struct proto_memory_info body = {
        .limit = granted.memory.limit,
        .used = device_used_of(session, granted.memory.limit, idle),
        .host_limit = granted.host_memory.limit,
        .host_used = used_of(session, RESOURCE_HOST_MEMORY, granted.host_memory.limit, 0)};
    session_answer(session, PROTO_MEMORY_INFO, message->header.serial, &body, NULL, 0);
}
