/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * From the death of a process with a kernel on the device to the first kernel of another: of one
 * that is started then, of one that had only called cuInit, and of one that had a context.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/programs/gpu/helper.h"
#include "tests/programs/gpu/probe.h"
#include "tests/programs/gpu/step.h"

enum { ROUNDS = 3 };

/* ---- the other processes ---- */

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
    helper_answer(socket, 'w');
    return helper_wait_to_be_killed();
}

static void wait_for_turn(int socket)
{
    char go;
    helper_answer(socket, 'r');
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
    helper_answer(socket, 'k');
    return helper_wait_to_be_killed();
}

/* ---- the step itself ---- */

/* Milliseconds from the kill to the first kernel; negative: this process got no context beside the
 * other one. */
static double replace_once(const char *kind)
{
    bool cold = !strcmp(kind, "cold");
    struct helper worker = helper_start("standby", "worker"), next = {0};
    if (helper_hear(&worker) != 'w')
        probe_die("the process that was to be killed could not run a kernel");
    if (!cold) {
        next = helper_start("standby", kind);
        if (helper_listen(&next) != 'r') {
            helper_end(&next);
            helper_end(&worker);
            return -1;
        }
    }
    uint64_t began = probe_ns();
    helper_end(&worker);
    if (cold)
        next = helper_start("standby", kind);
    else
        helper_answer(next.socket, 'g');
    char what = helper_hear(&next);
    double ms = (double)(probe_ns() - began) / 1e6;
    helper_end(&next);
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
