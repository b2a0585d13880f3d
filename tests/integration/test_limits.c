/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Limits from the environment of server and client, through the real server: the granted value
 * is the one that is enforced.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/scene.h"
#include "tests/support/server.h"

enum { MIB = 1 << 20, SMS_MAX = 512 };

__asm__(".section .rodata\n.balign 16\nlimits_ptx:\n.incbin "
        "\"tests/programs/gpu/kernels/probe.ptx\"\n.byte 0\n.previous\n");
extern const char limits_ptx[];

static void clear_environment(void)
{
    static const char *const names[] = {
        "GPUSHARE_ACTIVE_THREAD_PERCENTAGE",
        "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
        "GPUSHARE_PINNED_HOST_MEM_LIMIT",
        "GPUSHARE_CLIENT_PRIORITY",
        "GPUSHARE_CLIENT_NAME",
        "GPUSHARE_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "CUDA_MPS_CLIENT_PRIORITY",
        "GPUSHARE_THREADS_LIMIT",
        "GPUSHARE_MEMORY_LIMIT",
        "GPUSHARE_HOST_MEMORY_LIMIT",
        "GPUSHARE_THREADS_REQUEST",
        "GPUSHARE_TIME_REQUEST",
        "GPUSHARE_TIME_LIMIT",
        "GPUSHARE_FRACTION",
        "GPUSHARE_MEMORY_REQUEST",
        "GPUSHARE_HOST_MEMORY_REQUEST",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static gpushare_error connect_to(const struct server *server, gpushare_connection **gpu)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    return gpushare_connect(&options, gpu);
}

/* Connects with one variable set, closes again; returns what was granted. */
static struct gpushare_limits granted_with(const struct server *server, const char *name,
                                           const char *value)
{
    gpushare_connection *gpu;
    struct gpushare_limits limits = {.size = sizeof limits};
    clear_environment();
    if (name)
        setenv(name, value, 1);
    OK(connect_to(server, &gpu));
    OK(gpushare_limits(gpu, &limits));
    gpushare_close(&gpu);
    clear_environment();
    return limits;
}

static struct server *plain;

static int start(void **state)
{
    *state = plain = server_start(NULL, NULL);
    return 0;
}

static void a_client_is_granted_what_it_asks_below_the_ceiling(void **state)
{
    (void)state;
    struct gpushare_limits all = granted_with(plain, NULL, NULL);
    assert_true(all.multiprocessors > 0);
    assert_true(all.host_memory_limit > 0);
    struct gpushare_limits quarter = granted_with(plain, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "25");
    assert_true(quarter.thread_percentage_asked == 25.0);
    /* A group of multiprocessors is the least there is, and without groups there is the device. */
    struct gpushare_limits least = granted_with(plain, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "1");
    assert_true(quarter.multiprocessors * 4 <= all.multiprocessors ||
                quarter.multiprocessors == least.multiprocessors);
    assert_true(!all.partitioned || least.multiprocessors < all.multiprocessors);
    assert_true(quarter.multiprocessors > 0);
    assert_int_equal(granted_with(plain, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=64M").memory_limit,
                     64 * MIB);
    assert_int_equal(
        granted_with(plain, "GPUSHARE_PINNED_HOST_MEM_LIMIT", "32MB").host_memory_limit, 32 * MIB);
    assert_int_equal(granted_with(plain, "GPUSHARE_CLIENT_PRIORITY", "1").priority, 1);
}

static void the_names_that_mps_uses_are_honoured_where_ours_are_unset(void **state)
{
    (void)state;
    struct gpushare_limits quarter = granted_with(plain, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25");
    assert_true(quarter.thread_percentage_asked == 25.0);
    assert_int_equal(granted_with(plain, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=128M").memory_limit,
                     128 * MIB);
    assert_int_equal(granted_with(plain, "CUDA_MPS_CLIENT_PRIORITY", "1").priority, 1);
    clear_environment();
    gpushare_connection *gpu;
    struct gpushare_limits limits = {.size = sizeof limits};
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25", 1);
    setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "50", 1);
    OK(connect_to(plain, &gpu));
    OK(gpushare_limits(gpu, &limits));
    assert_true(limits.thread_percentage_asked == 50.0);
    gpushare_close(&gpu);
    clear_environment();
}

static void malformed_values_are_refused_with_variable_value_and_form(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
    } bad[] = {
        {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "0"},
        {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "101"},
        {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "half"},
        {"GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0:1G"},
        {"GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=1X"},
        {"GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=99999999999999999999G"},
        {"GPUSHARE_PINNED_HOST_MEM_LIMIT", "-1"},
        {"GPUSHARE_CLIENT_PRIORITY", "high"},
        {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "many"},
        {"GPUSHARE_THREADS_REQUEST", "25"},
        {"GPUSHARE_TIME_REQUEST", "101%"},
        {"GPUSHARE_TIME_LIMIT", "0%"},
        {"GPUSHARE_FRACTION", "1"},
        {"GPUSHARE_MEMORY_REQUEST", "90"},
        {"GPUSHARE_HOST_MEMORY_REQUEST", "25%"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gpushare_connection *gpu = NULL;
        clear_environment();
        setenv(bad[i].name, bad[i].value, 1);
        gpushare_error error = connect_to(plain, &gpu);
        if (error != GPUSHARE_ERROR_INVALID_ENVIRONMENT)
            fail_msg("%s=%s gave %s", bad[i].name, bad[i].value, gpushare_error_name(error));
        if (!strstr(gpushare_error_text(), bad[i].name) ||
            !strstr(gpushare_error_text(), bad[i].value))
            fail_msg("%s=%s: the text does not name both: %s", bad[i].name, bad[i].value,
                     gpushare_error_text());
    }
    clear_environment();
}

static void the_servers_own_values_are_default_and_ceiling(void **state)
{
    (void)state;
    const char *env[] = {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=50",
                         "GPUSHARE_PINNED_DEVICE_MEM_LIMIT=0=256M",
                         "GPUSHARE_PINNED_HOST_MEM_LIMIT=64M", "GPUSHARE_CLIENT_PRIORITY=1", NULL};
    struct server *server = server_start(NULL, env);
    struct gpushare_limits silent = granted_with(server, NULL, NULL);
    assert_true(silent.thread_percentage == 50.0);
    assert_int_equal(silent.memory_limit, 256 * MIB);
    assert_int_equal(silent.host_memory_limit, 64 * MIB);
    assert_int_equal(silent.priority, 1);
    assert_true(
        granted_with(server, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "100").thread_percentage == 50.0);
    assert_true(granted_with(server, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "20").thread_percentage ==
                20.0);
    assert_int_equal(granted_with(server, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=4G").memory_limit,
                     256 * MIB);
    assert_int_equal(granted_with(server, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=64M").memory_limit,
                     64 * MIB);
    assert_int_equal(granted_with(server, "GPUSHARE_PINNED_HOST_MEM_LIMIT", "1G").host_memory_limit,
                     64 * MIB);
    assert_int_equal(granted_with(server, "GPUSHARE_CLIENT_PRIORITY", "0").priority, 1);
    assert_int_equal(granted_with(server, "GPUSHARE_CLIENT_PRIORITY", "2").priority, 2);
    assert_int_equal(server_stop(server), 0);
}

static void device_memory_is_refused_beyond_the_limit_and_returned_by_free(void **state)
{
    (void)state;
    gpushare_connection *gpu;
    gpushare_address a, b;
    clear_environment();
    setenv("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=32M", 1);
    OK(connect_to(plain, &gpu));
    OK(gpushare_memory_alloc(gpu, 20 * MIB, &a));
    assert_int_equal(gpushare_memory_alloc(gpu, 20 * MIB, &b), GPUSHARE_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpushare_error_text(), "limit"));
    OK(gpushare_memory_free(gpu, a));
    OK(gpushare_memory_alloc(gpu, 32 * MIB, &b)); /* waits for the free instead of refusing */
    gpushare_close(&gpu);
    clear_environment();
}

/* As this user set it: another of the limit's names would send it looking in vain. */
static void a_refusal_names_the_variable_that_this_user_set(void **state)
{
    (void)state;
    static const char *const set[][2] = {{"GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=32M"},
                                         {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=32M"},
                                         {"GPUSHARE_MEMORY_LIMIT", "32M"},
                                         {"GPUSHARE_FRACTION", "0.01"}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++) {
        gpushare_connection *gpu;
        gpushare_address memory;
        clear_environment();
        setenv(set[i][0], set[i][1], 1);
        OK(connect_to(plain, &gpu));
        assert_int_equal(gpushare_memory_alloc(gpu, UINT64_C(4) << 30, &memory),
                         GPUSHARE_ERROR_OUT_OF_MEMORY);
        for (size_t j = 0; j < sizeof set / sizeof set[0]; j++)
            if (!strstr(gpushare_error_text(), set[j][0]) != (i != j))
                fail_msg("%s was set: %s", set[i][0], gpushare_error_text());
        gpushare_close(&gpu);
    }
    clear_environment();
}

/* Module variables are charged, whether they can be moved into the client's memory or stay with the
 * driver. */
static void module_variables_are_charged_wherever_they_lie(void **state)
{
    (void)state;
    static const char *const kinds[][2] = {
        {".visible .global .align 4 .b8 big", ""},
        {".extern .global .align 4 .b8 big", ".visible .global .align 4 .b8 big["},
    };
    gpushare_connection *gpu;
    gpushare_module *module;
    clear_environment();
    setenv("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=32M", 1);
    OK(connect_to(plain, &gpu));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct gpushare_memory_info info = {.size = sizeof info};
        char variables[200], text[400];
        for (unsigned mib = 48; mib; mib = mib == 48 ? 16 : 0) {
            snprintf(variables, sizeof variables, "%s[%u];\n%s%.0u%s", kinds[i][0], mib * MIB,
                     kinds[i][1], *kinds[i][1] ? mib * MIB : 0, *kinds[i][1] ? "];\n" : "");
            snprintf(
                text, sizeof text,
                ".version 6.3\n.target sm_75\n.address_size 64\n%s.visible .entry k() { ret; }\n",
                variables);
            gpushare_error error = gpushare_module_load(gpu, text, 0, &module);
            if (error != (mib > 32 ? GPUSHARE_ERROR_OUT_OF_MEMORY : GPUSHARE_SUCCESS))
                fail_msg("kind %zu, %u MiB: %s: %s", i, mib, gpushare_error_name(error),
                         gpushare_error_text());
        }
        OK(gpushare_memory_info(gpu, &info));
        assert_true(info.used >= 16 * MIB && info.used <= 32 * MIB);
        OK(gpushare_module_unload(module));
        /* The charge comes back when the worker says that the module is gone. */
        for (int k = 0; k < 1000 && info.used; k++) {
            OK(gpushare_memory_info(gpu, &info));
            usleep(10000);
        }
        assert_int_equal(info.used, 0);
    }
    gpushare_close(&gpu);
    clear_environment();
}

static void pinned_host_memory_is_refused_beyond_the_limit(void **state)
{
    (void)state;
    gpushare_connection *gpu;
    void *a, *b;
    clear_environment();
    setenv("GPUSHARE_PINNED_HOST_MEM_LIMIT", "8M", 1);
    OK(connect_to(plain, &gpu));
    OK(gpushare_host_alloc(gpu, 5 * MIB, &a));
    assert_int_equal(gpushare_host_alloc(gpu, 5 * MIB, &b), GPUSHARE_ERROR_OUT_OF_MEMORY);
    OK(gpushare_host_free(gpu, a));
    OK(gpushare_host_alloc(gpu, 8 * MIB, &b));
    gpushare_close(&gpu);
    clear_environment();
}

/* The multiprocessors on which a client's kernel ran, as the kernel itself read them. */
static unsigned multiprocessors_used(gpushare_connection *gpu, unsigned char *used)
{
    static unsigned counts[SMS_MAX];
    gpushare_module *module;
    gpushare_function *where;
    gpushare_address histogram;
    unsigned long long ns = 300000;
    void *parameters[] = {&histogram, &ns};
    struct gpushare_dim grid = {1024, 1, 1}, block = {32, 1, 1};
    OK(gpushare_module_load(gpu, limits_ptx, 0, &module));
    OK(gpushare_module_function(module, "where", &where));
    OK(gpushare_memory_alloc(gpu, sizeof counts, &histogram));
    OK(gpushare_fill(gpu, histogram, 0, 4, SMS_MAX));
    OK(gpushare_launch(where, grid, block, 0, NULL, parameters));
    OK(gpushare_copy_from_device(gpu, counts, histogram, sizeof counts));
    unsigned sms = 0, blocks = 0;
    for (unsigned i = 0; i < SMS_MAX; i++) {
        used[i] = counts[i] != 0;
        sms += used[i];
        blocks += counts[i];
    }
    assert_int_equal(blocks, 1024);
    return sms;
}

static void kernels_stay_on_the_multiprocessors_granted(void **state)
{
    (void)state;
    static const char *const shares[] = {"10", "25", "50"};
    gpushare_connection *clients[3];
    unsigned char used[3][SMS_MAX];
    struct gpushare_limits limits = {.size = sizeof limits};
    unsigned granted = 0, all = granted_with(plain, NULL, NULL).multiprocessors;
    for (int i = 0; i < 3; i++) {
        clear_environment();
        setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", shares[i], 1);
        OK(connect_to(plain, &clients[i]));
    }
    clear_environment();
    for (int i = 0; i < 3; i++) {
        OK(gpushare_limits(clients[i], &limits));
        assert_true(multiprocessors_used(clients[i], used[i]) <= limits.multiprocessors);
        granted += limits.multiprocessors;
    }
    /* 10, 25 and 50 % fit beside one another, so no two share a multiprocessor; but where a device
     * has few groups, or none, more is granted than there is. */
    for (unsigned sm = 0; granted <= all && sm < SMS_MAX; sm++)
        assert_true(used[0][sm] + used[1][sm] + used[2][sm] <= 1);
    for (int i = 0; i < 3; i++)
        gpushare_close(&clients[i]);
}

/* Of all multiprocessors, whatever the sizes of the groups: less than one group is rounded away. */
static void a_limit_is_of_all_multiprocessors(void **state)
{
    (void)state;
    gpushare_connection *gpu;
    struct gpushare_device device = {.size = sizeof device};
    unsigned char used[SMS_MAX];
    clear_environment();
    /* So that each finds addresses while the last ones leave: a server under ThreadSanitizer has
     * only 128 GiB. */
    setenv("GPUSHARE_MEMORY_LIMIT", "1G", 1);
    OK(connect_to(plain, &gpu));
    OK(gpushare_device(gpu, &device));
    gpushare_close(&gpu);
    const unsigned all = device.multiprocessors, group = device.partition_multiprocessors;
    for (unsigned percentage = 7; group && percentage <= 100; percentage += 6) {
        struct gpushare_limits limits = {.size = sizeof limits};
        char text[8];
        snprintf(text, sizeof text, "%u", percentage);
        setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", text, 1);
        OK(connect_to(plain, &gpu));
        OK(gpushare_limits(gpu, &limits));
        const unsigned asked = all * percentage / 100, granted = limits.multiprocessors;
        if (asked >= group && (granted > asked || granted + group <= asked))
            fail_msg("%u %% of %u multiprocessors, in groups of %u, are %u", percentage, all, group,
                     granted);
        if (percentage == 55 || percentage == 97)
            assert_int_equal(multiprocessors_used(gpu, used), granted);
        gpushare_close(&gpu);
    }
    clear_environment();
}

static void quotas_hold_beside_unkind_neighbours(void **state)
{
    struct server *server = server_start(scene_server_args, NULL), *was = plain;
    struct scene *scene = scene_begin(server, SCENE_LOOPS | SCENE_PAUSES | SCENE_VISITS |
                                                  SCENE_STREAMS | SCENE_GREEDY);
    plain = server;
    device_memory_is_refused_beyond_the_limit_and_returned_by_free(state);
    pinned_host_memory_is_refused_beyond_the_limit(state);
    plain = was;
    assert_int_equal(scene_end(scene), 0);
    assert_int_equal(server_stop(server), 0);
}

/* The use of the device's clients, as gpusharectl says it; and the server's descriptors. */
struct holdings {
    long clients, bytes, worker_starts;
    size_t descriptors;
};

static struct holdings read_holdings(const struct server *server)
{
    json_t *device = admin_answer_device(server);
    struct holdings holdings = {
        .clients = (long)json_integer_value(json_object_get(device, "clients")),
        .bytes = (long)json_integer_value(json_object_get(device, "memory_used_bytes")),
        .worker_starts = (long)json_integer_value(json_object_get(device, "worker_starts")),
        .descriptors = server_fd_count(server_pid(server))};
    json_decref(device);
    return holdings;
}

static void charges_come_back_when_neighbours_fault(void **state)
{
    /* All clients are of one user, whose faults would keep its next ones waiting. */
    static const char *const args[] = {"--offender-wait", "0", NULL};
    struct server *server = server_start(args, NULL), *was = plain;
    struct holdings before = read_holdings(server), after = {.clients = 1};
    struct scene *scene =
        scene_begin(server, SCENE_FAULTS | SCENE_PAUSES | SCENE_VISITS | SCENE_GREEDY);
    assert_int_equal(scene_end(scene), 0);
    for (int left = (int)(patience_seconds(10) * 10); left; left--) {
        after = read_holdings(server);
        if (!after.clients && !after.bytes && after.descriptors <= before.descriptors)
            break;
        usleep(100000);
    }
    assert_true(after.worker_starts >= before.worker_starts + 2);
    assert_int_equal(after.clients, 0);
    assert_int_equal(after.bytes, 0);
    assert_true(after.descriptors <= before.descriptors);
    plain = server;
    device_memory_is_refused_beyond_the_limit_and_returned_by_free(state);
    plain = was;
    assert_int_equal(server_stop(server), 0);
}

/* On compute capability 9.x such a module widens everybody's partition. */
static void a_module_that_launches_kernels_is_refused_by_name(void **state)
{
    (void)state;
    static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2"
                               "(.param .b64 a, .param .b64 b);\n"
                               ".visible .entry parent() { ret; }\n";
    gpushare_connection *gpu;
    gpushare_module *module;
    struct gpushare_device device = {.size = sizeof device};
    clear_environment();
    OK(connect_to(plain, &gpu));
    OK(gpushare_device(gpu, &device));
    if (device.compute_major == 9 && device.partition_multiprocessors) {
        assert_int_equal(gpushare_module_load(gpu, text, 0, &module), GPUSHARE_ERROR_NOT_SUPPORTED);
        assert_non_null(strstr(gpushare_error_text(), "__cudaCDP2LaunchDevice"));
    }
    gpushare_close(&gpu);
}

static void a_device_that_is_not_visible_is_refused(void **state)
{
    (void)state;
    gpushare_connection *gpu = NULL;
    clear_environment();
    setenv("GPUSHARE_VISIBLE_DEVICES", "7", 1);
    gpushare_error error = connect_to(plain, &gpu);
    assert_true(error == GPUSHARE_ERROR_INVALID_DEVICE || error == GPUSHARE_ERROR_NO_DEVICE);
    clear_environment();
}

static void a_server_without_a_gpu_refuses_and_says_why(void **state)
{
    (void)state;
    const char *args[] = {"--driver", "/nonexistent/libcuda.so.1", NULL};
    char *log;
    assert_int_not_equal(server_start_refused(args, NULL, &log), 0);
    assert_non_null(strstr(log, "/nonexistent/libcuda.so.1"));
    free(log);
    const char *bad_env[] = {"GPUSHARE_ACTIVE_THREAD_PERCENTAGE=much", NULL};
    assert_int_not_equal(server_start_refused(NULL, bad_env, &log), 0);
    assert_non_null(strstr(log, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE"));
    assert_non_null(strstr(log, "much"));
    free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_granted_what_it_asks_below_the_ceiling),
        cmocka_unit_test(the_names_that_mps_uses_are_honoured_where_ours_are_unset),
        cmocka_unit_test(malformed_values_are_refused_with_variable_value_and_form),
        cmocka_unit_test(the_servers_own_values_are_default_and_ceiling),
        cmocka_unit_test(device_memory_is_refused_beyond_the_limit_and_returned_by_free),
        cmocka_unit_test(a_refusal_names_the_variable_that_this_user_set),
        cmocka_unit_test(module_variables_are_charged_wherever_they_lie),
        cmocka_unit_test(pinned_host_memory_is_refused_beyond_the_limit),
        cmocka_unit_test(kernels_stay_on_the_multiprocessors_granted),
        cmocka_unit_test(a_limit_is_of_all_multiprocessors),
        cmocka_unit_test(quotas_hold_beside_unkind_neighbours),
        cmocka_unit_test(charges_come_back_when_neighbours_fault),
        cmocka_unit_test(a_module_that_launches_kernels_is_refused_by_name),
        cmocka_unit_test(a_device_that_is_not_visible_is_refused),
        cmocka_unit_test(a_server_without_a_gpu_refuses_and_says_why),
    };
    return cmocka_run_group_tests(tests, start, server_teardown);
}
