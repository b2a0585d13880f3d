/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors *
 * timed: short kernels must end within 2 s beside others, else they exceed their own limit
 * light: it waits for limits of time
 * long: one limit of time after the other passes
 * draining: without locks, for if mapping waited, nobody could connect beside the endless kernel
 */
/*
 * Kernels that don't end: kernel_time_limit, departed_time_limit and kill --force replace the
 * worker, and each client is told what concerns it. Clients are processes, started at random times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/kernels.h"
#include "tests/support/server.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"

enum { OTHERS = 3, CROWD = 16, QUEUE = 14 };
/* Of a block; a multiprocessor has 228 KiB, so it has one such block. */
enum { MOST_SHARED = 160 << 10 };

static unsigned random_state;
static char config[64];

static unsigned random_below(unsigned end)
{
    return (unsigned)rand_r(&random_state) % end;
}

static void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static struct server *begin_with(const char *yaml, const char *departed, const char *const env[])
{
    strcpy(config, "/tmp/gpushare-endless-XXXXXX");
    int fd = mkstemp(config);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), strlen(yaml));
    close(fd);
    const char *const args[] = {"--config", config, "--departed-time-limit", departed, NULL};
    return server_start(args, env);
}

static struct server *begin(const char *yaml, const char *departed)
{
    return begin_with(yaml, departed, NULL);
}

static void end(struct server *server)
{
    assert_int_equal(server_stop(server), 0);
    unlink(config);
}

/* ---- a client: a process that says what it was told ---- */

struct said {
    gpushare_error error;
    unsigned launches;
    char text[400];
};

struct client {
    pid_t pid;
    int from;
};

/* Clients that wait at it begin their work when it is opened. */
struct gate {
    int pipe[2];
};

static void gate_open(struct gate *gate)
{
    close(gate->pipe[1]);
    close(gate->pipe[0]);
}

/* In a client's process. */
static void gate_pass(struct gate *gate)
{
    char byte;
    close(gate->pipe[1]);
    while (read(gate->pipe[0], &byte, 1) > 0)
        ;
}

static gpushare_error connect_to(const struct server *server, const char *name,
                                 gpushare_connection **gpu, gpushare_function **function,
                                 const char *kernel)
{
    struct gpushare_options options = {
        .size = sizeof options, .socket = server_socket(server), .name = name};
    gpushare_module *module;
    gpushare_error error = gpushare_connect(&options, gpu);
    if (!error)
        error = gpushare_module_load(*gpu, kernels_ptx, 0, &module);
    return error ? error : gpushare_module_function(module, kernel, function);
}

static volatile sig_atomic_t told_to_stop;

static void stop_soon(int number)
{
    (void)number;
    told_to_stop = 1;
}

/* Launches kernels of some milliseconds on the whole device until one fails, for this time, or
 * until finish_now. They fill it by their shared memory: each warp that sleeps costs the software
 * GPU a little of the processor, and under ThreadSanitizer so much that with four blocks on each
 * multiprocessor kernels lasted four to ten times as long as they should. A client whose kernels
 * end does work that was interrupted again. */
static void work(gpushare_connection *gpu, gpushare_function *function, unsigned ms, unsigned total,
                 struct said *said)
{
    struct gpushare_dim grid = {132, 1, 1}, block = {32, 1, 1};
    void *parameters[] = {&ms};
    said->error = gpushare_function_set_shared(function, MOST_SHARED);
    for (unsigned spent = 0; !said->error && !told_to_stop && spent < total; spent += ms) {
        said->error = gpushare_launch(function, grid, block, MOST_SHARED, NULL, parameters);
        if (!said->error)
            said->error = gpushare_synchronize(gpu);
        said->launches += !said->error;
        if (said->error == GPUSHARE_ERROR_INTERRUPTED && ms)
            said->error = gpushare_stream_recover(gpu, NULL, NULL);
    }
}

