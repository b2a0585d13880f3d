/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/base/runtime_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct runtime_driver runtime_driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
atomic_bool runtime_driver_opened;

/* cuGetProcAddress as it is from 12.0 on, with a status. */
typedef cuda_result (*find_fn)(const char *, void **, int, uint64_t, cuda_proc_address_status *);

static cudart_error fill(void *library, struct runtime_driver *driver)
{
    void *found = dlsym(library, "cuGetProcAddress_v2");
    find_fn find;

    if (!found)
        return CUDART_INSUFFICIENT_DRIVER;
    memcpy(&find, &found, sizeof(find));
#define X(name, symbol, version, need, params)                                                     \
    if (find(#name, &found, version, CUDA_PROC_ADDRESS_DEFAULT, NULL) == CUDA_OK)                  \
        memcpy(&driver->name, &found, sizeof(found));
    CUDA_DRIVER_ENTRIES(X)
    RUNTIME_DRIVER_ENTRIES(X)
#undef X
    return driver->cuInit ? (cudart_error)driver->cuInit(0) : CUDART_INSUFFICIENT_DRIVER;
}

static cudart_error open_library(void)
{
    struct runtime_driver driver = {0};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    cudart_error error;

    if (!library)
        return CUDART_INSUFFICIENT_DRIVER;
    error = fill(library, &driver);
    if (error != CUDART_OK) {
        dlclose(library);
        return error;
    }
    runtime_driver = driver;
    atomic_store_explicit(&runtime_driver_opened, true, memory_order_release);
    return CUDART_OK;
}

cudart_error runtime_driver_open_first(void)
{
    cudart_error error = CUDART_OK;

    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&runtime_driver_opened, memory_order_relaxed))
        error = open_library();
    pthread_mutex_unlock(&lock);
    return error;
}
