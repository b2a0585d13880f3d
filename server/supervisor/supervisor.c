/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/supervisor.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/timeline.h"
#include "server/supervisor/config.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/session.h"
#include "server/supervisor/session_end.h"
#include "server/supervisor/session_limits.h"
#include "server/supervisor/session_request.h"
#include "server/supervisor/supervisor_private.h"
#include "server/supervisor/tracing.h"

/* Connections above the limit that are kept until their hello, to be refused in words. */
#define SURPLUS_MOST 16
/* ...and of these of one user, so that the others' are told too. */
#define SURPLUS_USER_MOST 4
/* Module images: this part of the machine's memory, all clients together. */
#define IMAGES_PART 8

/* ---- the loop's turn ---- */

static void session_remove(struct supervisor *supervisor, struct session *session)
{
    if (session->previous)
        session->previous->next = session->next;
    else
        supervisor->first = session->next;
    if (session->next)
        session->next->previous = session->previous;
    else
        supervisor->last = session->previous;
    supervisor->sessions--;
    supervisor->surplus -= session->surplus != SURPLUS_NONE;
}

/* Everything that supervisor_stop waits for may have been the last. */
static void stop_advance(struct supervisor *supervisor)
{
    if (!supervisor->stopping || supervisor->stopped || supervisor->sessions)
        return;
    for (uint32_t i = 0; i < supervisor->device_count; i++)
        if (supervisor->devices[i].state != SUPERVISOR_DEVICE_STOPPED)
            return;
    supervisor->stopped = true;
    uv_close((uv_handle_t *)&supervisor->before_wait, NULL);
    uv_close((uv_handle_t *)&supervisor->after_wait, NULL);
    supervisor->events.stopped(supervisor->events.context);
}

/* A session stays at the head of the list, marked as due, while it is looked at: what it schedules
 * comes after it. */
static void end_sessions(struct supervisor *supervisor)
{
    while (supervisor->due) {
        struct session *session = supervisor->due;
        bool gone = session_end(session);
        supervisor->due = session->next_due;
        session->due = false;
        if (gone)
            session_remove(supervisor, session);
    }
}

/* No callback is on the stack now: what they left to be done is done. */
static void take_turn(struct supervisor *supervisor)
{
    do {
        end_sessions(supervisor);
        reload_advance(supervisor);
    } while (supervisor->due);
    stop_advance(supervisor);
}

static void before_wait(uv_prepare_t *prepare)
{
    take_turn(prepare->data);
}

static void after_wait(uv_check_t *check)
{
    take_turn(check->data);
}

/* Once right after messages have been served, and once before the loop sleeps, for what timers and
 * other callbacks left: then nothing that is due waits for a message. */
static void turn_open(struct supervisor *supervisor)
{
    uv_prepare_init(supervisor->loop, &supervisor->before_wait);
    uv_check_init(supervisor->loop, &supervisor->after_wait);
    supervisor->before_wait.data = supervisor->after_wait.data = supervisor;
    uv_prepare_start(&supervisor->before_wait, before_wait);
    uv_check_start(&supervisor->after_wait, after_wait);
}

/* ---- life ---- */

