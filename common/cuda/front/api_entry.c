/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The library itself: its errors, and cuGetProcAddress, which finds a function by name,
 * version and flags, because the version chooses the ABI. If several rows have the name, the newest
 * that the caller knows counts.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "common/cuda/front/driver_absent.h"
#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"
#include "common/log.h"
#include "common/messages.h"

static const struct front_row rows[] = {
#define E(name, symbol, version, params) {#name, version, (front_fn)symbol},
    DRIVER_EXPORTS(E)
#undef E
};

static const struct front_row per_thread_rows[] = {
#define E(name, symbol, version, params) {#name, version, (front_fn)symbol},
    DRIVER_EXPORTS_PER_THREAD(E)
#undef E
};

enum {
    ROWS = sizeof rows / sizeof *rows,
    PER_THREAD_ROWS = sizeof per_thread_rows / sizeof *per_thread_rows
};

/* The rows of one name. */
struct found {
    const struct front_row *best; /* the newest that the caller knows, or NULL */
    bool carried; /* a row of the name is carried, whether the caller knows it or not */
    int absent;   /* the newest version that the caller knows and that is not, or 0 */
    bool any;
};

static void look_among(const struct front_row *table, size_t count, const char *name, int version,
                       struct found *found)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(table[i].name, name) && front_offers(name, table[i].version)) {
            found->carried = true;
            if (table[i].version <= version &&
                (!found->best || table[i].version > found->best->version))
                found->best = &table[i];
        }
}

static void look(const char *name, int version, bool per_thread, struct found *found)
{
    *found = (struct found){0};
    if (per_thread) {
        look_among(per_thread_rows, PER_THREAD_ROWS, name, version, found);
    } else {
        look_among(rows, ROWS, name, version, found);
        look_among(front_own_rows, front_own_row_count, name, version, found);
    }
    for (size_t i = 0; i < absent_row_count; i++)
        if (absent_rows[i].per_thread == per_thread && !strcmp(absent_rows[i].name, name) &&
            front_offers(name, absent_rows[i].version)) {
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

/* The file whose code lies at an address. Code that a program has made by itself is in no file, so
 * that the program stands for it. */
static const char *file_of(const void *code)
{
    Dl_info file;
    if (dladdr(code, &file) && file.dli_fname && *file.dli_fname)
        return file.dli_fname;
    return program_invocation_name;
}

/* Tables of undocumented functions that NVIDIA's libraries share among themselves, by UUID. The
 * return address lies in the library that asks, unless its call is its function's last deed. */
cuda_result cuGetExportTable(const void **table, const cuda_uuid *id)
{
    static atomic_bool said;
    if (!table || !id)
        return CUDA_ERR_INVALID_VALUE;
    *table = NULL;
    if (!atomic_exchange(&said, true))
        log_error(MESSAGE_TEXT(dropin_export_table), file_of(__builtin_return_address(0)));
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
