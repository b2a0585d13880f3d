/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits/limits.h"
#include "common/log.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/ipc/journal.h"
#include "common/ipc/ring.h"
#include "common/printable.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"
#include "server/supervisor/session/life/bill.h"
#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/limits.h"
#include "server/supervisor/session/owned/lost_copies.h"
#include "server/supervisor/session/owned/memory.h"
#include "server/supervisor/session/owned/module.h"
#include "server/supervisor/session/own_request.h"
#include "server/supervisor/session/quota.h"
#include "server/supervisor/session/request.h"
#include "server/supervisor/session/owned/rings.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"
#include "server/supervisor/session/session_state.h"
#include "server/supervisor/session/session_worker.h"
#include "server/supervisor/device/device_account.h"
#include "server/supervisor/device/device_singly.h"
#include "server/supervisor/device/tracing.h"

#define PAGE UINT64_C(4096)

static bool group_is_none(const uint8_t group[16])
{
    static const uint8_t none[16];
    return memcmp(group, none, 16) == 0;
}

/* A token that another client guessed or overheard is of no use to it: process and user must be the
 * same and be known. pid 0 is a process in a namespace that is not visible from here. */
static bool group_is_valid(const struct session *session, const uint8_t group[16])
{
    if (!session->pid)
        return false;
    const struct session *other;
    LIST_FOR_EACH (other, &session->server->session_list, link)
        if (session_is_companion(session, other, group))
            return true;
    return false;
}

/*
 * A token that fits no client is not refused; it joins nothing. The connection that it came from
 * may have ended a moment ago, and its process may not know that yet.
 */
static int join_group(struct session *session, const struct proto_attach *wish)
{
    if (!group_is_none(wish->group) && group_is_valid(session, wish->group)) {
        memcpy(session->group, wish->group, 16);
        return 0;
    }
    do {
        if (getrandom(session->group, 16, 0) != 16)
            return -EIO;
    } while (group_is_none(session->group));
    return 0;
}

/* The supervisor never reads a client's rings, so it keeps only their descriptor. */
static int create_unmapped(struct shm *shm, const char *name, size_t bytes)
{
    int result = shm_create(shm, name, bytes);
    if (result == 0) {
        munmap(shm->base, shm->bytes);
        shm->base = NULL;
    }
    return result;
}

static int create_shared(struct session *session, uint32_t streams)
{
    int result = create_unmapped(&session->header, "gpushare-ring", PROTO_RING_FIRST);
    if (result == 0)
        result = shm_create(&session->status, "gpushare-status", ring_status_bytes(streams));
    if (result == 0)
        result =
            create_unmapped(&session->shadow, "gpushare-shadow", journal_shadow_bytes(streams));
    if (result < 0)
        return result;
    session->doorbell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return session->doorbell < 0 ? -errno : 0;
}

/* A client may keep the page, and the server can't give it to anybody else: so it goes now. Words
 * that the client writes there from now on are in memory of its own. Its status memory stays, since
 * threads of the client learn the end from it. */
static void header_empty(const struct session *session)
{
    if (session->header.fd >= 0)
        fallocate(session->header.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  (off_t)session->header.bytes);
}

static void destroy_shared(struct session *session)
{
    header_empty(session);
    shm_release(&session->header);
    shm_release(&session->status);
    shm_release(&session->shadow);
    if (session->doorbell >= 0)
        close(session->doorbell);
    session->doorbell = -1;
}

static int open_heaps(struct session *session)
{
    const struct address_plan *plan = &session->server->plan;
    int result = heap_open(&session->heap, address_plan_device(plan, &session->window),
                           session->window.bytes, session->device->info.granularity);
    /* A kept window has its buffers. */
    if (result == 0 && !session->buffers.bytes)
        result = heap_open(&session->buffers, address_plan_host(plan, &session->window),
                           session->window.bytes, PAGE);
    session->heap.kept_regions = session_tables(session, PART_REGIONS);
    session->heap.kept_blocks = session_tables(session, PART_BLOCKS);
    session->buffers.kept_regions = session_tables(session, PART_BUFFERS);
    /* A buffer at the same place of its window as device memory is slow to copy to it on the
     * software GPU: the processor's first-level cache predicts ways by bits 12 to 27 of addresses
     * (Lipp et al., Take A Way, 2020), and each line would put the other out. A third of a copy's
     * time. */
    session->buffers.from_end = true;
    return result;
}

