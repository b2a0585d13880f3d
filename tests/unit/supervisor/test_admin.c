/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin: the administrators' socket against a supervisor of the test's own, so that
 * clients, workers that never answer and their ends are the test's to decide.
 */
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

#include "server/supervisor/admin.h"
#include "server/supervisor/admin_request.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/supervisor.h"

/* ---- the supervisor that admin sees ---- */

enum { CLIENTS_MAX = 2000, ASKED_MAX = 4096 };

struct supervisor {
    uv_loop_t loop;
    struct settings settings;
    struct supervisor_client_view clients[CLIENTS_MAX];
    uint32_t client_count;
    uint32_t killed;
    unsigned reloads;
    bool broken; /* the configuration has a mistake */
    bool reload_later;
    supervisor_reload_done *reload_done;
    void *reload_context;
    char killed_by[128];
    bool workers_answer;
    struct {
        uint32_t client;
        void (*done)(void *, uint32_t, const struct proto_worker_usage *);
        void *context;
    } asked[ASKED_MAX];
    size_t asked_count;
    struct supervisor_change change;
    struct {
        uint32_t client;
        supervisor_set_done *done;
        void *context;
        struct supervisor_change change;
    } setting[16];
    size_t setting_count;
    struct schedule schedule; /* of device 0 */
    unsigned parts;           /* of the latest change of it */
    supervisor_set_done *scheduled;
    void *scheduled_context;
    const char *no_room; /* why supervisor_set refuses guarantees */
    struct {
        uint32_t device;
        uint64_t milliseconds;
        supervisor_trace_done *done; /* NULL: none is under way */
        void *context;
        unsigned abandoned;
    } trace;
};

static struct supervisor supervisor;

const char *supervisor_device_state_name(enum supervisor_device_state state)
{
    return state == SUPERVISOR_DEVICE_READY ? "ready" : "starting";
}

uint32_t supervisor_device_count(const struct supervisor *self)
{
    (void)self;
    return 2;
}

