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
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/units.h"
#include "common/messages.h"
#include "common/printable.h"
#include "protocol.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START, fixed by the protocol */

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

int notify_ready(const struct notify *notify)
{
    return send_state(notify, "READY=1");
}

int notify_stopping(const struct notify *notify)
{
    return send_state(notify, "STOPPING=1");
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

/* ---- sockets that were passed ---- */

static int option_of(int fd, int option)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

/* The part between colons that names descriptor number `index`. Returns false if there is none. */
static bool name_of(const char *names, unsigned index, char name[32])
{
    for (; index > 0; index--) {
        names = strchr(names, ':');
        if (!names)
            return false;
        names++;
    }
    size_t length = strcspn(names, ":");
    if (length >= 32)
        length = 31;
    memcpy(name, names, length);
    name[length] = '\0';
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
    *sockets = (struct notify_sockets){-1, -1};
    if (!listen_pid || !listen_fds)
        return 0;
    if (units_parse_number(listen_pid, strlen(listen_pid), INT32_MAX, &pid) != 0)
        return error_set(why, MESSAGE(listen_pid), listen_pid);
    if (pid != (uint64_t)self)
        return 0;
    if (units_parse_number(listen_fds, strlen(listen_fds), 64, &count) != 0)
        return error_set(why, MESSAGE(listen_count), listen_fds);
    for (unsigned i = 0; i < (unsigned)count; i++) {
        int fd = FIRST_FD + (int)i;
        char name[32];
        bool named = listen_fdnames && *listen_fdnames;
        if (named && !name_of(listen_fdnames, i, name))
            return error_set(why, MESSAGE(listen_names_few));
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
            return error_set(why, MESSAGE(listen_not_open), fd);
        uint32_t error = socket_place(sockets, fd, named ? name : NULL, why);
        if (error)
            return error;
    }
    return 0;
}
