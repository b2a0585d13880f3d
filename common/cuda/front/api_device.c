/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Devices: what follows from their attributes and from their places on the bus. */
#include <string.h>

#include "common/cuda/front/driver_exports.h"
#include "common/cuda/front/front.h"

cuda_result cuDeviceGetCount(int *count)
{
    if (!count)
        return CUDA_ERR_INVALID_VALUE;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    *count = front_device_count();
    return CUDA_OK;
}

cuda_result cuDeviceGet(cuda_device *device, int ordinal)
{
    const int count = front_device_count();
    if (!device)
        return CUDA_ERR_INVALID_VALUE;
    if (count < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    if (ordinal < 0 || ordinal >= count)
        return CUDA_ERR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_OK;
}

cuda_result cuDeviceGetByPCIBusId(cuda_device *device, const char *id)
{
    enum { ID_BYTES = 32 };
    char own[ID_BYTES];
    if (!device || !id)
        return CUDA_ERR_INVALID_VALUE;
    if (front_device_count() < 0)
        return CUDA_ERR_NOT_INITIALIZED;
    for (int i = 0; i < front_device_count(); i++) {
        DRIVER_TRY(cuDeviceGetPCIBusId(own, sizeof own, i));
        if (!strcasecmp(own, id)) {
            *device = i;
            return CUDA_OK;
        }
    }
    return CUDA_ERR_INVALID_DEVICE;
}

static cuda_result check_two(cuda_device device, cuda_device other)
{
    cuda_device found;
    DRIVER_TRY(cuDeviceGet(&found, device));
    return cuDeviceGet(&found, other);
}

cuda_result cuDeviceCanAccessPeer(int *can, cuda_device device, cuda_device peer)
{
    DRIVER_TRY(check_two(device, peer));
    if (!can)
        return CUDA_ERR_INVALID_VALUE;
    /* Kernels of a device reach no other's memory: in the drop-in each connection has addresses of
     * its own, and the software GPU models no peers. */
    *can = 0;
    return CUDA_OK;
}

/* No device reaches another's memory, so none is faster than another either. */
cuda_result cuDeviceGetP2PAttribute(int *value, int attribute, cuda_device source,
                                    cuda_device destination)
{
    enum { ATTRIBUTE_LAST = 5 };
    DRIVER_TRY(check_two(source, destination));
    if (!value || attribute < 1 || attribute > ATTRIBUTE_LAST)
        return CUDA_ERR_INVALID_VALUE;
    if (source == destination)
        return CUDA_ERR_INVALID_DEVICE;
    *value = 0;
    return CUDA_OK;
}

/* No context may ask for multiprocessors of its own. */
cuda_result cuDeviceGetExecAffinitySupport(int *supported, int type, cuda_device device)
{
    cuda_device found;
    DRIVER_TRY(cuDeviceGet(&found, device));
    if (!supported || type)
        return CUDA_ERR_INVALID_VALUE;
    *supported = 0;
    return CUDA_OK;
}

cuda_result cuDeviceComputeCapability(int *major, int *minor, cuda_device device)
{
    cuda_device found;
    DRIVER_TRY(cuDeviceGet(&found, device));
    if (!major || !minor)
        return CUDA_ERR_INVALID_VALUE;
    DRIVER_TRY(cuDeviceGetAttribute(major, CUDA_ATTR_COMPUTE_CAPABILITY_MAJOR, device));
    return cuDeviceGetAttribute(minor, CUDA_ATTR_COMPUTE_CAPABILITY_MINOR, device);
}
