/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "server/supervisor/admin_answer.h"
#include "server/supervisor/admin_request.h"
#include "server/supervisor/admin_socket.h"
#include "server/supervisor/settings.h"
#include "server/supervisor/supervisor.h"

/* A peer that neither asks nor reads gives its place up after this. */
#define IDLE_MS 60000
/* A worker that does not say what its clients used must not keep an administrator from seeing it.
 */
#define USAGE_MS 1000
/* Making a partition is slow while the device is busy. */
#define SET_MS  10000
#define BACKLOG 64
/* The kernel shows every uid that is not mapped in our user namespace as this one. */
#define UID_NOBODY 65534u

struct connection;

struct admin {
    uv_pipe_t listener;
    struct supervisor *supervisor;
    const struct settings *settings;
    struct admin_socket socket;
    struct connection *first;
    unsigned connections;
    unsigned alive;        /* the listener, connections and gatherings that have not ended */
    uv_pipe_t turned_away; /* takes a connection for which there is no memory */
    bool turning_away;     /* that handle is open */
    bool turned_away_one;
    bool closing;
};

/* Usage of all clients, asked of the workers for one answer. Outlives its connection: the
 * supervisor calls back once for each client, whatever happens. */
struct gathering {
    struct admin *admin;
    struct connection *connection; /* NULL once answered, or when the connection ended */
    struct admin_usages usages;
    size_t room;
    size_t outstanding;
};

/* Limits being changed for one request. Outlives its connection, as a gathering does. */
struct setting {
    struct admin *admin;
    struct connection *connection; /* NULL once answered, or when the connection ended */
    struct admin_request request;
    uint32_t *clients;
    size_t count, outstanding;
    uint32_t error; /* of the first client that could not be changed */
    char text[400];
};

struct connection {
    uv_pipe_t pipe;
    uv_timer_t timer; /* idle, or the gathering's */
    uv_write_t write;
    struct admin *admin;
    struct connection *next, *previous;
    struct gathering *gathering;
    struct setting *setting;
    enum admin_kind kind; /* of the gathering */
    char *answer;         /* being written */
    char *input;          /* ADMIN_LINE_MAX bytes */
    size_t used;
    uid_t uid;
    pid_t pid;
    unsigned handles;
    bool reading;
    bool last;    /* close once the answer is out */
    bool closing; /* uv_close was called */
};

static void serve(struct connection *connection);

/* ---- ends ---- */

static void release(struct admin *admin)
{
    if (--admin->alive == 0)
        free(admin);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    if (--connection->handles)
        return;
    struct admin *admin = connection->admin;
    free(connection->answer);
    free(connection->input);
    free(connection);
    release(admin);
}

static void connection_close(struct connection *connection)
{
    struct admin *admin = connection->admin;
    if (connection->closing)
        return;
    connection->closing = true;
    if (connection->gathering)
        connection->gathering->connection = NULL;
    connection->gathering = NULL;
    if (connection->setting)
        connection->setting->connection = NULL;
    connection->setting = NULL;
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        admin->first = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    admin->connections--;
    uv_close((uv_handle_t *)&connection->pipe, on_handle_closed);
    uv_close((uv_handle_t *)&connection->timer, on_handle_closed);
}

static void on_idle(uv_timer_t *timer)
{
    connection_close(timer->data);
}

/* ---- answers ---- */

static void on_written(uv_write_t *write, int status)
{
    struct connection *connection = write->data;
    free(connection->answer);
    connection->answer = NULL;
    if (connection->closing)
        return;
    if (status < 0 || connection->last) {
        connection_close(connection);
        return;
    }
    serve(connection);
}

static void answer(struct connection *connection, json_t *json)
{
    /* Where memory is short the connection ends: half an answer would be worse than none. */
    char *line = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (!line) {
        connection_close(connection);
        return;
    }
    size_t length = strlen(line);
    line[length] = '\n'; /* in place of the NUL: the length goes with it */
    connection->answer = line;
    connection->write.data = connection;
    uv_buf_t buffer = uv_buf_init(line, (unsigned)(length + 1));
    uv_timer_start(&connection->timer, on_idle, IDLE_MS, 0);
    if (uv_write(&connection->write, (uv_stream_t *)&connection->pipe, &buffer, 1, on_written) < 0)
        connection_close(connection);
}

