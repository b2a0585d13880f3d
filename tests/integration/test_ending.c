/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* timed: a worker must be gone some seconds after its orphan limit */
/*
 * A worker that nobody asks for anything any more ends soon after its orphan limit, although a
 * client's kernel never ends and a call of the driver waits for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "common/clock.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/patience.h"
#include "tests/support/server.h"

static const char busy_ptx[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                               ".visible .entry busy(.param .u64 p)\n{\n.reg .b64 %a;\n"
                               ".reg .b32 %v;\nld.param.u64 %a, [p];\nmov.u32 %v, 1;\n"
                               "st.volatile.global.u32 [%a], %v;\nmov.u32 %v, 100000;\n"
                               "again:\nnanosleep.u32 %v;\nbra again;\n}\n";

#define NS 1e9

/* The orphan limit is 1 s, and the worker has 2 s to end; the rest is for a machine that is slow.
 * A bound of 10 s on the end is beyond it. */
#define END_SECONDS 8

static struct server *server;
static char counted[] = "/tmp/gpushare-ending-XXXXXX";

static off_t calls_made(void)
{
    struct stat file;
    assert_int_equal(stat(counted, &file), 0);
    return file.st_size;
}

/* Starts a server on a driver in which this call waits until nothing runs. */
static void begin(const char *waits)
{
    char path[512], shim[512], names[64], below[600], count[64];
    const char *const args[] = {"--driver", shim, "--orphan-limit", "1", NULL};
    const char *const env[] = {names, below, count, "SOFTGPU_CONTEXT_LOCK=0", NULL};
    int fd = mkstemp(counted);
    assert_true(fd >= 0 && close(fd) == 0);
    assert_non_null(
        realpath(server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path), shim));
    snprintf(below, sizeof below, "SHIM_DRIVER=%s", shim);
    assert_non_null(
        realpath(server_build_path("tests/programs/shim/libcuda.so.1", path, sizeof path), shim));
    snprintf(names, sizeof names, "SHIM_WAITS=%s", waits);
    snprintf(count, sizeof count, "SHIM_COUNT=%s", counted);
    server = server_start_kept(args, env);
}

/* Returns once the kernel runs. */
static void run_busy(gpushare_connection *gpu)
{
    static const struct gpushare_dim one = {1, 1, 1};
    volatile uint32_t *runs;
    OK(gpushare_host_alloc(gpu, 4096, (void **)(uintptr_t)&runs));
    uint64_t address = (uint64_t)(uintptr_t)runs;
    void *parameters[] = {&address};
    OK(gpushare_launch(arrival_load(gpu, busy_ptx, "busy"), one, one, 0, NULL, parameters));
    double end = (double)clock_now() + patience_seconds(10) * NS;
    while (!*runs && (double)clock_now() < end)
        usleep(1000);
    assert_int_equal(*runs, 1);
}

static void *ask_memory(void *gpu)
{
    gpushare_address memory;
    return (void *)(uintptr_t)gpushare_memory_alloc(gpu, 4 << 20, &memory);
}

static void a_call_that_waits_for_a_kernel_keeps_no_orphan(void **state)
{
    (void)state;
    pthread_t thread;
    void *asked;
    begin("cuMemSetAccess");
    gpushare_connection *busy = arrival_connect(server, 25), *other = arrival_connect(server, 25);
    run_busy(busy);
    off_t before = calls_made();
    assert_int_equal(pthread_create(&thread, NULL, ask_memory, other), 0);
    double end = (double)clock_now() + patience_seconds(10) * NS;
    while (calls_made() == before && (double)clock_now() < end)
        usleep(1000);
    assert_int_equal(calls_made(), before + 1);
    pid_t worker;
    assert_int_equal(server_workers(server, &worker, 1), 1);
    struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, worker, 0), .events = POLLIN};
    assert_true(ended.fd >= 0);
    kill(server_pid(server), SIGKILL);
    int is_gone = poll(&ended, 1, (int)(patience_seconds(END_SECONDS) * 1000));
    close(ended.fd);
    server_kill(server); /* also gives the descriptors up, which ends the client's call */
    pthread_join(thread, &asked);
    assert_int_not_equal((uintptr_t)asked, GPUSHARE_SUCCESS);
    gpushare_close(&busy);
    gpushare_close(&other);
    unlink(counted);
    assert_int_equal(is_gone, 1);
}

int main(void)
{
    server_needs_softgpu();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_waits_for_a_kernel_keeps_no_orphan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
