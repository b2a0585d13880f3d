/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: users must have a fifth of their shares at least, over two seconds */
/* light: its kernels sleep */
/*
 * Accounts through the real server: users with one connection and with many. Each kernel notes in
 * memory when it began and ended, and the shares are counted from that. Other users are this
 * process with another effective uid while it connects, so most of it needs root.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/util.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

enum { PROGRAMS_MAX = 10, NOTES_MAX = 8000, RUN_MS = 2000 };

/* The first word counts; from the second on are pairs of ns: begin and end of each kernel. */
struct notes {
    uint64_t count, unused;
    struct {
        uint64_t begin, end;
    } of[NOTES_MAX];
};

/* Sleeps for a millisecond of the device's time, and notes it. */
static const char noting[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                             ".visible .entry noting(.param .u64 notes)\n"
                             "{\n"
                             "\t.reg .pred %p;\n"
                             "\t.reg .b64 %rd<6>;\n"
                             "\tld.param.u64 %rd1, [notes];\n"
                             "\tcvta.to.global.u64 %rd1, %rd1;\n"
                             "\tmov.u64 %rd2, %globaltimer;\n"
                             "\tnanosleep.u32 1000000;\n"
                             "\tatom.global.add.u64 %rd3, [%rd1], 1;\n"
                             "\tsetp.ge.u64 %p, %rd3, 8000;\n"
                             "\t@%p bra full;\n"
                             "\tshl.b64 %rd3, %rd3, 4;\n"
                             "\tadd.s64 %rd3, %rd3, %rd1;\n"
                             "\tmov.u64 %rd4, %globaltimer;\n"
                             "\tst.global.u64 [%rd3+16], %rd2;\n"
                             "\tst.global.u64 [%rd3+24], %rd4;\n"
                             "full:\n"
                             "\tret;\n}\n";

static struct server *server;

static struct program {
    gpushare_connection *gpu;
    gpushare_function *function;
    gpushare_address notes;
    pthread_t thread;
    gpushare_error error;
    unsigned notices; /* of a lowered request */
} programs[PROGRAMS_MAX];

static atomic_bool stops;

/* ---- programs ---- */

static int start_with(const char *yaml)
{
    char path[] = "/tmp/gpushare-accounts-XXXXXX";
    int fd = mkstemp(path);
    const char *args[] = {"--config", path, NULL};
    memset(programs, 0, sizeof programs);
    stops = false;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, yaml, strlen(yaml)), (ssize_t)strlen(yaml));
    close(fd);
    server = server_start(args, NULL);
    unlink(path);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    for (int i = 0; i < PROGRAMS_MAX; i++)
        gpushare_close(&programs[i].gpu);
    return server_stop(server);
}

static void note_notice(void *context, const char *text)
{
    struct program *program = context;
    program->notices += strstr(text, "the request of time is") != NULL;
}

/* Connects as this user; 0: as who runs the test. request: of time, as the client asks for itself;
 * NULL: none. */
static void arrive(struct program *program, uid_t uid, const char *request)
{
    struct gpushare_options options = {.size = sizeof options,
                                       .socket = server_socket(server),
                                       .notice = note_notice,
                                       .notice_context = program};
    static const struct notes none;
    gpushare_module *module;
    if (request)
        setenv("GPUSHARE_TIME_REQUEST", request, 1);
    if (uid)
        assert_int_equal(seteuid(uid), 0);
    gpushare_error error = gpushare_connect(&options, &program->gpu);
    if (uid)
        assert_int_equal(seteuid(0), 0);
    unsetenv("GPUSHARE_TIME_REQUEST");
    OK(error);
    OK(gpushare_module_load(program->gpu, noting, sizeof noting, &module));
    OK(gpushare_module_function(module, "noting", &program->function));
    OK(gpushare_memory_alloc(program->gpu, sizeof none, &program->notes));
    OK(gpushare_copy_to_device(program->gpu, program->notes, &none, sizeof none));
}

