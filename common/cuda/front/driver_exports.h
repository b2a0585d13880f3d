/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_exports: every function that both libcuda.so.1 carry, gpushare's drop-in and the software
 * GPU's, once. The prototypes below and the rows of cuGetProcAddress (api_entry.c) are made from
 * this table. exports.txt names all functions that NVIDIA's library has; the others are refused
 * (generate_exports.py). softgpu_exports.h has those that the software GPU alone carries.
 *
 * E(name, symbol, version, (parameters))
 * name: for cuGetProcAddress. symbol: the exported one. version: of CUDA, which chooses the ABI
 * among rows of one name.
 *
 * The comments between the rows are the headings of docs/cuda-api.md.
 */
#ifndef GPUSHARE_COMMON_CUDA_FRONT_DRIVER_EXPORTS_H
#define GPUSHARE_COMMON_CUDA_FRONT_DRIVER_EXPORTS_H

#include "common/cuda/cuda_driver.h"
#include "common/cuda/launch_attribute.h"

#define API __attribute__((visibility("default")))

/* clang-format off */
#define DRIVER_EXPORTS(E) \
    /* the library */ \
    E(cuInit, cuInit, 2000, (unsigned flags)) \
    E(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *version)) \
    E(cuGetErrorName, cuGetErrorName, 6000, (cuda_result error, const char **name)) \
    E(cuGetErrorString, cuGetErrorString, 6000, (cuda_result error, const char **text)) \
    E(cuGetProcAddress, cuGetProcAddress, 11030, (const char *symbol, void **fn, int version, uint64_t flags)) \
    E(cuGetProcAddress, cuGetProcAddress_v2, 12000, (const char *symbol, void **fn, int version, uint64_t flags, cuda_proc_address_status *status)) \
    E(cuGetExportTable, cuGetExportTable, 3000, (const void **table, const cuda_uuid *id)) \
    E(cuProfilerStart, cuProfilerStart, 4000, (void)) \
    E(cuProfilerStop, cuProfilerStop, 4000, (void)) \
    /* devices */ \
    E(cuDeviceGetCount, cuDeviceGetCount, 2000, (int *count)) \
    E(cuDeviceGet, cuDeviceGet, 2000, (cuda_device *device, int ordinal)) \
    E(cuDeviceGetName, cuDeviceGetName, 2000, (char *name, int size, cuda_device device)) \
    E(cuDeviceGetUuid, cuDeviceGetUuid, 9020, (cuda_uuid *uuid, cuda_device device)) \
    E(cuDeviceGetUuid, cuDeviceGetUuid_v2, 11040, (cuda_uuid *uuid, cuda_device device)) \
    E(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (size_t *bytes, cuda_device device)) \
    E(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int *value, cuda_device_attribute attribute, cuda_device device)) \
    E(cuDeviceComputeCapability, cuDeviceComputeCapability, 2000, (int *major, int *minor, cuda_device device)) \
    E(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010, (char *id, int size, cuda_device device)) \
    E(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010, (cuda_device *device, const char *id)) \
    E(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000, (int *can, cuda_device device, cuda_device peer)) \
    E(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute, 8000, (int *value, int attribute, cuda_device source, cuda_device destination)) \
    E(cuDeviceGetExecAffinitySupport, cuDeviceGetExecAffinitySupport, 11040, (int *supported, int type, cuda_device device)) \
    /* contexts */ \
    E(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (cuda_context *context, cuda_device device)) \
    E(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease, 7000, (cuda_device device)) \
    E(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (cuda_device device)) \
    E(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000, (cuda_device device)) \
    E(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, (cuda_device device)) \
    E(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags, 7000, (cuda_device device, unsigned flags)) \
    E(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 11000, (cuda_device device, unsigned flags)) \
    E(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState, 7000, (cuda_device device, unsigned *flags, int *active)) \
    E(cuCtxCreate, cuCtxCreate_v2, 3020, (cuda_context *context, unsigned flags, cuda_device device)) \
    E(cuCtxCreate, cuCtxCreate_v3, 11040, (cuda_context *context, void *affinities, int count, unsigned flags, cuda_device device)) \
    E(cuCtxCreate, cuCtxCreate_v4, 12050, (cuda_context *context, const cuda_ctx_create_params *parameters, unsigned flags, cuda_device device)) \
    E(cuCtxDestroy, cuCtxDestroy_v2, 4000, (cuda_context context)) \
    E(cuCtxAttach, cuCtxAttach, 2000, (cuda_context *context, unsigned flags)) \
    E(cuCtxDetach, cuCtxDetach, 2000, (cuda_context context)) \
    E(cuCtxPushCurrent, cuCtxPushCurrent_v2, 4000, (cuda_context context)) \
    E(cuCtxPopCurrent, cuCtxPopCurrent_v2, 4000, (cuda_context *context)) \
    E(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (cuda_context context)) \
    E(cuCtxGetCurrent, cuCtxGetCurrent, 4000, (cuda_context *context)) \
    E(cuCtxGetDevice, cuCtxGetDevice, 2000, (cuda_device *device)) \
    E(cuCtxGetDevice, cuCtxGetDevice_v2, 13000, (cuda_device *device, cuda_context context)) \
    E(cuCtxGetFlags, cuCtxGetFlags, 7000, (unsigned *flags)) \
    E(cuCtxSetFlags, cuCtxSetFlags, 12010, (unsigned flags)) \
    E(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020, (int *config)) \
    E(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020, (int config)) \
    E(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020, (int *config)) \
    E(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020, (int config)) \
    E(cuCtxGetLimit, cuCtxGetLimit, 3010, (size_t *value, cuda_limit limit)) \
    E(cuCtxSetLimit, cuCtxSetLimit, 3010, (cuda_limit limit, size_t value)) \
    E(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000, (void)) \
    E(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000, (cuda_context peer, unsigned flags)) \
    E(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000, (cuda_context peer)) \
    E(cuCtxGetId, cuCtxGetId, 12000, (cuda_context context, unsigned long long *id)) \
    E(cuCtxGetApiVersion, cuCtxGetApiVersion, 3020, (cuda_context context, unsigned *version)) \
    E(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest)) \
    E(cuCtxSynchronize, cuCtxSynchronize, 2000, (void)) \
    E(cuCtxSynchronize, cuCtxSynchronize_v2, 13000, (cuda_context context)) \
    /* memory */ \
    E(cuMemGetInfo, cuMemGetInfo_v2, 3020, (size_t *free_bytes, size_t *total_bytes)) \
    E(cuMemAlloc, cuMemAlloc_v2, 3020, (cuda_device_ptr *ptr, size_t size)) \
    E(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, (cuda_device_ptr *ptr, size_t *pitch, size_t width, size_t height, unsigned element)) \
    E(cuMemFree, cuMemFree_v2, 3020, (cuda_device_ptr ptr)) \
    E(cuMemAllocHost, cuMemAllocHost_v2, 3020, (void **ptr, size_t size)) \
    E(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **ptr, size_t size, unsigned flags)) \
    E(cuMemFreeHost, cuMemFreeHost, 2000, (void *ptr)) \
    E(cuMemHostRegister, cuMemHostRegister_v2, 6050, (void *ptr, size_t size, unsigned flags)) \
    E(cuMemHostUnregister, cuMemHostUnregister, 4000, (void *ptr)) \
    E(cuMemHostGetDevicePointer, cuMemHostGetDevicePointer_v2, 3020, (cuda_device_ptr *device_ptr, void *host, unsigned flags)) \
    E(cuMemHostGetFlags, cuMemHostGetFlags, 2030, (unsigned *flags, void *host)) \
    E(cuMemGetAddressRange, cuMemGetAddressRange_v2, 3020, (cuda_device_ptr *base, size_t *size, cuda_device_ptr ptr)) \
    E(cuPointerGetAttribute, cuPointerGetAttribute, 4000, (void *data, cuda_pointer_attribute attribute, cuda_device_ptr ptr)) \
    E(cuPointerSetAttribute, cuPointerSetAttribute, 6000, (const void *value, cuda_pointer_attribute attribute, cuda_device_ptr ptr)) \
    E(cuPointerGetAttributes, cuPointerGetAttributes, 7000, (unsigned count, cuda_pointer_attribute *attributes, void **data, cuda_device_ptr ptr)) \
    /* memory in the order of streams */ \
    E(cuMemAllocAsync, cuMemAllocAsync, 11020, (cuda_device_ptr *ptr, size_t size, cuda_stream stream)) \
    E(cuMemFreeAsync, cuMemFreeAsync, 11020, (cuda_device_ptr ptr, cuda_stream stream)) \
    E(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, (cuda_device_ptr *ptr, size_t size, cuda_mem_pool pool, cuda_stream stream)) \
    E(cuMemPoolCreate, cuMemPoolCreate, 11020, (cuda_mem_pool *pool, const cuda_mem_pool_props *props)) \
    E(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (cuda_mem_pool pool)) \
    E(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020, (cuda_mem_pool pool, size_t least)) \
    E(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020, (cuda_mem_pool pool, int attribute, void *value)) \
    E(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020, (cuda_mem_pool pool, int attribute, void *value)) \
    E(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020, (cuda_mem_pool pool, const cuda_mem_access_desc *map, size_t count)) \
    E(cuMemPoolGetAccess, cuMemPoolGetAccess, 11020, (cuda_mem_access *flags, cuda_mem_pool pool, cuda_mem_location *location)) \
    E(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (cuda_mem_pool *pool, cuda_device device)) \
    E(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020, (cuda_mem_pool *pool, cuda_device device)) \
    E(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020, (cuda_device device, cuda_mem_pool pool)) \
    E(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, (cuda_mem_pool *pool, cuda_mem_location *location, cuda_mem_allocation_type type)) \
    E(cuMemGetMemPool, cuMemGetMemPool, 13000, (cuda_mem_pool *pool, cuda_mem_location *location, cuda_mem_allocation_type type)) \
    E(cuMemSetMemPool, cuMemSetMemPool, 13000, (cuda_mem_location *location, cuda_mem_allocation_type type, cuda_mem_pool pool)) \
    /* memory of both sides */ \
    E(cuMemAllocManaged, cuMemAllocManaged, 6000, (cuda_device_ptr *ptr, size_t size, unsigned flags)) \
    E(cuMemPrefetchAsync, cuMemPrefetchAsync, 8000, (cuda_device_ptr ptr, size_t size, cuda_device device, cuda_stream stream)) \
    E(cuMemPrefetchAsync, cuMemPrefetchAsync_v2, 12020, (cuda_device_ptr ptr, size_t size, cuda_mem_location place, unsigned flags, cuda_stream stream)) \
    E(cuMemAdvise, cuMemAdvise, 8000, (cuda_device_ptr ptr, size_t size, int advice, cuda_device device)) \
    E(cuMemAdvise, cuMemAdvise_v2, 12020, (cuda_device_ptr ptr, size_t size, int advice, cuda_mem_location place)) \
    E(cuMemRangeGetAttribute, cuMemRangeGetAttribute, 8000, (void *data, size_t size, int attribute, cuda_device_ptr ptr, size_t bytes)) \
    E(cuMemRangeGetAttributes, cuMemRangeGetAttributes, 8000, (void **data, size_t *sizes, int *attributes, size_t count, cuda_device_ptr ptr, size_t bytes)) \
    E(cuStreamAttachMemAsync, cuStreamAttachMemAsync, 6000, (cuda_stream stream, cuda_device_ptr ptr, size_t size, unsigned flags)) \
    /* copies and fills */ \
    E(cuMemcpy, cuMemcpy, 4000, (cuda_device_ptr dst, cuda_device_ptr src, size_t size)) \
    E(cuMemcpyAsync, cuMemcpyAsync, 4000, (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream)) \
    E(cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, (cuda_device_ptr dst, const void *src, size_t size)) \
    E(cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, (void *dst, cuda_device_ptr src, size_t size)) \
    E(cuMemcpyDtoD, cuMemcpyDtoD_v2, 3020, (cuda_device_ptr dst, cuda_device_ptr src, size_t size)) \
    E(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 3020, (cuda_device_ptr dst, const void *src, size_t size, cuda_stream stream)) \
    E(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 3020, (void *dst, cuda_device_ptr src, size_t size, cuda_stream stream)) \
    E(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 3020, (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream)) \
    E(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080, (cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes, size_t count, cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count, size_t *failed, cuda_stream stream)) \
    E(cuMemcpyBatchAsync, cuMemcpyBatchAsync_v2, 13000, (cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes, size_t count, cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count, cuda_stream stream)) \
    E(cuMemcpyPeer, cuMemcpyPeer, 4000, (cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src, cuda_context src_context, size_t size)) \
    E(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000, (cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src, cuda_context src_context, size_t size, cuda_stream stream)) \
    E(cuMemsetD8, cuMemsetD8_v2, 3020, (cuda_device_ptr dst, unsigned char value, size_t count)) \
    E(cuMemsetD16, cuMemsetD16_v2, 3020, (cuda_device_ptr dst, unsigned short value, size_t count)) \
    E(cuMemsetD32, cuMemsetD32_v2, 3020, (cuda_device_ptr dst, unsigned value, size_t count)) \
    E(cuMemsetD8Async, cuMemsetD8Async, 3020, (cuda_device_ptr dst, unsigned char value, size_t count, cuda_stream stream)) \
    E(cuMemsetD16Async, cuMemsetD16Async, 3020, (cuda_device_ptr dst, unsigned short value, size_t count, cuda_stream stream)) \
    E(cuMemsetD32Async, cuMemsetD32Async, 3020, (cuda_device_ptr dst, unsigned value, size_t count, cuda_stream stream)) \
    /* copies and fills of blocks */ \
    E(cuMemcpy2D, cuMemcpy2D_v2, 3020, (const cuda_memcpy_2d *copy)) \
    E(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2, 3020, (const cuda_memcpy_2d *copy)) \
    E(cuMemcpy2DAsync, cuMemcpy2DAsync_v2, 3020, (const cuda_memcpy_2d *copy, cuda_stream stream)) \
    E(cuMemcpy3D, cuMemcpy3D_v2, 3020, (const cuda_memcpy_3d *copy)) \
    E(cuMemcpy3DAsync, cuMemcpy3DAsync_v2, 3020, (const cuda_memcpy_3d *copy, cuda_stream stream)) \
    E(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, (const cuda_memcpy_3d *copy)) \
    E(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, (const cuda_memcpy_3d *copy, cuda_stream stream)) \
    E(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, 12080, (size_t count, cuda_batch_3d *blocks, size_t *failed, unsigned long long flags, cuda_stream stream)) \
    E(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_v2, 13000, (size_t count, cuda_batch_3d *blocks, unsigned long long flags, cuda_stream stream)) \
    E(cuMemsetD2D8, cuMemsetD2D8_v2, 3020, (cuda_device_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height)) \
    E(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020, (cuda_device_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height, cuda_stream stream)) \
    E(cuMemsetD2D16, cuMemsetD2D16_v2, 3020, (cuda_device_ptr dst, size_t pitch, unsigned short value, size_t width, size_t height)) \
    E(cuMemsetD2D16Async, cuMemsetD2D16Async, 3020, (cuda_device_ptr dst, size_t pitch, unsigned short value, size_t width, size_t height, cuda_stream stream)) \
    E(cuMemsetD2D32, cuMemsetD2D32_v2, 3020, (cuda_device_ptr dst, size_t pitch, unsigned value, size_t width, size_t height)) \
    E(cuMemsetD2D32Async, cuMemsetD2D32Async, 3020, (cuda_device_ptr dst, size_t pitch, unsigned value, size_t width, size_t height, cuda_stream stream)) \
    /* streams and events */ \
    E(cuStreamCreate, cuStreamCreate, 2000, (cuda_stream *stream, unsigned flags)) \
    E(cuStreamCreateWithPriority, cuStreamCreateWithPriority, 5050, (cuda_stream *stream, unsigned flags, int priority)) \
    E(cuStreamDestroy, cuStreamDestroy_v2, 4000, (cuda_stream stream)) \
    E(cuStreamQuery, cuStreamQuery, 2000, (cuda_stream stream)) \
    E(cuStreamSynchronize, cuStreamSynchronize, 2000, (cuda_stream stream)) \
    E(cuStreamWaitEvent, cuStreamWaitEvent, 3020, (cuda_stream stream, cuda_event event, unsigned flags)) \
    E(cuStreamGetPriority, cuStreamGetPriority, 5050, (cuda_stream stream, int *priority)) \
    E(cuStreamGetFlags, cuStreamGetFlags, 5050, (cuda_stream stream, unsigned *flags)) \
    E(cuStreamGetCtx, cuStreamGetCtx, 9020, (cuda_stream stream, cuda_context *context)) \
    E(cuStreamGetCtx, cuStreamGetCtx_v2, 12050, (cuda_stream stream, cuda_context *context, cuda_green_ctx *green)) \
    E(cuStreamGetId, cuStreamGetId, 12000, (cuda_stream stream, unsigned long long *id)) \
    E(cuStreamGetDevice, cuStreamGetDevice, 12080, (cuda_stream stream, cuda_device *device)) \
    E(cuStreamGetAttribute, cuStreamGetAttribute, 11000, (cuda_stream stream, int attribute, void *value)) \
    E(cuStreamSetAttribute, cuStreamSetAttribute, 11000, (cuda_stream stream, int attribute, const void *value)) \
    E(cuStreamCopyAttributes, cuStreamCopyAttributes, 11000, (cuda_stream to, cuda_stream from)) \
    E(cuStreamIsCapturing, cuStreamIsCapturing, 10000, (cuda_stream stream, int *status)) \
    E(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010, (cuda_stream stream, int *status, uint64_t *id)) \
    E(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030, (cuda_stream stream, int *status, uint64_t *id, void **graph, const void **dependencies, size_t *count)) \
    E(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030, (cuda_stream stream, int *status, uint64_t *id, void **graph, const void **dependencies, const void **edges, size_t *count)) \
    E(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, 10010, (int *mode)) \
    E(cuStreamWaitValue32, cuStreamWaitValue32_v2, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint32_t value, unsigned flags)) \
    E(cuStreamWaitValue64, cuStreamWaitValue64_v2, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint64_t value, unsigned flags)) \
    E(cuStreamWriteValue32, cuStreamWriteValue32_v2, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint32_t value, unsigned flags)) \
    E(cuStreamWriteValue64, cuStreamWriteValue64_v2, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint64_t value, unsigned flags)) \
    E(cuStreamBatchMemOp, cuStreamBatchMemOp_v2, 11070, (cuda_stream stream, unsigned count, cuda_mem_op_params *ops, unsigned flags)) \
    E(cuStreamAddCallback, cuStreamAddCallback, 5000, (cuda_stream stream, cuda_stream_callback callback, void *user, unsigned flags)) \
    E(cuLaunchHostFunc, cuLaunchHostFunc, 10000, (cuda_stream stream, cuda_host_fn fn, void *user)) \
    E(cuLaunchHostFunc, cuLaunchHostFunc_v2, 13010, (cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode)) \
    E(cuEventCreate, cuEventCreate, 2000, (cuda_event *event, unsigned flags)) \
    E(cuEventRecord, cuEventRecord, 2000, (cuda_event event, cuda_stream stream)) \
    E(cuEventRecordWithFlags, cuEventRecordWithFlags, 11010, (cuda_event event, cuda_stream stream, unsigned flags)) \
    E(cuEventQuery, cuEventQuery, 2000, (cuda_event event)) \
    E(cuEventSynchronize, cuEventSynchronize, 2000, (cuda_event event)) \
    E(cuEventDestroy, cuEventDestroy_v2, 4000, (cuda_event event)) \
    E(cuEventElapsedTime, cuEventElapsedTime, 2000, (float *milliseconds, cuda_event start, cuda_event end)) \
    E(cuEventElapsedTime, cuEventElapsedTime_v2, 12080, (float *milliseconds, cuda_event start, cuda_event end)) \
    /* modules and kernels */ \
    E(cuModuleLoad, cuModuleLoad, 2000, (cuda_module *module, const char *path)) \
    E(cuModuleLoadData, cuModuleLoadData, 2000, (cuda_module *module, const void *image)) \
    E(cuModuleLoadDataEx, cuModuleLoadDataEx, 2010, (cuda_module *module, const void *image, unsigned count, cuda_jit_option *options, void **values)) \
    E(cuModuleLoadFatBinary, cuModuleLoadFatBinary, 2000, (cuda_module *module, const void *image)) \
    E(cuModuleUnload, cuModuleUnload, 2000, (cuda_module module)) \
    E(cuModuleGetFunction, cuModuleGetFunction, 2000, (cuda_function *function, cuda_module module, const char *name)) \
    E(cuModuleGetGlobal, cuModuleGetGlobal_v2, 3020, (cuda_device_ptr *ptr, size_t *size, cuda_module module, const char *name)) \
    E(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040, (unsigned *count, cuda_module module)) \
    E(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040, (cuda_function *functions, unsigned count, cuda_module module)) \
    E(cuModuleGetLoadingMode, cuModuleGetLoadingMode, 11070, (int *mode)) \
    E(cuLinkCreate, cuLinkCreate_v2, 6050, (unsigned count, cuda_jit_option *options, void **values, cuda_link *link)) \
    E(cuLinkAddData, cuLinkAddData_v2, 6050, (cuda_link link, cuda_jit_input type, void *data, size_t size, const char *name, unsigned count, cuda_jit_option *options, void **values)) \
    E(cuLinkAddFile, cuLinkAddFile_v2, 6050, (cuda_link link, cuda_jit_input type, const char *path, unsigned count, cuda_jit_option *options, void **values)) \
    E(cuLinkComplete, cuLinkComplete, 5050, (cuda_link link, void **image, size_t *size)) \
    E(cuLinkDestroy, cuLinkDestroy, 5050, (cuda_link link)) \
    E(cuLibraryLoadData, cuLibraryLoadData, 12000, (cuda_library *library, const void *image, cuda_jit_option *jit_options, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)) \
    E(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000, (cuda_library *library, const char *path, cuda_jit_option *jit_options, void **jit_values, unsigned jit_count, int *options, void **values, unsigned count)) \
    E(cuLibraryUnload, cuLibraryUnload, 12000, (cuda_library library)) \
    E(cuLibraryGetKernel, cuLibraryGetKernel, 12000, (cuda_kernel *kernel, cuda_library library, const char *name)) \
    E(cuLibraryGetModule, cuLibraryGetModule, 12000, (cuda_module *module, cuda_library library)) \
    E(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000, (cuda_device_ptr *ptr, size_t *size, cuda_library library, const char *name)) \
    E(cuLibraryGetManaged, cuLibraryGetManaged, 12000, (cuda_device_ptr *ptr, size_t *size, cuda_library library, const char *name)) \
    E(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040, (unsigned *count, cuda_library library)) \
    E(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040, (cuda_kernel *kernels, unsigned count, cuda_library library)) \
    E(cuKernelGetFunction, cuKernelGetFunction, 12000, (cuda_function *function, cuda_kernel kernel)) \
    E(cuKernelGetAttribute, cuKernelGetAttribute, 12000, (int *value, cuda_function_attribute attribute, cuda_kernel kernel, cuda_device device)) \
    E(cuKernelSetAttribute, cuKernelSetAttribute, 12000, (cuda_function_attribute attribute, int value, cuda_kernel kernel, cuda_device device)) \
    E(cuKernelGetName, cuKernelGetName, 12030, (const char **name, cuda_kernel kernel)) \
    E(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040, (cuda_kernel kernel, size_t index, size_t *offset, size_t *size)) \
    E(cuKernelGetLibrary, cuKernelGetLibrary, 12050, (cuda_library *library, cuda_kernel kernel)) \
    E(cuKernelGetParamCount, cuKernelGetParamCount, 13020, (cuda_kernel kernel, size_t *count)) \
    E(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000, (cuda_kernel kernel, int config, cuda_device device)) \
    E(cuFuncGetAttribute, cuFuncGetAttribute, 2020, (int *value, cuda_function_attribute attribute, cuda_function function)) \
    E(cuFuncSetAttribute, cuFuncSetAttribute, 9000, (cuda_function function, cuda_function_attribute attribute, int value)) \
    E(cuFuncGetName, cuFuncGetName, 12030, (const char **name, cuda_function function)) \
    E(cuFuncGetModule, cuFuncGetModule, 11000, (cuda_module *module, cuda_function function)) \
    E(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040, (cuda_function function, size_t index, size_t *offset, size_t *size)) \
    E(cuFuncGetParamCount, cuFuncGetParamCount, 13020, (cuda_function function, size_t *count)) \
    E(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000, (cuda_function function, int config)) \
    E(cuFuncSetSharedMemConfig, cuFuncSetSharedMemConfig, 4020, (cuda_function function, int config)) \
    E(cuFuncIsLoaded, cuFuncIsLoaded, 12040, (int *state, cuda_function function)) \
    E(cuFuncLoad, cuFuncLoad, 12040, (cuda_function function)) \
    E(cuLaunchKernel, cuLaunchKernel, 4000, (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params, void **extra)) \
    E(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params)) \
    E(cuLaunchKernelEx, cuLaunchKernelEx, 11060, (const struct cuda_launch_config *config, cuda_function function, void **params, void **extra)) \
    E(cuFuncSetBlockShape, cuFuncSetBlockShape, 2000, (cuda_function function, int x, int y, int z)) \
    E(cuFuncSetSharedSize, cuFuncSetSharedSize, 2000, (cuda_function function, unsigned bytes)) \
    E(cuParamSetSize, cuParamSetSize, 2000, (cuda_function function, unsigned bytes)) \
    E(cuParamSeti, cuParamSeti, 2000, (cuda_function function, int offset, unsigned value)) \
    E(cuParamSetf, cuParamSetf, 2000, (cuda_function function, int offset, float value)) \
    E(cuParamSetv, cuParamSetv, 2000, (cuda_function function, int offset, void *value, unsigned bytes)) \
    E(cuLaunch, cuLaunch, 2000, (cuda_function function)) \
    E(cuLaunchGrid, cuLaunchGrid, 2000, (cuda_function function, int width, int height)) \
    E(cuLaunchGridAsync, cuLaunchGridAsync, 2000, (cuda_function function, int width, int height, cuda_stream stream)) \
    E(cuOccupancyMaxActiveBlocksPerMultiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (int *blocks, cuda_function function, int block_size, size_t dynamic_shared_bytes)) \
    E(cuOccupancyMaxPotentialBlockSize, cuOccupancyMaxPotentialBlockSize, 6050, (int *min_grid, int *block_size, cuda_function function, cuda_occupancy_shared shared_of, size_t shared, int limit)) \
    E(cuOccupancyMaxPotentialBlockSizeWithFlags, cuOccupancyMaxPotentialBlockSizeWithFlags, 7000, (int *min_grid, int *block_size, cuda_function function, cuda_occupancy_shared shared_of, size_t shared, int limit, unsigned flags)) \
    E(cuOccupancyAvailableDynamicSMemPerBlock, cuOccupancyAvailableDynamicSMemPerBlock, 10020, (size_t *bytes, cuda_function function, int num_blocks, int block_size)) \
    E(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000, (int *blocks, cuda_function function, int block_size, size_t dynamic_shared_bytes, unsigned flags))

