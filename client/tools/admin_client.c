/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/admin_client.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/id_name.h"
#include "common/messages.h"

/* Another program that listens at the path could send without end. */
#define ANSWER_MAX ((size_t)64 << 20)

/* The error where no server was reached. */
#define FAILED "connection_failed"

json_t *admin_client_error(const char *error, const char *format, ...)
{
    char text[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_t *json = json_pack("{s:i, s:b, s:s, s:s}", "schema_version", ADMIN_CLIENT_SCHEMA_VERSION,
                             "ok", 0, "error", error, "text", text);
    /* jansson takes UTF-8 only, and a path may be something else. */
    return json ? json
                : json_pack("{s:i, s:b, s:s, s:s}", "schema_version", ADMIN_CLIENT_SCHEMA_VERSION,
                            "ok", 0, "error", error, "text", MESSAGE_TEXT(ctl_unreachable));
}

const char *admin_client_default_path(const char *clients, const char *runtime, char *path,
                                      size_t size)
{
    const char *slash = clients ? strrchr(clients, '/') : NULL;
    if (slash) {
        snprintf(path, size, "%.*s/admin.sock", (int)(slash - clients), clients);
        return path;
    }
    if (runtime && *runtime == '/') {
        int length = snprintf(path, size, "%s/gpushare/admin.sock", runtime);
        if (length > 0 && (size_t)length < size && access(path, F_OK) == 0)
            return path;
    }
    snprintf(path, size, "/run/gpushare/admin.sock");
    return path;
}

/* Names the group that may use the socket. Where the system has no group gpushare, the socket has
 * the server's group. */
static json_t *refuse_access(const char *path, const char *reason)
{
    struct stat socket_file;
    char number[16];
    if (stat(path, &socket_file) < 0)
        return admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_folder), path, reason);
    snprintf(number, sizeof number, "%u", (unsigned)socket_file.st_gid);
    char *name = id_name_of(ID_NAME_GROUP, socket_file.st_gid);
    json_t *refusal = name && strcmp(name, "gpushare") == 0
                          ? admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_group), path, reason)
                          : admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_other_group), path,
                                               reason, name ? name : number);
    free(name);
    return refusal;
}

static json_t *refuse_connection(int error, const char *path)
{
    const char *reason = strerror(error);
    switch (error) {
    case ENOENT:
        return admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_missing), path, reason);
    case ECONNREFUSED:
        return admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_abandoned), path, reason);
    case EACCES:
    case EPERM:
        return refuse_access(path, reason);
    case ENOTSOCK:
    case EPROTOTYPE:
        return admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_kind), path, reason);
    default:
        return admin_client_error(FAILED, MESSAGE_TEXT(ctl_socket_unreachable), path, reason);
    }
}

/* A server that accepts no connections any more has a queue that is full, in which connect() would
 * wait for ever. */
static void limit_sending(int fd, int64_t milliseconds)
{
    struct timeval limit = {.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static int64_t limit_of(const struct admin_client_wait *wait)
{
    int64_t milliseconds = ADMIN_CLIENT_SECONDS * 1000 + (int64_t)(wait->seconds * 1e3);
    return max(milliseconds, INT64_C(1));
}

__attribute__((nonnull)) static int
connect_to(const char *path, const struct admin_client_wait *wait, json_t **problem)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int error = ENAMETOOLONG;
    int fd = -1;
    if (strlen(path) < sizeof address.sun_path) {
        strcpy(address.sun_path, path);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
            limit_sending(fd, limit_of(wait));
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        error = errno;
    }
    *problem = refuse_connection(error, path);
    if (fd >= 0)
        close(fd);
    return -1;
}

static int send_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -errno;
        text += sent;
        length -= (size_t)sent;
    }
    return 0;
}

static int64_t now_ms(void)
{
    return (int64_t)(clock_now() / UNITS_MS);
}

/* As recv(). A descriptor that comes with the bytes is stored in *passed. If there is a second
 * one, it is closed. */