/* Launches until all programs stop, never far ahead of the device. */
static void *launch_on(void *argument)
{
    struct program *program = argument;
    struct gpushare_dim one = {1, 1, 1};
    void *arguments[] = {&program->notes};
    for (unsigned i = 1; !program->error && !stops; i++) {
        program->error = gpushare_launch(program->function, one, one, 0, NULL, arguments);
        if (!program->error && i % 64 == 0)
            program->error = gpushare_synchronize(program->gpu);
    }
    return NULL;
}

static void run(unsigned count)
{
    const struct timespec time = {.tv_sec = RUN_MS / 1000, .tv_nsec = RUN_MS % 1000 * 1000000L};
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&programs[i].thread, NULL, launch_on, &programs[i]), 0);
    nanosleep(&time, NULL);
    stops = true;
    for (unsigned i = 0; i < count; i++)
        pthread_join(programs[i].thread, NULL);
    for (unsigned i = 0; i < count; i++)
        OK(programs[i].error);
}

/* ---- shares ---- */

/* The time in which all programs had work, by the device's clock. */
struct window {
    uint64_t begin, end;
};

static void read_notes(struct notes notes[], unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        OK(gpushare_copy_from_device(programs[i].gpu, &notes[i], programs[i].notes,
                                     sizeof notes[i]));
        assert_in_range(notes[i].count, 1, NOTES_MAX);
    }
}

/* From 200 ms after the first kernel on, as all begin at once, for as long as they were to run. */
static struct window find_window(const struct notes notes[], unsigned count)
{
    struct window window = {UINT64_MAX, 0};
    for (unsigned i = 0; i < count; i++)
        window.begin = min(window.begin, notes[i].of[0].begin);
    window.begin += UINT64_C(200000000);
    window.end = window.begin + (RUN_MS - 400) * UINT64_C(1000000);
    return window;
}

/* The part of the window in which kernels of these programs ran, in per cent: their sum, since one
 * runs at a time. */
static double share_of(const struct notes notes[], unsigned first, unsigned count,
                       const struct window *window)
{
    uint64_t sum = 0;
    for (unsigned i = first; i < first + count; i++)
        for (uint64_t k = 0; k < notes[i].count; k++) {
            const uint64_t begin = max(notes[i].of[k].begin, window->begin);
            const uint64_t end = min(notes[i].of[k].end, window->end);
            sum += saturating_sub(end, begin);
        }
    return 100 * (double)sum / (double)(window->end - window->begin);
}

static void expect_share(const char *whose, double share, double least, double most)
{
    print_message("%s: %.1f %%\n", whose, share);
    if (share < least || share > most)
        fail_msg("%s had %.1f %%, and should have %.1f to %.1f %%", whose, share, least, most);
}

/* Two leases and a kernel, of this window, and half a point for what the notes don't cover. */
static const double tolerance = 100 * 21.0 / (RUN_MS - 400) + 0.5;

static struct notes notes[PROGRAMS_MAX];

/* The example of docs/sharing.md, with shorter leases; the first user has three connections. */
static void three_users_have_what_the_page_says(void **state)
{
    (void)state;
    static const uid_t uids[] = {1001, 1001, 1001, 1002, 1003};
    start_with("gpus:\n"
               "  - {gpu: 0, mode: strict, lease: 10ms, precision: 10%}\n"
               "users:\n"
               "  - {uid: 1001, time: {request: 50%}}\n"
               "  - {uid: 1002, time: {request: 33%}}\n"
               "  - {uid: 1003, time: {request: 10%}}\n");
    for (unsigned i = 0; i < 5; i++)
        arrive(&programs[i], uids[i], NULL);
    run(5);
    read_notes(notes, 5);
    const struct window window = find_window(notes, 5);
    /* On a busy machine a program may launch too little for its share; it never gets more. */
    expect_share("user 1001", share_of(notes, 0, 3, &window), 10, 50 + tolerance);
    expect_share("user 1002", share_of(notes, 3, 1, &window), 6, 33 + tolerance);
    expect_share("user 1003", share_of(notes, 4, 1, &window), 2, 10 + tolerance);
}

