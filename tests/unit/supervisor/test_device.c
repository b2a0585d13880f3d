/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Workers that are real processes: scripts that say little and end soon. */
#include <signal.h>
#include <sys/stat.h>

#include "tests/unit/supervisor/fake.h"

#include "common/error.h"

static char folder[64], reason[512];
static struct settings settings;
static uv_loop_t loop;
static struct supervisor *supervisor;
static bool stopped, unusable;

static void on_unusable(void *context, const char *text)
{
    (void)context;
    unusable = true;
    snprintf(reason, sizeof reason, "%s", text);
    supervisor_stop(supervisor);
}

static void on_stopped(void *context)
{
    (void)context;
    stopped = true;
}

static void on_ready(void *context)
{
    (void)context;
    fail_msg("a script is no worker");
}

/* Starts `devices` workers that run this script (python), and lets the loop run to its end. */
static void run_with(const char *script, uint32_t devices)
{
    struct error why;
    struct discovery discovery = {.count = devices};
    struct supervisor_events events = {
        .ready = on_ready, .unusable = on_unusable, .stopped = on_stopped};
    strcpy(folder, "/tmp/gpushare-device-XXXXXX");
    assert_non_null(mkdtemp(folder));
    settings_default(&settings);
    snprintf(settings.worker, sizeof settings.worker, "%s/worker", folder);
    FILE *file = fopen(settings.worker, "we");
    assert_non_null(file);
    fputs(script, file);
    fclose(file);
    chmod(settings.worker, 0700);
    stopped = unusable = false;
    reason[0] = 0;
    for (uint32_t i = 0; i < devices; i++)
        discovery.devices[i].ordinal = i;
    uv_loop_init(&loop);
    assert_int_equal(supervisor_create(&supervisor, &loop, &settings, &events), 0);
    assert_int_equal(supervisor_start(supervisor, &discovery, &why), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    unlink(settings.worker);
    rmdir(folder);
    assert_true(unusable);
    assert_true(stopped);
    supervisor_free(supervisor);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void expect_reason(const char *word)
{
    if (!strstr(reason, word))
        fail_msg("no \"%s\" in: %s", word, reason);
}

static void a_worker_that_only_exits_is_reported_with_its_status(void **state)
{
    (void)state;
    run_with("#!/bin/sh\nexit 3\n", 1);
    expect_reason("ended before it was ready: exit status 3");
}

static void a_worker_that_is_killed_is_reported_with_its_signal(void **state)
{
    (void)state;
    run_with("#!/bin/sh\nkill -ABRT $$\n", 1);
    expect_reason("signal 6");
}

static void all_devices_must_fail_before_the_server_gives_up(void **state)
{
    (void)state;
    run_with("#!/bin/sh\ntest \"$4\" = 0 || exec sleep 0.2\nexit 5\n", 3);
    expect_reason("status 5");
}

/* worker_fault by hand: the header and the two fields of the schema. */
static void the_trouble_of_a_workers_driver_is_reported(void **state)
{
    (void)state;
    run_with("#!/usr/bin/env python3\n"
             "import socket, struct, sys\n"
             "text = b'cannot open libcuda.so.1: no such file'\n"
             "body = struct.pack('<I380s', 100, text)\n"
             "head = struct.pack('<IHHQII', 24 + len(body), 117, 0, 0, 0, 0)\n"
             "socket.socket(fileno=3).send(head + body)\n"
             "sys.exit(1)\n",
             1);
    expect_reason("cannot open libcuda.so.1");
}

static void a_worker_that_breaks_the_protocol_is_not_served_by(void **state)
{
    (void)state;
    run_with("#!/usr/bin/env python3\n"
             "import socket, time\n"
             "s = socket.socket(fileno=3)\n"
             "s.send(b'nonsense')\n"
             "s.recv(1)\n",
             1);
    expect_reason("shorter than its header");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_only_exits_is_reported_with_its_status),
        cmocka_unit_test(a_worker_that_is_killed_is_reported_with_its_signal),
        cmocka_unit_test(all_devices_must_fail_before_the_server_gives_up),
        cmocka_unit_test(the_trouble_of_a_workers_driver_is_reported),
        cmocka_unit_test(a_worker_that_breaks_the_protocol_is_not_served_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
