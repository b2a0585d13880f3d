/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * release: the release of CUDA as which a library answers. One file of release_12 and release_13
 * is linked into each library; it sets the number before the program starts, and has the functions
 * that the two releases have under different names or layouts.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_RELEASE_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_RELEASE_H

#include <stddef.h>

#include "client/cuda/runtime/base/runtime_abi.h"

/* As cudaRuntimeGetVersion counts. */
extern int release_number;
/* The size of cudaPointerAttributes. */
extern size_t release_pointer_bytes;

/* The bodies of functions that have other parameters in each release. */
cudart_error managed_api_prefetch(const void *ptr, size_t size, cuda_mem_location place,
                                  unsigned flags, cuda_stream stream);
cudart_error managed_api_advise(const void *ptr, size_t size, int advice, cuda_mem_location place);
/* A device's number as a place: -1 is the host. */
cuda_mem_location managed_api_place(int device);
/* A batch of copies. failed: NULL, or the copy that failed. */
struct runtime_batch {
    void *const *dsts;
    const void *const *srcs;
    const size_t *sizes;
    size_t count;
    const cuda_copy_attributes *attributes;
    const size_t *firsts;
    size_t attribute_count;
    size_t *failed;
};
cudart_error block_api_batch(const struct runtime_batch *batch, cuda_stream stream);
cudart_error block_api_blocks(size_t count, cuda_batch_3d *blocks, size_t *failed,
                              unsigned long long flags, cuda_stream stream);
/* *status becomes "none", or the call is refused. */
cudart_error stream_api_capture(cuda_stream stream, int *status);

/* The stream that a form for default streams of each thread means. */
static inline cuda_stream release_own_stream(cuda_stream stream)
{
    return stream ? stream : CUDA_STREAM_PER_THREAD;
}

/* Begins the definition of a function whose prototype is this release's alone; RELEASE_FORM also
 * defines its form for default streams of each thread. */
#define RELEASE(name, params)                                                                      \
    API cudart_error name params;                                                                  \
    cudart_error name params
#define RELEASE_FORM(name, params, args)                                                           \
    API cudart_error name params;                                                                  \
    API cudart_error name##_ptsz params;                                                           \
    cudart_error name##_ptsz params                                                                \
    {                                                                                              \
        return name args;                                                                          \
    }                                                                                              \
    cudart_error name params

#endif
