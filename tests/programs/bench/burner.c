/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/burner.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/bench/bench.h"

struct burner {
    unsigned count;
    pid_t pids[];
};

_Noreturn static void burn(pid_t parent)
{
    volatile unsigned long turns = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    for (;;)
        turns++;
}

struct burner *burner_start(unsigned count)
{
    struct burner *burner = calloc(1, sizeof *burner + count * sizeof burner->pids[0]);
    pid_t parent = getpid();
    if (!burner)
        bench_die("out of memory");
    burner->count = count;
    for (unsigned i = 0; i < count; i++) {
        burner->pids[i] = fork();
        if (burner->pids[i] < 0)
            bench_die("no process that keeps a CPU busy");
        if (!burner->pids[i])
            burn(parent);
    }
    return burner;
}

void burner_stop(struct burner *burner)
{
    for (unsigned i = 0; i < burner->count; i++) {
        kill(burner->pids[i], SIGKILL);
        waitpid(burner->pids[i], NULL, 0);
    }
    free(burner);
}
