/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: in one of five tries, threads without work must sleep through two seconds */
/* draining: not, for no kernel runs: its clients have no work */
/*
 * Clients that do nothing cost nothing: once their work is done, no thread of supervisor or
 * worker runs or wakes up on their account. (make bench measures the same over ten seconds.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/server.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

/* CPU time of all threads together, within SECONDS; one thread that spins would take SECONDS. */
#define SECONDS_MAX 0.02

enum { CLIENTS = 16, THREADS_MAX = 256, WAKE_UPS_MAX = 10, SECONDS = 2, TRIES = 5 };

struct use {
    size_t threads;
    unsigned long sleeps[THREADS_MAX]; /* how often each thread has gone to sleep */
    double seconds;                    /* that all of them have run */
};

static double seconds_run(pid_t pid, const char *thread)
{
    char path[352], line[128];
    snprintf(path, sizeof path, "/proc/%d/task/%s/schedstat", (int)pid, thread);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    return strtod(line, NULL) / 1e9;
}

static unsigned long voluntary_switches(pid_t pid, const char *thread)
{
    char path[352], line[256];
    unsigned long count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%s/status", (int)pid, thread);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, "voluntary_ctxt_switches:", 24))
            count = strtoul(line + 24, NULL, 10);
    fclose(file);
    return count;
}

/* The CPU time and sleeps of supervisor and worker so far, threads in the kernel's order. */
static void look(const pid_t pids[2], struct use *use)
{
    *use = (struct use){.threads = 0};
    for (int p = 0; p < 2; p++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task", (int)pids[p]);
        DIR *folder = opendir(path);
        assert_non_null(folder);
        for (struct dirent *entry; (entry = readdir(folder));)
            if (entry->d_name[0] != '.') {
                assert_true(use->threads < THREADS_MAX);
                use->seconds += seconds_run(pids[p], entry->d_name);
                use->sleeps[use->threads++] = voluntary_switches(pids[p], entry->d_name);
            }
        closedir(folder);
    }
}

/* The most wake-ups of one thread within SECONDS, and what all threads ran meanwhile. */
static unsigned long measure(const pid_t pids[2], double *seconds)
{
    struct use before, after;
    unsigned long most = 0;
    look(pids, &before);
    sleep(SECONDS);
    look(pids, &after);
    assert_true(after.threads >= 4); /* the supervisor's, and the worker's three */
    assert_int_equal(after.threads, before.threads);
    for (size_t i = 0; i < after.threads; i++)
        if (after.sleeps[i] - before.sleeps[i] > most)
            most = after.sleeps[i] - before.sleeps[i];
    *seconds = after.seconds - before.seconds;
    return most;
}

static void idle_clients_cause_no_wakeups(void **state)
{
    (void)state;
    struct server *server = server_start(NULL, NULL);
    pid_t pids[2] = {server_pid(server)};
    gpushare_connection *clients[CLIENTS];
    gpushare_stream *stream;
    gpushare_address memory;
    assert_int_equal(server_workers(server, &pids[1], 1), 1);
    /* All have worked, on two streams each, and one has freed: no part of the worker is unused. */
    for (int i = 0; i < CLIENTS; i++) {
        struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
        assert_int_equal(gpushare_connect(&options, &clients[i]), 0);
        assert_int_equal(gpushare_stream_create(clients[i], 0, 0, &stream), 0);
        assert_int_equal(gpushare_memory_alloc(clients[i], 4096, &memory), 0);
        assert_int_equal(gpushare_fill(clients[i], memory, 1, 4, 1024), 0);
        assert_int_equal(gpushare_fill_async(clients[i], memory, 1, 4, 1024, stream), 0);
        assert_int_equal(gpushare_synchronize(clients[i]), 0);
        assert_int_equal(gpushare_memory_free(clients[i], memory), 0);
    }
    /* The server may still be busy with the end of the last work: some tries, each with a count of
     * its own. */
    unsigned long most = 0;
    double seconds = 0;
    for (int i = 0; i < TRIES; i++) {
        most = measure(pids, &seconds);
        if (most <= WAKE_UPS_MAX && seconds <= SECONDS_MAX)
            break;
    }
    if (most > WAKE_UPS_MAX || seconds > SECONDS_MAX)
        fail_msg("in %d s a thread woke up %lu times, all together ran %.3f s", SECONDS, most,
                 seconds);
    for (int i = 0; i < CLIENTS; i++)
        gpushare_close(&clients[i]);
    assert_int_equal(server_stop(server), 0);
}

int main(void)
{
    server_needs_softgpu();
#ifdef THREAD_SANITIZER
    printf("ThreadSanitizer has a thread of its own that wakes up ten times a second\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_clients_cause_no_wakeups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
