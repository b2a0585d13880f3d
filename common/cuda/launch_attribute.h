/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * launch_attribute: the attributes of a launch, for the driver's and the runtime's calls, and what
 * they mean where launches have none. Pure; any thread.
 */
#ifndef GPUSHARE_COMMON_CUDA_LAUNCH_ATTRIBUTE_H
#define GPUSHARE_COMMON_CUDA_LAUNCH_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"

typedef struct cuda_dim3 {
    unsigned x, y, z;
} cuda_dim3;

/* X(NAME, value): CUlaunchAttributeID, and the runtime's cudaLaunchAttributeID. */
#define CUDA_LAUNCH_ATTRIBUTES(X)                                                                  \
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

enum cuda_launch_attribute_id {
#define X(name, value) CUDA_LAUNCH_##name = value,
    CUDA_LAUNCH_ATTRIBUTES(X)
#undef X
};

struct cuda_access_window {
    void *base;
    size_t bytes;
    float hit_ratio;
    int hit, miss; /* 0 normal, 1 streaming, 2 persisting */
};
_Static_assert(sizeof(struct cuda_access_window) == 32, "CUaccessPolicyWindow");

/* The members that are read here. */
struct cuda_launch_attribute {
    unsigned id;
    union {
        uint64_t whole[8];
        struct cuda_access_window window;
        cuda_dim3 cluster; /* the preferred one too */
        int number;        /* of each attribute that is one */
    };
};
_Static_assert(sizeof(struct cuda_launch_attribute) == 72, "CUlaunchAttribute");

/* The driver's CUlaunchConfig and the runtime's cudaLaunchConfig_t, which have one layout. */
struct cuda_launch_config {
    cuda_dim3 grid, block;
    size_t dynamic_shared_bytes;
    cuda_stream stream;
    const struct cuda_launch_attribute *attributes;
    unsigned attribute_count;
};
_Static_assert(sizeof(struct cuda_launch_config) == 56, "CUlaunchConfig");

/*
 * Reads the attributes for launches that have none. Hints are taken and have no effect. An
 * attribute that changes what a kernel or its neighbours see is carried out by the caller, or
 * refused.
 *
 * window_max: the bytes of an access window that the device allows. *cooperative: whether the
 * launch is a cooperative one. Returns 0; CUDA_ERR_INVALID_VALUE for a value or an attribute that
 * no launch has; or CUDA_ERR_NOT_SUPPORTED.
 */
cuda_result launch_attribute_read(const struct cuda_launch_config *config, int window_max,
                                  bool *cooperative);

#endif