static void refuse(struct connection *connection, uint32_t error, const char *text)
{
    answer(connection, admin_answer_refusal(error, text));
}

/* ---- usage of all clients ---- */

static void gathering_release(struct gathering *gathering)
{
    struct admin *admin = gathering->admin;
    if (gathering->outstanding || gathering->connection)
        return;
    free(gathering->usages.rows);
    free(gathering);
    release(admin);
}

/* Answers with what is known by now. */
static void gathering_answer(struct gathering *gathering)
{
    struct connection *connection = gathering->connection;
    const struct supervisor *supervisor = gathering->admin->supervisor;
    gathering->connection = NULL;
    connection->gathering = NULL;
    answer(connection, connection->kind == ADMIN_STATUS
                           ? admin_answer_status(supervisor, &gathering->usages)
                           : admin_answer_clients(supervisor, &gathering->usages));
    gathering_release(gathering);
}

static void on_usage(void *context, uint32_t client, const struct proto_worker_usage *usage)
{
    struct gathering *gathering = context;
    struct admin_usage *row = admin_usages_find(&gathering->usages, client);
    if (row && usage) {
        row->usage = *usage;
        row->known = true;
    }
    gathering->outstanding--;
    if (gathering->connection && gathering->outstanding == 0)
        gathering_answer(gathering);
    else
        gathering_release(gathering);
}

static void on_usage_late(uv_timer_t *timer)
{
    struct connection *connection = timer->data;
    if (connection->gathering)
        gathering_answer(connection->gathering);
}

static bool collect_client(void *context, const struct supervisor_client_view *view)
{
    struct gathering *gathering = context;
    if (view->attached)
        gathering->usages.rows[gathering->usages.count++].client = view->number;
    return gathering->usages.count < gathering->room;
}

static void gather(struct connection *connection, enum admin_kind kind)
{
    struct admin *admin = connection->admin;
    struct supervisor_totals totals;
    supervisor_totals(admin->supervisor, &totals);
    struct gathering *gathering = calloc(1, sizeof *gathering);
    struct admin_usage *rows = calloc((size_t)totals.clients + 1, sizeof *rows);
    if (!gathering || !rows) {
        free(gathering);
        free(rows);
        refuse(connection, PROTO_ERROR_SERVER_RESOURCES, "the server is short of memory");
        return;
    }
    *gathering = (struct gathering){.admin = admin,
                                    .connection = connection,
                                    .usages = {.rows = rows},
                                    .room = (size_t)totals.clients + 1};
    admin->alive++;
    connection->gathering = gathering;
    connection->kind = kind;
    /* First the list, then the questions: a row must stand before its answer can come. */
    supervisor_each_client(admin->supervisor, collect_client, gathering);
    for (size_t i = 0; i < gathering->usages.count; i++)
        if (supervisor_usage(admin->supervisor, rows[i].client, on_usage, gathering) == 0)
            gathering->outstanding++;
    if (gathering->outstanding == 0)
        gathering_answer(gathering);
    else
        uv_timer_start(&connection->timer, on_usage_late, USAGE_MS, 0);
}

/* ---- limits ---- */

static void setting_release(struct setting *setting)
{
    struct admin *admin = setting->admin;
    if (setting->outstanding || setting->connection)
        return;
    free(setting->clients);
    free(setting);
    release(admin);
}

static void setting_answer(struct setting *setting)
{
    struct connection *connection = setting->connection;
    setting->connection = NULL;
    connection->setting = NULL;
    if (setting->error)
        refuse(connection, setting->error, setting->text);
    else
        answer(connection, admin_answer_limits(setting->admin->supervisor, &setting->request));
    setting_release(setting);
}

static void on_set(void *context, uint32_t client, uint32_t error, const char *text)
{
    struct setting *setting = context;
    if (error && !setting->error) {
        setting->error = error;
        snprintf(setting->text, sizeof setting->text, "client %u: %.380s", client, text);
    }
    setting->outstanding--;
    if (setting->connection && setting->outstanding == 0)
        setting_answer(setting);
    else
        setting_release(setting);
}

