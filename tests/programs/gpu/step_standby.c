/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * From the death of a process with a kernel on the device to the first kernel of another: of one
 * that is started then, of one that had only called cuInit, and of one that had a context.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

enum { ROUNDS = 3, ANSWER_MS = 15000 };

/* ---- the other processes ---- */

static void answer(int socket, char what)
{
    if (write(socket, &what, 1) != 1)
        _exit(1);
}

static int wait_to_be_killed(void)
{
    while (pause() < 0)
        ;
    return 1;
}

/* The one that is killed. */
static int serve(int socket)
{
    cuda_device_ptr words;
    void *parameters[] = {&words};
    probe_context();
    CU(cu.cuMemAlloc(&words, 4096));
    probe_launch("endless", 1, 1, NULL, parameters);
    cu.cuStreamQuery(NULL); /* make sure that it is submitted */
    probe_sleep_ms(100);
    answer(socket, 'w');
    return wait_to_be_killed();
}

static void wait_for_turn(int socket)
{
    char go;
    answer(socket, 'r');
    if (read(socket, &go, 1) != 1)
        _exit(1);
}

int step_standby_part(const char *argument, int socket)
{
    probe_open();
    if (!strcmp(argument, "worker"))
        return serve(socket);
    if (!strcmp(argument, "driver"))
        wait_for_turn(socket);
    /* A device that serves one process refuses the second context, which is an answer and no
     * failure of the step. */
    cuda_context beside;
    if (!strcmp(argument, "context") &&
        cu.cuDevicePrimaryCtxRetain(&beside, 0) == CUDA_ERR_DEVICE_UNAVAILABLE)
        return 0;
    probe_context();
    if (!strcmp(argument, "context"))
        wait_for_turn(socket);
    probe_launch("nothing", 1, 1, NULL, NULL);
    CU(cu.cuCtxSynchronize());
    answer(socket, 'k');
    return wait_to_be_killed();
}

/* ---- the step itself ---- */

struct other {
    int pid, pidfd, socket;
};

static struct other start(const char *part)
{
    struct other other;
    probe_call(part);
    other.pid = probe_spawn("standby", part, &other.socket);
    other.pidfd = (int)syscall(SYS_pidfd_open, other.pid, 0);
    return other;
}

/* 0: it ended without an answer. */
static char hear(const struct other *other, const char *part)
{
    char what;
    struct pollfd wait_for = {.fd = other->socket, .events = POLLIN};
    if (poll(&wait_for, 1, ANSWER_MS) != 1)
        probe_die("'%s' did not answer within %d s", part, ANSWER_MS / 1000);
    return read(other->socket, &what, 1) == 1 ? what : 0;
}

static void end(struct other *other)
{
    struct pollfd wait_for = {.fd = other->pidfd, .events = POLLIN};
    kill(other->pid, SIGKILL);
    if (other->pidfd < 0 || poll(&wait_for, 1, ANSWER_MS) != 1)
        probe_die("a killed process was not gone after %d s", ANSWER_MS / 1000);
    waitpid(other->pid, NULL, 0);
    close(other->pidfd);
    close(other->socket);
}

/* Milliseconds from the kill to the first kernel; negative: this process got no context beside the
 * other one. */
static double replace_once(const char *kind)
{
    bool cold = !strcmp(kind, "cold");
    struct other worker = start("worker"), next = {0};
    if (hear(&worker, "worker") != 'w')
        probe_die("the process that was to be killed could not run a kernel");
    if (!cold) {
        next = start(kind);
        if (hear(&next, kind) != 'r') {
            end(&next);
            end(&worker);
            return -1;
        }
    }
    uint64_t began = probe_ns();
    end(&worker);
    if (cold)
        next = start(kind);
    else
        answer(next.socket, 'g');
    char what = hear(&next, kind);
    double ms = (double)(probe_ns() - began) / 1e6;
    end(&next);
    if (what != 'k')
        probe_die("the process '%s' ended before its first kernel", kind);
    return ms;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double replace(const char *kind)
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        took[i] = replace_once(kind);
    qsort(took, ROUNDS, sizeof *took, compare);
    return took[ROUNDS / 2];
}

void step_standby(const char *argument)
{
    (void)argument;
    double cold = replace("cold"), driver = replace("driver"), context = replace("context");
    char beside[64] = "was refused beside the first";
    probe_measure("next_cold_ms", cold, "ms");
    probe_measure("next_after_init_ms", driver, "ms");
    if (context >= 0) {
        probe_measure("next_with_context_ms", context, "ms");
        snprintf(beside, sizeof beside, "%.1f ms", context);
    }
    probe_judge(driver >= 0 && driver < cold, "standby-is-sooner",
                "from the kill to the next process's first kernel: started then %.1f ms, with "
                "cuInit called before %.1f ms, with a context %s",
                cold, driver, beside);
}
