/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/listener.h"

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

/* A thousand clients may start in one second. */
#define BACKLOG 1024
/* Connections taken in a row before the loop looks at others again. */
#define BATCH 32
/* The spare descriptor may be gone too (the whole system is out of files): how long to rest then.
 */
#define REST_MS 100

struct listener {
    uv_poll_t poll;
    uv_timer_t rest;
    unsigned handles;
    int fd, spare;
    bool complained;
    void (*accepted)(void *context, int fd);
    void *context;
    dev_t device; /* which file is ours */
    ino_t inode;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* empty: not ours */
};

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void ready(uv_poll_t *poll, int status, int events);

static void rested(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    if (listener->spare < 0)
        listener->spare = open_spare();
    uv_poll_start(&listener->poll, UV_READABLE, ready);
}

/* Takes the connection with the spare descriptor and closes it: its client learns at once. */
static void shed(struct listener *listener, int error)
{
    if (!listener->complained)
        log_error("connections are turned away: %s; raise the limit of file descriptors "
                  "(LimitNOFILE)",
                  strerror(error));
    listener->complained = true;
    if (listener->spare >= 0)
        close(listener->spare);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0)
        close(fd);
    listener->spare = open_spare();
    if (fd < 0 || listener->spare < 0) {
        uv_poll_stop(&listener->poll);
        uv_timer_start(&listener->rest, rested, REST_MS, 0);
    }
}

static void ready(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    (void)status;
    (void)events;
    for (unsigned i = 0; i < BATCH; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && shortage(errno))
            shed(listener, errno);
        if (fd < 0)
            return;
        listener->complained = false;
        listener->accepted(listener->context, fd);
        if (uv_is_closing((uv_handle_t *)&listener->poll))
            return;
    }
}

static int fail(int error, const char *path, char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "the clients' socket %s could not be made: %s%s", path,
             strerror(error),
             error == EADDRINUSE ? " (another server listens there, or it is no socket)" : "");
    return -error;
}

/* Nobody listens on a socket file that a killed server left. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) < 0 || !S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool stale =
        connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED;
    close(fd);
    return stale;
}

static void make_folder(const char *path)
{
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = 0;
        mkdir(folder, 0755); /* bind says what is wrong if this was in vain */
    }
}

static int make(struct listener *listener, const char *path, char *why, size_t why_bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return fail(ENAMETOOLONG, path, why, why_bytes);
    strcpy(address.sun_path, path);
    listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0)
        return fail(errno, path, why, why_bytes);
    make_folder(path);
    if (is_stale(&address))
        unlink(path);
    if (bind(listener->fd, (const struct sockaddr *)&address, sizeof address) < 0)
        return fail(errno, path, why, why_bytes);
    /* Any user may be a client; what each gets is decided by who it is. */
    if (chmod(path, 0666) < 0 || stat(path, &status) < 0 || listen(listener->fd, BACKLOG) < 0) {
        int saved = errno;
        unlink(path);
        return fail(saved, path, why, why_bytes);
    }
    strcpy(listener->path, path);
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
    return 0;
}

static void remove_file(struct listener *listener)
{
    struct stat status;
    if (listener->path[0] && lstat(listener->path, &status) == 0 &&
        status.st_dev == listener->device && status.st_ino == listener->inode)
        unlink(listener->path);
    listener->path[0] = 0;
}

int listener_open(struct listener **out, uv_loop_t *loop, const char *path, int fd,
                  void (*accepted)(void *context, int fd), void *context, char *why,
                  size_t why_bytes)
{
    *out = NULL;
    struct listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        return fail(ENOMEM, path, why, why_bytes);
    listener->fd = fd;
    listener->accepted = accepted;
    listener->context = context;
    listener->spare = open_spare();
    int result = 0;
    if (fd < 0)
        result = make(listener, path, why, why_bytes);
    else if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
        result = fail(errno, "that was passed", why, why_bytes);
    if (result == 0 && (result = uv_poll_init(loop, &listener->poll, listener->fd)) < 0)
        fail(-result, path, why, why_bytes);
    if (result < 0) {
        remove_file(listener);
        if (listener->fd >= 0)
            close(listener->fd);
        if (listener->spare >= 0)
            close(listener->spare);
        free(listener);
        return result;
    }
    uv_timer_init(loop, &listener->rest);
    listener->poll.data = listener->rest.data = listener;
    listener->handles = 2;
    uv_poll_start(&listener->poll, UV_READABLE, ready);
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
    remove_file(listener);
    uv_close((uv_handle_t *)&listener->poll, handle_closed);
    uv_close((uv_handle_t *)&listener->rest, handle_closed);
    close(listener->fd);
    if (listener->spare >= 0)
        close(listener->spare);
}
