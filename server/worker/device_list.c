/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device_list.h"

#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "protocol.h"

static int print_error(FILE *to, const char *call, cuda_result result)
{
    const char *name = cuda_error_name(result);
    fprintf(to, "error %u %s failed with %s (%d): %s\n", error_from_cuda(result), call,
            name ? name : "an error without a name", result, cuda_error_sentence(result));
    return 1;
}

static int print_devices(const struct cuda_driver *driver, FILE *to)
{
    int count = 0;
    cuda_result result = driver->cuInit(0);
    if (result != CUDA_OK)
        return print_error(to, "cuInit", result);
    result = driver->cuDeviceGetCount(&count);
    if (result != CUDA_OK)
        return print_error(to, "cuDeviceGetCount", result);
    for (int i = 0; i < count; i++) {
        cuda_device device;
        cuda_uuid uuid;
        if ((result = driver->cuDeviceGet(&device, i)) != CUDA_OK)
            return print_error(to, "cuDeviceGet", result);
        if ((result = driver->cuDeviceGetUuid(&uuid, device)) != CUDA_OK)
            return print_error(to, "cuDeviceGetUuid", result);
        fprintf(to, "device %d ", i);
        for (size_t byte = 0; byte < sizeof uuid.bytes; byte++)
            fprintf(to, "%02x", uuid.bytes[byte]);
        fputc('\n', to);
    }
    return 0;
}

int device_list_print(const char *driver_path, FILE *to)
{
    struct cuda_driver driver;
    struct error why;
    int status = 1;
    if (cuda_driver_open(&driver, driver_path, &why)) {
        fprintf(to, "error %u %s\n", (unsigned)why.number, why.text);
    } else {
        status = print_devices(&driver, to);
        cuda_driver_close(&driver);
    }
    return fflush(to) == 0 ? status : 1;
}
