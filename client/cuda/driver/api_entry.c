/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The library itself: its versions, errors, and cuGetProcAddress, which finds a function by name,
 * version and flags, because the version chooses the ABI. If several rows have the name, the newest
 * that the caller knows counts.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "client/cuda/driver/base/driver_absent.h"
#include "client/cuda/driver/base/driver_device.h"
#include "client/cuda/driver/driver_exports.h"
#include "client/cuda/driver/base/driver_result.h"
#include "common/log.h"
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

static const struct row per_thread_rows[] = {
#define E(name, symbol, version, params) {#name, version, (entry_fn)symbol},
    DRIVER_EXPORTS_PER_THREAD(E)
#undef E
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    PER_THREAD_ROWS = sizeof per_thread_rows / sizeof *per_thread_rows
};

/* The rows of one name. */
struct found {
    const struct row *best; /* the newest that the caller knows, or NULL */
    bool carried;           /* a row of the name is carried, whether the caller knows it or not */
    int absent;             /* the newest version that the caller knows and that is not, or 0 */
    bool any;
};

static void look(const char *name, int version, bool per_thread, struct found *found)
{
    const struct row *table = per_thread ? per_thread_rows : rows;
    const size_t count = per_thread ? PER_THREAD_ROWS : ROWS;
    *found = (struct found){0};
    for (size_t i = 0; i < count; i++)
        if (!strcmp(table[i].name, name)) {
            found->carried = true;
            if (table[i].version <= version &&
                (!found->best || table[i].version > found->best->version))
                found->best = &table[i];
        }
    for (size_t i = 0; i < absent_row_count; i++)
        if (absent_rows[i].per_thread == per_thread && !strcmp(absent_rows[i].name, name)) {
            found->any = true;
            if (absent_rows[i].version <= version && absent_rows[i].version > found->absent)
                found->absent = absent_rows[i].version;
        }
    found->any |= found->carried;
}

/* The caller would call a newer function that is not carried with its own parameters, which an
 * older one must not get. */
static cuda_proc_address_status judge(const struct found *found)
{
    if (found->best && found->best->version > found->absent)
        return CUDA_PROC_ADDRESS_SUCCESS;
    return found->carried && !found->absent ? CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                            : CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

cuda_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                cuda_proc_address_status *status)
{
    struct found found;
    if (!symbol || !fn)
        return CUDA_ERR_INVALID_VALUE;
    *fn = NULL;
    look(symbol, version, (flags & CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0, &found);
    if (!found.any) /* it has no form for per-thread default streams */
        look(symbol, version, false, &found);
    cuda_proc_address_status judged = judge(&found);
    if (status)
        *status = judged;
    if (judged != CUDA_PROC_ADDRESS_SUCCESS)
        return CUDA_ERR_NOT_FOUND;
    memcpy(fn, &found.best->fn, sizeof *fn);
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
        log_error(MESSAGE_TEXT(dropin_export_table));
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
