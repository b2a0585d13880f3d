/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A standby takes over when the worker is lost, and its own end costs nobody anything.
 *
 * The oracle of "takes over" is the kernel's: the process that stood by is the worker afterwards,
 * and the client's counter in device memory has each of its launches once. That of the cost is
 * what the software GPU is told that a context takes.
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
#include "tests/support/kernels.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/seed.h"
#include "tests/support/server.h"

static const char bump_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry bump(.param .u64 word)\n{\n.reg .u64 %a;\n.reg .u32 %v;\n"
    "ld.param.u64 %a, [word];\natom.global.add.u32 %v, [%a], 1;\nret;\n}\n";

/* No power of two, so that no rounding looks right. */
#define CONTEXT_BYTES 300000001

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;
static unsigned random_state;
static unsigned servers;

/* ---- a server with a standby ---- */

static void begin(const char *kind, const char *watchdog_limit, const char *more)
{
    char state[512], memory[64];
    const char *folder = getenv("TMPDIR");
    snprintf(state, sizeof state, "SOFTGPU_STATE=%s/ledger.%d.%u", folder ? folder : "/tmp",
             (int)getpid(), servers++);
    snprintf(memory, sizeof memory, "SOFTGPU_CONTEXT_MEMORY=%d", CONTEXT_BYTES);
    const char *const args[] = {"--standby", kind, "--watchdog-limit", watchdog_limit, NULL};
    const char *const env[] = {state, memory, more, NULL};
    server = server_start(args, env);
}

static void end(void)
{
    assert_int_equal(server_stop(server), 0);
}

/* The standby as `status` shows it. */
struct shown {
    pid_t worker, pid; /* 0: none */
    char kind[16], state[16], trouble[400];
    long long device, resident; /* -1: not known */
    long long takeovers, failures;
};

static long long integer_or(const json_t *object, const char *name, long long none)
{
    const json_t *value = json_object_get(object, name);
    assert_non_null(value);
    return json_is_null(value) ? none : json_integer_value(value);
}

static void text_of(const json_t *object, const char *name, char *text, size_t size)
{
    const char *value = json_string_value(json_object_get(object, name));
    snprintf(text, size, "%s", value ? value : "");
}

static struct shown look(void)
{
    json_t *device = admin_answer_device(server);
    const json_t *standby = json_object_get(device, "standby");
    struct shown shown = {
        .worker = (pid_t)integer_or(device, "worker_pid", 0),
        .pid = (pid_t)integer_or(standby, "pid", 0),
        .device = integer_or(standby, "device_memory_bytes", -1),
        .resident = integer_or(standby, "resident_bytes", -1),
        .takeovers = integer_or(standby, "takeovers", -1),
        .failures = integer_or(standby, "failures", -1),
    };
    text_of(standby, "kind", shown.kind, sizeof shown.kind);
    text_of(standby, "state", shown.state, sizeof shown.state);
    text_of(standby, "trouble", shown.trouble, sizeof shown.trouble);
    json_decref(device);
    return shown;
}

/* Looks until a standby other than `before` is ready and its cost is known. */
static struct shown await_standby(pid_t before)
{
    struct shown shown = {0};
    for (int left = (int)(patience_seconds(20) * 50); left > 0; left--) {
        shown = look();
        if (strcmp(shown.state, "ready") == 0 && shown.pid != before && shown.worker &&
            shown.device >= 0)
            return shown;
        usleep(20000);
    }
    fail_msg("no standby but process %d is ready: %s, process %d, %s", (int)before, shown.state,
             (int)shown.pid, shown.trouble);
    return shown;
}

static struct shown await_worker_but(pid_t a, pid_t b)
{
    struct shown shown = {0};
    for (int left = (int)(patience_seconds(20) * 50); left > 0; left--) {
        shown = look();
        if (shown.worker && shown.worker != a && shown.worker != b)
            return shown;
        usleep(20000);
    }
    fail_msg("the worker is still process %d", (int)shown.worker);
    return shown;
}

/* ---- a client ---- */

struct client {
    gpushare_connection *gpu;
    gpushare_function *bump;
    gpushare_address word;
    uint32_t launches;
};

static struct client client_open(void)
{
    struct client client = {.gpu = arrival_connect(server, 0)};
    client.bump = arrival_load(client.gpu, bump_ptx, "bump");
    OK(gpushare_memory_alloc(client.gpu, 4, &client.word));
    OK(gpushare_fill(client.gpu, client.word, 0, 4, 1));
    OK(gpushare_synchronize(client.gpu));
    return client;
}

static void client_is_whole(struct client *client)
{
    void *parameters[] = {&client->word};
    uint32_t value = 0;
    OK(gpushare_launch(client->bump, one, one, 0, NULL, parameters));
    client->launches++;
    OK(gpushare_synchronize(client->gpu));
    OK(gpushare_copy_from_device(client->gpu, &value, client->word, sizeof value));
    assert_int_equal(value, client->launches);
}

/* ---- the tests ---- */

static void takes_over(const char *kind, long long device_bytes)
{
    begin(kind, "10s", NULL);
    struct client client = client_open();
    client_is_whole(&client);
    struct shown before = await_standby(0);
    assert_string_equal(before.kind, kind);
    assert_int_equal(before.device, device_bytes);
    assert_true(before.resident > 1 << 20);
    for (int i = 0; i < 3; i++) {
        kill(before.worker, SIGKILL);
        client_is_whole(&client);
        struct shown after = await_standby(before.pid);
        assert_int_equal(after.worker, before.pid);
        assert_int_equal(after.takeovers, i + 1);
        assert_int_equal(after.failures, 0);
        assert_int_equal(after.device, device_bytes);
        before = after;
    }
    gpushare_close(&client.gpu);
    end();
}

static void a_standby_with_the_driver_takes_over(void **state)
{
    (void)state;
    takes_over("driver", 0);
}

static void a_standby_with_a_context_takes_over(void **state)
{
    (void)state;
    takes_over("context", CONTEXT_BYTES);
}

/* Returns a standby that is stopped while it makes its context. One that was faster is replaced. */
static pid_t stop_starting_standby(void)
{
    struct shown shown = {0};
    for (int left = (int)(patience_seconds(20) * 1000); left > 0; left--) {
        shown = look();
        if (!strcmp(shown.state, "off")) {
            json_decref(admin_answer(server, "set gpu 0 standby=context"));
        } else if (shown.pid) {
            kill(shown.pid, SIGSTOP);
            if (!strcmp(look().state, "starting"))
                return shown.pid;
            kill(shown.pid, SIGCONT);
            json_decref(admin_answer(server, "set gpu 0 standby=none"));
        }
        usleep(1000);
    }
    fail_msg("no standby could be stopped in time: %s", shown.state);
    return 0;
}

/* The client allocates while the standby is stopped. */
static void memory_of_clients_is_no_cost_of_the_standby(void **state)
{
    (void)state;
    begin("none", "10s", NULL);
    struct client client = client_open();
    gpushare_address held[8];
    pid_t standby = stop_starting_standby();
    for (int i = 0; i < 8; i++)
        OK(gpushare_memory_alloc(client.gpu, 32 << 20, &held[i]));
    kill(standby, SIGCONT);
    struct shown shown = await_standby(0);
    assert_int_equal(shown.pid, standby);
    assert_int_equal(shown.device, CONTEXT_BYTES);
    gpushare_close(&client.gpu);
    end();
}

static void a_fault_is_followed_by_the_standby(void **state)
{
    (void)state;
    begin("driver", "10s", NULL);
    struct client idle = client_open();
    client_is_whole(&idle);
    gpushare_connection *guilty = arrival_connect(server, 0);
    gpushare_function *trapped = arrival_load(guilty, kernels_ptx, "trapped");
    struct shown before = await_standby(0);
    OK(gpushare_launch(trapped, one, one, 0, NULL, NULL));
    assert_int_equal(gpushare_synchronize(guilty), GPUSHARE_ERROR_LAUNCH_FAILED);
    client_is_whole(&idle);
    assert_int_equal(await_standby(before.pid).worker, before.pid);
    gpushare_close(&guilty);
    gpushare_close(&idle.gpu);
    end();
}

static void without_a_standby_there_is_no_second_process(void **state)
{
    (void)state;
    pid_t pids[4];
    begin("none", "10s", NULL);
    struct client client = client_open();
    client_is_whole(&client);
    usleep(600000); /* longer than a standby waits before it starts */
    struct shown shown = look();
    assert_string_equal(shown.state, "off");
    assert_int_equal(shown.pid, 0);
    assert_int_equal(shown.device, -1);
    assert_int_equal(shown.resident, -1);
    assert_int_equal(server_workers(server, pids, 4), 1);
    gpushare_close(&client.gpu);
    end();
}

static void a_standby_that_dies_is_replaced_and_nobody_notices(void **state)
{
    (void)state;
    begin("driver", "10s", NULL);
    struct client client = client_open();
    struct shown before = await_standby(0);
    for (int i = 0; i < 2; i++) {
        kill(before.pid, SIGKILL);
        client_is_whole(&client);
        struct shown after = await_standby(before.pid);
        assert_int_equal(after.worker, before.worker);
        assert_int_equal(after.failures, i + 1);
        assert_non_null(strstr(after.trouble, "killed by signal 9"));
        before = after;
    }
    assert_true(server_log_wait(server, "a standby is given up: killed by signal 9 (Killed); the "
                                        "next one starts in 500ms"));
    assert_true(server_log_wait(server, "the next one starts in 1s"));
    gpushare_close(&client.gpu);
    end();
}

static void a_standby_that_hangs_is_replaced(void **state)
{
    (void)state;
    begin("context", "1s", NULL);
    struct client client = client_open();
    struct shown before = await_standby(0);
    kill(before.pid, SIGSTOP);
    struct shown after = await_standby(before.pid);
    assert_int_equal(after.worker, before.worker);
    assert_non_null(strstr(after.trouble, "did not answer"));
    client_is_whole(&client);
    gpushare_close(&client.gpu);
    end();
}

/* Nobody knew that it hangs when it is needed. */
static void a_hanging_standby_does_not_keep_the_device_down(void **state)
{
    (void)state;
    begin("driver", "10s", NULL);
    struct client client = client_open();
    client_is_whole(&client);
    struct shown before = await_standby(0);
    kill(before.pid, SIGSTOP);
    kill(before.worker, SIGKILL);
    client_is_whole(&client);
    struct shown after = await_worker_but(before.worker, before.pid);
    assert_int_equal(after.failures, 1);
    assert_true(server_log_wait(server, "did not answer within 500 ms when it was to take over"));
    assert_int_equal(await_standby(before.pid).worker, after.worker);
    gpushare_close(&client.gpu);
    end();
}

static void a_device_for_one_process_is_served_without_a_context_beside(void **state)
{
    (void)state;
    begin("context", "10s", "SOFTGPU_COMPUTE_MODE=3");
    struct client client = client_open();
    client_is_whole(&client);
    assert_true(server_log_wait(server, "a standby is given up: device 0: another program uses"));
    struct shown before = look();
    assert_true(before.failures > 0);
    assert_non_null(strstr(before.trouble, "exclusive compute mode"));
    kill(before.worker, SIGKILL);
    client_is_whole(&client);
    assert_int_equal(await_worker_but(before.worker, 0).takeovers, 0);
    json_decref(admin_answer(server, "set gpu 0 standby=driver"));
    struct shown driver = await_standby(0);
    assert_string_equal(driver.kind, "driver");
    kill(driver.worker, SIGKILL);
    client_is_whole(&client);
    assert_int_equal(look().worker, driver.pid);
    gpushare_close(&client.gpu);
    end();
}

static void the_kind_changes_while_the_device_serves(void **state)
{
    (void)state;
    begin("driver", "10s", NULL);
    struct client client = client_open();
    struct shown driver = await_standby(0);
    json_decref(admin_answer(server, "set gpu 0 standby=context"));
    struct shown context = await_standby(driver.pid);
    assert_string_equal(context.kind, "context");
    json_decref(admin_answer(server, "set gpu 0 standby=none"));
    pid_t pids[4];
    size_t count = 2;
    for (int left = (int)(patience_seconds(10) * 50); left > 0 && count != 1; left--) {
        usleep(20000);
        count = server_workers(server, pids, 4);
    }
    assert_int_equal(count, 1);
    assert_int_equal(pids[0], driver.worker);
    client_is_whole(&client);
    gpushare_close(&client.gpu);
    end();
}

static void workers_and_standbys_die_at_any_time(void **state)
{
    (void)state;
    begin("context", "10s", NULL);
    struct client client = client_open();
    for (int i = 0; i < 12; i++) {
        pid_t pids[4];
        size_t count = server_workers(server, pids, 4);
        for (size_t k = 0; k < count; k++)
            if (rand_r(&random_state) % 2)
                kill(pids[k], SIGKILL);
        client_is_whole(&client);
        usleep((useconds_t)(rand_r(&random_state) % 400000));
    }
    client_is_whole(&client);
    gpushare_close(&client.gpu);
    end();
}

/* server_kill waits until every process that the server had has ended. */
static void a_standby_does_not_outlive_a_killed_server(void **state)
{
    (void)state;
    begin("context", "10s", NULL);
    pid_t pids[4];
    await_standby(0);
    assert_int_equal(server_workers(server, pids, 4), 2);
    server_kill(server);
}

static int draw(void **state)
{
    (void)state;
    random_state = seed_draw();
    return 0;
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_standby_with_the_driver_takes_over),
        cmocka_unit_test(a_standby_with_a_context_takes_over),
        cmocka_unit_test(memory_of_clients_is_no_cost_of_the_standby),
        cmocka_unit_test(a_fault_is_followed_by_the_standby),
        cmocka_unit_test(without_a_standby_there_is_no_second_process),
        cmocka_unit_test(a_standby_that_dies_is_replaced_and_nobody_notices),
        cmocka_unit_test(a_standby_that_hangs_is_replaced),
        cmocka_unit_test(a_hanging_standby_does_not_keep_the_device_down),
        cmocka_unit_test(a_device_for_one_process_is_served_without_a_context_beside),
        cmocka_unit_test(the_kind_changes_while_the_device_serves),
        cmocka_unit_test(workers_and_standbys_die_at_any_time),
        cmocka_unit_test(a_standby_does_not_outlive_a_killed_server),
    };
    return cmocka_run_group_tests(tests, draw, NULL);
}
