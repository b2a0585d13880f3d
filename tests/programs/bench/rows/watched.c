/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The rows of people who look, beside 100 connected clients.
 *
 * top_cpu: the CPU time that the server's processes and gpusharectl top use together for each
 * second of a look every second, less what the server's use without it. It runs on a terminal of
 * 110 lines, which shows all clients, and with -b, as text. The row is the larger one. Each look
 * must have come, and must count all clients.
 *
 * ctl_status_ms: the whole time of a gpusharectl, from its start to its end, for status, for its
 * long form, as JSON, and for the screen without a command; the longest of all. Two of these forms
 * show what clients use, for which they look twice: the half second between the looks
 * (SAMPLE_BETWEEN_NS) is taken off, and nothing else.
 *
 * No neighbours: the clients do nothing, and 100 are company enough. That they do nothing makes no
 * answer shorter, since the server asks the worker about each of them. Work would cost the server a
 * thousand times what is measured here.
 */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/tools/sample.h"
#include "tests/programs/bench/bench.h"
#include "tests/programs/bench/cpu_use.h"

enum { CLIENTS = 100, SHORT_CLIENTS = 20, WORKERS_MAX = 4 };

struct crowd {
    struct server *server;
    pid_t processes[1 + WORKERS_MAX]; /* the supervisor first */
    size_t process_count;
    gpushare_connection *clients[CLIENTS];
    int count;
};

static void open_crowd(struct crowd *crowd)
{
    *crowd = (struct crowd){.server = bench_server_soft(NULL)};
    for (; crowd->count < (bench_short ? SHORT_CLIENTS : CLIENTS); crowd->count++)
        crowd->clients[crowd->count] = bench_connect(crowd->server, 0);
    crowd->processes[0] = server_pid(crowd->server);
    crowd->process_count =
        1 + server_workers(crowd->server, crowd->processes + 1, (size_t)WORKERS_MAX);
}

static void close_crowd(struct crowd *crowd)
{
    for (int i = 0; i < crowd->count; i++)
        gpushare_close(&crowd->clients[i]);
    bench_server_stop(crowd->server);
}

static double server_seconds(const struct crowd *crowd)
{
    double seconds = 0;
    for (size_t i = 0; i < crowd->process_count; i++)
        seconds += cpu_use_of(crowd->processes[i]);
    return seconds;
}

/* ---- top ---- */

/* Each look begins with `mark`, and says the number of clients as `clients` has it. */
struct form {
    const char *name, *option, *mark, *clients;
};

static const struct form forms[] = {
    {"on a screen", "-d1", "\033[H", "clients %d "},
    {"as text", "-b", ", up ", ", clients: %d\r"},
};

struct top {
    const struct form *form;
    pid_t pid;
    int terminal;
    char page[1 << 16]; /* of the look that is being written */
    size_t used;
    unsigned looks; /* that were whole */
    unsigned wrong; /* of these, without the number of clients */
    char clients[32];
};

static void start_top(struct top *top, const struct crowd *crowd, const struct form *form)
{
    char program[4096];
    char *const words[] = {
        "gpusharectl", "--socket",           (char *)server_admin_socket(crowd->server),
        "top",         (char *)form->option, NULL};
    char *const variables[] = {"TERM=xterm", NULL};
    struct winsize size = {.ws_row = 110, .ws_col = 120};
    *top = (struct top){.form = form};
    server_build_path("bin/gpusharectl", program, sizeof program);
    snprintf(top->clients, sizeof top->clients, form->clients, crowd->count);
    top->pid = forkpty(&top->terminal, NULL, NULL, &size);
    if (top->pid == 0) {
        execve(program, words, variables);
        _exit(127);
    }
    if (top->pid < 0)
        bench_die("no pseudo terminal for gpusharectl top");
}

/* Takes the whole looks out of the page. */
static void count_looks(struct top *top)
{
    const size_t mark = strlen(top->form->mark);
    char *next;
    top->page[top->used] = '\0';
    while (top->used > mark && (next = strstr(top->page + mark, top->form->mark))) {
        *next = '\0';
        /* Text before the first mark is no look. */
        if (strncmp(top->page, top->form->mark, mark) == 0) {
            top->looks++;
            top->wrong += strstr(top->page, top->clients) == NULL;
        }
        *next = *top->form->mark;
        top->used -= (size_t)(next - top->page);
        memmove(top->page, next, top->used + 1);
    }
}

/* Reads what top writes, until then. */
static void watch(struct top *top, double until)
{
    struct pollfd readable = {.fd = top->terminal, .events = POLLIN};
    for (double left; (left = until - bench_now()) > 0;) {
        if (poll(&readable, 1, (int)(left * 1e3) + 1) <= 0)
            continue;
        ssize_t got = read(top->terminal, top->page + top->used, sizeof top->page - 1 - top->used);
        if (got <= 0)
            bench_die("gpusharectl top %s has ended: %.300s", top->form->name, top->page);
        top->used += (size_t)got;
        count_looks(top);
    }
}

static void stop_top(struct top *top)
{
    kill(top->pid, SIGTERM);
    close(top->terminal);
    waitpid(top->pid, NULL, 0);
}

