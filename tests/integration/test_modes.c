/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: programs must launch enough for seven tenths of their shares, over 1.5 s */
/* light: its kernels sleep */
/*
 * Modes of a device, set by gpusharectl while programs run, through the real server. Each kernel
 * counts in memory, so the test knows how much of the device each program had.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/ok.h"
#include "tests/support/scene.h"
#include "tests/support/server.h"

enum { CLIENTS = 3, KERNEL_US = 1000 };

/* A program has up to BATCHES x BATCH kernels queued, so that it has work in every lease however
 * late it gets a CPU. */
enum { BATCH = 16, BATCHES = 4 };

/* Sleeps for a millisecond of the device's time, then counts. */
static const char sleeper[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry sleeper(.param .u64 word)\n"
                              "{\n"
                              "\t.reg .b64 %rd<2>;\n"
                              "\tld.param.u64 %rd1, [word];\n"
                              "\tcvta.to.global.u64 %rd1, %rd1;\n"
                              "\tnanosleep.u32 1000000;\n"
                              "\tred.global.add.u32 [%rd1], 1;\n"
                              "\tret;\n}\n";

static struct server *server;

static struct program {
    gpushare_connection *gpu;
    gpushare_module *module;
    gpushare_function *function;
    gpushare_address word;
    pthread_t thread;
    uint32_t stop;     /* atomic */
    uint32_t launched; /* the thread's until it has ended */
    uint32_t done;     /* atomic; whole batches of those */
    gpushare_error error;
} programs[CLIENTS];

static int start_with(void **state, const char *const args[])
{
    memset(programs, 0, sizeof programs);
    *state = server = server_start(args, NULL);
    return 0;
}

static int start(void **state)
{
    return start_with(state, NULL);
}

static int start_for_scene(void **state)
{
    return start_with(state, scene_server_args);
}

static gpushare_error arrive(struct program *program, const char *request)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    setenv("GPUSHARE_TIME_REQUEST", request, 1);
    gpushare_error error = gpushare_connect(&options, &program->gpu);
    unsetenv("GPUSHARE_TIME_REQUEST");
    if (error)
        return error;
    static const uint32_t zero;
    OK(gpushare_module_load(program->gpu, sleeper, sizeof sleeper, &program->module));
    OK(gpushare_module_function(program->module, "sleeper", &program->function));
    OK(gpushare_memory_alloc(program->gpu, 4, &program->word));
    OK(gpushare_copy_to_device(program->gpu, program->word, &zero, sizeof zero));
    return GPUSHARE_SUCCESS;
}

static uint32_t count(struct program *program)
{
    uint32_t value = 0;
    OK(gpushare_synchronize(program->gpu));
    OK(gpushare_copy_from_device(program->gpu, &value, program->word, sizeof value));
    return value;
}

/* Launches without end, never far ahead of the device. */
static void *launch_on(void *argument)
{
    struct program *program = argument;
    struct gpushare_dim one = {1, 1, 1};
    void *arguments[] = {&program->word};
    gpushare_event *ends[BATCHES];
    for (int i = 0; i < BATCHES; i++)
        OK(gpushare_event_create(program->gpu, 0, &ends[i]));
    for (int batch = 0; !program->error && !__atomic_load_n(&program->stop, __ATOMIC_SEQ_CST);
         batch++) {
        if (batch >= BATCHES) {
            program->error = gpushare_event_synchronize(ends[batch % BATCHES]);
            __atomic_fetch_add(&program->done, BATCH, __ATOMIC_SEQ_CST);
        }
        for (int i = 0; i < BATCH && !program->error; i++, program->launched++)
            program->error = gpushare_launch(program->function, one, one, 0, NULL, arguments);
        if (!program->error)
            program->error = gpushare_event_record(ends[batch % BATCHES], NULL);
    }
    for (int i = 0; i < BATCHES; i++)
        OK(gpushare_event_destroy(ends[i]));
    return NULL;
}

static void begin(struct program *program)
{
    assert_int_equal(pthread_create(&program->thread, NULL, launch_on, program), 0);
}

static void end(struct program *program)
{
    __atomic_store_n(&program->stop, 1, __ATOMIC_SEQ_CST);
    pthread_join(program->thread, NULL);
    OK(program->error);
    assert_int_equal(count(program), program->launched);
    gpushare_close(&program->gpu);
}