void supervisor_device_view(const struct supervisor *self, uint32_t index,
                            struct supervisor_device_view *view)
{
    *view = (struct supervisor_device_view){
        .index = index, .ordinal = index, .schedule = self->schedule};
    if (index == 1) {
        strcpy(view->trouble, "the worker ended: \x01 no driver");
        return;
    }
    view->state = SUPERVISOR_DEVICE_READY;
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

void supervisor_each_client(const struct supervisor *self,
                            bool (*visit)(void *, const struct supervisor_client_view *),
                            void *context)
{
    for (uint32_t i = 0; i < self->client_count; i++)
        if (!visit(context, &self->clients[i]))
            return;
}

void supervisor_totals(const struct supervisor *self, struct supervisor_totals *totals)
{
    *totals = (struct supervisor_totals){.clients = self->client_count,
                                         .clients_max = 4096,
                                         .host_limit = 1 << 20,
                                         .uptime_ns = 1500000000};
}

int supervisor_kill(struct supervisor *self, uint32_t client, const char *by)
{
    for (uint32_t i = 0; i < self->client_count; i++) {
        if (self->clients[i].number != client)
            continue;
        self->killed = client;
        snprintf(self->killed_by, sizeof self->killed_by, "%s", by);
        return 0;
    }
    return -ENOENT;
}

uint32_t supervisor_check(const struct supervisor *self, uint32_t client,
                          const struct supervisor_change *change, char *why, size_t why_size)
{
    if (self->no_room) {
        snprintf(why, why_size, "%s", self->no_room);
        return PROTO_ERROR_OUT_OF_MEMORY;
    }
    if (change->memory_limit == PROTO_UNSET || change->memory_limit <= UINT64_C(1) << 30)
        return 0;
    snprintf(why, why_size, "client %u: too much", client);
    return PROTO_ERROR_INVALID_VALUE;
}

int supervisor_set(struct supervisor *self, uint32_t client, const struct supervisor_change *change,
                   const char *by, supervisor_set_done *done, void *context)
{
    snprintf(self->killed_by, sizeof self->killed_by, "%s", by);
    for (uint32_t i = 0; i < self->client_count; i++)
        if (self->clients[i].number == client && change->priority != UINT32_MAX)
            self->clients[i].priority = change->priority;
    self->change = *change;
    if (change->host_request != PROTO_UNSET && client == 6) {
        self->no_room = "there is no room for client 6";
        return -ENOSPC;
    }
    if (!change->thread_percentage && change->thread_request == UINT32_MAX)
        return 1;
    assert_true(self->setting_count < 16);
    self->setting[self->setting_count].change = *change;
    self->setting[self->setting_count].client = client;
    self->setting[self->setting_count].done = done;
    self->setting[self->setting_count++].context = context;
    return 0;
}

int supervisor_put_back(struct supervisor *self, uint32_t client,
                        const struct supervisor_change *change, const char *by,
                        supervisor_set_done *done, void *context)
{
    return supervisor_set(self, client, change, by, done, context);
}

int supervisor_schedule(struct supervisor *self, uint32_t device, const struct schedule *to,
                        unsigned parts, const char *by, supervisor_set_done *done, void *context)
{
    snprintf(self->killed_by, sizeof self->killed_by, "%s", by);
    self->parts = parts;
    if (device == 1) { /* has no worker */
        schedule_merge(&self->schedule, to, parts);
        return 1;
    }
    assert_int_equal(device, 0);
    self->scheduled = done;
    self->scheduled_context = context;
    schedule_merge(&self->schedule, to, parts);
    return 0;
}

int supervisor_reload(struct supervisor *self, char *words, size_t bytes,
                      supervisor_reload_done *done, void *context)
{
    self->reloads++;
    self->reload_done = done;
    self->reload_context = context;
    snprintf(words, bytes, "%s", self->broken ? "file:3: unknown key" : "");
    return self->broken ? -EINVAL : self->reload_later ? 0 : 1;
}

void supervisor_config_view(const struct supervisor *self, struct supervisor_config_view *view)
{
    *view = (struct supervisor_config_view){
        .file = self->reloads > 1 ? "/etc/x.yaml" : NULL, .profiles = 2, .rules = 3};
}

int supervisor_usage(struct supervisor *self, uint32_t client,
                     void (*done)(void *, uint32_t, const struct proto_worker_usage *),
                     void *context)
{
    if (client == 13)
        return -ENOENT;
    assert_true(self->asked_count < ASKED_MAX);
    self->asked[self->asked_count].client = client;
    self->asked[self->asked_count].done = done;
    self->asked[self->asked_count++].context = context;
    return 0;
}

uint32_t supervisor_trace(struct supervisor *self, uint32_t device, uint64_t milliseconds,
                          const char *by, supervisor_trace_done *done, void *context, char *why,
                          size_t why_size)
{
    if (self->trace.done) {
        snprintf(why, why_size, "being traced for %s", by);
        return PROTO_ERROR_TOO_MANY_OBJECTS;
    }
    self->trace.device = device;
    self->trace.milliseconds = milliseconds;
    self->trace.done = done;
    self->trace.context = context;
    return 0;
}

bool supervisor_trace_abandon(struct supervisor *self, const void *context)
{
    if (!self->trace.done || self->trace.context != context)
        return false;
    self->trace.done = NULL;
    self->trace.abandoned++;
    return true;
}

/* The trace under way ends with this memory; error: it fails. */
static void trace_ends(int memory, uint32_t error)
{
    static const struct supervisor_trace_client clients[] = {
        {.number = 5, .name = "a \"b\" \\", .pid = 50, .uid = 1000}, {.number = 9, .name = "c"}};
    struct supervisor_trace trace = {.device = supervisor.trace.device,
                                     .milliseconds = supervisor.trace.milliseconds,
                                     .memory = memory,
                                     .trouble = "the worker ended",
                                     .clients = clients,
                                     .client_count = 2};
    supervisor_trace_done *done = supervisor.trace.done;
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
static void workers_answer(bool gone)
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

static void turn(void)
{
    if (supervisor.workers_answer)
        workers_answer(false);
    uv_run(&supervisor.loop, UV_RUN_NOWAIT);
    usleep(200);
}

static void add_client(uint32_t number, bool attached)
{
    struct supervisor_client_view *view = &supervisor.clients[supervisor.client_count++];
    *view = (struct supervisor_client_view){.number = number,
                                            .pid = 4000 + (pid_t)number,
                                            .uid = 1000,
                                            .state = attached ? "attached" : "hello",
                                            .attached = attached,
                                            .memory_asked = PROTO_UNSET,
                                            .memory_limit = 1 << 30,
                                            .memory_charged = 2 << 20,
                                            .host_asked = 1 << 16,
                                            .host_limit = 1 << 16,
                                            .threads_asked = 1250,
                                            .threads_granted = 1250,
                                            .time_limit = 10000,
                                            .multiprocessors = 16,
                                            .partitioned = true,
                                            .connected_ns = 1000000000};
    snprintf(view->name, sizeof view->name, "job %u", number);
}

static int set_up(void **state)
{
    (void)state;
    char why[300];
    memset(&supervisor, 0, sizeof supervisor);
    uv_loop_init(&supervisor.loop);
    supervisor.workers_answer = true;
    supervisor.schedule = schedule_default();
    supervisor.settings.admin_socket_fd = -1;
    strcpy(supervisor.settings.driver_name, "softgpu");
    strcpy(supervisor.settings.driver, "/lib/libcuda.so.1");
    snprintf(folder, sizeof folder, "%s/admin-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/admin.sock", folder);
    strcpy(supervisor.settings.admin_socket, path);
    int result = admin_open(&admin, &supervisor, why, sizeof why);
    if (result < 0)
        fail_msg("admin_open: %s", why);
    return 0;
}

/* Everything must end by itself: no handle may be left, no memory (under a sanitizer). */
static int tear_down(void **state)
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

static int connect_by(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int connect_to(void)
{
    return connect_by(path);
}

static void send_all(int fd, const char *text, size_t length)
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
static char *read_line(int fd)
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

static json_t *read_answer(int fd)
{
    char *line = read_line(fd);
    assert_non_null(line);
    json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    free(line);
    assert_non_null(answer);
    assert_int_equal(json_integer_value(json_object_get(answer, "schema_version")), 2);
    return answer;
}

static json_t *ask_on(int fd, const char *line)
{
    send_all(fd, line, strlen(line));
    send_all(fd, "\n", 1);
    return read_answer(fd);
}

static json_t *ask(const char *line)
{
    int fd = connect_to();
    json_t *answer = ask_on(fd, line);
    close(fd);
    return answer;
}

static void refused_with(const char *line, const char *error, const char *words)
{
    json_t *answer = ask(line);
    assert_false(json_is_true(json_object_get(answer, "ok")));
    assert_string_equal(json_string_value(json_object_get(answer, "error")), error);
    const char *text = json_string_value(json_object_get(answer, "text"));
    if (!strstr(text, words))
        fail_msg("\"%s\": \"%s\" lacks \"%s\"", line, text, words);
    json_decref(answer);
}

static double number_of(json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    if (!json_is_number(value))
        fail_msg("%s is no number", name);
    return json_number_value(value);
}

/* Whoever runs the tests may change things from now on, as root or by name. False as the user who
 * stands for everybody: nothing makes that one an administrator. */
static bool become_administrator(void)
{
    uid_t uid = getuid();
    if (uid == 65534)
        return false;
    if (uid != 0)
        supervisor.settings.admins[supervisor.settings.admin_count++] = uid;
    return true;
}

/* ---- tests ---- */

static void the_socket_file_is_for_owner_and_group(void **state)
{
    (void)state;
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0660);
    assert_true(S_ISSOCK(status.st_mode));
}

static void ping_and_version(void **state)
{
    (void)state;
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    answer = ask("{\"request\":\"version\"}");
    assert_string_equal(json_string_value(json_object_get(answer, "server_version")),
                        GPUSHARE_VERSION);
    assert_string_equal(json_string_value(json_object_get(answer, "protocol_version")), "1.0");
    json_decref(answer);
}

static void several_requests_of_one_connection_are_answered_in_order(void **state)
{
    (void)state;
    static const char lines[] = "{\"request\":\"ping\"}\n{\"request\":\"version\"}\n"
                                "{\"request\":\"status\"}\r\n{\"request\":\"nonsense\"}\n"
                                "{\"request\":\"clients\"}\n";
    static const char *const names[] = {"ping", "version", "status", NULL, "clients"};
    int fd = connect_to();
    send_all(fd, lines, sizeof lines - 1);
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 5; i++) {
        json_t *answer = read_answer(fd);
        const char *name = json_string_value(json_object_get(answer, "request"));
        if (names[i])
            assert_string_equal(name, names[i]);
        else
            assert_null(name);
        json_decref(answer);
    }
    assert_null(read_line(fd));
    close(fd);
}

static void a_request_in_single_bytes(void **state)
{
    (void)state;
    static const char line[] = "{ \"request\" : \"ping\" }\n";
    int fd = connect_to();
    for (size_t i = 0; i < sizeof line - 1; i++) {
        send_all(fd, line + i, 1);
        turn();
    }
    json_t *answer = read_answer(fd);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    close(fd);
}

static void malformed_requests_are_refused_in_words(void **state)
{
    (void)state;
    refused_with("", "invalid_value", "one JSON object");
    refused_with("hello", "invalid_value", "one JSON object");
    refused_with("[]", "invalid_value", "\"request\"");
    refused_with("{}", "invalid_value", "\"request\"");
    refused_with("{\"request\":5}", "invalid_value", "\"request\"");
    refused_with("{\"request\":\"ping\"} {}", "invalid_value", "one JSON object");
    refused_with("{\"request\":\"ping\",\"request\":\"kill\"}", "invalid_value", "one JSON object");
    refused_with("{\"request\":\"ping\",\"extra\":1}", "invalid_value", "no member \"extra\"");
    refused_with("{\"request\":\"ping\",\"client\":1}", "invalid_value", "no member \"client\"");
    refused_with("{\"request\":\"reboot\"}", "not_supported", "there is no request \"reboot\"");
    refused_with("{\"request\":\"\xff\"}", "invalid_value", "one JSON object");
    refused_with("{\"request\":[[[[[[[[\"ping\"]]]]]]]]}", "invalid_value", "8 deep");
    refused_with("{\"request\":\"kill\"}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":\"1\"}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":-1}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":1.0}", "invalid_value", "needs \"client\"");
    refused_with("{\"request\":\"kill\",\"client\":4294967296}", "invalid_value",
                 "needs \"client\"");
}