static void on_set_late(uv_timer_t *timer)
{
    struct connection *connection = timer->data;
    struct setting *setting = connection->setting;
    if (!setting)
        return;
    if (!setting->error)
        snprintf(setting->text, sizeof setting->text,
                 "a worker has not answered for %d s: it may still carry the change out",
                 SET_MS / 1000);
    setting->error = setting->error ? setting->error : PROTO_ERROR_DEVICE_NOT_READY;
    setting_answer(setting);
}

static bool collect_concerned(void *context, const struct supervisor_client_view *view)
{
    struct setting *setting = context;
    if (admin_request_concerns(&setting->request, view))
        setting->clients[setting->count++] = view->number;
    return true;
}

static struct setting *setting_new(struct connection *connection,
                                   const struct admin_request *request)
{
    struct supervisor_totals totals;
    struct admin *admin = connection->admin;
    supervisor_totals(admin->supervisor, &totals);
    struct setting *setting = calloc(1, sizeof *setting);
    uint32_t *clients = calloc((size_t)totals.clients + 1, sizeof *clients);
    if (!setting || !clients) {
        free(setting);
        free(clients);
        return NULL;
    }
    *setting = (struct setting){
        .admin = admin, .connection = connection, .request = *request, .clients = clients};
    admin->alive++;
    connection->setting = setting;
    supervisor_each_client(admin->supervisor, collect_concerned, setting);
    return setting;
}

/* Nobody's limits change unless everybody's may. */
static void check_all(struct setting *setting)
{
    for (size_t i = 0; i < setting->count && !setting->error; i++)
        setting->error =
            supervisor_check(setting->admin->supervisor, setting->clients[i],
                             &setting->request.change, setting->text, sizeof setting->text);
    if (setting->count)
        return;
    setting->error = PROTO_ERROR_NOT_FOUND;
    snprintf(setting->text, sizeof setting->text, "%s %u: \"clients\" shows those there are",
             setting->request.by_user ? "no client is attached of uid"
                                      : "there is no attached client",
             setting->request.client);
}

static void set_all(struct setting *setting, const char *by)
{
    struct supervisor *supervisor = setting->admin->supervisor;
    for (size_t i = 0; i < setting->count; i++) {
        int result = supervisor_set(supervisor, setting->clients[i], &setting->request.change, by,
                                    on_set, setting);
        setting->outstanding += result == 0;
        if (result < 0 && !setting->error) {
            setting->error = PROTO_ERROR_SERVER_RESOURCES;
            snprintf(setting->text, sizeof setting->text, "client %u could not be changed: %s",
                     setting->clients[i], strerror(-result));
        }
    }
}

static void limits(struct connection *connection, const struct admin_request *request)
{
    struct setting *setting = setting_new(connection, request);
    if (!setting) {
        refuse(connection, PROTO_ERROR_SERVER_RESOURCES, "the server is short of memory");
        return;
    }
    char by[48];
    snprintf(by, sizeof by, "uid %u (pid %d)", (unsigned)connection->uid, (int)connection->pid);
    check_all(setting);
    if (!setting->error && request->kind == ADMIN_SET)
        set_all(setting, by);
    if (setting->outstanding)
        uv_timer_start(&connection->timer, on_set_late, SET_MS, 0);
    else
        setting_answer(setting);
}

/* ---- requests ---- */

static bool may_change(const struct connection *connection)
{
    const struct settings *settings = connection->admin->settings;
    if (connection->uid == UID_NOBODY)
        return false;
    if (connection->uid == 0)
        return true;
    for (unsigned i = 0; i < settings->admin_count; i++)
        if (settings->admins[i] == connection->uid)
            return true;
    return false;
}

static void refuse_change(struct connection *connection)
{
    char text[200];
    if (connection->uid == UID_NOBODY)
        snprintf(text, sizeof text,
                 "uid %u stands for every user without a name here and may only look: ask root",
                 UID_NOBODY);
    else
        snprintf(text, sizeof text,
                 "uid %u may look but not change anything: ask root, or start gpushared with "
                 "--admin-uid %u",
                 (unsigned)connection->uid, (unsigned)connection->uid);
    refuse(connection, PROTO_ERROR_NOT_PERMITTED, text);
}