static uint64_t machine_memory(void)
{
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int supervisor_create(struct supervisor **out, uv_loop_t *loop, const struct settings *settings,
                      const struct supervisor_events *events)
{
    *out = NULL;
    struct supervisor *supervisor = calloc(1, sizeof *supervisor);
    if (!supervisor)
        return -ENOMEM;
    supervisor->loop = loop;
    supervisor->settings = settings;
    supervisor->events = *events;
    supervisor->started_at = timeline_now();
    int result = address_plan_open(&supervisor->plan, settings->device_base, settings->host_base,
                                   settings->arena_bytes);
    if (result == 0)
        result = image_cache_open(&supervisor->cache);
    if (result < 0) {
        free(supervisor);
        return result;
    }
    quota_open(&supervisor->host, "pinned host memory limit of the server", settings->host_total,
               NULL);
    quota_open(&supervisor->images, "module image memory of the server",
               machine_memory() / IMAGES_PART, NULL);
    turn_open(supervisor);
    *out = supervisor;
    return 0;
}

void supervisor_free(struct supervisor *supervisor)
{
    if (!supervisor)
        return;
    assert(supervisor->sessions == 0);
    config_free(supervisor->config);
    total_settings_free(&supervisor->total_settings);
    image_cache_close(&supervisor->cache);
    for (uint32_t i = 0; i < supervisor->device_count; i++)
        quota_close(&supervisor->devices[i].memory);
    quota_close(&supervisor->host);
    quota_close(&supervisor->fds);
    quota_close(&supervisor->images);
    address_plan_close(&supervisor->plan);
    free(supervisor);
}

/* ---- devices ---- */

static void say_status(struct supervisor *supervisor)
{
    uint32_t ready = 0;
    const char *trouble = "";
    char text[512];
    for (uint32_t i = 0; i < supervisor->device_count; i++) {
        if (supervisor->devices[i].state == SUPERVISOR_DEVICE_READY)
            ready++;
        else if (supervisor->devices[i].trouble[0])
            trouble = supervisor->devices[i].trouble;
    }
    snprintf(text, sizeof text, "%u of %u devices ready%s%s", ready, supervisor->device_count,
             *trouble ? "; " : "", trouble);
    if (supervisor->events.status)
        supervisor->events.status(supervisor->events.context, text);
}

static void unpark_clients(struct supervisor *supervisor, const struct device *device)
{
    for (struct session *session = supervisor->first; session; session = session->next)
        if (session->parked.held && session->parked.body.device == device->index)
            session_unpark(session);
}

static void device_ready(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    say_status(supervisor);
    unpark_clients(supervisor, device);
    if (supervisor->ready || supervisor->stopping)
        return;
    supervisor->ready = true;
    supervisor->events.ready(supervisor->events.context);
}

static void device_lost(void *context, struct device *device, uint32_t error, const char *text)
{
    struct supervisor *supervisor = context;
    tracing_lost(device->tracing);
    for (struct session *session = supervisor->first; session; session = session->next)
        if (session->device == device)
            session_fail(session, error, "%s", text);
    if (!supervisor->stopping)
        say_status(supervisor);
}

static void device_failed(void *context, struct device *device)
{
    struct supervisor *supervisor = context;
    log_error("device %u: %s", device->index, device->trouble);
    unpark_clients(supervisor, device);
    say_status(supervisor);
    for (uint32_t i = 0; i < supervisor->device_count; i++)
        if (!supervisor->devices[i].failed_once)
            return;
    if (!supervisor->ready && !supervisor->stopping)
        supervisor->events.unusable(supervisor->events.context, supervisor->devices[0].trouble);
}

static void device_complained(void *context, struct device *device, uint32_t client, uint32_t error,
                              const char *text)
{
    struct supervisor *supervisor = context;
    for (struct session *session = supervisor->first; session; session = session->next)
        if (session->device == device && session->number == client)
            session_fail(session, error, "%s", text);
}

static void device_stopped(void *context, struct device *device)
{
    (void)device;
    stop_advance(context);
}

/* The environment's words on every client, in the configuration's. */
static void wish_limits(const struct limits_wish *wish, struct config_limits *limits)
{
    limits->threads = wish->thread_percentage;
    limits->time = wish->time_limit;
    limits->memory_share = wish->fraction;
    if (wish->memory_limit.unit == DIALECT_SHARE)
        limits->memory_share =
            limits_tighter_percentage(wish->fraction, (uint32_t)wish->memory_limit.value);
    limits->priority = wish->priority;
    if (wish->thread_request)
        limits->thread_request = wish->thread_request;
    if (wish->time_request)
        limits->time_request = wish->time_request;
    if (wish->memory_request.unit == DIALECT_BYTES)
        limits->memory_request = wish->memory_request.value;
    if (wish->memory_request.unit == DIALECT_SHARE)
        limits->memory_request_share = (uint32_t)wish->memory_request.value;
    if (wish->host_request)
        limits->host_request = wish->host_request;
}

static int set_limits(struct supervisor *supervisor, const struct discovery *discovery, char *text,
                      size_t text_bytes)
{
    const struct settings *settings = supervisor->settings;
    const struct dialect_amount most = settings->limits.memory_limit;
    unsigned indices[LIMITS_DEVICES_MAX];
    uint64_t bytes[LIMITS_DEVICES_MAX];
    for (uint32_t i = 0; i < discovery->count; i++) {
        memcpy(supervisor->uuids[i], discovery->devices[i].uuid, LIMITS_UUID_BYTES);
        indices[i] = i;
    }
    int result = limits_memory_resolve(&settings->limits, supervisor->uuids, discovery->count,
                                       indices, discovery->count, bytes, text, text_bytes);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < discovery->count; i++) {
        struct admission *admission = &supervisor->devices[i].admission;
        *admission =
            (struct admission){.limits = config_limits_none, .max_window = settings->max_window};
        wish_limits(&settings->limits, &admission->limits);
        admission->limits.memory = bytes[i];
        if (most.unit == DIALECT_BYTES)
            admission->limits.memory = limits_tighter(bytes[i], most.value);
        admission->limits.host_memory = settings->host_client;
    }
    return 0;
}

