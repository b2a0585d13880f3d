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
 *   to the function: per_thread_api has own, own_config
 *   and own_flags.
 * PTDS(type, name, releases, (parameters)): the same for a function that takes no stream. The form
 *   ends with _ptds, and has a body of its own.
 *
 * CUDART_RELEASE_EXPORTS has the functions whose parameters the releases do not share, as of
 * CUDA 13. Nothing is made from these rows but names: release_12 and release_13 have prototypes and
 * bodies.
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
    E(void, __cudaRegisterManagedVar, BOTH, (void **handle, void **pointer, char *device, const char *name, int external, size_t size, int constant, int global)) \
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
    E(cudart_error, cudaFuncSetCacheConfig, BOTH, (const void *host, int config)) \
    E(cudart_error, cudaFuncSetSharedMemConfig, BOTH, (const void *host, int config)) \
    E(cudart_error, cudaFuncGetName, BOTH, (const char **name, const void *host)) \
    E(cudart_error, cudaFuncGetParamInfo, BOTH, (const void *host, size_t index, size_t *offset, size_t *size)) \
    E(cudart_error, cudaFuncGetParamCount, V13, (const void *host, size_t *count)) \
    E(cudart_error, cudaGetFuncBySymbol, BOTH, (cuda_function *function, const void *host)) \
    E(cudart_error, cudaOccupancyAvailableDynamicSMemPerBlock, BOTH, (size_t *bytes, const void *host, int num_blocks, int block_size)) \
    E(cudart_error, cudaOccupancyMaxActiveBlocksPerMultiprocessor, BOTH, (int *blocks, const void *host, int block_size, size_t shared_bytes)) \
    E(cudart_error, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, BOTH, (int *blocks, const void *host, int block_size, size_t shared_bytes, unsigned flags)) \
    E(cudart_error, cudaGetKernel, BOTH, (cuda_kernel *kernel, const void *host)) \
    E(cudart_error, cudaLibraryLoadData, BOTH, (cuda_library *library, const void *image, cuda_jit_option *jit_options, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)) \
    E(cudart_error, cudaLibraryLoadFromFile, BOTH, (cuda_library *library, const char *path, cuda_jit_option *jit_options, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)) \
    E(cudart_error, cudaLibraryUnload, BOTH, (cuda_library library)) \
    E(cudart_error, cudaLibraryGetKernel, BOTH, (cuda_kernel *kernel, cuda_library library, const char *name)) \
    E(cudart_error, cudaLibraryGetGlobal, BOTH, (void **ptr, size_t *size, cuda_library library, const char *name)) \
    E(cudart_error, cudaLibraryGetManaged, BOTH, (void **ptr, size_t *size, cuda_library library, const char *name)) \
    E(cudart_error, cudaLibraryGetKernelCount, BOTH, (unsigned *count, cuda_library library)) \
    E(cudart_error, cudaLibraryEnumerateKernels, BOTH, (cuda_kernel *kernels, unsigned count, cuda_library library)) \
    E(cudart_error, cudaKernelSetAttributeForDevice, BOTH, (cuda_kernel kernel, cuda_function_attribute attribute, int value, int ordinal)) \
    /* memory */ \
    E(cudart_error, cudaMalloc, BOTH, (void **ptr, size_t size)) \
    E(cudart_error, cudaFree, BOTH, (void *ptr)) \
    E(cudart_error, cudaMallocManaged, BOTH, (void **ptr, size_t size, unsigned flags)) \
    PTSZ(cudart_error, cudaStreamAttachMemAsync, BOTH, (cuda_stream stream, void *ptr, size_t size, unsigned flags), (own(stream), ptr, size, flags)) \
    E(cudart_error, cudaMemRangeGetAttribute, BOTH, (void *data, size_t data_size, int attribute, const void *ptr, size_t size)) \
    E(cudart_error, cudaMemRangeGetAttributes, BOTH, (void **data, size_t *data_sizes, int *attributes, size_t count, const void *ptr, size_t size)) \
    E(cudart_error, cudaMemPrefetchAsync_v2, V12, (const void *ptr, size_t size, cuda_mem_location place, unsigned flags, cuda_stream stream)) \
    E(cudart_error, cudaMemPrefetchAsync_v2_ptsz, V12, (const void *ptr, size_t size, cuda_mem_location place, unsigned flags, cuda_stream stream)) \
    E(cudart_error, cudaMemAdvise_v2, V12, (const void *ptr, size_t size, int advice, cuda_mem_location place)) \
    PTSZ(cudart_error, cudaMallocAsync, BOTH, (void **ptr, size_t size, cuda_stream stream), (ptr, size, own(stream))) \
    PTSZ(cudart_error, cudaFreeAsync, BOTH, (void *ptr, cuda_stream stream), (ptr, own(stream))) \
    PTSZ(cudart_error, cudaMallocFromPoolAsync, BOTH, (void **ptr, size_t size, cuda_mem_pool pool, cuda_stream stream), (ptr, size, pool, own(stream))) \
    E(cudart_error, cudaDeviceGetDefaultMemPool, BOTH, (cuda_mem_pool *pool, int ordinal)) \
    E(cudart_error, cudaDeviceGetMemPool, BOTH, (cuda_mem_pool *pool, int ordinal)) \
    E(cudart_error, cudaDeviceSetMemPool, BOTH, (int ordinal, cuda_mem_pool pool)) \
    E(cudart_error, cudaMemGetDefaultMemPool, V13, (cuda_mem_pool *pool, cuda_mem_location *location, cuda_mem_allocation_type type)) \
    E(cudart_error, cudaMemGetMemPool, V13, (cuda_mem_pool *pool, cuda_mem_location *location, cuda_mem_allocation_type type)) \
    E(cudart_error, cudaMemSetMemPool, V13, (cuda_mem_location *location, cuda_mem_allocation_type type, cuda_mem_pool pool)) \
    E(cudart_error, cudaMemPoolCreate, BOTH, (cuda_mem_pool *pool, const cuda_mem_pool_props *props)) \
    E(cudart_error, cudaMemPoolDestroy, BOTH, (cuda_mem_pool pool)) \
    E(cudart_error, cudaMemPoolTrimTo, BOTH, (cuda_mem_pool pool, size_t least)) \
    E(cudart_error, cudaMemPoolGetAttribute, BOTH, (cuda_mem_pool pool, int attribute, void *value)) \
    E(cudart_error, cudaMemPoolSetAttribute, BOTH, (cuda_mem_pool pool, int attribute, void *value)) \
    E(cudart_error, cudaMemPoolGetAccess, BOTH, (cuda_mem_access *flags, cuda_mem_pool pool, cuda_mem_location *location)) \
    E(cudart_error, cudaMemPoolSetAccess, BOTH, (cuda_mem_pool pool, const cuda_mem_access_desc *map, size_t count)) \
    E(cudart_error, cudaMallocHost, BOTH, (void **ptr, size_t size)) \
    E(cudart_error, cudaHostAlloc, BOTH, (void **ptr, size_t size, unsigned flags)) \
    E(cudart_error, cudaFreeHost, BOTH, (void *ptr)) \
    E(cudart_error, cudaHostRegister, BOTH, (void *ptr, size_t size, unsigned flags)) \
    E(cudart_error, cudaHostUnregister, BOTH, (void *ptr)) \
    E(cudart_error, cudaHostGetDevicePointer, BOTH, (void **device_ptr, void *host, unsigned flags)) \
    E(cudart_error, cudaHostGetFlags, BOTH, (unsigned *flags, void *host)) \
    E(cudart_error, cudaPointerGetAttributes, BOTH, (void *attributes, const void *ptr)) \
    E(cudart_error, cudaMallocPitch, BOTH, (void **ptr, size_t *pitch, size_t width, size_t height)) \
    E(cudart_error, cudaMalloc3D, BOTH, (struct cudart_pitched_ptr *block, struct cudart_extent extent)) \
    E(struct cudart_channel_format, cudaCreateChannelDesc, BOTH, (int x, int y, int z, int w, int kind)) \
    E(cudart_error, cudaMemGetInfo, BOTH, (size_t *free_bytes, size_t *total_bytes)) \
    PTDS(cudart_error, cudaMemcpy, BOTH, (void *dst, const void *src, size_t size, int kind)) \
    PTSZ(cudart_error, cudaMemcpyAsync, BOTH, (void *dst, const void *src, size_t size, int kind, cuda_stream stream), (dst, src, size, kind, own(stream))) \
    PTDS(cudart_error, cudaMemcpy2D, BOTH, (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, int kind)) \
    PTSZ(cudart_error, cudaMemcpy2DAsync, BOTH, (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, int kind, cuda_stream stream), (dst, dst_pitch, src, src_pitch, width, height, kind, own(stream))) \
    PTDS(cudart_error, cudaMemcpy3D, BOTH, (const struct cudart_memcpy_3d *wanted)) \
    PTSZ(cudart_error, cudaMemcpy3DAsync, BOTH, (const struct cudart_memcpy_3d *wanted, cuda_stream stream), (wanted, own(stream))) \
    PTDS(cudart_error, cudaMemcpy3DPeer, BOTH, (const struct cudart_memcpy_3d_peer *wanted)) \
    PTSZ(cudart_error, cudaMemcpy3DPeerAsync, BOTH, (const struct cudart_memcpy_3d_peer *wanted, cuda_stream stream), (wanted, own(stream))) \
    E(cudart_error, cudaMemcpyPeer, BOTH, (void *dst, int dst_device, const void *src, int src_device, size_t size)) \
    E(cudart_error, cudaMemcpyPeerAsync, BOTH, (void *dst, int dst_device, const void *src, int src_device, size_t size, cuda_stream stream)) \
    PTDS(cudart_error, cudaMemcpyToSymbol, BOTH, (const void *symbol, const void *src, size_t size, size_t offset, int kind)) \
    PTDS(cudart_error, cudaMemcpyFromSymbol, BOTH, (void *dst, const void *symbol, size_t size, size_t offset, int kind)) \
    PTSZ(cudart_error, cudaMemcpyToSymbolAsync, BOTH, (const void *symbol, const void *src, size_t size, size_t offset, int kind, cuda_stream stream), (symbol, src, size, offset, kind, own(stream))) \
    PTSZ(cudart_error, cudaMemcpyFromSymbolAsync, BOTH, (void *dst, const void *symbol, size_t size, size_t offset, int kind, cuda_stream stream), (dst, symbol, size, offset, kind, own(stream))) \
    E(cudart_error, cudaGetSymbolAddress, BOTH, (void **ptr, const void *symbol)) \
    E(cudart_error, cudaGetSymbolSize, BOTH, (size_t *size, const void *symbol)) \
    PTDS(cudart_error, cudaMemset, BOTH, (void *dst, int value, size_t size)) \
    PTSZ(cudart_error, cudaMemsetAsync, BOTH, (void *dst, int value, size_t size, cuda_stream stream), (dst, value, size, own(stream))) \
    PTDS(cudart_error, cudaMemset2D, BOTH, (void *dst, size_t pitch, int value, size_t width, size_t height)) \
    PTSZ(cudart_error, cudaMemset2DAsync, BOTH, (void *dst, size_t pitch, int value, size_t width, size_t height, cuda_stream stream), (dst, pitch, value, width, height, own(stream))) \
    PTDS(cudart_error, cudaMemset3D, BOTH, (struct cudart_pitched_ptr block, int value, struct cudart_extent extent)) \
    PTSZ(cudart_error, cudaMemset3DAsync, BOTH, (struct cudart_pitched_ptr block, int value, struct cudart_extent extent, cuda_stream stream), (block, value, extent, own(stream))) \
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
    E(cudart_error, cudaStreamGetCaptureInfo_v2, V12, (cuda_stream stream, int *status, unsigned long long *id, void **graph, const void **dependencies, size_t *count)) \
    E(cudart_error, cudaStreamGetCaptureInfo_v2_ptsz, V12, (cuda_stream stream, int *status, unsigned long long *id, void **graph, const void **dependencies, size_t *count)) \
    E(cudart_error, cudaStreamGetCaptureInfo_v3, V12, (cuda_stream stream, int *status, unsigned long long *id, void **graph, const void **dependencies, const void **edges, size_t *count)) \
    E(cudart_error, cudaStreamGetCaptureInfo_v3_ptsz, V12, (cuda_stream stream, int *status, unsigned long long *id, void **graph, const void **dependencies, const void **edges, size_t *count)) \
    E(cudart_error, cudaThreadExchangeStreamCaptureMode, BOTH, (int *mode)) \
    PTSZ(cudart_error, cudaStreamGetFlags, BOTH, (cuda_stream stream, unsigned *flags), (own(stream), flags)) \
    PTSZ(cudart_error, cudaStreamGetDevice, BOTH, (cuda_stream stream, int *device), (own(stream), device)) \
    PTSZ(cudart_error, cudaStreamGetId, BOTH, (cuda_stream stream, unsigned long long *id), (own(stream), id)) \
    PTSZ(cudart_error, cudaStreamGetAttribute, BOTH, (cuda_stream stream, int attribute, void *value), (own(stream), attribute, value)) \
    PTSZ(cudart_error, cudaStreamSetAttribute, BOTH, (cuda_stream stream, int attribute, const void *value), (own(stream), attribute, value)) \
    PTSZ(cudart_error, cudaStreamCopyAttributes, BOTH, (cuda_stream to, cuda_stream from), (own(to), own(from))) \
    PTSZ(cudart_error, cudaLaunchHostFunc, BOTH, (cuda_stream stream, cuda_host_fn fn, void *user), (own(stream), fn, user)) \
    PTSZ(cudart_error, cudaLaunchHostFunc_v2, V13, (cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode), (own(stream), fn, user, mode)) \
    PTSZ(cudart_error, cudaStreamAddCallback, BOTH, (cuda_stream stream, cuda_stream_callback fn, void *user, unsigned flags), (own(stream), fn, user, flags)) \
    E(cudart_error, cudaEventCreate, BOTH, (cuda_event *event)) \
    E(cudart_error, cudaEventCreateWithFlags, BOTH, (cuda_event *event, unsigned flags)) \
    E(cudart_error, cudaEventDestroy, BOTH, (cuda_event event)) \
    PTSZ(cudart_error, cudaEventRecord, BOTH, (cuda_event event, cuda_stream stream), (event, own(stream))) \
    PTSZ(cudart_error, cudaEventRecordWithFlags, BOTH, (cuda_event event, cuda_stream stream, unsigned flags), (event, own(stream), flags)) \
    E(cudart_error, cudaEventQuery, BOTH, (cuda_event event)) \
    E(cudart_error, cudaEventSynchronize, BOTH, (cuda_event event)) \
    E(cudart_error, cudaEventElapsedTime, BOTH, (float *milliseconds, cuda_event start, cuda_event end)) \
    E(cudart_error, cudaEventElapsedTime_v2, V12, (float *milliseconds, cuda_event start, cuda_event end)) \
    /* devices */ \
    E(cudart_error, cudaGetDeviceCount, BOTH, (int *count)) \
    E(cudart_error, cudaGetDevice, BOTH, (int *ordinal)) \
    E(cudart_error, cudaSetDevice, BOTH, (int ordinal)) \
    E(cudart_error, cudaSetDeviceFlags, BOTH, (unsigned flags)) \
    E(cudart_error, cudaGetDeviceFlags, BOTH, (unsigned *flags)) \
    E(cudart_error, cudaInitDevice, BOTH, (int ordinal, unsigned device_flags, unsigned flags)) \
    E(cudart_error, cudaDeviceGetPCIBusId, BOTH, (char *id, int size, int ordinal)) \
    E(cudart_error, cudaDeviceGetByPCIBusId, BOTH, (int *ordinal, const char *id)) \
    E(cudart_error, cudaDeviceCanAccessPeer, BOTH, (int *can, int ordinal, int peer)) \
    E(cudart_error, cudaDeviceGetP2PAttribute, BOTH, (int *value, int attribute, int source, int destination)) \
    E(cudart_error, cudaDeviceEnablePeerAccess, BOTH, (int peer, unsigned flags)) \
    E(cudart_error, cudaDeviceDisablePeerAccess, BOTH, (int peer)) \
    E(cudart_error, cudaDeviceGetAttribute, BOTH, (int *value, int attribute, int ordinal)) \
    E(cudart_error, cudaGetDeviceProperties_v2, V12, (void *properties, int ordinal)) \
    E(cudart_error, cudaGetDeviceProperties, V13, (void *properties, int ordinal)) \
    E(cudart_error, cudaDeviceGetStreamPriorityRange, BOTH, (int *least, int *greatest)) \
    E(cudart_error, cudaCtxResetPersistingL2Cache, BOTH, (void)) \
    E(cudart_error, cudaDeviceGetLimit, BOTH, (size_t *value, int limit)) \
    E(cudart_error, cudaDeviceSetLimit, BOTH, (int limit, size_t value)) \
    E(cudart_error, cudaDeviceGetCacheConfig, BOTH, (int *config)) \
    E(cudart_error, cudaDeviceSetCacheConfig, BOTH, (int config)) \
    E(cudart_error, cudaDeviceGetSharedMemConfig, BOTH, (int *config)) \
    E(cudart_error, cudaDeviceSetSharedMemConfig, BOTH, (int config)) \
    E(cudart_error, cudaThreadExit, V12, (void)) \
    E(cudart_error, cudaThreadSynchronize, V12, (void)) \
    E(cudart_error, cudaThreadGetLimit, V12, (size_t *value, int limit)) \
    E(cudart_error, cudaThreadSetLimit, V12, (int limit, size_t value)) \
    E(cudart_error, cudaThreadGetCacheConfig, V12, (int *config)) \
    E(cudart_error, cudaThreadSetCacheConfig, V12, (int config)) \
    E(cudart_error, cudaDeviceReset, BOTH, (void)) \
    E(cudart_error, cudaDeviceSynchronize, BOTH, (void)) \
    E(cudart_error, cudaDriverGetVersion, BOTH, (int *version)) \
    E(cudart_error, cudaRuntimeGetVersion, BOTH, (int *version)) \
    PTSZ(cudart_error, cudaGetDriverEntryPoint, BOTH, (const char *symbol, void **fn, unsigned long long flags, cuda_proc_address_status *status), (symbol, fn, own_flags(flags), status)) \
    PTSZ(cudart_error, cudaGetDriverEntryPointByVersion, BOTH, (const char *symbol, void **fn, unsigned version, unsigned long long flags, cuda_proc_address_status *status), (symbol, fn, version, own_flags(flags), status)) \
    E(cudart_error, cudaProfilerStart, BOTH, (void)) \
    E(cudart_error, cudaProfilerStop, BOTH, (void)) \
    /* errors */ \
    E(cudart_error, cudaGetLastError, BOTH, (void)) \
    E(cudart_error, cudaPeekAtLastError, BOTH, (void)) \
    E(const char *, cudaGetErrorName, BOTH, (cudart_error error)) \
    E(const char *, cudaGetErrorString, BOTH, (cudart_error error))

#define CUDART_RELEASE_EXPORTS(E, PTSZ) \
    /* managed memory, batches of copies and captures, whose parameters differ between the releases */ \
    PTSZ(cudart_error, cudaMemcpyBatchAsync, BOTH, (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count, cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count, cuda_stream stream), ()) \
    PTSZ(cudart_error, cudaMemcpy3DBatchAsync, BOTH, (size_t count, cuda_batch_3d *blocks, unsigned long long flags, cuda_stream stream), ()) \
    PTSZ(cudart_error, cudaMemPrefetchAsync, BOTH, (const void *ptr, size_t size, cuda_mem_location place, unsigned flags, cuda_stream stream), ()) \
    E(cudart_error, cudaMemAdvise, BOTH, (const void *ptr, size_t size, int advice, cuda_mem_location place)) \
    PTSZ(cudart_error, cudaStreamGetCaptureInfo, BOTH, (cuda_stream stream, int *status, unsigned long long *id, void **graph, const void **dependencies, const void **edges, size_t *count), ())
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
