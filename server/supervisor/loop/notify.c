/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libsystemd has both interfaces, and brings libgcrypt, liblzma, libcap and more
 * into the server for a datagram and three variables. */
#include "server/supervisor/loop/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/messages.h"
#include "common/printable.h"
#include "common/units.h"
#include "common/util.h"
#include "protocol.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START, fixed by the protocol */

/* More would need more names than one string of the environment holds. */
#define PASSED_MAX 65536

/* Of the manager, that takes nothing meanwhile. */
#define WAIT_MAX_NS UNITS_SECOND

/* Tried again so often while something waits: nothing tells when the kernel has again what it
 * lacked. */
#define RETRY_MS 2

/* A message of the watchdog may be lost, and the loop be late, without harm. */
#define FED_WITHIN 4

/* One datagram that waits until the manager has read others. */
struct notify_message {
    struct queue_link link;
    int fd; /* our own duplicate; -1: none */
    char text[96];
};

static void message_free(struct notify *notify, struct notify_message *message)
{
    if (message->fd >= 0) {
        notify->stores--;
        close(message->fd);
    }
    free(message);
}

int notify_open(struct notify *notify, const char *notify_socket)
{
    *notify = NOTIFY_NONE;
    if (!notify_socket || !*notify_socket)
        return 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(notify_socket);
    if ((notify_socket[0] != '/' && notify_socket[0] != '@') || length < 2 ||
        length >= sizeof address.sun_path)
        return -EINVAL;
    memcpy(address.sun_path, notify_socket, length);
    /* An abstract name begins with NUL and is exactly as long as the address's length says. */
    if (notify_socket[0] == '@')
        address.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length +
                                 (notify_socket[0] == '/' ? 1 : 0));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, size) < 0) {
        int saved = errno;
        close(fd);
        return -saved;
    }
    notify->fd = fd;
    return 0;
}

