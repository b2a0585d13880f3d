/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/ipc/arena.h"
#include "common/error.h"
#include "common/units.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/settings.h"

static struct settings settings;
static struct error why;

static int clear(void **state)
{
    (void)state;
    clearenv();
    return 0;
}

/* Words end with NULL; the program's name is added. */
static uint32_t read_words(const char *const *given)
{
    char *words[20] = {"gpushared"};
    int count = 1;
    while (*given)
        words[count++] = (char *)(uintptr_t)*given++;
    why = (struct error){0};
    return settings_read(&settings, count, words, &why);
}

#define READ(...) read_words((const char *const[]){__VA_ARGS__})

static void print_page(char *text, size_t bytes)
{
    FILE *to = fmemopen(text, bytes, "w");
    assert_non_null(to);
    settings_print(settings.page, to);
    fclose(to);
}

static void refused(const char *culprit, const char *form, const char *option, const char *value)
{
    assert_int_equal(READ(option, value, NULL), PROTO_ERROR_INVALID_VALUE);
    if (!strstr(why.text, culprit) || !strstr(why.text, form))
        fail_msg("no \"%s\" or \"%s\" in: %s", culprit, form, why.text);
}

static void defaults_need_nothing(void **state)
{
    (void)state;
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(READ(NULL), 0);
    assert_string_equal(settings.driver_name, "nvidia");
    assert_non_null(strstr(settings.driver, "/libcuda.so.1"));
    assert_string_equal(settings.socket, "/run/gpushare/gpushare.sock");
    assert_string_equal(settings.admin_socket, "/run/gpushare/admin.sock");
    assert_int_equal(settings.host_total, memory / 4);
    assert_int_equal(settings.host_client, memory / 16);
    assert_int_equal(settings.streams, 512);
    assert_int_equal(settings.device_base, ARENA_DEVICE_BASE);
    assert_int_equal(settings.socket_fd, -1);
    assert_int_equal(settings.admin_count, 0);
    assert_true(settings.worker[0] == '/');
}

static void options_are_taken(void **state)
{
    (void)state;
    assert_int_equal(READ("--driver", "softgpu", "--softgpu", "/s/libcuda.so.1", "--socket", "/a",
                          "--max-window", "1G", "--admin-uid", "1000", "--admin-uid", "1001",
                          "--admin-uid", "root", "--host-memory-total", "8G", "--log-level",
                          "debug", NULL),
                     0);
    assert_string_equal(settings.driver, "/s/libcuda.so.1");
    assert_string_equal(settings.driver_name, "softgpu");
    assert_string_equal(settings.socket, "/a");
    assert_int_equal(settings.max_window, UINT64_C(1) << 30);
    assert_int_equal(settings.admin_count, 3);
    assert_int_equal(settings.admins[1], 1001);
    assert_int_equal(settings.admins[2], 0);
    assert_int_equal(settings.host_total, UINT64_C(8) << 30);
    assert_int_equal(settings.host_client, UINT64_C(2) << 30);
    assert_int_equal(settings.log_level, LOG_LEVEL_DEBUG);
    assert_int_equal(settings.max_user_clients, 0);
    assert_int_equal(READ("--max-clients-per-user", "7", NULL), 0);
    assert_int_equal(settings.max_user_clients, 7);
    assert_int_equal(READ("--streams", "4096", NULL), 0);
    assert_int_equal(settings.streams, 4096);
    assert_int_equal(settings.schedule.standby, SCHEDULE_STANDBY_NONE);
    assert_int_equal(READ("--standby", "context", NULL), 0);
    assert_int_equal(settings.schedule.standby, SCHEDULE_STANDBY_CONTEXT);
    assert_int_equal(READ("--driver", "/x/libcuda.so.1", NULL), 0);
    assert_string_equal(settings.driver_name, "path");
    char text[8192] = "";
    assert_int_equal(READ("--version", NULL), 0);
    assert_int_equal(settings.page, SETTINGS_PAGE_VERSION);
    print_page(text, sizeof text);
    char version[32];
    snprintf(version, sizeof version, "protocol %d.%d\n", PROTO_MAJOR, PROTO_MINOR);
    assert_non_null(strstr(text, version));
    assert_int_equal(READ("-V", NULL), 0);
    assert_int_equal(settings.page, SETTINGS_PAGE_VERSION);
    assert_int_equal(READ("--help", NULL), 0);
    assert_int_equal(settings.page, SETTINGS_PAGE_HELP);
    assert_int_equal(READ("-h", NULL), 0);
    print_page(text, sizeof text);
    assert_non_null(strstr(text, "--host-memory-total"));
}

