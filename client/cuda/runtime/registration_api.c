/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The calls that nvcc puts into a program: its start-up code registers images, and each launch
 * pushes a configuration that nvcc's host code of the kernel pops.
 */
#include "client/cuda/runtime/registry.h"
#include "client/cuda/runtime/base/runtime_context.h"
#include "client/cuda/runtime/base/runtime_error.h"
#include "client/cuda/runtime/runtime_exports.h"
#include "common/log.h"
#include "common/messages.h"

/* ---- start and end of a program -------------------------------------------------------- */

void **__cudaRegisterFatBinary(void *wrapper)
{
    return (void **)registry_image_add(wrapper);
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle; /* images are loaded when they are used */
}

void __cudaUnregisterFatBinary(void **handle)
{
    registry_image_remove((struct registry_image *)handle);
}

/* nvcc's host code calls it before it reads the pointer of a managed variable, until the result is
 * not 0. The program goes on to read it all the same. */
char __cudaInitModule(void **handle)
{
    struct registry_image *image = (struct registry_image *)handle;
    cuda_context context;
    cudart_error error;

    if (!image || !registry_managed_any(image))
        return image != NULL;
    error = runtime_context_enter(&context);
    if (error == CUDART_OK)
        error = registry_managed_load(image, context);
    if (error != CUDART_OK)
        log_error(MESSAGE_TEXT(runtime_managed_unmade), cudaGetErrorName(error));
    return runtime_error_note(error) == CUDART_OK;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, void *tid, void *bid, void *block, void *grid,
                            int *warp_size)
{
    (void)device, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid;
    (void)warp_size;
    if (handle)
        registry_function_add((struct registry_image *)handle, host, name);
    else
        registry_lose(host);
}

void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external,
                       size_t size, int constant, int global)
{
    (void)device, (void)external, (void)size, (void)constant, (void)global;
    if (handle)
        registry_variable_add((struct registry_image *)handle, host, name);
    else
        registry_lose(host);
}

void __cudaRegisterManagedVar(void **handle, void **pointer, char *device, const char *name,
                              int external, size_t size, int constant, int global)
{
    (void)device, (void)external, (void)size, (void)constant, (void)global;
    if (handle)
        registry_managed_add((struct registry_image *)handle, pointer, name);
    else
        registry_lose((const void *)pointer);
}

/* ---- launch configurations ---------------------------------------------------------------- */

/* Arguments of a launch may contain launches, so configurations nest. */
enum { DEPTH_MAX = 16 };

static _Thread_local struct configuration {
    cudart_dim3 grid, block;
    size_t shared_bytes;
    cuda_stream stream;
} pushed[DEPTH_MAX];
static _Thread_local unsigned depth;

/* Not 0: the caller leaves the launch out. */
unsigned __cudaPushCallConfiguration(cudart_dim3 grid, cudart_dim3 block, size_t shared_bytes,
                                     cuda_stream stream)
{
    if (depth == DEPTH_MAX)
        return (unsigned)runtime_error_note(CUDART_MISSING_CONFIGURATION);
    pushed[depth++] = (struct configuration){grid, block, shared_bytes, stream};
    return CUDART_OK;
}

cudart_error __cudaPopCallConfiguration(cudart_dim3 *grid, cudart_dim3 *block, size_t *shared_bytes,
                                        void *stream)
{
    const struct configuration *top;

    if (depth == 0)
        return runtime_error_note(CUDART_MISSING_CONFIGURATION);
    top = &pushed[--depth];
    *grid = top->grid;
    *block = top->block;
    *shared_bytes = top->shared_bytes;
    *(cuda_stream *)stream = top->stream;
    return CUDART_OK;
}