/* ms: 0 is a kernel that does not end. gate: NULL: the work begins at once. */
static struct client start_at(struct gate *gate, const struct server *server, const char *name,
                              unsigned ms, unsigned total)
{
    int pipes[2];
    struct client client;
    assert_int_equal(pipe(pipes), 0);
    client.pid = fork();
    assert_true(client.pid >= 0);
    client.from = pipes[0];
    if (client.pid) {
        close(pipes[1]);
        return client;
    }
    struct said said = {0};
    gpushare_connection *gpu = NULL;
    gpushare_function *function;
    close(pipes[0]);
    signal(SIGTERM, stop_soon);
    said.error = connect_to(server, name, &gpu, &function, ms ? "milliseconds" : "endless");
    bool ready = write(pipes[1], "r", 1) == 1;
    if (gate)
        gate_pass(gate);
    if (!said.error)
        work(gpu, function, ms, total, &said);
    if (said.error)
        snprintf(said.text, sizeof said.text, "%s", gpushare_error_text());
    _exit(!ready || write(pipes[1], &said, sizeof said) != sizeof said);
}

static struct client start(const struct server *server, const char *name, unsigned ms,
                           unsigned total)
{
    return start_at(NULL, server, name, ms, total);
}

static void await_ready(const struct client *client)
{
    char byte;
    assert_int_equal(read(client->from, &byte, 1), 1);
}

static struct said finish(struct client *client)
{
    struct said said = {0};
    int status;
    assert_int_equal(read(client->from, &said, sizeof said), sizeof said);
    assert_int_equal(waitpid(client->pid, &status, 0), client->pid);
    assert_int_equal(status, 0);
    close(client->from);
    return said;
}

/* The same for a client that would go on for long. */
static struct said finish_now(struct client *client)
{
    kill(client->pid, SIGTERM);
    return finish(client);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The page says "at the latest after twice the limit". Two seconds more are for a new process,
 * since the client is told when the old one is gone. */
static void expect_end_in_time(double since, double limit)
{
    double took = seconds_now() - since;
    if (took < limit || took > 2 * limit + 2)
        fail_msg("the kernel was ended after %.2f s; its limit is %.2f s", took, limit);
}

static void expect_word(const struct said *said, const char *word)
{
    if (!strstr(said->text, word))
        fail_msg("\"%s\" does not say \"%s\"", said->text, word);
}

static void expect_in_log(const struct server *server, const char *words)
{
    if (!server_log_wait(server, words))
        fail_msg("the log does not say \"%s\"", words);
}

/* These clients have lost the kernel that ran, at most, and still work. */
static void expect_others_go_on(struct client *others, int count)
{
    for (int i = 0; i < count; i++) {
        struct said said = finish_now(&others[i]);
        if (said.error)
            fail_msg("other: %s", said.text);
        assert_true(said.launches > 0);
        print_message("  other: %u launches\n", said.launches);
    }
}

/* A client that arrives afterwards is served. */
static void expect_service(const struct server *server)
{
    struct client after = start(server, "after", 1, 5);
    await_ready(&after);
    struct said said = finish(&after);
    if (said.error)
        fail_msg("after: %s", said.text);
}

/* ---- scenes ---- */

static void an_endless_kernel_is_ended_and_its_owner_is_named(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 2s}\n", "0");
    struct client others[OTHERS];
    unsigned culprit_after = random_below(300);
    for (int i = 0; i < OTHERS; i++)
        others[i] = start(server, "other", 1 + random_below(20), 60000);
    for (int i = 0; i < OTHERS; i++)
        await_ready(&others[i]);
    printf("culprit after %u ms\n", culprit_after);
    sleep_ms(culprit_after);
    struct client culprit = start(server, "culprit", 0, 1);
    await_ready(&culprit);
    double ready = seconds_now();
    struct said said = finish(&culprit);
    expect_end_in_time(ready, 2);
    bool named = said.error == GPUSHARE_ERROR_LAUNCH_TIMEOUT;
    /* Work that began within the same few milliseconds can't be told apart. */
    if (named) {
        expect_word(&said, "'culprit'");
        expect_word(&said, "ran a kernel for more than 2s");
        expect_word(&said, "(unfinished: endless<<<(132,1,1),(32,1,1),163840>>>)");
        expect_in_log(server, "(unfinished: endless<<<(132,1,1),(32,1,1),163840>>>)");
    } else {
        assert_int_equal(said.error, GPUSHARE_ERROR_INTERRUPTED);
    }
    expect_in_log(server, "'culprit'");
    expect_in_log(server, "ran a kernel for more than 2s");
    expect_service(server);
    expect_others_go_on(others, OTHERS);
    end(server);
}