static void kill_client(struct connection *connection, uint32_t client)
{
    char text[160];
    snprintf(text, sizeof text, "uid %u (pid %d)", (unsigned)connection->uid, (int)connection->pid);
    int result = supervisor_kill(connection->admin->supervisor, client, text);
    if (result == 0) {
        answer(connection, admin_answer_kill(client));
        return;
    }
    snprintf(text, sizeof text, "there is no client %u: \"clients\" shows those there are", client);
    refuse(connection, PROTO_ERROR_NOT_FOUND, text);
}

static void reload(struct connection *connection)
{
    struct supervisor_config_view view;
    char reason[700], text[800];
    int result = supervisor_reload(connection->admin->supervisor, reason, sizeof reason);
    log_notice("admin: reload asked for by uid %u (pid %d): %s", (unsigned)connection->uid,
               (int)connection->pid, result < 0 ? reason : "done");
    if (result < 0) {
        snprintf(text, sizeof text, "the configuration stays as it was: %s", reason);
        refuse(connection, PROTO_ERROR_INVALID_VALUE, text);
        return;
    }
    supervisor_config_view(connection->admin->supervisor, &view);
    answer(connection, admin_answer_reload(&view));
}

static void carry_out(struct connection *connection, const struct admin_request *request)
{
    if (admin_kind_changes(request->kind) && !may_change(connection)) {
        log_warning("admin: uid %u (pid %d) asked for \"%s\" and was refused",
                    (unsigned)connection->uid, (int)connection->pid,
                    admin_kind_name(request->kind));
        refuse_change(connection);
        return;
    }
    switch (request->kind) {
    case ADMIN_PING:
        answer(connection, admin_answer_ping());
        break;
    case ADMIN_VERSION:
        answer(connection, admin_answer_version());
        break;
    case ADMIN_STATUS:
    case ADMIN_CLIENTS:
        gather(connection, request->kind);
        break;
    case ADMIN_GET:
    case ADMIN_SET:
        limits(connection, request);
        break;
    case ADMIN_KILL:
        kill_client(connection, request->client);
        break;
    case ADMIN_RELOAD:
        reload(connection);
        break;
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct connection *connection = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(connection->input + connection->used,
                          (unsigned)(ADMIN_LINE_MAX - connection->used));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct connection *connection = stream->data;
    (void)buffer;
    if (count < 0) {
        connection_close(connection);
        return;
    }
    connection->used += (size_t)count;
    serve(connection);
}

/* Carries out the first line that stands in the input, or reads on. */
static void serve(struct connection *connection)
{
    uv_stream_t *stream = (uv_stream_t *)&connection->pipe;
    char *end = memchr(connection->input, '\n', connection->used);
    if (!end && connection->used < ADMIN_LINE_MAX) {
        uv_timer_start(&connection->timer, on_idle, IDLE_MS, 0);
        if (!connection->reading && uv_read_start(stream, on_alloc, on_read) < 0)
            connection_close(connection);
        connection->reading = true;
        return;
    }
    uv_read_stop(stream);
    connection->reading = false;
    if (!end) {
        /* Where the next request begins is unknown now. */
        connection->last = true;
        refuse(connection, PROTO_ERROR_INVALID_VALUE,
               "a request may have at most 65536 bytes, its newline included");
        return;
    }
    struct admin_request request;
    char why[300];
    size_t length = (size_t)(end - connection->input);
    int result = admin_request_parse(&request, connection->input, length, why, sizeof why);
    connection->used -= length + 1;
    memmove(connection->input, end + 1, connection->used);
    if (result == 0)
        carry_out(connection, &request);
    else
        refuse(connection,
               result == -ENOTSUP ? PROTO_ERROR_NOT_SUPPORTED : PROTO_ERROR_INVALID_VALUE, why);
}

/* ---- connections ---- */

static bool identify(struct connection *connection)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&connection->pipe, &fd) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return false;
    connection->uid = peer.uid;
    connection->pid = peer.pid;
    return true;
}

