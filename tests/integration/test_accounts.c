/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: programs must keep work on the device, in one of three tries of some two seconds */
/* light: its kernels sleep */
/*
 * Accounts through the real server: users with one connection and with many. Each kernel notes in
 * memory when it began and ended, by the device's clock, and the shares are counted from that.
 *
 * Users are compared by the kernels that ran while all of them had work, so a server or a program
 * that is late takes nothing from one of them alone. A try in which a program left the device
 * without work says nothing, and is repeated.
 *
 * Other users are this process with another effective uid while it connects, so most of it needs
 * root.
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

enum { PROGRAMS_MAX = 10, NOTES_MAX = 8000, TRIES = 3 };

/* A program has up to BATCHES x BATCH kernels of a millisecond queued. */
enum { BATCH = 64, BATCHES = 4 };

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
    unsigned dry;     /* number of times that nothing of it was queued any more */
} programs[PROGRAMS_MAX];

static atomic_bool stops;
static atomic_uint kernels; /* that are known to be done, of all programs */

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
    OK(gpushare_memory_alloc(program->gpu, sizeof(struct notes), &program->notes));
}

/* Launches until all programs stop, and keeps work queued. */
static void *launch_on(void *argument)
{
    struct program *program = argument;
    struct gpushare_dim one = {1, 1, 1};
    void *arguments[] = {&program->notes};
    gpushare_event *ends[BATCHES];
    for (unsigned i = 0; i < BATCHES; i++)
        OK(gpushare_event_create(program->gpu, 0, &ends[i]));
    for (unsigned batch = 0; !program->error && !stops; batch++) {
        gpushare_event *end = ends[batch % BATCHES];
        if (batch >= BATCHES) {
            program->error = gpushare_event_synchronize(end);
            kernels += BATCH;
            program->dry += gpushare_event_query(ends[(batch - 1) % BATCHES]) == GPUSHARE_SUCCESS;
        }
        for (unsigned i = 0; !program->error && i < BATCH; i++)
            program->error = gpushare_launch(program->function, one, one, 0, NULL, arguments);
        if (!program->error)
            program->error = gpushare_event_record(end, NULL);
    }
    if (!program->error)
        program->error = gpushare_synchronize(program->gpu);
    for (unsigned i = 0; i < BATCHES; i++)
        OK(gpushare_event_destroy(ends[i]));
    return NULL;
}

/* Runs the programs until they have done so many kernels. Returns whether none ran dry. */
static bool run(unsigned count, unsigned wanted)
{
    static const struct notes none;
    const unsigned most = (unsigned)(patience_seconds(60) * 200);
    unsigned dry = 0;
    stops = false;
    kernels = 0;
    for (unsigned i = 0; i < count; i++) {
        programs[i].dry = 0;
        OK(gpushare_copy_to_device(programs[i].gpu, programs[i].notes, &none, sizeof none));
    }
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(pthread_create(&programs[i].thread, NULL, launch_on, &programs[i]), 0);
    for (unsigned waited = 0; kernels < wanted && waited < most; waited++)
        usleep(5000);
    stops = true;
    for (unsigned i = 0; i < count; i++)
        pthread_join(programs[i].thread, NULL);
    for (unsigned i = 0; i < count; i++) {
        OK(programs[i].error);
        dry += programs[i].dry;
    }
    if (kernels < wanted)
        fail_msg("%u of %u kernels were done in time", (unsigned)kernels, wanted);
    return dry == 0;
}

/* ---- shares ---- */

/* The time in which all programs had work, by the device's clock. */
struct window {
    uint64_t begin, end;
};

static struct notes notes[PROGRAMS_MAX];
static struct window window;

static void read_notes(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        OK(gpushare_copy_from_device(programs[i].gpu, &notes[i], programs[i].notes,
                                     sizeof notes[i]));
        assert_in_range(notes[i].count, 1, NOTES_MAX);
    }
}

