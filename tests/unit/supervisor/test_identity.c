/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* identity: what the kernel says of a peer, and what it does not say is not known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/clock.h"
#include "server/supervisor/client/identity.h"

enum { PEER_PIDFD = 77 };

static bool old_kernel; /* before 6.5 */

int getsockopt(int fd, int level, int option, void *value, socklen_t *bytes)
{
    if (old_kernel && level == SOL_SOCKET && option == PEER_PIDFD) {
        errno = ENOPROTOOPT;
        return -1;
    }
    return (int)syscall(SYS_getsockopt, fd, level, option, value, bytes);
}

static void cgroup_is(const char *text, const char *want)
{
    char *got = identity_cgroup(text);
    if (want ? !got || strcmp(got, want) != 0 : got != NULL)
        fail_msg("\"%s\", not \"%s\", of: %s", got ? got : "nothing", want ? want : "nothing",
                 text);
    free(got);
}

static void control_groups_of_both_versions(void **state)
{
    (void)state;
    cgroup_is("0::/user.slice/a.scope\n", "/user.slice/a.scope");
    cgroup_is("0::/\n", "/");
    cgroup_is("12:cpu,cpuacct:/x\n1:name=systemd:/b/c\n0::/d\n", "/d");
    cgroup_is("12:cpu,cpuacct:/x\n1:name=systemd:/b/c\n", "/b/c");
    cgroup_is("0::/a:b::c", "/a:b::c");
    /* A path that looks like the line that is looked for. */
    cgroup_is("5:cpu:/0::/fake\n", NULL);
    cgroup_is("5:cpu:/1:name=systemd:/fake\n", NULL);
    cgroup_is("10::/x\n", NULL);
    cgroup_is("0::x\n", NULL);
    cgroup_is("", NULL);
}

static void a_peer_has_its_groups(void **state)
{
    (void)state;
    int pair[2];
    struct identity identity;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    identity_read(&identity, pair[0], getpid(), getuid(), -1);
    /* The user that stands for all unknown ones is unknown itself. */
    assert_int_equal(identity.known, getuid() != 65534);
    bool own = false;
    for (size_t i = 0; i < identity.gid_count; i++)
        own |= identity.gids[i] == getegid();
    assert_int_equal(own, identity.known);
    identity_free(&identity);
    assert_null(identity.gids);
    close(pair[0]);
    close(pair[1]);
}

static void unknown_processes_have_no_identity(void **state)
{
    (void)state;
    static const struct {
        pid_t pid;
        uid_t uid;
    } strangers[] = {{0, 1000}, {1, 65534}, {1, UINT32_MAX}};
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        struct identity identity;
        identity_read(&identity, pair[0], strangers[i].pid, strangers[i].uid, -1);
        assert_false(identity.known);
        assert_null(identity.gids);
        assert_null(identity.cgroup);
        identity_free(&identity);
    }
    close(pair[0]);
    close(pair[1]);
}

/* Its pid may be another's by now. */
static void a_process_that_has_ended_has_no_control_group(void **state)
{
    (void)state;
    int pair[2];
    struct identity identity;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(0);
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    assert_true(pidfd >= 0);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    identity_read(&identity, pair[0], child, 1000, pidfd);
    assert_true(identity.known);
    assert_null(identity.cgroup);
    identity_free(&identity);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(pidfd);
    close(pair[0]);
    close(pair[1]);
}

static void a_peer_that_cannot_be_watched_has_no_control_group(void **state)
{
    (void)state;
    int pair[2];
    struct identity identity;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    identity_read(&identity, pair[0], getpid(), 1000, -1);
    assert_true(identity.known);
    assert_null(identity.cgroup);
    identity_free(&identity);
    close(pair[0]);
    close(pair[1]);
}

static void an_older_kernel_gives_a_pidfd_by_number(void **state)
{
    (void)state;
    int pair[2];
    bool by_number;
    struct identity identity;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    old_kernel = true;
    assert_int_equal(identity_pidfd(pair[0], 0, &by_number), -1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        for (;;)
            pause();
    int pidfd = identity_pidfd(pair[0], child, &by_number);
    old_kernel = false;
    assert_true(pidfd >= 0);
    assert_true(by_number);
    assert_int_equal(fcntl(pidfd, F_GETFD), FD_CLOEXEC);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    /* Whatever has the pid now is not the peer. */
    identity_read(&identity, pair[0], getpid(), 1000, pidfd);
    assert_null(identity.cgroup);
    identity_free(&identity);
    close(pidfd);
    close(pair[0]);
    close(pair[1]);
}

static void a_process_that_got_the_pid_later_began_later(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        for (;;)
            pause();
    uint64_t now = clock_now();
    assert_true(identity_began_before(child, now));
    assert_false(identity_began_before(child, now - UNITS_SECOND));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_groups_of_both_versions),
        cmocka_unit_test(a_peer_has_its_groups),
        cmocka_unit_test(unknown_processes_have_no_identity),
        cmocka_unit_test(a_process_that_has_ended_has_no_control_group),
        cmocka_unit_test(a_peer_that_cannot_be_watched_has_no_control_group),
        cmocka_unit_test(an_older_kernel_gives_a_pidfd_by_number),
        cmocka_unit_test(a_process_that_got_the_pid_later_began_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
