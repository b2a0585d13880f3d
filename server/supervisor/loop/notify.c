/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: libsystemd has both interfaces, and brings libgcrypt, liblzma, libcap and more
 * into the server for a datagram and three variables. */
#include "server/supervisor/loop/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/units.h"
#include "common/messages.h"
#include "common/printable.h"
#include "protocol.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START, fixed by the protocol */

/* More would need more names than one string of the environment holds. */
#define PASSED_MAX 65536

#define STORE_WAIT_MS 1000

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
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

static int send_state(const struct notify *notify, const char *state)
{
    if (notify->fd < 0)
        return 0;
    ssize_t sent;
    do
        sent = send(notify->fd, state, strlen(state), MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

static int send_waiting(const struct notify *notify, const struct msghdr *message)
{
    struct pollfd room = {.fd = notify->fd, .events = POLLOUT};
    for (unsigned tries = 0;;) {
        if (sendmsg(notify->fd, message, MSG_NOSIGNAL) >= 0)
            return 0;
        if (errno != EINTR && errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS)
            return -errno;
        if (errno == EINTR)
            continue;
        int saved = errno;
        /* A datagram socket whose receiver is slow becomes writable when that has read. */
        if (poll(&room, 1, STORE_WAIT_MS) == 0)
            return -saved;
        /* One that is writable says nothing of what else the kernel lacks. */
        if (saved != EAGAIN && ++tries == STORE_WAIT_MS)
            return -saved;
        if (saved != EAGAIN)
            usleep(1000);
    }
}

/* A state that the manager must not miss: it would wait for a start that is over. Its queue may be
 * full of descriptors that it has not read yet. */
static int send_state_waiting(const struct notify *notify, const char *state)
{
    struct iovec part = {(void *)(uintptr_t)state, strlen(state)};
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return notify->fd < 0 ? 0 : send_waiting(notify, &message);
}

int notify_ready(const struct notify *notify)
{
    return send_state_waiting(notify, "READY=1");
}

int notify_stopping(const struct notify *notify)
{
    return send_state_waiting(notify, "STOPPING=1");
}

int notify_status(const struct notify *notify, const char *text)
{
    static const char prefix[] = "STATUS=";
    char state[sizeof prefix + 400];
    snprintf(state, sizeof state, "%s%s", prefix, text);
    /* A line break would begin another assignment of the protocol. */
    printable_replace(state);
    return send_state(notify, state);
}

/* ---- descriptors that are kept ---- */

static int send_name(const struct notify *notify, const char *form, const char *name, const int *fd)
{
    char state[96];
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    if (notify->fd < 0)
        return -ENOTCONN;
    struct iovec part = {state, (size_t)snprintf(state, sizeof state, form, name)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), fd, sizeof(int));
    }
    return send_waiting(notify, &message);
}

int notify_store(const struct notify *notify, const char *name, int fd)
{
    return send_name(notify, "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name, &fd);
}

int notify_unstore(const struct notify *notify, const char *name)
{
    return send_name(notify, "FDSTOREREMOVE=1\nFDNAME=%s", name, NULL);
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