static void nesting_beyond_any_stack(void **state)
{
    (void)state;
    static char line[ADMIN_LINE_MAX - 1];
    memset(line, '[', sizeof line);
    line[sizeof line - 1] = '\0';
    refused_with(line, "invalid_value", "8 deep");
}

static void a_line_at_its_longest(void **state)
{
    (void)state;
    static char line[ADMIN_LINE_MAX + 1];
    memset(line, ' ', sizeof line);
    static const char request[] = "{\"request\":\"ping\"}";
    memcpy(line, request, sizeof request - 1);
    line[ADMIN_LINE_MAX - 1] = '\0'; /* with its newline as long as a line may be */
    json_t *answer = ask(line);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    /* One more, without an end: refused, and the connection closed. */
    line[ADMIN_LINE_MAX - 1] = ' ';
    int fd = connect_to();
    send_all(fd, line, ADMIN_LINE_MAX);
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "invalid_value");
    json_decref(answer);
    assert_null(read_line(fd));
    close(fd);
}

static void status_says_what_devices_do(void **state)
{
    (void)state;
    add_client(1, true);
    add_client(2, true);
    add_client(3, false);
    json_t *answer = ask("{\"request\":\"status\"}");
    assert_true(number_of(answer, "uptime_seconds") == 1.5);
    assert_true(number_of(answer, "clients") == 3);
    assert_string_equal(json_string_value(json_object_get(answer, "kernel_isolation")), "none");
    json_t *devices = json_object_get(answer, "devices");
    assert_int_equal(json_array_size(devices), 2);
    json_t *first = json_array_get(devices, 0), *second = json_array_get(devices, 1);
    assert_string_equal(json_string_value(json_object_get(first, "uuid")),
                        "GPU-ab000000-0000-0000-0000-000000000000");
    assert_string_equal(json_string_value(json_object_get(first, "cuda_version")), "13.1");
    assert_true(number_of(first, "memory_bytes") == 85899345920.0);
    assert_true(number_of(first, "shared_queues") == 2);
    json_t *schedule = json_object_get(first, "schedule");
    assert_string_equal(json_string_value(json_object_get(schedule, "mode")), "concurrent");
    assert_true(number_of(schedule, "lease_seconds") == 0.25);
    assert_true(number_of(schedule, "plan_seconds") == 5);
    assert_true(json_is_false(json_object_get(schedule, "time_enforced")));
    assert_string_equal(json_string_value(json_object_get(first, "threads_enforced_by")),
                        "partitions");
    assert_true(json_is_null(json_object_get(second, "threads_enforced_by")));
    assert_true(json_is_null(json_object_get(first, "trouble")));
    assert_true(json_is_null(json_object_get(second, "name")));
    assert_true(json_is_null(json_object_get(second, "worker_pid")));
    assert_non_null(json_string_value(json_object_get(second, "trouble")));
    json_decref(answer);
}

static void clients_show_asked_and_granted(void **state)
{
    (void)state;
    add_client(1, true);
    add_client(2, false);
    add_client(13, true); /* its worker ends just now */
    strcpy(supervisor.clients[1].name, "\xff\xfe");
    json_t *answer = ask("{\"request\":\"clients\"}");
    json_t *clients = json_object_get(answer, "clients");
    assert_int_equal(json_array_size(clients), 3);
    json_t *client = json_array_get(clients, 0);
    assert_string_equal(json_string_value(json_object_get(client, "name")), "job 1");
    json_t *memory = json_object_get(client, "memory"), *limit = json_object_get(memory, "limit");
    json_t *threads = json_object_get(client, "threads");
    assert_true(json_is_null(json_object_get(limit, "asked_bytes")));
    assert_true(number_of(limit, "granted_bytes") == 1073741824);
    assert_true(number_of(memory, "used_bytes") == 2097152);
    limit = json_object_get(threads, "limit");
    assert_true(number_of(limit, "asked_percent") == 12.5);
    assert_true(number_of(limit, "granted_percent") == 12.5);
    json_t *request = json_object_get(threads, "request");
    assert_true(json_is_null(json_object_get(request, "asked_percent")));
    assert_true(number_of(request, "granted_percent") == 0);
    assert_true(json_is_true(json_object_get(threads, "partitioned")));
    assert_true(number_of(threads, "multiprocessors") == 16);
    assert_true(number_of(json_object_get(json_object_get(client, "time"), "limit"),
                          "granted_percent") == 100);
    assert_true(number_of(client, "multiprocessors_now") == 24);
    assert_true(number_of(client, "gpu_time_seconds") == 2.5);
    assert_true(number_of(client, "charged_seconds") == 0.033333333);
    assert_true(number_of(client, "leases") == 7);
    assert_true(number_of(client, "launches") == 10);
    json_t *throttled = json_object_get(client, "throttled_seconds");
    assert_true(number_of(throttled, "lease") == 0.001);
    assert_true(number_of(throttled, "duty") == 0);
    assert_true(number_of(throttled, "threads") == 0.002);
    json_t *waits = json_object_get(client, "waits");
    assert_int_equal(json_array_size(waits), 32);
    assert_int_equal(json_integer_value(json_array_get(waits, 0)), 1);
    assert_int_equal(json_integer_value(json_array_get(waits, 5)), 40);
    assert_int_equal(json_integer_value(json_array_get(waits, 31)), 2);
    client = json_array_get(clients, 1);
    assert_string_equal(json_string_value(json_object_get(client, "name")), "?"
                                                                            "?");
    assert_true(json_is_null(json_object_get(client, "memory")));
    client = json_array_get(clients, 2);
    assert_true(json_is_null(json_object_get(client, "gpu_time_seconds")));
    assert_true(json_is_null(json_object_get(client, "waits")));
    assert_true(number_of(json_object_get(client, "memory"), "used_bytes") == 2097152);
    json_decref(answer);
}

