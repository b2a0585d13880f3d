/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/id_name.h"
#include "common/log.h"
#include "common/messages.h"

#define GROUP "gpushare"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* No request has a descriptor. The kernel closes one that comes on the thread that reads, and such
 * a close may sleep, so the kernel is to refuse it to the sender. An older kernel does not know the
 * option; there the file's mode is the only guard. Connections inherit the option. */
static void refuse_descriptors(int fd)
{
    int off = 0;
    setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
}

static void give_to_group(const char *path)
{
    struct error unused;
    uint32_t gid;
    if (id_name_find(ID_NAME_GROUP, GROUP, &gid, &unused))
        return;
    if (chown(path, (uid_t)-1, (gid_t)gid) < 0)
        log_notice(MESSAGE_TEXT(log_admin_socket_group), path, GROUP, strerror(errno));
}

static uint32_t socket_make(struct admin_socket *admin_socket, const char *path, struct error *why)
{
    int fd = socket_file_bind(&admin_socket->file, SOCK_STREAM, path);
    if (fd == -EADDRINUSE)
        return error_set(why, error_from_errno(fd), MESSAGE_TEXT(admin_socket_taken), path);
    if (fd < 0)
        return error_set(why, error_from_errno(fd), MESSAGE_TEXT(admin_socket_make), path,
                         strerror(-fd));
    give_to_group(path);
    if (chmod(path, 0660) < 0) {
        int saved = errno;
        socket_file_remove(&admin_socket->file);
        close(fd);
        return error_set(why, error_from_errno(saved), MESSAGE_TEXT(admin_socket_mode), path,
                         strerror(saved));
    }
    admin_socket->fd = fd;
    refuse_descriptors(fd);
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
        return error_set(why, error_from_errno(errno), MESSAGE_TEXT(admin_socket_passed),
                         strerror(errno));
    admin_socket->fd = fd;
    refuse_descriptors(fd);
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