static ssize_t receive_bytes(int fd, void *bytes, size_t length, int *passed)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN(sizeof(int)))
        return got;
    int came;
    memcpy(&came, CMSG_DATA(header), sizeof came);
    if (*passed < 0)
        *passed = came;
    else
        close(came);
    return got;
}

/* Waits until the server sends something. Returns 0 or a negative errno. Once *enough is readable,
 * the server is told to come to an end, the deadline *end is brought nearer, and *enough becomes
 * -1: it is not polled again. */
static int await_answer(int fd, int64_t *end, int *enough)
{
    for (;;) {
        int64_t left = *end - now_ms();
        struct pollfd waits[] = {{.fd = fd, .events = POLLIN}, {.fd = *enough, .events = POLLIN}};
        int ready = poll(waits, 2, left > 0 ? (int)left : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return ready < 0 ? -errno : -ETIMEDOUT;
        if (waits[0].revents)
            return 0;
        shutdown(fd, SHUT_WR);
        *enough = -1;
        if (*end > now_ms() + ADMIN_CLIENT_SECONDS * 1000)
            *end = now_ms() + ADMIN_CLIENT_SECONDS * 1000;
    }
}

/* Reads one line into *line (malloc'ed, without the newline). 0 or a negative errno. */
static int read_line(int fd, struct admin_client_wait *wait, char **line, size_t *length)
{
    int64_t end = now_ms() + limit_of(wait);
    size_t used = 0, room = 0;
    int enough = wait->enough;
    *line = NULL;
    for (;;) {
        if (used == room &&
            (room >= ANSWER_MAX || array_reserve(*line, room, max(used + 1, (size_t)65536)) < 0))
            return -ENOMEM;
        int result = await_answer(fd, &end, &enough);
        if (result < 0)
            return result;
        ssize_t got = receive_bytes(fd, *line + used, room - used, &wait->fd);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ECONNRESET;
        char *newline = memchr(*line + used, '\n', (size_t)got);
        used += (size_t)got;
        if (newline) {
            *length = (size_t)(newline - *line);
            return 0;
        }
    }
}

static json_t *exchange_lines(int fd, const char *path, json_t *request,
                              struct admin_client_wait *wait)
{
    char *line = NULL;
    size_t length = 0;
    char *asked = json_dumps(request, JSON_COMPACT);
    if (!asked)
        return NULL;
    int result = send_all(fd, asked, strlen(asked));
    if (result == 0)
        result = send_all(fd, "\n", 1);
    free(asked);
    /* A server that refuses a connection says why and closes it, maybe before it was asked. */
    if (result == 0 || result == -EPIPE) {
        int read = read_line(fd, wait, &line, &length);
        result = read < 0 && result < 0 ? result : read;
    }
    json_t *answer = result == 0 ? json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(line);
    if (answer && json_is_boolean(json_object_get(answer, "ok")))
        return answer;
    json_decref(answer);
    if (result == 0)
        return admin_client_error("connection_lost", MESSAGE_TEXT(ctl_answer_form), path);
    return admin_client_error("connection_lost", MESSAGE_TEXT(ctl_answer_missing), path,
                              strerror(-result));
}

enum admin_outcome admin_client_ask(const char *path, json_t *request, json_t **answer,
                                    struct admin_client_wait *wait)
{
    struct admin_client_wait short_wait = {.enough = -1};
    bool passes = wait != NULL;
    *answer = NULL;
    if (!wait)
        wait = &short_wait;
    wait->fd = -1;
    int fd = connect_to(path, wait, answer);
    if (fd < 0)
        return ADMIN_NO_SERVER;
    *answer = exchange_lines(fd, path, request, wait);
    close(fd);
    if (!passes && wait->fd >= 0)
        close(wait->fd);
    if (json_is_true(json_object_get(*answer, "ok")))
        return ADMIN_OK;
    const char *error = json_string_value(json_object_get(*answer, "error"));
    return error && strcmp(error, "connection_lost") == 0 ? ADMIN_NO_SERVER : ADMIN_FAILED;
}