static void a_worker_that_does_not_answer_is_not_waited_for(void **state)
{
    (void)state;
    add_client(1, true);
    supervisor.workers_answer = false;
    json_t *answer = ask("{\"request\":\"clients\"}");
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    assert_true(json_is_null(json_object_get(client, "launches")));
    json_decref(answer);
    assert_int_equal(supervisor.asked_count, 1); /* its answer comes at the very end */
    answer = ask("{\"request\":\"status\"}");
    assert_true(json_is_null(
        json_object_get(json_array_get(json_object_get(answer, "devices"), 0), "shared_queues")));
    json_decref(answer);
}

static void a_peer_that_leaves_while_workers_are_asked(void **state)
{
    (void)state;
    add_client(1, true);
    add_client(2, true);
    supervisor.workers_answer = false;
    int fd = connect_to();
    send_all(fd, "{\"request\":\"clients\"}\n", 22);
    for (int i = 0; i < 1000 && supervisor.asked_count < 2; i++)
        turn();
    assert_int_equal(supervisor.asked_count, 2);
    close(fd);
    for (int i = 0; i < 20; i++)
        turn();
    workers_answer(false);
    supervisor.workers_answer = true;
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

static void an_end_while_workers_are_asked(void **state)
{
    (void)state;
    add_client(1, true);
    supervisor.workers_answer = false;
    int fd = connect_to();
    send_all(fd, "{\"request\":\"status\"}\n", 21);
    for (int i = 0; i < 1000 && supervisor.asked_count < 1; i++)
        turn();
    assert_int_equal(supervisor.asked_count, 1);
    admin_close(&admin);
    assert_null(admin);
    assert_null(read_line(fd));
    close(fd);
}

static void a_thousand_clients_in_one_answer(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 1000; i++)
        add_client(i + 100, true);
    json_t *answer = ask("{\"request\":\"clients\"}");
    json_t *clients = json_object_get(answer, "clients");
    assert_int_equal(json_array_size(clients), 1000);
    for (size_t i = 0; i < 1000; i++)
        assert_true(number_of(json_array_get(clients, i), "launches") == (double)(i + 101) * 10);
    json_decref(answer);
}

/* The same request, before: refused for everybody but root, who has no need to be named. */
static void refused_unless_root(const char *line)
{
    if (getuid() == 0)
        return;
    refused_with(line, "not_permitted", getuid() == 65534 ? "without a name" : "--admin-uid");
}

