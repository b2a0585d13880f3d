/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/messages.h"

int regular_file_open(const char *path, int flags)
{
    struct stat file;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, S_IRUSR | S_IWUSR | S_IRGRP);
    if (fd < 0)
        return -errno;
    int result = fstat(fd, &file) < 0 ? -errno : S_ISREG(file.st_mode) ? fd : -EINVAL;
    if (result < 0)
        close(fd);
    return result;
}

int regular_file_write(int fd, const char *text, size_t bytes)
{
    while (bytes) {
        ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0) {
            text += written;
            bytes -= (size_t)written;
        }
    }
    return 0;
}

static int write_new(const char *path, mode_t mode, const char *text, size_t bytes)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return -errno;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int result = fchmod(fd, mode) < 0 ? -errno : regular_file_write(fd, text, bytes);
    if (close(fd) < 0 && result == 0)
        result = -errno;
    return result;
}

int regular_file_replace(const char *path, mode_t mode, const char *text, size_t bytes)
{
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return -ENAMETOOLONG;
    int result = write_new(fresh, mode, text, bytes);
    if (result == 0 && rename(fresh, path) < 0)
        result = -errno;
    if (result < 0)
        unlink(fresh);
    return result;
}

const char *regular_file_reason(int error)
{
    if (error == EINVAL)
        return MESSAGE_TEXT(accounting_not_regular);
    return error == ELOOP ? MESSAGE_TEXT(accounting_link) : strerror(error);
}
