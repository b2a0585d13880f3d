/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Connecting: environment and options, what is asked and granted, refusals, windows, forks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/engine/connection.h"
#include "client/gpushare.h"
#include "tests/support/fake_server.h"

static const char *const variables[] = {
    "GPUSHARE_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "GPUSHARE_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "GPUSHARE_PINNED_HOST_MEM_LIMIT",
    "GPUSHARE_CLIENT_PRIORITY",
    "CUDA_MPS_CLIENT_PRIORITY",
    "GPUSHARE_CLIENT_NAME",
    "GPUSHARE_THREADS_REQUEST",
    "GPUSHARE_TIME_REQUEST",
    "GPUSHARE_TIME_LIMIT",
    "GPUSHARE_MEMORY_REQUEST",
    "GPUSHARE_HOST_MEMORY_REQUEST",
    "GPUSHARE_THREADS_LIMIT",
    "GPUSHARE_MEMORY_LIMIT",
    "GPUSHARE_HOST_MEMORY_LIMIT",
    "GPUSHARE_FRACTION",
    "GPUSHARE_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "GPUSHARE_SOCKET",
    "XDG_RUNTIME_DIR",
};

static int clean(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    return 0;
}

static struct fake_server *start(uint32_t devices)
{
    struct fake_options options = {.devices = devices};
    struct fake_server *server = fake_start(&options);
    setenv("GPUSHARE_SOCKET", fake_socket(server), 1);
    return server;
}

static gpushare_connection *must_connect(const struct gpushare_options *options)
{
    gpushare_connection *connection = NULL;
    gpushare_error error = gpushare_connect(options, &connection);
    if (error)
        print_error("connect: %s\n", gpushare_error_text());
    assert_int_equal(error, GPUSHARE_SUCCESS);
    assert_non_null(connection);
    return connection;
}

static void nothing_wished_asks_for_nothing(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = must_connect(NULL);
    struct proto_attach asked = fake_attach(server, 0);
    assert_true(asked.allowance.threads.limit == PROTO_UNSET);
    assert_true(asked.allowance.memory.limit == PROTO_UNSET);
    assert_true(asked.allowance.host_memory.limit == PROTO_UNSET);
    assert_int_equal(asked.allowance.priority, 0);
    assert_string_equal(asked.name, "test_connect");
    gpushare_close(&gpu);
    assert_null(gpu);
    gpushare_close(&gpu);
    gpushare_close(NULL);
    fake_stop(server);
}