static void kill_is_for_root_and_those_named(void **state)
{
    (void)state;
    add_client(7, true);
    refused_unless_root("{\"request\":\"kill\",\"client\":7}");
    assert_int_equal(supervisor.killed, 0);
    if (!become_administrator())
        return;
    refused_with("{\"request\":\"kill\",\"client\":8}", "not_found", "no client 8");
    json_t *answer = ask("{\"request\":\"kill\",\"client\":7}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_int_equal(supervisor.killed, 7);
    assert_non_null(strstr(supervisor.killed_by, "uid "));
}

/* Connects as another user: the kernel remembers who connected. By a relative name, for the folders
 * above may be closed to that user. */
static int connect_as(uid_t uid)
{
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(chmod(folder, 0711), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(seteuid(uid), 0);
    int fd = connect_by("admin.sock");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    return fd;
}

static void reload_is_for_root_and_says_why_not(void **state)
{
    (void)state;
    refused_with("{\"request\":\"reload\",\"file\":\"/x\"}", "invalid_value", "no member");
    refused_unless_root("{\"request\":\"reload\"}");
    assert_int_equal(supervisor.reloads, 0);
    if (!become_administrator())
        return;
    json_t *answer = ask("{\"request\":\"reload\"}");
    assert_true(json_is_null(json_object_get(answer, "file")));
    json_decref(answer);
    answer = ask("{\"request\":\"reload\"}");
    assert_string_equal(json_string_value(json_object_get(answer, "file")), "/etc/x.yaml");
    assert_int_equal(json_integer_value(json_object_get(answer, "rules")), 3);
    json_decref(answer);
    supervisor.broken = true;
    refused_with("{\"request\":\"reload\"}", "invalid_value",
                 "stays as it was: file:3: unknown key");
    assert_int_equal(supervisor.reloads, 3);
    supervisor.broken = false;
}

/* Workers are asked: the answer is what they say. */
static void a_reload_that_waits_is_answered_when_it_is_over(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    supervisor.reload_later = true;
    for (int refused = 0; refused < 2; refused++) {
        int fd = connect_to();
        unsigned before = supervisor.reloads;
        send_all(fd, "{\"request\":\"reload\"}\n", strlen("{\"request\":\"reload\"}\n"));
        while (supervisor.reloads == before)
            turn();
        supervisor.reload_done(supervisor.reload_context, refused ? PROTO_ERROR_INVALID_VALUE : 0,
                               refused ? "60 + 50" : "");
        json_t *answer = read_answer(fd);
        assert_int_equal(json_is_true(json_object_get(answer, "ok")), !refused);
        if (refused)
            assert_string_equal(json_string_value(json_object_get(answer, "text")),
                                "the configuration stays as it was: 60 + 50");
        json_decref(answer);
        close(fd);
    }
    supervisor.reload_later = false;
}

static void others_may_look_but_not_kill(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip();
    add_client(7, true);
    supervisor.settings.admins[supervisor.settings.admin_count++] = 4711;
    static const struct {
        uid_t uid;
        const char *words; /* NULL: allowed */
    } rows[] = {{4711, NULL}, {4712, "--admin-uid 4712"}, {65534, "without a name"}};
    for (int i = 0; i < 3; i++) {
        int fd = connect_as(rows[i].uid);
        supervisor.killed = 0;
        json_t *answer = ask_on(fd, "{\"request\":\"clients\"}");
        assert_true(json_is_true(json_object_get(answer, "ok")));
        json_decref(answer);
        answer = ask_on(fd, "{\"request\":\"kill\",\"client\":7}");
        assert_int_equal(json_is_true(json_object_get(answer, "ok")), !rows[i].words);
        assert_int_equal(supervisor.killed, rows[i].words ? 0 : 7);
        const char *text = json_string_value(json_object_get(answer, "text"));
        if (rows[i].words && !strstr(text, rows[i].words))
            fail_msg("\"%s\" lacks \"%s\"", text, rows[i].words);
        json_decref(answer);
        close(fd);
    }
    /* Named or not: who stands for everybody is nobody in particular. */
    supervisor.settings.admins[supervisor.settings.admin_count++] = 65534;
    int fd = connect_as(65534);
    json_t *answer = ask_on(fd, "{\"request\":\"kill\",\"client\":7}");
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "not_permitted");
    json_decref(answer);
    close(fd);
}

static void connections_are_limited(void **state)
{
    (void)state;
    int fds[ADMIN_CONNECTIONS_MAX];
    for (int i = 0; i < ADMIN_CONNECTIONS_MAX; i++) {
        fds[i] = connect_to();
        json_decref(ask_on(fds[i], "{\"request\":\"ping\"}"));
    }
    int extra = connect_to();
    json_t *answer = read_answer(extra);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "server_resources");
    json_decref(answer);
    assert_null(read_line(extra));
    close(extra);
    close(fds[0]);
    for (int i = 0; i < 10; i++)
        turn();
    answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    for (int i = 1; i < ADMIN_CONNECTIONS_MAX; i++)
        close(fds[i]);
}

static void a_peer_that_never_reads_is_not_read_from(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 500; i++)
        add_client(i, true);
    int fd = connect_to();
    /* Far more answers than a socket buffers; the server must stop taking requests. */
    size_t sent = 0;
    int idle = 0;
    while (idle < 200 && sent < (8u << 20)) {
        ssize_t now = send(fd, "{\"request\":\"clients\"}\n", 22, MSG_NOSIGNAL);
        idle = now > 0 ? 0 : idle + 1;
        sent += now > 0 ? (size_t)now : 0;
        turn();
    }
    assert_true(sent < (2u << 20));
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    close(fd);
}

