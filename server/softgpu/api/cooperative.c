/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/api/cooperative.h"

#include <pthread.h>
#include <stdlib.h>

#include "server/softgpu/api/api.h"
#include "server/softgpu/memory/memory.h"

/* Launches on one device that have not ended, those that wait included. */
enum { PLACES = 4096, WORDS = PLACES / 64 };

/* As the toolkit's cooperative_groups.h finds it. */
struct place {
    uint32_t bytes;
    uint32_t barrier;
    uint32_t unused[2];
};

struct meeting {
    void (*release)(void *owner); /* of the launch itself */
    void *owner;
    unsigned device, number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* nothing is called while it is held */
static struct {
    cuda_device_ptr base; /* 0 until the first such launch */
    uint64_t taken[WORDS];
} places[SETTINGS_MAX_DEVICES];

static cuda_result make_places(unsigned device)
{
    cuda_device_ptr base = 0;
    bool made;

    pthread_mutex_lock(&lock);
    made = places[device].base != 0;
    pthread_mutex_unlock(&lock);
    if (made)
        return CUDA_OK;
    DRIVER_TRY(memory_alloc(device, &base, PLACES * sizeof(struct place)));
    pthread_mutex_lock(&lock);
    made = places[device].base != 0; /* by another thread, meanwhile */
    if (!made)
        places[device].base = base;
    pthread_mutex_unlock(&lock);
    if (made)
        (void)memory_free(base);
    return CUDA_OK;
}

/* PLACES: none is left. */
static unsigned take_place(unsigned device)
{
    unsigned number = PLACES;

    pthread_mutex_lock(&lock);
    for (unsigned word = 0; word < WORDS && number == PLACES; word++) {
        uint64_t *taken = &places[device].taken[word];

        if (*taken != UINT64_MAX) {
            const unsigned bit = (unsigned)__builtin_ctzll(~*taken);

            *taken |= UINT64_C(1) << bit;
            number = word * 64 + bit;
        }
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static void end_meeting(void *owner)
{
    struct meeting *meeting = owner;

    pthread_mutex_lock(&lock);
    places[meeting->device].taken[meeting->number / 64] &= ~(UINT64_C(1) << (meeting->number % 64));
    pthread_mutex_unlock(&lock);
    meeting->release(meeting->owner);
    free(meeting);
}

static bool fits(const struct stream *stream, const struct launch *launch)
{
    const uint32_t *threads = launch->threads, *grid = launch->grid;
    const unsigned at_once =
        grid_blocks_per_sm(threads[0] * threads[1] * threads[2],
                           launch->static_shared_bytes + launch->dynamic_shared_bytes) *
        device_sm_set_count(&stream->sms);

    return (uint64_t)grid[0] * grid[1] <= at_once &&
           (uint64_t)grid[0] * grid[1] * grid[2] <= at_once;
}

cuda_result cooperative_prepare(const struct stream *stream, struct launch *launch)
{
    const unsigned device = stream->device->ordinal;
    struct meeting *meeting;
    struct place *place;

    if (!fits(stream, launch))
        return CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE;
    DRIVER_TRY(make_places(device));
    meeting = malloc(sizeof(*meeting));
    if (!meeting)
        return CUDA_ERR_OUT_OF_MEMORY;
    *meeting = (struct meeting){launch->release, launch->owner, device, take_place(device)};
    if (meeting->number == PLACES) {
        free(meeting);
        return CUDA_ERR_OUT_OF_MEMORY;
    }
    /* A device address is the host's. */
    place = (struct place *)(uintptr_t)places[device].base + meeting->number;
    *place = (struct place){.bytes = sizeof(*place)};
    launch->workspace = (uintptr_t)place;
    launch->release = end_meeting;
    launch->owner = meeting;
    return CUDA_OK;
}
