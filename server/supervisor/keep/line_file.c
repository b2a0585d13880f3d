/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/keep/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/regular_file.h"

/* A line of the accounting has about one KiB. A longer one without an end is only ended. */
enum { TORN_BYTES = 8 << 10 };

static int folder_make(const char *path)
{
    const mode_t mode = S_IRWXU | S_IRGRP | S_IXGRP;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return -ENOENT;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (mkdir(folder, mode) == 0)
        return chmod(folder, mode) < 0 ? -errno : 0;
    return errno == EEXIST ? 0 : -errno;
}

/* A service's umask often leaves nothing to its group, whose members make the reports. */
static int file_make(const char *path, int flags)
{
    int fd = regular_file_open(path, flags | O_CREAT | O_EXCL);
    if (fd == -ENOENT && folder_make(path) == 0)
        fd = regular_file_open(path, flags | O_CREAT | O_EXCL);
    if (fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR | S_IRGRP) < 0) {
        const int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

/* A link may lead to a file of somebody else's. */
static int open_to_append(const char *path)
{
    const int flags = O_RDWR | O_APPEND | O_NOFOLLOW;
    int fd = regular_file_open(path, flags);
    if (fd == -ENOENT)
        fd = file_make(path, flags);
    /* Somebody else has made it meanwhile. */
    return fd == -EEXIST ? regular_file_open(path, flags) : fd;
}

/* Reads the last line, if it has no end and fits. Returns its bytes; 0: there is no such line. */
static size_t torn_read(int fd, off_t bytes, char *torn, size_t room)
{
    const size_t wanted = bytes < (off_t)room ? (size_t)bytes : room;
    const ssize_t got = pread(fd, torn, wanted, bytes - (off_t)wanted);
    if (got != (ssize_t)wanted || !wanted)
        return 0;
    const char *end = memrchr(torn, '\n', wanted);
    const size_t length = end ? (size_t)(torn + wanted - (end + 1)) : wanted;
    memmove(torn, torn + wanted - length, length);
    return length;
}

/* Whether the text has a line that begins with it. */
static bool begins_a_line(const char *torn, size_t length, const char *text, size_t bytes)
{
    for (const char *line = text, *end; line; line = end ? end + 1 : NULL) {
        const size_t left = bytes - (size_t)(line - text);
        end = memchr(line, '\n', left);
        if (left >= length && memcmp(line, torn, length) == 0)
            return true;
    }
    return false;
}

/* Goes on behind a last line that has no end. Returns 0, or -errno; *end is where text goes. */
static int torn_mend(int fd, off_t *end, const char *text, size_t bytes)
{
    char torn[TORN_BYTES];
    const size_t length = torn_read(fd, *end, torn, sizeof torn);
    if (!length)
        return 0;
    /* A file that may only be appended to (chattr +a) can't be cut. */
    if (begins_a_line(torn, length, text, bytes) && ftruncate(fd, *end - (off_t)length) == 0) {
        *end -= (off_t)length;
        return 0;
    }
    return regular_file_write(fd, "\n", 1);
}

int line_file_append(const char *path, const char *text, size_t bytes)
{
    int fd = open_to_append(path);
    if (fd < 0)
        return fd;
    off_t before = lseek(fd, 0, SEEK_END);
    int result = before < 0 ? -errno : torn_mend(fd, &before, text, bytes);
    if (result == 0)
        result = regular_file_write(fd, text, bytes);
    if (result == 0 && fdatasync(fd) < 0)
        result = -errno;
    /* A part of a line would be taken for damage, and whole lines are written again. */
    if (result < 0 && before >= 0 && ftruncate(fd, before) < 0)
        result = -errno;
    close(fd);
    return result;
}

long line_file_tail(const char *path, char *text, size_t room)
{
    int fd = regular_file_open(path, O_RDONLY | O_NOFOLLOW);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    off_t bytes = lseek(fd, 0, SEEK_END);
    const off_t from = bytes > (off_t)room ? bytes - (off_t)room : 0;
    size_t got = 0;
    ssize_t count = bytes < 0 ? -1 : 1;
    while (count > 0 && got < room) {
        count = pread(fd, text + got, room - got, from + (off_t)got);
        if (count > 0)
            got += (size_t)count;
    }
    const long result = count < 0 ? -errno : (long)got;
    close(fd);
    return result;
}