static void a_living_servers_socket_is_not_taken(void **state)
{
    (void)state;
    struct admin *second;
    char why[300] = "";
    assert_int_equal(admin_open(&second, &supervisor, why, sizeof why), -EADDRINUSE);
    assert_null(second);
    assert_non_null(strstr(why, path));
    json_t *answer = ask("{\"request\":\"ping\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

static void a_dead_servers_socket_is_replaced_and_a_file_is_not(void **state)
{
    (void)state;
    struct admin *second;
    char why[300] = "", other[128];
    snprintf(other, sizeof other, "%s/other", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, other);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    strcpy(supervisor.settings.admin_socket, other);
    assert_int_equal(admin_open(&second, &supervisor, why, sizeof why), 0);
    admin_close(&second);
    assert_int_equal(access(other, F_OK), -1);
    FILE *file = fopen(other, "we");
    fclose(file);
    assert_int_equal(admin_open(&second, &supervisor, why, sizeof why), -EADDRINUSE);
    assert_int_equal(access(other, F_OK), 0);
    unlink(other);
    memset(supervisor.settings.admin_socket, 'x', 200);
    assert_int_equal(admin_open(&second, &supervisor, why, sizeof why), -ENAMETOOLONG);
}

static void another_servers_socket_is_left_at_the_end(void **state)
{
    (void)state;
    /* Somebody removed ours and listens there now. */
    unlink(path);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    admin_close(&admin);
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    unlink(path);
}

/* Answers the changes that were asked of the workers. */
static void workers_set(uint32_t error)
{
    size_t count = supervisor.setting_count;
    supervisor.setting_count = 0;
    for (size_t i = 0; i < count; i++)
        supervisor.setting[i].done(supervisor.setting[i].context, supervisor.setting[i].client,
                                   error, error ? "it was not to be" : "");
}

static void set_reads_every_limit(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    json_t *answer = ask("{\"request\":\"set\",\"client\":5,\"memory\":{\"limit\":\"512M\"},"
                         "\"host_memory\":{\"limit\":\"64K\"},\"priority\":3}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    assert_true(number_of(client, "client") == 5);
    assert_true(number_of(client, "priority") == 3);
    json_decref(answer);
    assert_true(supervisor.change.memory_limit == UINT64_C(512) << 20);
    assert_true(supervisor.change.host_limit == 64 << 10);
    assert_int_equal(supervisor.change.thread_percentage, 0);
    answer = ask("{\"request\":\"set\",\"user\":1000,\"memory\":{\"limit\":\"25%\"}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_true(supervisor.change.memory_limit == PROTO_UNSET);
    assert_int_equal(supervisor.change.memory_share, 2500);
    assert_int_equal(supervisor.change.priority, UINT32_MAX);
    answer = ask("{\"request\":\"set\",\"client\":5,\"time\":{\"request\":\"0\",\"limit\":\"0.5\"},"
                 "\"memory\":{\"request\":\"12.5%\",\"limit\":\"1G\"},"
                 "\"host_memory\":{\"request\":\"16K\"}}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    assert_int_equal(supervisor.change.time_request, 0);
    assert_int_equal(supervisor.change.time_limit, 5000);
    assert_int_equal(supervisor.change.memory_request_share, 1250);
    assert_true(supervisor.change.memory_request == PROTO_UNSET);
    assert_true(supervisor.change.memory_limit == UINT64_C(1) << 30);
    assert_true(supervisor.change.host_request == 16384);
    assert_true(supervisor.change.host_limit == PROTO_UNSET);
    assert_int_equal(supervisor.change.thread_request, UINT32_MAX);
    answer = ask("{\"request\":\"set\",\"client\":5,\"memory\":{\"request\":\"0%\"}}");
    json_decref(answer);
    assert_true(supervisor.change.memory_request == 0);
    assert_int_equal(supervisor.change.memory_request_share, 0);
}

static void await_settings(size_t count)
{
    for (int i = 0; i < 5000 && supervisor.setting_count < count; i++)
        turn();
    assert_int_equal(supervisor.setting_count, count);
}

/* Answers one of the changes that wait. */
static void answer_setting(size_t at, uint32_t error, const char *words)
{
    supervisor.setting[at].done(supervisor.setting[at].context, supervisor.setting[at].client,
                                error, words);
}

static void set_for_a_user_is_all_or_nothing(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    for (uint32_t i = 5; i < 8; i++)
        add_client(i, true);
    supervisor.clients[0].thread_request = 1000; /* would take */
    supervisor.clients[1].thread_request = 9000; /* would give */
    supervisor.clients[2].thread_request = 5000;
    supervisor.clients[0].priority = 4;
    static const char line[] =
        "{\"request\":\"set\",\"user\":1000,\"threads\":{\"request\":\"50%\"},\"priority\":2}\n";
    int fd = connect_to();
    send_all(fd, line, strlen(line));
    await_settings(3);
    /* Those who give come first, or the sum would be too much on the way. */
    assert_int_equal(supervisor.setting[0].client, 6);
    assert_int_equal(supervisor.setting[1].client, 7);
    assert_int_equal(supervisor.setting[2].client, 5);
    answer_setting(0, 0, "");
    answer_setting(1, 0, "");
    answer_setting(2, PROTO_ERROR_INVALID_VALUE, "50 % and 50 % and 50 % are 150 %");
    /* The two that were changed are put back as they were. */
    await_settings(5);
    assert_int_equal(supervisor.setting[3].client, 6);
    assert_int_equal(supervisor.setting[3].change.thread_request, 9000);
    assert_int_equal(supervisor.setting[3].change.priority, 0);
    assert_int_equal(supervisor.setting[3].change.thread_percentage, 0);
    assert_int_equal(supervisor.setting[4].client, 7);
    assert_int_equal(supervisor.setting[4].change.thread_request, 5000);
    char byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), -1);
    answer_setting(3, 0, "");
    answer_setting(4, 0, "");
    json_t *answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "invalid_value");
    assert_string_equal(json_string_value(json_object_get(answer, "text")),
                        "client 5: 50 % and 50 % and 50 % are 150 %");
    json_decref(answer);
    close(fd);
    supervisor.setting_count = 0;
}

static void a_client_that_leaves_refuses_nothing_to_the_others(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, true);
    static const char line[] =
        "{\"request\":\"set\",\"user\":1000,\"threads\":{\"request\":\"5%\"}}\n";
    int fd = connect_to();
    send_all(fd, line, strlen(line));
    await_settings(2);
    answer_setting(0, PROTO_ERROR_NOT_FOUND, "it left");
    answer_setting(1, 0, "");
    json_t *answer = read_answer(fd);
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
    /* Nobody was left to change. */
    supervisor.setting_count = 0;
    send_all(fd, line, strlen(line));
    await_settings(2);
    answer_setting(0, PROTO_ERROR_NOT_FOUND, "it left");
    answer_setting(1, PROTO_ERROR_NOT_FOUND, "it left");
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "not_found");
    json_decref(answer);
    close(fd);
    supervisor.setting_count = 0;
}

static void a_guarantee_without_room_gives_the_first_ones_back(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, true);
    supervisor.clients[0].host_request = 77;
    refused_with("{\"request\":\"set\",\"user\":1000,\"host_memory\":{\"request\":\"64K\"}}",
                 "out_of_memory", "there is no room for client 6");
    /* What was asked for last is client 5's again. */
    assert_true(supervisor.change.host_request == 77);
    assert_true(supervisor.change.host_limit == PROTO_UNSET);
}

static void a_gpus_schedule_is_set_and_shown(void **state)
{
    (void)state;
    json_t *answer = ask("{\"request\":\"get\",\"gpu\":0}");
    json_t *gpu = json_array_get(json_object_get(answer, "gpus"), 0);
    assert_int_equal(json_array_size(json_object_get(answer, "gpus")), 1);
    assert_true(number_of(gpu, "gpu") == 0);
    assert_true(number_of(json_object_get(gpu, "schedule"), "quantum_seconds") == 30);
    json_decref(answer);
    refused_with("{\"request\":\"get\",\"gpu\":2}", "not_found", "there is no GPU 2");
    refused_unless_root("{\"request\":\"set\",\"gpu\":0,\"mode\":\"fair\"}");
    assert_int_equal(supervisor.parts, 0);
    if (!become_administrator())
        return;
    refused_with("{\"request\":\"set\",\"gpu\":2,\"mode\":\"fair\"}", "not_found", "\"status\"");
    static const char line[] =
        "{\"request\":\"set\",\"gpu\":0,\"mode\":\"fair\",\"lease\":\"50ms\","
        "\"precision\":\"2.5%\"}\n";
    int fd = connect_to();
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 5000 && !supervisor.scheduled; i++)
        turn();
    assert_int_equal(supervisor.parts, SCHEDULE_MODE | SCHEDULE_LEASE | SCHEDULE_PRECISION);
    supervisor.scheduled(supervisor.scheduled_context, 0, 0, "");
    answer = read_answer(fd);
    gpu = json_object_get(json_array_get(json_object_get(answer, "gpus"), 0), "schedule");
    assert_string_equal(json_string_value(json_object_get(gpu, "mode")), "fair");
    assert_true(number_of(gpu, "lease_seconds") == 0.05);
    assert_true(number_of(gpu, "precision_percent") == 2.5);
    assert_true(number_of(gpu, "plan_seconds") == 2);
    assert_true(json_is_true(json_object_get(gpu, "time_enforced")));
    json_decref(answer);
    /* A refusal comes through in the worker's words. */
    supervisor.scheduled = NULL;
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 5000 && !supervisor.scheduled; i++)
        turn();
    supervisor.scheduled(supervisor.scheduled_context, 0, PROTO_ERROR_INVALID_VALUE,
                         "60 % and 50 % are 110 %");
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "text")),
                        "GPU 0: 60 % and 50 % are 110 %");
    json_decref(answer);
    close(fd);
    answer = ask("{\"request\":\"set\",\"gpu\":1,\"quantum\":\"1s\"}");
    assert_true(json_is_true(json_object_get(answer, "ok")));
    json_decref(answer);
}

