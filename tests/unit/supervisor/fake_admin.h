/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * fake_admin: the administrators' socket against a supervisor of the test's own, so that
 * clients, workers that never answer and their ends are the test's to decide.
 */
#ifndef GPUSHARE_TESTS_UNIT_SUPERVISOR_FAKE_ADMIN_H
#define GPUSHARE_TESTS_UNIT_SUPERVISOR_FAKE_ADMIN_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include <jansson.h>

#include "common/messages.h"
#include "server/supervisor/admin/admin.h"
#include "server/supervisor/admin/request.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/change.h"
#include "server/supervisor/clients.h"
#include "server/supervisor/owner_total.h"
#include "server/supervisor/reload.h"
#include "server/supervisor/saved.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/trace.h"
#include "server/supervisor/view.h"

/* ---- the supervisor that admin sees ---- */

enum { CLIENTS_MAX = 2000, ASKED_MAX = 4096 };

struct supervisor {
    uv_loop_t loop;
    struct settings settings;
    struct client_view clients[CLIENTS_MAX];
    uint32_t client_count;
    struct history history;
    uint32_t killed, kills;
    unsigned reloads;
    bool reset;  /* the latest reload was one */
    bool broken; /* the configuration has a mistake */
    bool reload_later;
    reload_done *reload_done;
    void *reload_context;
    char killed_by[128];
    bool kill_knew_usage; /* the latest kill of a client that has left came with its usage */
    bool workers_answer;
    struct {
        uint32_t client;
        void (*done)(void *, uint32_t, const struct proto_worker_usage *);
        void *context;
    } asked[ASKED_MAX];
    size_t asked_count;
    struct allowance change;
    unsigned newcomers, back_limits, back_scalars; /* newcomers: how often these were changed */
    struct {
        uint32_t client;
        change_done *done;
        void *context;
        struct allowance change;
    } setting[16];
    size_t setting_count;
    bool drained[2];
    struct schedule schedule; /* of device 0 */
    struct schedule configured;
    unsigned parts; /* of the latest change of it */
    change_done *scheduled;
    void *scheduled_context;
    struct {
        struct account_owner owner; /* of the latest change */
        char cgroup[ACCOUNT_CGROUP_MAX + 1];
        struct total_change change;
        unsigned changes;
        const char *refused; /* why; NULL: it is carried out */
    } total;
    struct saved saved;
    const char *no_room; /* why change_set refuses guarantees */
    struct {
        uint32_t device;
        uint64_t milliseconds;
        trace_done *done; /* NULL: none is under way */
        void *context;
        unsigned abandoned, ended;
    } trace;
};

static struct supervisor supervisor;

const char *device_state_name(enum device_state state)
{
    return state == DEVICE_READY ? "ready" : "starting";
}

struct saved *supervisor_saved(const struct supervisor *self)
{
    (void)self;
    return &supervisor.saved;
}

const char *view_device_uuid(const struct supervisor *self, uint32_t index,
                             char text[LIMITS_UUID_TEXT])
{
    (void)self;
    snprintf(text, LIMITS_UUID_TEXT, "GPU-%u", index);
    return text;
}

uint32_t view_device_count(const struct supervisor *self)
{
    (void)self;
    return 2;
}

void view_device(const struct supervisor *self, uint32_t index, struct device_view *view)
{
    *view = (struct device_view){.index = index,
                                 .ordinal = index,
                                 .drained = self->drained[index],
                                 .schedule = self->schedule,
                                 .configured = self->configured};
    if (index == 1) {
        strcpy(view->trouble, "the worker ended: \x01 no driver");
        return;
    }
    view->state = DEVICE_READY;
    view->worker_pid = 77;
    view->worker_starts = 1;
    view->clients = self->client_count;
    view->memory_charged = 4096;
    view->info = (struct proto_device_info){.driver_version = 13010,
                                            .memory = UINT64_C(80) << 30,
                                            .multiprocessors = 132,
                                            .partition_multiprocessors = 8,
                                            .compute_major = 9};
    strcpy(view->info.name, "Test GPU");
    view->info.uuid[0] = 0xab;
}