static void a_client_limits_its_own_kernels(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 1h}\n", "0");
    setenv("GPUSHARE_KERNEL_TIME_LIMIT", "700ms", 1);
    struct client culprit = start(server, "culprit", 0, 1);
    unsetenv("GPUSHARE_KERNEL_TIME_LIMIT");
    await_ready(&culprit);
    struct said said = finish(&culprit);
    assert_int_equal(said.error, GPUSHARE_ERROR_LAUNCH_TIMEOUT);
    expect_word(&said, "ran a kernel for more than 700ms");
    expect_word(&said, "(unfinished: endless<<<(132,1,1),(32,1,1),163840>>>)");
    expect_in_log(server, "(unfinished: endless<<<(132,1,1),(32,1,1),163840>>>)");
    expect_service(server);
    end(server);
}

/* The culprit has this limit from a rule or a profile, and all others a longer one, within which
 * their kernels stay. */
static void is_limited_by(const char *yaml)
{
    struct server *server = begin(yaml, "0");
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *other;
    gpushare_function *function;
    unsigned ms = 1000;
    void *parameters[] = {&ms};
    assert_int_equal(connect_to(server, "other", &other, &function, "milliseconds"), 0);
    assert_int_equal(gpushare_launch(function, one, one, 0, NULL, parameters), 0);
    if (gpushare_synchronize(other))
        fail_msg("other: %s", gpushare_error_text());
    gpushare_close(&other);
    struct client culprit = start(server, "culprit", 0, 1);
    await_ready(&culprit);
    struct said said = finish(&culprit);
    assert_int_equal(said.error, GPUSHARE_ERROR_LAUNCH_TIMEOUT);
    expect_word(&said, "'culprit' ran a kernel for more than 500ms");
    expect_service(server);
    end(server);
}

static void a_rule_limits_kernels(void **state)
{
    (void)state;
    is_limited_by("clients: {kernel_time_limit: 30s}\n"
                  "rules: [{match: {name: culprit}, kernel_time_limit: 500ms}]\n");
}

static void a_profile_limits_kernels(void **state)
{
    (void)state;
    is_limited_by("clients: {kernel_time_limit: 30s}\n"
                  "profiles: {short: {kernel_time_limit: 500ms}}\n"
                  "rules: [{match: {name: culprit}, profile: short}]\n");
}

/* With no work of others on the device there is no doubt whose kernel it was. */
static void the_owner_of_an_endless_kernel_gets_an_error_of_its_own(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 500ms}\n", "0");
    gpushare_connection *idle;
    gpushare_function *function;
    assert_int_equal(connect_to(server, "idle", &idle, &function, "milliseconds"), 0);
    struct client culprit = start(server, "culprit", 0, 1);
    await_ready(&culprit);
    double ready = seconds_now();
    struct said said = finish(&culprit);
    expect_end_in_time(ready, 0.5);
    assert_int_equal(said.error, GPUSHARE_ERROR_LAUNCH_TIMEOUT);
    expect_word(&said, "'culprit'");
    assert_int_equal(gpushare_synchronize(idle), 0);
    gpushare_close(&idle);
    expect_service(server);
    end(server);
}

/* All begin at once, each with one kernel. The last one's waits for those of fifteen others, for at
 * least 3.6 s; a kernel lasts 0.34 s at most, and less than 0.91 s beside neighbours on the strict
 * device. The limit lies between, so that a busy machine may make kernels three times as long.
 * Where tests have more patience, under a sanitizer, all of it is longer. */