int supervisor_add_devices(struct supervisor *supervisor, const struct discovery *discovery,
                           char *text, size_t text_bytes)
{
    const struct settings *settings = supervisor->settings;
    const struct device_events events = {.ready = device_ready,
                                         .lost = device_lost,
                                         .failed = device_failed,
                                         .stopped = device_stopped,
                                         .complained = device_complained,
                                         .context = supervisor};
    int result = keeper_budget(&supervisor->budget, discovery->count, settings->max_clients);
    if (result == -EMFILE)
        snprintf(text, text_bytes,
                 "--max-clients %u needs more than the %u file descriptors that this process may "
                 "have: %u clients fit, or raise the limit (ulimit -n, LimitNOFILE)",
                 settings->max_clients, supervisor->budget.descriptors, supervisor->budget.clients);
    else if (result < 0)
        snprintf(text, text_bytes, "the limit of file descriptors is not to be had: %s",
                 strerror(-result));
    if (result < 0)
        return result;
    supervisor->user_clients_max =
        settings->max_user_clients ? settings->max_user_clients
                                   : supervisor->budget.clients - supervisor->budget.clients / 4;
    log_notice("%u clients may connect, %u of one user; of %u file descriptors %u are for memory "
               "handles and "
               "host buffers, %u of these for one client",
               supervisor->budget.clients, supervisor->user_clients_max,
               supervisor->budget.descriptors, supervisor->budget.shared,
               supervisor->budget.client_share);
    quota_open(&supervisor->fds, "file descriptors of the server", supervisor->budget.shared, NULL);
    for (uint32_t i = 0; i < discovery->count; i++)
        device_open(&supervisor->devices[i], supervisor->loop, settings, i,
                    discovery->devices[i].ordinal, &events);
    supervisor->device_count = discovery->count;
    result = set_limits(supervisor, discovery, text, text_bytes);
    if (result == 0)
        result = supervisor_reload(supervisor, text, text_bytes, NULL, NULL);
    return result < 0 ? result : 0; /* without workers there is nobody to be waited for */
}

int supervisor_start(struct supervisor *supervisor, const struct discovery *discovery, char *text,
                     size_t text_bytes)
{
    int result = supervisor_add_devices(supervisor, discovery, text, text_bytes);
    for (uint32_t i = 0; result == 0 && i < supervisor->device_count; i++) {
        result = device_start(&supervisor->devices[i]);
        if (result < 0)
            snprintf(text, text_bytes, "%s", supervisor->devices[i].trouble);
    }
    return result;
}

