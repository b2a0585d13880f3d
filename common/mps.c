/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/mps.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As the kernel cuts nvidia-cuda-mps-control and -server. The pipe directory is not looked at: it
 * can be anywhere, and stays when the daemon has ended. */
static const char name[] = "nvidia-cuda-mps\n";

static bool is_mps(const char *proc, pid_t process)
{
    char path[PATH_MAX], text[sizeof name] = "";
    int length = snprintf(path, sizeof path, "%s/%d/comm", proc, (int)process);
    int fd = length < (int)sizeof path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    return bytes == (ssize_t)sizeof name - 1 && strcmp(text, name) == 0;
}

pid_t mps_process(const char *proc)
{
    DIR *processes = opendir(proc);
    pid_t found = 0;
    if (!processes)
        return 0;
    for (struct dirent *entry; !found && (entry = readdir(processes));) {
        pid_t process = (pid_t)atol(entry->d_name);
        if (process > 0 && is_mps(proc, process))
            found = process;
    }
    closedir(processes);
    return found;
}
