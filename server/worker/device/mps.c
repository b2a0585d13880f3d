/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/mps.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As the kernel cuts nvidia-cuda-mps-control and -server. The pipe directory is not looked at: it
 * can be anywhere, and stays when the daemon has ended. */
static const char name[] = "nvidia-cuda-mps\n";

static bool is_mps(pid_t process)
{
    char path[64], text[sizeof name] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)process);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t bytes = read(fd, text, sizeof text - 1);
    close(fd);
    return bytes == (ssize_t)sizeof name - 1 && strcmp(text, name) == 0;
}

pid_t mps_process(void)
{
    DIR *processes = opendir("/proc");
    pid_t found = 0;
    if (!processes)
        return 0;
    for (struct dirent *entry; !found && (entry = readdir(processes));) {
        pid_t process = (pid_t)atol(entry->d_name);
        if (process > 0 && is_mps(process))
            found = process;
    }
    closedir(processes);
    return found;
}