void notify_close(struct notify *notify)
{
    struct notify_message *message;
    while ((message = QUEUE_TAKE(&notify->waiting, struct notify_message, link)))
        message_free(notify, message);
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

/* ---- sending ---- */

static int send_once(const struct notify *notify, const char *text, const int *fd)
{
    struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    ssize_t sent;
    if (fd) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), fd, sizeof(int));
    }
    do
        sent = sendmsg(notify->fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* The manager has to read before there is room, or the kernel lacks something for now. */
static bool may_pass(int result)
{
    return result == -EAGAIN || result == -ENOBUFS || result == -ETOOMANYREFS;
}

/* Notes that the socket takes nothing, since when, and why. */
static void note_full(struct notify *notify, int result)
{
    if (!notify->full_since)
        notify->full_since = clock_now();
    notify->full = result;
}

static void flush(struct notify *notify)
{
    struct notify_message *message;
    while ((message = QUEUE_FIRST(&notify->waiting, struct notify_message, link))) {
        int result = send_once(notify, message->text, message->fd >= 0 ? &message->fd : NULL);
        if (may_pass(result)) {
            note_full(notify, result);
            return;
        }
        if (result < 0 && message->fd >= 0)
            notify->failed = result;
        notify->full_since = 0;
        queue_take(&notify->waiting);
        message_free(notify, message);
    }
}

static void timer_ended(uv_timer_t *timer)
{
    struct notify *notify = timer->data;
    flush(notify);
    if (queue_is_empty(&notify->waiting))
        uv_timer_stop(timer);
}

static int message_queue(struct notify *notify, const char *text, const int *fd)
{
    struct notify_message *message = malloc(sizeof *message);
    if (!message)
        return -ENOMEM;
    message->fd = fd ? fcntl(*fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (fd && message->fd < 0) {
        int saved = errno;
        free(message);
        return -saved;
    }
    snprintf(message->text, sizeof message->text, "%s", text);
    notify->stores += fd != NULL;
    queue_append(&notify->waiting, &message->link);
    if (notify->timer.data)
        uv_timer_start(&notify->timer, timer_ended, RETRY_MS, RETRY_MS);
    return 0;
}

/* In order: a name that is dropped may be stored again. */
static int message_send(struct notify *notify, const char *text, const int *fd)
{
    flush(notify);
    if (queue_is_empty(&notify->waiting)) {
        int result = send_once(notify, text, fd);
        if (!may_pass(result)) {
            notify->full_since = 0;
            return result;
        }
        note_full(notify, result);
    }
    return message_queue(notify, text, fd);
}

void notify_watch(struct notify *notify, uv_loop_t *loop)
{
    uv_timer_init(loop, &notify->timer);
    uv_unref((uv_handle_t *)&notify->timer);
    notify->timer.data = notify;
    if (!queue_is_empty(&notify->waiting))
        uv_timer_start(&notify->timer, timer_ended, RETRY_MS, RETRY_MS);
}

uint32_t notify_read_watchdog(const char *usec, const char *pid, pid_t self, uint64_t *limit_us,
                              struct error *why)
{
    uint64_t process, limit;
    *limit_us = 0;
    if (!usec)
        return 0;
    if (pid && units_parse_number(pid, strlen(pid), INT32_MAX, &process) != 0)
        return error_set(why, MESSAGE(watchdog_pid), pid);
    if (pid && process != (uint64_t)self)
        return 0;
    if (units_parse_number(usec, strlen(usec), INT64_MAX, &limit) != 0 || !limit)
        return error_set(why, MESSAGE(watchdog_time), usec);
    *limit_us = limit;
    return 0;
}

/* While the manager reads nothing, it is not fed either: what waits would only become more. */
static void watchdog_fed(uv_timer_t *timer)
{
    struct notify *notify = timer->data;
    flush(notify);
    if (queue_is_empty(&notify->waiting))
        send_once(notify, "WATCHDOG=1", NULL);
}

void notify_feed(struct notify *notify, uv_loop_t *loop, uint64_t limit_us)
{
    if (notify->fd < 0 || !limit_us)
        return;
    uint64_t period_ms = max(limit_us / FED_WITHIN / 1000, UINT64_C(1));
    uv_timer_init(loop, &notify->watchdog);
    uv_unref((uv_handle_t *)&notify->watchdog);
    notify->watchdog.data = notify;
    uv_timer_start(&notify->watchdog, watchdog_fed, 0, period_ms);
}

void notify_unwatch(struct notify *notify)
{
    if (notify->watchdog.data)
        uv_close((uv_handle_t *)&notify->watchdog, NULL);
    notify->watchdog.data = NULL;
    if (notify->timer.data)
        uv_close((uv_handle_t *)&notify->timer, NULL);
    notify->timer.data = NULL;
}

int notify_ready(struct notify *notify)
{
    return notify->fd < 0 ? 0 : message_send(notify, "READY=1", NULL);
}

int notify_stopping(struct notify *notify)
{
    return notify->fd < 0 ? 0 : message_send(notify, "STOPPING=1", NULL);
}

int notify_status(struct notify *notify, const char *text)
{
    static const char prefix[] = "STATUS=";
    char state[sizeof prefix + 400];
    if (notify->fd < 0)
        return 0;
    snprintf(state, sizeof state, "%s%s", prefix, text);
    /* A line break would begin another assignment of the protocol. */
    printable_replace(state);
    flush(notify);
    return queue_is_empty(&notify->waiting) ? send_once(notify, state, NULL) : -EAGAIN;
}

/* ---- descriptors that are kept ---- */

static int send_name(struct notify *notify, const char *form, const char *name, const int *fd)
{
    char state[96];
    if (notify->fd < 0)
        return -ENOTCONN;
    snprintf(state, sizeof state, form, name);
    return message_send(notify, state, fd);
}

int notify_store(struct notify *notify, const char *name, int fd)
{
    return send_name(notify, "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name, &fd);
}

int notify_unstore(struct notify *notify, const char *name)
{
    return send_name(notify, "FDSTOREREMOVE=1\nFDNAME=%s", name, NULL);
}

int notify_stored(struct notify *notify)
{
    flush(notify);
    if (notify->failed)
        return notify->failed;
    if (!notify->stores)
        return 0;
    return clock_now() - notify->full_since < WAIT_MAX_NS ? STORE_WAITS : notify->full;
}

void notify_forget_stores(struct notify *notify)
{
    struct queue kept = {0};
    struct notify_message *message;
    while ((message = QUEUE_TAKE(&notify->waiting, struct notify_message, link))) {
        if (message->fd < 0)
            queue_append(&kept, &message->link);
        else
            message_free(notify, message);
    }
    notify->waiting = kept;
    notify->failed = 0;
}

void notify_drain(struct notify *notify)
{
    const uint64_t until = clock_now() + WAIT_MAX_NS;
    for (flush(notify); !queue_is_empty(&notify->waiting) && clock_now() < until; flush(notify))
        usleep(RETRY_MS * 1000);
}

/* ---- sockets that were passed ---- */

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

/* Takes the next name off a list with colons between them. Returns false if there is none. */
static bool name_take(const char **names, char name[32])
{
    if (!*names)
        return false;
    size_t length = strcspn(*names, ":");
    const char *end = *names + length;
    if (length >= 32)
        length = 31;
    memcpy(name, *names, length);
    name[length] = '\0';
    *names = *end ? end + 1 : NULL;
    return true;
}

static bool kept_take(struct notify_sockets *sockets, const char *name, int fd)
{
    struct notify_kept *kept = &sockets->kept[sockets->kept_count];
    size_t length = name ? strlen(name) : 0;
    if (!length || !strchr(name, '.') || length >= sizeof kept->name)
        return false;
    memcpy(kept->name, name, length + 1);
    kept->fd = fd;
    sockets->kept_count++;
    return true;
}

static uint32_t socket_place(struct notify_sockets *sockets, int fd, const char *name,
                             struct error *why)
{
    int type = option_of(fd, SO_TYPE);
    if (type < 0)
        return error_set(why, MESSAGE(listen_not_socket), fd);
    if (!name)
        name = type == SOCK_SEQPACKET ? "client" : type == SOCK_STREAM ? "admin" : "";
    bool is_client = strcmp(name, "client") == 0;
    if (!is_client && strcmp(name, "admin") != 0)
        return error_set(why, MESSAGE(listen_name), name);
    int wanted = is_client ? SOCK_SEQPACKET : SOCK_STREAM;
    if (option_of(fd, SO_DOMAIN) != AF_UNIX || type != wanted || option_of(fd, SO_ACCEPTCONN) != 1)
        return is_client ? error_set(why, MESSAGE(listen_type), fd)
                         : error_set(why, MESSAGE(listen_type_admin), fd);
    int *slot = is_client ? &sockets->client : &sockets->admin;
    if (*slot >= 0)
        return error_set(why, MESSAGE(listen_twice), name);
    *slot = fd;
    return 0;
}

uint32_t notify_take_sockets(struct notify_sockets *sockets, const char *listen_pid,
                             const char *listen_fds, const char *listen_fdnames, pid_t self,
                             struct error *why)
{
    uint64_t pid, count;
    *sockets = (struct notify_sockets){.client = -1, .admin = -1};
    if (!listen_pid || !listen_fds)
        return 0;
    if (units_parse_number(listen_pid, strlen(listen_pid), INT32_MAX, &pid) != 0)
        return error_set(why, MESSAGE(listen_pid), listen_pid);
    if (pid != (uint64_t)self)
        return 0;
    if (units_parse_number(listen_fds, strlen(listen_fds), PASSED_MAX, &count) != 0)
        return error_set(why, MESSAGE(listen_count), listen_fds);
    sockets->kept = calloc(count + 1, sizeof *sockets->kept);
    if (!sockets->kept)
        return error_set(why, MESSAGE(request_no_memory));
    bool named = listen_fdnames && *listen_fdnames;
    const char *names = named ? listen_fdnames : NULL;
    uint32_t error = 0;
    for (unsigned i = 0; !error && i < (unsigned)count; i++) {
        int fd = FIRST_FD + (int)i;
        char name[32];
        if (named && !name_take(&names, name))
            error = error_set(why, MESSAGE(listen_names_few));
        else if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            error = error_set(why, MESSAGE(listen_not_open), fd);
        else if (!kept_take(sockets, named ? name : NULL, fd))
            error = socket_place(sockets, fd, named ? name : NULL, why);
    }
    if (error) {
        free(sockets->kept);
        sockets->kept = NULL;
        sockets->kept_count = 0;
    }
    return error;
}
