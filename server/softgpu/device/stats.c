/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/shared_word.h"
#include "server/softgpu/device/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct stats_file *stats_open(const char *path, unsigned devices, unsigned sms, struct error *why)
{
    struct stats_file *file = MAP_FAILED;
    int fd = -1;

    if (!path[0]) {
        file =
            mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    } else {
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        /* The file is never truncated to nothing: another process may have it mapped, and would
         * die of SIGBUS. */
        if (fd >= 0 && ftruncate(fd, sizeof(*file)) == 0)
            file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (file == MAP_FAILED) {
        error_set(why, error_from_errno(errno), "SOFTGPU_STATS='%s': %s", path, strerror(errno));
        file = NULL;
    }
    if (fd >= 0)
        close(fd);
    if (file) {
        file->device_count = devices;
        file->sm_count = sms;
        shared_word_publish(&file->magic, STATS_MAGIC);
    }
    return file;
}
