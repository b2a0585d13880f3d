/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The library itself: its versions, errors, and cuGetProcAddress, which finds a function by name,
 * version and flags, because the version chooses the ABI. If several rows have the name, the newest
 * that the caller knows counts.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/cuda/driver/driver_device.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/cuda/driver/driver_result.h"
#include "common/messages.h"

const int gpushare_dropin_marker = 1;

typedef void (*entry_fn)(void);

static const struct row {
    const char *name;
    int version;
    entry_fn fn;
} rows[] = {
#define E(name, symbol, version, params) {#name, version, (entry_fn)symbol},
    DRIVER_EXPORTS(E)
#undef E
};

enum { ROWS = sizeof rows / sizeof *rows };

/* Functions whose form with a per-thread default stream is another function, which is not carried
 * yet. The caller would get the legacy default stream's order without knowing. */
static bool has_per_thread_form(const char *name)
{
    static const char *const prefixes[] = {"cuMemcpy",
                                           "cuMemset",
                                           "cuLaunch",
                                           "cuEventRecord",
                                           "cuStreamQuery",
                                           "cuStreamGet",
                                           "cuStreamSynchronize",
                                           "cuStreamWaitEvent"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
            return true;
    return false;
}

cuda_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                cuda_proc_address_status *status)
{
    const struct row *best = NULL;
    bool known = false;
    if (!symbol || !fn)
        return CUDA_ERR_INVALID_VALUE;
    *fn = NULL;
    for (size_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].name, symbol)) {
            known = true;
            if (rows[i].version <= version && (!best || rows[i].version > best->version))
                best = &rows[i];
        }
    if ((flags & CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && has_per_thread_form(symbol))
        known = false;
    if (status)
        *status = !known  ? CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND
                  : !best ? CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CUDA_PROC_ADDRESS_SUCCESS;
    if (!known || !best)
        return CUDA_ERR_NOT_FOUND;
    memcpy(fn, &best->fn, sizeof *fn);
    return CUDA_OK;
}

cuda_result cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}

cuda_result cuInit(unsigned flags)
{
    return flags ? CUDA_ERR_INVALID_VALUE : driver_device_survey();
}

/* NVIDIA's driver answers this before cuInit too. Here the server has to be asked. */
cuda_result cuDriverGetVersion(int *version)
{
    struct driver_device *device;
    if (!version)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_device_survey());
    DRIVER_TRY(driver_device_get(0, &device));
    *version = (int)device->described.driver_version;
    return CUDA_OK;
}

cuda_result cuGetErrorName(cuda_result error, const char **name)
{
    if (!name)
        return CUDA_ERR_INVALID_VALUE;
    *name = error == CUDA_OK ? "CUDA_SUCCESS" : cuda_driver_error_name(error);
    return *name ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

cuda_result cuGetErrorString(cuda_result error, const char **text)
{
    if (!text)
        return CUDA_ERR_INVALID_VALUE;
    *text = NULL;
    if (error != CUDA_OK && !cuda_driver_error_name(error))
        return CUDA_ERR_INVALID_VALUE;
    *text = error == CUDA_OK ? "no error" : cuda_driver_error_sentence(error);
    return CUDA_OK;
}

/* Tables of undocumented functions that NVIDIA's libraries share among themselves, by UUID. */
cuda_result cuGetExportTable(const void **table, const cuda_uuid *id)
{
    static atomic_bool said;
    if (!table || !id)
        return CUDA_ERR_INVALID_VALUE;
    *table = NULL;
    if (!atomic_exchange(&said, true))
        fprintf(stderr, "gpushare: %s\n", MESSAGE_TEXT(dropin_export_table));
    return CUDA_ERR_NOT_FOUND;
}

/* A profiler is told which part of a run to look at. There is none here. */
cuda_result cuProfilerStart(void)
{
    return CUDA_OK;
}

cuda_result cuProfilerStop(void)
{
    return CUDA_OK;
}
