/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* light: one thread of its worker stands still */
/* timed: the call must be shown within the patience of a log's line */
/* draining: not, for its driver makes calls hang by itself */
/*
 * One thread of a worker hangs in a call of the driver, while the others go on: the thread and its
 * call stand in the log, in status and in each client's error, the worker is replaced where there
 * is a limit, and a call that comes back has cost nothing. tests/programs/shim keeps the call from
 * going on. test_watchdog.c has workers that stand still whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/kernels.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

static unsigned random_state;

/* Calls that each thread makes for every batch, and while one runs. */
static const char *const submitter_calls[] = {"cuLaunchKernel", "cuStreamBatchMemOp"};
static const char *const completer_calls[] = {"cuStreamQuery", "cuEventQuery"};

static const char *draw_call(const char *const calls[2])
{
    return calls[((unsigned)rand_r(&random_state) >> 8) % 2];
}

static pid_t worker_of(const struct server *server)
{
    pid_t worker;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    return worker;
}

static void sleep_ms(unsigned ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

enum { KERNEL_MS = 300 };

/* A client with a kernel, and the file whose presence makes the call hang. */
struct hang {
    const char *thread, *call;
    char folder[32], file[64];
    struct server *server;
    gpushare_connection *gpu, *idle;
    gpushare_function *function;
};

/* Without a limit of silence, so that nothing is replaced while the test looks. */
static struct server *begin_shim(const struct hang *hang)
{
    char path[512], below[512], shim[512], driver[600], hangs[256];
    const char *const args[] = {
        "--driver", shim, "--watchdog-warning", "300ms", "--hello-timeout", "1", "--watchdog-limit",
        "0",        NULL};
    const char *const env[] = {driver, hangs, "SOFTGPU_CONTEXT_LOCK=0", NULL};
    assert_non_null(realpath(server_build_path("lib/softgpu/libcuda.so.1", path, 512), below));
    assert_non_null(
        realpath(server_build_path("tests/programs/shim/libcuda.so.1", path, 512), shim));
    snprintf(driver, sizeof driver, "SHIM_DRIVER=%s", below);
    snprintf(hangs, sizeof hangs, "SHIM_HANGS=%s %s %s", hang->thread, hang->call, hang->file);
    return server_start(args, env);
}

/* The kernel lasts so long that the completer asks the driver while it runs. */
static void launch_one(const struct hang *hang)
{
    static const struct gpushare_dim one = {1, 1, 1};
    uint32_t ms = KERNEL_MS;
    void *parameters[] = {&ms};
    assert_int_equal(gpushare_launch(hang->function, one, one, 0, NULL, parameters), 0);
}

static void touch(const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* Works once, and then hangs: returns when the server has said so in its log. */
static void hang_begin(struct hang *hang)
{
    char line[128];
    assert_non_null(mkdtemp(strcpy(hang->folder, "/tmp/gpushare-hang-XXXXXX")));
    snprintf(hang->file, sizeof hang->file, "%s/hang", hang->folder);
    print_message("%s hangs in %s\n", hang->thread, hang->call);
    hang->server = begin_shim(hang);
    hang->idle = arrival_connect(hang->server, 0);
    hang->gpu = arrival_connect(hang->server, 0);
    hang->function = arrival_load(hang->gpu, kernels_ptx, "milliseconds");
    launch_one(hang);
    assert_int_equal(gpushare_synchronize(hang->gpu), 0);
    touch(hang->file);
    launch_one(hang);
    snprintf(line, sizeof line, "thread %s in %s", hang->thread, hang->call);
    if (!server_log_wait(hang->server, line))
        fail_msg("the log does not say \"%s\"", line);
}

static void hang_end(struct hang *hang)
{
    gpushare_close(&hang->gpu);
    gpushare_close(&hang->idle);
    assert_int_equal(server_stop(hang->server), 0);
    rmdir(hang->folder);
}

/* The words of status about the silence. Calls of a batch are noted without the clock, so the list
 * of calls that take long has the completer's alone. */
static void expect_shown(const struct hang *hang)
{
    char silence[128];
    size_t place;
    json_t *call, *device = admin_answer_device(hang->server);
    bool shown = false;
    snprintf(silence, sizeof silence, "thread %s in %s", hang->thread, hang->call);
    assert_string_equal(json_string_value(json_object_get(device, "worker_silence")), silence);
    assert_true(json_number_value(json_object_get(device, "worker_silent_seconds")) >= 0.3);
    json_array_foreach(json_object_get(device, "worker_calls"), place, call)
    {
        const char *thread = json_string_value(json_object_get(call, "thread"));
        const char *name = json_string_value(json_object_get(call, "call"));
        shown |= !strcmp(thread, hang->thread) && !strcmp(name, hang->call);
    }
    json_decref(device);
    assert_int_equal(shown, !strcmp(hang->thread, "completer"));
}

static void expect_told(const struct hang *hang, const char *words)
{
    char silence[128];
    snprintf(silence, sizeof silence, "(thread %s in %s)", hang->thread, hang->call);
    if (!strstr(gpushare_error_text(), words) || !strstr(gpushare_error_text(), silence))
        fail_msg("%s", gpushare_error_text());
}

/* The log names the thread and the call, and the client that hung goes on. Its work may have ended
 * before: the device tells it so itself. */
static void await_replacement(const struct hang *hang, pid_t worker)
{
    char words[160];
    pid_t now = worker;
    assert_true(server_log_wait(hang->server, "did not answer for"));
    snprintf(words, sizeof words, "(thread %s in %s)", hang->thread, hang->call);
    assert_true(server_log_wait(hang->server, words));
    for (int left = (int)(patience_seconds(20) * 100); left > 0 && now == worker; left--) {
        sleep_ms(10);
        if (server_workers(hang->server, &now, 1) != 1)
            now = worker;
    }
    gpushare_error error = gpushare_synchronize(hang->gpu);
    if (error == GPUSHARE_ERROR_INTERRUPTED)
        error = gpushare_stream_recover(hang->gpu, NULL, NULL);
    else
        assert_string_equal(hang->thread, "completer");
    assert_int_equal(error, 0);
}

static void expect_arrivals_told(const struct hang *hang)
{
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(hang->server)};
    gpushare_connection *gpu = NULL;
    assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_DEVICE_NOT_READY);
    expect_told(hang, "has not answered for");
}

