/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/base/driver_registered.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/list.h"

struct range {
    struct list_link link;
    uint64_t address, bytes;
    cuda_device device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list ranges = LIST_INIT(ranges); /* under the lock */

/* The lock is held. */
static struct range *find_overlap(uint64_t address, uint64_t bytes)
{
    struct range *range;
    LIST_FOR_EACH (range, &ranges, link)
        if (address < range->address + range->bytes && range->address < address + bytes)
            break;
    return range;
}

cuda_result driver_registered_add(uint64_t address, uint64_t bytes, cuda_device device)
{
    cuda_result result = CUDA_OK;
    struct range *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERR_OUT_OF_MEMORY;
    made->address = address;
    made->bytes = bytes;
    made->device = device;
    pthread_mutex_lock(&lock);
    if (find_overlap(address, bytes))
        result = CUDA_ERR_HOST_MEMORY_ALREADY_REGISTERED;
    else
        list_append(&ranges, &made->link);
    pthread_mutex_unlock(&lock);
    if (result != CUDA_OK)
        free(made);
    return result;
}

cuda_result driver_registered_remove(uint64_t address)
{
    pthread_mutex_lock(&lock);
    struct range *range = find_overlap(address, 1);
    cuda_result result = !range                      ? CUDA_ERR_HOST_MEMORY_NOT_REGISTERED
                         : range->address != address ? CUDA_ERR_INVALID_VALUE
                                                     : CUDA_OK;
    if (result == CUDA_OK)
        list_remove(&range->link);
    pthread_mutex_unlock(&lock);
    if (result == CUDA_OK)
        free(range);
    return result;
}

void driver_registered_forget(cuda_device device)
{
    struct range *range;
    pthread_mutex_lock(&lock);
    LIST_FOR_EACH (range, &ranges, link)
        if (range->device == device) {
            list_remove(&range->link);
            free(range);
        }
    pthread_mutex_unlock(&lock);
}

bool driver_registered_find(uint64_t address, uint64_t *start, uint64_t *bytes)
{
    pthread_mutex_lock(&lock);
    const struct range *range = find_overlap(address, 1);
    if (range) {
        *start = range->address;
        *bytes = range->bytes;
    }
    pthread_mutex_unlock(&lock);
    return range != NULL;
}