static void a_users_limit_is_one_for_all_connections(void **state)
{
    (void)state;
    char yaml[200];
    snprintf(yaml, sizeof yaml,
             "gpus:\n  - {gpu: 0, mode: fair, lease: 10ms, precision: 10%%}\n"
             "users:\n  - {uid: %u, time: {limit: 30%%}}\n",
             (unsigned)getuid());
    start_with(yaml);
    for (unsigned i = 0; i < 3; i++)
        arrive(&programs[i], 0, NULL);
    run(3);
    read_notes(notes, 3);
    const struct window window = find_window(notes, 3);
    expect_share("the user", share_of(notes, 0, 3, &window), 6, 30 + tolerance);
}

/* Divided by client, the first user would have a ninth. */
static void eight_connections_gain_nothing(const char *yaml)
{
    start_with(yaml);
    arrive(&programs[0], 1001, NULL);
    for (unsigned i = 1; i < 9; i++)
        arrive(&programs[i], 1002, NULL);
    run(9);
    read_notes(notes, 9);
    const struct window window = find_window(notes, 9);
    const double one = share_of(notes, 0, 1, &window), eight = share_of(notes, 1, 8, &window);
    print_message("one connection: %.1f %%, eight: %.1f %%\n", one, eight);
    assert_true(one > (one + eight) / 4);
    assert_true(eight > (one + eight) / 4);
}

static void eight_connections_gain_nothing_in_fair(void **state)
{
    (void)state;
    eight_connections_gain_nothing("gpus:\n"
                                   "  - {gpu: 0, mode: fair, lease: 10ms, precision: 10%}\n");
}

static void eight_connections_gain_nothing_in_turns(void **state)
{
    (void)state;
    eight_connections_gain_nothing("gpus:\n  - {gpu: 0, mode: turns, quantum: 10ms}\n");
}

static double requested(struct program *program)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    OK(gpushare_limits(program->gpu, &limits));
    return limits.time_request;
}

static void a_request_of_ones_own_leaves_others_their_part(void **state)
{
    (void)state;
    const struct timespec moment = {.tv_nsec = 20000000};
    start_with("gpus:\n  - {gpu: 0, mode: strict, lease: 10ms, precision: 10%}\n");
    arrive(&programs[0], 1001, "100%");
    assert_true(requested(&programs[0]) == 100);
    arrive(&programs[1], 1002, NULL);
    assert_true(requested(&programs[0]) == 50);
    assert_int_equal(programs[0].notices, 1);
    run(2);
    read_notes(notes, 2);
    const struct window window = find_window(notes, 2);
    expect_share("user 1001", share_of(notes, 0, 1, &window), 0, 50 + tolerance);
    expect_share("user 1002", share_of(notes, 1, 1, &window), 5, 100);
    gpushare_close(&programs[1].gpu);
    const unsigned most = (unsigned)(patience_seconds(10) * 50);
    for (unsigned waited = 0; requested(&programs[0]) != 100; waited++) {
        assert_true(waited < most);
        nanosleep(&moment, NULL);
    }
    arrive(&programs[1], 1002, "90%");
    assert_true(requested(&programs[1]) == 50);
    assert_int_equal(programs[1].notices, 1);
    assert_true(requested(&programs[0]) == 50);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest for_anybody[] = {
        cmocka_unit_test_teardown(a_users_limit_is_one_for_all_connections, stop),
    };
    const struct CMUnitTest for_root[] = {
        cmocka_unit_test_teardown(three_users_have_what_the_page_says, stop),
        cmocka_unit_test_teardown(eight_connections_gain_nothing_in_fair, stop),
        cmocka_unit_test_teardown(eight_connections_gain_nothing_in_turns, stop),
        cmocka_unit_test_teardown(a_request_of_ones_own_leaves_others_their_part, stop),
    };
    int failed = cmocka_run_group_tests(for_anybody, NULL, NULL);
    if (failed || geteuid() == 0)
        return failed + (geteuid() ? 0 : cmocka_run_group_tests(for_root, NULL, NULL));
    printf("the tests of several users need root; that of one user passed\n");
    return 77;
}
