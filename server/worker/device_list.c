/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device_list.h"

#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "common/messages.h"
#include "protocol.h"

static uint32_t refuse_call(struct error *why, const char *call, cuda_result result)
{
    const char *name = cuda_driver_error_name(result);
    return error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(list_call), call,
                     name ? name : "an error without a name", (int)result,
                     cuda_driver_error_sentence(result));
}

static uint32_t print_devices(const struct cuda_driver *driver, FILE *to, struct error *why)
{
    int count = 0;
    cuda_result result = driver->cuInit(0);
    if (result != CUDA_OK)
        return refuse_call(why, "cuInit", result);
    result = driver->cuDeviceGetCount(&count);
    if (result != CUDA_OK)
        return refuse_call(why, "cuDeviceGetCount", result);
    for (int i = 0; i < count; i++) {
        cuda_device device;
        cuda_uuid uuid;
        if ((result = driver->cuDeviceGet(&device, i)) != CUDA_OK)
            return refuse_call(why, "cuDeviceGet", result);
        if ((result = driver->cuDeviceGetUuid(&uuid, device)) != CUDA_OK)
            return refuse_call(why, "cuDeviceGetUuid", result);
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
    uint32_t error = cuda_driver_open(&driver, driver_path, &why);
    if (!error) {
        error = print_devices(&driver, to, &why);
        cuda_driver_close(&driver);
    }
    if (error)
        fprintf(to, "error %u %s\n", (unsigned)error, why.text);
    return fflush(to) == 0 && !error ? 0 : 1;
}
