/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors *
 * timed: a worker that runs must answer within a second
 * light: its workers stand still
 * long: one worker after the other is given up
 * draining: not, for no kernel runs: it stops the worker
 */
/*
 * A worker that does not answer: it is noticed, it is replaced, and no client is told what is not
 * so. SIGSTOP stands for whatever makes a worker hang.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

enum { CLIENTS = 4, FILLS = 200 };

static unsigned random_state;

static void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static struct server *begin(const char *warning, const char *limit)
{
    const char *const args[] = {
        "--watchdog-warning", warning, "--watchdog-limit", limit, "--hello-timeout", "1", NULL};
    return server_start(args, NULL);
}

static pid_t worker_of(struct server *server)
{
    pid_t worker;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    return worker;
}

static gpushare_error arrive(struct server *server, gpushare_connection **gpu)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    return gpushare_connect(&options, gpu);
}

static gpushare_error work_once(gpushare_connection *gpu)
{
    gpushare_address memory;
    uint32_t read[4] = {0};
    gpushare_error error = gpushare_memory_alloc(gpu, 4096, &memory);
    if (!error)
        error = gpushare_fill(gpu, memory, 7, 4, 4);
    if (!error)
        error = gpushare_copy(gpu, (uint64_t)(uintptr_t)read, memory, sizeof read);
    if (!error && read[3] != 7)
        fail_msg("a fill of 7 reads as %u", read[3]);
    return error ? error : gpushare_memory_free(gpu, memory);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A client that attaches at some time while the worker stands still. */
struct arrival {
    pthread_t thread;
    struct server *server;
    unsigned after_ms;
    gpushare_error error;
    char text[400];
};

static void *arrive_late(void *argument)
{
    struct arrival *arrival = argument;
    gpushare_connection *gpu = NULL;
    sleep_ms(arrival->after_ms);
    arrival->error = arrive(arrival->server, &gpu);
    if (!arrival->error)
        arrival->error = work_once(gpu);
    if (arrival->error)
        snprintf(arrival->text, sizeof arrival->text, "%s", gpushare_error_text());
    if (gpu)
        gpushare_close(&gpu);
    return NULL;
}

static void start_arrivals(struct server *server, struct arrival arrivals[CLIENTS], unsigned span)
{
    for (int i = 0; i < CLIENTS; i++) {
        arrivals[i] =
            (struct arrival){.server = server, .after_ms = (unsigned)rand_r(&random_state) % span};
        printf("arrival after %u ms\n", arrivals[i].after_ms);
        pthread_create(&arrivals[i].thread, NULL, arrive_late, &arrivals[i]);
    }
}

/* The log says why the worker was replaced. */
static void expect_words(const struct server *server)
{
    assert_true(server_log_wait(server, "did not answer for"));
    char *log = server_log(server);
    const char *words = strstr(log, "did not answer for");
    assert_non_null(strstr(words, "the process is stopped"));
    free(log);
}

static void a_stopped_worker_is_replaced_and_its_clients_go_on(void **state)
{
    (void)state;
    struct server *server = begin("300ms", "1500ms");
    struct arrival arrivals[CLIENTS];
    gpushare_connection *gpu, *later;
    assert_int_equal(arrive(server, &gpu), 0);
    assert_int_equal(work_once(gpu), 0);
    pid_t worker = worker_of(server);
    kill(worker, SIGSTOP);
    double stopped = seconds_now();
    start_arrivals(server, arrivals, 1500);
    gpushare_error error = work_once(gpu);
    double took = seconds_now() - stopped;
    /* Work that the stopped worker had not begun is carried out by the next one. */
    assert_int_equal(error, 0);
    /* The last answer may be a look old; three seconds more are for the new process. */
    if (took < 1.0 || took > 1.5 + 3)
        fail_msg("the worker was replaced after %.2f s; the limit is 1.5 s", took);
    expect_words(server);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(arrivals[i].thread, NULL);
        if (arrivals[i].error && arrivals[i].error != GPUSHARE_ERROR_DEVICE_NOT_READY)
            fail_msg("arrival: %s", arrivals[i].text);
        if (arrivals[i].error)
            assert_non_null(strstr(arrivals[i].text, "worker"));
    }
    assert_int_equal(arrive(server, &later), 0);
    assert_int_equal(work_once(later), 0);
    assert_int_not_equal(worker_of(server), worker);
    gpushare_close(&gpu);
    gpushare_close(&later);
    assert_int_equal(server_stop(server), 0);
}