/* Undoes session_attach_now in reverse order; the connection stays. */
void session_attach_release(struct session *session)
{
    session_memory_release(session);
    session_rings_release(session);
    session_module_release(session);
    objects_close(&session->objects);
    session_lost_copies_release(session);
    heap_close(&session->heap);
    /* Of a client that came no further: the kept window that it took has room in the pool still. */
    if (session->buffers.regions)
        pinned_pool_give_window(session);
    heap_close(&session->buffers);
    free(session->spare_window);
    session->spare_window = NULL;
    session_bill_end(session); /* while its totals are known: the line has what was granted */
    session_quota_close(session);
    address_plan_return(&session->server->plan, &session->window);
    if (session->linked && session->shadow.fd >= 0) {
        /* A client on another device may wait for these timelines, and must not wait for ever. */
        void *words = mmap(NULL, session->shadow.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                           session->shadow.fd, 0);
        if (words != MAP_FAILED) {
            memset(words, 0xff, ring_shadow_bytes(session->server->settings->streams));
            munmap(words, session->shadow.bytes);
        }
    }
    destroy_shared(session);
    session_own_request_end(session);
    history_leave(&session->server->history, session->device->index, session->uid, &session->used);
    session->device = NULL;
}

static void send_attached(struct session *session)
{
    int status = shm_readonly_fd(&session->status);
    if (status < 0) {
        session_fail(session, MESSAGE(status_memory), strerror(-status));
        return;
    }
    const struct address_plan *plan = &session->server->plan;
    struct proto_attached body = {
        .client = session->number,
        .streams = session->server->settings->streams,
        .device_base = address_plan_device(plan, &session->window),
        .host_base = address_plan_host(plan, &session->window),
        .window_bytes = session->window.bytes,
        .grant = session_limits_granted(session),
    };
    memcpy(body.group, session->group, sizeof body.group);
    int fds[3] = {session->header.fd, status, session->doorbell};
    session_answer(session, PROTO_ATTACHED, session->attach_serial, &body, fds, 3);
    close(status);
}

void session_attach_announce(struct session *session)
{
    const struct proto_grant grant = session_limits_granted(session);
    char memory[UNITS_TEXT], host[UNITS_TEXT];
    if (session->announced)
        return;
    session->announced = true;
    session_log_about(session);
    log_info(grant.partitioned ? MESSAGE_TEXT(log_client_attached)
                               : MESSAGE_TEXT(log_client_attached_duty),
             session->number, session->name, (int)session->pid, session->uid,
             session->device->index, grant.multiprocessors,
             units_format_bytes(grant.allowance.memory.limit, memory),
             units_format_bytes(grant.allowance.host_memory.limit, host));
}

static void attach_finish(struct session *session, const void *body)
{
    memcpy(&session->worker, body, sizeof session->worker);
    session_enter(session, PROTO_CONNECTION_STATE_ATTACHED);
    session->server->served++;
    session->singly_before = device_singly_ns(session->device);
    session_bill_begin(session);
    tracing_note(session->device->tracing, session->number, session->name, session->pid,
                 session->uid);
    uv_timer_stop(&session->deadline);
    send_attached(session);
    session_own_request_attached(session);
}

/* A client that tries again on its connection is counted once. */
static void count_refused(struct session *session)
{
    session->server->refused += !session->refused;
    session->refused = true;
}

static void attach_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    if (answer->outcome == WORKER_ANSWERED) {
        attach_finish(session, answer->message->body);
    } else if (answer->outcome == WORKER_REFUSED) {
        count_refused(session);
        session_refuse(session, session->attach_serial, answer->error, "%s", answer->text);
        session_fail(session, answer->error, MESSAGE_TEXT(attach_refused), answer->text);
    }
    request_end(request);
}

