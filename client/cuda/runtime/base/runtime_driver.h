/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_driver: the driver that the runtime stands on, which is whatever libcuda.so.1 the loader
 * finds: the software GPU's, gpushare's, or NVIDIA's. It is opened at the first call that needs it,
 * and tried again after a failure. Its code stays mapped until the process ends. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_DRIVER_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_DRIVER_H

#include <stdatomic.h>

#include "client/cuda/runtime/base/runtime_abi.h"

/* Whether runtime_driver_open has succeeded, which is asked at every call. */
extern atomic_bool runtime_driver_opened;
cudart_error runtime_driver_open_first(void) __attribute__((cold));

/* Opens and initialises the driver. Returns 0; CUDART_INSUFFICIENT_DRIVER if there is none; or what
 * cuInit returned. */
static inline cudart_error runtime_driver_open(void)
{
    return __builtin_expect(atomic_load_explicit(&runtime_driver_opened, memory_order_acquire), 1)
               ? CUDART_OK
               : runtime_driver_open_first();
}

/* X(name, symbol, version, need, (parameters)), as CUDA_DRIVER_ENTRIES has them: what the runtime
 * alone calls. A driver may lack any of them. */
#define RUNTIME_DRIVER_ENTRIES(X)                                                                  \
    X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, 0, (cuda_device device))         \
    X(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, 0,                                       \
      (cuda_device * device, const char *id))                                                      \
    X(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, 0,                                       \
      (int *can, cuda_device device, cuda_device peer))                                            \
    X(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, 8000, 0,                                   \
      (int *value, int attribute, cuda_device source, cuda_device destination))                    \
    X(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, 0, (cuda_context peer, unsigned flags))  \
    X(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, 0, (cuda_context peer))                \
    X(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, 0, (void))                  \
    X(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, 0, (int *config))                            \
    X(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, 0, (int config))                             \
    X(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, 0, (int *config))                    \
    X(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, 0, (int config))                     \
    X(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, 0, (cuda_function function, int config))   \
    X(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, 0,                                 \
      (cuda_function function, int config))                                                        \
    X(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, 0,  \
      (size_t * bytes, cuda_function function, int num_blocks, int block_size))                    \
    X(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, 0,                               \
      (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,                  \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       cuda_stream stream, void **params))                                                         \
    X(cuStreamAddCallback, cuStreamAddCallback, 5000, 0,                                           \
      (cuda_stream stream, cuda_stream_callback fn, void *user, unsigned flags))                   \
    X(cuStreamIsCapturing, cuStreamIsCapturing, 10000, 0, (cuda_stream stream, int *status))       \
    X(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, 0, (int *mode)) \
    X(cuStreamGetFlags, cuStreamGetFlags, 7000, 0, (cuda_stream stream, unsigned *flags))          \
    X(cuStreamGetId, cuStreamGetId, 12000, 0, (cuda_stream stream, unsigned long long *id))        \
    X(cuStreamGetAttribute, cuStreamGetAttribute, 11000, 0,                                        \
      (cuda_stream stream, int attribute, void *value))                                            \
    X(cuStreamSetAttribute, cuStreamSetAttribute, 11000, 0,                                        \
      (cuda_stream stream, int attribute, const void *value))                                      \
    X(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, 0,                                    \
      (cuda_stream to, cuda_stream from))                                                          \
    X(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, 0,                                    \
      (cuda_event event, cuda_stream stream, unsigned flags))                                      \
    X(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, 0,                                                \
      (cuda_device_ptr * ptr, size_t * pitch, size_t width, size_t height, unsigned element))      \
    X(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020, 0, (const cuda_memcpy_2d *copy))          \
    X(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, 0,                                                \
      (const cuda_memcpy_2d *copy, cuda_stream stream))                                            \
    X(cuMemcpy3D, cuMemcpy3D_v2, 3020, 0, (const cuda_memcpy_3d *copy))                            \
    X(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020, 0,                                                \
      (const cuda_memcpy_3d *copy, cuda_stream stream))                                            \
    X(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, 0, (const cuda_memcpy_3d *copy))                       \
    X(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, 0,                                           \
      (const cuda_memcpy_3d *copy, cuda_stream stream))                                            \
    X(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, 12080, 0,                                        \
      (size_t count, cuda_batch_3d * blocks, size_t * failed, unsigned long long flags,            \
       cuda_stream stream))                                                                        \
    X(cuMemcpyPeer, cuMemcpyPeer, 4000, 0,                                                         \
      (cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src,                         \
       cuda_context src_context, size_t size))                                                     \
    X(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000, 0,                                               \
      (cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src,                         \
       cuda_context src_context, size_t size, cuda_stream stream))                                 \
    X(cuMemsetD2D8, cuMemsetD2D8_v2, 3020, 0,                                                      \
      (cuda_device_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height))       \
    X(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020, 0,                                               \
      (cuda_device_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height,        \
       cuda_stream stream))                                                                        \
    X(cuMemHostGetFlags, cuMemHostGetFlags, 2030, 0, (unsigned *flags, void *host))                \
    X(cuPointerGetAttributes, cuPointerGetAttributes, 7000, 0,                                     \
      (unsigned count, cuda_pointer_attribute *attributes, void **data, cuda_device_ptr ptr))      \
    X(cuMemAllocAsync, cuMemAllocAsync, 11020, 0,                                                  \
      (cuda_device_ptr * ptr, size_t size, cuda_stream stream))                                    \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, 0,                                  \
      (cuda_device_ptr * ptr, size_t size, cuda_mem_pool pool, cuda_stream stream))                \
    X(cuMemFreeAsync, cuMemFreeAsync, 11020, 0, (cuda_device_ptr ptr, cuda_stream stream))         \
    X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, 0,                              \
      (cuda_mem_pool * pool, cuda_device device))                                                  \
    X(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, 0,                                            \
      (cuda_mem_pool * pool, cuda_device device))                                                  \
    X(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, 0, (cuda_device device, cuda_mem_pool pool))  \
    X(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, 0,                                    \
      (cuda_mem_pool * pool, cuda_mem_location * location, cuda_mem_allocation_type type))         \
    X(cuMemGetMemPool, cuMemGetMemPool, 13000, 0,                                                  \
      (cuda_mem_pool * pool, cuda_mem_location * location, cuda_mem_allocation_type type))         \
    X(cuMemSetMemPool, cuMemSetMemPool, 13000, 0,                                                  \
      (cuda_mem_location * location, cuda_mem_allocation_type type, cuda_mem_pool pool))           \
    X(cuMemPoolCreate, cuMemPoolCreate, 11020, 0,                                                  \
      (cuda_mem_pool * pool, const cuda_mem_pool_props *props))                                    \
    X(cuMemPoolDestroy, cuMemPoolDestroy, 11020, 0, (cuda_mem_pool pool))                          \
    X(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, 0, (cuda_mem_pool pool, size_t least))              \
    X(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, 0,                                      \
      (cuda_mem_pool pool, int attribute, void *value))                                            \
    X(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, 0,                                      \
      (cuda_mem_pool pool, int attribute, void *value))                                            \
    X(cuMemPoolGetAccess, cuMemPoolGetAccess, 11020, 0,                                            \
      (cuda_mem_access * flags, cuda_mem_pool pool, cuda_mem_location * location))                 \
    X(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020, 0,                                            \
      (cuda_mem_pool pool, const cuda_mem_access_desc *map, size_t count))                         \
    X(cuMemAllocManaged, cuMemAllocManaged, 6000, 0,                                               \
      (cuda_device_ptr * ptr, size_t size, unsigned flags))                                        \
    X(cuMemPrefetchAsync, cuMemPrefetchAsync_v2, 12020, 0,                                         \
      (cuda_device_ptr ptr, size_t size, cuda_mem_location place, unsigned flags,                  \
       cuda_stream stream))                                                                        \
    X(cuMemAdvise, cuMemAdvise_v2, 12020, 0,                                                       \
      (cuda_device_ptr ptr, size_t size, int advice, cuda_mem_location place))                     \
    X(cuMemRangeGetAttribute, cuMemRangeGetAttribute, 8000, 0,                                     \
      (void *data, size_t size, int attribute, cuda_device_ptr ptr, size_t bytes))                 \
    X(cuMemRangeGetAttributes, cuMemRangeGetAttributes, 8000, 0,                                   \
      (void **data, size_t *sizes, int *attributes, size_t count, cuda_device_ptr ptr,             \
       size_t bytes))                                                                              \
    X(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, 0,                                     \
      (cuda_stream stream, cuda_device_ptr ptr, size_t size, unsigned flags))                      \
    X(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080, 0,                                            \
      (cuda_device_ptr * dsts, cuda_device_ptr * srcs, size_t * sizes, size_t count,               \
       cuda_copy_attributes * attributes, size_t * firsts, size_t attribute_count,                 \
       size_t * failed, cuda_stream stream))                                                       \
    X(cuLibraryLoadData, cuLibraryLoadData, 12000, 0,                                              \
      (cuda_library * library, const void *image, cuda_jit_option *jit_options, void **jit_values, \
       unsigned jit_count, int *options, void **values, unsigned count))                           \
    X(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, 0,                                      \
      (cuda_library * library, const char *path, cuda_jit_option *jit_options, void **jit_values,  \
       unsigned jit_count, int *options, void **values, unsigned count))                           \
    X(cuLibraryUnload, cuLibraryUnload, 12000, 0, (cuda_library library))                          \
    X(cuLibraryGetKernel, cuLibraryGetKernel, 12000, 0,                                            \
      (cuda_kernel * kernel, cuda_library library, const char *name))                              \
    X(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, 0,                                            \
      (cuda_device_ptr * ptr, size_t * size, cuda_library library, const char *name))              \
    X(cuLibraryGetManaged, cuLibraryGetManaged, 12000, 0,                                          \
      (cuda_device_ptr * ptr, size_t * size, cuda_library library, const char *name))              \
    X(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, 0,                                  \
      (unsigned *count, cuda_library library))                                                     \
    X(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, 0,                              \
      (cuda_kernel * kernels, unsigned count, cuda_library library))                               \
    X(cuStreamGetDevice, cuStreamGetDevice, 12080, 0, (cuda_stream stream, cuda_device * device))  \
    X(cuFuncGetParamCount, cuFuncGetParamCount, 13020, 0,                                          \
      (cuda_function function, size_t * count))                                                    \
    X(cuKernelSetAttribute, cuKernelSetAttribute, 12000, 0,                                        \
      (cuda_function_attribute attribute, int value, cuda_kernel kernel, cuda_device device))

struct runtime_driver {
#define X(name, symbol, version, need, params) cuda_result(*name) params;
    CUDA_DRIVER_ENTRIES(X)
    RUNTIME_DRIVER_ENTRIES(X)
#undef X
};

/* The entries of the driver, once runtime_driver_open has returned 0. An entry that the driver
 * lacks is NULL: DRIVER calls them. */
extern struct runtime_driver runtime_driver;

/* The result of a driver call; CUDART_NOT_SUPPORTED if the driver lacks it. */
#define DRIVER(name, ...)                                                                          \
    (runtime_driver.name ? (cudart_error)runtime_driver.name(__VA_ARGS__)                          \
                         : (cudart_error)CUDART_NOT_SUPPORTED)

#endif
