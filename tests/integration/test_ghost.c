/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* draining: not, for its driver is tests/programs/shim already */
/*
 * A worker dies and leaves a process that writes to a client's memory of the device without a
 * pause, as a process that a driver began could: it has inherited the device. No worker serves
 * while that process lives, and the client sees no change after the next one has come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

enum { LOOKS = 200, LOOK_US = 1000 };

static char folder[32], file[64];
static pid_t ghost;

static int begin(void **state)
{
    char path[512], below[512], shim[512], driver[600], left[128];
    const char *const args[] = {"--driver", shim, NULL};
    const char *const env[] = {driver, left, "SOFTGPU_CONTEXT_LOCK=0", NULL};
    ghost = 0;
    assert_non_null(mkdtemp(strcpy(folder, "/tmp/gpushare-ghost-XXXXXX")));
    snprintf(file, sizeof file, "%s/ghost", folder);
    assert_non_null(realpath(server_build_path("lib/softgpu/libcuda.so.1", path, 512), below));
    assert_non_null(
        realpath(server_build_path("tests/programs/shim/libcuda.so.1", path, 512), shim));
    snprintf(driver, sizeof driver, "SHIM_DRIVER=%s", below);
    snprintf(left, sizeof left, "SHIM_GHOST=%s", file);
    *state = server_start(args, env);
    return 0;
}

static int end(void **state)
{
    if (ghost > 0)
        kill(ghost, SIGKILL);
    unlink(file);
    rmdir(folder);
    return server_teardown(state);
}

static pid_t read_ghost(void)
{
    int number = 0;
    FILE *text = fopen(file, "re");
    assert_non_null(text);
    assert_int_equal(fscanf(text, "%d", &number), 1);
    fclose(text);
    assert_true(number > 0 && kill(number, 0) == 0);
    return number;
}

static uint32_t read_word(gpushare_connection *gpu, gpushare_address memory)
{
    uint32_t word = 0;
    OK(gpushare_copy_from_device(gpu, &word, memory, sizeof word));
    return word;
}

static bool has_worker(const struct server *server)
{
    json_t *device = admin_answer_device(server);
    bool has = !json_is_null(json_object_get(device, "worker_pid")) ||
               json_integer_value(json_object_get(device, "worker_starts")) != 1;
    json_decref(device);
    return has;
}

static void demand_state(const struct server *server, const char *state)
{
    json_t *device = admin_answer_device(server);
    assert_string_equal(json_string_value(json_object_get(device, "state")), state);
    json_decref(device);
}

static void nobody_writes_beside_the_next_worker(void **state)
{
    const struct server *server = *state;
    const unsigned most = (unsigned)(patience_seconds(20) * 1e6 / LOOK_US);
    gpushare_address memory;
    pid_t worker, next;
    gpushare_connection *gpu = arrival_connect(server, 0);
    OK(gpushare_memory_alloc(gpu, 4096, &memory));
    OK(gpushare_fill(gpu, memory, 0, 4, 1024));
    OK(gpushare_synchronize(gpu));
    ghost = read_ghost();
    /* It writes to this client's memory. */
    const uint32_t first = read_word(gpu, memory);
    uint32_t last = first;
    for (unsigned i = 0; last == first && i < most; i++) {
        usleep(LOOK_US);
        last = read_word(gpu, memory);
    }
    assert_int_not_equal(last, first);

    assert_int_equal(server_workers(server, &worker, 1), 1);
    assert_int_equal(kill(worker, SIGKILL), 0);
    if (!server_log_wait(server, "a process that it began still has the device"))
        fail_msg("the log does not say that the next worker waits");
    for (unsigned i = 0; i < LOOKS; i++) {
        assert_int_equal(server_workers(server, &next, 1), 0);
        usleep(LOOK_US);
    }
    assert_false(has_worker(server));
    demand_state(server, "held");
    assert_int_equal(kill(ghost, 0), 0);

    assert_int_equal(kill(ghost, SIGKILL), 0);
    const uint32_t after = read_word(gpu, memory);
    assert_int_equal(server_workers(server, &next, 1), 1);
    assert_int_not_equal(next, worker);
    demand_state(server, "ready");
    /* It wrote when there was no worker, and writes no more. */
    print_message("%u before the worker's end, %u when the next one came\n", last, after);
    assert_true(after > last);
    for (unsigned i = 0; i < LOOKS; i++) {
        assert_int_equal(read_word(gpu, memory), after);
        usleep(LOOK_US);
    }
    gpushare_close(&gpu);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nobody_writes_beside_the_next_worker, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