static void expect_service(const struct hang *hang)
{
    gpushare_address memory;
    gpushare_connection *gpu = arrival_connect(hang->server, 0);
    assert_int_equal(gpushare_memory_alloc(gpu, 4096, &memory), 0);
    assert_int_equal(gpushare_fill(gpu, memory, 7, 4, 4), 0);
    gpushare_close(&gpu);
}

static void expect_replaced(struct hang *hang)
{
    pid_t worker = worker_of(hang->server);
    json_decref(admin_answer(hang->server, "set gpu 0 watchdog_limit=700ms"));
    server_log_wait(hang->server, "did not answer for");
    unlink(hang->file);
    await_replacement(hang, worker);
    launch_one(hang);
    assert_int_equal(gpushare_synchronize(hang->gpu), 0);
    assert_int_equal(gpushare_synchronize(hang->idle), 0);
    expect_service(hang);
    assert_int_not_equal(worker_of(hang->server), worker);
}

static void a_submitter_that_hangs_is_named_with_its_call_and_replaced(void **state)
{
    (void)state;
    struct hang hang = {.thread = "submitter", .call = draw_call(submitter_calls)};
    hang_begin(&hang);
    expect_shown(&hang);
    expect_arrivals_told(&hang);
    expect_replaced(&hang);
    hang_end(&hang);
}

static void a_completer_that_hangs_is_named_with_its_call_and_replaced(void **state)
{
    (void)state;
    struct hang hang = {.thread = "completer", .call = draw_call(completer_calls)};
    hang_begin(&hang);
    sleep_ms(1000); /* a call is listed from a second on */
    expect_shown(&hang);
    expect_replaced(&hang);
    hang_end(&hang);
}

static void a_thread_whose_call_comes_back_has_lost_nothing(void **state)
{
    (void)state;
    struct hang hang = {.thread = "submitter", .call = draw_call(submitter_calls)};
    if ((unsigned)rand_r(&random_state) >> 8 & 1)
        hang = (struct hang){.thread = "completer", .call = draw_call(completer_calls)};
    hang_begin(&hang);
    pid_t worker = worker_of(hang.server);
    unlink(hang.file);
    assert_true(server_log_wait(hang.server, "the worker answers again"));
    assert_int_equal(gpushare_synchronize(hang.gpu), 0);
    launch_one(&hang);
    assert_int_equal(gpushare_synchronize(hang.gpu), 0);
    assert_int_equal(worker_of(hang.server), worker);
    hang_end(&hang);
}

int main(void)
{
    server_needs_softgpu();
    random_state = seed_draw();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submitter_that_hangs_is_named_with_its_call_and_replaced),
        cmocka_unit_test(a_completer_that_hangs_is_named_with_its_call_and_replaced),
        cmocka_unit_test(a_thread_whose_call_comes_back_has_lost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
