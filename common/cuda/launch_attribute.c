/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/launch_attribute.h"

enum { ACCESS_PERSISTING = 2, SCHEDULING_LAST = 2, CARVEOUT_MAX = 100 };

/* A hint to a cache, within the bounds of the documentation. */
static cuda_result check_window(const struct cuda_access_window *window, int most)
{
    return window->bytes <= (size_t)most && window->hit_ratio >= 0 && window->hit_ratio <= 1 &&
                   window->hit >= 0 && window->hit <= ACCESS_PERSISTING && window->miss >= 0 &&
                   window->miss < ACCESS_PERSISTING
               ? CUDA_OK
               : CUDA_ERR_INVALID_VALUE;
}

static cuda_result check_number(int number, int least, int most)
{
    return number >= least && number <= most ? CUDA_OK : CUDA_ERR_INVALID_VALUE;
}

/* A block alone is the cluster that it is without the attribute. */
static cuda_result check_cluster(const cuda_dim3 *cluster)
{
    if (cluster->x == 0 || cluster->y == 0 || cluster->z == 0)
        return CUDA_ERR_INVALID_VALUE;
    return cluster->x == 1 && cluster->y == 1 && cluster->z == 1 ? CUDA_OK : CUDA_ERR_NOT_SUPPORTED;
}

static cuda_result read_one(const struct cuda_launch_attribute *attribute, int window_max,
                            bool *cooperative)
{
    switch (attribute->id) {
    case CUDA_LAUNCH_COOPERATIVE:
        *cooperative = attribute->number != 0;
        return CUDA_OK;
    case CUDA_LAUNCH_ACCESS_POLICY_WINDOW:
        return check_window(&attribute->window, window_max);
    case CUDA_LAUNCH_CLUSTER_SCHEDULING:
        return check_number(attribute->number, 0, SCHEDULING_LAST);
    case CUDA_LAUNCH_SHARED_CARVEOUT:
        return check_number(attribute->number, -1, CARVEOUT_MAX);
    case CUDA_LAUNCH_CLUSTER_DIMENSION:
    case CUDA_LAUNCH_PREFERRED_CLUSTER_DIMENSION:
        return check_cluster(&attribute->cluster);
    case CUDA_LAUNCH_IGNORE:
    case CUDA_LAUNCH_PRIORITY:
    case CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION: /* allows an overlap, and asks for none */
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN_MAP:        /* one domain for all is the wider fence */
    case CUDA_LAUNCH_MEM_SYNC_DOMAIN:
    case CUDA_LAUNCH_NVLINK_SCHEDULING:
        return CUDA_OK;
    case CUDA_LAUNCH_DEVICE_UPDATABLE_NODE:
        return attribute->number == 0 ? CUDA_OK : CUDA_ERR_NOT_SUPPORTED;
    case CUDA_LAUNCH_SYNCHRONIZATION_POLICY: /* a stream's alone */
        return CUDA_ERR_INVALID_VALUE;
    default: /* events of a launch, and what came later */
        return CUDA_ERR_NOT_SUPPORTED;
    }
}

cuda_result launch_attribute_read(const struct cuda_launch_config *config, int window_max,
                                  bool *cooperative)
{
    cuda_result error = CUDA_OK;

    *cooperative = false;
    if (config->attribute_count > 0 && !config->attributes)
        return CUDA_ERR_INVALID_VALUE;
    for (unsigned i = 0; i < config->attribute_count && error == CUDA_OK; i++)
        error = read_one(&config->attributes[i], window_max, cooperative);
    return error;
}
