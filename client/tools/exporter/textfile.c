/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/messages.h"

static int write_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t written = write(fd, text, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        text += written;
        length -= (size_t)written;
    }
    return 0;
}

/* The collector reads names that end in .prom, so it never sees this one. Others may write to the
 * folder too: what lies there is taken away, and is never opened. It could be a link to another
 * file, a pipe that the collector would wait for, or a file that its owner changes later. */
static int write_new(const char *path, const char *text, size_t length)
{
    if (unlink(path) < 0 && errno != ENOENT)
        return -errno;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int result = fchmod(fd, 0644) < 0 ? -errno : write_all(fd, text, length);
    if (close(fd) < 0 && result == 0)
        result = -errno;
    return result;
}

uint32_t textfile_write(const char *path, const char *text, size_t length, struct error *why)
{
    char new_path[4096];
    int wanted = snprintf(new_path, sizeof new_path, "%s.new", path);
    int result = wanted < (int)sizeof new_path ? write_new(new_path, text, length) : -ENAMETOOLONG;
    if (result == 0 && rename(new_path, path) < 0)
        result = -errno;
    if (result == 0)
        return 0;
    if (result != -ENAMETOOLONG)
        unlink(new_path);
    return error_set(why, MESSAGE(exporter_file), path, strerror(-result));
}