void view_each_client(const struct supervisor *self,
                      bool (*visit)(void *, const struct client_view *), void *context)
{
    static const struct history_use unused;
    for (uint32_t i = 0; i < self->client_count; i++) {
        struct client_view view = self->clients[i];
        view.used = &unused;
        if (!visit(context, &view))
            return;
    }
}

const struct history *view_history(struct supervisor *self)
{
    return &self->history;
}

void view_server(const struct supervisor *self, struct server_view *totals)
{
    *totals = (struct server_view){.clients = self->client_count,
                                   .clients_max = 4096,
                                   .host_limit = 1 << 20,
                                   .uptime_ns = 1500000000,
                                   .process_uptime_ns = 250000000};
}

/* Client 77 has left and still works. */
uint32_t clients_kill_leaving(struct supervisor *self, uint32_t client,
                              const struct proto_worker_usage *usage, bool force, const char *by,
                              struct error *why)
{
    self->kill_knew_usage = usage != NULL;
    if (client != 77)
        return error_set(why, MESSAGE(client_unknown), client);
    if (!force)
        return error_set(why, MESSAGE(client_leaving_alone), client, 0u, client);
    self->killed = client;
    snprintf(self->killed_by, sizeof self->killed_by, "%s", by);
    return 0;
}

void clients_drain(struct supervisor *self, uint32_t device, bool drained)
{
    self->drained[device] = drained;
}

int clients_kill(struct supervisor *self, uint32_t client, const char *by)
{
    for (uint32_t i = 0; i < self->client_count; i++) {
        if (self->clients[i].number != client || client == 77)
            continue;
        self->killed = client;
        self->kills++;
        snprintf(self->killed_by, sizeof self->killed_by, "%s", by);
        return 0;
    }
    return -ENOENT;
}

uint32_t change_check(const struct supervisor *self, uint32_t client,
                      const struct allowance *change, struct error *why)
{
    if (self->no_room)
        return error_set(why, PROTO_ERROR_OUT_OF_MEMORY, "%s", self->no_room);
    if (change->memory.limit == PROTO_UNSET || change->memory.limit <= UINT64_C(1) << 30)
        return 0;
    return error_set(why, PROTO_ERROR_INVALID_VALUE, "client %u: too much", client);
}

/* Nobody says anything of a client but an administrator. */
uint32_t change_configured(struct supervisor *self, uint32_t client, struct allowance *configured,
                           struct error *why)
{
    (void)self;
    (void)client;
    (void)why;
    *configured = allowance_none;
    configured->threads.limit = ALLOWANCE_WHOLE;
    configured->priority = 0;
    return 0;
}

int change_set(struct supervisor *self, uint32_t client, const struct allowance *change,
               const struct change_asker *asker)
{
    snprintf(self->killed_by, sizeof self->killed_by, "%s", asker->by);
    for (uint32_t i = 0; i < self->client_count; i++)
        if (self->clients[i].number == client && change->priority != ALLOWANCE_UNSET)
            self->clients[i].granted.priority = change->priority;
    self->change = *change;
    if (change->host_memory.request != PROTO_UNSET && client == 6) {
        self->no_room = "there is no room for client 6";
        return -ENOSPC;
    }
    if (change->threads.limit == ALLOWANCE_UNSET && change->threads.request == ALLOWANCE_UNSET)
        return 1;
    assert_true(self->setting_count < 16);
    self->setting[self->setting_count].change = *change;
    self->setting[self->setting_count].client = client;
    self->setting[self->setting_count].done = asker->done;
    self->setting[self->setting_count++].context = asker->context;
    return 0;
}

int change_put_back(struct supervisor *self, uint32_t client, const struct allowance *change,
                    const struct change_asker *asker)
{
    return change_set(self, client, change, asker);
}

int change_schedule(struct supervisor *self, uint32_t device, const struct schedule *to,
                    unsigned parts, const struct change_asker *asker)
{
    snprintf(self->killed_by, sizeof self->killed_by, "%s", asker->by);
    self->parts = parts;
    if (device == 1) { /* has no worker */
        schedule_merge(&self->schedule, to, parts);
        return 1;
    }
    assert_int_equal(device, 0);
    self->scheduled = asker->done;
    self->scheduled_context = asker->context;
    schedule_merge(&self->schedule, to, parts);
    return 0;
}

