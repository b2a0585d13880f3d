/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * life: CUDA's libraries as a program finds them at run time, so that it can have both runtimes at
 * once, and none before it asks for one.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_CUDART_LIFE_H
#define GPUSHARE_TESTS_PROGRAMS_CUDART_LIFE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cuda/runtime/runtime_exports.h"
#include "common/cuda/front/driver_exports.h"
#include "tests/support/demand.h"

#define EXPECT(expected, call)                                                                     \
    do {                                                                                           \
        int error_ = (int)(call);                                                                  \
        if (error_ != (int)(expected)) {                                                           \
            fprintf(stderr, "%s:%d: %s: %d, not %d\n", __FILE__, __LINE__, #call, error_,          \
                    (int)(expected));                                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define OK(call) EXPECT(0, call)

#define RUNTIME_CALLS(X)                                                                           \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaMemcpy)                                                                                  \
    X(cudaLaunchHostFunc)                                                                          \
    X(cudaLaunchKernel)                                                                            \
    X(cudaStreamCreate)                                                                            \
    X(cudaStreamDestroy)                                                                           \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaEventCreate)                                                                             \
    X(cudaEventDestroy)                                                                            \
    X(cudaEventRecord)                                                                             \
    X(cudaDeviceSynchronize)                                                                       \
    X(cudaGetDeviceCount)                                                                          \
    X(cudaGetLastError)                                                                            \
    X(cudaPeekAtLastError)                                                                         \
    X(cudaRuntimeGetVersion)                                                                       \
    X(__cudaRegisterFatBinary)                                                                     \
    X(__cudaRegisterFunction)                                                                      \
    X(__cudaUnregisterFatBinary)

#define DRIVER_CALLS(X)                                                                            \
    X(cuInit)                                                                                      \
    X(cuDeviceGetCount)                                                                            \
    X(cuCtxCreate_v2)                                                                              \
    X(cuCtxDestroy_v2)                                                                             \
    X(cuCtxGetCurrent)                                                                             \
    X(cuCtxPopCurrent_v2)                                                                          \
    X(cuDevicePrimaryCtxGetState)                                                                  \
    X(cuMemAlloc_v2)                                                                               \
    X(cuMemsetD8Async)                                                                             \
    X(cuMemcpyDtoH_v2)

#define X(name) __typeof__(name) *name;
struct runtime {
    RUNTIME_CALLS(X)
    void **image; /* of scaled_add, registered */
};
struct driver {
    DRIVER_CALLS(X)
};
#undef X

/* release: 12 or 13. Opening a library calls nothing of it; the image is registered with it, under
 * an address that is the runtime's alone. */
void life_runtime_open(struct runtime *runtime, int release);
/* Returns the library, for dlclose(). */
void *life_driver_open(struct driver *driver);

/* A device array and another one of ones: an addition adds 1 to each element. */
enum { LIFE_COUNT = 512 };
struct sum {
    float *total, *ones;
};
void life_sum_make(const struct runtime *runtime, struct sum *sum);
void life_sum_free(const struct runtime *runtime, struct sum *sum);
cudart_error life_sum_add(const struct runtime *runtime, struct sum *sum, cuda_stream stream);

/* Each element is this. It waits for the legacy default stream. */
void life_sum_demand(const struct runtime *runtime, const struct sum *sum, float total);

/* ---- the parts of the program ---- */

void life_both(const char *folder);
void life_context(const char *folder);
void life_fork(const char *folder);
void life_threads(const char *folder);
void life_exit(const char *folder);
void life_endless(const char *folder);
void life_unload(const char *folder);
void life_unload_all(const char *folder);
void life_unload_driver(const char *folder);

#endif
