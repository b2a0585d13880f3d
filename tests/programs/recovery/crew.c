/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/recovery/crew.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/patience.h"

enum { LOG_TAIL = 6000, PATIENCE_SECONDS = 60 };

#define PHASE_TEXT(name) #name,
const char *const crew_phases[PHASE_COUNT] = {PHASES(PHASE_TEXT)};

double crew_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double crew_patience(void)
{
    return patience_seconds(PATIENCE_SECONDS);
}

unsigned crew_draw(struct crew *crew, unsigned bound)
{
    return (unsigned)rand_r(&crew->random) % bound;
}

static void end_clients(struct crew *crew)
{
    for (int i = 0; i < crew->count; i++)
        if (crew->pids[i]) {
            kill(crew->pids[i], SIGKILL);
            waitpid(crew->pids[i], NULL, 0);
        }
}

void crew_die(struct crew *crew, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    char *log = crew->server ? server_log(crew->server) : NULL;
    size_t length = log ? strlen(log) : 0;
    fprintf(stderr, "---- the end of the server's log\n%s----\nFAILED: ",
            log ? log + (length > LOG_TAIL ? length - LOG_TAIL : 0) : "");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nagain: %s\n", crew->again);
    end_clients(crew);
    if (crew->server)
        kill(server_pid(crew->server), SIGKILL);
    exit(1);
}

static void make_pages(struct crew *crew)
{
    crew->pages = mmap(NULL, sizeof *crew->pages * PAGES_MAX, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (crew->pages == MAP_FAILED) {
        perror("crew: mmap");
        exit(1);
    }
}

void crew_open(struct crew *crew, const char *const args[])
{
    make_pages(crew);
    crew->server = server_start(args, NULL);
}

void crew_open_kept(struct crew *crew, const char *const args[])
{
    make_pages(crew);
    crew->server = server_start_kept(args, NULL);
}

void crew_join(struct crew *crew, int i, crew_part *part)
{
    struct honest_spec spec = {.socket = server_socket(crew->server),
                               .seed = (unsigned)rand_r(&crew->random),
                               .pages = crew->pages,
                               .count = PAGES_MAX,
                               .me = i,
                               .rest = crew->rest};
    memset(&crew->pages[i], 0, sizeof crew->pages[i]);
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0)
        crew_die(crew, "no process can be started");
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        if (getppid() == parent)
            part(&spec);
        _exit(1);
    }
    crew->pids[i] = pid;
    if (i >= crew->count)
        crew->count = i + 1;
}

void crew_fill(struct crew *crew, int count)
{
    for (int i = 0; i < count; i++)
        if (i >= crew->count || !crew->pids[i])
            crew_join(crew, i, honest_run);
    crew_await_batches(crew, 1);
}

void crew_order(struct crew *crew, int i, enum order order)
{
    atomic_store(&crew->pages[i].order, (uint32_t)order);
}

void crew_check(struct crew *crew)
{
    int status;
    for (int i = 0; i < crew->count; i++) {
        const struct page *page = &crew->pages[i];
        if (atomic_load(&page->failed))
            crew_die(crew, "client %u (%d): %s", page->client, i, page->words);
        if (crew->pids[i] && waitpid(crew->pids[i], &status, WNOHANG) == crew->pids[i]) {
            crew->pids[i] = 0;
            crew_die(crew, "client %u (%d) has ended, with wait status %#x: %s", page->client, i,
                     (unsigned)status, page->words);
        }
    }
}

void crew_await_batches(struct crew *crew, uint64_t more)
{
    uint64_t wanted[PAGES_MAX];
    double end = crew_now() + crew_patience();
    for (int i = 0; i < crew->count; i++)
        wanted[i] = atomic_load(&crew->pages[i].batches) + more;
    for (int i = 0; i < crew->count; i++)
        while (crew->pids[i] && atomic_load(&crew->pages[i].batches) < wanted[i]) {
            crew_check(crew);
            if (crew_now() > end)
                crew_die(crew, "client %u (%d) hangs: it is %s", crew->pages[i].client, i,
                         crew_phases[atomic_load(&crew->pages[i].phase)]);
            usleep(100);
        }
}

int crew_await_end(struct crew *crew, int i)
{
    int status;
    double end = crew_now() + crew_patience();
    while (waitpid(crew->pids[i], &status, WNOHANG) != crew->pids[i]) {
        if (crew_now() > end)
            crew_die(crew, "client %u (%d) does not end: it is %s", crew->pages[i].client, i,
                     crew_phases[atomic_load(&crew->pages[i].phase)]);
        usleep(100);
    }
    crew->pids[i] = 0;
    return status;
}

void crew_leave(struct crew *crew)
{
    for (int i = 0; i < crew->count; i++)
        crew_order(crew, i, ORDER_LEAVE);
    for (int i = 0; i < crew->count; i++) {
        if (!crew->pids[i])
            continue;
        int status = crew_await_end(crew, i);
        if (status != 0)
            crew_die(crew, "client %u (%d) ended with wait status %#x: %s", crew->pages[i].client,
                     i, (unsigned)status, crew->pages[i].words);
    }
    crew->count = 0;
}

char *crew_log(struct crew *crew)
{
    char *log = server_log(crew->server);
    if (!log)
        crew_die(crew, "no memory");
    size_t length = strlen(log), from = crew->log_seen < length ? crew->log_seen : length;
    memmove(log, log + from, length - from + 1);
    crew->log_seen = length;
    return log;
}

unsigned crew_mentions(const char *text, const char *words)
{
    unsigned count = 0;
    for (; (text = strstr(text, words)); text += strlen(words))
        count++;
    return count;
}

void crew_close(struct crew *crew)
{
    struct server *server = crew->server;
    if (server_stop(server) != 0) {
        crew->server = NULL;
        crew_die(crew, "the server did not end well");
    }
    munmap(crew->pages, sizeof *crew->pages * PAGES_MAX);
}

void crew_print(const char *title, const char *const *names, const unsigned *counts, int length)
{
    printf("  %s:", title);
    for (int i = 0; i < length; i++)
        if (counts[i])
            printf(" %s %u,", names[i], counts[i]);
    printf(" in all ");
    unsigned sum = 0;
    for (int i = 0; i < length; i++)
        sum += counts[i];
    printf("%u\n", sum);
    fflush(stdout);
}
