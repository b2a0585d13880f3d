/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Our layouts and numbers of the CUDA runtime against a toolkit's own header. It is compiled by
 * tests/integration/test_cudart.py where a toolkit is installed, and says nothing when they agree.
 */
#include "client/cuda/runtime/base/runtime_abi.h"
#include "client/cuda/runtime/device_properties.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME(ours, member, theirs, their_member)                                                   \
    _Static_assert(offsetof(ours, member) == offsetof(theirs, their_member) &&                     \
                       sizeof(((ours *)0)->member) == sizeof(((theirs *)0)->their_member),         \
                   #theirs "." #their_member)
#define NUMBER(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

/* ---- copies ---- */

SIZE(struct cudart_memcpy_3d, struct cudaMemcpy3DParms);
SIZE(struct cudart_memcpy_3d_peer, struct cudaMemcpy3DPeerParms);
SAME(struct cudart_memcpy_3d_peer, src, struct cudaMemcpy3DPeerParms, srcPtr);
SAME(struct cudart_memcpy_3d_peer, src_device, struct cudaMemcpy3DPeerParms, srcDevice);
SAME(struct cudart_memcpy_3d_peer, dst, struct cudaMemcpy3DPeerParms, dstPtr);
SAME(struct cudart_memcpy_3d_peer, dst_device, struct cudaMemcpy3DPeerParms, dstDevice);
SAME(struct cudart_memcpy_3d_peer, extent, struct cudaMemcpy3DPeerParms, extent);

/* ---- devices -------------------------------------------------------------------------------- */

#if CUDART_VERSION >= 13000
typedef struct device_properties_13 properties;
#else
typedef struct device_properties_12 properties;
#endif
SIZE(properties, struct cudaDeviceProp);
#define PROPERTY(ours, theirs) SAME(properties, ours, struct cudaDeviceProp, theirs)
PROPERTY(name, name);
PROPERTY(uuid, uuid);
PROPERTY(luid, luid);
PROPERTY(luid_device_node_mask, luidDeviceNodeMask);
PROPERTY(total_global_memory, totalGlobalMem);
PROPERTY(shared_per_block, sharedMemPerBlock);
PROPERTY(registers_per_block, regsPerBlock);
PROPERTY(warp_size, warpSize);
PROPERTY(memory_pitch, memPitch);
PROPERTY(max_threads_per_block, maxThreadsPerBlock);
PROPERTY(max_threads_dim, maxThreadsDim);
PROPERTY(max_grid_size, maxGridSize);
PROPERTY(total_constant_memory, totalConstMem);
PROPERTY(major, major);
PROPERTY(minor, minor);
PROPERTY(texture_alignment, textureAlignment);
PROPERTY(texture_pitch_alignment, texturePitchAlignment);
PROPERTY(multiprocessor_count, multiProcessorCount);
PROPERTY(integrated, integrated);
PROPERTY(can_map_host_memory, canMapHostMemory);
PROPERTY(max_texture_1d, maxTexture1D);
PROPERTY(max_texture_1d_mipmap, maxTexture1DMipmap);
PROPERTY(max_texture_2d, maxTexture2D);
PROPERTY(max_texture_2d_mipmap, maxTexture2DMipmap);
PROPERTY(max_texture_2d_linear, maxTexture2DLinear);
PROPERTY(max_texture_2d_gather, maxTexture2DGather);
PROPERTY(max_texture_3d, maxTexture3D);
PROPERTY(max_texture_3d_alt, maxTexture3DAlt);
PROPERTY(max_texture_cubemap, maxTextureCubemap);
PROPERTY(max_texture_1d_layered, maxTexture1DLayered);
PROPERTY(max_texture_2d_layered, maxTexture2DLayered);
PROPERTY(max_texture_cubemap_layered, maxTextureCubemapLayered);
PROPERTY(max_surface_1d, maxSurface1D);
PROPERTY(max_surface_2d, maxSurface2D);
PROPERTY(max_surface_3d, maxSurface3D);
PROPERTY(max_surface_1d_layered, maxSurface1DLayered);
PROPERTY(max_surface_2d_layered, maxSurface2DLayered);
PROPERTY(max_surface_cubemap, maxSurfaceCubemap);
PROPERTY(max_surface_cubemap_layered, maxSurfaceCubemapLayered);
PROPERTY(surface_alignment, surfaceAlignment);
PROPERTY(concurrent_kernels, concurrentKernels);
PROPERTY(ecc_enabled, ECCEnabled);
PROPERTY(pci_bus_id, pciBusID);
PROPERTY(pci_device_id, pciDeviceID);
PROPERTY(pci_domain_id, pciDomainID);
PROPERTY(tcc_driver, tccDriver);
PROPERTY(async_engine_count, asyncEngineCount);
PROPERTY(unified_addressing, unifiedAddressing);
PROPERTY(memory_bus_width, memoryBusWidth);
PROPERTY(l2_cache_size, l2CacheSize);
PROPERTY(persisting_l2_max, persistingL2CacheMaxSize);
PROPERTY(max_threads_per_multiprocessor, maxThreadsPerMultiProcessor);
PROPERTY(stream_priorities, streamPrioritiesSupported);
PROPERTY(global_l1_cache, globalL1CacheSupported);
PROPERTY(local_l1_cache, localL1CacheSupported);
PROPERTY(shared_per_multiprocessor, sharedMemPerMultiprocessor);
PROPERTY(registers_per_multiprocessor, regsPerMultiprocessor);
PROPERTY(managed_memory, managedMemory);
PROPERTY(is_multi_gpu_board, isMultiGpuBoard);
PROPERTY(multi_gpu_board_group, multiGpuBoardGroupID);
PROPERTY(host_native_atomics, hostNativeAtomicSupported);
PROPERTY(pageable_memory_access, pageableMemoryAccess);
PROPERTY(concurrent_managed_access, concurrentManagedAccess);
PROPERTY(compute_preemption, computePreemptionSupported);
PROPERTY(host_pointer_for_registered, canUseHostPointerForRegisteredMem);
PROPERTY(cooperative_launch, cooperativeLaunch);
PROPERTY(shared_per_block_optin, sharedMemPerBlockOptin);
PROPERTY(pageable_uses_host_tables, pageableMemoryAccessUsesHostPageTables);
PROPERTY(direct_managed_access_from_host, directManagedMemAccessFromHost);
PROPERTY(max_blocks_per_multiprocessor, maxBlocksPerMultiProcessor);
PROPERTY(access_policy_max_window, accessPolicyMaxWindowSize);
PROPERTY(reserved_shared_per_block, reservedSharedMemPerBlock);
PROPERTY(host_register, hostRegisterSupported);
PROPERTY(sparse_arrays, sparseCudaArraySupported);
PROPERTY(host_register_read_only, hostRegisterReadOnlySupported);
PROPERTY(timeline_semaphores, timelineSemaphoreInteropSupported);
PROPERTY(memory_pools, memoryPoolsSupported);
PROPERTY(gpu_direct_rdma, gpuDirectRDMASupported);
PROPERTY(gpu_direct_rdma_flush_options, gpuDirectRDMAFlushWritesOptions);
PROPERTY(gpu_direct_rdma_ordering, gpuDirectRDMAWritesOrdering);
PROPERTY(memory_pool_handle_types, memoryPoolSupportedHandleTypes);
PROPERTY(deferred_mapping, deferredMappingCudaArraySupported);
PROPERTY(ipc_event, ipcEventSupported);
PROPERTY(cluster_launch, clusterLaunch);
PROPERTY(unified_function_pointers, unifiedFunctionPointers);
PROPERTY(reserved, reserved);
#if CUDART_VERSION >= 13000
PROPERTY(device_numa_config, deviceNumaConfig);
PROPERTY(device_numa_id, deviceNumaId);
PROPERTY(mps_enabled, mpsEnabled);
PROPERTY(host_numa_id, hostNumaId);
PROPERTY(gpu_pci_device_id, gpuPciDeviceID);
PROPERTY(gpu_pci_subsystem_id, gpuPciSubsystemID);
PROPERTY(host_numa_multinode_ipc, hostNumaMultinodeIpcSupported);
#else
PROPERTY(clock_rate, clockRate);
PROPERTY(device_overlap, deviceOverlap);
PROPERTY(kernel_exec_timeout, kernelExecTimeoutEnabled);
PROPERTY(compute_mode, computeMode);
PROPERTY(max_texture_1d_linear, maxTexture1DLinear);
PROPERTY(memory_clock_rate, memoryClockRate);
PROPERTY(single_to_double_ratio, singleToDoublePrecisionPerfRatio);
PROPERTY(cooperative_multi_device_launch, cooperativeMultiDeviceLaunch);
#endif

/* ---- kernels and launches ------------------------------------------------------------------- */

SIZE(struct cudart_function_attributes, struct cudaFuncAttributes);
#define FUNCTION(ours, theirs)                                                                     \
    SAME(struct cudart_function_attributes, ours, struct cudaFuncAttributes, theirs)
FUNCTION(shared_bytes, sharedSizeBytes);
FUNCTION(const_bytes, constSizeBytes);
FUNCTION(local_bytes, localSizeBytes);
FUNCTION(max_threads_per_block, maxThreadsPerBlock);
FUNCTION(registers, numRegs);
FUNCTION(ptx_version, ptxVersion);
FUNCTION(binary_version, binaryVersion);
FUNCTION(cache_mode_ca, cacheModeCA);
FUNCTION(max_dynamic_shared_bytes, maxDynamicSharedSizeBytes);
FUNCTION(preferred_shared_carveout, preferredShmemCarveout);
FUNCTION(cluster_dim_must_be_set, clusterDimMustBeSet);
FUNCTION(required_cluster[0], requiredClusterWidth);
FUNCTION(required_cluster[1], requiredClusterHeight);
FUNCTION(required_cluster[2], requiredClusterDepth);
FUNCTION(cluster_scheduling_policy, clusterSchedulingPolicyPreference);
FUNCTION(non_portable_cluster_size_allowed, nonPortableClusterSizeAllowed);

SIZE(struct cuda_launch_config, cudaLaunchConfig_t);
#define CONFIG(ours, theirs) SAME(struct cuda_launch_config, ours, cudaLaunchConfig_t, theirs)
CONFIG(grid, gridDim);
CONFIG(block, blockDim);
CONFIG(dynamic_shared_bytes, dynamicSmemBytes);
CONFIG(stream, stream);
CONFIG(attributes, attrs);
CONFIG(attribute_count, numAttrs);

SIZE(struct cuda_launch_attribute, cudaLaunchAttribute);
#define ATTRIBUTE(ours, theirs)                                                                    \
    _Static_assert(offsetof(struct cuda_launch_attribute, ours) ==                                 \
                       offsetof(cudaLaunchAttribute, theirs),                                      \
                   #theirs)
ATTRIBUTE(id, id);
ATTRIBUTE(whole, val);
ATTRIBUTE(window.bytes, val.accessPolicyWindow.num_bytes);
ATTRIBUTE(window.hit_ratio, val.accessPolicyWindow.hitRatio);
ATTRIBUTE(window.hit, val.accessPolicyWindow.hitProp);
ATTRIBUTE(window.miss, val.accessPolicyWindow.missProp);
ATTRIBUTE(cluster, val.clusterDim);
ATTRIBUTE(cluster, val.preferredClusterDim);
ATTRIBUTE(number, val.cooperative);
ATTRIBUTE(number, val.sharedMemCarveout);
ATTRIBUTE(number, val.deviceUpdatableKernelNode.deviceUpdatable);
SIZE(struct cuda_access_window, struct cudaAccessPolicyWindow);
NUMBER(0, cudaAccessPropertyNormal);
NUMBER(2, cudaAccessPropertyPersisting);
NUMBER(2, cudaClusterSchedulingPolicyLoadBalancing);

NUMBER(CUDA_LAUNCH_IGNORE, cudaLaunchAttributeIgnore);
NUMBER(CUDA_LAUNCH_ACCESS_POLICY_WINDOW, cudaLaunchAttributeAccessPolicyWindow);
NUMBER(CUDA_LAUNCH_COOPERATIVE, cudaLaunchAttributeCooperative);
NUMBER(CUDA_LAUNCH_SYNCHRONIZATION_POLICY, cudaLaunchAttributeSynchronizationPolicy);
NUMBER(CUDA_LAUNCH_CLUSTER_DIMENSION, cudaLaunchAttributeClusterDimension);
NUMBER(CUDA_LAUNCH_CLUSTER_SCHEDULING, cudaLaunchAttributeClusterSchedulingPolicyPreference);
NUMBER(CUDA_LAUNCH_PROGRAMMATIC_SERIALIZATION, cudaLaunchAttributeProgrammaticStreamSerialization);
NUMBER(CUDA_LAUNCH_PROGRAMMATIC_EVENT, cudaLaunchAttributeProgrammaticEvent);
NUMBER(CUDA_LAUNCH_PRIORITY, cudaLaunchAttributePriority);
NUMBER(CUDA_LAUNCH_MEM_SYNC_DOMAIN_MAP, cudaLaunchAttributeMemSyncDomainMap);
NUMBER(CUDA_LAUNCH_MEM_SYNC_DOMAIN, cudaLaunchAttributeMemSyncDomain);
NUMBER(CUDA_LAUNCH_PREFERRED_CLUSTER_DIMENSION, cudaLaunchAttributePreferredClusterDimension);
NUMBER(CUDA_LAUNCH_LAUNCH_COMPLETION_EVENT, cudaLaunchAttributeLaunchCompletionEvent);
NUMBER(CUDA_LAUNCH_DEVICE_UPDATABLE_NODE, cudaLaunchAttributeDeviceUpdatableKernelNode);
NUMBER(CUDA_LAUNCH_SHARED_CARVEOUT, cudaLaunchAttributePreferredSharedMemoryCarveout);
#if CUDART_VERSION >= 13000
NUMBER(CUDA_LAUNCH_NVLINK_SCHEDULING, cudaLaunchAttributeNvlinkUtilCentricScheduling);
#endif

/* ---- other values --------------------------------------------------------------------------- */

SIZE(struct cudart_channel_format, struct cudaChannelFormatDesc);
SAME(struct cudart_channel_format, kind, struct cudaChannelFormatDesc, f);
SIZE(cudart_dim3, dim3);
NUMBER(CUDART_HOST_TO_HOST, cudaMemcpyHostToHost);
NUMBER(CUDART_HOST_TO_DEVICE, cudaMemcpyHostToDevice);
NUMBER(CUDART_DEVICE_TO_HOST, cudaMemcpyDeviceToHost);
NUMBER(CUDART_DEVICE_TO_DEVICE, cudaMemcpyDeviceToDevice);
NUMBER(CUDART_MEMCPY_DEFAULT, cudaMemcpyDefault);
NUMBER(CUDART_INVALID_VALUE, cudaErrorInvalidValue);
NUMBER(CUDART_MEMORY_ALLOCATION, cudaErrorMemoryAllocation);
NUMBER(CUDART_INVALID_CONFIGURATION, cudaErrorInvalidConfiguration);
NUMBER(CUDART_INVALID_SYMBOL, cudaErrorInvalidSymbol);
NUMBER(CUDART_INVALID_MEMCPY_DIRECTION, cudaErrorInvalidMemcpyDirection);
NUMBER(CUDART_INSUFFICIENT_DRIVER, cudaErrorInsufficientDriver);
NUMBER(CUDART_MISSING_CONFIGURATION, cudaErrorMissingConfiguration);
NUMBER(CUDART_INVALID_DEVICE_FUNCTION, cudaErrorInvalidDeviceFunction);
NUMBER(CUDART_INVALID_DEVICE, cudaErrorInvalidDevice);
NUMBER(CUDART_INVALID_KERNEL_IMAGE, cudaErrorInvalidKernelImage);
NUMBER(CUDART_NOT_SUPPORTED, cudaErrorNotSupported);
NUMBER(CUDA_LIMIT_STACK_SIZE, cudaLimitStackSize);
NUMBER(CUDA_LIMIT_PRINTF_FIFO_SIZE, cudaLimitPrintfFifoSize);
NUMBER(CUDA_LIMIT_MALLOC_HEAP_SIZE, cudaLimitMallocHeapSize);

#endif
