/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/pool_stream.h"

#include <assert.h>
#include <stdlib.h>

cuda_result pool_stream_make(struct pool_stream **stream, const struct gpu *gpu,
                             struct partition *partition, int32_t priority)
{
    const struct cuda_driver *cuda = gpu->cuda;
    struct pool_stream *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    made->partition = partition;
    made->priority = priority;
    cuda_result result =
        partition->green
            ? cuda->cuGreenCtxStreamCreate(&made->handle, partition->green,
                                           CUDA_STREAM_NON_BLOCKING, priority)
            : cuda->cuStreamCreateWithPriority(&made->handle, CUDA_STREAM_NON_BLOCKING, priority);
    if (result != CUDA_OK)
        free(made);
    else
        *stream = made;
    return result;
}

void pool_stream_destroy(struct pool_stream *stream, const struct gpu *gpu)
{
    assert(stream->user_count == 0 && !stream->leavers);
    gpu->cuda->cuStreamDestroy(stream->handle);
    free(stream);
}

uint32_t pool_stream_prune(struct pool_stream *stream, const struct client *client)
{
    struct pool_leaver **link = &stream->leavers;
    uint32_t forgotten = 0;
    while (*link) {
        struct pool_leaver *leaver = *link;
        if (leaver->stream->client != client &&
            client_stream_reached(leaver->stream) < leaver->value) {
            link = &leaver->next;
            continue;
        }
        *link = leaver->next;
        free(leaver);
        forgotten++;
    }
    return forgotten;
}
