/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/attempt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long what a row left behind has to end in good order, as a server does. */
#define PARTING_SECONDS 10

enum { POLL_US = 10000 };

/* Shared with the row's process and its children. */
struct page {
    struct attempt attempt;
    atomic_bool dying; /* a process of the row has written the sentence, or is about to */
    char sentence[BENCH_FAULT_MAX];
};

static struct page *page;

/* A client's sentence comes before that of the row that misses the client: the first one counts. */
static void keep_sentence(const char *sentence)
{
    if (!atomic_exchange(&page->dying, true))
        snprintf(page->sentence, sizeof page->sentence, "%s", sentence);
}

_Noreturn static void row_main(void (*row)(struct bench_result *), pid_t parent)
{
    struct bench_result result = {0};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    bench_on_death(keep_sentence);
    bench_note_switches_in(page->attempt.switches);
    row(&result);
    page->attempt.result = result;
    page->attempt.measured = true;
    exit(0);
}

/* Sends the signal to each child of this process. Returns how many there are. */
static unsigned signal_children(int signal)
{
    char path[64];
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *file = fopen(path, "re");
    if (!file)
        bench_die("%s can't be read", path);
    for (int pid; fscanf(file, "%d", &pid) == 1; count++)
        kill(pid, signal);
    fclose(file);
    return count;
}

/* Orphans come to this process one by one, as those above them end. */
static void end_orphans(void)
{
    const double begun = bench_now();
    while (signal_children(bench_now() < begun + PARTING_SECONDS ? SIGTERM : SIGKILL)) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        usleep(POLL_US);
    }
}

/* Returns false if the process goes on for longer. */
static bool await_end(pid_t pid, double seconds)
{
    const double until = bench_now() + seconds;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0), ended = -1;
    if (fd < 0)
        bench_die("a row's process can't be watched: %s", strerror(errno));
    for (double left; ended <= 0 && (left = until - bench_now()) > 0;)
        ended = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, (int)(left * 1e3) + 1);
    close(fd);
    return ended > 0;
}

static void describe_end(char fault[BENCH_FAULT_MAX], int status)
{
    if (page->sentence[0])
        memcpy(fault, page->sentence, BENCH_FAULT_MAX);
    else if (WIFSIGNALED(status))
        snprintf(fault, BENCH_FAULT_MAX, "its process was ended by signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(fault, BENCH_FAULT_MAX, "its process ended with status %d", WEXITSTATUS(status));
}

void attempt_make(struct attempt *attempt, void (*row)(struct bench_result *result),
                  double limit_seconds)
{
    const pid_t parent = getpid();
    int status = 0;
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        bench_die("a row can't have a process of its own");
    fflush(NULL); /* otherwise the child would write the same text a second time */
    pid_t pid = fork();
    if (pid < 0)
        bench_die("a row can't have a process of its own");
    if (!pid)
        row_main(row, parent);
    if (!await_end(pid, limit_seconds)) {
        char sentence[100];
        snprintf(sentence, sizeof sentence, "it was ended after %g s", limit_seconds);
        keep_sentence(sentence);
        kill(pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    end_orphans();
    *attempt = page->attempt;
    attempt->measured &= WIFEXITED(status) && !WEXITSTATUS(status);
    if (!attempt->measured) {
        attempt->result = (struct bench_result){0};
        describe_end(attempt->result.fault, status);
    }
    munmap(page, sizeof *page);
}
