/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "common/error.h"
#include "common/messages.h"
#include "protocol.h"

static const struct result_row {
    int value;
    bool sticky;
    const char *name;
    const char *sentence;
} result_rows[] = {{CUDA_OK, false, "CUDA_SUCCESS", "no error"},
#define X(name, value, sticky, sentence) {value, sticky, "CUDA_ERROR_" #name, sentence},
                   CUDA_RESULTS(X)
#undef X
};

static const struct result_row *result_find(cuda_result result)
{
    for (size_t i = 0; i < sizeof(result_rows) / sizeof(result_rows[0]); i++)
        if (result_rows[i].value == (int)result)
            return &result_rows[i];
    return NULL;
}

const char *cuda_driver_error_name(cuda_result result)
{
    const struct result_row *row = result_find(result);

    return row ? row->name : NULL;
}

const char *cuda_driver_error_sentence(cuda_result result)
{
    const struct result_row *row = result_find(result);

    return row ? row->sentence : "an error that this version of gpushare does not know";
}

bool cuda_driver_error_is_sticky(cuda_result result)
{
    const struct result_row *row = result_find(result);

    return row && row->sticky;
}

struct entry {
    const char *name;
    size_t offset; /* of the member in struct cuda_driver */
    int version;
    bool required;
};

static const struct entry entries[] = {
#define X(name, symbol, version, need, params)                                                     \
    {#name, offsetof(struct cuda_driver, name), version, need},
    CUDA_DRIVER_ENTRIES(X)
#undef X
};

typedef cuda_result (*get_proc_address_fn)(const char *, void **, int, uint64_t,
                                           cuda_proc_address_status *);

static uint32_t resolve_entries(struct cuda_driver *driver, const char *path, bool whole,
                                struct error *why)
{
    get_proc_address_fn get;
    /* POSIX allows this cast in object form only. ISO C can't convert an object pointer to a
     * function pointer. */
    void *symbol = dlsym(driver->library, "cuGetProcAddress_v2");

    if (!symbol)
        return error_set(why, MESSAGE(driver_too_old), path);
    memcpy(&get, &symbol, sizeof(get));
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        const struct entry *entry = &entries[i];
        void *address = NULL;
        cuda_proc_address_status status = CUDA_PROC_ADDRESS_SUCCESS;
        cuda_result result =
            get(entry->name, &address, entry->version, CUDA_PROC_ADDRESS_LEGACY_STREAM, &status);

        if (result != CUDA_OK || status != CUDA_PROC_ADDRESS_SUCCESS)
            address = NULL;
        if (!address && entry->required && whole)
            return error_set(why, MESSAGE(driver_entry_missing), path, entry->name,
                             entry->version / 1000, entry->version % 1000 / 10);
        memcpy((char *)driver + entry->offset, &address, sizeof(address));
    }
    return 0;
}

static uint32_t open_library(struct cuda_driver *driver, const char *absolute_path, bool whole,
                             struct error *why)
{
    uint32_t error;

    memset(driver, 0, sizeof(*driver));
    if (!absolute_path || absolute_path[0] != '/')
        return error_set(why, MESSAGE(driver_path_relative), absolute_path ? absolute_path : "");
    /* NODELETE: a driver has threads that run its code after dlclose(). */
    driver->library = dlopen(absolute_path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!driver->library) {
        const char *text = dlerror();

        return error_set(why, MESSAGE(driver_not_loaded), text ? text : absolute_path);
    }
    if (dlsym(driver->library, "gpushare_dropin_marker"))
        error = error_set(why, MESSAGE(driver_is_dropin), absolute_path);
    else
        error = resolve_entries(driver, absolute_path, whole, why);
    if (error)
        cuda_driver_close(driver);
    return error;
}

uint32_t cuda_driver_open(struct cuda_driver *driver, const char *absolute_path, struct error *why)
{
    return open_library(driver, absolute_path, true, why);
}

uint32_t cuda_driver_open_partly(struct cuda_driver *driver, const char *absolute_path,
                                 struct error *why)
{
    return open_library(driver, absolute_path, false, why);
}

void cuda_driver_close(struct cuda_driver *driver)
{
    if (!driver)
        return;
    if (driver->library)
        dlclose(driver->library);
    memset(driver, 0, sizeof(*driver));
}

cuda_result cuda_driver_gpu_uuid(const struct cuda_driver *driver, cuda_uuid *uuid,
                                 cuda_device device)
{
    cuda_result (*get)(cuda_uuid *, cuda_device) = NULL;
    void *address = NULL;
    cuda_proc_address_status status = CUDA_PROC_ADDRESS_SUCCESS;

    if (!driver->cuGetProcAddress ||
        driver->cuGetProcAddress("cuDeviceGetUuid", &address, 9020, CUDA_PROC_ADDRESS_LEGACY_STREAM,
                                 &status) != CUDA_OK ||
        !address)
        return CUDA_ERR_NOT_FOUND;
    memcpy(&get, &address, sizeof(get));
    return get(uuid, device);
}

bool cuda_driver_has_green_contexts(const struct cuda_driver *driver)
{
    return driver->cuDeviceGetDevResource && driver->cuDevSmResourceSplitByCount &&
           driver->cuDevResourceGenerateDesc && driver->cuGreenCtxCreate &&
           driver->cuGreenCtxDestroy && driver->cuGreenCtxStreamCreate &&
           driver->cuGreenCtxGetDevResource;
}
