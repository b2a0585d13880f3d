/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/driver_environment.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const given[] = {
    "CUDA_MPS_PIPE_DIRECTORY=/nonexistent",
    "CUDA_MPS_LOG_DIRECTORY=/nonexistent",
    "CUDA_DEVICE_MAX_CONNECTIONS=32",
    "CUDA_MODULE_LOADING=EAGER",
};

/*
 * Not for the driver. CUDA's variables would change the driver below every client:
 * CUDA_LAUNCH_BLOCKING makes the submitter wait for each kernel, CUDA_DISABLE_PTX_JIT refuses every
 * module, CUDA_INJECTION64_PATH loads a library of the caller's. GPUSHARE_'s and systemd's are the
 * supervisor's own.
 */
static const char *const dropped[] = {
    "CUDA_", "GPUSHARE_", "NOTIFY_SOCKET=", "LISTEN_", "WATCHDOG_", "LD_PRELOAD=", "LD_AUDIT=",
};

/* They say where compiled PTX is kept, and change nothing in it. */
#define CACHE_VARIABLES "CUDA_CACHE_"

static bool is_kept(const char *variable)
{
    if (!strncmp(variable, CACHE_VARIABLES, strlen(CACHE_VARIABLES)))
        return true;
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
        if (!strncmp(variable, dropped[i], strlen(dropped[i])))
            return false;
    return true;
}

char **driver_environment_copy(char *const environment[], const char *visible)
{
    size_t count = 0, used = 0;
    while (environment[count])
        count++;
    char **copy = calloc(count + sizeof given / sizeof *given + 2, sizeof *copy);
    if (!copy)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (is_kept(environment[i]))
            copy[used++] = environment[i];
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        copy[used++] = (char *)(uintptr_t)given[i];
    if (visible)
        copy[used++] = (char *)(uintptr_t)visible;
    return copy;
}
