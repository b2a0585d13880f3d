/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINE_SIZE = 1400, REAP_MS = 2000, LOG_BYTES_MAX = 4 << 20, DRAIN_TURNS = 256 };

static volatile sig_atomic_t stopped;

static void note_stop(int signal)
{
    (void)signal;
    stopped = 1;
}

void runner_open(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &(struct sigaction){.sa_handler = note_stop}, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

bool runner_stopped(void)
{
    return stopped != 0;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- a step's output ------------------------------------------------------------------ */
struct output {
    char line[LINE_SIZE];
    size_t used, logged;
    FILE *log;
    struct result *result;
};

static void end_line(struct output *output)
{
    output->line[output->used] = 0;
    output->used = 0;
    result_take_line(output->result, output->line);
}

/* A step may print without end: the log keeps the beginning. */
static void take_output(struct output *output, const char *bytes, size_t count)
{
    if (output->log && output->logged < LOG_BYTES_MAX) {
        fwrite(bytes, 1, count, output->log);
        fflush(output->log);
        output->logged += count;
    }
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n')
            end_line(output);
        else if (output->used < sizeof output->line - 1)
            output->line[output->used++] = bytes[i];
    }
}

/* Reads what is there, so much at most: one that prints without end must not keep the runner from
 * its clock. false: nobody can write any more. */
static bool drain(struct output *output, int fd)
{
    char buffer[4096];
    for (int turn = 0; turn < DRAIN_TURNS; turn++) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got == 0)
            return false;
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        take_output(output, buffer, (size_t)got);
    }
    return true;
}

/* ---- its processes ---------------------------------------------------------------------- */
static pid_t start(const struct step *step, const char *library, int output)
{
    pid_t child = fork();
    if (child != 0)
        return child;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(126);
    execl("/proc/self/exe", "checks", "step", step->name, library, (char *)NULL);
    _exit(127);
}

/* Kills what is left of the step, orphans of other groups too. Returns how many remain after
 * two seconds: they sit in the kernel, out of reach. */
static unsigned kill_rest(pid_t group)
{
    double end = now_s() + REAP_MS / 1e3;
    unsigned left;
    do {
        kill(-group, SIGKILL);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        int child;
        left = 0;
        FILE *children = fopen("/proc/thread-self/children", "re");
        while (children && fscanf(children, "%d", &child) == 1) {
            kill(child, SIGKILL);
            left++;
        }
        if (children)
            fclose(children);
        if (left)
            nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    } while (left && now_s() < end);
    return left;
}

/* Until the step's process has ended, its time is over, or the runner is told to stop. */
static enum runner_end watch(pid_t child, int fd, double limit_s, struct output *output,
                             int *status)
{
    double end = now_s() + limit_s;
    bool open = true;
    while (!stopped) {
        struct pollfd wait_for = {.fd = fd, .events = POLLIN};
        poll(&wait_for, open ? 1 : 0, 20);
        open = open && drain(output, fd);
        if (waitpid(child, status, WNOHANG) == child)
            return RUNNER_ENDED;
        if (now_s() >= end)
            return RUNNER_OVERDUE;
    }
    return RUNNER_STOPPED;
}

enum runner_end runner_run(const struct step *step, const char *library, double limit_s, FILE *log,
                           struct result *result)
{
    int pipe_fds[2], status = 0;
    char ended[160] = "";
    double began = now_s();
    result_begin(result, step);
    struct output output = {.log = log, .result = result};
    if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
        result_finish(result, 0, "no pipe");
        return RUNNER_ENDED;
    }
    pid_t child = start(step, library, pipe_fds[1]);
    close(pipe_fds[1]);
    if (child < 0) {
        close(pipe_fds[0]);
        result_finish(result, 0, "no process");
        return RUNNER_ENDED;
    }
    fcntl(pipe_fds[0], F_SETFL, O_NONBLOCK);
    enum runner_end end = watch(child, pipe_fds[0], limit_s, &output, &status);
    unsigned left = kill_rest(child);
    drain(&output, pipe_fds[0]);
    if (output.used)
        end_line(&output);
    close(pipe_fds[0]);
    if (end == RUNNER_STOPPED)
        snprintf(ended, sizeof ended, "stopped from outside");
    else if (end == RUNNER_OVERDUE)
        snprintf(ended, sizeof ended, "killed after %.0f s", limit_s);
    else if (WIFSIGNALED(status))
        snprintf(ended, sizeof ended, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        snprintf(ended, sizeof ended, "exit status %d", WEXITSTATUS(status));
    if (left)
        snprintf(ended + strlen(ended), sizeof ended - strlen(ended),
                 "%s%u of its processes could not be killed", *ended ? "; " : "", left);
    result_finish(result, now_s() - began, *ended ? ended : NULL);
    /* Less than its own limit, or a stop from outside, says nothing of the step itself. */
    if (end == RUNNER_STOPPED || (end == RUNNER_OVERDUE && limit_s < step->limit_s))
        result_cut_short(result, ended);
    return end;
}
