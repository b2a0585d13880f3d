/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/pinned_pool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/device/device_request.h"

/* The loop walks all of them, so they are few. */
#define BUFFERS_MAX 256
/* Kept windows may have this part of the arena. */
#define WINDOWS_PART 4

static struct pinned_pool *pool_of(const struct pinned_buffer *buffer)
{
    return &buffer->server->pinned;
}

/* NULL: the window that it lies in has none. */
static struct session *session_of(const struct pinned_buffer *buffer)
{
    return buffer->window ? NULL : container_of(buffer->region->heap, struct session, buffers);
}

void pinned_pool_open(struct pinned_pool *pool,
                      void (*retry)(struct server *server, struct session *session))
{
    *pool = (struct pinned_pool){.retry = retry};
    list_init(&pool->buffers);
    list_init(&pool->windows);
}

bool pinned_pool_is_empty(const struct pinned_pool *pool)
{
    return list_is_empty(&pool->buffers) && list_is_empty(&pool->windows);
}

/* ---- one buffer ---- */

static void buffer_enter(struct pinned_buffer *buffer, enum pinned_state state)
{
    buffer->state = state;
    heap_region_mark(buffer->region);
}

struct pinned_buffer *pinned_pool_buffer_make(struct session *session, uint64_t bytes)
{
    struct pinned_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer || job_client_open(&buffer->jobs, &session->server->jobs, session->uid) < 0) {
        free(buffer);
        return NULL;
    }
    buffer->server = session->server;
    buffer->device = session->device;
    buffer->uid = session->uid;
    buffer->bytes = bytes;
    buffer->start = session->device->starts;
    buffer->keep = bytes <= session->server->settings->pinned_pool;
    return buffer;
}

bool pinned_pool_buffer_is_lost(const struct pinned_buffer *buffer)
{
    return !buffer->device->link || buffer->device->starts != buffer->start;
}

void pinned_pool_buffer_free(struct pinned_buffer *buffer)
{
    if (!buffer)
        return;
    job_client_close(&buffer->jobs);
    free(buffer);
}

void pinned_pool_buffer_forget(struct heap_region *region)
{
    pinned_pool_buffer_free(region->user);
    fd_budget_release(&region->charged_fd);
    quota_return(&region->charge);
    heap_region_remove(region);
}

/* The last buffer of a window takes it along. */
static void settle_window(struct server *server, struct pinned_window *window)
{
    if (window->buffers.regions)
        return;
    heap_close(&window->buffers);
    address_plan_return(&server->plan, &window->addresses);
    list_remove(&window->link);
    free(window);
}

static void forget_emptied(struct pinned_buffer *buffer)
{
    struct server *server = buffer->server;
    struct session *session = session_of(buffer);
    struct pinned_window *window = buffer->window;
    pinned_pool_buffer_forget(buffer->region);
    if (window)
        settle_window(server, window);
    /* A charge of the server's may have kept others waiting. Many buffers may go at once. */
    server->pinned.retry_due = true;
    if (session)
        session_schedule(session);
}

bool pinned_pool_retry(struct server *server)
{
    bool due = server->pinned.retry_due;
    server->pinned.retry_due = false;
    if (due)
        server->pinned.retry(server, NULL);
    return due;
}

/* Runs on another thread, since the kernel frees every page here. */
static int memory_empty(struct job *job)
{
    const struct pinned_buffer *buffer = container_of(job, struct pinned_buffer, job);
    uint64_t bytes = min(buffer->bytes - job->at, JOB_STEP_BYTES);
    /* The seals keep the client from forbidding it. */
    while (fallocate(buffer->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)job->at,
                     (off_t)bytes) < 0)
        if (errno != EINTR)
            return -errno;
    job->at += bytes;
    return job->at < buffer->bytes ? JOB_AGAIN : 0;
}

static void memory_emptied(struct job *job, int result)
{
    struct pinned_buffer *buffer = container_of(job, struct pinned_buffer, job);
    struct session *session = session_of(buffer);
    char size[UNITS_TEXT];
    if (result < 0)
        log_error(MESSAGE_TEXT(log_host_not_emptied), session ? session->number : 0,
                  units_format_bytes(buffer->region->bytes, size),
                  allowance_resource(RESOURCE_HOST_MEMORY)->phrase, strerror(-result));
    if (session) {
        session->host_emptying--;
        session_touch(session);
    }
    pool_of(buffer)->emptying -= buffer->bytes;
    forget_emptied(buffer);
}

void pinned_pool_buffer_empty(struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    struct session *session = session_of(buffer);
    if (buffer->state == PINNED_EMPTYING)
        return;
    buffer_enter(buffer, PINNED_EMPTYING);
    buffer->fd = region->charged_fd.fd;
    if (buffer->fd < 0) {
        forget_emptied(buffer);
        return;
    }
    if (session)
        session->host_emptying++;
    pool_of(buffer)->emptying += buffer->bytes;
    job_start(&buffer->job, &buffer->jobs, memory_empty, memory_emptied);
}