/* The forms of calls for programs that are built with per-thread default streams: the default stream
 * is the thread's own. cuGetProcAddress finds them by a flag. */
#define DRIVER_EXPORTS_PER_THREAD(E) \
    E(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz, 9000, (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params)) \
    E(cuLaunchKernelEx, cuLaunchKernelEx_ptsz, 11060, (const struct cuda_launch_config *config, cuda_function function, void **params, void **extra)) \
    E(cuMemcpy2D, cuMemcpy2D_v2_ptds, 7000, (const cuda_memcpy_2d *copy)) \
    E(cuMemcpy2DUnaligned, cuMemcpy2DUnaligned_v2_ptds, 7000, (const cuda_memcpy_2d *copy)) \
    E(cuMemcpy2DAsync, cuMemcpy2DAsync_v2_ptsz, 7000, (const cuda_memcpy_2d *copy, cuda_stream stream)) \
    E(cuMemcpy3D, cuMemcpy3D_v2_ptds, 7000, (const cuda_memcpy_3d *copy)) \
    E(cuMemcpy3DAsync, cuMemcpy3DAsync_v2_ptsz, 7000, (const cuda_memcpy_3d *copy, cuda_stream stream)) \
    E(cuMemcpy3DPeer, cuMemcpy3DPeer_ptds, 7000, (const cuda_memcpy_3d *copy)) \
    E(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync_ptsz, 7000, (const cuda_memcpy_3d *copy, cuda_stream stream)) \
    E(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_ptsz, 12080, (size_t count, cuda_batch_3d *blocks, size_t *failed, unsigned long long flags, cuda_stream stream)) \
    E(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync_v2_ptsz, 13000, (size_t count, cuda_batch_3d *blocks, unsigned long long flags, cuda_stream stream)) \
    E(cuMemsetD2D8, cuMemsetD2D8_v2_ptds, 7000, (cuda_device_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height)) \
    E(cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz, 7000, (cuda_device_ptr dst, size_t pitch, unsigned char value, size_t width, size_t height, cuda_stream stream)) \
    E(cuMemsetD2D16, cuMemsetD2D16_v2_ptds, 7000, (cuda_device_ptr dst, size_t pitch, unsigned short value, size_t width, size_t height)) \
    E(cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz, 7000, (cuda_device_ptr dst, size_t pitch, unsigned short value, size_t width, size_t height, cuda_stream stream)) \
    E(cuMemsetD2D32, cuMemsetD2D32_v2_ptds, 7000, (cuda_device_ptr dst, size_t pitch, unsigned value, size_t width, size_t height)) \
    E(cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz, 7000, (cuda_device_ptr dst, size_t pitch, unsigned value, size_t width, size_t height, cuda_stream stream)) \
    E(cuMemcpy, cuMemcpy_ptds, 7000, (cuda_device_ptr dst, cuda_device_ptr src, size_t size)) \
    E(cuMemcpyAsync, cuMemcpyAsync_ptsz, 7000, (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream)) \
    E(cuMemcpyHtoD, cuMemcpyHtoD_v2_ptds, 7000, (cuda_device_ptr dst, const void *src, size_t size)) \
    E(cuMemcpyDtoH, cuMemcpyDtoH_v2_ptds, 7000, (void *dst, cuda_device_ptr src, size_t size)) \
    E(cuMemcpyDtoD, cuMemcpyDtoD_v2_ptds, 7000, (cuda_device_ptr dst, cuda_device_ptr src, size_t size)) \
    E(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2_ptsz, 7000, (cuda_device_ptr dst, const void *src, size_t size, cuda_stream stream)) \
    E(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2_ptsz, 7000, (void *dst, cuda_device_ptr src, size_t size, cuda_stream stream)) \
    E(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2_ptsz, 7000, (cuda_device_ptr dst, cuda_device_ptr src, size_t size, cuda_stream stream)) \
    E(cuMemcpyBatchAsync, cuMemcpyBatchAsync_ptsz, 12080, (cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes, size_t count, cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count, size_t *failed, cuda_stream stream)) \
    E(cuMemcpyBatchAsync, cuMemcpyBatchAsync_v2_ptsz, 13000, (cuda_device_ptr *dsts, cuda_device_ptr *srcs, size_t *sizes, size_t count, cuda_copy_attributes *attributes, size_t *firsts, size_t attribute_count, cuda_stream stream)) \
    E(cuMemcpyPeer, cuMemcpyPeer_ptds, 7000, (cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src, cuda_context src_context, size_t size)) \
    E(cuMemcpyPeerAsync, cuMemcpyPeerAsync_ptsz, 7000, (cuda_device_ptr dst, cuda_context dst_context, cuda_device_ptr src, cuda_context src_context, size_t size, cuda_stream stream)) \
    E(cuMemsetD8, cuMemsetD8_v2_ptds, 7000, (cuda_device_ptr dst, unsigned char value, size_t count)) \
    E(cuMemsetD16, cuMemsetD16_v2_ptds, 7000, (cuda_device_ptr dst, unsigned short value, size_t count)) \
    E(cuMemsetD32, cuMemsetD32_v2_ptds, 7000, (cuda_device_ptr dst, unsigned value, size_t count)) \
    E(cuMemsetD8Async, cuMemsetD8Async_ptsz, 7000, (cuda_device_ptr dst, unsigned char value, size_t count, cuda_stream stream)) \
    E(cuMemsetD16Async, cuMemsetD16Async_ptsz, 7000, (cuda_device_ptr dst, unsigned short value, size_t count, cuda_stream stream)) \
    E(cuMemsetD32Async, cuMemsetD32Async_ptsz, 7000, (cuda_device_ptr dst, unsigned value, size_t count, cuda_stream stream)) \
    E(cuMemAllocAsync, cuMemAllocAsync_ptsz, 11020, (cuda_device_ptr *ptr, size_t size, cuda_stream stream)) \
    E(cuMemFreeAsync, cuMemFreeAsync_ptsz, 11020, (cuda_device_ptr ptr, cuda_stream stream)) \
    E(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync_ptsz, 11020, (cuda_device_ptr *ptr, size_t size, cuda_mem_pool pool, cuda_stream stream)) \
    E(cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz, 8000, (cuda_device_ptr ptr, size_t size, cuda_device device, cuda_stream stream)) \
    E(cuMemPrefetchAsync, cuMemPrefetchAsync_v2_ptsz, 12020, (cuda_device_ptr ptr, size_t size, cuda_mem_location place, unsigned flags, cuda_stream stream)) \
    E(cuStreamAttachMemAsync, cuStreamAttachMemAsync_ptsz, 7000, (cuda_stream stream, cuda_device_ptr ptr, size_t size, unsigned flags)) \
    E(cuStreamQuery, cuStreamQuery_ptsz, 7000, (cuda_stream stream)) \
    E(cuStreamSynchronize, cuStreamSynchronize_ptsz, 7000, (cuda_stream stream)) \
    E(cuStreamWaitEvent, cuStreamWaitEvent_ptsz, 7000, (cuda_stream stream, cuda_event event, unsigned flags)) \
    E(cuStreamGetPriority, cuStreamGetPriority_ptsz, 7000, (cuda_stream stream, int *priority)) \
    E(cuStreamGetFlags, cuStreamGetFlags_ptsz, 7000, (cuda_stream stream, unsigned *flags)) \
    E(cuStreamGetCtx, cuStreamGetCtx_ptsz, 9020, (cuda_stream stream, cuda_context *context)) \
    E(cuStreamGetCtx, cuStreamGetCtx_v2_ptsz, 12050, (cuda_stream stream, cuda_context *context, cuda_green_ctx *green)) \
    E(cuStreamGetId, cuStreamGetId_ptsz, 12000, (cuda_stream stream, unsigned long long *id)) \
    E(cuStreamGetDevice, cuStreamGetDevice_ptsz, 12080, (cuda_stream stream, cuda_device *device)) \
    E(cuStreamGetAttribute, cuStreamGetAttribute_ptsz, 11000, (cuda_stream stream, int attribute, void *value)) \
    E(cuStreamSetAttribute, cuStreamSetAttribute_ptsz, 11000, (cuda_stream stream, int attribute, const void *value)) \
    E(cuStreamCopyAttributes, cuStreamCopyAttributes_ptsz, 11000, (cuda_stream to, cuda_stream from)) \
    E(cuStreamIsCapturing, cuStreamIsCapturing_ptsz, 10000, (cuda_stream stream, int *status)) \
    E(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz, 10010, (cuda_stream stream, int *status, uint64_t *id)) \
    E(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2_ptsz, 11030, (cuda_stream stream, int *status, uint64_t *id, void **graph, const void **dependencies, size_t *count)) \
    E(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3_ptsz, 12030, (cuda_stream stream, int *status, uint64_t *id, void **graph, const void **dependencies, const void **edges, size_t *count)) \
    E(cuStreamWaitValue32, cuStreamWaitValue32_v2_ptsz, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint32_t value, unsigned flags)) \
    E(cuStreamWaitValue64, cuStreamWaitValue64_v2_ptsz, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint64_t value, unsigned flags)) \
    E(cuStreamWriteValue32, cuStreamWriteValue32_v2_ptsz, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint32_t value, unsigned flags)) \
    E(cuStreamWriteValue64, cuStreamWriteValue64_v2_ptsz, 11070, (cuda_stream stream, cuda_device_ptr ptr, uint64_t value, unsigned flags)) \
    E(cuStreamBatchMemOp, cuStreamBatchMemOp_v2_ptsz, 11070, (cuda_stream stream, unsigned count, cuda_mem_op_params *ops, unsigned flags)) \
    E(cuLaunchHostFunc, cuLaunchHostFunc_v2_ptsz, 13010, (cuda_stream stream, cuda_host_fn fn, void *user, unsigned mode)) \
    E(cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz, 11010, (cuda_event event, cuda_stream stream, unsigned flags)) \
    E(cuStreamAddCallback, cuStreamAddCallback_ptsz, 7000, (cuda_stream stream, cuda_stream_callback callback, void *user, unsigned flags)) \
    E(cuLaunchHostFunc, cuLaunchHostFunc_ptsz, 10000, (cuda_stream stream, cuda_host_fn fn, void *user)) \
    E(cuEventRecord, cuEventRecord_ptsz, 7000, (cuda_event event, cuda_stream stream)) \
    E(cuLaunchKernel, cuLaunchKernel_ptsz, 7000, (cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes, cuda_stream stream, void **params, void **extra))
/* clang-format on */

#define E(name, symbol, version, params) API cuda_result symbol params;
DRIVER_EXPORTS(E)
DRIVER_EXPORTS_PER_THREAD(E)
#undef E

#endif