void change_newcomers(struct supervisor *self, uint32_t device, const struct allowance *change,
                      unsigned back_limits, unsigned back_scalars)
{
    assert_int_equal(device, 0);
    self->newcomers++;
    self->change = *change;
    self->back_limits = back_limits;
    self->back_scalars = back_scalars;
}

const struct config *view_configuration(const struct supervisor *self)
{
    (void)self;
    return NULL;
}

const struct total_overrides *view_overrides(const struct supervisor *self)
{
    static const struct total_overrides none;
    (void)self;
    return &none;
}

uint32_t reload_file(struct supervisor *self, bool reset, reload_done *done, void *context,
                     struct error *why)
{
    (void)why;
    self->reloads++;
    self->reset = reset;
    self->reload_done = done;
    self->reload_context = context;
    return 0;
}

uint32_t owner_total_set(struct supervisor *self, const struct account_owner *owner,
                         const struct total_change *change, const struct reload_asker *asker,
                         bool *over, struct error *why)
{
    (void)asker;
    *over = true;
    if (self->total.refused)
        return error_set(why, PROTO_ERROR_NOT_READY, "%s", self->total.refused);
    self->total.owner = *owner;
    snprintf(self->total.cgroup, sizeof self->total.cgroup, "%s",
             owner->cgroup ? owner->cgroup : "");
    self->total.change = *change;
    self->total.changes++;
    return 0;
}

/* User 770 and group 780 are limited on device 1, and in pinned memory by an administrator; user
 * 771 on device 1 alone, user 772 in pinned memory alone. */
void owner_total_view(const struct supervisor *self, const struct account_owner *owner,
                      enum resource resource, uint32_t device, struct total_view *view)
{
    (void)self;
    bool both = owner->id == (owner->kind == TOTAL_GROUP ? 780u : 770u);
    bool limited = both || (owner->kind == TOTAL_USER && owner->id == 771);
    bool pinned = both || (owner->kind == TOTAL_USER && owner->id == 772);
    *view = (struct total_view){.request = PROTO_UNSET, .limit = PROTO_UNSET, .used = device + 5};
    if (limited && device == 1)
        view->limit = 4096;
    if (resource == RESOURCE_HOST_MEMORY)
        *view = (struct total_view){
            .request = PROTO_UNSET, .limit = pinned ? 512 : PROTO_UNSET, .used = 64, .set = pinned};
    if (allowance_resource(resource)->by_worker)
        *view = (struct total_view){.request = PROTO_UNSET, .limit = PROTO_UNSET};
}

uint64_t owner_total_user_limit(const struct supervisor *self, uint32_t uid, enum resource resource,
                                uint32_t device)
{
    const struct account_owner owner = {.kind = TOTAL_USER, .id = uid};
    struct total_view view;
    owner_total_view(self, &owner, resource, device, &view);
    return view.limit;
}

int owner_total_each_group(const struct supervisor *self, uint32_t most, owner_total_group *each,
                           void *context)
{
    (void)self;
    (void)most;
    each(context, &(struct group_total){.gid = 50,
                                        .clients = 2,
                                        .limit = {[RESOURCE_THREADS] = 2500,
                                                  [RESOURCE_TIME] = PROTO_UNSET,
                                                  [RESOURCE_MEMORY] = 1 << 20,
                                                  [RESOURCE_HOST_MEMORY] = PROTO_UNSET},
                                        .memory_held = 4096});
    return 3;
}

bool owner_total_is_set(const struct supervisor *self, const struct account_owner *owner,
                        enum resource resource, const struct allowance *limits)
{
    (void)self;
    (void)owner;
    return allowance_has(limits, resource, ALLOWANCE_LIMIT);
}

/* It has one. */
bool view_warning(const struct supervisor *self, enum server_warning warning, struct error *what)
{
    (void)self;
    if (what)
        error_set(what, 1, "mend number %d", (int)warning);
    return warning == WARNING_CONFIGURATION_REFUSED;
}

const char *view_warning_name(enum server_warning warning)
{
    (void)warning;
    return "configuration_refused";
}

void view_config(const struct supervisor *self, struct config_view *view)
{
    *view = (struct config_view){
        .file = self->reloads > 1 ? "/etc/x.yaml" : NULL, .profiles = 2, .rules = 3};
    view->changed_clients = 4;
    view->changed_settings = 5;
}

