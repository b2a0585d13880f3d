/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* notify: what systemd would receive, and which sockets are taken from it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/supervisor/loop/notify.h"

#include "common/clock.h"
#include "common/error.h"
#include "common/units.h"
#include "protocol.h"

static char folder[64];
static struct sockaddr_un address;

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s/notify-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    return mkdtemp(folder) == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    if (address.sun_path[0])
        unlink(address.sun_path);
    return rmdir(folder);
}

/* systemd's end: a datagram socket at a path, or with an abstract name. */
static int listen_at(const char *name, size_t length)
{
    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address.sun_path, name, length);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

static void heard(int fd, const char *want)
{
    static char text[1000];
    ssize_t length = recv(fd, text, sizeof text - 1, 0);
    assert_true(length >= 0);
    text[length] = '\0';
    assert_string_equal(text, want);
}

static void say_everything(struct notify *notify, int fd)
{
    assert_int_equal(notify_ready(notify), 0);
    heard(fd, "READY=1");
    assert_int_equal(notify_status(notify, "3 clients"), 0);
    heard(fd, "STATUS=3 clients");
    assert_int_equal(notify_stopping(notify), 0);
    heard(fd, "STOPPING=1");
}

static void states_reach_a_path(void **state)
{
    (void)state;
    struct notify notify;
    char path[100];
    snprintf(path, sizeof path, "%s/socket", folder);
    int fd = listen_at(path, strlen(path));
    assert_int_equal(notify_open(&notify, path), 0);
    assert_int_equal(fcntl(notify.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    say_everything(&notify, fd);
    close(fd);
    assert_int_equal(notify_ready(&notify), -ECONNREFUSED); /* and no signal */
    notify_close(&notify);
    notify_close(&notify);
    assert_int_equal(notify.fd, -1);
}

static void states_reach_an_abstract_name(void **state)
{
    (void)state;
    struct notify notify;
    char name[100];
    int length = snprintf(name, sizeof name, "@gpushare-test-%d", (int)getpid());
    name[0] = '\0';
    int fd = listen_at(name, (size_t)length);
    name[0] = '@';
    assert_int_equal(notify_open(&notify, name), 0);
    say_everything(&notify, fd);
    notify_close(&notify);
    close(fd);
}

static void the_watchdogs_time_is_read(void **state)
{
    (void)state;
    struct error why = {0};
    uint64_t limit = 7;
    assert_int_equal(notify_read_watchdog(NULL, NULL, 5, &limit, &why), 0);
    assert_int_equal(limit, 0);
    assert_int_equal(notify_read_watchdog("30000000", NULL, 5, &limit, &why), 0);
    assert_int_equal(limit, 30000000);
    assert_int_equal(notify_read_watchdog("30000000", "5", 5, &limit, &why), 0);
    assert_int_equal(limit, 30000000);
    /* Of the process that started this one. */
    assert_int_equal(notify_read_watchdog("30000000", "6", 5, &limit, &why), 0);
    assert_int_equal(limit, 0);
    static const char *const wrong[][2] = {{"", "5"}, {"0", "5"}, {"1s", "5"}, {"1", "me"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(notify_read_watchdog(wrong[i][0], wrong[i][1], 5, &limit, &why),
                         PROTO_ERROR_INVALID_VALUE);
        assert_non_null(strstr(why.text, "WATCHDOG_"));
    }
}

static void hang_for_a_while(uv_timer_t *timer)
{
    (void)timer;
    usleep(50000);
}

static unsigned fed(int fd)
{
    static char text[1000];
    unsigned count = 0;
    for (ssize_t length; (length = recv(fd, text, sizeof text - 1, 0)) > 0; count++) {
        text[length] = '\0';
        assert_string_equal(text, "WATCHDOG=1");
    }
    return count;
}

/* Four times within the limit of 40 ms; a loop that hangs feeds nothing meanwhile. */
static void the_loop_feeds_the_watchdog(void **state)
{
    (void)state;
    struct notify notify;
    uv_loop_t loop;
    uv_timer_t hang;
    char path[100];
    snprintf(path, sizeof path, "%s/socket", folder);
    int fd = listen_at(path, strlen(path));
    assert_int_equal(notify_open(&notify, path), 0);
    assert_int_equal(uv_loop_init(&loop), 0);
    notify_feed(&notify, &loop, 0);
    assert_null(notify.watchdog.data);
    notify_feed(&notify, &loop, 40000);
    uv_timer_init(&loop, &hang);
    /* The watchdog alone does not keep a loop alive. */
    uv_timer_start(&hang, hang_for_a_while, 60000, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(fed(fd), 1);
    while (fed(fd) == 0)
        uv_run(&loop, UV_RUN_NOWAIT);
    uv_timer_start(&hang, hang_for_a_while, 0, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_in_range(fed(fd), 0, 2);
    notify_unwatch(&notify);
    notify_unwatch(&notify);
    uv_close((uv_handle_t *)&hang, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(fed(fd), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    notify_close(&notify);
    close(fd);
}

static void a_missing_listener_is_an_error(void **state)
{
    (void)state;
    struct notify notify;
    assert_int_equal(notify_open(&notify, NULL), 0);
    assert_int_equal(notify_ready(&notify), 0);
    assert_int_equal(notify_open(&notify, ""), 0);
    assert_int_equal(notify_status(&notify, "x"), 0);
    notify_close(&notify);
}

static void impossible_socket_names_are_refused(void **state)
{
    (void)state;
    struct notify notify;
    static char text[200];
    assert_int_equal(notify_open(&notify, "relative"), -EINVAL);
    assert_int_equal(notify_open(&notify, "@"), -EINVAL);
    memset(text, 'x', sizeof text - 1);
    text[0] = '/';
    assert_int_equal(notify_open(&notify, text), -EINVAL);
    text[108] = '\0';
    assert_int_equal(notify_open(&notify, text), -EINVAL);
    text[107] = '\0';
    assert_int_equal(notify_open(&notify, text), -ENOENT);
    assert_int_equal(notify.fd, -1);
}

static void a_status_is_one_line(void **state)
{
    (void)state;
    struct notify notify;
    static char path[100], text[1000];
    snprintf(path, sizeof path, "%s/socket", folder);
    int fd = listen_at(path, strlen(path));
    assert_int_equal(notify_open(&notify, path), 0);
    notify_status(&notify, "a\nREADY=1\x1b");
    heard(fd, "STATUS=a?READY=1?");
    memset(text, 's', sizeof text - 1);
    notify_status(&notify, text);
    ssize_t length = recv(fd, text, sizeof text, 0);
    assert_true(length > 390 && length <= 7 + 400);
    notify_close(&notify);
    close(fd);
}

/* Opens a pair whose manager has no room for another datagram. Returns the manager's end. */
static int open_full(struct notify *notify)
{
    char path[100];
    snprintf(path, sizeof path, "%s/socket", folder);
    int fd = listen_at(path, strlen(path)), result = 0;
    assert_int_equal(notify_open(notify, path), 0);
    for (int i = 0; i < 100000 && result == 0; i++)
        result = notify_status(notify, "busy");
    assert_int_equal(result, -EAGAIN);
    return fd;
}

/* The manager reads what it was told while it was busy. */
static void read_busy(int fd)
{
    char text[100];
    while (recv(fd, text, sizeof text, MSG_PEEK) > 0 && memcmp(text, "STATUS=busy", 11) == 0)
        recv(fd, text, sizeof text, 0);
}

/* A manager that missed readiness would take a server that serves for one that never started. */
static void readiness_waits_for_room(void **state)
{
    (void)state;
    struct notify notify;
    int fd = open_full(&notify);
    const uint64_t from = clock_now();
    assert_int_equal(notify_ready(&notify), 0);
    assert_int_equal(notify_stopping(&notify), 0);
    assert_int_equal(notify_status(&notify, "late"), -EAGAIN);
    assert_true(clock_now() - from < UNITS_SECOND / 2); /* and nobody waits for it */
    assert_int_equal(notify_stored(&notify), 0);
    read_busy(fd);
    assert_int_equal(notify_stored(&notify), 0);
    heard(fd, "READY=1");
    heard(fd, "STOPPING=1");
    assert_true(recv(fd, &address, 1, 0) < 0);
    notify_close(&notify);
    close(fd);
}

static void the_loop_sends_what_waits(void **state)
{
    (void)state;
    struct notify notify;
    uv_loop_t loop;
    int fd = open_full(&notify);
    uv_loop_init(&loop);
    assert_int_equal(notify_ready(&notify), 0);
    notify_watch(&notify, &loop);
    uv_ref((uv_handle_t *)&notify.timer); /* this loop has nothing else to wait for */
    read_busy(fd);
    while (!queue_is_empty(&notify.waiting))
        uv_run(&loop, UV_RUN_NOWAIT);
    heard(fd, "READY=1");
    notify_unwatch(&notify);
    notify_unwatch(&notify);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    notify_close(&notify);
    close(fd);
}

static void the_end_waits_for_a_manager_that_reads(void **state)
{
    (void)state;
    struct notify notify;
    int status, fd = open_full(&notify);
    assert_int_equal(notify_stopping(&notify), 0);
    pid_t reader = fork();
    if (reader == 0) {
        char text[100];
        ssize_t length;
        alarm(20);
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
        do
            length = recv(fd, text, sizeof text, 0);
        while (length > 0 && (length != 10 || memcmp(text, "STOPPING=1", 10) != 0));
        _exit(length > 0 ? 0 : 1);
    }
    notify_drain(&notify);
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    notify_close(&notify);
    close(fd);
}

/* Descriptors wait, in order, and are this process's own: the caller may close its own. */
static void descriptors_wait_for_room(void **state)
{
    (void)state;
    struct notify notify;
    int fd = open_full(&notify), pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const uint64_t from = clock_now();
    assert_int_equal(notify_unstore(&notify, "d.1"), 0);
    assert_int_equal(notify_stored(&notify), 0); /* nobody waits until a name is dropped */
    assert_int_equal(notify_store(&notify, "d.1", pipes[1]), 0);
    assert_int_equal(notify_stored(&notify), STORE_WAITS);
    assert_true(clock_now() - from < UNITS_SECOND / 2);
    close(pipes[1]);
    read_busy(fd);
    assert_int_equal(notify_stored(&notify), 0);
    heard(fd, "FDSTOREREMOVE=1\nFDNAME=d.1");
    heard(fd, "FDSTORE=1\nFDPOLL=0\nFDNAME=d.1");
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 0); /* nobody has the other end any more */
    close(pipes[0]);
    notify_close(&notify);
    close(fd);
}

static void a_manager_that_takes_nothing_is_given_up(void **state)
{
    (void)state;
    struct notify notify;
    int fd = open_full(&notify), pipes[2], result;
    assert_int_equal(pipe(pipes), 0);
    const uint64_t from = clock_now();
    assert_int_equal(notify_store(&notify, "d.1", pipes[1]), 0);
    while ((result = notify_stored(&notify)) == STORE_WAITS)
        usleep(1000);
    assert_int_equal(result, -EAGAIN);
    assert_true(clock_now() - from >= UNITS_SECOND);
    close(pipes[1]);
    notify_forget_stores(&notify);
    assert_int_equal(notify_stored(&notify), 0);
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 0);
    close(pipes[0]);
    notify_close(&notify);
    close(fd);
}

/* The kernel counts descriptors on their way for a user as a whole, and allows root more. */
static int store_until_too_many_are_on_their_way(void)
{
    enum { PAIRS = 3, EACH = 8 };
    const struct rlimit limit = {.rlim_cur = 2 * EACH, .rlim_max = 2 * EACH};
    int pairs[PAIRS][2];
    for (int i = 0; i < PAIRS; i++)
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pairs[i]) < 0)
            return 1;
    if ((geteuid() == 0 && setresuid(65533, 65533, 65533) < 0) ||
        setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 2;
    alarm(60); /* far beyond the wait */
    for (int i = 0; i < PAIRS * EACH; i++) {
        struct notify notify = {.fd = pairs[i / EACH][0]};
        int result = notify_store(&notify, "d.1", pairs[0][0]);
        while (result == 0 && (result = notify_stored(&notify)) == STORE_WAITS)
            result = 0;
        if (result < 0)
            return result == -ETOOMANYREFS ? 0 : 3;
    }
    return 4;
}

static void a_kernel_that_lacks_something_is_not_waited_for_without_end(void **state)
{
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0)
        _exit(store_until_too_many_are_on_their_way());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- sockets; each case in a child, for the descriptors begin at 3 ---- */

enum kind { NONE, PACKET, STREAM, DATAGRAM, PACKET_NOT_LISTENING, FILE_FD };

static int make_fd(enum kind kind)
{
    static const int types[] = {[PACKET] = SOCK_SEQPACKET,
                                [STREAM] = SOCK_STREAM,
                                [DATAGRAM] = SOCK_DGRAM,
                                [PACKET_NOT_LISTENING] = SOCK_SEQPACKET};
    if (kind == FILE_FD)
        return open("/dev/null", O_RDWR);
    int fd = socket(AF_UNIX, types[kind], 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    if (kind != PACKET_NOT_LISTENING && kind != DATAGRAM &&
        (bind(fd, (struct sockaddr *)&any, sizeof any.sun_family) < 0 || listen(fd, 5) < 0))
        _exit(90);
    return fd;
}

/* Words expected in the refusal; NULL: taken, as client and admin. */
struct passing {
    enum kind kinds[3];
    const char *fds, *names, *words;
    int client, admin;
};

static void try_in_child(const struct passing *passing)
{
    struct notify_sockets sockets;
    char pid[16];
    struct error why = {0};
    /* Descriptor 3 and up are what is passed; everything else there goes away first. */
    for (int fd = 3; fd < 200; fd++)
        close(fd);
    for (int i = 0; i < 3 && passing->kinds[i] != NONE; i++) {
        int fd = make_fd(passing->kinds[i]);
        if (fd != 3 + i)
            _exit(91);
    }
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    uint32_t result =
        notify_take_sockets(&sockets, pid, passing->fds, passing->names, getpid(), &why);
    if (passing->words)
        _exit(result == PROTO_ERROR_INVALID_VALUE && strstr(why.text, passing->words) ? 0 : 92);
    if (result != 0 || sockets.client != passing->client || sockets.admin != passing->admin)
        _exit(93);
    if (sockets.client >= 0 && !(fcntl(sockets.client, F_GETFD) & FD_CLOEXEC))
        _exit(94);
    _exit(0);
}

static void sockets_are_taken_by_name_or_kind(void **state)
{
    (void)state;
    static const struct passing rows[] = {
        {{PACKET, STREAM}, "2", "client:admin", NULL, 3, 4},
        {{STREAM, PACKET}, "2", "admin:client", NULL, 4, 3},
        {{PACKET}, "1", "client", NULL, 3, -1},
        {{STREAM}, "1", "admin", NULL, -1, 3},
        {{STREAM, PACKET}, "2", NULL, NULL, 4, 3},
        {{STREAM, PACKET}, "2", "", NULL, 4, 3},
        {{NONE}, "0", NULL, NULL, -1, -1},
        {{NONE}, NULL, NULL, NULL, -1, -1},
        {{STREAM, PACKET},
         "2",
         "client:admin",
         "descriptor 3 (\"client\") is not a listening",
         -1,
         -1},
        {{PACKET}, "1", "unknown", "\"unknown\" is neither", -1, -1},
        {{PACKET, PACKET}, "2", "client:client", "two sockets are named \"client\"", -1, -1},
        {{PACKET, STREAM}, "2", "client", "fewer names", -1, -1},
        {{PACKET_NOT_LISTENING}, "1", "client", "not a listening", -1, -1},
        {{DATAGRAM}, "1", NULL, "neither", -1, -1},
        {{FILE_FD}, "1", "client", "not a socket", -1, -1},
        {{PACKET}, "2", "client:admin", "descriptor 4 is not open", -1, -1},
        {{NONE}, "100000", NULL, "LISTEN_FDS=\"100000\"", -1, -1},
        {{PACKET, FILE_FD}, "2", "client:d.1a", NULL, 3, -1},
        {{FILE_FD, PACKET}, "2", "w.3:client", NULL, 4, -1},
        {{NONE}, "two", NULL, "LISTEN_FDS=\"two\"", -1, -1},
        {{NONE}, "-1", NULL, "LISTEN_FDS=\"-1\"", -1, -1},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pid_t child = fork();
        int status;
        if (child == 0)
            try_in_child(&rows[i]);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
            fail_msg("row %u: status %d", i, WEXITSTATUS(status));
    }
}

static void anothers_sockets_are_left_alone(void **state)
{
    (void)state;
    struct notify_sockets sockets;
    struct error why;
    assert_int_equal(notify_take_sockets(&sockets, "1", "2", "client:admin", getpid(), &why), 0);
    assert_int_equal(sockets.client, -1);
    assert_int_equal(sockets.admin, -1);
    assert_int_equal(notify_take_sockets(&sockets, "x", "2", NULL, getpid(), &why),
                     PROTO_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why.text, "LISTEN_PID=\"x\""));
    assert_int_equal(notify_take_sockets(&sockets, NULL, "2", NULL, getpid(), &why), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(states_reach_a_path),
        CASE(states_reach_an_abstract_name),
        CASE(the_watchdogs_time_is_read),
        CASE(the_loop_feeds_the_watchdog),
        CASE(a_missing_listener_is_an_error),
        CASE(impossible_socket_names_are_refused),
        CASE(a_status_is_one_line),
        CASE(the_loop_sends_what_waits),
        CASE(the_end_waits_for_a_manager_that_reads),
        CASE(descriptors_wait_for_room),
        CASE(a_manager_that_takes_nothing_is_given_up),
        CASE(readiness_waits_for_room),
        CASE(a_kernel_that_lacks_something_is_not_waited_for_without_end),
        CASE(sockets_are_taken_by_name_or_kind),
        CASE(anothers_sockets_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