static void a_worker_that_goes_on_loses_nothing(void **state)
{
    (void)state;
    struct server *server = begin("200ms", "20s");
    struct arrival arrivals[CLIENTS];
    gpushare_connection *gpu;
    assert_int_equal(arrive(server, &gpu), 0);
    pid_t worker = worker_of(server);
    gpushare_address memory;
    uint32_t *read;
    assert_int_equal(gpushare_memory_alloc(gpu, FILLS * sizeof *read, &memory), 0);
    assert_int_equal(gpushare_host_alloc(gpu, FILLS * sizeof *read, (void **)&read), 0);
    /* Half of the work is in the rings or on the device when the worker stops. */
    for (unsigned i = 0; i < FILLS; i++) {
        if (i == FILLS / 2)
            kill(worker, SIGSTOP);
        assert_int_equal(gpushare_fill_async(gpu, memory + i * sizeof *read, 7 + i, 4, 1, NULL), 0);
    }
    start_arrivals(server, arrivals, 1500);
    sleep_ms(2000);
    kill(worker, SIGCONT);
    assert_int_equal(gpushare_copy(gpu, (uint64_t)(uintptr_t)read, memory, FILLS * sizeof *read),
                     0);
    for (unsigned i = 0; i < FILLS; i++)
        assert_int_equal(read[i], 7 + i);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(arrivals[i].thread, NULL);
        if (arrivals[i].error)
            fail_msg("arrival: %s", arrivals[i].text);
    }
    assert_int_equal(work_once(gpu), 0);
    assert_int_equal(worker_of(server), worker);
    gpushare_close(&gpu);
    assert_int_equal(server_stop(server), 0);
}

static void a_silent_worker_is_shown_until_it_answers(void **state)
{
    (void)state;
    struct server *server = begin("200ms", "20s");
    pid_t worker = worker_of(server);
    json_t *device = admin_answer_device(server);
    assert_true(json_is_null(json_object_get(device, "worker_silence")));
    assert_true(json_is_null(json_object_get(device, "worker_silent_seconds")));
    json_decref(device);

    double stopped = seconds_now();
    kill(worker, SIGSTOP);
    assert_true(server_log_wait(server, "the worker has not answered for"));
    device = admin_answer_device(server);
    const char *silence = json_string_value(json_object_get(device, "worker_silence"));
    assert_non_null(silence);
    assert_non_null(strstr(silence, "the process is stopped"));
    double seconds = json_number_value(json_object_get(device, "worker_silent_seconds"));
    assert_true(seconds >= 0.2 && seconds <= seconds_now() - stopped + 1);
    json_decref(device);

    kill(worker, SIGCONT);
    assert_true(server_log_wait(server, "the worker answers again"));
    device = admin_answer_device(server);
    assert_true(json_is_null(json_object_get(device, "worker_silence")));
    assert_true(json_is_null(json_object_get(device, "worker_silent_seconds")));
    json_decref(device);
    assert_int_equal(server_stop(server), 0);
}

/* It was being attached, and lost nothing: it learns why, and that it may come again. */
static void a_client_that_is_being_attached_learns_why_the_worker_was_replaced(void **state)
{
    (void)state;
    const char *const args[] = {"--watchdog-warning", "0", "--watchdog-limit", "900ms", NULL};
    struct server *server = server_start(args, NULL);
    gpushare_connection *gpu = NULL;
    kill(worker_of(server), SIGSTOP);
    assert_int_equal(arrive(server, &gpu), GPUSHARE_ERROR_DEVICE_NOT_READY);
    if (!strstr(gpushare_error_text(), "did not answer for") ||
        !strstr(gpushare_error_text(), "connect again"))
        fail_msg("%s", gpushare_error_text());
    gpushare_close(&gpu);
    assert_int_equal(server_stop(server), 0);
}

