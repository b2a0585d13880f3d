/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/device_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "tests/programs/bench/bench.h"

#define CU(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CUDA_OK)                                                                     \
            bench_die("the driver refuses: %s", #call);                                            \
    } while (0)

static uint64_t used_now(const char *state)
{
    struct cuda_driver cu;
    cuda_context context;
    size_t available, total;
    char path[512];
    struct error why = {0};
    setenv("SOFTGPU_STATE", state, 1);
    const char *driver = server_driver();
    if (!strcmp(driver, "softgpu"))
        driver = server_build_path("lib/softgpu/libcuda.so.1", path, sizeof path);
    else if (!strcmp(driver, "nvidia"))
        driver = "libcuda.so.1";
    if (cuda_driver_open(&cu, driver, &why))
        bench_die("%s", why.text);
    CU(cu.cuInit(0));
    CU(cu.cuDevicePrimaryCtxRetain(&context, 0));
    CU(cu.cuCtxSetCurrent(context));
    CU(cu.cuMemGetInfo(&available, &total));
    return total - available;
}

uint64_t device_memory_used(const char *state)
{
    uint64_t used;
    int ends[2], status;
    if (pipe(ends) < 0)
        bench_die("no pipe");
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        used = used_now(state);
        _exit(write(ends[1], &used, sizeof used) != sizeof used);
    }
    close(ends[1]);
    if (child < 0 || read(ends[0], &used, sizeof used) != sizeof used ||
        waitpid(child, &status, 0) != child || status)
        bench_die("the device's memory can't be counted");
    close(ends[0]);
    return used;
}