/* ---- clients ---- */

static struct session *find_client(const struct supervisor *supervisor, uint32_t number)
{
    struct session *session = supervisor->first;
    while (session && session->number != number)
        session = session->next;
    return session;
}

static uint32_t take_number(struct supervisor *supervisor)
{
    do
        supervisor->next_number++;
    while (!supervisor->next_number || find_client(supervisor, supervisor->next_number));
    return supervisor->next_number;
}

/* A connection that is not even kept until its hello. */
static void turn_away(int fd, uint32_t error, const char *text)
{
    struct proto_ended ended = {.error = error};
    snprintf(ended.text, sizeof ended.text, "%s", text);
    channel_send(fd, PROTO_ENDED, 0, 0, &ended, NULL, 0, NULL, 0);
    close(fd);
}

/* Sessions of whoever is at the other end, and how many of them only wait to be refused. */
static int count_of_peer(const struct supervisor *supervisor, int fd, uint32_t *served,
                         uint32_t *surplus)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    *served = *surplus = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) < 0)
        return -errno;
    for (const struct session *session = supervisor->first; session; session = session->next)
        if (session->uid == peer.uid)
            ++*(session->surplus ? surplus : served);
    return 0;
}

static void admit(struct supervisor *supervisor, int fd, enum session_surplus surplus)
{
    struct session *session;
    int result = session_open(&session, supervisor, fd, take_number(supervisor), surplus);
    if (result < 0) {
        log_warning("a connection could not be taken: %s", strerror(-result));
        return;
    }
    session->previous = supervisor->last;
    if (supervisor->last)
        supervisor->last->next = session;
    else
        supervisor->first = session;
    supervisor->last = session;
    supervisor->sessions++;
    supervisor->surplus += surplus != SURPLUS_NONE;
}

void supervisor_accept(struct supervisor *supervisor, int fd)
{
    enum session_surplus surplus = SURPLUS_NONE;
    uint32_t served, waiting;
    int result = count_of_peer(supervisor, fd, &served, &waiting);
    if (supervisor->stopping || result < 0) {
        turn_away(fd, PROTO_ERROR_CONNECTION_LOST,
                  result < 0 ? "the peer can't be told" : "the server is stopping");
        return;
    }
    if (supervisor->sessions - supervisor->surplus >= supervisor->budget.clients)
        surplus = SURPLUS_SERVER;
    else if (served >= supervisor->user_clients_max)
        surplus = SURPLUS_USER;
    supervisor->refused += surplus != SURPLUS_NONE;
    if (surplus && (supervisor->surplus >= SURPLUS_MOST || waiting >= SURPLUS_USER_MOST))
        turn_away(fd, PROTO_ERROR_TOO_MANY_CLIENTS,
                  surplus == SURPLUS_SERVER ? "the server has as many clients as it may have"
                                            : "the user has as many clients as one user may have "
                                              "(--max-clients-per-user)");
    else
        admit(supervisor, fd, surplus);
}

/* ---- stopping ---- */

void supervisor_stop(struct supervisor *supervisor)
{
    if (supervisor->stopping)
        return;
    supervisor->stopping = true;
    for (struct session *session = supervisor->first; session; session = session->next)
        session_fail(session, PROTO_ERROR_CONNECTION_LOST, "the server is stopping");
    /* Clients' answers from the workers need not be waited for: what they had dies with the
     * workers. */
    for (uint32_t i = 0; i < supervisor->device_count; i++)
        device_stop(&supervisor->devices[i]);
    stop_advance(supervisor);
}

/* ---- views ---- */

const char *supervisor_device_state_name(enum supervisor_device_state state)
{
    static const char *const names[] = {"starting", "ready", "waiting", "stopped"};
    return names[state];
}