/* A program in the worker's place: the second worker that starts to serve stands still. */
static void write_program(char path[64], char count[80])
{
    strcpy(path, "/tmp/gpushare-worker-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0 && fchmod(fd, 0700) == 0);
    snprintf(count, 80, "%.64s.count", path);
    dprintf(fd,
            "#!/bin/sh\n"
            "case \"$*\" in *--list*) ;; *)\n"
            "echo >>%s\n"
            "test $(wc -l <%s) = 2 && kill -STOP $$ ;;\n"
            "esac\n"
            "exec %s/libexec/gpushare-worker \"$@\"\n",
            count, count, getenv("BUILD"));
    close(fd);
}

static void a_worker_that_hangs_while_it_starts_is_replaced(void **state)
{
    (void)state;
    char program[64], count[80];
    gpushare_connection *gpu = NULL;
    write_program(program, count);
    const char *const args[] = {"--worker", program, "--watchdog-limit", "600ms", "--hello-timeout",
                                "15",       NULL};
    struct server *server = server_start(args, NULL);
    pid_t first = worker_of(server);
    kill(first, SIGKILL);
    /* Until the first is seen to be gone, a client is told to come again. The third serves. */
    gpushare_error error = arrive(server, &gpu);
    for (int tries = 0; error == GPUSHARE_ERROR_DEVICE_NOT_READY && tries < 3; tries++)
        error = arrive(server, &gpu);
    if (error)
        fail_msg("%s", gpushare_error_text());
    assert_int_equal(work_once(gpu), 0);
    gpushare_close(&gpu);
    assert_int_equal(server_stop(server), 0);
    unlink(program);
    unlink(count);
}

/* A worker that is stopped can't be asked about anything. */
static void a_limit_set_while_the_worker_is_stopped_is_in_force_at_once(void **state)
{
    (void)state;
    struct server *server = begin("0", "0");
    gpushare_connection *gpu = NULL;
    assert_int_equal(arrive(server, &gpu), 0);
    pid_t worker = worker_of(server);
    kill(worker, SIGSTOP);
    sleep_ms(500 + (unsigned)rand_r(&random_state) % 500);
    json_decref(admin_answer(server, "set gpu 0 watchdog_warning=200ms"));
    assert_true(server_log_wait(server, "the worker has not answered for"));
    assert_int_equal(worker_of(server), worker);
    double set = seconds_now();
    json_decref(admin_answer(server, "set gpu 0 watchdog_limit=900ms"));
    assert_int_equal(work_once(gpu), 0);
    if (seconds_now() - set > 0.9 + 3)
        fail_msg("the worker was replaced after %.2f s", seconds_now() - set);
    expect_words(server);
    gpushare_close(&gpu);
    gpu = NULL;

    /* Taken back, it replaces nothing any more. */
    json_decref(admin_answer(server, "set gpu 0 watchdog_warning=0 watchdog_limit=0"));
    assert_int_equal(arrive(server, &gpu), 0);
    worker = worker_of(server);
    kill(worker, SIGSTOP);
    sleep_ms(2000);
    kill(worker, SIGCONT);
    assert_int_equal(work_once(gpu), 0);
    assert_int_equal(worker_of(server), worker);
    gpushare_close(&gpu);
    assert_int_equal(server_stop(server), 0);
}

/* Without a limit the worker stays; whoever waits learns for what. */
static void arrivals_are_told_that_the_worker_does_not_answer(void **state)
{
    (void)state;
    struct server *server = begin("200ms", "0");
    struct arrival arrivals[CLIENTS];
    pid_t worker = worker_of(server);
    kill(worker, SIGSTOP);
    start_arrivals(server, arrivals, 1500);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(arrivals[i].thread, NULL);
        assert_int_equal(arrivals[i].error, GPUSHARE_ERROR_DEVICE_NOT_READY);
        if (!strstr(arrivals[i].text, "has not answered for") ||
            !strstr(arrivals[i].text, "the process is stopped"))
            fail_msg("arrival: %s", arrivals[i].text);
    }
    kill(worker, SIGCONT);
    assert_int_equal(server_stop(server), 0);
}

int main(void)
{
    server_needs_softgpu();
    random_state = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_worker_is_replaced_and_its_clients_go_on),
        cmocka_unit_test(a_worker_that_goes_on_loses_nothing),
        cmocka_unit_test(a_silent_worker_is_shown_until_it_answers),
        cmocka_unit_test(a_client_that_is_being_attached_learns_why_the_worker_was_replaced),
        cmocka_unit_test(a_worker_that_hangs_while_it_starts_is_replaced),
        cmocka_unit_test(a_limit_set_while_the_worker_is_stopped_is_in_force_at_once),
        cmocka_unit_test(arrivals_are_told_that_the_worker_does_not_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