/* The worker forgets an account without clients, so it is told each time; also of one of which
 * nothing is said any more, since a client of it that leaves may have kept what was said before. */
static int tell_accounts(const struct session *session)
{
    const struct client_accounts *accounts = &session->counts_in;
    int result = 0;
    for (uint32_t i = 0; i < accounts->count && result == 0; i++)
        result = device_account_tell(session->device, &accounts->of[i]);
    return result;
}

static struct proto_worker_attach attach_message(const struct session *session, bool restored)
{
    const struct address_plan *plan = &session->server->plan;
    struct proto_worker_attach body = {
        .device_base = address_plan_device(plan, &session->window),
        .host_base = address_plan_host(plan, &session->window),
        .window_bytes = session->window.bytes,
        .streams = session->server->settings->streams,
        .allowance = allowance_to_wire(&session->grant.allowance),
        .owner = session->uid + 1,
        .restored = restored,
    };
    client_accounts_numbers(&session->counts_in, body.accounts);
    memcpy(body.name, session->name, sizeof body.name);
    return body;
}

static int tell_worker(struct session *session, struct request *request)
{
    struct proto_worker_attach body = attach_message(session, false);
    int fds[4] = {session->header.fd, session->status.fd, session->shadow.fd, session->doorbell};
    struct channel_packet message = {
        .opcode = PROTO_WORKER_ATTACH, .body = &body, .fds = fds, .fd_count = 4};
    int result = tell_accounts(session);
    if (result == 0)
        result = session_send(session, &message, attach_answered, request);
    if (result == 0) {
        session->at_worker = true;
        session->worker_start = session->device->starts;
        session_enter(session, PROTO_CONNECTION_STATE_ATTACHING);
    }
    return result;
}

void session_attach_restore(struct session *session, worker_link_reply *answered)
{
    struct proto_worker_attach body = attach_message(session, true);
    int fds[4] = {session->header.fd, session->status.fd, session->shadow.fd, session->doorbell};
    struct channel_packet message = {
        .opcode = PROTO_WORKER_ATTACH, .body = &body, .fds = fds, .fd_count = 4};
    int told = tell_accounts(session);
    if (told < 0) {
        session_fail(session, PROTO_ERROR_SERVER_RESOURCES, MESSAGE_TEXT(session_not_restored),
                     strerror(-told));
        return;
    }
    session->at_worker = true;
    session->lost = false;
    session->worker_start = session->device->starts;
    session_touch(session);
    session_send_restoring(session, &message, answered);
}

struct config_who session_attach_who(const struct session *session)
{
    const struct identity *identity = &session->identity;
    return (struct config_who){.identified = identity->known,
                               .uid = session->uid,
                               .gids = identity->gids,
                               .gid_count = identity->gid_count,
                               .cgroup = identity->cgroup,
                               .name = session->asked.name,
                               .profile = session->asked.profile};
}

unsigned session_attach_accounts(const struct session *session, const struct config *config,
                                 const struct total_overrides *overrides,
                                 struct client_accounts *accounts)
{
    const struct config_who who = session_attach_who(session);
    return client_accounts_choose(accounts, overrides, config, &who, session->number,
                                  &session->server->cache.key);
}

int session_attach_grant(const struct session *session, const struct config *config,
                         const struct device *device, const struct allowance *wish,
                         struct grant *grant)
{
    const struct config_who who = session_attach_who(session);
    return admission_choose(&device->admission, config, device->index, &who, &device->info, wish,
                            grant);
}

/* The window is as large as the client's limit of device memory asks for. */
static uint32_t no_room(const struct session *session, struct error *why)
{
    struct allowance_source source =
        allowance_source(&session->grant.allowance, RESOURCE_MEMORY, ALLOWANCE_LIMIT);
    enum proto_source asked = PROTO_SOURCE_VARIABLE;
    if (source.origin == ALLOWANCE_BY_CLIENT && source.detail != PROTO_SOURCE_NONE)
        asked = (enum proto_source)source.detail;
    const char *variable = allowance_variable(RESOURCE_MEMORY, ALLOWANCE_LIMIT, asked);
    unsigned long long mib = session->grant.window_bytes >> 20;
    return variable ? error_set(why, MESSAGE(window_none), mib, variable)
                    : error_set(why, MESSAGE(window_none_options), mib);
}

