/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/regular_file.h"

#include <errno.h>
#include <fcntl.h>
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

const char *regular_file_reason(int error)
{
    if (error == EINVAL)
        return MESSAGE_TEXT(accounting_not_regular);
    return error == ELOOP ? MESSAGE_TEXT(accounting_link) : strerror(error);
}