static void environment_reaches_the_server_and_limits(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "37.5", 1);
    setenv("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=512M", 1);
    setenv("GPUSHARE_PINNED_HOST_MEM_LIMIT", "32M", 1);
    setenv("GPUSHARE_CLIENT_PRIORITY", "1", 1);
    setenv("GPUSHARE_CLIENT_NAME", "renamed", 1);
    gpushare_connection *gpu = must_connect(NULL);
    struct proto_attach asked = fake_attach(server, 0);
    assert_int_equal(asked.allowance.threads.limit, 3750);
    assert_int_equal(asked.allowance.memory.limit, 512 << 20);
    assert_int_equal(asked.allowance.host_memory.limit, 32 << 20);
    assert_int_equal(asked.allowance.priority, 1);
    assert_string_equal(asked.name, "renamed");

    struct gpushare_limits limits = {.size = sizeof limits};
    assert_int_equal(gpushare_limits(gpu, &limits), GPUSHARE_SUCCESS);
    assert_true(limits.thread_percentage_asked == 37.5 && limits.thread_percentage == 37.5);
    assert_int_equal(limits.memory_limit_asked, 512 << 20);
    assert_int_equal(limits.memory_limit, 512 << 20);
    assert_int_equal(limits.host_memory_limit_asked, 32 << 20);
    assert_int_equal(limits.priority_asked, 1);
    assert_int_equal(limits.client, fake_attached(server, 0).client);
    assert_int_equal(limits.multiprocessors, 132);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void namesakes_count_where_ours_are_unset(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50", 1);
    setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1G", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
    gpushare_connection *gpu = must_connect(NULL);
    struct proto_attach asked = fake_attach(server, 0);
    assert_int_equal(asked.allowance.threads.limit, 5000);
    assert_int_equal(asked.allowance.memory.limit, 1 << 30);
    assert_int_equal(asked.allowance.priority, 1);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void options_and_environment_the_stricter_holds(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    setenv("GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "40", 1);
    setenv("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=512M", 1);
    setenv("GPUSHARE_PINNED_HOST_MEM_LIMIT", "32M", 1);
    setenv("GPUSHARE_CLIENT_PRIORITY", "1", 1);
    struct gpushare_options options = {.size = sizeof options};
    options.thread_percentage = 60;
    options.memory_limit = 256 << 20;
    options.host_memory_limit = 64 << 20;
    options.priority = 2;
    options.name = "from options";
    gpushare_connection *gpu = must_connect(&options);
    struct proto_attach asked = fake_attach(server, 0);
    assert_int_equal(asked.allowance.threads.limit, 4000);
    assert_int_equal(asked.allowance.memory.limit, 256 << 20);
    assert_int_equal(asked.allowance.host_memory.limit, 32 << 20);
    assert_int_equal(asked.allowance.priority, 2);
    assert_string_equal(asked.name, "from options");
    gpushare_close(&gpu);
    fake_stop(server);
}

static struct gpushare_limits limits_of(gpushare_connection *gpu)
{
    struct gpushare_limits limits = {.size = sizeof limits};
    assert_int_equal(gpushare_limits(gpu, &limits), GPUSHARE_SUCCESS);
    return limits;
}

static void requests_and_shares_of_time_are_asked_and_told(void **state)
{
    (void)state;
    struct fake_options in_fair = {.mode = 2};
    struct fake_server *server = fake_start(&in_fair);
    setenv("GPUSHARE_SOCKET", fake_socket(server), 1);
    setenv("GPUSHARE_TIME_LIMIT", "60%", 1);
    setenv("GPUSHARE_THREADS_REQUEST", "40%", 1);
    struct gpushare_options options = {.size = sizeof options,
                                       .thread_request = 30,
                                       .thread_percentage = 50,
                                       .time_request = 25.5,
                                       .time_limit = 70};
    gpushare_connection *gpu = must_connect(&options);
    struct proto_attach asked = fake_attach(server, 0);
    assert_int_equal(asked.allowance.threads.request, 3000);
    assert_int_equal(asked.allowance.time.request, 2550);
    assert_int_equal(asked.allowance.time.limit, 6000);
    struct gpushare_limits limits = limits_of(gpu);
    assert_true(limits.thread_request_asked == 30 && limits.thread_request == 30);
    assert_true(limits.time_request_asked == 25.5 && limits.time_request == 25.5);
    assert_true(limits.time_limit_asked == 60 && limits.time_limit == 60);
    assert_int_equal(limits.mode, GPUSHARE_MODE_FAIR);
    assert_int_equal(limits.time_enforced, 1);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void time_is_enforced_in_two_modes_and_a_client_is_told(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode < 4; mode++) {
        struct fake_options shared = {.mode = mode};
        struct fake_server *server = fake_start(&shared);
        setenv("GPUSHARE_SOCKET", fake_socket(server), 1);
        gpushare_connection *gpu = must_connect(NULL);
        struct gpushare_limits limits = limits_of(gpu);
        assert_int_equal(limits.mode, mode);
        assert_int_equal(limits.time_enforced, mode == 1 || mode == 2);
        assert_true(limits.time_request_asked == 0 && limits.time_limit == 100);
        gpushare_close(&gpu);
        fake_stop(server);
    }
}

static void a_fraction_is_of_memory_and_of_time(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    struct gpushare_options options = {
        .size = sizeof options, .fraction = 0.25, .time_request = 50};
    gpushare_connection *gpu = must_connect(&options);
    struct gpushare_device device = {.size = sizeof device};
    assert_int_equal(gpushare_device(gpu, &device), GPUSHARE_SUCCESS);
    struct proto_attach asked = fake_attach(server, 0);
    assert_true(asked.allowance.memory.limit == device.memory / 4);
    assert_int_equal(asked.allowance.time.request, 2500);
    gpushare_close(&gpu);
    setenv("GPUSHARE_FRACTION", "0.125", 1);
    gpu = must_connect(&options);
    asked = fake_attach(server, 1);
    assert_true(asked.allowance.memory.limit == device.memory / 8);
    assert_int_equal(asked.allowance.time.request, 1250);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void requests_of_memory_are_asked_and_told(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    struct gpushare_options options = {
        .size = sizeof options, .memory_request = 3 << 20, .host_memory_request = 2 << 20};
    gpushare_connection *gpu = must_connect(&options);
    struct proto_attach asked = fake_attach(server, 0);
    assert_int_equal(asked.allowance.memory.request, 3 << 20);
    assert_int_equal(asked.allowance.host_memory.request, 2 << 20);
    struct gpushare_limits limits = limits_of(gpu);
    assert_int_equal(limits.memory_request_asked, 3 << 20);
    assert_int_equal(limits.memory_request, 3 << 20);
    assert_int_equal(limits.host_memory_request_asked, 2 << 20);
    assert_int_equal(limits.host_memory_request, 2 << 20);
    struct gpushare_device device = {.size = sizeof device};
    assert_int_equal(gpushare_device(gpu, &device), GPUSHARE_SUCCESS);
    gpushare_close(&gpu);
    /* The lower of both, a share being one of this device. */
    options.memory_request = device.memory;
    setenv("GPUSHARE_MEMORY_REQUEST", "12.5%", 1);
    setenv("GPUSHARE_HOST_MEMORY_REQUEST", "4M", 1);
    gpu = must_connect(&options);
    asked = fake_attach(server, 1);
    assert_true(asked.allowance.memory.request == device.memory / 8);
    assert_int_equal(asked.allowance.host_memory.request, 2 << 20);
    gpushare_close(&gpu);
    setenv("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=1M", 1);
    assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_INVALID_ENVIRONMENT);
    assert_non_null(strstr(gpushare_error_text(), "GPUSHARE_MEMORY_REQUEST requests "));
    assert_non_null(
        strstr(gpushare_error_text(), "and GPUSHARE_PINNED_DEVICE_MEM_LIMIT limits it to 1 MiB"));
    fake_stop(server);
}

static void the_device_has_as_many_multiprocessors_as_the_client(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = must_connect(NULL);
    struct gpushare_device device = {.size = sizeof device};
    fake_regrant(server, 0, 24);
    assert_int_equal(gpushare_device(gpu, &device), GPUSHARE_SUCCESS);
    assert_int_equal(device.multiprocessors, 132); /* as of connecting */
    assert_int_equal(limits_of(gpu).multiprocessors, 24);
    assert_int_equal(gpushare_device(gpu, &device), GPUSHARE_SUCCESS);
    assert_int_equal(device.multiprocessors, 24);
    assert_int_equal(gpushare_device_query(NULL, &device), GPUSHARE_SUCCESS);
    assert_int_equal(device.multiprocessors, 132); /* the whole device's */
    gpushare_close(&gpu);
    fake_stop(server);
}

/* A caller that was built with an earlier header gets what it knew, and nothing behind. */
static void an_earlier_headers_limits_are_filled_as_far_as_they_go(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = must_connect(NULL);
    struct gpushare_limits limits;
    memset(&limits, 0xaa, sizeof limits);
    limits.size = offsetof(struct gpushare_limits, thread_request_asked);
    assert_int_equal(gpushare_limits(gpu, &limits), GPUSHARE_SUCCESS);
    assert_int_equal(limits.multiprocessors, 132);
    for (size_t i = limits.size; i < sizeof limits; i++)
        assert_int_equal(((const unsigned char *)&limits)[i], 0xaa);
    gpushare_close(&gpu);
    struct gpushare_options options = {.size = offsetof(struct gpushare_options, thread_request),
                                       .thread_request = 7000};
    gpu = must_connect(&options);
    assert_true(fake_attach(server, 1).allowance.threads.request == PROTO_UNSET);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void option_refused(struct gpushare_options options, const char *words)
{
    gpushare_connection *gpu = NULL;
    options.size = sizeof options;
    assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    if (!strstr(gpushare_error_text(), words))
        fail_msg("\"%s\" lacks \"%s\"", gpushare_error_text(), words);
}

static void shares_out_of_range_are_refused_by_name(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    option_refused((struct gpushare_options){.thread_request = 100.1}, "thread_request is 100.1");
    option_refused((struct gpushare_options){.time_request = -1}, "time_request is -1");
    option_refused((struct gpushare_options){.time_limit = 0.001}, "time_limit is 0.001");
    option_refused((struct gpushare_options){.time_limit = __builtin_nan("")}, "time_limit");
    option_refused((struct gpushare_options){.fraction = 1.01}, "fraction is 1.01");
    option_refused((struct gpushare_options){.fraction = __builtin_nan("")}, "fraction");
    option_refused((struct gpushare_options){.fraction = -0.5}, "fraction is -0.5");
    option_refused((struct gpushare_options){.thread_request = 30, .thread_percentage = 20},
                   "above its limit of 20");
    option_refused((struct gpushare_options){.memory_request = 3, .memory_limit = 2},
                   "memory_request is 3B, above its limit of 2B");
    option_refused((struct gpushare_options){.host_memory_request = 3, .host_memory_limit = 2},
                   "host_memory_request is 3B, above its limit of 2B");
    option_refused((struct gpushare_options){.fraction = 0.5, .time_limit = 40},
                   "time_request is 50, above its limit of 40");
    assert_int_equal(fake_count(server, PROTO_ATTACH), 0);
    fake_stop(server);
}

/* The text names variable and value, and nothing was sent. */
static void refused(struct fake_server *server, const char *variable, const char *value)
{
    gpushare_connection *gpu = NULL;
    setenv(variable, value, 1);
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_INVALID_ENVIRONMENT);
    assert_null(gpu);
    assert_non_null(strstr(gpushare_error_text(), variable));
    assert_non_null(strstr(gpushare_error_text(), value));
    assert_int_equal(fake_count(server, PROTO_ATTACH), 0);
    unsetenv(variable);
}

static void malformed_variables_are_refused_by_name(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    refused(server, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "101");
    refused(server, "GPUSHARE_ACTIVE_THREAD_PERCENTAGE", "many");
    refused(server, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "-1");
    refused(server, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "1G");
    refused(server, "GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=1X");
    refused(server, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=");
    refused(server, "GPUSHARE_PINNED_HOST_MEM_LIMIT", "0=1G");
    refused(server, "GPUSHARE_CLIENT_PRIORITY", "high");
    refused(server, "CUDA_MPS_CLIENT_PRIORITY", "-3");
    refused(server, "GPUSHARE_VISIBLE_DEVICES", "zero");
    assert_int_equal(fake_open(server), 0);
    fake_stop(server);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = NULL;
    struct gpushare_options no_size = {0};
    assert_int_equal(gpushare_connect(&no_size, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    struct gpushare_options percent = {.size = sizeof percent, .thread_percentage = 0.5};
    assert_int_equal(gpushare_connect(&percent, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    percent.thread_percentage = __builtin_nan("");
    assert_int_equal(gpushare_connect(&percent, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    struct gpushare_options priority = {.size = sizeof priority, .priority = 1001};
    assert_int_equal(gpushare_connect(&priority, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    struct gpushare_options name = {.size = sizeof name, .name = "line\nbreak"};
    assert_int_equal(gpushare_connect(&name, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    struct gpushare_options device = {.size = sizeof device, .device = 1};
    assert_int_equal(gpushare_connect(&device, &gpu), GPUSHARE_ERROR_INVALID_DEVICE);
    assert_int_equal(gpushare_connect(NULL, NULL), GPUSHARE_ERROR_INVALID_VALUE);
    /* A struct of a later version whose unknown member is set. */
    struct {
        struct gpushare_options known;
        uint64_t unknown;
    } later = {{.size = sizeof later}, 1};
    assert_int_equal(gpushare_connect(&later.known, &gpu), GPUSHARE_ERROR_INVALID_VALUE);
    later.unknown = 0;
    assert_int_equal(gpushare_connect(&later.known, &gpu), GPUSHARE_SUCCESS);
    gpushare_close(&gpu);
    /* One of an earlier version, which ended after the device. */
    struct gpushare_options earlier = {.size = 12, .thread_percentage = 12345};
    assert_int_equal(gpushare_connect(&earlier, &gpu), GPUSHARE_SUCCESS);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void no_server_is_connection_failed_with_the_path(void **state)
{
    (void)state;
    gpushare_connection *gpu = NULL;
    setenv("GPUSHARE_SOCKET", "/nonexistent/gpushare.sock", 1);
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_CONNECTION_FAILED);
    assert_string_equal(gpushare_error_text(),
                        "no server can be reached at /nonexistent/gpushare.sock (No such file or "
                        "directory), the path that GPUSHARE_SOCKET gives: start gpushared there, "
                        "or correct the path");
    struct gpushare_options options = {.size = sizeof options, .socket = "/nonexistent/other"};
    assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_CONNECTION_FAILED);
    assert_non_null(strstr(gpushare_error_text(), "the path that an option of the program gives"));
}

/* Root may open every socket, so the test becomes nobody for the call. */
static void a_socket_without_permission_is_the_administrators_matter(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpushare-denied-XXXXXX", path[80];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/gpushare.sock", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    setenv("GPUSHARE_SOCKET", path, 1);
    gpushare_connection *gpu = NULL;
    uid_t self = geteuid();
    if (self == 0)
        assert_int_equal(seteuid(65534), 0);
    gpushare_error error = gpushare_connect(NULL, &gpu);
    assert_int_equal(seteuid(self), 0);
    assert_int_equal(error, GPUSHARE_ERROR_CONNECTION_FAILED);
    assert_non_null(strstr(gpushare_error_text(), "does not let this user connect"));
    close(fd);
    unlink(path);
    rmdir(folder);
}

/* Remains of a killed server in the runtime directory are the first to be named. */
static void dead_socket_in_the_runtime_directory_is_named(void **state)
{
    (void)state;
    char folder[] = "/tmp/gpushare-runtime-XXXXXX", inner[64], path[80], begin[160];
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/gpushare", folder);
    snprintf(path, sizeof path, "%s/gpushare.sock", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    unsetenv("GPUSHARE_SOCKET");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    gpushare_connection *gpu = NULL;
    close(fd);
    snprintf(begin, sizeof begin, "no server can be reached at %s (Connection refused), nor at ",
             path);
    /* A server of the machine's own may be there after all. */
    if (gpushare_connect(NULL, &gpu) != GPUSHARE_SUCCESS)
        assert_memory_equal(gpushare_error_text(), begin, strlen(begin));
    gpushare_close(&gpu);
    unlink(path);
    /* One for byte streams, as the admin socket is. */
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    setenv("GPUSHARE_SOCKET", path, 1);
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_CONNECTION_FAILED);
    assert_non_null(strstr(gpushare_error_text(), "is not a socket for clients"));
    close(fd);
    unlink(path);
    rmdir(inner);
    rmdir(folder);
}

static void socket_option_beats_the_environment(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    setenv("GPUSHARE_SOCKET", "/nonexistent/gpushare.sock", 1);
    struct gpushare_options options = {.size = sizeof options, .socket = fake_socket(server)};
    gpushare_connection *gpu = must_connect(&options);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void runtime_directory_is_where_a_socket_is_looked_for(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    char folder[] = "/tmp/gpushare-runtime-XXXXXX", inner[64], path[80];
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/gpushare", folder);
    snprintf(path, sizeof path, "%s/gpushare.sock", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    assert_int_equal(symlink(fake_socket(server), path), 0);
    unsetenv("GPUSHARE_SOCKET");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    gpushare_connection *gpu = must_connect(NULL);
    gpushare_close(&gpu);
    unlink(path);
    rmdir(inner);
    rmdir(folder);
    fake_stop(server);
}

static void server_refusals_reach_the_caller_in_words(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = NULL;
    fake_refuse(server, PROTO_HELLO, PROTO_ERROR_PROTOCOL_VERSION, "speak 2.0 or go");
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_PROTOCOL_VERSION);
    assert_string_equal(gpushare_error_text(), "speak 2.0 or go");
    fake_refuse(server, PROTO_HELLO, 0, NULL);
    fake_refuse(server, PROTO_ATTACH, PROTO_ERROR_TOO_MANY_CLIENTS, "1000 are enough");
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_TOO_MANY_CLIENTS);
    assert_string_equal(gpushare_error_text(), "1000 are enough");
    fake_refuse(server, PROTO_ATTACH, 0, NULL);
    fake_refuse(server, PROTO_DEVICE_QUERY, PROTO_ERROR_DEVICE_NOT_READY, "its worker is starting");
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_DEVICE_NOT_READY);
    assert_string_equal(gpushare_error_text(), "its worker is starting");
    fake_refuse(server, PROTO_DEVICE_QUERY, 0, NULL);
    /* Whatever dies on the way, at whatever point, leaves an error and nothing open. */
    static const uint16_t opcodes[] = {PROTO_HELLO, PROTO_DEVICE_QUERY, PROTO_ATTACH};
    for (size_t i = 0; i < 3; i++) {
        if (opcodes[i] != PROTO_HELLO) {
            fake_trick(server, opcodes[i], FAKE_HANG_UP);
            assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_CONNECTION_LOST);
        }
        fake_trick(server, opcodes[i], FAKE_GARBAGE);
        assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_PROTOCOL_VIOLATION);
        fake_trick(server, opcodes[i], FAKE_WRONG_MESSAGE);
        assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_PROTOCOL_VIOLATION);
        fake_trick(server, opcodes[i], FAKE_END);
        assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_KILLED);
        assert_string_equal(gpushare_error_text(), "by the test");
    }
    assert_null(gpu);
    fake_stop(server);
}

/* Its server was killed when it had accepted the connection; the next one is there. */
static void a_connection_that_dies_at_hello_is_made_again(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    fake_trick(server, PROTO_HELLO, FAKE_HANG_UP);
    gpushare_connection *gpu = must_connect(NULL);
    assert_int_equal(fake_count(server, PROTO_HELLO), 2);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void taken_windows_are_exchanged(void **state)
{
    (void)state;
    struct fake_options taken = {.windows_taken = 3};
    struct fake_server *server = fake_start(&taken);
    setenv("GPUSHARE_SOCKET", fake_socket(server), 1);
    gpushare_connection *gpu = must_connect(NULL);
    assert_int_equal(fake_count(server, PROTO_WINDOW_MOVE), 3);
    gpushare_address address;
    assert_int_equal(gpushare_memory_alloc(gpu, 4096, &address), GPUSHARE_SUCCESS);
    assert_true(address == fake_attached(server, 0).device_base);
    gpushare_close(&gpu);
    fake_stop(server);

    struct fake_options all = {.windows_taken = 16};
    server = fake_start(&all);
    setenv("GPUSHARE_SOCKET", fake_socket(server), 1);
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_WINDOW_TAKEN);
    fake_stop(server);
}

static void visible_devices_choose_and_order(void **state)
{
    (void)state;
    struct fake_server *server = start(3);
    uint32_t count = 0;
    assert_int_equal(gpushare_device_count(NULL, &count), GPUSHARE_SUCCESS);
    assert_int_equal(count, 3);
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    setenv("GPUSHARE_PINNED_DEVICE_MEM_LIMIT", "0=64M,1=32M", 1);
    assert_int_equal(gpushare_device_count(NULL, &count), GPUSHARE_SUCCESS);
    assert_int_equal(count, 2);
    struct gpushare_device device = {.size = sizeof device};
    assert_int_equal(gpushare_device_query(NULL, &device), GPUSHARE_SUCCESS);
    assert_string_equal(device.name, "fake device 2");
    struct gpushare_options second = {.size = sizeof second, .device = 1};
    gpushare_connection *gpu = must_connect(&second);
    assert_int_equal(fake_attach(server, 0).device, 0);
    assert_int_equal(fake_attach(server, 0).allowance.memory.limit, 32 << 20);
    device.size = sizeof device;
    assert_int_equal(gpushare_device(gpu, &device), GPUSHARE_SUCCESS);
    assert_int_equal(device.ordinal, 1);
    assert_string_equal(device.name, "fake device 0");
    assert_int_equal(device.grid.y, 65535);
    gpushare_close(&gpu);
    setenv("GPUSHARE_VISIBLE_DEVICES", "", 1);
    assert_int_equal(gpushare_device_count(NULL, &count), GPUSHARE_SUCCESS);
    assert_int_equal(count, 0);
    assert_int_equal(gpushare_connect(NULL, &gpu), GPUSHARE_ERROR_NO_DEVICE);
    fake_stop(server);
}

/* A server of an earlier minor version does not know the question, and would end the connection. */
static void an_older_server_is_not_asked_what_it_does_not_know(void **state)
{
    (void)state;
    for (uint32_t older = 0; older < 2; older++) {
        struct fake_server *server = fake_start(&(struct fake_options){.older = older});
        setenv("GPUSHARE_SOCKET", fake_socket(server), 1);
        fake_refuse(server, older ? PROTO_KERNEL_HEAP_QUERY : 0, PROTO_ERROR_UNKNOWN, "not known");
        struct gpushare_device device = {.size = sizeof device};
        assert_int_equal(gpushare_device_query(NULL, &device), GPUSHARE_SUCCESS);
        assert_int_equal(device.kernel_heap, older ? 0 : 8 << 20);
        fake_stop(server);
    }
}

static void structs_of_other_sizes(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = must_connect(NULL);
    struct {
        struct gpushare_device device;
        uint64_t behind;
    } later;
    memset(&later, 0xee, sizeof later);
    later.device.size = sizeof later;
    assert_int_equal(gpushare_device(gpu, &later.device), GPUSHARE_SUCCESS);
    assert_int_equal(later.behind, 0);
    memset(&later, 0xee, sizeof later);
    later.device.size = offsetof(struct gpushare_device, uuid);
    assert_int_equal(gpushare_device(gpu, &later.device), GPUSHARE_SUCCESS);
    assert_string_equal(later.device.name, "fake device 0");
    assert_int_equal(later.device.uuid[0], 0xee);
    /* Without any member behind it, and larger than any version will be. */
    const size_t refused[] = {0, sizeof later.device.size, 4097, SIZE_MAX};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        later.device.size = refused[i];
        assert_int_equal(gpushare_device(gpu, &later.device), GPUSHARE_ERROR_INVALID_VALUE);
    }
    assert_int_equal(gpushare_device(gpu, NULL), GPUSHARE_ERROR_INVALID_VALUE);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void second_connection_joins_the_group(void **state)
{
    (void)state;
    static const uint8_t none[16];
    struct fake_server *server = start(2);
    struct gpushare_options options = {.size = sizeof options, .device = 1};
    gpushare_connection *first = must_connect(NULL), *second = must_connect(&options);
    assert_memory_equal(fake_attach(server, 0).group, none, 16);
    assert_memory_equal(fake_attach(server, 1).group, fake_attached(server, 0).group, 16);
    gpushare_close(&first);
    gpushare_close(&second);
    gpushare_connection *third = must_connect(NULL);
    assert_memory_equal(fake_attach(server, 2).group, none, 16);
    gpushare_close(&third);
    fake_stop(server);
}

/* Exit status of the child: 0, or the line that failed. */
#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit(__LINE__ % 255 ? __LINE__ % 255 : 1);                                            \
    } while (0)

static bool is_mapped(uint64_t address)
{
    return msync((void *)(uintptr_t)address, 4096, MS_ASYNC) == 0;
}

static void forked_child_is_not_initialized(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = must_connect(NULL);
    gpushare_module *module;
    gpushare_function *kernel;
    gpushare_stream *stream;
    gpushare_event *event;
    gpushare_address memory;
    void *buffer;
    struct gpushare_dim one = {1, 1, 1};
    assert_int_equal(gpushare_module_load(gpu, "ptx text", 0, &module), 0);
    assert_int_equal(gpushare_module_function(module, "k", &kernel), 0);
    assert_int_equal(gpushare_stream_create(gpu, 0, 0, &stream), 0);
    assert_int_equal(gpushare_event_create(gpu, 0, &event), 0);
    assert_int_equal(gpushare_memory_alloc(gpu, 64, &memory), 0);
    assert_int_equal(gpushare_host_alloc(gpu, 64, &buffer), 0);
    /* Memory that server and client share, and both windows: none of it may be mapped in the child.
     */
    const uint64_t shared[] = {
        (uint64_t)(uintptr_t)gpu->rings.base, (uint64_t)(uintptr_t)gpu->status_memory.base,
        (uint64_t)(uintptr_t)buffer, gpu->device_base + gpu->window_bytes - 4096,
        gpu->host_base + gpu->window_bytes - 4096};
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
        assert_true(is_mapped(shared[i]));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (size_t i = 0; i < sizeof shared / sizeof *shared; i++)
            CHILD_CHECK(!is_mapped(shared[i]));
        const gpushare_error expected = GPUSHARE_ERROR_NOT_INITIALIZED;
        gpushare_address address;
        CHILD_CHECK(gpushare_launch(kernel, one, one, 0, NULL, NULL) == expected);
        CHILD_CHECK(strstr(gpushare_error_text(), "fork") != NULL);
        CHILD_CHECK(gpushare_memory_alloc(gpu, 64, &address) == expected);
        CHILD_CHECK(gpushare_memory_free(gpu, memory) == expected);
        CHILD_CHECK(gpushare_host_free(gpu, buffer) == expected);
        CHILD_CHECK(gpushare_copy_to_device(gpu, memory, "x", 1) == expected);
        CHILD_CHECK(gpushare_synchronize(gpu) == expected);
        CHILD_CHECK(gpushare_stream_synchronize(gpu, stream) == expected);
        CHILD_CHECK(gpushare_stream_destroy(stream) == expected);
        CHILD_CHECK(gpushare_event_record(event, stream) == expected);
        CHILD_CHECK(gpushare_event_synchronize(event) == expected);
        CHILD_CHECK(gpushare_module_unload(module) == expected);
        CHILD_CHECK(gpushare_connection_error(gpu, NULL) == expected);
        gpushare_close(&gpu);
        CHILD_CHECK(gpu == NULL);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    /* The parent's connection is as it was. */
    assert_int_equal(gpushare_launch(kernel, one, one, 0, NULL, NULL), GPUSHARE_SUCCESS);
    assert_int_equal(gpushare_synchronize(gpu), GPUSHARE_SUCCESS);
    gpushare_close(&gpu);
    fake_stop(server);
}

static void close_gives_the_socket_back(void **state)
{
    (void)state;
    struct fake_server *server = start(1);
    gpushare_connection *gpu = must_connect(NULL);
    assert_int_equal(fake_open(server), 1);
    gpushare_close(&gpu);
    for (int i = 0; i < 2000 && fake_open(server); i++)
        usleep(1000);
    assert_int_equal(fake_open(server), 0);
    fake_stop(server);
}

#define TEST(function) cmocka_unit_test_setup(function, clean)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nothing_wished_asks_for_nothing),
        TEST(environment_reaches_the_server_and_limits),
        TEST(namesakes_count_where_ours_are_unset),
        TEST(options_and_environment_the_stricter_holds),
        TEST(requests_and_shares_of_time_are_asked_and_told),
        TEST(time_is_enforced_in_two_modes_and_a_client_is_told),
        TEST(a_fraction_is_of_memory_and_of_time),
        TEST(requests_of_memory_are_asked_and_told),
        TEST(the_device_has_as_many_multiprocessors_as_the_client),
        TEST(an_earlier_headers_limits_are_filled_as_far_as_they_go),
        TEST(shares_out_of_range_are_refused_by_name),
        TEST(malformed_variables_are_refused_by_name),
        TEST(bad_options_are_refused),
        TEST(no_server_is_connection_failed_with_the_path),
        TEST(a_socket_without_permission_is_the_administrators_matter),
        TEST(dead_socket_in_the_runtime_directory_is_named),
        TEST(socket_option_beats_the_environment),
        TEST(runtime_directory_is_where_a_socket_is_looked_for),
        TEST(server_refusals_reach_the_caller_in_words),
        TEST(a_connection_that_dies_at_hello_is_made_again),
        TEST(taken_windows_are_exchanged),
        TEST(visible_devices_choose_and_order),
        TEST(an_older_server_is_not_asked_what_it_does_not_know),
        TEST(structs_of_other_sizes),
        TEST(second_connection_joins_the_group),
        TEST(forked_child_is_not_initialized),
        TEST(close_gives_the_socket_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
