/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/readable.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child's status when it could not become the user; no errno has it. */
enum { CANNOT_TELL = 255 };

static int status_as(const struct passwd *user, const char *path)
{
    if (initgroups(user->pw_name, user->pw_gid) < 0 || setgid(user->pw_gid) < 0 ||
        setuid(user->pw_uid) < 0)
        return CANNOT_TELL;
    /* A pipe would wait for its other end. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return fd < 0 ? errno : 0;
}

int readable_by(const char *user, const char *path)
{
    const struct passwd *found = geteuid() == 0 ? getpwnam(user) : NULL;
    int status;
    pid_t child = found ? fork() : -1;
    if (child < 0)
        return -1;
    if (child == 0)
        _exit(status_as(found, path));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) && WEXITSTATUS(status) != CANNOT_TELL ? WEXITSTATUS(status) : -1;
}
