/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/batch_ends.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "common/ipc/shared_word.h"
#include "common/machine.h"
#include "server/worker/sharing/stream_pool.h"

/* Made at start, for making an event may wait for the device. More are made when these are out. */
#define EVENTS_FIRST 512

struct batch_end {
    struct batch_end *next; /* of the stream, or unused */
    cuda_event event;
    uint64_t value;
};

static cuda_result make_end(const struct batch_ends *ends, struct batch_end **end)
{
    *end = calloc(1, sizeof **end);
    if (!*end)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = ends->gpu->cuda->cuEventCreate(&(*end)->event, CUDA_EVENT_DISABLE_TIMING);
    if (result != CUDA_OK)
        free(*end);
    return result;
}

static void keep_end(struct batch_ends *ends, struct batch_end *end)
{
    pthread_mutex_lock(&ends->lock);
    end->next = ends->unused;
    ends->unused = end;
    pthread_mutex_unlock(&ends->lock);
}

static cuda_result take_end(struct batch_ends *ends, struct batch_end **end)
{
    pthread_mutex_lock(&ends->lock);
    *end = ends->unused;
    if (*end)
        ends->unused = (*end)->next;
    pthread_mutex_unlock(&ends->lock);
    return *end ? CUDA_OK : make_end(ends, end);
}

static cuda_result write_word(const struct gpu *gpu, cuda_stream stream, uint64_t *word)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_mem_op_params write = {
        .write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_64, .value64 = 1}};
    cuda_device_ptr there = 0;
    cuda_result result = cuda->cuMemHostGetDevicePointer(&there, word, 0);
    write.write_value.address = there;
    if (result == CUDA_OK)
        result = cuda->cuStreamBatchMemOp(stream, 1, &write, 0);
    if (result != CUDA_OK)
        return result;
    result = cuda->cuStreamSynchronize(stream);
    return result == CUDA_OK && shared_word_read(word) != 1 ? CUDA_ERR_NOT_SUPPORTED : result;
}

static cuda_result probe_memory_operations(const struct gpu *gpu, cuda_stream stream)
{
    const struct cuda_driver *cuda = gpu->cuda;
    size_t bytes = machine_page();
    uint64_t *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return CUDA_ERR_OUT_OF_MEMORY;
    cuda_result result = cuda->cuMemHostRegister(
        page, bytes, CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP);
    if (result == CUDA_OK) {
        result = write_word(gpu, stream, page);
        cuda->cuMemHostUnregister(page);
    }
    munmap(page, bytes);
    return result;
}

cuda_result batch_ends_open(struct batch_ends *ends, const struct gpu *gpu, cuda_stream stream)
{
    *ends = (struct batch_ends){.gpu = gpu, .lock = PTHREAD_MUTEX_INITIALIZER};
    int words = 0;
    cuda_result result = gpu->cuda->cuDeviceGetAttribute(
        &words, CUDA_ATTR_CAN_USE_64_BIT_STREAM_MEM_OPS, gpu->handle);
    ends->refused =
        result == CUDA_OK && words ? probe_memory_operations(gpu, stream) : CUDA_ERR_NOT_SUPPORTED;
    if (cuda_driver_error_is_sticky(ends->refused))
        return ends->refused;
    for (unsigned i = 0; batch_ends_polled(ends) && i < EVENTS_FIRST; i++) {
        struct batch_end *end;
        result = make_end(ends, &end);
        if (result != CUDA_OK)
            return result;
        keep_end(ends, end);
    }
    return CUDA_OK;
}

void batch_ends_close(struct batch_ends *ends)
{
    if (!ends->gpu)
        return;
    while (ends->unused) {
        struct batch_end *end = ends->unused;
        ends->unused = end->next;
        ends->gpu->cuda->cuEventDestroy(end->event);
        free(end);
    }
    pthread_mutex_destroy(&ends->lock);
    ends->gpu = NULL;
}

cuda_result batch_ends_note(struct batch_ends *ends, struct client_stream *stream, uint64_t value)
{
    struct batch_end *end;
    cuda_result result = take_end(ends, &end);
    if (result != CUDA_OK)
        return result;
    result = ends->gpu->cuda->cuEventRecord(end->event, stream->bound->handle);
    if (result != CUDA_OK) {
        keep_end(ends, end);
        return result;
    }
    end->next = NULL;
    end->value = value;
    if (stream->last_end)
        stream->last_end->next = end;
    else
        stream->first_end = end;
    stream->last_end = end;
    return CUDA_OK;
}

void batch_ends_look(struct batch_ends *ends, struct client_stream *stream)
{
    uint64_t value = 0;
    while (stream->first_end &&
           ends->gpu->cuda->cuEventQuery(stream->first_end->event) == CUDA_OK) {
        struct batch_end *end = stream->first_end;
        value = end->value;
        stream->first_end = end->next;
        if (!end->next)
            stream->last_end = NULL;
        keep_end(ends, end);
    }
    if (!value)
        return;
    /* The client's word first, as the device writes them: a thread that sees the private one move
     * may wake sleepers on the client's. */
    shared_word_publish(&stream->ring.ring.status->completed, value);
    client_stream_set_reached(stream, value);
}