void pinned_pool_buffer_settle(struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    if (!region->gone || region->imports)
        return;
    session_of(buffer)->host_unmapping--;
    pinned_pool_buffer_empty(region);
}

void pinned_pool_log_refused(uint32_t client, const struct heap_region *region,
                             const struct worker_answer *answer)
{
    char size[UNITS_TEXT];
    log_error(MESSAGE_TEXT(log_unmap_refused), client, units_format_bytes(region->bytes, size),
              allowance_resource(RESOURCE_HOST_MEMORY)->phrase, answer->text);
}

/* ---- clearing ---- */

/* No worker has the buffer any more. */
static void let_go(struct pinned_buffer *buffer)
{
    struct pinned_pool *pool = pool_of(buffer);
    if (list_is_linked(&buffer->link)) {
        list_remove(&buffer->link);
        pool->bytes -= buffer->region->bytes;
        pool->count--;
    } else {
        session_of(buffer)->host_unmapping--;
    }
    pinned_pool_buffer_empty(buffer->region);
}

/* Runs on another thread. The pages must stay, since the device knows them: so they are written. */
static int memory_clear(struct job *job)
{
    static uint8_t zeros[1 << 18];
    const struct pinned_buffer *buffer = container_of(job, struct pinned_buffer, job);
    uint64_t end = min(job->at + JOB_STEP_BYTES, buffer->bytes);
    while (job->at < end) {
        ssize_t got = pwrite(buffer->fd, zeros, min(end - job->at, sizeof zeros), (off_t)job->at);
        if (got < 0 && errno != EINTR)
            return -errno;
        job->at += got > 0 ? (uint64_t)got : 0;
    }
    return end < buffer->bytes ? JOB_AGAIN : 0;
}

static void memory_cleared(struct job *job, int result)
{
    struct pinned_buffer *buffer = container_of(job, struct pinned_buffer, job);
    struct session *session = session_of(buffer);
    buffer_enter(buffer, PINNED_IDLE);
    if (buffer->lost)
        let_go(buffer);
    else if (result < 0)
        pinned_pool_drop(buffer->region);
    else if (session)
        buffer->server->pinned.retry(buffer->server, session);
    if (session)
        session_schedule(session);
}

static void clear_buffer(struct pinned_buffer *buffer)
{
    buffer_enter(buffer, PINNED_CLEARING);
    buffer->fd = buffer->region->charged_fd.fd;
    job_start(&buffer->job, &buffer->jobs, memory_clear, memory_cleared);
}

/* ---- room ---- */

static void drop_answered(void *context, const struct worker_answer *answer)
{
    struct pinned_buffer *buffer = context;
    if (answer->outcome != WORKER_REFUSED) {
        let_go(buffer);
        return;
    }
    pinned_pool_log_refused(0, buffer->region, answer);
    buffer_enter(buffer, PINNED_STUCK);
}

static void drop_buffer(struct pinned_buffer *buffer, bool asks)
{
    struct proto_worker_host_drop body = {
        .address = buffer->region->address, .count = buffer->region->bytes, .asks = asks};
    struct channel_packet request = {.opcode = PROTO_WORKER_HOST_DROP, .body = &body};
    buffer_enter(buffer, PINNED_DROPPING);
    if (pinned_pool_buffer_is_lost(buffer)) {
        let_go(buffer);
    } else if (device_request(buffer->device, &request, drop_answered, buffer) < 0) {
        /* pinned_pool_lose takes it. */
        buffer_enter(buffer, PINNED_STUCK);
        device_abandon(buffer->device);
    }
}

void pinned_pool_drop(struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    if (!list_is_linked(&buffer->link))
        session_of(buffer)->host_unmapping++;
    drop_buffer(buffer, false);
}

static uint64_t bytes_of_user(const struct pinned_pool *pool, uid_t uid)
{
    const struct pinned_buffer *buffer;
    uint64_t bytes = 0;
    LIST_FOR_EACH (buffer, &pool->buffers, link)
        bytes += buffer->uid == uid ? buffer->region->bytes : 0;
    return bytes;
}