uint32_t supervisor_device_count(const struct supervisor *supervisor)
{
    return supervisor->device_count;
}

static bool same_partition(const struct session *a, const struct session *b)
{
    return memcmp(a->worker.atoms, b->worker.atoms, sizeof a->worker.atoms) == 0;
}

/* Counted where the first client of a partition stands. */
static bool first_of_partition(const struct supervisor *supervisor, const struct session *session)
{
    for (const struct session *other = supervisor->first; other != session; other = other->next)
        if (other->device == session->device && other->state == SESSION_ATTACHED &&
            same_partition(other, session))
            return false;
    return true;
}

void supervisor_device_view(const struct supervisor *supervisor, uint32_t index,
                            struct supervisor_device_view *view)
{
    const struct device *device = &supervisor->devices[index];
    *view = (struct supervisor_device_view){
        .index = index,
        .ordinal = device->ordinal,
        .state = device->state,
        .info = device->info,
        .worker_pid = device->process ? worker_process_pid(device->process) : 0,
        .worker_starts = device->starts,
        .schedule = device->schedule,
    };
    memcpy(view->trouble, device->trouble, sizeof view->trouble);
    for (const struct session *session = supervisor->first; session; session = session->next) {
        if (session->device != device)
            continue;
        view->clients++;
        view->memory_charged += session->memory.used;
        view->partitions +=
            session->state == SESSION_ATTACHED && first_of_partition(supervisor, session);
    }
}

static void view_client(const struct session *session, struct supervisor_client_view *view)
{
    *view = (struct supervisor_client_view){
        .number = session->number,
        .pid = session->pid,
        .uid = session->uid,
        .state = session_state_name(session->state),
        .attached = session->device != NULL,
        .fds = session_fds(session),
        .waiting = session->requests,
        .connected_ns = timeline_now() - session->connected_at,
    };
    memcpy(view->name, session->name, sizeof view->name);
    if (!session->device)
        return;
    view->device = session->device->index;
    view->memory_asked = session->asked.memory_limit;
    view->memory_limit = session->grant.memory_limit;
    view->memory_request_asked = session->asked.memory_request;
    view->memory_request = session->grant.memory_request;
    view->memory_charged = session->memory.used;
    view->host_asked = session->asked.host_memory_limit;
    view->host_limit = session->grant.host_limit;
    view->host_request_asked = session->asked.host_memory_request;
    view->host_request = session->grant.host_request;
    view->host_charged = session->host.used;
    view->threads_asked = session->asked.thread_percentage;
    view->threads_granted = session->grant.thread_percentage;
    view->thread_request_asked = session->asked.thread_request;
    view->thread_request = session->grant.thread_request;
    view->time_request_asked = session->asked.time_request;
    view->time_request = session->grant.time_request;
    view->time_limit_asked = session->asked.time_limit;
    view->time_limit = session->grant.time_limit;
    view->multiprocessors = session->worker.multiprocessors;
    view->partitioned = session->worker.partitioned;
    view->priority = session->grant.priority;
}

void supervisor_each_client(const struct supervisor *supervisor,
                            bool (*visit)(void *context, const struct supervisor_client_view *view),
                            void *context)
{
    struct supervisor_client_view view;
    for (const struct session *session = supervisor->first; session; session = session->next) {
        view_client(session, &view);
        if (!visit(context, &view))
            return;
    }
}

void supervisor_totals(const struct supervisor *supervisor, struct supervisor_totals *totals)
{
    *totals = (struct supervisor_totals){
        .clients = supervisor->sessions,
        .clients_max = supervisor->budget.clients,
        .clients_served = supervisor->served,
        .clients_refused = supervisor->refused,
        .host_limit = supervisor->host.limit,
        .host_charged = supervisor->host.used,
        .fds_limit = supervisor->budget.descriptors,
        .images = supervisor->cache.images,
        .image_bytes = supervisor->cache.bytes,
        .uptime_ns = timeline_now() - supervisor->started_at,
    };
    for (const struct session *session = supervisor->first; session; session = session->next)
        totals->fds += session_fds(session);
}

