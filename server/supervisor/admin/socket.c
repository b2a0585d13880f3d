/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"

#define GROUP "gpushare"

static uint32_t socket_fail(int error, struct error *why, const char *what, const char *path)
{
    return error_set(why, error_from_errno(error), "%s %s: %s", what, path, strerror(error));
}

static void give_to_group(const char *path)
{
    struct group entry, *found = NULL;
    char buffer[4096];
    if (getgrnam_r(GROUP, &entry, buffer, sizeof buffer, &found) != 0 || !found)
        return;
    if (chown(path, (uid_t)-1, found->gr_gid) < 0)
        log_notice("admin: cannot give %s to group %s (%s): only this server's own group and root "
                   "may open it",
                   path, GROUP, strerror(errno));
}

static uint32_t socket_make(struct admin_socket *admin_socket, const char *path, struct error *why)
{
    int fd = socket_file_bind(&admin_socket->file, SOCK_STREAM, path);
    if (fd == -EADDRINUSE)
        return error_set(
            why, error_from_errno(fd),
            "cannot make the admin socket %s: another server listens there, or it is no "
            "socket: name another with --admin-socket",
            path);
    if (fd < 0)
        return socket_fail(-fd, why, "cannot make the admin socket", path);
    give_to_group(path);
    if (chmod(path, 0660) < 0) {
        int saved = errno;
        socket_file_remove(&admin_socket->file);
        close(fd);
        return socket_fail(saved, why, "cannot set the mode of the admin socket", path);
    }
    admin_socket->fd = fd;
    return 0;
}

uint32_t admin_socket_open(struct admin_socket *admin_socket, const char *path, int fd,
                           struct error *why)
{
    *admin_socket = (struct admin_socket){.fd = -1, .file = SOCKET_FILE_NONE};
    if (fd < 0)
        return socket_make(admin_socket, path, why);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return socket_fail(errno, why, "cannot use the admin socket", "that was passed");
    admin_socket->fd = fd;
    return 0;
}

ssize_t admin_socket_pass(int connection, const char *bytes, size_t length, int passed)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.space,
                             .msg_controllen = sizeof control.space};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    *header = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(header), &passed, sizeof passed);
    ssize_t sent;
    do
        sent = sendmsg(connection, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

void admin_socket_remove(struct admin_socket *admin_socket)
{
    socket_file_remove(&admin_socket->file);
}
