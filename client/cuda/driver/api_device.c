/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Devices. Their numbers are the client's: its multiprocessors and its memory. */
#include <stdio.h>
#include <string.h>

#include "client/cuda/driver/base/driver_device.h"
#include "common/cuda/front/driver_exports.h"
#include "client/cuda/driver/base/driver_result.h"
#include "client/engine/connection.h"
#include "client/engine/memory.h"

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

cuda_result cuDeviceGetName(char *name, int size, cuda_device device)
{
    struct driver_device *found;
    DRIVER_TRY(driver_device_get(device, &found));
    if (!name || size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    snprintf(name, (size_t)size, "%s", found->described.name);
    return CUDA_OK;
}

cuda_result cuDeviceGetUuid_v2(cuda_uuid *uuid, cuda_device device)
{
    struct driver_device *found;
    DRIVER_TRY(driver_device_get(device, &found));
    if (!uuid)
        return CUDA_ERR_INVALID_VALUE;
    memcpy(uuid->bytes, found->described.uuid, sizeof uuid->bytes);
    return CUDA_OK;
}

cuda_result cuDeviceGetUuid(cuda_uuid *uuid, cuda_device device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device device)
{
    struct driver_device *found;
    gpushare_connection *connection;
    struct gpushare_memory_info info;
    DRIVER_TRY(driver_device_get(device, &found));
    if (!bytes)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(driver_device_connect(found, &connection));
    DRIVER_TRY(driver_result(memory_usage(connection, &info)));
    *bytes = info.limit;
    return CUDA_OK;
}

cuda_result cuDeviceGetPCIBusId(char *id, int size, cuda_device device)
{
    struct driver_device *found;
    DRIVER_TRY(driver_device_get(device, &found));
    if (!id || size <= 0)
        return CUDA_ERR_INVALID_VALUE;
    snprintf(id, (size_t)size, "%s", found->described.pci);
    return CUDA_OK;
}

/* ---- attributes ---- */

static int pci_part(const struct gpushare_device *device, int part)
{
    unsigned parts[3] = {0};
    if (sscanf(device->pci, "%x:%x:%x", &parts[0], &parts[1], &parts[2]) != 3)
        return 0;
    return (int)parts[part];
}

/* The number is from the CUDA C++ Programming Guide ("Technical Specifications per Compute
 * Capability"), and 0 for a compute capability that it did not have yet. */
static int most_blocks(const struct gpushare_device *device)
{
    switch (device->compute_major * 10 + device->compute_minor) {
    case 70:
    case 72:
    case 80:
    case 90:
    case 100:
        return 32;
    case 89:
        return 24;
    case 75:
    case 86:
    case 87:
        return 16;
    default:
        return 0;
    }
}

/* The server's description of the device. */
static bool described(const struct gpushare_device *device, cuda_device_attribute attribute,
                      int64_t *value)
{
    switch (attribute) {
#define ROW(name, member)                                                                          \
    case CUDA_ATTR_##name:                                                                         \
        *value = (int64_t)device->member;                                                          \
        return true;
        ROW(MAX_THREADS_PER_BLOCK, block_threads)
        ROW(MAX_BLOCK_DIM_X, block.x)
        ROW(MAX_BLOCK_DIM_Y, block.y)
        ROW(MAX_BLOCK_DIM_Z, block.z)
        ROW(MAX_GRID_DIM_X, grid.x)
        ROW(MAX_GRID_DIM_Y, grid.y)
        ROW(MAX_GRID_DIM_Z, grid.z)
        ROW(MAX_SHARED_MEMORY_PER_BLOCK, block_shared)
        ROW(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, block_shared_optin)
        ROW(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, multiprocessor_shared)
        ROW(MAX_THREADS_PER_MULTIPROCESSOR, multiprocessor_threads)
        ROW(TOTAL_CONSTANT_MEMORY, constant_memory)
        ROW(WARP_SIZE, warp_threads)
        ROW(MAX_REGISTERS_PER_BLOCK, block_registers)
        ROW(CLOCK_RATE, clock_khz)
        ROW(L2_CACHE_SIZE, l2_cache)
        ROW(COMPUTE_CAPABILITY_MAJOR, compute_major)
        ROW(COMPUTE_CAPABILITY_MINOR, compute_minor)
#undef ROW
    case CUDA_ATTR_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = most_blocks(device);
        return true;
    case CUDA_ATTR_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *value = device->compute_major >= 8 ? 1024 : 0;
        return true;
    case CUDA_ATTR_PCI_DOMAIN_ID:
        *value = pci_part(device, 0);
        return true;
    case CUDA_ATTR_PCI_BUS_ID:
        *value = pci_part(device, 1);
        return true;
    case CUDA_ATTR_PCI_DEVICE_ID:
        *value = pci_part(device, 2);
        return true;
    default:
        return false;
    }
}

/* The answers that hold for each device of compute capability 7.0 and above, by the CUDA C++
 * Programming Guide ("Technical Specifications per Compute Capability") or the driver API's
 * reference; and those for what this library does by itself. */
static int64_t usual(cuda_device_attribute attribute)
{
    switch (attribute) {
    case CUDA_ATTR_MAX_PITCH:
        return INT32_MAX;
    case CUDA_ATTR_TEXTURE_ALIGNMENT:
    case CUDA_ATTR_SURFACE_ALIGNMENT:
        return 512;
    case CUDA_ATTR_NUMA_ID:
    case CUDA_ATTR_HOST_NUMA_ID:
        return -1; /* none is known */
    case CUDA_ATTR_TEXTURE_PITCH_ALIGNMENT:
        return 32;
    case CUDA_ATTR_MAX_REGISTERS_PER_MULTIPROCESSOR:
        return 65536;
    case CUDA_ATTR_HOST_REGISTER_SUPPORTED:
    case CUDA_ATTR_GPU_OVERLAP:
    case CUDA_ATTR_CAN_MAP_HOST_MEMORY:
    case CUDA_ATTR_CONCURRENT_KERNELS:
    case CUDA_ATTR_COOPERATIVE_LAUNCH:
    case CUDA_ATTR_UNIFIED_ADDRESSING:
    case CUDA_ATTR_STREAM_PRIORITIES_SUPPORTED:
    case CUDA_ATTR_GLOBAL_L1_CACHE_SUPPORTED:
    case CUDA_ATTR_LOCAL_L1_CACHE_SUPPORTED:
    case CUDA_ATTR_COMPUTE_PREEMPTION_SUPPORTED:
    case CUDA_ATTR_MEMORY_POOLS_SUPPORTED:
    case CUDA_ATTR_MANAGED_MEMORY:
    case CUDA_ATTR_CONCURRENT_MANAGED_ACCESS:
    case CUDA_ATTR_MEM_SYNC_DOMAIN_COUNT:
    case CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS:
    case CUDA_ATTR_CAN_USE_STREAM_WAIT_VALUE_NOR:
    case CUDA_ATTR_ASYNC_ENGINE_COUNT: /* at least, since GPU_OVERLAP holds */
        return 1;
    default:
        /* A feature that is not offered, such as clusters; or a number that the server does not
         * tell. */
        return 0;
    }
}

cuda_result cuDeviceGetAttribute(int *value, cuda_device_attribute attribute, cuda_device device)
{
    /* The numbers that CUDA 13.0 has end here (CU_DEVICE_ATTRIBUTE_MAX). */
    enum { ATTRIBUTES_END = 150 };
    struct driver_device *found;
    gpushare_connection *connection;
    int64_t wide;
    DRIVER_TRY(driver_device_get(device, &found));
    if (!value || (int)attribute < 1 || (int)attribute >= ATTRIBUTES_END)
        return CUDA_ERR_INVALID_VALUE;
    if (attribute == CUDA_ATTR_MULTIPROCESSOR_COUNT) {
        DRIVER_TRY(driver_device_connect(found, &connection));
        wide = (int64_t)atomic_load(&connection->multiprocessors);
    } else if (!described(&found->described, attribute, &wide)) {
        wide = usual(attribute);
    }
    *value = wide > INT32_MAX ? INT32_MAX : (int)wide;
    return CUDA_OK;
}
