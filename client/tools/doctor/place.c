/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

const char *place_path(const struct place *place, const char *path, char full[PATH_MAX])
{
    int length = snprintf(full, PATH_MAX, "%s%s", place->root, path);
    if (length < 0 || length >= PATH_MAX)
        full[0] = '\0';
    return full;
}

int place_read(const struct place *place, const char *path, char *text, size_t size)
{
    char full[PATH_MAX];
    size_t used = 0;
    text[0] = '\0';
    /* A pipe in the place of the file would keep an open() waiting. */
    int fd = open(place_path(place, path, full), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    /* The kernel gives files of /proc in pieces. */
    while (used < size - 1) {
        ssize_t got = read(fd, text + used, size - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
    }
    close(fd);
    text[used] = '\0';
    return (int)used;
}

int place_stat(const struct place *place, const char *path, struct stat *found)
{
    char full[PATH_MAX];
    return stat(place_path(place, path, full), found) < 0 ? -errno : 0;
}

bool place_has(const struct place *place, const char *path)
{
    struct stat found;
    return place_stat(place, path, &found) == 0;
}