/* As text, for it is the text that people see. */
static void numbers_have_no_tail(void **state)
{
    (void)state;
    add_client(1, true);
    supervisor.clients[0].threads_asked = 3333;
    supervisor.clients[0].connected_ns = UINT64_C(12345678901234);
    int fd = connect_to();
    static const char line[] = "{\"request\":\"clients\"}\n";
    send_all(fd, line, strlen(line));
    char *text = read_line(fd);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"asked_percent\":33.33,"));
    assert_non_null(strstr(text, "\"connected_seconds\":12345.678,"));
    assert_non_null(strstr(text, "\"charged_seconds\":0.033333333,"));
    free(text);
    close(fd);
}

static void set_waits_for_every_worker(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, true);
    add_client(7, false);
    static const char line[] =
        "{\"request\":\"set\",\"user\":1000,\"threads\":{\"limit\":\"12.5%\"}}\n";
    int fd = connect_to();
    char byte;
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 100; i++)
        turn();
    assert_int_equal(supervisor.setting_count, 2);
    assert_int_equal(supervisor.change.thread_percentage, 1250);
    assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), -1);
    workers_set(0);
    json_t *answer = read_answer(fd);
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 2);
    json_decref(answer);
    /* One failure is told; a peer that leaves is no trouble. */
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 100; i++)
        turn();
    workers_set(PROTO_ERROR_OUT_OF_MEMORY);
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "out_of_memory");
    assert_non_null(strstr(json_string_value(json_object_get(answer, "text")), "client 5: it was"));
    json_decref(answer);
    send_all(fd, line, strlen(line));
    for (int i = 0; i < 100; i++)
        turn();
    assert_int_equal(supervisor.setting_count, 2);
    close(fd);
    for (int i = 0; i < 100; i++)
        turn();
    workers_set(0);
}

static void what_cannot_be_set_is_refused_in_words(void **state)
{
    (void)state;
#define SET "{\"request\":\"set\",\"client\":5,"
    if (!become_administrator())
        skip();
    add_client(5, true);
    add_client(6, false);
    refused_with(SET "\"memory\":{\"limit\":\"2G\"}}", "invalid_value", "too much");
    refused_with("{\"request\":\"set\",\"client\":5}", "invalid_value", "something to set");
    refused_with(SET "\"memory\":{\"limit\":\"much\"}}", "invalid_value", "\"much\" is not a size");
    refused_with(SET "\"threads\":{\"limit\":\"101%\"}}", "invalid_value", "is not a share");
    refused_with(SET "\"threads\":{\"limit\":25}}", "invalid_value", "threads.limit");
    refused_with(SET "\"threads\":{}}", "invalid_value", "\"limit\": text}");
    refused_with(SET "\"threads\":\"25%\"}", "invalid_value", "\"limit\": text}");
    refused_with(SET "\"threads\":{\"request\":\"25%\",\"most\":\"30%\"}}", "invalid_value",
                 "\"limit\": text}");
    refused_with(SET "\"time\":{\"request\":\"25\"}}", "invalid_value", "or 0 for none");
    refused_with(SET "\"time\":{\"limit\":\"0\"}}", "invalid_value", "time.limit");
    refused_with(SET "\"host_memory\":{\"request\":\"25%\"}}", "invalid_value", "a size");
    refused_with(SET "\"mode\":\"fair\"}", "invalid_value", "no member \"mode\"");
    refused_with("{\"request\":\"set\",\"gpu\":0}", "invalid_value", "something to set");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"priority\":1}", "invalid_value",
                 "of a GPU has no member \"priority\"");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"lease\":50}", "invalid_value", "is a text");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"lease\":\"4ms\"}", "invalid_value",
                 "lease: \"4ms\" is not a time from 5ms to 10s");
    refused_with("{\"request\":\"set\",\"gpu\":0,\"client\":1,\"mode\":\"fair\"}", "invalid_value",
                 "only one of them");
    refused_with(SET "\"priority\":1001}", "invalid_value", "from 0");
    refused_with(SET "\"user\":1000,\"priority\":1}", "invalid_value", "only one of them");
    refused_with("{\"request\":\"get\"}", "invalid_value", "or \"user\"");
    refused_with("{\"request\":\"get\",\"client\":5,\"priority\":1}", "invalid_value",
                 "no member \"priority\"");
    refused_with("{\"request\":\"get\",\"client\":6}", "not_found", "no attached client 6");
    refused_with("{\"request\":\"get\",\"user\":77}", "not_found", "uid 77");
    refused_with("{\"request\":\"kill\",\"user\":1000}", "invalid_value", "no member \"user\"");
    assert_int_equal(supervisor.setting_count, 0);
    json_t *answer = ask("{\"request\":\"get\",\"user\":1000}");
    assert_int_equal(json_array_size(json_object_get(answer, "clients")), 1);
    json_decref(answer);
#undef SET
}

/* The first byte, with the descriptor that comes along. */
static int receive_fd(int fd, char *byte)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t got = -1;
    for (int i = 0; i < 20000 && got < 0; i++) {
        turn();
        got = recvmsg(fd, &message, 0);
    }
    assert_int_equal(got, 1);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    assert_non_null(header);
    assert_int_equal(header->cmsg_type, SCM_RIGHTS);
    int passed;
    memcpy(&passed, CMSG_DATA(header), sizeof passed);
    return passed;
}