/* Another user's client on a device whose kernels can use what all its clients share with the
 * worker; NULL: there is none, or it does not matter. */
static const struct session *exposed_to(const struct session *session, const struct device *device)
{
    const struct session *other;
    if (session->server->settings->allow_host_access ||
        !device_has_warning(device, PROTO_WARNING_HOST_ACCESS))
        return NULL;
    LIST_FOR_EACH (other, &session->server->session_list, link)
        if (other->device == device && other->uid != session->uid)
            return other;
    return NULL;
}

enum beginning { BEGINNING_REFUSED, BEGINNING_WAITS, BEGINNING_MADE };

/* Refuses a client of a user whose kernels have made devices fail again and again. */
static bool refuse_offender(const struct session *session, struct error *why)
{
    const struct server *server = session->server;
    char time[UNITS_TEXT];
    uint32_t faults;
    uint64_t wait = offenders_wait(&server->offenders, session->uid, clock_now(),
                                   server->settings->offender_wait_ns, &faults);
    if (wait)
        error_set(why, MESSAGE(offender_waits), session->uid, faults,
                  units_format_duration(units_tenth_to_come(wait), time));
    return wait != 0;
}

/* Notes who asks for what, and what that is granted. Returns false with *why if it is refused. */
static bool take_wish(struct session *session, const struct device *device,
                      const struct proto_attach *wish, struct error *why)
{
    struct server *server = session->server;
    session->asked = *wish;
    session->wish = allowance_from_wire(&wish->allowance, &wish->sources);
    identity_free(&session->identity);
    identity_read(&session->identity, session->fd, session->pid, session->uid, session->pidfd);
    if (session_attach_grant(session, server->config, device, &session->wish, &session->grant) <
        0) {
        error_set(why, MESSAGE(profile_unknown), wish->profile);
        return false;
    }
    admission_put_newcomers(&session->grant, &device->newcomers, device->info.memory);
    if (join_group(session, wish) < 0) {
        error_set(why, MESSAGE(group_token));
        return false;
    }
    const unsigned left_out = session_attach_accounts(
        session, server->config, &server->total_overrides, &session->counts_in);
    if (left_out) {
        session_log_about(session);
        log_warning(MESSAGE_TEXT(log_accounts_left_out), session->number, session->name,
                    PROTO_CLIENT_ACCOUNTS, left_out);
    }
    return true;
}

/* A window of the pool's or a new one. Returns false with *why if there is none. */
static bool take_window(struct session *session, struct error *why)
{
    if (pinned_pool_take_window(session) ||
        address_plan_take(&session->server->plan, &session->window, session->grant.window_bytes,
                          0) == 0)
        return true;
    no_room(session, why);
    return false;
}

/* Whether the memory that a request lacks may come from what other clients keep idle. */
static bool memory_comes(struct session *session)
{
    const struct quota *all = session->quotas[RESOURCE_MEMORY].parent;
    uint64_t request = session->grant.allowance.of[RESOURCE_MEMORY].request;
    return request && all && request <= all->limit && request > quota_left(all) &&
           session_memory_await_others(session, all, request, &session->room_until);
}

/* Returns BEGINNING_REFUSED with *why if there is no room for what is requested. */
static enum beginning open_accounts(struct session *session, struct error *why)
{
    struct server *server = session->server;
    objects_open(&session->objects, server->settings->streams, &server->cache.key,
                 session_tables(session, PART_STREAMS));
    if (!session_quota_open(session, why))
        return BEGINNING_MADE;
    if (memory_comes(session))
        return BEGINNING_WAITS;
    /* The pool may hold the memory that a request lacks. It has given way when the client comes
     * again. */
    pinned_pool_make_room(session, &server->quotas[RESOURCE_HOST_MEMORY],
                          session->grant.allowance.host_memory.request);
    return BEGINNING_REFUSED;
}

