/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/admin_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/log.h"

#define GROUP "gpushare"

static int fail(int error, char *why, size_t why_size, const char *what, const char *path)
{
    if (why_size)
        snprintf(why, why_size, "%s %s: %s", what, path, strerror(error));
    return -error;
}

/* Is somebody listening there? A socket file stays when its server was killed. */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat status;
    if (lstat(address->sun_path, &status) < 0 || !S_ISSOCK(status.st_mode))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    bool stale =
        connect(fd, (const struct sockaddr *)address, sizeof *address) < 0 && errno == ECONNREFUSED;
    close(fd);
    return stale;
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

static int make(struct admin_socket *admin_socket, const char *path, char *why, size_t why_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    if (strlen(path) >= sizeof address.sun_path)
        return fail(ENAMETOOLONG, why, why_size, "cannot make the admin socket", path);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(errno, why, why_size, "cannot make the admin socket", path);
    if (is_stale(&address))
        unlink(path);
    /* Nobody can connect before listen(), so the mode is never wider than it should be. */
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        int saved = errno;
        close(fd);
        if (saved == EADDRINUSE && why_size) {
            snprintf(why, why_size,
                     "cannot make the admin socket %s: another server listens there, or it is no "
                     "socket: name another with --admin-socket",
                     path);
            return -saved;
        }
        return fail(saved, why, why_size, "cannot make the admin socket", path);
    }
    give_to_group(path);
    if (chmod(path, 0660) < 0 || stat(path, &status) < 0) {
        int saved = errno;
        unlink(path);
        close(fd);
        return fail(saved, why, why_size, "cannot set the mode of the admin socket", path);
    }
    *admin_socket = (struct admin_socket){
        .fd = fd, .path = strdup(path), .device = status.st_dev, .inode = status.st_ino};
    if (!admin_socket->path) {
        unlink(path);
        close(fd);
        return fail(ENOMEM, why, why_size, "cannot make the admin socket", path);
    }
    return 0;
}

int admin_socket_open(struct admin_socket *admin_socket, const char *path, int fd, char *why,
                      size_t why_size)
{
    *admin_socket = (struct admin_socket){.fd = -1};
    if (fd < 0)
        return make(admin_socket, path, why, why_size);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return fail(errno, why, why_size, "cannot use the admin socket", "that was passed");
    admin_socket->fd = fd;
    return 0;
}

void admin_socket_remove(struct admin_socket *admin_socket)
{
    struct stat status;
    if (!admin_socket->path)
        return;
    if (lstat(admin_socket->path, &status) == 0 && status.st_dev == admin_socket->device &&
        status.st_ino == admin_socket->inode)
        unlink(admin_socket->path);
    free(admin_socket->path);
    admin_socket->path = NULL;
}