static void kernels_within_the_limit_are_left_alone(void **state)
{
    (void)state;
    unsigned slower = (unsigned)patience_seconds(1);
    char limits[80];
    snprintf(limits, sizeof limits, "gpus: [{gpu: 0, kernel_time_limit: %ums}]\n", 2800 * slower);
    struct server *server = begin(limits, "0");
    struct client clients[CROWD];
    struct gate gate;
    assert_int_equal(pipe(gate.pipe), 0);
    for (int i = 0; i < CROWD; i++)
        clients[i] =
            start_at(&gate, server, "slow", slower * (240 + random_below(100)), slower * 240);
    for (int i = 0; i < CROWD; i++)
        await_ready(&clients[i]);
    gate_open(&gate);
    for (int i = 0; i < CROWD; i++) {
        struct said said = finish(&clients[i]);
        if (said.error)
            fail_msg("%s", said.text);
        assert_int_equal(said.launches, 1);
    }
    end(server);
}

static void a_queue_of_kernels_is_not_one_kernel(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 500ms}\n", "0");
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *gpu;
    gpushare_function *function;
    /* Two of them together are beyond the limit, whatever is drawn: two are in flight at first. */
    unsigned ms = 280 + random_below(100);
    void *parameters[] = {&ms};
    assert_int_equal(connect_to(server, "queue", &gpu, &function, "milliseconds"), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(gpushare_launch(function, one, one, 0, NULL, parameters), 0);
    gpushare_error error = gpushare_synchronize(gpu);
    if (error)
        fail_msg("%s", gpushare_error_text());
    gpushare_close(&gpu);
    end(server);
}

/* Two streams, each of which waits for the other behind a kernel that does not end. */
static void a_wait_behind_an_endless_kernel_does_not_excuse_it(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 500ms}\n", "0");
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_stream *streams[2];
    gpushare_event *events[2];
    assert_int_equal(connect_to(server, "crosswise", &gpu, &function, "endless"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &streams[i]),
                         0);
        assert_int_equal(gpushare_event_create(gpu, 0, &events[i]), 0);
    }
    double since = seconds_now();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpushare_launch(function, one, one, 0, streams[i], NULL), 0);
        assert_int_equal(gpushare_event_record(events[i], streams[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpushare_stream_wait_event(gpu, streams[i], events[!i]), 0);
    assert_int_equal(gpushare_synchronize(gpu), GPUSHARE_ERROR_LAUNCH_TIMEOUT);
    expect_end_in_time(since, 0.5);
    gpushare_close(&gpu);
    expect_service(server);
    end(server);
}

/* The stream that waits has two waits in flight. Between them is one kernel, which would have to
 * answer for the time of the second wait if they ended together. */
static void a_stream_that_waits_for_a_queue_is_left_alone(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 500ms}\n", "0");
    struct gpushare_dim one = {1, 1, 1};
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_stream *queue, *waits;
    gpushare_event *event;
    unsigned ms = 200 + random_below(100);
    void *parameters[] = {&ms};
    assert_int_equal(connect_to(server, "waits", &gpu, &function, "milliseconds"), 0);
    assert_int_equal(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &queue), 0);
    assert_int_equal(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &waits), 0);
    assert_int_equal(gpushare_event_create(gpu, 0, &event), 0);
    for (int i = 0; i < QUEUE; i++) {
        assert_int_equal(gpushare_launch(function, one, one, 0, queue, parameters), 0);
        if (i > 0 && i < QUEUE - 1)
            continue;
        assert_int_equal(gpushare_event_record(event, queue), 0);
        assert_int_equal(gpushare_stream_wait_event(gpu, waits, event), 0);
        assert_int_equal(gpushare_launch(function, one, one, 0, waits, parameters), 0);
    }
    gpushare_error error = gpushare_synchronize(gpu);
    if (error)
        fail_msg("%s", gpushare_error_text());
    gpushare_close(&gpu);
    end(server);
}

