/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: calls are made within seconds beside an endless kernel, and launches go on within one */
/* light: it waits beside endless kernels */
/* draining: not, for it says itself which calls of the driver wait */
/*
 * Calls about which sources differ: whether making a stream, or destroying a partition, waits for
 * running kernels. The worker finds out what its driver does. Where the driver waits, such calls
 * are made when nothing runs; where it does not, beside an endless kernel too. Either way launches
 * go on.
 *
 * The driver is the shim over a software GPU without a context's lock. It counts the calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/endless.h"
#include "tests/support/launcher.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

enum { SOON_SECONDS = 10, NOT_SOON_MS = 500 };

static struct server *server;
static char counted[64];

/* ---- the calls that were made ---- */

/* The file has a byte for each. */
static uint32_t calls_made(void)
{
    struct stat file;
    assert_int_equal(stat(counted, &file), 0);
    return (uint32_t)file.st_size;
}

static bool is_made_since(uint32_t before, uint64_t wait_ns)
{
    uint64_t end = clock_now() + wait_ns;
    while (calls_made() == before && clock_now() < end)
        usleep(1000);
    return calls_made() != before;
}

static bool is_made_soon(uint32_t before)
{
    return is_made_since(before, (uint64_t)(patience_seconds(SOON_SECONDS) * UNITS_SECOND));
}

/* Starts a server on a driver that counts these calls, and makes them wait until nothing runs. */
static void begin(const char *calls, bool wait)
{
    char path[512], shim[512], names[96], below[600], count[96];
    const char *const args[] = {"--driver", shim, NULL};
    /* Windows of 1 GiB: a server under ThreadSanitizer has addresses for 128 of them. */
    const char *const env[] = {
        names, below, count, "SOFTGPU_CONTEXT_LOCK=0", "GPUSHARE_MEMORY_LIMIT=1G", NULL};
    snprintf(counted, sizeof counted, "/tmp/gpushare-openly-XXXXXX");
    int fd = mkstemp(counted);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_non_null(
        realpath(server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path), shim));
    snprintf(below, sizeof below, "SHIM_DRIVER=%s", shim);
    assert_non_null(
        realpath(server_build_path("tests/programs/shim/libcuda.so.1", path, sizeof path), shim));
    snprintf(names, sizeof names, "%s=%s", wait ? "SHIM_WAITS" : "SHIM_COUNTS", calls);
    snprintf(count, sizeof count, "SHIM_COUNT=%s", counted);
    server = server_start(args, env);
}

static void end(void)
{
    assert_int_equal(unlink(counted), 0);
    assert_int_equal(server_stop(server), 0);
}

/* ---- a scene with an endless kernel ---- */

struct scene {
    struct launcher other;
    struct endless endless;
};

static void scene_prepare(struct scene *scene)
{
    endless_prepare(&scene->endless, arrival_connect(server, 25));
    launcher_prepare(&scene->other, arrival_connect(server, 25), 0, 1, 1);
}

/* The endless client is the first one that has connected. */
static bool is_endless_running(void)
{
    json_t *answer = admin_answer(server, "clients");
    json_t *client = json_array_get(json_object_get(answer, "clients"), 0);
    bool runs = json_integer_value(json_object_get(client, "in_flight")) > 0;
    json_decref(answer);
    return runs;
}

static void scene_start(struct scene *scene)
{
    uint64_t until = clock_now() + (uint64_t)(patience_seconds(SOON_SECONDS) * UNITS_SECOND);
    endless_start(&scene->endless, 1, 1);
    while (!is_endless_running() && clock_now() < until)
        usleep(1000);
    assert_true(is_endless_running());
    launcher_start(&scene->other);
}

/* Calls were made since then beside the endless kernel, or only after it, as they should be. */
static void scene_end(struct scene *scene, uint32_t before, bool wait)
{
    if (wait)
        assert_false(is_made_since(before, NOT_SOON_MS * UNITS_MS));
    else
        assert_true(is_made_soon(before));
    unsigned rounds = scene->other.done;
    uint64_t until = clock_now() + (uint64_t)(patience_seconds(SOON_SECONDS) * UNITS_SECOND);
    while (scene->other.done < rounds + 3 && clock_now() < until)
        usleep(1000);
    launcher_stop(&scene->other);
    assert_true(scene->other.done >= rounds + 3);
    assert_true(scene->other.longest < UNITS_SECOND);
    endless_end(&scene->endless);
    assert_true(is_made_soon(before));
    launcher_close(&scene->other);
}

/* ---- streams ---- */

/* Of a priority that nobody had before: the worker has no such CUstream. */
static void make_stream(gpushare_connection *gpu, int priority)
{
    gpushare_stream *stream;
    OK(gpushare_stream_create(gpu, 0, priority, &stream));
}

/* When the third call is made, the worker has seen two of them through. */
static void make_streams(bool wait)
{
    struct scene scene;
    begin("cuGreenCtxStreamCreate", wait);
    scene_prepare(&scene);
    gpushare_connection *newcomer = arrival_connect(server, 0);
    for (int priority = -1; priority >= -3; priority--) {
        uint32_t before = calls_made();
        make_stream(newcomer, priority);
        assert_true(is_made_soon(before));
    }
    scene_start(&scene);
    uint32_t before = calls_made();
    make_stream(newcomer, -4);
    scene_end(&scene, before, wait);
    gpushare_close(&newcomer);
    end();
}

static void streams_are_made_beside_an_endless_kernel(void **state)
{
    (void)state;
    make_streams(false);
}

static void a_driver_that_waits_making_streams_makes_them_when_nothing_runs(void **state)
{
    (void)state;
    make_streams(true);
}

/* ---- partitions ---- */

/* Their partitions are more than the worker keeps for the next time: when they have left, those
 * that were left first are destroyed, and the next crowd has them made again. */
enum { CROWD = 18, CROWDS = 3 };

static void crowd_arrive(gpushare_connection *crowd[CROWD])
{
    for (int i = 0; i < CROWD; i++)
        crowd[i] = arrival_connect(server, 8 + 5 * i);
}

static void crowd_leave(gpushare_connection *crowd[CROWD])
{
    for (int i = 0; i < CROWD; i++)
        gpushare_close(&crowd[i]);
}

static void destroy_partitions(bool wait)
{
    struct scene scene;
    gpushare_connection *crowd[CROWD];
    begin("cuGreenCtxDestroy", wait);
    scene_prepare(&scene);
    for (int i = 0; i < CROWDS; i++) {
        uint32_t before = calls_made();
        crowd_arrive(crowd);
        crowd_leave(crowd);
        assert_true(is_made_soon(before));
    }
    crowd_arrive(crowd);
    scene_start(&scene);
    uint32_t before = calls_made();
    crowd_leave(crowd);
    scene_end(&scene, before, wait);
    end();
}

static void partitions_end_beside_an_endless_kernel(void **state)
{
    (void)state;
    destroy_partitions(false);
}

static void a_driver_that_waits_destroying_partitions_does_so_when_nothing_runs(void **state)
{
    (void)state;
    destroy_partitions(true);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_made_beside_an_endless_kernel),
        cmocka_unit_test(a_driver_that_waits_making_streams_makes_them_when_nothing_runs),
        cmocka_unit_test(partitions_end_beside_an_endless_kernel),
        cmocka_unit_test(a_driver_that_waits_destroying_partitions_does_so_when_nothing_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