/* Makes what client and worker share, and tells the worker of it. Returns false with *why. */
static bool ask_worker(struct session *session, uint64_t serial, struct error *why)
{
    struct request *request = request_make_own(session);
    if (!request) {
        error_set(why, MESSAGE(request_no_memory));
        return false;
    }
    request->serial = serial;
    request->reply = PROTO_ATTACHED;
    int result = open_heaps(session);
    if (result == 0)
        result = create_shared(session, session->server->settings->streams);
    if (result == 0)
        result = tell_worker(session, request);
    if (result == 0)
        return true;
    if (result == -EPIPE)
        error_set(why, MESSAGE(attach_worker_ended), session->device->index);
    else
        error_set(why, MESSAGE(attach_resources), strerror(-result));
    request_end(request);
    return false;
}

/* Returns BEGINNING_REFUSED with *why. */
static enum beginning attach_begin(struct session *session, uint64_t serial,
                                   const struct proto_attach *wish, struct error *why)
{
    struct device *device = &session->server->devices[wish->device];
    const struct session *other = exposed_to(session, device);
    memcpy(session->name, wish->name, sizeof session->name);
    printable_replace(session->name); /* logs and administrators' terminals will show it */
    if (other) {
        error_set(why, MESSAGE(host_access_users), device->index, other->uid);
        return BEGINNING_REFUSED;
    }
    if (refuse_offender(session, why) || !take_wish(session, device, wish, why))
        return BEGINNING_REFUSED;
    session->device = device;
    int result = session_own_request_begin(session);
    if (result) {
        session->device = NULL;
        if (result < 0)
            error_set(why, MESSAGE(attach_resources), strerror(-result));
        return result < 0 ? BEGINNING_REFUSED : BEGINNING_WAITS;
    }
    if (!take_window(session, why)) {
        session_own_request_end(session);
        session->device = NULL;
        return BEGINNING_REFUSED;
    }
    session->attach_serial = serial;
    enum beginning beginning = open_accounts(session, why);
    if (beginning == BEGINNING_MADE && !ask_worker(session, serial, why))
        beginning = BEGINNING_REFUSED;
    if (beginning != BEGINNING_MADE)
        session_attach_release(session);
    return beginning;
}

static void log_refused(const struct session *session, const struct error *why)
{
    session_log_about(session);
    log_notice(MESSAGE_TEXT(log_client_refused), session->number, session->name, (int)session->pid,
               session->uid, error_name(why->number), why->text);
}

bool session_attach_now(struct session *session, uint64_t serial, const struct proto_attach *wish)
{
    struct error why;
    enum beginning beginning = attach_begin(session, serial, wish, &why);
    if (beginning == BEGINNING_REFUSED) {
        session->room_until = 0;
        session_refuse_why(session, serial, &why);
        if (!session->refused)
            log_refused(session, &why);
        count_refused(session);
    }
    return beginning != BEGINNING_WAITS;
}

/* ---- another server ---- */

int session_attach_adopt(struct session *session, uint64_t offset, uint64_t bytes, const int fds[4])
{
    struct server *server = session->server;
    uint32_t streams = server->settings->streams;
    struct error why;
    session->header = (struct shm){.fd = fds[0], .bytes = PROTO_RING_FIRST};
    session->status = (struct shm){.fd = fds[1]};
    session->shadow = (struct shm){.fd = fds[2], .bytes = journal_shadow_bytes(streams)};
    session->doorbell = fds[3];
    identity_read(&session->identity, session->fd, session->pid, session->uid, session->pidfd);
    objects_open(&session->objects, streams, &server->cache.key,
                 session_tables(session, PART_STREAMS));
    int taken = address_plan_take_at(&server->plan, &session->window, offset, bytes);
    if (taken)
        return taken < 0 ? taken : -EEXIST;
    uint32_t error = session_quota_open(session, &why);
    int result = open_heaps(session);
    if (result == 0)
        result = shm_adopt(&session->status, fds[1], ring_status_bytes(streams), true);
    session->held = session->state == PROTO_CONNECTION_STATE_ATTACHED;
    session->restore.held_at = session->held ? clock_now() : 0;
    session->worker_start = session->device->starts;
    return error                                    ? -ENOSPC
           : result < 0                             ? result
           : fds[0] < 0 || fds[2] < 0 || fds[3] < 0 ? -EBADF
                                                    : 0;
}

