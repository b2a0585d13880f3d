/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/ordered_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/cuda/runtime/base/runtime_driver.h"

struct block {
    cuda_device_ptr ptr;
    size_t size;
    cuda_context context;
    cuda_stream stream;
    cuda_event freed; /* its stream has come so far */
    struct block *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static atomic_size_t block_count; /* so that programs without freed blocks take no lock */

static cuda_context current_context(void)
{
    cuda_context context = NULL;

    return DRIVER(cuCtxGetCurrent, &context) == CUDART_OK ? context : NULL;
}

/* The lock is held. */
static struct block *take(struct block **at)
{
    struct block *block = *at;

    *at = block->next;
    atomic_fetch_sub(&block_count, 1);
    return block;
}

static void put(struct block *block)
{
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    atomic_fetch_add(&block_count, 1);
    pthread_mutex_unlock(&lock);
}

static void drop(struct block *block)
{
    (void)DRIVER(cuEventDestroy, block->freed);
    free(block);
}

/* A block of just that size that the stream may use: it is idle, or was freed in the same stream.
 * NULL if there is none. */
static struct block *find_fit(cuda_context context, size_t size, cuda_stream stream)
{
    struct block *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at && !found; at = &(*at)->next)
        if ((*at)->context == context && (*at)->size == size &&
            ((*at)->stream == stream || DRIVER(cuEventQuery, (*at)->freed) == CUDART_OK)) {
            found = take(at);
            break;
        }
    pthread_mutex_unlock(&lock);
    return found;
}

cudart_error ordered_memory_alloc(cuda_device_ptr *ptr, size_t size, cuda_stream stream)
{
    struct block *block =
        atomic_load(&block_count) > 0 ? find_fit(current_context(), size, stream) : NULL;
    cudart_error error;

    if (block) {
        /* A handle may have meant another stream then, so the event says the order. */
        error = DRIVER(cuStreamWaitEvent, stream, block->freed, 0);
        if (error != CUDART_OK) {
            put(block);
            return error;
        }
        *ptr = block->ptr;
        drop(block);
        return CUDART_OK;
    }
    error = DRIVER(cuMemAlloc, ptr, size);
    if (error == CUDART_MEMORY_ALLOCATION && ordered_memory_await())
        error = DRIVER(cuMemAlloc, ptr, size);
    return error;
}

cudart_error ordered_memory_free(cuda_device_ptr ptr, cuda_stream stream)
{
    struct block *block;
    cuda_device_ptr base = 0;
    size_t size = 0;
    cudart_error error = DRIVER(cuMemGetAddressRange, &base, &size, ptr);

    if (error != CUDART_OK || base != ptr || ordered_memory_is_free(ptr))
        return CUDART_INVALID_VALUE;
    block = malloc(sizeof(*block));
    if (!block)
        return CUDART_MEMORY_ALLOCATION;
    *block = (struct block){ptr, size, current_context(), stream, NULL, NULL};
    error = DRIVER(cuEventCreate, &block->freed, CUDA_EVENT_DISABLE_TIMING);
    if (error != CUDART_OK) {
        free(block);
        return error;
    }
    error = DRIVER(cuEventRecord, block->freed, stream);
    if (error != CUDART_OK) {
        drop(block);
        return error;
    }
    put(block);
    return CUDART_OK;
}

bool ordered_memory_is_free(cuda_device_ptr ptr)
{
    bool found = false;

    if (atomic_load(&block_count) == 0)
        return false;
    pthread_mutex_lock(&lock);
    for (const struct block *block = blocks; block && !found; block = block->next)
        found = block->ptr == ptr;
    pthread_mutex_unlock(&lock);
    return found;
}

/* Takes the blocks of the current context out of the list; with idle, those alone whose streams
 * have come so far. */
static struct block *take_blocks(bool idle)
{
    cuda_context context = current_context();
    struct block *taken = NULL;

    pthread_mutex_lock(&lock);
    for (struct block **at = &blocks; *at;) {
        struct block *block;

        if ((*at)->context != context ||
            (idle && DRIVER(cuEventQuery, (*at)->freed) != CUDART_OK)) {
            at = &(*at)->next;
            continue;
        }
        block = take(at);
        block->next = taken;
        taken = block;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

static bool give_back(bool idle)
{
    struct block *taken = atomic_load(&block_count) > 0 ? take_blocks(idle) : NULL;
    const bool any = taken != NULL;

    while (taken) {
        struct block *block = taken;

        taken = block->next;
        if (DRIVER(cuEventSynchronize, block->freed) == CUDART_OK)
            (void)DRIVER(cuMemFree, block->ptr);
        drop(block);
    }
    return any;
}

void ordered_memory_trim(void)
{
    (void)give_back(true);
}

bool ordered_memory_await(void)
{
    return give_back(false);
}
