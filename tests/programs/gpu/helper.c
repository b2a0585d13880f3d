/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/helper.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/programs/gpu/probe.h"

enum { ANSWER_MS = 15000 };

struct helper helper_start(const char *step, const char *part)
{
    struct helper helper = {.part = part};
    probe_call(part);
    helper.pid = probe_spawn(step, part, &helper.socket);
    helper.pidfd = (int)syscall(SYS_pidfd_open, helper.pid, 0);
    return helper;
}

char helper_listen(const struct helper *helper)
{
    char what;
    struct pollfd wait_for = {.fd = helper->socket, .events = POLLIN};
    if (poll(&wait_for, 1, ANSWER_MS) != 1)
        probe_die("'%s' did not answer within %d s", helper->part, ANSWER_MS / 1000);
    return read(helper->socket, &what, 1) == 1 ? what : 0;
}

char helper_hear(const struct helper *helper)
{
    char what = helper_listen(helper);
    if (!what)
        probe_die("'%s' ended without its answer", helper->part);
    return what;
}

double helper_end(struct helper *helper)
{
    uint64_t began = probe_ns();
    kill(helper->pid, SIGKILL);
    struct pollfd wait_for = {.fd = helper->pidfd, .events = POLLIN};
    if (helper->pidfd < 0 || poll(&wait_for, 1, ANSWER_MS) != 1)
        probe_die("a killed process was not gone after %d s", ANSWER_MS / 1000);
    double ms = (double)(probe_ns() - began) / 1e6;
    waitpid(helper->pid, NULL, 0);
    close(helper->pidfd);
    close(helper->socket);
    return ms;
}

void helper_answer(int socket, char what)
{
    if (write(socket, &what, 1) != 1)
        _exit(1);
}

/* pause() returns -1 when a signal was handled, which none is here. */
int helper_wait_to_be_killed(void)
{
    while (pause() < 0)
        ;
    return 1;
}