static void a_malformed_option_is_named_with_its_form(void **state)
{
    (void)state;
    refused("--driver", "nvidia, softgpu", "--driver", "amd");
    refused("--streams", "1 to 4096", "--streams", "0");
    refused("--streams", "1 to 4096", "--streams", "4097");
    refused("--streams", "1 to 4096", "--streams", "99999999999999999999");
    refused("--max-clients", "1 to", "--max-clients", "-1");
    refused("--max-clients-per-user", "1 to", "--max-clients-per-user", "0");
    refused("--max-window", "power of two", "--max-window", "3G");
    refused("--max-window", "size", "--max-window", "lots");
    refused("--socket", "a path", "--socket", "");
    refused("--standby", "none, driver and context", "--standby", "warm");
    refused("--admin-uid", "0 to", "--admin-uid", "4294967295");
    refused("--admin-uid", "there is no user \"no such\"", "--admin-uid", "no such");
    refused("--log-level", "notice", "--log-level", "loud");
    refused("--arena", "power of two", "--arena", "3G");
    refused("--device-base", "address", "--device-base", "zero");
    refused("--device-base", "one bit", "--device-base", "0x1000");
    refused("--nonsense", "--help", "--nonsense", NULL);
    refused("--socket", "--help", "--socket", NULL);
    refused("stray", "--help", "stray", NULL);
}

/* Each of them has its own place in the settings, and the same reader. */
static void times_have_units_in_every_option(void **state)
{
    (void)state;
    assert_int_equal(READ("--offender-wait", "1h", "--watchdog-warning", "1500ms",
                          "--watchdog-limit", "2min", "--departed-time-limit", "5s", NULL),
                     0);
    assert_int_equal(settings.offender_wait_ns, 3600 * UNITS_SECOND);
    assert_int_equal(settings.schedule.watchdog_warning_ns, 1500 * UNITS_MS);
    assert_int_equal(settings.schedule.watchdog_limit_ns, 120 * UNITS_SECOND);
    assert_int_equal(settings.schedule.departed_limit_ns, 5 * UNITS_SECOND);
    static const char *const ways[] = {"60", "60s", "1min", "60000ms"};
    for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        assert_int_equal(READ("--compile-time", ways[i], "--hello-timeout", ways[i],
                              "--orphan-limit", ways[i], NULL),
                         0);
        assert_int_equal(settings.compile_seconds, 60);
        assert_int_equal(settings.hello_timeout_ms, 60000);
        assert_int_equal(settings.orphan_seconds, 60);
    }
    static const char *const names[] = {
        "--compile-time",     "--hello-timeout",  "--orphan-limit",       "--offender-wait",
        "--watchdog-warning", "--watchdog-limit", "--departed-time-limit"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        refused(names[i], "units: " UNITS_DURATIONS, names[i], "5m");
        refused(names[i], "units: " UNITS_DURATIONS, names[i], "200h");
    }
    refused("--hello-timeout", "whole seconds from 1s to 1h", "--hello-timeout", "1500ms");
    refused("--compile-time", "from 1s to 168h", "--compile-time", "0");
}

