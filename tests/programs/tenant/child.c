/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* A program that works, and has a child which executes it again, which works too. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/tenant/tenant.h"

enum { WORDS = 256, BYTES = WORDS * 4 };

static void work(void)
{
    struct tenant tenant;
    uint32_t *words, *managed, found[WORDS], number = 4;
    void *parameters[] = {&words, &number};
    tenant_begin(&tenant);
    OK(cudaMalloc((void **)&words, BYTES));
    OK(cudaMallocManaged((void **)&managed, BYTES, 1));
    OK(cudaMemset(words, 0, BYTES));
    OK(cudaLaunchKernel(&tenant_add, (cudart_dim3){1, 1, 1}, (cudart_dim3){WORDS, 1, 1}, parameters,
                        0, NULL));
    OK(cudaMemcpy(found, words, BYTES, CUDART_DEVICE_TO_HOST));
    for (int i = 0; i < WORDS; i++)
        CHECK(found[i] == 4);
}

/* Whatever way it came: by open(), or from the server. */
static void demand_no_device_node(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int seen = 0;
    CHECK(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        struct stat status;
        const int fd = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || fd <= STDERR_FILENO)
            continue;
        CHECK(fstat(fd, &status) == 0);
        CHECK(!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode));
        seen++;
    }
    CHECK(seen > 1);
    closedir(folder);
}

void work_once(void)
{
    work();
    demand_no_device_node();
    puts("right");
}

void work_with_child(void)
{
    int status;
    work();
    demand_no_device_node();
    fflush(stdout);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execl("/proc/self/exe", "tenant", "once", (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    work();
    puts("right");
}
