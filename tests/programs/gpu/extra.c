/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/gpu/extra.h"

#include <string.h>

static void *find_entry(const struct cuda_driver *driver, const char *name, int version)
{
    void *address = NULL;
    cuda_proc_address_status status = CUDA_PROC_ADDRESS_SUCCESS;
    if (!driver->cuGetProcAddress ||
        driver->cuGetProcAddress(name, &address, version, CUDA_PROC_ADDRESS_LEGACY_STREAM,
                                 &status) != CUDA_OK ||
        status != CUDA_PROC_ADDRESS_SUCCESS)
        return NULL;
    return address;
}

void extra_open(struct extra_driver *extra, const struct cuda_driver *driver)
{
    void *address;
    /* memcpy, because ISO C has no cast from object to function pointer. */
#define X(name, version, params)                                                                   \
    address = find_entry(driver, #name, version);                                                  \
    memcpy(&extra->name, &address, sizeof address);
    EXTRA_ENTRIES(X)
#undef X
}

bool extra_has_link(const struct extra_driver *extra)
{
    return extra->cuLinkCreate && extra->cuLinkAddData && extra->cuLinkComplete &&
           extra->cuLinkDestroy;
}

bool extra_has_graph(const struct extra_driver *extra)
{
    return extra->cuGraphCreate && extra->cuGraphAddKernelNode &&
           extra->cuGraphInstantiateWithFlags && extra->cuGraphLaunch;
}