/* The part of a core. note: what the two sides use. */
static double watched(const struct crowd *crowd, const struct form *form, double seconds,
                      double idle, struct bench_result *result)
{
    /* After so long its start and its first look are over. */
    static const double begins = 2.5;
    struct top top;
    start_top(&top, crowd, form);
    watch(&top, bench_now() + begins);
    const unsigned looks = top.looks;
    const double server = server_seconds(crowd), tool = cpu_use_of(top.pid), from = bench_now();
    watch(&top, from + seconds);
    const double passed = bench_now() - from;
    const double servers = (server_seconds(crowd) - server) / passed;
    const double tools = (cpu_use_of(top.pid) - tool) / passed;
    stop_top(&top);
    if (top.wrong || top.looks - looks + 1 < (unsigned)seconds)
        bench_doubt(result, "%u of %u looks came %s, and %u did not count the %d clients",
                    top.looks - looks, (unsigned)seconds, form->name, top.wrong, crowd->count);
    const size_t used = strlen(result->note);
    snprintf(result->note + used, sizeof result->note - used,
             "; %s: server %.4f, tool %.4f, looks %u", form->name, servers, tools,
             top.looks - looks);
    return servers - idle + tools;
}

void bench_top_cpu(struct bench_result *result)
{
    const double seconds = bench_short ? 2 : 20;
    struct crowd crowd;
    open_crowd(&crowd);
    /* The work that a connection causes once is over then. */
    bench_sleep_until(bench_now() + 1);
    const double server = server_seconds(&crowd), from = bench_now();
    bench_sleep_until(from + seconds);
    const double idle = (server_seconds(&crowd) - server) / (bench_now() - from);
    snprintf(result->note, sizeof result->note, "%d clients, %.0f s; server alone %.4f",
             crowd.count, seconds, idle);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const double use = watched(&crowd, &forms[i], seconds, idle, result);
        result->value = use > result->value ? use : result->value;
    }
    close_crowd(&crowd);
}

/* ---- one look ---- */

static const struct question {
    const char *name, *words[4];
    bool twice;
    const char *clients; /* how the answer says the number of clients */
} questions[] = {
    {"status", {"status"}, true, "\nclients: %d of"},
    {"status --wide", {"status", "--wide"}, false, "\nclients: %d of"},
    {"--json status", {"--json", "status"}, false, "\"clients\": %d,"},
    {"no command", {NULL}, true, "clients: %d\n"},
};

/* Returns the seconds from the start of the tool to its end. */
static double ask(const struct crowd *crowd, const struct question *question,
                  struct bench_result *result)
{
    enum { ANSWER_MAX = 1 << 20 };
    static char answer[ANSWER_MAX];
    char program[4096], clients[32];
    char *words[8] = {"gpusharectl", "--socket", (char *)server_admin_socket(crowd->server)};
    char *const variables[] = {NULL};
    posix_spawn_file_actions_t actions;
    size_t used = 0;
    ssize_t got;
    int said[2], status = -1;
    pid_t pid;
    for (size_t i = 0; i < 4 && question->words[i]; i++)
        words[3 + i] = (char *)question->words[i];
    server_build_path("bin/gpusharectl", program, sizeof program);
    if (pipe(said) < 0)
        bench_die("no pipe");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, said[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    const double from = bench_now();
    if (posix_spawn(&pid, program, &actions, NULL, words, variables) != 0)
        bench_die("%s can't be executed", program);
    close(said[1]);
    while (used + 1 < ANSWER_MAX && (got = read(said[0], answer + used, ANSWER_MAX - 1 - used)) > 0)
        used += (size_t)got;
    waitpid(pid, &status, 0);
    const double took = bench_now() - from;
    close(said[0]);
    posix_spawn_file_actions_destroy(&actions);
    answer[used] = '\0';
    snprintf(clients, sizeof clients, question->clients, crowd->count);
    if (status != 0 || !strstr(answer, clients))
        bench_doubt(result, "the answer to %s has not all of the %d clients", question->name,
                    crowd->count);
    return question->twice ? took - (double)SAMPLE_BETWEEN_NS / 1e9 : took;
}

void bench_ctl_status(struct bench_result *result)
{
    enum { ROUNDS = 20, SHORT_ROUNDS = 2 };
    const size_t rounds = bench_short ? SHORT_ROUNDS : ROUNDS;
    double took[ROUNDS];
    struct crowd crowd;
    open_crowd(&crowd);
    snprintf(result->note, sizeof result->note, "%d clients", crowd.count);
    for (size_t q = 0; q < sizeof questions / sizeof questions[0]; q++) {
        for (size_t i = 0; i < rounds; i++)
            took[i] = ask(&crowd, &questions[q], result) * 1e3;
        const double median = bench_median(took, rounds), most = took[rounds - 1];
        const size_t used = strlen(result->note);
        snprintf(result->note + used, sizeof result->note - used,
                 "; %s: %.2f ms, median of %zu %.2f", questions[q].name, most, rounds, median);
        if (most < result->value)
            continue;
        result->value = most;
        result->spread = (took[rounds * 3 / 4] - took[rounds / 4]) / median;
    }
    close_crowd(&crowd);
}