void session_attach_again(struct session *session)
{
    struct request *request = request_make(session, session->attach_serial, PROTO_ATTACHED);
    if (request && tell_worker(session, request) < 0) {
        session_fail(session, MESSAGE(attach_worker_ended), session->device->index);
        request_end(request);
    }
}

void session_attach_answer_again(struct session *session, const struct channel_packet *packet)
{
    int status = shm_readonly_fd(&session->status);
    int fds[3] = {session->header.fd, status, session->doorbell};
    struct channel_packet whole = *packet;
    whole.fds = fds;
    whole.fd_count = 3;
    if (status >= 0) {
        send_queue_send(&session->send_queue, &whole);
        close(status);
    }
}

/* ---- window_move ---- */

static void move_answered(void *context, const struct worker_answer *answer)
{
    struct request *request = context;
    struct session *session = request->session;
    if (answer->outcome == WORKER_ANSWERED) {
        const struct address_plan *plan = &session->server->plan;
        struct proto_window body = {
            .device_base = address_plan_device(plan, &session->window),
            .host_base = address_plan_host(plan, &session->window),
            .window_bytes = session->window.bytes,
        };
        session_answer(session, PROTO_WINDOW, request->serial, &body, NULL, 0);
    } else if (answer->outcome == WORKER_REFUSED) {
        /* Client, worker and plan no longer agree on the client's addresses. */
        session_fail(session, MESSAGE(window_refused));
    }
    request_end(request);
}

/* Takes the next window above the present one. So a client whose windows are all taken in its
 * process walks through the arena once, and no further. A window with buffers of the pool goes back
 * to the pool. Returns false with *why, and nothing has moved. */
static bool take_next_window(struct session *session, struct error *why)
{
    struct address_plan *plan = &session->server->plan;
    struct address_window next = {0};
    uint64_t bytes = session->window.bytes, from = session->window.offset + bytes;
    if (address_plan_take(plan, &next, bytes, from)) {
        no_room(session, why);
        return false;
    }
    /* Others may have filled the pool since the client took its window out. */
    if (session->buffers.regions && !pinned_pool_give_window(session)) {
        address_plan_return(plan, &next);
        error_set(why, MESSAGE(window_kept));
        return false;
    }
    heap_close(&session->buffers);
    address_plan_return(plan, &session->window);
    address_plan_move(plan, &next, &session->window);
    return true;
}

void session_attach_move(struct session *session, struct channel_message *message)
{
    uint64_t serial = message->header.serial;
    if (session->heap.regions || session_host_has_any(session) || session->module_count ||
        !list_is_empty(&session->imports) || session->requests) {
        session_refuse(session, serial, MESSAGE(window_in_use));
        return;
    }
    struct request *request = request_make(session, serial, PROTO_WINDOW);
    if (!request)
        return;
    struct error why;
    if (!take_next_window(session, &why)) {
        session_refuse_why(session, serial, &why);
        request_end(request);
        return;
    }
    heap_close(&session->heap);
    const struct address_plan *plan = &session->server->plan;
    struct proto_worker_window body = {
        .device_base = address_plan_device(plan, &session->window),
        .host_base = address_plan_host(plan, &session->window),
        .window_bytes = session->window.bytes,
    };
    int result = open_heaps(session);
    if (result == 0)
        result = session_ask(session, PROTO_WORKER_WINDOW, &body, move_answered, request);
    if (result < 0) {
        session_fail(session, MESSAGE(window_move), strerror(-result));
        request_end(request);
    }
}