static void the_environment_sets_defaults(void **state)
{
    (void)state;
    setenv("GPUSHARE_SOCKET", "/e/s", 1);
    setenv("GPUSHARE_PINNED_HOST_MEM_LIMIT", "64M", 1);
    setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "50", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    assert_int_equal(READ(NULL), 0);
    assert_string_equal(settings.socket, "/e/s");
    assert_string_equal(settings.admin_socket, "/e/admin.sock");
    assert_int_equal(settings.host_client, 64 << 20);
    assert_int_equal(settings.limits.allowance.threads.limit, 5000);
    assert_int_equal(settings.limits.allowance.priority, 1);
    assert_int_equal(READ("--socket", "/o/s", "--host-memory-total", "32M", NULL), 0);
    assert_string_equal(settings.socket, "/o/s");
    assert_string_equal(settings.admin_socket, "/o/admin.sock");
    assert_int_equal(settings.host_client, 32 << 20);
    assert_int_equal(settings.pinned_pool, 4 << 20);
    assert_int_equal(READ("--pinned-pool", "0", "--host-memory-total", "32M", NULL), 0);
    assert_int_equal(settings.pinned_pool, 0);
    assert_int_equal(settings.kernel_heap, 0);
    assert_int_equal(READ("--kernel-heap", "128M", NULL), 0);
    assert_int_equal(settings.kernel_heap, 128 << 20);
    refused("--kernel-heap", "a size above 0", "--kernel-heap", "0");
    unsetenv("GPUSHARE_SOCKET");
    assert_int_equal(READ(NULL), 0);
    assert_string_equal(settings.admin_socket, "/run/user/7/gpushare/admin.sock");
    setenv("RUNTIME_DIRECTORY", "/run/one:/run/two", 1);
    assert_int_equal(READ(NULL), 0);
    assert_string_equal(settings.admin_socket, "/run/one/admin.sock");
    assert_string_equal(settings.state, "");
    setenv("STATE_DIRECTORY", "/var/one:/var/two", 1);
    assert_int_equal(READ(NULL), 0);
    assert_string_equal(settings.state, "/var/one");
    assert_int_equal(READ("--state-dir", "/var/three", NULL), 0);
    assert_string_equal(settings.state, "/var/three");
    setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "150", 1);
    assert_int_equal(READ(NULL), PROTO_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(why.text, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE"));
    assert_non_null(strstr(why.text, "150"));
}

static void a_relative_path_begins_in_the_present_folder(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    assert_non_null(getcwd(folder, sizeof folder));
    assert_int_equal(chdir("/usr/bin"), 0);
    assert_int_equal(READ("--config", "here.yaml", "--socket", "run/s", "--worker", "./worker",
                          "--driver", "../lib/libcuda.so.1", "--admin-socket", "/a", NULL),
                     0);
    assert_int_equal(chdir(folder), 0);
    assert_string_equal(settings.config, "/usr/bin/here.yaml");
    assert_string_equal(settings.socket, "/usr/bin/run/s");
    assert_string_equal(settings.worker, "/usr/bin/./worker");
    assert_string_equal(settings.driver, "/usr/bin/../lib/libcuda.so.1");
    assert_string_equal(settings.admin_socket, "/a");
}

/* A socket as systemd passes it: descriptor 3. */
static void a_server_with_a_passed_admin_socket_has_no_owner(void **state)
{
    (void)state;
    char pid[16];
    assert_int_equal(READ(NULL), 0);
    assert_int_equal(settings.owner, geteuid());
    int kept = fcntl(3, F_DUPFD_CLOEXEC, 10);
    int one = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(one >= 0 && (one == 3 || dup2(one, 3) == 3));
    assert_int_equal(bind(3, &(struct sockaddr){.sa_family = AF_UNIX}, sizeof(sa_family_t)), 0);
    assert_int_equal(listen(3, 1), 0);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    assert_int_equal(READ(NULL), 0);
    assert_int_equal(settings.admin_socket_fd, 3);
    assert_int_equal(settings.owner, 0);
    assert_int_equal(settings.kept_count, 0);
    free(settings.kept);
    close(3);
    if (one != 3)
        close(one);
    if (kept >= 0) {
        dup2(kept, 3);
        close(kept);
    }
}

static void other_address_ranges_can_be_taken(void **state)
{
    (void)state;
    const struct arena arena = {UINT64_C(1) << 44, UINT64_C(3) << 44, ADDRESS_PLAN_SMALLEST << 4};
    settings_default(&settings);
    settings.max_window = ADDRESS_PLAN_SMALLEST << 5;
    settings_take_arena(&settings, &arena);
    assert_true(settings.device_base == arena.device_base);
    assert_true(settings.host_base == arena.host_base);
    assert_true(settings.arena_bytes == arena.bytes);
    assert_true(settings.max_window == arena.bytes);
    settings.max_window = ADDRESS_PLAN_SMALLEST;
    settings_take_arena(&settings, &arena);
    assert_true(settings.max_window == ADDRESS_PLAN_SMALLEST);
}

static void the_environment_says_how_gpus_are_shared(void **state)
{
    (void)state;
    struct schedule schedule = schedule_default();
    assert_int_equal(READ(NULL), 0);
    assert_int_equal(schedule_differs(&settings.schedule, &schedule), 0);
    setenv("GPUSHARE_MODE", "fair", 1);
    setenv("GPUSHARE_LEASE", "short", 1);
    setenv("GPUSHARE_PRECISION", "2.5%", 1);
    setenv("GPUSHARE_QUANTUM", "2s", 1);
    setenv("GPUSHARE_WINDOW_LIMIT", "100ms", 1);
    setenv("GPUSHARE_LOCAL_MEMORY", "4K", 1);
    schedule = (struct schedule){.mode = PROTO_MODE_FAIR,
                                 .precision = 250,
                                 .lease_ns = 10000000,
                                 .quantum_ns = 2000000000,
                                 .window_limit_ns = 100000000,
                                 .local_memory = 4096,
                                 .departed_limit_ns = UINT64_C(10000000000),
                                 .watchdog_warning_ns = 2000000000,
                                 .watchdog_limit_ns = UINT64_C(10000000000)};
    assert_int_equal(READ(NULL), 0);
    assert_int_equal(schedule_differs(&settings.schedule, &schedule), 0);
    setenv("GPUSHARE_LEASE", "1ms", 1);
    assert_int_equal(READ(NULL), PROTO_ERROR_INVALID_VALUE);
    assert_string_equal(why.text, "GPUSHARE_LEASE: lease: \"1ms\" is not " SCHEDULE_FORM_LEASE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_need_nothing, clear),
        cmocka_unit_test_setup(options_are_taken, clear),
        cmocka_unit_test_setup(a_malformed_option_is_named_with_its_form, clear),
        cmocka_unit_test_setup(times_have_units_in_every_option, clear),
        cmocka_unit_test_setup(the_environment_sets_defaults, clear),
        cmocka_unit_test_setup(a_relative_path_begins_in_the_present_folder, clear),
        cmocka_unit_test_setup(a_server_with_a_passed_admin_socket_has_no_owner, clear),
        cmocka_unit_test_setup(other_address_ranges_can_be_taken, clear),
        cmocka_unit_test_setup(the_environment_says_how_gpus_are_shared, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
