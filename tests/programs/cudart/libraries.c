/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Handles of kernels, libraries that the program loads itself, and functions of the driver. */
#include <string.h>
#include <unistd.h>

#include "tests/programs/cudart/cudart.h"

enum { COUNT = 256 };

static float *place;

/* The kernel adds the array to itself, times a factor. */
static void launch(const void *kernel, float factor)
{
    const cudart_dim3 grid = {1, 1, 1}, block = {COUNT, 1, 1};
    float values[COUNT];
    uint32_t count = COUNT;
    void *params[] = {&place, &place, &place, &count};

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    EXPECT(0, cudaMemcpy(place, values, sizeof(values), CUDART_HOST_TO_DEVICE));
    EXPECT(0, cudaLaunchKernel(kernel, grid, block, params, 0, NULL));
    EXPECT(0, cudaMemcpy(values, place, sizeof(values), CUDART_DEVICE_TO_HOST));
    for (int i = 0; i < COUNT; i++)
        CHECK(values[i] == factor * (float)i + (float)i);
}

static void check_kernels(const char *host, float factor)
{
    struct cudart_function_attributes attributes;
    cuda_kernel kernel = NULL, again = NULL;

    EXPECT(0, cudaGetKernel(&kernel, host));
    EXPECT(0, cudaGetKernel(&again, kernel));
    CHECK(kernel && again == kernel);
    launch(kernel, factor);
    EXPECT(0, cudaFuncGetAttributes(&attributes, kernel));
    CHECK(attributes.max_threads_per_block == 1024);
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, cudaGetKernel(&kernel, &attributes));
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION, cudaGetKernel(&kernel, NULL));
    EXPECT(CUDART_INVALID_VALUE, cudaGetKernel(NULL, host));
}

static void check_library(cuda_library library)
{
    const float five = 5;
    const char *name = NULL;
    cuda_kernel kernel = NULL, other = NULL, all[4] = {NULL};
    unsigned count = 0;
    void *scale_place = NULL;
    size_t bytes = 0;

    EXPECT(0, cudaLibraryGetKernel(&kernel, library, "scaled_add"));
    EXPECT(CUDA_ERR_NOT_FOUND, cudaLibraryGetKernel(&other, library, "not_there"));
    CHECK(!other);
    EXPECT(CUDART_INVALID_VALUE, cudaLibraryGetKernel(NULL, library, "scaled_add"));
    launch(kernel, 1);
    EXPECT(0, cudaLibraryGetGlobal(&scale_place, &bytes, library, "scale"));
    CHECK(bytes == sizeof(float));
    EXPECT(CUDA_ERR_NOT_FOUND, cudaLibraryGetGlobal(&scale_place, &bytes, library, "not_there"));
    EXPECT(0, cudaMemcpy(scale_place, &five, sizeof(five), CUDART_HOST_TO_DEVICE));
    launch(kernel, 5);
    EXPECT(0, cudaFuncGetName(&name, kernel));
    CHECK(strcmp(name, "scaled_add") == 0);
    EXPECT(0, cudaKernelSetAttributeForDevice(kernel, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024,
                                              0));
    EXPECT(CUDART_INVALID_DEVICE, cudaKernelSetAttributeForDevice(
                                      kernel, CUDA_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024, 1000));
    EXPECT(0, cudaLibraryGetKernelCount(&count, library));
    CHECK(count == 3);
    EXPECT(0, cudaLibraryEnumerateKernels(all, 2, library));
    CHECK(all[0] && all[1] && !all[2]);
    EXPECT(0, cudaLibraryEnumerateKernels(all, 4, library));
    CHECK(all[2] && !all[3]);
    EXPECT(0, cudaFuncGetName(&name, all[2]));
    EXPECT(CUDA_ERR_NOT_FOUND, cudaLibraryGetManaged(&scale_place, &bytes, library, "scale"));
    EXPECT(0, cudaLibraryUnload(library));
    EXPECT(CUDART_INVALID_DEVICE_FUNCTION,
           cudaLaunchKernel(kernel, (cudart_dim3){1, 1, 1}, (cudart_dim3){1, 1, 1}, NULL, 0, NULL));
}

static void check_files(const char *text)
{
    char path[] = "/tmp/cudart-XXXXXX";
    const size_t length = strlen(text);
    const int file = mkstemp(path);
    cuda_library library;

    CHECK(file >= 0 && write(file, text, length) == (ssize_t)length);
    close(file);
    EXPECT(0, cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    check_library(library);
    CHECK(unlink(path) == 0);
    EXPECT(CUDA_ERR_FILE_NOT_FOUND,
           cudaLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
}

typedef cuda_result (*version_fn)(int *);

static void check_entry_points(void)
{
    cuda_proc_address_status status = 7;
    void *found = NULL, *legacy = NULL, *own = NULL;
    version_fn version;
    int number = 0;

    EXPECT(0, cudaGetDriverEntryPoint("cuDriverGetVersion", &found, 0, &status));
    CHECK(found && status == CUDA_PROC_ADDRESS_SUCCESS);
    memcpy(&version, &found, sizeof(version));
    CHECK(version(&number) == CUDA_OK && number >= 12000);

    EXPECT(0, cudaGetDriverEntryPoint("cuStreamQuery", &legacy, 0, NULL));
    EXPECT(0, cudaGetDriverEntryPoint_ptsz("cuStreamQuery", &own, 0, NULL));
    CHECK(legacy && own && legacy != own);
    EXPECT(0, cudaGetDriverEntryPoint_ptsz("cuStreamQuery", &found, 1, NULL));
    CHECK(found == legacy);
    EXPECT(0, cudaGetDriverEntryPoint("cuStreamQuery", &found, 2, NULL));
    CHECK(found == own);

    /* The ABI is that of the version. */
    EXPECT(0, cudaGetDriverEntryPointByVersion("cuDeviceGetUuid", &legacy, 9020, 0, &status));
    EXPECT(0, cudaGetDriverEntryPointByVersion_ptsz("cuDeviceGetUuid", &found, 11040, 0, &status));
    CHECK(legacy && found && legacy != found);
    EXPECT(0, cudaGetDriverEntryPointByVersion("cuStreamGetId", &found, 11080, 0, &status));
    CHECK(!found && status == CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT(0, cudaGetDriverEntryPoint("cuNothing", &found, 0, &status));
    CHECK(!found && status == CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    EXPECT(0, cudaGetLastError());
    EXPECT(CUDART_INVALID_VALUE, cudaGetDriverEntryPoint(NULL, &found, 0, NULL));
    EXPECT(CUDART_INVALID_VALUE, cudaGetDriverEntryPoint("cuInit", NULL, 0, NULL));
    EXPECT(CUDART_INVALID_VALUE, cudaGetDriverEntryPoint("cuInit", &found, 4, NULL));
    EXPECT(CUDART_INVALID_VALUE,
           cudaGetDriverEntryPointByVersion("cuInit", &found, 99000, 0, NULL));
}

void check_libraries(const char *host, const char *text)
{
    float factor = 0;
    cuda_library library = NULL;

    EXPECT(0, cudaMalloc((void **)&place, COUNT * sizeof(float)));
    check_entry_points();
    EXPECT(0, cudaMemcpyFromSymbol(&factor, &scale, sizeof(factor), 0, CUDART_DEVICE_TO_HOST));
    check_kernels(host, factor);
    EXPECT(0, cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    check_library(library);
    check_files(text);
    EXPECT(CUDART_INVALID_VALUE, cudaLibraryLoadData(NULL, text, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(0, cudaFree(place));
    (void)cudaGetLastError();
}
