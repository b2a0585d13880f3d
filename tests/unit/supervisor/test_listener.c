/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "common/error.h"
#include "server/supervisor/loop/listener.h"

static char folder[64], path[96];
static struct error why;
static uv_loop_t loop;
static int taken[8];
static unsigned taken_count;

static void accepted(void *context, int fd)
{
    (void)context;
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(taken_count < 8);
    taken[taken_count++] = fd;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/gpushare-listener-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/run/s", folder);
    taken_count = 0;
    return uv_loop_init(&loop);
}

static int tear_down(void **state)
{
    char run[96];
    (void)state;
    while (taken_count)
        close(taken[--taken_count]);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    snprintf(run, sizeof run, "%s/run", folder);
    unlink(path);
    rmdir(run);
    return rmdir(folder);
}

static uint32_t open_at(struct listener **listener, const char *at)
{
    const struct listener_options options = {.fd = -1, .path = at, .accepted = accepted};
    return listener_open(listener, &loop, &options, &why);
}

static struct listener *open_listener(void)
{
    struct listener *listener;
    if (open_at(&listener, path))
        fail_msg("%s", why.text);
    return listener;
}

static int client_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    return fd;
}

static int try_connect(int fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    return connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
}

static void turn_until(unsigned count)
{
    uint64_t end = clock_now() + UINT64_C(10000000000);
    while (taken_count < count && clock_now() < end)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(taken_count, count);
}

static void makes_its_folder_and_a_socket_for_everybody(void **state)
{
    (void)state;
    struct stat status;
    struct listener *listener = open_listener();
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0666);
    int fd = client_socket();
    assert_int_equal(try_connect(fd), 0);
    turn_until(1);
    close(fd);
    listener_close(&listener);
    listener_close(&listener);
    assert_int_equal(stat(path, &status), -1);
}

static void replaces_a_dead_servers_socket_and_no_living_ones(void **state)
{
    (void)state;
    struct listener *first = open_listener(), *second;
    assert_int_equal(open_at(&second, path), error_from_errno(-EADDRINUSE));
    assert_non_null(strstr(why.text, path));
    int fd = client_socket();
    assert_int_equal(try_connect(fd), 0); /* the first one still serves */
    turn_until(2);                        /* the second knocked to find out */
    close(fd);
    listener_close(&first);
    int dead = client_socket();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    assert_int_equal(bind(dead, (struct sockaddr *)&address, sizeof address), 0);
    close(dead);
    second = open_listener();
    /* A file that is not ours any more stays. */
    unlink(path);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(file);
    listener_close(&second);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(open_at(&second, path),
                     error_from_errno(-EADDRINUSE)); /* and is not replaced: it is no socket */
    assert_int_equal(access(path, F_OK), 0);
}

static void paths_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    struct listener *listener;
    char longest[200];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = 0;
    assert_int_equal(open_at(&listener, longest), error_from_errno(-ENAMETOOLONG));
    assert_null(listener);
}

/* Without a free descriptor the waiting connection is closed, not spun on. */
static void a_shortage_of_descriptors_sheds_connections(void **state)
{
    (void)state;
    enum { CLIENTS = 3 };
    int clients[CLIENTS], fillers[256], filled = 0;
    char byte;
    struct rlimit before, low;
    struct listener *listener = open_listener();
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = client_socket();
    getrlimit(RLIMIT_NOFILE, &before);
    low = before;
    low.rlim_cur = 200;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (int fd; filled < 256 && (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
        fillers[filled++] = fd;
    assert_true(filled > 100 && filled < 256);
    for (int i = 0; i < 2; i++)
        assert_int_equal(try_connect(clients[i]), 0);
    for (int i = 0; i < 2; i++) {
        uint64_t end = clock_now() + UINT64_C(10000000000);
        while (recv(clients[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN && clock_now() < end)
            uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(recv(clients[i], &byte, 1, MSG_DONTWAIT), 0);
    }
    assert_int_equal(taken_count, 0);
    while (filled)
        close(fillers[--filled]);
    assert_int_equal(try_connect(clients[2]), 0);
    turn_until(1);
    setrlimit(RLIMIT_NOFILE, &before);
    for (int i = 0; i < CLIENTS; i++)
        close(clients[i]);
    listener_close(&listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(makes_its_folder_and_a_socket_for_everybody, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(replaces_a_dead_servers_socket_and_no_living_ones, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(paths_that_do_not_fit_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_shortage_of_descriptors_sheds_connections, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
