/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/queue_probe.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "common/clock.h"
#include "server/worker/sharing/driver_queue.h"

/* An event that is not reached for so long is held up. It is less than what the start of a worker
 * takes, and far more than a record does. */
#define PATIENCE_NS (20 * UNITS_MS)
#define LOOK_US     100

/* A machine under load may show one of them late. */
#define MEASUREMENTS 2

struct barrier {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t measures; /* the thread that opens it */
    bool open;
};

struct queue_probe {
    const struct cuda_driver *cuda;
    const cuda_stream *streams;
    uint32_t count;
    cuda_event events[DRIVER_QUEUES];
    bool reached[DRIVER_QUEUES];
    struct barrier barrier;
};

/* A driver may run the function before it returns: then nothing is held up, and nothing measured.
 */
static void wait_at_barrier(void *context)
{
    struct barrier *barrier = context;
    if (pthread_equal(pthread_self(), barrier->measures))
        return;
    pthread_mutex_lock(&barrier->lock);
    while (!barrier->open)
        pthread_cond_wait(&barrier->changed, &barrier->lock);
    pthread_mutex_unlock(&barrier->lock);
}

static void set_barrier(struct barrier *barrier, bool open)
{
    pthread_mutex_lock(&barrier->lock);
    barrier->open = open;
    pthread_cond_broadcast(&barrier->changed);
    pthread_mutex_unlock(&barrier->lock);
}

/* The first CUstream's event stands behind the function, at the head of their queue. */
static cuda_result record_all(struct queue_probe *probe)
{
    cuda_result result = CUDA_OK;
    for (uint32_t i = 0; i < probe->count && result == CUDA_OK; i++) {
        probe->reached[i] = false;
        result = probe->cuda->cuEventRecord(probe->events[i], probe->streams[i]);
    }
    return result;
}

/* Until all events but the first are reached, or none was for some time. */
static cuda_result see_reached(struct queue_probe *probe)
{
    uint64_t last = clock_now();
    uint32_t left = probe->count - 1;
    while (left && clock_now() - last < PATIENCE_NS) {
        for (uint32_t i = 1; i < probe->count; i++) {
            if (probe->reached[i])
                continue;
            cuda_result result = probe->cuda->cuEventQuery(probe->events[i]);
            if (result == CUDA_ERR_NOT_READY)
                continue;
            if (result != CUDA_OK)
                return result;
            probe->reached[i] = true;
            left--;
            last = clock_now();
        }
        if (left)
            usleep(LOOK_US);
    }
    return CUDA_OK;
}

/* The number that explains which events were not reached; `count` if none does. */
static uint32_t count_queues(const struct queue_probe *probe)
{
    uint32_t queues = 1;
    while (queues < probe->count && probe->reached[queues])
        queues++;
    for (uint32_t i = 1; i < probe->count; i++)
        if (probe->reached[i] == (i % queues == 0))
            return probe->count;
    return queues;
}

static cuda_result measure_queues(struct queue_probe *probe, uint32_t *queues)
{
    const struct cuda_driver *cuda = probe->cuda;
    set_barrier(&probe->barrier, false);
    cuda_result result =
        cuda->cuLaunchHostFunc(probe->streams[0], wait_at_barrier, &probe->barrier);
    if (result != CUDA_OK)
        return result;
    result = record_all(probe);
    if (result == CUDA_OK)
        result = see_reached(probe);
    set_barrier(&probe->barrier, true);
    /* The function uses the barrier until then. */
    for (uint32_t i = 0; i < probe->count; i++) {
        cuda_result ended = cuda->cuStreamSynchronize(probe->streams[i]);
        if (result == CUDA_OK)
            result = ended;
    }
    *queues = count_queues(probe);
    return result;
}

static cuda_result measure_twice(struct queue_probe *probe, uint32_t *queues)
{
    uint32_t seen[MEASUREMENTS] = {0};
    for (int i = 0; i < MEASUREMENTS; i++) {
        cuda_result result = measure_queues(probe, &seen[i]);
        if (result != CUDA_OK || seen[i] == probe->count)
            return result;
    }
    if (seen[0] == seen[1])
        *queues = seen[0];
    return CUDA_OK;
}

cuda_result queue_probe_run(const struct gpu *gpu, const cuda_stream *streams, uint32_t count,
                            uint32_t *queues)
{
    struct queue_probe probe = {.cuda = gpu->cuda,
                                .streams = streams,
                                .count = count,
                                .barrier = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                            .changed = PTHREAD_COND_INITIALIZER,
                                            .measures = pthread_self()}};
    uint32_t made = 0;
    cuda_result result = CUDA_OK;
    *queues = count;
    while (made < count && result == CUDA_OK) {
        result = gpu->cuda->cuEventCreate(&probe.events[made], CUDA_EVENT_DISABLE_TIMING);
        made += result == CUDA_OK;
    }
    if (result == CUDA_OK)
        result = measure_twice(&probe, queues);
    while (made)
        gpu->cuda->cuEventDestroy(probe.events[--made]);
    return cuda_driver_error_is_sticky(result) ? result : CUDA_OK;
}
