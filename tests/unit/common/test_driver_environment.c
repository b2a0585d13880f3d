/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* common/cuda/driver_environment: what of an environment reaches the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/cuda/driver_environment.h"

static bool holds(char **environment, const char *variable)
{
    for (; *environment; environment++)
        if (!strncmp(*environment, variable, strlen(variable)))
            return true;
    return false;
}

static void the_environment_is_scrubbed(void **state)
{
    (void)state;
    static char *const given[] = {"PATH=/bin",
                                  "CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps",
                                  "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50",
                                  "CUDA_VISIBLE_DEVICES=3",
                                  "CUDA_DEVICE_MAX_CONNECTIONS=1",
                                  "CUDA_MODULE_LOADING=LAZY",
                                  "CUDA_CACHE_PATH=/var/cache/gpushare",
                                  "CUDA_LAUNCH_BLOCKING=1",
                                  "CUDA_DISABLE_PTX_JIT=1",
                                  "CUDA_INJECTION64_PATH=/lib/y.so",
                                  "CUDA_DEVICE_ORDER=PCI_BUS_ID",
                                  "LD_AUDIT=/lib/z.so",
                                  "GPUSHARE_SOCKET=/x",
                                  "NOTIFY_SOCKET=/y",
                                  "LISTEN_FDS=2",
                                  "WATCHDOG_USEC=1000000",
                                  "LD_PRELOAD=/lib/x.so",
                                  "SOFTGPU_STATS=/tmp/stats",
                                  NULL};
    char **kept = driver_environment_copy(given, "CUDA_VISIBLE_DEVICES=GPU-7");
    assert_non_null(kept);
    assert_true(holds(kept, "PATH=/bin"));
    assert_true(holds(kept, "SOFTGPU_STATS=/tmp/stats"));
    assert_true(holds(kept, "CUDA_CACHE_PATH=/var/cache/gpushare"));
    assert_true(holds(kept, "CUDA_MPS_PIPE_DIRECTORY=/nonexistent"));
    assert_true(holds(kept, "CUDA_DEVICE_MAX_CONNECTIONS=32"));
    assert_true(holds(kept, "CUDA_MODULE_LOADING=EAGER"));
    assert_false(holds(kept, "CUDA_MPS_PIPE_DIRECTORY=/tmp"));
    assert_false(holds(kept, "CUDA_MPS_ACTIVE"));
    assert_true(holds(kept, "CUDA_VISIBLE_DEVICES=GPU-7"));
    assert_false(holds(kept, "CUDA_VISIBLE_DEVICES=3"));
    assert_false(holds(kept, "CUDA_DEVICE_MAX_CONNECTIONS=1"));
    assert_false(holds(kept, "CUDA_MODULE_LOADING=LAZY"));
    assert_false(holds(kept, "GPUSHARE_"));
    assert_false(holds(kept, "NOTIFY_SOCKET"));
    assert_false(holds(kept, "LISTEN_"));
    assert_false(holds(kept, "WATCHDOG_"));
    assert_false(holds(kept, "LD_PRELOAD"));
    assert_false(holds(kept, "LD_AUDIT"));
    assert_false(holds(kept, "CUDA_LAUNCH_BLOCKING"));
    assert_false(holds(kept, "CUDA_DISABLE_PTX_JIT"));
    assert_false(holds(kept, "CUDA_INJECTION64_PATH"));
    assert_false(holds(kept, "CUDA_DEVICE_ORDER"));
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_scrubbed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