int view_usage(struct supervisor *self, uint32_t client,
               void (*done)(void *, uint32_t, const struct proto_worker_usage *), void *context)
{
    if (client == 13)
        return -ENOENT;
    assert_true(self->asked_count < ASKED_MAX);
    self->asked[self->asked_count].client = client;
    self->asked[self->asked_count].done = done;
    self->asked[self->asked_count++].context = context;
    return 0;
}

uint32_t trace_start(struct supervisor *self, uint32_t device, uint64_t milliseconds,
                     const struct trace_asker *asker, struct error *why)
{
    if (self->trace.done) {
        return error_set(why, PROTO_ERROR_TOO_MANY_OBJECTS, "being traced for %s", asker->by);
    }
    self->trace.device = device;
    self->trace.milliseconds = milliseconds;
    self->trace.done = asker->done;
    self->trace.context = asker->context;
    return 0;
}

void trace_stop(struct supervisor *self, const void *context)
{
    self->trace.ended += self->trace.done && self->trace.context == context;
}

bool trace_abandon(struct supervisor *self, const void *context)
{
    if (!self->trace.done || self->trace.context != context)
        return false;
    self->trace.done = NULL;
    self->trace.abandoned++;
    return true;
}

/* The trace under way ends with this memory; error: it fails. */
static inline void trace_ends(int memory, uint32_t error)
{
    static const struct trace_client clients[] = {
        {.number = 5, .name = "a \"b\" \\", .pid = 50, .uid = 1000}, {.number = 9, .name = "c"}};
    struct trace trace = {.device = supervisor.trace.device,
                          .milliseconds = supervisor.trace.milliseconds,
                          .memory = memory,
                          .trouble = "the worker ended",
                          .clients = clients,
                          .client_count = 2};
    trace_done *done = supervisor.trace.done;
    assert_non_null(done);
    supervisor.trace.done = NULL;
    done(supervisor.trace.context, error, error ? "no trace" : "", error ? NULL : &trace);
}

uv_loop_t *supervisor_loop(const struct supervisor *self)
{
    return (uv_loop_t *)(uintptr_t)&self->loop;
}

const struct settings *supervisor_settings(const struct supervisor *self)
{
    return &self->settings;
}

/* Answers what was asked; gone: as if the clients had ended meanwhile. */
static inline void workers_answer(bool gone)
{
    size_t count = supervisor.asked_count;
    supervisor.asked_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct proto_worker_usage usage = {.launches = supervisor.asked[i].client * 10,
                                           .gpu_nanoseconds = 2500000000,
                                           .shared_queues = 1,
                                           .charged = 33333333,
                                           .leases = 7,
                                           .multiprocessors = 24,
                                           .throttled_lease = 1000000,
                                           .throttled_threads = 2000000,
                                           .waits = {1, [5] = 40, [31] = 2},
                                           .streams = 3};
        supervisor.asked[i].done(supervisor.asked[i].context, supervisor.asked[i].client,
                                 gone ? NULL : &usage);
    }
}

/* ---- a server and its peers ---- */

static struct admin *admin;
static char folder[64], path[96];

/* The file was read, and no worker has to be asked. */
static inline void end_reload(void)
{
    reload_done *done = supervisor.reload_done;
    supervisor.reload_done = NULL;
    done(supervisor.reload_context, supervisor.broken ? PROTO_ERROR_INVALID_VALUE : 0,
         supervisor.broken ? "file:3: unknown key" : "");
}

static inline void turn(void)
{
    if (supervisor.workers_answer)
        workers_answer(false);
    if (supervisor.reload_done && !supervisor.reload_later)
        end_reload();
    uv_run(&supervisor.loop, UV_RUN_NOWAIT);
    usleep(200);
}

static inline void add_client(uint32_t number, bool attached)
{
    struct client_view *view = &supervisor.clients[supervisor.client_count++];
    *view = (struct client_view){.number = number,
                                 .pid = 4000 + (pid_t)number,
                                 .uid = 1000,
                                 .state = attached ? "attached" : "hello",
                                 .blame = "none",
                                 .attached = attached,
                                 .asked = allowance_none,
                                 .charged[RESOURCE_MEMORY] = 2 << 20,
                                 .multiprocessors = 16,
                                 .partitioned = true,
                                 .connected_ns = 1000000000};
    view->asked.threads.limit = view->granted.threads.limit = 1250;
    view->asked.host_memory.limit = view->granted.host_memory.limit = 1 << 16;
    view->granted.memory.limit = 1 << 30;
    view->granted.time.limit = ALLOWANCE_WHOLE;
    view->own = view->granted;
    snprintf(view->name, sizeof view->name, "job %u", number);
}

