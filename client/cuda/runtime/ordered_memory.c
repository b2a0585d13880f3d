/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/runtime/ordered_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "client/cuda/runtime/base/runtime_driver.h"
#include "common/list.h"

struct block {
    cuda_device_ptr ptr;
    size_t size;
    cuda_context context;
    cuda_stream stream;
    cuda_event freed;           /* its stream has come so far */
    struct list_link in_blocks; /* or in a list of what was taken out of it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list blocks = LIST_INIT(blocks);
static atomic_size_t block_count; /* so that programs without freed blocks take no lock */

static cuda_context current_context(void)
{
    cuda_context context = NULL;

    return DRIVER(cuCtxGetCurrent, &context) == CUDART_OK ? context : NULL;
}

/* The lock is held. */
static void take(struct block *block)
{
    list_remove(&block->in_blocks);
    atomic_fetch_sub(&block_count, 1);
}

static void put(struct block *block)
{
    pthread_mutex_lock(&lock);
    list_prepend(&blocks, &block->in_blocks);
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
    struct block *block;

    pthread_mutex_lock(&lock);
    LIST_FOR_EACH (block, &blocks, in_blocks)
        if (block->context == context && block->size == size &&
            (block->stream == stream || DRIVER(cuEventQuery, block->freed) == CUDART_OK)) {
            take(block);
            break;
        }
    pthread_mutex_unlock(&lock);
    return block;
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
    *block =
        (struct block){.ptr = ptr, .size = size, .context = current_context(), .stream = stream};
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
    struct block *block;

    if (atomic_load(&block_count) == 0)
        return false;
    pthread_mutex_lock(&lock);
    LIST_FOR_EACH (block, &blocks, in_blocks)
        if (block->ptr == ptr)
            break;
    pthread_mutex_unlock(&lock);
    return block != NULL;
}

/* Moves the blocks of the current context to another list; with idle, those alone whose streams
 * have come so far. */
static void take_blocks(bool idle, struct list *taken)
{
    cuda_context context = current_context();
    struct block *block;

    pthread_mutex_lock(&lock);
    LIST_FOR_EACH (block, &blocks, in_blocks) {
        if (block->context != context || (idle && DRIVER(cuEventQuery, block->freed) != CUDART_OK))
            continue;
        take(block);
        list_prepend(taken, &block->in_blocks);
    }
    pthread_mutex_unlock(&lock);
}

static bool give_back(bool idle)
{
    struct list taken = LIST_INIT(taken);
    struct block *block;
    bool any = false;

    if (atomic_load(&block_count) > 0)
        take_blocks(idle, &taken);
    LIST_FOR_EACH (block, &taken, in_blocks) {
        if (DRIVER(cuEventSynchronize, block->freed) == CUDART_OK)
            (void)DRIVER(cuMemFree, block->ptr);
        drop(block);
        any = true;
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

void ordered_memory_forget(cuda_context context)
{
    struct block *block;

    pthread_mutex_lock(&lock);
    LIST_FOR_EACH (block, &blocks, in_blocks)
        if (block->context == context) {
            take(block);
            drop(block);
        }
    pthread_mutex_unlock(&lock);
}
