/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cuGetProcAddress finds a function by name, version and flags, because the version chooses the
 * ABI. If several rows have the name, the newest that the caller knows counts.
 */
#include <string.h>

#include "server/softgpu/api/api.h"

typedef void (*entry_fn)(void);

static const struct row {
    const char *name;
    int version;
    entry_fn fn;
} rows[] = {
#define X(name, symbol, version, need, params) {#name, version, (entry_fn)symbol},
    CUDA_DRIVER_ENTRIES(X)
#undef X
        {"cuGetProcAddress", 11030, (entry_fn)cuGetProcAddress},
    {"cuDeviceGetUuid", 9020, (entry_fn)cuDeviceGetUuid},
    {"cuDevicePrimaryCtxRelease", 7000, (entry_fn)cuDevicePrimaryCtxRelease},
    {"cuDevicePrimaryCtxReset", 7000, (entry_fn)cuDevicePrimaryCtxReset},
    {"cuDevicePrimaryCtxReset", 11000, (entry_fn)cuDevicePrimaryCtxReset_v2},
    {"cuDevicePrimaryCtxSetFlags", 7000, (entry_fn)cuDevicePrimaryCtxSetFlags},
    {"cuLaunchCooperativeKernel", 9000, (entry_fn)cuLaunchCooperativeKernel},
    {"cuMemAllocManaged", 6000, (entry_fn)cuMemAllocManaged},
    {"cuCtxSynchronize", 13000, (entry_fn)cuCtxSynchronize_v2},
    {"cuCtxGetDevice", 13000, (entry_fn)cuCtxGetDevice_v2},
    {"cuEventElapsedTime", 12080, (entry_fn)cuEventElapsedTime_v2},
};

/* Functions whose form with a per-thread default stream is another function, which we don't
 * have. */
static bool has_per_thread_form(const char *name)
{
    static const char *const prefixes[] = {"cuMemcpy",           "cuMemset",
                                           "cuLaunch",           "cuEventRecord",
                                           "cuStreamQuery",      "cuStreamSynchronize",
                                           "cuStreamWaitEvent",  "cuStreamGetPriority",
                                           "cuStreamWriteValue", "cuStreamBatchMemOp"};

    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static bool is_green(const char *name)
{
    return strncmp(name, "cuGreenCtx", 10) == 0 || strncmp(name, "cuDevResource", 13) == 0 ||
           strncmp(name, "cuDevSmResource", 15) == 0 || strcmp(name, "cuDeviceGetDevResource") == 0;
}

cuda_result cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
                                cuda_proc_address_status *status)
{
    const struct row *best = NULL;
    bool known = false;

    if (!symbol || !fn)
        return CUDA_ERR_INVALID_VALUE;
    *fn = NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, symbol) == 0 && rows[i].version <= device_driver_version()) {
            known = true;
            if (rows[i].version <= version && (!best || rows[i].version > best->version))
                best = &rows[i];
        }
    if (known &&
        ((is_green(symbol) && device_lacks_green_contexts()) ||
         ((flags & CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && has_per_thread_form(symbol))))
        known = false;
    if (status)
        *status = !known  ? CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND
                  : !best ? CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                          : CUDA_PROC_ADDRESS_SUCCESS;
    if (!known || !best)
        return CUDA_ERR_NOT_FOUND;
    memcpy(fn, &best->fn, sizeof(*fn));
    return CUDA_OK;
}

cuda_result cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}
