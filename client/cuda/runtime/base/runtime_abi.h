/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_abi: the CUDA runtime API as gpushare declares it, in the layouts of CUDA 12 and 13.
 *
 * These are our own declarations, so nothing here needs the toolkit. Streams and events are the
 * driver's handles. An error's number is the driver's wherever the driver has one for it.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_ABI_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/cuda/launch_attribute.h"

#define API __attribute__((visibility("default")))

/* cudaError_t: a cuda_result, or one of the errors that the runtime alone has. */
typedef int cudart_error;

enum {
    CUDART_OK = 0,
    CUDART_INVALID_VALUE = CUDA_ERR_INVALID_VALUE,
    CUDART_MEMORY_ALLOCATION = CUDA_ERR_OUT_OF_MEMORY,
    CUDART_INVALID_CONFIGURATION = 9,
    CUDART_INVALID_PITCH = 12,
    CUDART_INVALID_SYMBOL = 13,
    CUDART_INVALID_MEMCPY_DIRECTION = 21,
    CUDART_INSUFFICIENT_DRIVER = 35,
    CUDART_MISSING_CONFIGURATION = 52,
    CUDART_INVALID_DEVICE_FUNCTION = 98,
    CUDART_INVALID_DEVICE = CUDA_ERR_INVALID_DEVICE,
    CUDART_INVALID_KERNEL_IMAGE = CUDA_ERR_INVALID_IMAGE,
    CUDART_NOT_SUPPORTED = CUDA_ERR_NOT_SUPPORTED,
};

typedef cuda_dim3 cudart_dim3;

enum cudart_memcpy_kind {
    CUDART_HOST_TO_HOST = 0,
    CUDART_HOST_TO_DEVICE = 1,
    CUDART_DEVICE_TO_HOST = 2,
    CUDART_DEVICE_TO_DEVICE = 3,
    CUDART_MEMCPY_DEFAULT = 4, /* the addresses say it */
};

/* cudaKernel_t: a registered function, whose code is loaded when it is first used. */
typedef struct registry_function *cudart_kernel;

struct cudart_channel_format {
    int x, y, z, w; /* bits of each component */
    int kind;
};
_Static_assert(sizeof(struct cudart_channel_format) == 20, "cudaChannelFormatDesc");

/* Rows of memory at a distance of a pitch. */
struct cudart_pitched_ptr {
    void *ptr;
    size_t pitch;
    size_t row_bytes, rows; /* of one plane */
};
_Static_assert(sizeof(struct cudart_pitched_ptr) == 32, "cudaPitchedPtr");

struct cudart_extent {
    size_t width, height, depth; /* bytes, rows, planes */
};

struct cudart_pos {
    size_t x, y, z;
};

struct cudart_memcpy_3d {
    void *src_array;
    struct cudart_pos src_pos;
    struct cudart_pitched_ptr src;
    void *dst_array;
    struct cudart_pos dst_pos;
    struct cudart_pitched_ptr dst;
    struct cudart_extent extent;
    int kind;
};
_Static_assert(sizeof(struct cudart_memcpy_3d) == 160, "cudaMemcpy3DParms");

struct cudart_memcpy_3d_peer {
    void *src_array;
    struct cudart_pos src_pos;
    struct cudart_pitched_ptr src;
    int src_device;
    void *dst_array;
    struct cudart_pos dst_pos;
    struct cudart_pitched_ptr dst;
    int dst_device;
    struct cudart_extent extent;
};
_Static_assert(sizeof(struct cudart_memcpy_3d_peer) == 168, "cudaMemcpy3DPeerParms");

enum cudart_memory_type {
    CUDART_MEMORY_UNREGISTERED = 0, /* the program's own */
    CUDART_MEMORY_HOST = 1,
    CUDART_MEMORY_DEVICE = 2,
    CUDART_MEMORY_MANAGED = 3,
};

struct cudart_pointer_attributes {
    int type; /* enum cudart_memory_type */
    int device;
    void *device_ptr, *host_ptr;
    /* from CUDA 13 on 64 bytes follow, which are 0 */
};
_Static_assert(sizeof(struct cudart_pointer_attributes) == 24, "cudaPointerAttributes of CUDA 12");

struct cudart_function_attributes {
    size_t shared_bytes;
    size_t const_bytes;
    size_t local_bytes;
    int max_threads_per_block;
    int registers;
    int ptx_version;
    int binary_version;
    int cache_mode_ca;
    int max_dynamic_shared_bytes;
    int preferred_shared_carveout;
    int cluster_dim_must_be_set;
    int required_cluster[3];
    int cluster_scheduling_policy;
    int non_portable_cluster_size_allowed;
    int reserved[16];
};
_Static_assert(sizeof(struct cudart_function_attributes) == 144, "cudaFuncAttributes");

#endif
