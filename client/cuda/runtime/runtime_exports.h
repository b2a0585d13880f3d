/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_exports: every function that the libraries carry, once. The prototypes below are made
 * from this table. exports.txt names all functions that NVIDIA's libraries have; the others are
 * refused (generate_exports.py). The comments between the rows are the headings of
 * docs/cuda-api.md.
 *
 * E(type, name, releases, (parameters))
 * PTSZ(type, name, releases, (parameters), (arguments)): the function, and its form for a program
 *   with default streams of each thread, whose name ends with _ptsz. That form passes the arguments
 *   to the function: per_thread_api has own and own_config.
 * PTDS(type, name, releases, (parameters)): the same for a function that takes no stream. The form
 *   ends with _ptds, and has a body of its own.
 *
 * releases: BOTH, or the only major release of CUDA whose library has the function: V12 or V13.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_RUNTIME_EXPORTS_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_RUNTIME_EXPORTS_H

#include "client/cuda/runtime/base/runtime_abi.h"
#include "client/cuda/runtime/base/runtime_driver.h"

/* clang-format off */
#define CUDART_EXPORTS(E, PTSZ, PTDS) \
    /* what nvcc's output calls */ \
    E(void **, __cudaRegisterFatBinary, BOTH, (void *wrapper)) \
    E(void, __cudaRegisterFatBinaryEnd, BOTH, (void **handle)) \
    E(void, __cudaUnregisterFatBinary, BOTH, (void **handle)) \
    E(char, __cudaInitModule, BOTH, (void **handle)) \
    E(void, __cudaRegisterFunction, BOTH, (void **handle, const char *host, char *device, const char *name, int thread_limit, void *tid, void *bid, void *block, void *grid, int *warp_size)) \
    E(void, __cudaRegisterVar, BOTH, (void **handle, char *host, char *device, const char *name, int external, size_t size, int constant, int global)) \
    E(unsigned, __cudaPushCallConfiguration, BOTH, (cudart_dim3 grid, cudart_dim3 block, size_t shared_bytes, cuda_stream stream)) \
    E(cudart_error, __cudaPopCallConfiguration, BOTH, (cudart_dim3 *grid, cudart_dim3 *block, size_t *shared_bytes, void *stream)) \
    E(cudart_error, __cudaGetKernel, BOTH, (cudart_kernel *kernel, const void *host)) \
    PTSZ(cudart_error, __cudaLaunchKernel, BOTH, (cudart_kernel kernel, cudart_dim3 grid, cudart_dim3 block, void **params, size_t shared_bytes, cuda_stream stream), (kernel, grid, block, params, shared_bytes, own(stream))) \
    /* launches and kernels */ \
    PTSZ(cudart_error, cudaLaunchKernel, BOTH, (const void *host, cudart_dim3 grid, cudart_dim3 block, void **params, size_t shared_bytes, cuda_stream stream), (host, grid, block, params, shared_bytes, own(stream))) \
    PTSZ(cudart_error, cudaLaunchKernelExC, BOTH, (const struct cuda_launch_config *config, const void *host, void **params), (own_config(config, &(struct cuda_launch_config){0}), host, params)) \
    PTSZ(cudart_error, cudaLaunchCooperativeKernel, BOTH, (const void *host, cudart_dim3 grid, cudart_dim3 block, void **params, size_t shared_bytes, cuda_stream stream), (host, grid, block, params, shared_bytes, own(stream))) \
    E(cudart_error, cudaFuncGetAttributes, BOTH, (struct cudart_function_attributes *attributes, const void *host)) \
    E(cudart_error, cudaFuncSetAttribute, BOTH, (const void *host, int attribute, int value)) \
    E(cudart_error, cudaOccupancyMaxActiveBlocksPerMultiprocessor, BOTH, (int *blocks, const void *host, int block_size, size_t shared_bytes)) \
    E(cudart_error, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, BOTH, (int *blocks, const void *host, int block_size, size_t shared_bytes, unsigned flags)) \
    /* memory */ \
    E(cudart_error, cudaMalloc, BOTH, (void **ptr, size_t size)) \
    E(cudart_error, cudaFree, BOTH, (void *ptr)) \
    E(cudart_error, cudaMallocManaged, BOTH, (void **ptr, size_t size, unsigned flags)) \
    PTSZ(cudart_error, cudaMallocAsync, BOTH, (void **ptr, size_t size, cuda_stream stream), (ptr, size, own(stream))) \
    PTSZ(cudart_error, cudaFreeAsync, BOTH, (void *ptr, cuda_stream stream), (ptr, own(stream))) \
    E(cudart_error, cudaMallocHost, BOTH, (void **ptr, size_t size)) \
    E(cudart_error, cudaHostAlloc, BOTH, (void **ptr, size_t size, unsigned flags)) \
    E(cudart_error, cudaFreeHost, BOTH, (void *ptr)) \
    E(cudart_error, cudaHostRegister, BOTH, (void *ptr, size_t size, unsigned flags)) \
    E(cudart_error, cudaHostUnregister, BOTH, (void *ptr)) \
    E(cudart_error, cudaHostGetDevicePointer, BOTH, (void **device_ptr, void *host, unsigned flags)) \
    E(struct cudart_channel_format, cudaCreateChannelDesc, BOTH, (int x, int y, int z, int w, int kind)) \
    E(cudart_error, cudaMemGetInfo, BOTH, (size_t *free_bytes, size_t *total_bytes)) \
    PTDS(cudart_error, cudaMemcpy, BOTH, (void *dst, const void *src, size_t size, int kind)) \
    PTSZ(cudart_error, cudaMemcpyAsync, BOTH, (void *dst, const void *src, size_t size, int kind, cuda_stream stream), (dst, src, size, kind, own(stream))) \
    PTDS(cudart_error, cudaMemcpyToSymbol, BOTH, (const void *symbol, const void *src, size_t size, size_t offset, int kind)) \
    PTDS(cudart_error, cudaMemcpyFromSymbol, BOTH, (void *dst, const void *symbol, size_t size, size_t offset, int kind)) \
    E(cudart_error, cudaGetSymbolAddress, BOTH, (void **ptr, const void *symbol)) \
    E(cudart_error, cudaGetSymbolSize, BOTH, (size_t *size, const void *symbol)) \
    PTDS(cudart_error, cudaMemset, BOTH, (void *dst, int value, size_t size)) \
    PTSZ(cudart_error, cudaMemsetAsync, BOTH, (void *dst, int value, size_t size, cuda_stream stream), (dst, value, size, own(stream))) \
    /* streams and events */ \
    E(cudart_error, cudaStreamCreate, BOTH, (cuda_stream *stream)) \
    E(cudart_error, cudaStreamCreateWithFlags, BOTH, (cuda_stream *stream, unsigned flags)) \
    E(cudart_error, cudaStreamCreateWithPriority, BOTH, (cuda_stream *stream, unsigned flags, int priority)) \
    E(cudart_error, cudaStreamDestroy, BOTH, (cuda_stream stream)) \
    PTSZ(cudart_error, cudaStreamSynchronize, BOTH, (cuda_stream stream), (own(stream))) \
    PTSZ(cudart_error, cudaStreamQuery, BOTH, (cuda_stream stream), (own(stream))) \
    PTSZ(cudart_error, cudaStreamWaitEvent, BOTH, (cuda_stream stream, cuda_event event, unsigned flags), (own(stream), event, flags)) \
    PTSZ(cudart_error, cudaStreamGetPriority, BOTH, (cuda_stream stream, int *priority), (own(stream), priority)) \
    PTSZ(cudart_error, cudaStreamIsCapturing, BOTH, (cuda_stream stream, int *status), (own(stream), status)) \
    PTSZ(cudart_error, cudaLaunchHostFunc, BOTH, (cuda_stream stream, cuda_host_fn fn, void *user), (own(stream), fn, user)) \
    PTSZ(cudart_error, cudaStreamAddCallback, BOTH, (cuda_stream stream, cuda_stream_callback fn, void *user, unsigned flags), (own(stream), fn, user, flags)) \
    E(cudart_error, cudaEventCreate, BOTH, (cuda_event *event)) \
    E(cudart_error, cudaEventCreateWithFlags, BOTH, (cuda_event *event, unsigned flags)) \
    E(cudart_error, cudaEventDestroy, BOTH, (cuda_event event)) \
    PTSZ(cudart_error, cudaEventRecord, BOTH, (cuda_event event, cuda_stream stream), (event, own(stream))) \
    E(cudart_error, cudaEventQuery, BOTH, (cuda_event event)) \
    E(cudart_error, cudaEventSynchronize, BOTH, (cuda_event event)) \
    E(cudart_error, cudaEventElapsedTime, BOTH, (float *milliseconds, cuda_event start, cuda_event end)) \
    /* devices */ \
    E(cudart_error, cudaGetDeviceCount, BOTH, (int *count)) \
    E(cudart_error, cudaGetDevice, BOTH, (int *ordinal)) \
    E(cudart_error, cudaSetDevice, BOTH, (int ordinal)) \
    E(cudart_error, cudaSetDeviceFlags, BOTH, (unsigned flags)) \
    E(cudart_error, cudaDeviceGetAttribute, BOTH, (int *value, int attribute, int ordinal)) \
    E(cudart_error, cudaGetDeviceProperties_v2, V12, (void *properties, int ordinal)) \
    E(cudart_error, cudaGetDeviceProperties, V13, (void *properties, int ordinal)) \
    E(cudart_error, cudaDeviceGetStreamPriorityRange, BOTH, (int *least, int *greatest)) \
    E(cudart_error, cudaDeviceGetLimit, BOTH, (size_t *value, int limit)) \
    E(cudart_error, cudaDeviceSetLimit, BOTH, (int limit, size_t value)) \
    E(cudart_error, cudaDeviceReset, BOTH, (void)) \
    E(cudart_error, cudaDeviceSynchronize, BOTH, (void)) \
    E(cudart_error, cudaDriverGetVersion, BOTH, (int *version)) \
    E(cudart_error, cudaRuntimeGetVersion, BOTH, (int *version)) \
    E(cudart_error, cudaProfilerStart, BOTH, (void)) \
    E(cudart_error, cudaProfilerStop, BOTH, (void)) \
    /* errors */ \
    E(cudart_error, cudaGetLastError, BOTH, (void)) \
    E(cudart_error, cudaPeekAtLastError, BOTH, (void)) \
    E(const char *, cudaGetErrorName, BOTH, (cudart_error error)) \
    E(const char *, cudaGetErrorString, BOTH, (cudart_error error))
/* clang-format on */

#define E(type, name, releases, params)          API type name params;
#define PTSZ(type, name, releases, params, args) API type name params, name##_ptsz params;
#define PTDS(type, name, releases, params)       API type name params, name##_ptds params;
CUDART_EXPORTS(E, PTSZ, PTDS)
#undef E
#undef PTSZ
#undef PTDS

/* Ends a public function that fails before it has done anything. */
#define ENTER()                                                                                    \
    do {                                                                                           \
        cudart_error entered_ = runtime_context_enter(NULL);                                       \
        if (entered_ != CUDART_OK)                                                                 \
            return runtime_error_note(entered_);                                                   \
    } while (0)

#endif
