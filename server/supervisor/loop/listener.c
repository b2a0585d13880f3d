/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/loop/socket_file.h"

/* A thousand clients may start in one second. */
#define BACKLOG 1024
/* Number of connections taken in a row before the loop looks at other descriptors. */
#define BATCH 32
/* Pause when the spare descriptor is gone too, because the whole system is out of files. */
#define REST_MS 100

struct listener {
    uv_poll_t poll;
    uv_timer_t rest;
    unsigned handles;
    int fd, spare;
    bool warned;
    void (*accepted)(void *context, int fd);
    void *context;
    struct socket_file file; /* none if systemd made the socket */
};

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void listener_ready(uv_poll_t *poll, int status, int events);

static void rest_over(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    if (listener->spare < 0)
        listener->spare = open_spare();
    uv_poll_start(&listener->poll, UV_READABLE, listener_ready);
}

/* Uses the spare descriptor to accept the connection and close it, so that its client learns at
 * once. */
static void connection_shed(struct listener *listener, int error)
{
    if (!listener->warned)
        log_error(MESSAGE_TEXT(log_connections_shed), strerror(error));
    listener->warned = true;
    if (listener->spare >= 0)
        close(listener->spare);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    listener->spare = open_spare();
    if (fd < 0 || listener->spare < 0) {
        uv_poll_stop(&listener->poll);
        uv_timer_start(&listener->rest, rest_over, REST_MS, 0);
    }
}

static void listener_ready(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    (void)status;
    (void)events;
    for (unsigned i = 0; i < BATCH; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && is_shortage(errno))
            connection_shed(listener, errno);
        if (fd < 0)
            return;
        listener->warned = false;
        listener->accepted(listener->context, fd);
        if (uv_is_closing((uv_handle_t *)&listener->poll))
            return;
    }
}

static uint32_t listener_fail(int error, const char *path, struct error *why)
{
    uint32_t number = error_from_errno(error);
    const char *reason = strerror(error);
    if (error == EADDRINUSE)
        return error_set(why, number, MESSAGE_TEXT(socket_taken), path);
    if (error == EACCES || error == ENOENT)
        return error_set(why, number, MESSAGE_TEXT(socket_folder), path, reason);
    return error_set(why, number, MESSAGE_TEXT(socket_make), path, reason);
}

static void make_folder(const char *path)
{
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    if (strlen(path) >= sizeof folder)
        return;
    strcpy(folder, path);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = 0;
        mkdir(folder, 0755); /* if this fails, bind reports the reason */
    }
}

static uint32_t socket_make(struct listener *listener, const char *path, struct error *why)
{
    make_folder(path);
    listener->fd = socket_file_bind(&listener->file, SOCK_SEQPACKET, path);
    if (listener->fd < 0)
        return listener_fail(-listener->fd, path, why);
    /* Any user may be a client; the server decides by its identity what it gets. */
    if (chmod(path, 0666) < 0 || listen(listener->fd, BACKLOG) < 0)
        return listener_fail(errno, path, why);
    return 0;
}

uint32_t listener_open(struct listener **out, uv_loop_t *loop,
                       const struct listener_options *options, struct error *why)
{
    const char *path = options->path;
    const int fd = options->fd;
    *out = NULL;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return listener_fail(ENOMEM, path, why);
    listener->fd = fd;
    listener->accepted = options->accepted;
    listener->context = options->context;
    listener->spare = open_spare();
    uint32_t error = 0;
    if (fd < 0)
        error = socket_make(listener, path, why);
    else if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        error =
            error_set(why, error_from_errno(errno), MESSAGE_TEXT(socket_passed), strerror(errno));
    int polled = error ? 0 : uv_poll_init(loop, &listener->poll, listener->fd);
    if (polled < 0)
        error = listener_fail(-polled, path, why);
    if (error) {
        socket_file_remove(&listener->file);
        if (listener->fd >= 0)
            close(listener->fd);
        if (listener->spare >= 0)
            close(listener->spare);
        free(listener);
        return error;
    }
    uv_timer_init(loop, &listener->rest);
    listener->poll.data = listener->rest.data = listener;
    listener->handles = 2;
    uv_poll_start(&listener->poll, UV_READABLE, listener_ready);
    *out = listener;
    return 0;
}

static void handle_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    if (--listener->handles == 0)
        free(listener);
}

void listener_close(struct listener **pointer)
{
    struct listener *listener = *pointer;
    *pointer = NULL;
    if (!listener)
        return;
    socket_file_remove(&listener->file);
    uv_close((uv_handle_t *)&listener->poll, handle_closed);
    uv_close((uv_handle_t *)&listener->rest, handle_closed);
    close(listener->fd);
    if (listener->spare >= 0)
        close(listener->spare);
}
