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

#define API __attribute__((visibility("default")))

/* cudaError_t: a cuda_result, or one of the errors that the runtime alone has. */
typedef int cudart_error;

enum {
    CUDART_OK = 0,
    CUDART_INVALID_VALUE = CUDA_ERR_INVALID_VALUE,
    CUDART_MEMORY_ALLOCATION = CUDA_ERR_OUT_OF_MEMORY,
    CUDART_INVALID_CONFIGURATION = 9,
    CUDART_INVALID_SYMBOL = 13,
    CUDART_INVALID_MEMCPY_DIRECTION = 21,
    CUDART_INSUFFICIENT_DRIVER = 35,
    CUDART_MISSING_CONFIGURATION = 52,
    CUDART_INVALID_DEVICE_FUNCTION = 98,
    CUDART_INVALID_DEVICE = CUDA_ERR_INVALID_DEVICE,
    CUDART_INVALID_KERNEL_IMAGE = CUDA_ERR_INVALID_IMAGE,
    CUDART_NOT_SUPPORTED = CUDA_ERR_NOT_SUPPORTED,
};

typedef struct cudart_dim3 {
    unsigned x, y, z;
} cudart_dim3;

enum cudart_memcpy_kind {
    CUDART_HOST_TO_HOST = 0,
    CUDART_HOST_TO_DEVICE = 1,
    CUDART_DEVICE_TO_HOST = 2,
    CUDART_DEVICE_TO_DEVICE = 3,
    CUDART_MEMCPY_DEFAULT = 4, /* the addresses say it */
};

/* cudaKernel_t: a registered function, whose code is loaded when it is first used. */
typedef struct registry_function *cudart_kernel;

/* X(NAME, value): cudaLaunchAttributeID. */
#define CUDART_LAUNCH_ATTRIBUTES(X)                                                                \
    X(IGNORE, 0)                                                                                   \
    X(ACCESS_POLICY_WINDOW, 1)                                                                     \
    X(COOPERATIVE, 2)                                                                              \
    X(SYNCHRONIZATION_POLICY, 3)                                                                   \
    X(CLUSTER_DIMENSION, 4)                                                                        \
    X(CLUSTER_SCHEDULING, 5)                                                                       \
    X(PROGRAMMATIC_SERIALIZATION, 6)                                                               \
    X(PROGRAMMATIC_EVENT, 7)                                                                       \
    X(PRIORITY, 8)                                                                                 \
    X(MEM_SYNC_DOMAIN_MAP, 9)                                                                      \
    X(MEM_SYNC_DOMAIN, 10)                                                                         \
    X(PREFERRED_CLUSTER_DIMENSION, 11)                                                             \
    X(LAUNCH_COMPLETION_EVENT, 12)                                                                 \
    X(DEVICE_UPDATABLE_NODE, 13)                                                                   \
    X(SHARED_CARVEOUT, 14)                                                                         \
    X(NVLINK_SCHEDULING, 16)

enum cudart_launch_attribute_id {
#define X(name, value) CUDART_LAUNCH_##name = value,
    CUDART_LAUNCH_ATTRIBUTES(X)
#undef X
};

struct cudart_access_window {
    void *base;
    size_t bytes;
    float hit_ratio;
    int hit, miss; /* 0 normal, 1 streaming, 2 persisting */
};
_Static_assert(sizeof(struct cudart_access_window) == 32, "cudaAccessPolicyWindow");

/* The members that are read here. */
struct cudart_launch_attribute {
    unsigned id;
    union {
        uint64_t whole[8];
        struct cudart_access_window window;
        cudart_dim3 cluster; /* the preferred one too */
        int number;          /* of each attribute that is one */
    };
};
_Static_assert(sizeof(struct cudart_launch_attribute) == 72, "cudaLaunchAttribute");

/* The driver's CUlaunchConfig has other members in the same places. */
struct cudart_launch_config {
    cudart_dim3 grid, block;
    size_t dynamic_shared_bytes;
    cuda_stream stream;
    const struct cudart_launch_attribute *attributes;
    unsigned attribute_count;
};
_Static_assert(sizeof(struct cudart_launch_config) == 56, "cudaLaunchConfig_t");

struct cudart_channel_format {
    int x, y, z, w; /* bits of each component */
    int kind;
};
_Static_assert(sizeof(struct cudart_channel_format) == 20, "cudaChannelFormatDesc");

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