/* Of the user who has most, what is there longest. */
static struct pinned_buffer *choose_victim(const struct pinned_pool *pool)
{
    struct pinned_buffer *buffer, *victim = NULL;
    uint64_t most = 0;
    /* list_remove mends the neighbours of what was dropped before; the analyzer does not follow.
     * NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
    LIST_FOR_EACH (buffer, &pool->buffers, link) {
        if (buffer->state != PINNED_IDLE || (victim && buffer->uid == victim->uid))
            continue;
        uint64_t bytes = bytes_of_user(pool, buffer->uid);
        if (bytes > most) {
            victim = buffer;
            most = bytes;
        }
    }
    return victim;
}

/* Has buffers dropped until so many bytes, and at least one buffer, are on their way out. Returns
 * whether any is, or will be idle in a moment. */
static bool give_way(struct pinned_pool *pool, uint64_t bytes, bool asks)
{
    struct pinned_buffer *buffer;
    uint64_t going = pool->emptying;
    bool clearing = false;
    LIST_FOR_EACH (buffer, &pool->buffers, link) {
        going += buffer->state == PINNED_DROPPING ? buffer->region->bytes : 0;
        clearing |= buffer->state == PINNED_CLEARING;
    }
    while (going < bytes && (buffer = choose_victim(pool))) {
        going += buffer->region->bytes;
        drop_buffer(buffer, asks);
    }
    return going > 0 || clearing;
}

bool pinned_pool_make_room(struct session *session, const struct quota *culprit, uint64_t bytes)
{
    struct server *server = session->server;
    struct pinned_buffer *buffer;
    bool any = false;
    if (culprit == &server->quotas[RESOURCE_HOST_MEMORY])
        return give_way(&server->pinned, bytes, true);
    if (culprit == &server->fds)
        return give_way(&server->pinned, 1, true);
    if (culprit)
        return false;
    LIST_FOR_EACH (buffer, &server->pinned.buffers, link) {
        if (buffer->region->heap != &session->buffers)
            continue;
        if (buffer->state == PINNED_IDLE)
            drop_buffer(buffer, true);
        any |= buffer->state == PINNED_DROPPING || buffer->state == PINNED_CLEARING;
    }
    return any;
}

/* ---- in and out ---- */

/* Moves a charge to another quota; false: that has no room, and the charge stays. */
static bool move_charge(struct charge *charge, struct quota *to, const struct quota **culprit)
{
    struct quota *from = charge->quota;
    uint64_t amount = charge->amount;
    quota_return(charge);
    if (quota_charge(to, charge, amount, culprit) == 0)
        return true;
    int again = quota_charge(from, charge, amount, NULL);
    assert(again == 0 && "it had that much a moment ago");
    (void)again;
    return false;
}

bool pinned_pool_take(struct heap_region *region)
{
    struct pinned_buffer *buffer = region->user;
    struct pinned_pool *pool = pool_of(buffer);
    struct server *server = buffer->server;
    struct quota *fds = region->charged_fd.charge.quota;
    uint64_t limit = server->settings->pinned_pool;
    if (!buffer->keep)
        return false;
    if (pool->bytes + region->bytes > limit || pool->count == BUFFERS_MAX) {
        give_way(pool, region->bytes, false);
        return false;
    }
    if (!move_charge(&region->charged_fd.charge, &server->fds, NULL))
        return false;
    if (!move_charge(&region->charge, &server->quotas[RESOURCE_HOST_MEMORY], NULL)) {
        move_charge(&region->charged_fd.charge, fds, NULL);
        return false;
    }
    list_append(&pool->buffers, &buffer->link);
    pool->bytes += region->bytes;
    pool->count++;
    clear_buffer(buffer);
    return true;
}

struct heap_region *pinned_pool_find(struct session *session, uint64_t bytes, bool *soon)
{
    struct pinned_buffer *buffer;
    *soon = false;
    LIST_FOR_EACH (buffer, &session->server->pinned.buffers, link) {
        if (buffer->region->heap != &session->buffers || buffer->region->bytes != bytes)
            continue;
        if (buffer->state == PINNED_IDLE)
            return buffer->region;
        *soon |= buffer->state == PINNED_CLEARING && !buffer->lost;
    }
    return NULL;
}

int pinned_pool_lend(struct session *session, struct heap_region *region,
                     const struct quota **culprit)
{
    struct pinned_buffer *buffer = region->user;
    struct pinned_pool *pool = pool_of(buffer);
    struct server *server = buffer->server;
    if (!move_charge(&region->charge, &session->quotas[RESOURCE_HOST_MEMORY], culprit))
        return HEAP_FULL;
    if (!move_charge(&region->charged_fd.charge, &session->fds, culprit)) {
        move_charge(&region->charge, &server->quotas[RESOURCE_HOST_MEMORY], NULL);
        return HEAP_FULL;
    }
    if (heap_region_again(region) < 0) {
        move_charge(&region->charge, &server->quotas[RESOURCE_HOST_MEMORY], NULL);
        move_charge(&region->charged_fd.charge, &server->fds, NULL);
        return -ENOMEM;
    }
    list_remove(&buffer->link);
    pool->bytes -= region->bytes;
    pool->count--;
    buffer_enter(buffer, PINNED_USED);
    return 0;
}

/* One that is being dropped is answered for (WORKER_LOST). */
static struct pinned_buffer *find_lost(const struct pinned_pool *pool, const struct device *device)
{
    struct pinned_buffer *buffer;
    LIST_FOR_EACH (buffer, &pool->buffers, link)
        if (buffer->device == device && buffer->state != PINNED_DROPPING && !buffer->lost)
            break;
    return buffer;
}

void pinned_pool_lose(struct server *server, const struct device *device)
{
    struct pinned_buffer *buffer;
    while ((buffer = find_lost(&server->pinned, device))) {
        buffer->lost = true;
        if (buffer->state != PINNED_CLEARING)
            let_go(buffer);
    }
}

/* ---- windows ---- */

static bool window_fits(const struct pinned_window *window, const struct session *session)
{
    return window->uid == session->uid && window->device == session->device &&
           window->addresses.bytes == session->grant.window_bytes;
}

/* One whose buffers are all on their way out helps nobody. */
static bool has_any(const struct pinned_window *window)
{
    const struct heap_region *region = window->buffers.first;
    for (; region; region = region->next) {
        const struct pinned_buffer *buffer = region->user;
        if (!buffer->lost && (buffer->state == PINNED_IDLE || buffer->state == PINNED_CLEARING))
            return true;
    }
    return false;
}

/* The latest of a client with this name, since the same program asks for the same sizes; else the
 * latest. */
static struct pinned_window *choose_window(const struct session *session)
{
    struct pinned_window *window, *best = NULL;
    bool named = false;
    LIST_FOR_EACH (window, &session->server->pinned.windows, link) {
        bool same = strcmp(window->name, session->name) == 0;
        if (!window_fits(window, session) || !has_any(window) || (named && !same))
            continue;
        best = window;
        named = same;
    }
    return best;
}

static void set_window(struct heap *heap, struct pinned_window *window)
{
    for (struct heap_region *region = heap->first; region; region = region->next) {
        struct pinned_buffer *buffer = region->user;
        buffer->window = window;
    }
}

/* Of those that lie in a window without a session, some may be empty soon. */
static uint32_t count_emptying(const struct heap *heap)
{
    uint32_t count = 0;
    for (const struct heap_region *region = heap->first; region; region = region->next) {
        const struct pinned_buffer *buffer = region->user;
        count += buffer->state == PINNED_EMPTYING;
    }
    return count;
}

bool pinned_pool_take_window(struct session *session)
{
    struct pinned_window *window = choose_window(session);
    if (!window)
        return false;
    list_remove(&window->link);
    address_plan_move(&session->server->plan, &window->addresses, &session->window);
    heap_move(&window->buffers, &session->buffers);
    set_window(&session->buffers, NULL);
    session->host_emptying = count_emptying(&session->buffers);
    session->spare_window = window;
    return true;
}

bool pinned_pool_has_all(const struct session *session)
{
    const struct quota *pool = &session->server->quotas[RESOURCE_HOST_MEMORY];
    const struct heap_region *region = session->buffers.first;
    for (; region; region = region->next) {
        const struct pinned_buffer *buffer = region->user;
        /* A session's own buffer is charged to that session until all of it is gone. */
        bool going = buffer->state == PINNED_EMPTYING && region->charge.quota == pool;
        if (!list_is_linked(&buffer->link) && !going)
            return false;
    }
    return true;
}

static uint64_t kept_bytes(const struct pinned_pool *pool)
{
    const struct pinned_window *window;
    uint64_t bytes = 0;
    LIST_FOR_EACH (window, &pool->windows, link)
        bytes += window->addresses.bytes;
    return bytes;
}

static void drop_idle(struct heap *heap)
{
    for (struct heap_region *region = heap->first; region; region = region->next) {
        struct pinned_buffer *buffer = region->user;
        if (buffer->state == PINNED_IDLE)
            drop_buffer(buffer, false);
    }
}

bool pinned_pool_give_window(struct session *session)
{
    struct server *server = session->server;
    struct pinned_pool *pool = &server->pinned;
    bool full = kept_bytes(pool) + session->window.bytes > server->plan.bytes / WINDOWS_PART;
    struct pinned_window *window = session->spare_window;
    if (!full && !window)
        window = calloc(1, sizeof *window);
    if (full || !window) {
        drop_idle(&session->buffers);
        window = LIST_FIRST(&pool->windows, struct pinned_window, link);
        if (full && window)
            drop_idle(&window->buffers);
        return false;
    }
    session->spare_window = NULL;
    session->host_emptying = 0;
    window->device = session->device;
    window->uid = session->uid;
    memcpy(window->name, session->name, sizeof window->name);
    address_plan_move(&server->plan, &session->window, &window->addresses);
    heap_move(&session->buffers, &window->buffers);
    set_window(&window->buffers, window);
    list_append(&pool->windows, &window->link);
    return true;
}