/* From 200 ms after all have begun until the first one's last kernel. */
static void find_window(unsigned count)
{
    window = (struct window){0, UINT64_MAX};
    for (unsigned i = 0; i < count; i++) {
        uint64_t last = 0;
        for (uint64_t k = 0; k < notes[i].count; k++)
            last = max(last, notes[i].of[k].end);
        window.begin = max(window.begin, notes[i].of[0].begin);
        window.end = min(window.end, last);
    }
    window.begin += UINT64_C(200000000);
    assert_true(window.begin < window.end);
}

/* The time in the window in which kernels of these programs ran, in ms: their sum, since one runs
 * at a time. */
static double time_of(unsigned first, unsigned count)
{
    uint64_t sum = 0;
    for (unsigned i = first; i < first + count; i++)
        for (uint64_t k = 0; k < notes[i].count; k++) {
            const uint64_t begin = max(notes[i].of[k].begin, window.begin);
            const uint64_t end = min(notes[i].of[k].end, window.end);
            sum += saturating_sub(end, begin);
        }
    return (double)sum / 1e6;
}

static void measure(unsigned count, unsigned wanted)
{
    for (unsigned i = 0; !run(count, wanted); i++) {
        print_message("a program ran dry\n");
        assert_true(i + 1 < TRIES);
    }
    read_notes(count);
    find_window(count);
}

/* Two leases or quanta of 10 ms and a kernel, which a window can cut off at its ends. */
static const double cut_ms = 21;

/* The part that these programs, of one of so many users, have of the time in which kernels of all
 * programs ran. Each user's time is right but for cut_ms. Where that is too much for this user and
 * too little for all others, the part is wrong by the tolerance. A point more is for a server that
 * is late, whose leases end late. */
static void expect_part(const char *whose, unsigned first, unsigned count, unsigned all,
                        unsigned users, double percent)
{
    const double sum = time_of(0, all), part = 100 * time_of(first, count) / sum;
    const double others = users - 1,
                 tolerance = (100 - percent + percent * others) * cut_ms / sum + 1;
    print_message("%s: %.1f %% of %.0f ms\n", whose, part, sum);
    if (part < percent - tolerance || part > percent + tolerance)
        fail_msg("%s had %.1f %% of the time, and should have %.1f, give or take %.1f", whose, part,
                 percent, tolerance);
}

/* Of all time. A device that waits for the server gives everybody less: on a machine with seven
 * busy programs for each CPU, a fourth of each share. */
static void expect_share(const char *whose, unsigned first, unsigned count, double percent)
{
    const double passed = (double)(window.end - window.begin) / 1e6;
    const double share = 100 * time_of(first, count) / passed;
    const double cut = 100 * cut_ms / passed + 1;
    const double most = percent + cut, least = 0.7 * percent - cut;
    print_message("%s: %.1f %% of %.0f ms\n", whose, share, passed);
    if (share < least || share > most)
        fail_msg("%s had %.1f %%, and should have %.1f %% to %.1f %%", whose, share, least, most);
}

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
    measure(5, 1600);
    static const struct {
        const char *whose;
        unsigned first, count;
        double request;
    } users[] = {{"user 1001", 0, 3, 50}, {"user 1002", 3, 1, 33}, {"user 1003", 4, 1, 10}};
    for (int i = 0; i < 3; i++) {
        expect_part(users[i].whose, users[i].first, users[i].count, 5, 3,
                    100 * users[i].request / (50 + 33 + 10));
        expect_share(users[i].whose, users[i].first, users[i].count, users[i].request);
    }
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
    measure(3, 600);
    expect_share("the user", 0, 3, 30);
}

/* Divided by client, the first user would have a ninth. */
static void eight_connections_gain_nothing(const char *yaml)
{
    start_with(yaml);
    arrive(&programs[0], 1001, NULL);
    for (unsigned i = 1; i < 9; i++)
        arrive(&programs[i], 1002, NULL);
    measure(9, 1600);
    expect_part("one connection", 0, 1, 9, 2, 50);
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
    measure(2, 1000);
    expect_part("user 1001", 0, 1, 2, 2, 50);
    expect_share("user 1001", 0, 1, 50);
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