static int control(const char *words)
{
    char command[1200];
    const char *build = getenv("BUILD");
    snprintf(command, sizeof command, "%s/bin/gpusharectl --socket %s %s >/dev/null",
             build ? build : "build", server_admin_socket(server), words);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void wait_ms(long ms)
{
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

/* Requests that an administrator sets are not lowered when clients of other users come. */
static void set_request(struct program *program, const char *request)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    char words[64];
    OK(gpushare_limits(program->gpu, &limits));
    snprintf(words, sizeof words, "set %u time.request=%s", limits.client, request);
    assert_int_equal(control(words), 0);
}

static void strict_shares_hold(void)
{
    struct timespec from, to;
    OK(arrive(&programs[0], "60%"));
    OK(arrive(&programs[1], "30%"));
    set_request(&programs[0], "60%");
    set_request(&programs[1], "30%");
    assert_int_equal(control("set gpu 0 mode=strict lease=20ms precision=10%"), 0);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 2; i++)
        begin(&programs[i]);
    wait_ms(1500);
    double had[2];
    for (int i = 0; i < 2; i++)
        had[i] = __atomic_load_n(&programs[i].done, __ATOMIC_SEQ_CST) * KERNEL_US / 1e6;
    clock_gettime(CLOCK_MONOTONIC, &to);
    double elapsed = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    for (int i = 0; i < 2; i++) {
        had[i] /= elapsed;
        __atomic_store_n(&programs[i].stop, 1, __ATOMIC_SEQ_CST);
        pthread_join(programs[i].thread, NULL);
        OK(programs[i].error);
    }
    print_message("60 %%: %.1f %%, 30 %%: %.1f %%\n", 100 * had[0], 100 * had[1]);
    /* A batch more may be done, and a lease be cut off at either end. A machine that is busy makes
     * kernels longer, and both have less: the relation of the two holds there as well. */
    assert_true(had[0] > 0.7 * 0.6 && had[0] < 0.67);
    assert_true(had[1] > 0.7 * 0.3 && had[1] < 0.37);
    assert_true(had[0] / had[1] > 0.87 * 2 && had[0] / had[1] < 1.15 * 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(count(&programs[i]), programs[i].launched);
        gpushare_close(&programs[i].gpu);
    }
}

static void strict_shares_hold_among_programs(void **state)
{
    (void)state;
    strict_shares_hold();
}

/* None of these neighbours requests time: they have what the two programs leave. */
static void strict_shares_hold_beside_unkind_neighbours(void **state)
{
    (void)state;
    struct scene *scene =
        scene_begin(server, SCENE_PAUSES | SCENE_VISITS | SCENE_STREAMS | SCENE_GREEDY);
    strict_shares_hold();
    assert_int_equal(scene_end(scene), 0);
}

static void modes_change_under_programs_and_lose_nothing(void **state)
{
    (void)state;
    static const char *const modes[] = {"set gpu 0 mode=fair lease=5ms",
                                        "set gpu 0 mode=turns quantum=5ms",
                                        "set gpu 0 mode=concurrent",
                                        "set gpu 0 mode=strict lease=10ms precision=50%",
                                        "set gpu 0 mode=fair lease=1s precision=5%",
                                        "set gpu 0 mode=concurrent"};
    for (int i = 0; i < CLIENTS; i++) {
        OK(arrive(&programs[i], "30%"));
        begin(&programs[i]);
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(control(modes[i]), 0);
        wait_ms(60);
    }
    for (int i = 0; i < CLIENTS; i++)
        end(&programs[i]);
}

static void requests_that_do_not_fit_are_refused_with_the_sum(void **state)
{
    (void)state;
    OK(arrive(&programs[0], "60%"));
    assert_int_equal(control("set gpu 0 mode=strict"), 0);
    assert_int_not_equal(arrive(&programs[1], "50%"), GPUSHARE_SUCCESS);
    if (!strstr(gpushare_error_text(), "makes 110 %"))
        fail_msg("the text has not the sum: %s", gpushare_error_text());
    OK(arrive(&programs[1], "40%"));
    gpushare_close(&programs[1].gpu);
    /* Mode concurrent accepts any requests; then strict is refused, and nothing is changed. */
    assert_int_equal(control("set gpu 0 mode=concurrent"), 0);
    OK(arrive(&programs[1], "50%"));
    assert_int_not_equal(control("set gpu 0 mode=strict 2>/dev/null"), 0);
    begin(&programs[0]);
    begin(&programs[1]);
    wait_ms(20);
    end(&programs[0]);
    end(&programs[1]);
}

/* A client that uses its share up and reconnects as a new client gets no more than one that stays.
 */
static void leaving_and_coming_back_gains_no_time(void **state)
{
    (void)state;
    struct gpushare_dim one = {1, 1, 1};
    struct program *comes_back = &programs[1];
    void *arguments[] = {&comes_back->word};
    struct timespec from, to;
    uint32_t ran = 0;
    double elapsed = 0;
    assert_int_equal(control("set gpu 0 mode=strict lease=20ms precision=10%"), 0);
    OK(arrive(&programs[0], "50%"));
    begin(&programs[0]);
    clock_gettime(CLOCK_MONOTONIC, &from);
    while (elapsed < 1.5) {
        OK(arrive(comes_back, "10%"));
        for (int i = 0; i < 20; i++)
            OK(gpushare_launch(comes_back->function, one, one, 0, NULL, arguments));
        OK(gpushare_synchronize(comes_back->gpu));
        gpushare_close(&comes_back->gpu);
        ran += 20;
        clock_gettime(CLOCK_MONOTONIC, &to);
        elapsed = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    }
    end(&programs[0]);
    double had = ran * KERNEL_US / 1e6 / elapsed;
    print_message("10 %%, a new client for each lease: %.1f %%\n", 100 * had);
    assert_true(had < 0.14);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(strict_shares_hold_among_programs, start, server_teardown),
        cmocka_unit_test_setup_teardown(strict_shares_hold_beside_unkind_neighbours,
                                        start_for_scene, server_teardown),
        cmocka_unit_test_setup_teardown(modes_change_under_programs_and_lose_nothing, start,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(leaving_and_coming_back_gains_no_time, start,
                                        server_teardown),
        cmocka_unit_test_setup_teardown(requests_that_do_not_fit_are_refused_with_the_sum, start,
                                        server_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
