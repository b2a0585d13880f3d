/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/device/device_list.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/cuda/driver_error.h"
#include "server/worker/device/gpu_arena.h"

/* A MIG instance has a UUID beside its GPU's. Drivers that answer both questions alike are asked
 * for the name: "NVIDIA H200 MIG 1g.18gb". */
static bool is_instance(const struct cuda_driver *driver, cuda_device device, const cuda_uuid *uuid)
{
    char name[256] = "";
    cuda_uuid gpu;
    if (cuda_driver_gpu_uuid(driver, &gpu, device) == CUDA_OK && memcmp(&gpu, uuid, sizeof gpu))
        return true;
    return driver->cuDeviceGetName(name, sizeof name, device) == CUDA_OK && strstr(name, " MIG ");
}

static void print_device(int ordinal, const cuda_uuid *uuid, bool instance, FILE *to)
{
    fprintf(to, "device %d ", ordinal);
    for (size_t byte = 0; byte < sizeof uuid->bytes; byte++)
        fprintf(to, "%02x", uuid->bytes[byte]);
    fprintf(to, "%s\n", instance ? " mig" : "");
}

static uint32_t print_devices(const struct cuda_driver *driver, FILE *to, struct error *why)
{
    int count = 0;
    cuda_result result = driver->cuDeviceGetCount(&count);
    if (result != CUDA_OK)
        return driver_error_set(why, "cuDeviceGetCount", result);
    for (int i = 0; i < count; i++) {
        cuda_device device;
        cuda_uuid uuid;
        if ((result = driver->cuDeviceGet(&device, i)) != CUDA_OK)
            return driver_error_set(why, "cuDeviceGet", result);
        if ((result = driver->cuDeviceGetUuid(&uuid, device)) != CUDA_OK)
            return driver_error_set(why, "cuDeviceGetUuid", result);
        print_device(i, &uuid, is_instance(driver, device, &uuid), to);
    }
    return 0;
}

uint32_t device_list_write(const struct cuda_driver *driver, const struct arena *only, FILE *to,
                           struct error *why)
{
    struct arena arena = {0};
    cuda_result result = driver->cuInit(0);
    if (result != CUDA_OK)
        return driver_error_set_init(why, result);
    uint32_t error = print_devices(driver, to, why);
    if (!error)
        error = gpu_arena_choose(driver, only, &arena, why);
    if (!error)
        fprintf(to, "arena 0x%" PRIx64 " 0x%" PRIx64 " 0x%" PRIx64 "\n", arena.device_base,
                arena.host_base, arena.bytes);
    return error;
}

int device_list_print(const char *driver_path, const struct arena *only, FILE *to)
{
    struct cuda_driver driver;
    struct error why;
    uint32_t error = cuda_driver_open(&driver, driver_path, &why);
    if (!error) {
        error = device_list_write(&driver, only, to, &why);
        cuda_driver_close(&driver);
    }
    if (error)
        fprintf(to, "error %u %s\n", (unsigned)error, why.text);
    return fflush(to) == 0 && !error ? 0 : 1;
}
