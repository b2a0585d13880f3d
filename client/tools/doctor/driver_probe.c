/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/driver_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/tools/doctor/helper.h"
#include "common/cuda/cuda_driver.h"
#include "common/cuda/driver_environment.h"
#include "common/cuda/driver_error.h"
#include "common/cuda/driver_paths.h"
#include "common/util.h"

static bool find_library(const struct place *place, struct driver_probe *probe)
{
    static const char *const paths[] = {DRIVER_PATHS};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (!place_has(place, paths[i]))
            continue;
        place_path(place, paths[i], probe->path);
        if (!realpath(probe->path, probe->real))
            strcpy(probe->real, probe->path);
        return true;
    }
    return false;
}

static void ask_gpu(const struct cuda_driver *driver, int ordinal, struct driver_probe_gpu *gpu)
{
    cuda_device device;
    if (driver->cuDeviceGet(&device, ordinal) != CUDA_OK)
        return;
    if (driver->cuDeviceGetPCIBusId(gpu->pci, sizeof gpu->pci, device) != CUDA_OK)
        snprintf(gpu->pci, sizeof gpu->pci, "%d", ordinal);
    driver->cuDeviceGetAttribute(&gpu->compute_mode, CUDA_ATTR_COMPUTE_MODE, device);
    driver->cuDeviceGetAttribute(&gpu->host_access, CUDA_ATTR_PAGEABLE_MEMORY_ACCESS, device);
}

static uint32_t ask_driver(struct driver_probe *probe)
{
    static struct cuda_driver driver;
    uint32_t error = cuda_driver_open(&driver, probe->path, &probe->why);
    if (error)
        return error;
    driver.cuDriverGetVersion(&probe->version);
    cuda_result result = driver.cuInit(0);
    if (result != CUDA_OK)
        return driver_error_set_init(&probe->why, result);
    result = driver.cuDeviceGetCount(&probe->gpus);
    if (result != CUDA_OK)
        return driver_error_set(&probe->why, "cuDeviceGetCount", result);
    for (int i = 0; i < min(probe->gpus, (int)DRIVER_PROBE_GPUS); i++)
        ask_gpu(&driver, i, &probe->gpu[i]);
    return 0;
}

/* The marker is that of cuda_driver_open(), which refuses such a library. */
static bool is_dropin(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library && dlsym(library, "gpushare_dropin_marker");
}

/* In the child. */
static void work(void *shared)
{
    struct driver_probe *probe = shared;
    char **scrubbed = driver_environment_copy(environ, NULL);
    /* Without this the child would become a client of MPS where that runs. */
    if (scrubbed)
        environ = scrubbed;
    if (is_dropin(probe->path))
        probe->outcome = DRIVER_PROBE_DROPIN;
    else
        probe->outcome = ask_driver(probe) ? DRIVER_PROBE_REFUSED : DRIVER_PROBE_ANSWERED;
}

void driver_probe_run(const struct place *place, struct driver_probe *probe)
{
    struct driver_probe *shared = helper_shared(sizeof *shared);
    memset(probe, 0, sizeof *probe);
    if (!find_library(place, probe))
        return;
    probe->outcome = DRIVER_PROBE_CRASHED;
    if (!shared)
        return;
    *shared = *probe;
    int result = helper_call(work, shared, DRIVER_PROBE_SECONDS);
    *probe = *shared;
    if (result == -ETIMEDOUT)
        probe->outcome = DRIVER_PROBE_SILENT;
    else if (result < 0)
        probe->outcome = DRIVER_PROBE_CRASHED;
}
