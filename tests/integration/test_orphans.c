/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A worker that has ended is gone for server_kill, also where the process that inherits it never
 * asks for its status. The first process of a container may be such a one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/server.h"

static void an_ended_worker_is_gone_though_nobody_waits_for_it(void **state)
{
    (void)state;
    int status = -1;
    /* Orphans below this process become its children. */
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        server_kill(server_start(NULL, NULL));
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* The worker was there, and ended: it is this process's to wait for. */
    assert_true(waitpid(-1, &status, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ended_worker_is_gone_though_nobody_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
