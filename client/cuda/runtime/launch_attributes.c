/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/launch_attributes.h"

#include "client/cuda/runtime/base/runtime_driver.h"

enum {
    ACCESS_PERSISTING = 2,
    ACCESS_POLICY_MAX_WINDOW = 109, /* the device's attribute */
    SCHEDULING_LAST = 2,
    CARVEOUT_MAX = 100
};

/* A hint to a cache, within the bounds of the documentation. */
static cudart_error check_window(const struct cudart_access_window *window)
{
    int most = 0;
    cuda_device device;
    cudart_error error = DRIVER(cuCtxGetDevice, &device);

    if (error == CUDART_OK)
        error = DRIVER(cuDeviceGetAttribute, &most, (cuda_device_attribute)ACCESS_POLICY_MAX_WINDOW,
                       device);
    if (error != CUDART_OK)
        return error;
    return window->bytes <= (size_t)most && window->hit_ratio >= 0 && window->hit_ratio <= 1 &&
                   window->hit >= 0 && window->hit <= ACCESS_PERSISTING && window->miss >= 0 &&
                   window->miss < ACCESS_PERSISTING
               ? CUDART_OK
               : CUDART_INVALID_VALUE;
}

static cudart_error check_number(int number, int least, int most)
{
    return number >= least && number <= most ? CUDART_OK : CUDART_INVALID_VALUE;
}

/* A block alone is the cluster that it is without the attribute. */
static cudart_error check_cluster(const cudart_dim3 *cluster)
{
    if (cluster->x == 0 || cluster->y == 0 || cluster->z == 0)
        return CUDART_INVALID_VALUE;
    return cluster->x == 1 && cluster->y == 1 && cluster->z == 1 ? CUDART_OK : CUDART_NOT_SUPPORTED;
}

static cudart_error read_attribute(const struct cudart_launch_attribute *attribute,
                                   bool *cooperative)
{
    switch (attribute->id) {
    case CUDART_LAUNCH_COOPERATIVE:
        *cooperative = attribute->number != 0;
        return CUDART_OK;
    case CUDART_LAUNCH_ACCESS_POLICY_WINDOW:
        return check_window(&attribute->window);
    case CUDART_LAUNCH_CLUSTER_SCHEDULING:
        return check_number(attribute->number, 0, SCHEDULING_LAST);
    case CUDART_LAUNCH_SHARED_CARVEOUT:
        return check_number(attribute->number, -1, CARVEOUT_MAX);
    case CUDART_LAUNCH_CLUSTER_DIMENSION:
    case CUDART_LAUNCH_PREFERRED_CLUSTER_DIMENSION:
        return check_cluster(&attribute->cluster);
    case CUDART_LAUNCH_IGNORE:
    case CUDART_LAUNCH_PRIORITY:
    case CUDART_LAUNCH_PROGRAMMATIC_SERIALIZATION: /* allows an overlap, and asks for none */
    case CUDART_LAUNCH_MEM_SYNC_DOMAIN_MAP:        /* one domain for all is the wider fence */
    case CUDART_LAUNCH_MEM_SYNC_DOMAIN:
    case CUDART_LAUNCH_NVLINK_SCHEDULING:
        return CUDART_OK;
    case CUDART_LAUNCH_DEVICE_UPDATABLE_NODE:
        return attribute->number == 0 ? CUDART_OK : CUDART_NOT_SUPPORTED;
    case CUDART_LAUNCH_SYNCHRONIZATION_POLICY: /* a stream's alone */
        return CUDART_INVALID_VALUE;
    default: /* events of a launch, and what came later */
        return CUDART_NOT_SUPPORTED;
    }
}

cudart_error launch_attributes_read(const struct cudart_launch_config *config, bool *cooperative)
{
    cudart_error error = CUDART_OK;

    *cooperative = false;
    if (config->attribute_count > 0 && !config->attributes)
        return CUDART_INVALID_VALUE;
    for (unsigned i = 0; i < config->attribute_count && error == CUDART_OK; i++)
        error = read_attribute(&config->attributes[i], cooperative);
    return error;
}
