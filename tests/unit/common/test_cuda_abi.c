/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Our declarations of the driver API against the toolkit's own header, where one
 * is installed (no other file of gpushare includes it). Skipped aloud elsewhere.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/cuda/memory_pool.h"
#include "common/cuda/cuda_driver.h"
#include "tests/programs/gpu/extra.h"

#if __has_include(<cuda.h>) && __has_include(<cudaTypedefs.h>)
#include <cuda.h>
#include <cudaTypedefs.h>
#define HAVE_TOOLKIT 1
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#include "/usr/local/cuda/include/cudaTypedefs.h"
#define HAVE_TOOLKIT 1
#elif __has_include("/usr/local/include/cuda.h")
#include "/usr/local/include/cuda.h"
#include "/usr/local/include/cudaTypedefs.h"
#define HAVE_TOOLKIT 1
#endif

#if defined(HAVE_TOOLKIT) && CUDA_VERSION >= 13000

static void results_agree(void **state)
{
    (void)state;
    assert_int_equal(CUDA_OK, CUDA_SUCCESS);
#define X(name, value, sticky, sentence) assert_int_equal(CUDA_ERR_##name, CUDA_ERROR_##name);
    CUDA_RESULTS(X)
#undef X
}

static void attributes_agree(void **state)
{
    (void)state;
#define X(name, value) assert_int_equal(CUDA_ATTR_##name, CU_DEVICE_ATTRIBUTE_##name);
    CUDA_DEVICE_ATTRIBUTES(X)
#undef X
#define X(name, value) assert_int_equal(CUDA_FUNC_##name, CU_FUNC_ATTRIBUTE_##name);
    CUDA_FUNCTION_ATTRIBUTES(X)
#undef X
    assert_int_equal(CUDA_LIMIT_STACK_SIZE, CU_LIMIT_STACK_SIZE);
    assert_int_equal(CUDA_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE);
    assert_int_equal(CUDA_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE);
    assert_int_equal(CUDA_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER);
    assert_int_equal(CUDA_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    assert_int_equal(CUDA_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER);
    assert_int_equal(CUDA_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    assert_int_equal(CUDA_POINTER_CONTEXT, CU_POINTER_ATTRIBUTE_CONTEXT);
    assert_int_equal(CUDA_POINTER_IS_MANAGED, CU_POINTER_ATTRIBUTE_IS_MANAGED);
    assert_int_equal(CUDA_POINTER_MAPPED, CU_POINTER_ATTRIBUTE_MAPPED);
    assert_int_equal(CUDA_POINTER_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    assert_int_equal(CUDA_POINTER_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
    assert_int_equal(CUDA_POINTER_HOST_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER);
    assert_int_equal(CUDA_POINTER_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    assert_int_equal(CUDA_POINTER_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
    assert_int_equal(CUDA_POINTER_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_SIZE);
}

static void flags_agree(void **state)
{
    (void)state;
    assert_int_equal(CUDA_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST);
    assert_int_equal(CUDA_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(CUDA_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_ARRAY);
    assert_int_equal(CUDA_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED);
    assert_int_equal(CUDA_CTX_SCHED_AUTO, CU_CTX_SCHED_AUTO);
    assert_int_equal(CUDA_CTX_SCHED_SPIN, CU_CTX_SCHED_SPIN);
    assert_int_equal(CUDA_CTX_SCHED_YIELD, CU_CTX_SCHED_YIELD);
    assert_int_equal(CUDA_CTX_SCHED_BLOCKING_SYNC, CU_CTX_SCHED_BLOCKING_SYNC);
    assert_int_equal(CUDA_CTX_SCHED_MASK, CU_CTX_SCHED_MASK);
    assert_int_equal(CUDA_CTX_FLAGS_MASK, CU_CTX_FLAGS_MASK);
    assert_int_equal(CUDA_STREAM_DEFAULT, CU_STREAM_DEFAULT);
    assert_int_equal(CUDA_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
    assert_int_equal(CUDA_EVENT_DEFAULT, CU_EVENT_DEFAULT);
    assert_int_equal(CUDA_EVENT_BLOCKING_SYNC, CU_EVENT_BLOCKING_SYNC);
    assert_int_equal(CUDA_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
    assert_int_equal(CUDA_EVENT_INTERPROCESS, CU_EVENT_INTERPROCESS);
    assert_int_equal(CUDA_HOST_REGISTER_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE);
    assert_int_equal(CUDA_HOST_REGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_DEVICEMAP);
    assert_int_equal(CUDA_HOST_REGISTER_IOMEMORY, CU_MEMHOSTREGISTER_IOMEMORY);
    assert_int_equal(CUDA_HOST_REGISTER_READ_ONLY, CU_MEMHOSTREGISTER_READ_ONLY);
    assert_int_equal(CUDA_HOST_ALLOC_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
    assert_int_equal(CUDA_HOST_ALLOC_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP);
    assert_int_equal(CUDA_HOST_ALLOC_WRITECOMBINED, CU_MEMHOSTALLOC_WRITECOMBINED);
    assert_int_equal(CUDA_STREAM_WRITE_VALUE_DEFAULT, CU_STREAM_WRITE_VALUE_DEFAULT);
    assert_int_equal(CUDA_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER,
                     CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
    assert_int_equal(CUDA_GREEN_CTX_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM);
    assert_int_equal(CUDA_SM_SPLIT_IGNORE_SM_COSCHEDULING,
                     CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING);
    assert_int_equal(CUDA_SM_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE,
                     CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE);
    assert_int_equal(CUDA_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_DEFAULT);
    assert_int_equal(CUDA_PROC_ADDRESS_LEGACY_STREAM, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    assert_int_equal(CUDA_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                     CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    assert_int_equal(CUDA_PROC_ADDRESS_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS);
    assert_int_equal(CUDA_PROC_ADDRESS_SYMBOL_NOT_FOUND, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_int_equal(CUDA_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
                     CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    assert_ptr_equal(CUDA_STREAM_LEGACY, CU_STREAM_LEGACY);
    assert_ptr_equal(CUDA_STREAM_PER_THREAD, CU_STREAM_PER_THREAD);
    assert_ptr_equal(CUDA_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_END);
    assert_ptr_equal(CUDA_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_POINTER);
    assert_ptr_equal(CUDA_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_BUFFER_SIZE);
}

static void memory_values_agree(void **state)
{
    (void)state;
    assert_int_equal(CUDA_MEM_ALLOCATION_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
    assert_int_equal(CUDA_MEM_HANDLE_NONE, CU_MEM_HANDLE_TYPE_NONE);
    assert_int_equal(CUDA_MEM_HANDLE_POSIX_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    assert_int_equal(CUDA_MEM_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
    assert_int_equal(CUDA_MEM_LOCATION_HOST, CU_MEM_LOCATION_TYPE_HOST);
    assert_int_equal(CUDA_MEM_ACCESS_NONE, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    assert_int_equal(CUDA_MEM_ACCESS_READ, CU_MEM_ACCESS_FLAGS_PROT_READ);
    assert_int_equal(CUDA_MEM_ACCESS_READWRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_int_equal(MEMORY_POOL_REUSE_EVENTS, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
    assert_int_equal(MEMORY_POOL_REUSE_INTERNAL, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
    assert_int_equal(MEMORY_POOL_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    assert_int_equal(MEMORY_POOL_USED_HIGH, CU_MEMPOOL_ATTR_USED_MEM_HIGH);
    assert_int_equal(CUDA_MEM_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    assert_int_equal(CUDA_MEM_GRANULARITY_RECOMMENDED, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    assert_int_equal(CUDA_MEM_OP_WAIT_VALUE_32, CU_STREAM_MEM_OP_WAIT_VALUE_32);
    assert_int_equal(CUDA_MEM_OP_WRITE_VALUE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32);
    assert_int_equal(CUDA_MEM_OP_FLUSH_REMOTE_WRITES, CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
    assert_int_equal(CUDA_MEM_OP_WAIT_VALUE_64, CU_STREAM_MEM_OP_WAIT_VALUE_64);
    assert_int_equal(CUDA_MEM_OP_WRITE_VALUE_64, CU_STREAM_MEM_OP_WRITE_VALUE_64);
    assert_int_equal(CUDA_MEM_OP_BARRIER, CU_STREAM_MEM_OP_BARRIER);
    assert_int_equal(CUDA_RESOURCE_INVALID, CU_DEV_RESOURCE_TYPE_INVALID);
    assert_int_equal(CUDA_RESOURCE_SM, CU_DEV_RESOURCE_TYPE_SM);
}

#define SAME_SIZE(ours, theirs) assert_int_equal(sizeof(ours), sizeof(theirs))
#define SAME_MEMBER(ours, our_member, theirs, their_member)                                        \
    do {                                                                                           \
        assert_int_equal(offsetof(ours, our_member), offsetof(theirs, their_member));              \
        assert_int_equal(sizeof(((ours *)0)->our_member), sizeof(((theirs *)0)->their_member));    \
    } while (0)

static void scalar_types_agree(void **state)
{
    (void)state;
    SAME_SIZE(cuda_result, CUresult);
    SAME_SIZE(cuda_device, CUdevice);
    SAME_SIZE(cuda_device_ptr, CUdeviceptr);
    SAME_SIZE(cuda_context, CUcontext);
    SAME_SIZE(cuda_module, CUmodule);
    SAME_SIZE(cuda_function, CUfunction);
    SAME_SIZE(cuda_stream, CUstream);
    SAME_SIZE(cuda_event, CUevent);
    SAME_SIZE(cuda_green_ctx, CUgreenCtx);
    SAME_SIZE(cuda_resource_desc, CUdevResourceDesc);
    SAME_SIZE(cuda_mem_pool, CUmemoryPool);
    SAME_SIZE(cuda_mem_handle, CUmemGenericAllocationHandle);
    SAME_SIZE(cuda_host_fn, CUhostFn);
    SAME_SIZE(cuda_uuid, CUuuid);
    SAME_SIZE(cuda_device_attribute, CUdevice_attribute);
    SAME_SIZE(cuda_function_attribute, CUfunction_attribute);
    SAME_SIZE(cuda_limit, CUlimit);
    SAME_SIZE(cuda_jit_option, CUjit_option);
    SAME_SIZE(cuda_pointer_attribute, CUpointer_attribute);
    SAME_SIZE(cuda_mem_handle_type, CUmemAllocationHandleType);
    SAME_SIZE(cuda_mem_granularity, CUmemAllocationGranularity_flags);
    SAME_SIZE(cuda_resource_type, CUdevResourceType);
    SAME_SIZE(cuda_proc_address_status, CUdriverProcAddressQueryResult);
}

static void structures_agree(void **state)
{
    (void)state;
    SAME_SIZE(cuda_mem_location, CUmemLocation);
    SAME_MEMBER(cuda_mem_location, type, CUmemLocation, type);
    SAME_MEMBER(cuda_mem_location, id, CUmemLocation, id);
    SAME_SIZE(cuda_copy_attributes, CUmemcpyAttributes);
    SAME_MEMBER(cuda_copy_attributes, order, CUmemcpyAttributes, srcAccessOrder);
    SAME_MEMBER(cuda_copy_attributes, source_hint, CUmemcpyAttributes, srcLocHint);
    SAME_MEMBER(cuda_copy_attributes, destination_hint, CUmemcpyAttributes, dstLocHint);
    SAME_MEMBER(cuda_copy_attributes, flags, CUmemcpyAttributes, flags);

    SAME_SIZE(cuda_mem_pool_props, CUmemPoolProps);
    SAME_MEMBER(cuda_mem_pool_props, type, CUmemPoolProps, allocType);
    SAME_MEMBER(cuda_mem_pool_props, handle_types, CUmemPoolProps, handleTypes);
    SAME_MEMBER(cuda_mem_pool_props, location, CUmemPoolProps, location);
    SAME_MEMBER(cuda_mem_pool_props, max_size, CUmemPoolProps, maxSize);
    SAME_MEMBER(cuda_mem_pool_props, usage, CUmemPoolProps, usage);
    SAME_SIZE(cuda_memcpy_2d, CUDA_MEMCPY2D);
    SAME_MEMBER(cuda_memcpy_2d, src_x, CUDA_MEMCPY2D, srcXInBytes);
    SAME_MEMBER(cuda_memcpy_2d, src_y, CUDA_MEMCPY2D, srcY);
    SAME_MEMBER(cuda_memcpy_2d, src_type, CUDA_MEMCPY2D, srcMemoryType);
    SAME_MEMBER(cuda_memcpy_2d, src_host, CUDA_MEMCPY2D, srcHost);
    SAME_MEMBER(cuda_memcpy_2d, src_device, CUDA_MEMCPY2D, srcDevice);
    SAME_MEMBER(cuda_memcpy_2d, src_array, CUDA_MEMCPY2D, srcArray);
    SAME_MEMBER(cuda_memcpy_2d, src_pitch, CUDA_MEMCPY2D, srcPitch);
    SAME_MEMBER(cuda_memcpy_2d, dst_x, CUDA_MEMCPY2D, dstXInBytes);
    SAME_MEMBER(cuda_memcpy_2d, dst_y, CUDA_MEMCPY2D, dstY);
    SAME_MEMBER(cuda_memcpy_2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
    SAME_MEMBER(cuda_memcpy_2d, dst_host, CUDA_MEMCPY2D, dstHost);
    SAME_MEMBER(cuda_memcpy_2d, dst_device, CUDA_MEMCPY2D, dstDevice);
    SAME_MEMBER(cuda_memcpy_2d, dst_array, CUDA_MEMCPY2D, dstArray);
    SAME_MEMBER(cuda_memcpy_2d, dst_pitch, CUDA_MEMCPY2D, dstPitch);
    SAME_MEMBER(cuda_memcpy_2d, width, CUDA_MEMCPY2D, WidthInBytes);
    SAME_MEMBER(cuda_memcpy_2d, height, CUDA_MEMCPY2D, Height);
    SAME_SIZE(cuda_memcpy_3d, CUDA_MEMCPY3D);
    SAME_MEMBER(cuda_memcpy_3d, src_x, CUDA_MEMCPY3D, srcXInBytes);
    SAME_MEMBER(cuda_memcpy_3d, src_y, CUDA_MEMCPY3D, srcY);
    SAME_MEMBER(cuda_memcpy_3d, src_type, CUDA_MEMCPY3D, srcMemoryType);
    SAME_MEMBER(cuda_memcpy_3d, src_host, CUDA_MEMCPY3D, srcHost);
    SAME_MEMBER(cuda_memcpy_3d, src_device, CUDA_MEMCPY3D, srcDevice);
    SAME_MEMBER(cuda_memcpy_3d, src_array, CUDA_MEMCPY3D, srcArray);
    SAME_MEMBER(cuda_memcpy_3d, src_pitch, CUDA_MEMCPY3D, srcPitch);
    SAME_MEMBER(cuda_memcpy_3d, dst_x, CUDA_MEMCPY3D, dstXInBytes);
    SAME_MEMBER(cuda_memcpy_3d, dst_y, CUDA_MEMCPY3D, dstY);
    SAME_MEMBER(cuda_memcpy_3d, dst_type, CUDA_MEMCPY3D, dstMemoryType);
    SAME_MEMBER(cuda_memcpy_3d, dst_host, CUDA_MEMCPY3D, dstHost);
    SAME_MEMBER(cuda_memcpy_3d, dst_device, CUDA_MEMCPY3D, dstDevice);
    SAME_MEMBER(cuda_memcpy_3d, dst_array, CUDA_MEMCPY3D, dstArray);
    SAME_MEMBER(cuda_memcpy_3d, dst_pitch, CUDA_MEMCPY3D, dstPitch);
    SAME_MEMBER(cuda_memcpy_3d, width, CUDA_MEMCPY3D, WidthInBytes);
    SAME_MEMBER(cuda_memcpy_3d, height, CUDA_MEMCPY3D, Height);
    SAME_MEMBER(cuda_memcpy_3d, src_z, CUDA_MEMCPY3D, srcZ);
    SAME_MEMBER(cuda_memcpy_3d, src_lod, CUDA_MEMCPY3D, srcLOD);
    SAME_MEMBER(cuda_memcpy_3d, src_height, CUDA_MEMCPY3D, srcHeight);
    SAME_MEMBER(cuda_memcpy_3d, dst_z, CUDA_MEMCPY3D, dstZ);
    SAME_MEMBER(cuda_memcpy_3d, dst_lod, CUDA_MEMCPY3D, dstLOD);
    SAME_MEMBER(cuda_memcpy_3d, dst_height, CUDA_MEMCPY3D, dstHeight);
    SAME_MEMBER(cuda_memcpy_3d, depth, CUDA_MEMCPY3D, Depth);
    SAME_SIZE(cuda_memcpy_3d, CUDA_MEMCPY3D_PEER);
    SAME_MEMBER(cuda_memcpy_3d, src_context, CUDA_MEMCPY3D_PEER, srcContext);
    SAME_MEMBER(cuda_memcpy_3d, dst_context, CUDA_MEMCPY3D_PEER, dstContext);
    SAME_SIZE(cuda_batch_3d, CUDA_MEMCPY3D_BATCH_OP);
    SAME_MEMBER(cuda_batch_3d, src, CUDA_MEMCPY3D_BATCH_OP, src);
    SAME_MEMBER(cuda_batch_3d, dst.ptr, CUDA_MEMCPY3D_BATCH_OP, dst.op.ptr.ptr);
    SAME_MEMBER(cuda_batch_3d, dst.row, CUDA_MEMCPY3D_BATCH_OP, dst.op.ptr.rowLength);
    SAME_MEMBER(cuda_batch_3d, dst.rows, CUDA_MEMCPY3D_BATCH_OP, dst.op.ptr.layerHeight);
    SAME_MEMBER(cuda_batch_3d, width, CUDA_MEMCPY3D_BATCH_OP, extent.width);
    SAME_MEMBER(cuda_batch_3d, order, CUDA_MEMCPY3D_BATCH_OP, srcAccessOrder);
    SAME_MEMBER(cuda_batch_3d, flags, CUDA_MEMCPY3D_BATCH_OP, flags);
    assert_int_equal(CUDA_COPY_OPERAND_POINTER, CU_MEMCPY_OPERAND_TYPE_POINTER);
    assert_int_equal(CUDA_COPY_OPERAND_ARRAY, CU_MEMCPY_OPERAND_TYPE_ARRAY);
    SAME_SIZE(cuda_mem_allocation_prop, CUmemAllocationProp);
    SAME_MEMBER(cuda_mem_allocation_prop, type, CUmemAllocationProp, type);
    SAME_MEMBER(cuda_mem_allocation_prop, requested_handle_types, CUmemAllocationProp,
                requestedHandleTypes);
    SAME_MEMBER(cuda_mem_allocation_prop, location, CUmemAllocationProp, location);
    SAME_MEMBER(cuda_mem_allocation_prop, win32_metadata, CUmemAllocationProp, win32HandleMetaData);
    SAME_MEMBER(cuda_mem_allocation_prop, flags, CUmemAllocationProp, allocFlags);
    SAME_MEMBER(cuda_mem_allocation_prop, flags.usage, CUmemAllocationProp, allocFlags.usage);

    SAME_SIZE(cuda_mem_access_desc, CUmemAccessDesc);
    SAME_MEMBER(cuda_mem_access_desc, location, CUmemAccessDesc, location);
    SAME_MEMBER(cuda_mem_access_desc, flags, CUmemAccessDesc, flags);

    SAME_SIZE(cuda_mem_op_params, CUstreamBatchMemOpParams);
    SAME_MEMBER(cuda_mem_op_params, operation, CUstreamBatchMemOpParams, operation);
    SAME_MEMBER(cuda_mem_op_params, write_value.address, CUstreamBatchMemOpParams,
                writeValue.address);
    SAME_MEMBER(cuda_mem_op_params, write_value.value, CUstreamBatchMemOpParams, writeValue.value);
    SAME_MEMBER(cuda_mem_op_params, write_value.value64, CUstreamBatchMemOpParams,
                writeValue.value64);
    SAME_MEMBER(cuda_mem_op_params, write_value.flags, CUstreamBatchMemOpParams, writeValue.flags);
    SAME_MEMBER(cuda_mem_op_params, write_value.alias, CUstreamBatchMemOpParams, writeValue.alias);
    SAME_MEMBER(cuda_mem_op_params, write_value.address, CUstreamBatchMemOpParams,
                waitValue.address);
    SAME_MEMBER(cuda_mem_op_params, write_value.flags, CUstreamBatchMemOpParams, waitValue.flags);

    SAME_SIZE(cuda_sm_resource, CUdevSmResource);
    SAME_MEMBER(cuda_sm_resource, sm_count, CUdevSmResource, smCount);
    SAME_MEMBER(cuda_sm_resource, min_partition_size, CUdevSmResource, minSmPartitionSize);
    SAME_MEMBER(cuda_sm_resource, coscheduled_alignment, CUdevSmResource, smCoscheduledAlignment);
#if CUDA_VERSION < 13010 /* later toolkits add members to it, in place of padding */
    SAME_SIZE(cuda_dev_resource, CUdevResource);
    SAME_MEMBER(cuda_dev_resource, oversize, CUdevResource, _oversize);
#endif
    SAME_MEMBER(cuda_dev_resource, type, CUdevResource, type);
    SAME_MEMBER(cuda_dev_resource, sm, CUdevResource, sm);
}

/* The name that cuda.h's macros make: cuMemAlloc becomes "cuMemAlloc_v2". */
#define EXPANDED_(name) #name
#define EXPANDED(name)  EXPANDED_(name)

/*
 * The version asked of cuGetProcAddress must be one at which that function
 * changed, which cudaTypedefs.h has as a type; the symbol that of the header.
 */
static void entry_points_agree(void **state)
{
    (void)state;
#define X(name, symbol, version, need, params)                                                     \
    assert_int_equal(sizeof(PFN_##name##_v##version), sizeof(void (*)(void)));                     \
    if (strcmp(#name, "cuEventElapsedTime") != 0)                                                  \
        assert_string_equal(EXPANDED(name), #symbol);
    CUDA_DRIVER_ENTRIES(X)
#undef X
}

/* The calls that only the steps of tests/programs/gpu make. */
static void extra_declarations_agree(void **state)
{
    (void)state;
    assert_int_equal(EXTRA_JIT_INPUT_PTX, CU_JIT_INPUT_PTX);
    SAME_SIZE(struct extra_kernel_node, CUDA_KERNEL_NODE_PARAMS_v2);
    SAME_MEMBER(struct extra_kernel_node, function, CUDA_KERNEL_NODE_PARAMS_v2, func);
    SAME_MEMBER(struct extra_kernel_node, grid_x, CUDA_KERNEL_NODE_PARAMS_v2, gridDimX);
    SAME_MEMBER(struct extra_kernel_node, grid_z, CUDA_KERNEL_NODE_PARAMS_v2, gridDimZ);
    SAME_MEMBER(struct extra_kernel_node, block_x, CUDA_KERNEL_NODE_PARAMS_v2, blockDimX);
    SAME_MEMBER(struct extra_kernel_node, block_z, CUDA_KERNEL_NODE_PARAMS_v2, blockDimZ);
    SAME_MEMBER(struct extra_kernel_node, shared_bytes, CUDA_KERNEL_NODE_PARAMS_v2, sharedMemBytes);
    SAME_MEMBER(struct extra_kernel_node, parameters, CUDA_KERNEL_NODE_PARAMS_v2, kernelParams);
    SAME_MEMBER(struct extra_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS_v2, extra);
    SAME_MEMBER(struct extra_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
    SAME_MEMBER(struct extra_kernel_node, context, CUDA_KERNEL_NODE_PARAMS_v2, ctx);
#if CUDA_VERSION >= 13010
    assert_int_equal(EXTRA_RESOURCE_WORKQUEUE_CONFIG, CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG);
    assert_int_equal(EXTRA_WORKQUEUE_BALANCED, CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED);
    SAME_SIZE(struct extra_workqueue, CUdevWorkqueueConfigResource);
    SAME_MEMBER(struct extra_workqueue, concurrency, CUdevWorkqueueConfigResource,
                wqConcurrencyLimit);
    SAME_MEMBER(struct extra_workqueue, scope, CUdevWorkqueueConfigResource, sharingScope);
#endif
#define X(name, version, params)                                                                   \
    assert_int_equal(sizeof(PFN_##name##_v##version), sizeof(void (*)(void)));
    EXTRA_ENTRIES(X)
#undef X
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_agree),      cmocka_unit_test(attributes_agree),
        cmocka_unit_test(flags_agree),        cmocka_unit_test(memory_values_agree),
        cmocka_unit_test(scalar_types_agree), cmocka_unit_test(structures_agree),
        cmocka_unit_test(entry_points_agree), cmocka_unit_test(extra_declarations_agree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    printf("SKIP: no cuda.h of CUDA 13.0 or newer is installed, the declarations were compared "
           "with nothing\n");
    return 77;
}

#endif