static struct connection *connection_new(struct admin *admin)
{
    struct connection *connection = calloc(1, sizeof *connection);
    char *input = malloc(ADMIN_LINE_MAX);
    if (!connection || !input) {
        free(connection);
        free(input);
        return NULL;
    }
    uv_loop_t *loop = admin->listener.loop;
    connection->admin = admin;
    connection->input = input;
    /* Neither can fail on Linux for an initialised loop. */
    uv_pipe_init(loop, &connection->pipe, 0);
    uv_timer_init(loop, &connection->timer);
    connection->pipe.data = connection->timer.data = connection;
    connection->handles = 2;
    connection->next = admin->first;
    if (admin->first)
        admin->first->previous = connection;
    admin->first = connection;
    admin->connections++;
    admin->alive++;
    return connection;
}

static void on_turned_away(uv_handle_t *handle);

/* libuv listens no further until a waiting connection was accepted into something. */
static void turn_away(struct admin *admin)
{
    if (admin->turning_away || admin->closing)
        return;
    uv_pipe_init(admin->listener.loop, &admin->turned_away, 0);
    admin->turned_away.data = admin;
    admin->turning_away = true;
    admin->turned_away_one =
        uv_accept((uv_stream_t *)&admin->listener, (uv_stream_t *)&admin->turned_away) == 0;
    admin->alive++;
    uv_close((uv_handle_t *)&admin->turned_away, on_turned_away);
}

static void on_turned_away(uv_handle_t *handle)
{
    struct admin *admin = handle->data;
    admin->turning_away = false;
    if (admin->turned_away_one) /* another may have come meanwhile */
        turn_away(admin);
    release(admin);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct admin *admin = listener->data;
    if (status < 0)
        return;
    struct connection *connection = connection_new(admin);
    if (!connection) {
        turn_away(admin);
        return;
    }
    if (uv_accept(listener, (uv_stream_t *)&connection->pipe) < 0 || !identify(connection)) {
        connection_close(connection);
        return;
    }
    if (admin->connections > ADMIN_CONNECTIONS_MAX) {
        connection->last = true;
        refuse(connection, PROTO_ERROR_SERVER_RESOURCES,
               "the admin socket has as many connections as it may have: try again later");
        return;
    }
    serve(connection);
}

/* ---- life ---- */

static void on_listener_closed(uv_handle_t *handle)
{
    release(handle->data);
}

int admin_open(struct admin **out, struct supervisor *supervisor, char *why, size_t why_size)
{
    *out = NULL;
    struct admin *admin = calloc(1, sizeof *admin);
    if (!admin) {
        snprintf(why, why_size, "the server is short of memory");
        return -ENOMEM;
    }
    /* libuv writes without MSG_NOSIGNAL: a peer that left would end the server. */
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &ignore, NULL);
    admin->supervisor = supervisor;
    admin->settings = supervisor_settings(supervisor);
    int result = admin_socket_open(&admin->socket, admin->settings->admin_socket,
                                   admin->settings->admin_socket_fd, why, why_size);
    if (result < 0) {
        free(admin);
        return result;
    }
    uv_pipe_init(supervisor_loop(supervisor), &admin->listener, 0);
    admin->listener.data = admin;
    admin->alive = 1;
    result = uv_pipe_open(&admin->listener, admin->socket.fd);
    if (result < 0)
        close(admin->socket.fd);
    else
        result = uv_listen((uv_stream_t *)&admin->listener, BACKLOG, on_connection);
    if (result < 0) {
        snprintf(why, why_size, "cannot listen for administrators: %s", uv_strerror(result));
        admin_close(&admin);
        return result;
    }
    *out = admin;
    return 0;
}

void admin_close(struct admin **out)
{
    struct admin *admin = *out;
    *out = NULL;
    if (!admin || admin->closing)
        return;
    admin->closing = true;
    admin_socket_remove(&admin->socket);
    while (admin->first)
        connection_close(admin->first);
    uv_close((uv_handle_t *)&admin->listener, on_listener_closed);
}
