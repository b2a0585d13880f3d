/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Errors of the machine blame nobody, and keep the device down with their reason: the software GPU
 * answers a kernel's trap with one. The client whose kernel met it is told that its work was
 * interrupted, goes on after the first, and ends with the reason when the device stays down.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gpushare.h"
#include "tests/support/admin_answer.h"
#include "tests/support/arrival.h"
#include "tests/support/ok.h"
#include "tests/support/server.h"

static const char errors_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                 ".visible .entry fine()\n{\nret;\n}\n"
                                 ".visible .entry meets()\n{\ntrap;\n}\n";

static const struct gpushare_dim one = {1, 1, 1};
static struct server *server;

static gpushare_error run(gpushare_connection *gpu, gpushare_function *kernel)
{
    gpushare_error error = gpushare_launch(kernel, one, one, 0, NULL, NULL);
    return error ? error : gpushare_synchronize(gpu);
}

/* A client that comes while the device is down is told why, and for how long. */
static void is_kept_down(const char *name)
{
    struct gpushare_options options = {.size = sizeof options, .socket = server_socket(server)};
    gpushare_connection *gpu;
    assert_int_equal(gpushare_connect(&options, &gpu), GPUSHARE_ERROR_DEVICE_NOT_READY);
    const char *text = gpushare_error_text();
    if (!strstr(text, "kept down after an error of the machine") || !strstr(text, name) ||
        !strstr(text, "tried again in"))
        fail_msg("%s", text);
    json_t *row = admin_answer_device(server);
    char *shown = json_dumps(row, 0);
    if (!strstr(shown, name))
        fail_msg("%s", shown);
    free(shown);
    json_decref(row);
}

static void keeps_down(const char *setting, const char *name)
{
    const char *const env[] = {setting, NULL};
    server = server_start(NULL, env);
    gpushare_connection *gpu = arrival_connect(server, 0);
    gpushare_function *fine = arrival_load(gpu, errors_ptx, "fine");
    gpushare_function *meets = arrival_load(gpu, errors_ptx, "meets");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(gpu, meets), GPUSHARE_ERROR_INTERRUPTED);
        OK(gpushare_stream_recover(gpu, NULL, NULL));
        OK(run(gpu, fine));
    }
    assert_int_equal(run(gpu, meets), GPUSHARE_ERROR_WORKER_LOST);
    if (!strstr(gpushare_error_text(), name))
        fail_msg("%s", gpushare_error_text());
    is_kept_down(name);
    char *log = server_log(server);
    assert_null(strstr(log, "made it fail"));
    assert_non_null(strstr(log, "no client is blamed"));
    free(log);
    gpushare_close(&gpu);
    assert_int_equal(server_stop(server), 0);
}

static void an_uncorrectable_memory_error_keeps_the_device_down(void **state)
{
    (void)state;
    keeps_down("SOFTGPU_TRAP_ERROR=214", "CUDA_ERROR_ECC_UNCORRECTABLE");
}

static void an_error_of_nvlink_does(void **state)
{
    (void)state;
    keeps_down("SOFTGPU_TRAP_ERROR=220", "CUDA_ERROR_NVLINK_UNCORRECTABLE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_uncorrectable_memory_error_keeps_the_device_down),
        cmocka_unit_test(an_error_of_nvlink_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