static void a_trace_comes_with_its_memory(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    static const char lines[] = "{\"request\":\"trace\",\"gpu\":0,\"seconds\":2.5}\n"
                                "{\"request\":\"ping\"}\n";
    int memory = memfd_create("trace", MFD_CLOEXEC);
    struct stat sent, came;
    char line[1000];
    assert_int_equal(fstat(memory, &sent), 0);
    int fd = connect_to();
    send_all(fd, lines, sizeof lines - 1);
    for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
        turn();
    assert_int_equal(supervisor.trace.device, 0);
    assert_int_equal(supervisor.trace.milliseconds, 2500);
    refused_with("{\"request\":\"trace\",\"gpu\":0,\"seconds\":1}", "too_many_objects",
                 "being traced for uid");
    trace_ends(memory, 0);
    close(memory);
    int passed = receive_fd(fd, line);
    assert_int_equal(fstat(passed, &came), 0);
    assert_int_equal(came.st_ino, sent.st_ino);
    close(passed);
    char *rest = read_line(fd);
    snprintf(line + 1, sizeof line - 1, "%s", rest);
    free(rest);
    json_t *answer = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(json_string_value(json_object_get(answer, "name")), "Test GPU");
    assert_true(number_of(answer, "seconds") == 2.5);
    assert_string_equal(json_string_value(json_object_get(answer, "trouble")), "the worker ended");
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    assert_string_equal(json_string_value(json_object_get(client, "name")), "a \"b\" \\");
    assert_int_equal(json_integer_value(json_object_get(client, "pid")), 50);
    client = json_array_get(json_object_get(answer, "clients"), 1);
    assert_true(json_is_null(json_object_get(client, "pid")));
    json_decref(answer);
    answer = read_answer(fd); /* what was asked ahead */
    assert_string_equal(json_string_value(json_object_get(answer, "request")), "ping");
    json_decref(answer);
    close(fd);
}

static void a_trace_that_fails_is_refused_in_words(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    int fd = connect_to();
    static const char line[] = "{\"request\":\"trace\",\"gpu\":1,\"seconds\":600}\n";
    send_all(fd, line, sizeof line - 1);
    for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
        turn();
    trace_ends(-1, PROTO_ERROR_DEVICE_NOT_READY);
    json_t *answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "device_not_ready");
    assert_string_equal(json_string_value(json_object_get(answer, "text")), "no trace");
    json_decref(answer);
    close(fd);
    static const char *const bad[] = {
        "{\"request\":\"trace\",\"gpu\":0}",
        "{\"request\":\"trace\",\"seconds\":1}",
        "{\"request\":\"trace\",\"gpu\":-1,\"seconds\":1}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":0.0009}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":600.001}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":\"5\"}",
        "{\"request\":\"trace\",\"gpu\":0,\"seconds\":1e300}",
        "{\"request\":\"ping\",\"seconds\":1}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused_with(bad[i], "invalid_value", "\"");
    assert_null(supervisor.trace.done);
}

static void who_hangs_up_ends_its_trace(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    static const char line[] = "{\"request\":\"trace\",\"gpu\":0,\"seconds\":600}\n";
    for (int half = 0; half < 2; half++) {
        int fd = connect_to();
        send_all(fd, line, sizeof line - 1);
        for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
            turn();
        assert_non_null(supervisor.trace.done);
        if (half)
            shutdown(fd, SHUT_WR);
        else
            close(fd);
        for (int i = 0; i < 20000 && supervisor.trace.done; i++)
            turn();
        assert_int_equal(supervisor.trace.abandoned, half + 1);
        if (half)
            close(fd);
    }
    /* One that is under way when the server ends. */
    int fd = connect_to();
    send_all(fd, line, sizeof line - 1);
    for (int i = 0; i < 20000 && !supervisor.trace.done; i++)
        turn();
    admin_close(&admin);
    assert_int_equal(supervisor.trace.abandoned, 3);
    close(fd);
}

static void what_is_asked_ahead_of_a_trace_is_bounded(void **state)
{
    (void)state;
    if (!become_administrator())
        skip();
    static const char line[] = "{\"request\":\"trace\",\"gpu\":0,\"seconds\":600}\n";
    char *ahead = malloc(2 * ADMIN_LINE_MAX);
    memset(ahead, ' ', 2 * ADMIN_LINE_MAX);
    int fd = connect_to();
    send_all(fd, line, sizeof line - 1);
    send_all(fd, ahead, 2 * ADMIN_LINE_MAX);
    for (int i = 0; i < 200; i++)
        turn();
    assert_non_null(supervisor.trace.done);
    trace_ends(-1, PROTO_ERROR_DEVICE_NOT_READY);
    json_t *answer = read_answer(fd);
    json_decref(answer);
    answer = read_answer(fd);
    assert_string_equal(json_string_value(json_object_get(answer, "error")), "invalid_value");
    json_decref(answer);
    free(ahead);
    close(fd);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_socket_file_is_for_owner_and_group),
        CASE(ping_and_version),
        CASE(several_requests_of_one_connection_are_answered_in_order),
        CASE(a_request_in_single_bytes),
        CASE(malformed_requests_are_refused_in_words),
        CASE(nesting_beyond_any_stack),
        CASE(a_line_at_its_longest),
        CASE(status_says_what_devices_do),
        CASE(clients_show_asked_and_granted),
        CASE(a_worker_that_does_not_answer_is_not_waited_for),
        CASE(a_peer_that_leaves_while_workers_are_asked),
        CASE(an_end_while_workers_are_asked),
        CASE(a_thousand_clients_in_one_answer),
        CASE(kill_is_for_root_and_those_named),
        CASE(reload_is_for_root_and_says_why_not),
        CASE(a_reload_that_waits_is_answered_when_it_is_over),
        CASE(others_may_look_but_not_kill),
        CASE(connections_are_limited),
        CASE(a_peer_that_never_reads_is_not_read_from),
        CASE(a_living_servers_socket_is_not_taken),
        CASE(a_dead_servers_socket_is_replaced_and_a_file_is_not),
        CASE(another_servers_socket_is_left_at_the_end),
        CASE(set_reads_every_limit),
        CASE(set_waits_for_every_worker),
        CASE(set_for_a_user_is_all_or_nothing),
        CASE(a_client_that_leaves_refuses_nothing_to_the_others),
        CASE(a_guarantee_without_room_gives_the_first_ones_back),
        CASE(a_gpus_schedule_is_set_and_shown),
        CASE(numbers_have_no_tail),
        CASE(what_cannot_be_set_is_refused_in_words),
        CASE(a_trace_comes_with_its_memory),
        CASE(a_trace_that_fails_is_refused_in_words),
        CASE(who_hangs_up_ends_its_trace),
        CASE(what_is_asked_ahead_of_a_trace_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