static inline int set_up(void **state)
{
    (void)state;
    struct error why;
    memset(&supervisor, 0, sizeof supervisor);
    uv_loop_init(&supervisor.loop);
    supervisor.workers_answer = true;
    supervisor.schedule = supervisor.configured = schedule_default();
    supervisor.settings.admin_socket_fd = -1;
    strcpy(supervisor.settings.driver_name, "softgpu");
    strcpy(supervisor.settings.driver, "/lib/libcuda.so.1");
    snprintf(folder, sizeof folder, "%s/admin-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/admin.sock", folder);
    strcpy(supervisor.settings.admin_socket, path);
    uint32_t error = admin_open(&admin, &supervisor, &why);
    if (error)
        fail_msg("admin_open: %s", why.text);
    return 0;
}

/* Everything must end by itself: no handle may be left, no memory (under a sanitizer). */
static inline int tear_down(void **state)
{
    (void)state;
    admin_close(&admin);
    workers_answer(true);
    uv_run(&supervisor.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&supervisor.loop), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

static inline int connect_by(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static inline int connect_to(void)
{
    return connect_by(path);
}

static inline void send_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EPIPE)
            return;
        if (sent > 0) {
            text += sent;
            length -= (size_t)sent;
        }
        turn();
    }
}

/* One line without its newline, malloc'ed; NULL at the end of the stream. */
static inline char *read_line(int fd)
{
    size_t used = 0, room = 1 << 16;
    char *line = malloc(room);
    for (int i = 0; i < 20000; i++) {
        ssize_t got = recv(fd, line + used, 1, 0);
        if (got == 0 || (got < 0 && errno == ECONNRESET)) {
            free(line);
            return NULL;
        }
        if (got < 0) {
            turn();
            continue;
        }
        i = 0;
        if (line[used] == '\n') {
            line[used] = '\0';
            return line;
        }
        if (++used == room)
            line = realloc(line, room *= 2);
    }
    fail_msg("no answer came");
    return NULL;
}

static inline json_t *read_answer(int fd)
{
    char *line = read_line(fd);
    assert_non_null(line);
    json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    free(line);
    assert_non_null(answer);
    assert_int_equal(json_integer_value(json_object_get(answer, "schema_version")), 2);
    return answer;
}

static inline json_t *ask_on(int fd, const char *line)
{
    send_all(fd, line, strlen(line));
    send_all(fd, "\n", 1);
    return read_answer(fd);
}

static inline json_t *ask(const char *line)
{
    int fd = connect_to();
    json_t *answer = ask_on(fd, line);
    close(fd);
    return answer;
}

static inline void refused_with(const char *line, const char *error, const char *words)
{
    json_t *answer = ask(line);
    assert_false(json_is_true(json_object_get(answer, "ok")));
    assert_string_equal(json_string_value(json_object_get(answer, "error")), error);
    const char *text = json_string_value(json_object_get(answer, "text"));
    if (!strstr(text, words))
        fail_msg("\"%s\": \"%s\" lacks \"%s\"", line, text, words);
    json_decref(answer);
}

static inline double number_of(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        fail_msg("%s is no number", name);
    return json_number_value(value);
}

/* Whoever runs the tests may change things from now on, as root or by name. False as the user who
 * stands for everybody: nothing makes that one an administrator. */
static inline bool become_administrator(void)
{
    uid_t uid = getuid();
    if (uid == 65534)
        return false;
    if (uid != 0)
        supervisor.settings.admins[supervisor.settings.admin_count++] = uid;
    return true;
}

/* The same request, before: refused for everybody but root, who has no need to be named. */
static inline void refused_unless_root(const char *line)
{
    if (getuid() == 0)
        return;
    refused_with(line, "not_permitted", getuid() == 65534 ? "without a name" : "--admin-uid");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
