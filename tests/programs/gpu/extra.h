/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * extra: driver calls that gpushare does not make and the steps want to try: linking PTX to a
 * cubin, graphs, and the work queues of CUDA 13.1. Declarations are our own, of CUDA 13.0's ABI;
 * tests/unit/common/test_cuda_abi.c holds them to the toolkit's cuda.h where one is installed. The
 * work queue resource is 13.1's, which no header here can confirm: NVIDIA's driver API
 * reference 13.1, "CUdevWorkqueueConfigResource".
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_GPU_EXTRA_H
#define GPUSHARE_TESTS_PROGRAMS_GPU_EXTRA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"

enum {
    EXTRA_JIT_INPUT_PTX = 1,
    EXTRA_RESOURCE_WORKQUEUE_CONFIG = 1000,
    EXTRA_WORKQUEUE_BALANCED = 1,
};

typedef struct extra_link_object *extra_link;
typedef struct extra_graph_object *extra_graph;
typedef struct extra_graph_node_object *extra_graph_node;
typedef struct extra_graph_exec_object *extra_graph_exec;

struct extra_kernel_node {
    cuda_function function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void **parameters;
    void **extra;
    void *kernel;         /* NULL: function counts */
    cuda_context context; /* NULL: the current one */
};

struct extra_workqueue {
    cuda_device device;
    unsigned concurrency;
    int scope;
};

_Static_assert(sizeof(struct extra_kernel_node) == 72, "CUDA_KERNEL_NODE_PARAMS_v2");
_Static_assert(sizeof(struct extra_workqueue) == 12, "CUdevWorkqueueConfigResource");

/* X(name, version, (parameters)): as CUDA_DRIVER_ENTRIES; each may be missing. */
#define EXTRA_ENTRIES(X)                                                                           \
    X(cuLinkCreate, 6050,                                                                          \
      (unsigned count, cuda_jit_option *options, void **values, extra_link *link))                 \
    X(cuLinkAddData, 6050,                                                                         \
      (extra_link link, int type, void *data, size_t size, const char *name, unsigned count,       \
       cuda_jit_option *options, void **values))                                                   \
    X(cuLinkComplete, 5050, (extra_link link, void **cubin, size_t *size))                         \
    X(cuLinkDestroy, 5050, (extra_link link))                                                      \
    X(cuGraphCreate, 10000, (extra_graph * graph, unsigned flags))                                 \
    X(cuGraphAddKernelNode, 12000,                                                                 \
      (extra_graph_node * node, extra_graph graph, const extra_graph_node *dependencies,           \
       size_t count, const struct extra_kernel_node *parameters))                                  \
    X(cuGraphInstantiateWithFlags, 11040,                                                          \
      (extra_graph_exec * exec, extra_graph graph, unsigned long long flags))                      \
    X(cuGraphLaunch, 10000, (extra_graph_exec exec, cuda_stream stream))

struct extra_driver {
#define X(name, version, params) cuda_result(*name) params;
    EXTRA_ENTRIES(X)
#undef X
};

/* Asks the library of `driver` for each; what it lacks is NULL. */
void extra_open(struct extra_driver *extra, const struct cuda_driver *driver);

bool extra_has_link(const struct extra_driver *extra);
bool extra_has_graph(const struct extra_driver *extra);

#endif