/* ---- the administrator's two requests ---- */

int supervisor_kill(struct supervisor *supervisor, uint32_t client, const char *by)
{
    struct session *session = find_client(supervisor, client);
    if (!session || session->state == SESSION_LEAVING)
        return -ENOENT;
    session_fail(session, PROTO_ERROR_KILLED, "ended by %s", by);
    return 0;
}

static struct session *find_attached(const struct supervisor *supervisor, uint32_t client)
{
    struct session *session = find_client(supervisor, client);
    return session && session->state == SESSION_ATTACHED ? session : NULL;
}

uint32_t supervisor_check(const struct supervisor *supervisor, uint32_t client,
                          const struct supervisor_change *change, char *why, size_t why_size)
{
    struct session *session = find_attached(supervisor, client);
    if (supervisor->reload) {
        snprintf(why, why_size, "a reload of the configuration is under way: try again");
        return PROTO_ERROR_NOT_READY;
    }
    if (session)
        return session_limits_check(session, change, why, why_size);
    snprintf(why, why_size, "there is no attached client %u: \"clients\" shows those there are",
             client);
    return PROTO_ERROR_NOT_FOUND;
}

int supervisor_set(struct supervisor *supervisor, uint32_t client,
                   const struct supervisor_change *change, const char *by,
                   supervisor_set_done *done, void *context)
{
    struct session *session = find_attached(supervisor, client);
    if (supervisor->reload)
        return -EBUSY;
    return session ? session_limits_set(session, change, by, done, context) : -ENOENT;
}

int supervisor_put_back(struct supervisor *supervisor, uint32_t client,
                        const struct supervisor_change *change, const char *by,
                        supervisor_set_done *done, void *context)
{
    struct session *session = find_attached(supervisor, client);
    return session ? session_limits_put_back(session, change, by, done, context) : -ENOENT;
}

int supervisor_schedule(struct supervisor *supervisor, uint32_t device, const struct schedule *to,
                        unsigned parts, const char *by, supervisor_set_done *done, void *context)
{
    if (device >= supervisor->device_count)
        return -ENOENT;
    if (supervisor->reload)
        return -EBUSY;
    return device_schedule_set(&supervisor->devices[device], to, parts, by, done, context);
}

struct usage_question {
    void (*done)(void *context, uint32_t client, const struct proto_worker_usage *usage);
    void *context;
    uint32_t client;
};

static void usage_answered(void *context, const struct worker_answer *answer)
{
    struct usage_question *question = context;
    struct proto_worker_usage usage;
    bool known = answer->outcome == WORKER_ANSWERED;
    if (known)
        memcpy(&usage, answer->message->body, sizeof usage);
    question->done(question->context, question->client, known ? &usage : NULL);
    free(question);
}

int supervisor_usage(struct supervisor *supervisor, uint32_t client,
                     void (*done)(void *context, uint32_t client,
                                  const struct proto_worker_usage *usage),
                     void *context)
{
    struct session *session = find_client(supervisor, client);
    if (!session || session->state != SESSION_ATTACHED)
        return -ENOENT;
    struct usage_question *question = malloc(sizeof *question);
    if (!question)
        return -ENOMEM;
    *question = (struct usage_question){.done = done, .context = context, .client = client};
    int result = session_ask(session, PROTO_WORKER_USAGE_QUERY, NULL, usage_answered, question);
    if (result < 0)
        free(question);
    return result;
}

uv_loop_t *supervisor_loop(const struct supervisor *supervisor)
{
    return supervisor->loop;
}

const struct settings *supervisor_settings(const struct supervisor *supervisor)
{
    return supervisor->settings;
}