/* The first client has no limit; the second one's kernel stands behind its kernels. */
static void a_kernel_behind_work_that_a_wait_follows_is_not_blamed(void **state)
{
    (void)state;
    struct server *server = begin("clients: {}\n", "0");
    struct gpushare_dim grid = {4 * 132, 1, 1}, block = {32, 1, 1};
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_stream *streams[2];
    gpushare_event *events[2];
    unsigned ms = 1500;
    void *parameters[] = {&ms};
    assert_int_equal(connect_to(server, "long", &gpu, &function, "milliseconds"), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpushare_stream_create(gpu, GPUSHARE_STREAM_NON_BLOCKING, 0, &streams[i]),
                         0);
        assert_int_equal(gpushare_event_create(gpu, 0, &events[i]), 0);
    }
    setenv("GPUSHARE_KERNEL_TIME_LIMIT", "500ms", 1);
    struct client behind = start(server, "behind", 1, 60);
    unsetenv("GPUSHARE_KERNEL_TIME_LIMIT");
    await_ready(&behind);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpushare_launch(function, grid, block, 48 << 10, streams[i], parameters),
                         0);
        assert_int_equal(gpushare_event_record(events[i], streams[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpushare_stream_wait_event(gpu, streams[i], events[!i]), 0);
    if (gpushare_synchronize(gpu))
        fail_msg("%s", gpushare_error_text());
    struct said said = finish(&behind);
    if (said.error)
        fail_msg("behind: %s", said.text);
    gpushare_close(&gpu);
    end(server);
}

/* A client begins a kernel without an end, and dies. */
static void leave_endless_work(const struct server *server)
{
    struct client gone = start(server, "gone", 0, 1);
    await_ready(&gone);
    sleep_ms(300 + random_below(300));
    kill(gone.pid, SIGKILL);
    waitpid(gone.pid, NULL, 0);
    close(gone.from);
}

static void expect_worker_stays(const struct server *server, unsigned ms)
{
    pid_t before, after;
    assert_int_equal(server_workers(server, &before, 1), 1);
    sleep_ms(ms);
    assert_int_equal(server_workers(server, &after, 1), 1);
    assert_int_equal(before, after);
}

/* The worker is replaced, the log says for whose work, and this client goes on. */
static void expect_end_by_departed(const struct server *server, struct client *waits)
{
    await_ready(waits);
    expect_in_log(server, "'gone', which has left");
    expect_service(server);
    expect_others_go_on(waits, 1);
}

static void work_of_a_client_that_left_ends_when_others_wait(void **state)
{
    (void)state;
    struct server *server = begin("clients: {}\n", "1s");
    leave_endless_work(server);
    /* Nobody waits, so nobody is in its way. */
    expect_worker_stays(server, 2500);
    struct client waits = start(server, "waits", 5, 10000);
    expect_end_by_departed(server, &waits);
    end(server);
}

static void a_limit_set_while_others_wait_ends_work_of_a_client_that_left(void **state)
{
    (void)state;
    struct server *server = begin("gpus: [{gpu: 0, departed_time_limit: 0}]\n", "1h");
    leave_endless_work(server);
    /* Its load waits for the endless kernel. */
    struct client waits = start(server, "waits", 5, 10000);
    expect_worker_stays(server, 1500);
    json_decref(admin_answer(server, "set gpu 0 departed_time_limit=700ms"));
    expect_end_by_departed(server, &waits);
    end(server);
}

enum { OUTPUT = 16384 };

/* Runs gpusharectl. Returns its exit status; output: of both kinds. */
static int control(const struct server *server, const char *words, char output[OUTPUT])
{
    char command[512];
    snprintf(command, sizeof command, "%s/bin/gpusharectl --socket %s %s 2>&1", getenv("BUILD"),
             server_admin_socket(server), words);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    output[fread(output, 1, OUTPUT - 1, pipe)] = 0;
    return WEXITSTATUS(pclose(pipe));
}

/* A client that never works leaves; its host memory waits for client 2's work. No kill replaces the
 * worker for it. */
static void idle_client_leaves(const struct server *server)
{
    static char output[OUTPUT];
    struct gpushare_options options = {
        .size = sizeof options, .socket = server_socket(server), .name = "idle"};
    gpushare_connection *idle;
    pid_t before, after;
    assert_int_equal(server_workers(server, &before, 1), 1);
    assert_int_equal(gpushare_connect(&options, &idle), 0);
    gpushare_close(&idle);
    double end = seconds_now() + 20;
    do {
        assert_int_equal(control(server, "kill 3", output), 1);
        if (seconds_now() > end)
            fail_msg("kill: %s", output);
    } while (!strstr(output, "client 3 has left and has no work: it waits for a quiet window") ||
             !strstr(output, "which client 2 'gone' prevents"));
    assert_int_equal(control(server, "--json clients", output), 0);
    const char *own = strstr(output, "\"waits_for\": 2");
    if (!own || !strstr(own + 1, "\"waits_for\": 2"))
        fail_msg("clients: %s", output);
    assert_int_equal(control(server, "kill --force 3", output), 1);
    if (!strstr(output, "client 3 has left and has no work"))
        fail_msg("kill --force: %s", output);
    assert_int_equal(server_workers(server, &after, 1), 1);
    assert_int_equal(before, after);
}

static void kill_of_a_client_that_left_says_what_it_costs_and_is_carried_out(void **state)
{
    (void)state;
    static char output[OUTPUT];
    struct server *server = begin("clients: {}\n", "0");
    /* First: a load would wait for the endless kernel. */
    struct client waits = start(server, "waits", 5, 600000);
    await_ready(&waits);
    leave_endless_work(server);
    assert_int_equal(control(server, "kill 2", output), 1);
    if (!strstr(output, "client 2 has left") ||
        !strstr(output, "interrupts work of other clients (1): 1 'waits'"))
        fail_msg("kill: %s", output);
    idle_client_leaves(server);
    assert_int_equal(control(server, "kill --force 99", output), 1);
    assert_int_equal(control(server, "kill --force 2", output), 0);
    if (!strstr(output, "client 2 'gone'") || !strstr(output, "with the worker of GPU 0") ||
        !strstr(output, "\n  client 1 'waits'"))
        fail_msg("kill --force: %s", output);
    expect_in_log(server, "an administrator");
    expect_in_log(server, "client 2 'gone', which had left");
    expect_service(server);
    expect_others_go_on(&waits, 1);
    end(server);
}

/* A hundred million years of blocks, each of which ends. */
static void a_grid_that_never_comes_to_its_end_is_ended(void **state)
{
    (void)state;
    struct server *server = begin("clients: {kernel_time_limit: 500ms}\n", "0");
    struct gpushare_dim grid = {INT32_MAX, UINT16_MAX, 1}, block = {32, 1, 1};
    gpushare_connection *gpu;
    gpushare_function *function;
    unsigned ms = 1;
    void *parameters[] = {&ms};
    assert_int_equal(connect_to(server, "wild", &gpu, &function, "milliseconds"), 0);
    double since = seconds_now();
    assert_int_equal(gpushare_launch(function, grid, block, 0, NULL, parameters), 0);
    assert_int_equal(gpushare_synchronize(gpu), GPUSHARE_ERROR_LAUNCH_TIMEOUT);
    expect_end_in_time(since, 0.5);
    gpushare_close(&gpu);
    expect_service(server);
    end(server);
}

/* ---- modes, and shares of time without partitions ---- */

static const struct mode {
    const char *gpu, *client; /* of the configuration: keys of the GPU, and of each client */
    bool no_partitions;
} modes[] = {
    {"mode: concurrent", "priority: 0", false},
    {"mode: fair, lease: 20ms", "priority: 0", false},
    {"mode: strict, lease: 20ms", "time: {request: 20%}", false},
    {"mode: turns, quantum: 300ms", "priority: 0", false},
    {"mode: concurrent", "threads: {limit: 50%}", true},
};
enum { MODES = sizeof modes / sizeof *modes };

static const struct mode *draw_mode(void)
{
    return &modes[(random_below(1 << 16) >> 4) % MODES];
}

/* The limit is the culprit's alone: others' kernels may last as long as a busy machine makes them.
 */
static struct server *begin_mode(const struct mode *mode, const char *departed)
{
    static const char *const no_green[] = {"SOFTGPU_NO_GREEN=1", NULL};
    char yaml[256];
    print_message("%s; %s\n", mode->gpu, mode->client);
    snprintf(yaml, sizeof yaml,
             "gpus: [{gpu: 0, %s}]\nclients: {%s}\n"
             "rules: [{match: {name: culprit}, kernel_time_limit: 1s}]\n",
             mode->gpu, mode->client);
    return begin_with(yaml, departed, mode->no_partitions ? no_green : NULL);
}

/* Several at once have their turns on the worker that came. */
static void expect_service_to_all(const struct server *server)
{
    struct client clients[OTHERS];
    for (int i = 0; i < OTHERS; i++)
        clients[i] = start(server, "after", 5, 25);
    for (int i = 0; i < OTHERS; i++)
        await_ready(&clients[i]);
    for (int i = 0; i < OTHERS; i++) {
        struct said said = finish(&clients[i]);
        if (said.error)
            fail_msg("after: %s", said.text);
        assert_int_equal(said.launches, 5);
    }
}

static void a_kernel_is_ended(const struct mode *mode)
{
    struct server *server = begin_mode(mode, "0");
    struct client others[OTHERS], culprit;
    for (int i = 0; i < OTHERS; i++)
        others[i] = start(server, "other", 1 + random_below(20), 60000);
    for (int i = 0; i < OTHERS; i++)
        await_ready(&others[i]);
    culprit = start(server, "culprit", 0, 1);
    await_ready(&culprit);
    struct said said = finish(&culprit);
    if (said.error != GPUSHARE_ERROR_INTERRUPTED)
        assert_int_equal(said.error, GPUSHARE_ERROR_LAUNCH_TIMEOUT);
    expect_in_log(server, "'culprit'");
    expect_in_log(server, "ran a kernel for more than 1s");
    expect_service(server);
    expect_others_go_on(others, OTHERS);
    expect_service_to_all(server);
    end(server);
}

static void a_kernel_is_ended_in_each_mode(void **state)
{
    (void)state;
    for (int i = 0; i < MODES; i++)
        a_kernel_is_ended(&modes[i]);
}

static void work_of_a_client_that_left_ends_in_any_mode(void **state)
{
    (void)state;
    struct server *server = begin_mode(draw_mode(), "700ms");
    leave_endless_work(server);
    struct client waits = start(server, "waits", 5, 10000);
    expect_end_by_departed(server, &waits);
    expect_service_to_all(server);
    end(server);
}

static void kill_ends_work_of_a_client_that_left_in_any_mode(void **state)
{
    (void)state;
    static char output[OUTPUT];
    struct server *server = begin_mode(draw_mode(), "0");
    struct client waits = start(server, "waits", 5, 600000);
    await_ready(&waits);
    leave_endless_work(server);
    assert_int_equal(control(server, "kill --force 2", output), 0);
    expect_in_log(server, "client 2 'gone', which had left");
    expect_service(server);
    expect_others_go_on(&waits, 1);
    expect_service_to_all(server);
    end(server);
}

int main(void)
{
    server_needs_softgpu();
    random_state = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endless_kernel_is_ended_and_its_owner_is_named),
        cmocka_unit_test(a_client_limits_its_own_kernels),
        cmocka_unit_test(a_rule_limits_kernels),
        cmocka_unit_test(a_profile_limits_kernels),
        cmocka_unit_test(the_owner_of_an_endless_kernel_gets_an_error_of_its_own),
        cmocka_unit_test(kernels_within_the_limit_are_left_alone),
        cmocka_unit_test(a_queue_of_kernels_is_not_one_kernel),
        cmocka_unit_test(a_wait_behind_an_endless_kernel_does_not_excuse_it),
        cmocka_unit_test(a_stream_that_waits_for_a_queue_is_left_alone),
        cmocka_unit_test(a_kernel_behind_work_that_a_wait_follows_is_not_blamed),
        cmocka_unit_test(work_of_a_client_that_left_ends_when_others_wait),
        cmocka_unit_test(a_limit_set_while_others_wait_ends_work_of_a_client_that_left),
        cmocka_unit_test(kill_of_a_client_that_left_says_what_it_costs_and_is_carried_out),
        cmocka_unit_test(a_grid_that_never_comes_to_its_end_is_ended),
        cmocka_unit_test(a_kernel_is_ended_in_each_mode),
        cmocka_unit_test(work_of_a_client_that_left_ends_in_any_mode),
        cmocka_unit_test(kill_ends_work_of_a_client_that_left_in_any_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
