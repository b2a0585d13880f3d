/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/messages.h"

/* Registers memory that the device writes; *address becomes its address on the device. */
static cuda_result register_shm(const struct gpu *gpu, const struct shm *shm, size_t bytes,
                                uint64_t *address)
{
    const struct cuda_driver *cuda = gpu->cuda;
    cuda_result result = cuda->cuMemHostRegister(
        shm->base, bytes, CUDA_HOST_REGISTER_PORTABLE | CUDA_HOST_REGISTER_DEVICEMAP);
    if (result != CUDA_OK)
        return result;
    /* From now on it is registered, whatever comes: giving it back waits for the device. */
    *address = (uint64_t)(uintptr_t)shm->base;
    cuda_device_ptr there = 0;
    result = cuda->cuMemHostGetDevicePointer(&there, shm->base, 0);
    if (result == CUDA_OK)
        *address = there;
    return result;
}

static int adopt_memories(struct client *client, const int fds[4])
{
    uint32_t streams = client->stream_count;
    int error = ring_memory_open(&client->rings, streams, fds[0]);
    /* The mapping is enough, and descriptors are the first thing that this process runs out of. */
    close(fds[0]);
    if (error < 0)
        return error;
    error = shm_adopt(&client->status, fds[1], ring_status_bytes(streams), true);
    if (error < 0)
        return error;
    error = shm_adopt(&client->shadows, fds[2], journal_shadow_bytes(streams), true);
    if (error < 0)
        return error;
    client->submit.journal = journal_at(client->shadows.base, streams);
    return 0;
}

static void close_unadopted(const struct client *client, const int fds[4])
{
    if (client->status.fd < 0)
        close(fds[1]);
    if (client->shadows.fd < 0)
        close(fds[2]);
}

void client_unregister(struct client *client)
{
    const struct cuda_driver *cuda = client->gpu->cuda;
    if (client->shadows_device)
        cuda->cuMemHostUnregister(client->shadows.base);
    if (client->status_device)
        cuda->cuMemHostUnregister(client->status.base);
    client->shadows_device = client->status_device = 0;
}

static void release_memories(struct client *client)
{
    shm_release(&client->shadows);
    shm_release(&client->status);
    ring_memory_close(&client->rings);
    if (client->doorbell >= 0)
        close(client->doorbell);
    client_stream_free_table(client->streams, client->stream_count);
    free(client);
}

uint32_t client_create(struct client **out, struct gpu *gpu, uint32_t number,
                       const struct proto_worker_attach *attach, const int fds[4],
                       struct error *why)
{
    struct client *client = calloc(1, sizeof *client);
    struct client_stream *streams = client_stream_make_table(attach->streams);
    if (!client || !streams) {
        client_stream_free_table(streams, attach->streams);
        free(client);
        for (int i = 0; i < 4; i++)
            close(fds[i]);
        return error_set(why, MESSAGE(client_no_memory));
    }
    client->number = number;
    memcpy(client->name, attach->name, sizeof client->name);
    client->name[sizeof client->name - 1] = 0;
    client->gpu = gpu;
    client->control.device_base = attach->device_base;
    client->control.window_bytes = attach->window_bytes;
    client->control.allowance = attach->allowance;
    client->shared.kernel_time = attach->allowance.kernel_time;
    client->shared.priority_first = gpu->info.priority_greatest;
    client->shared.priority_last = gpu->info.priority_least;
    client->stream_count = attach->streams;
    client->streams = streams;
    client->status = client->shadows = SHM_NONE;
    client->doorbell = fds[3];
    client->control.restoring = attach->restored;
    client->control.forgiving = attach->restored;

    int adopted = adopt_memories(client, fds);
    if (adopted < 0) {
        close_unadopted(client, fds);
        release_memories(client);
        return adopted == -EBADF
                   ? error_set(why, MESSAGE(client_memory_unsealed))
                   : error_set(why, error_from_errno(adopted), MESSAGE_TEXT(client_memory_unusable),
                               strerror(-adopted));
    }
    pthread_mutex_init(&client->lock, NULL);
    if (attach->restored)
        suspicion_read(&client->shared.suspicion, client->shadows.base, client->stream_count);
    client_stream_open(client, 0, 0);
    *out = client;
    return 0;
}

uint32_t client_register(struct client *client, struct error *why)
{
    const struct gpu *gpu = client->gpu;
    cuda_result result =
        register_shm(gpu, &client->status, client->status.bytes, &client->status_device);
    if (result == CUDA_OK)
        result = register_shm(gpu, &client->shadows, ring_shadow_bytes(client->stream_count),
                              &client->shadows_device);
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(timelines_register),
                           cuda_driver_error_sentence(result));
}

bool client_is_registered(const struct client *client)
{
    return client->status_device || client->shadows_device;
}

void client_lock(struct client *client)
{
    struct client_signals *signals = &client->signals;
    if (pthread_mutex_trylock(&client->lock) == 0)
        return;
    if (atomic_fetch_add_explicit(&signals->waiting, 1, memory_order_relaxed) == 0)
        atomic_store_explicit(&signals->waits_since, clock_now(), memory_order_relaxed);
    pthread_mutex_lock(&client->lock);
    atomic_fetch_sub_explicit(&signals->waiting, 1, memory_order_relaxed);
}

/* A look of the completer may be so late. Where a client waits for each of its launches the lock is
 * free for most of the time, and a submitter that stepped back at once would cost each launch the
 * time in which the other thread wakes up. */
#define LOCK_OVERDUE_NS 50000

bool client_lock_is_overdue(const struct client *client)
{
    const struct client_signals *signals = &client->signals;
    /* Hints: the lock itself orders what it protects. */
    return atomic_load_explicit(&signals->waiting, memory_order_relaxed) &&
           clock_now() >
               atomic_load_explicit(&signals->waits_since, memory_order_relaxed) + LOCK_OVERDUE_NS;
}

void client_destroy(struct client *client)
{
    assert((client_state(client) == CLIENT_ATTACHING || client_state(client) == CLIENT_LEFT) &&
           "other threads know the client");
    assert(client->objects.range_count == 0 && "memory of the client is left");
    assert(!client_is_registered(client) && "memory of the client is registered");
    assert(client->control.modules == NULL && "a module of the client is left");
    assert(client->objects.event_live == 0 && "an event of the client is left");
    assert(queue_is_empty(&client->shared.frees) && "a request of the client is left");
    assert(queue_is_empty(&client->control.ready) && "a request of the client is left");
    for (uint32_t i = 0; i < client->stream_count; i++)
        assert(client->streams[i].bound == NULL && "a stream of the client is bound");
    for (uint32_t i = 0; i < client->objects.link_count; i++)
        shm_release(&client->objects.links[i].shadows);
    free(client->control.last_call);
    free(client->objects.links);
    free(client->objects.functions);
    free(client->objects.events);
    free(client->objects.ranges);
    free(client->objects.twins);
    pthread_mutex_destroy(&client->lock);
    release_memories(client);
}

void client_event_forget(struct client *client, uint32_t handle)
{
    client_lock(client);
    client->objects.events[handle - 1] = (struct event){.handle = NULL};
    client->objects.event_live--;
    pthread_mutex_unlock(&client->lock);
}

bool client_is_quiet(const struct client *client)
{
    for (uint32_t i = 0; i < client->stream_count; i++)
        if (client_stream_reached(&client->streams[i]) < client_stream_written(&client->streams[i]))
            return false;
    return true;
}

uint32_t client_in_flight(const struct client *client)
{
    uint64_t sum = 0;
    for (uint32_t i = bits_next(client->shared.busy, 0, client->stream_count);
         i < client->stream_count; i = bits_next(client->shared.busy, i + 1, client->stream_count))
        sum += client->streams[i].ring.value - client_stream_reached(&client->streams[i]);
    return sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
}

uint32_t client_lacking(const struct client *client, uint32_t each)
{
    uint32_t sum = 0;
    for (uint32_t i = bits_next(client->shared.ready, 0, client->stream_count);
         i < client->stream_count; i = bits_next(client->shared.ready, i + 1, client->stream_count))
        sum += client_stream_lacking(&client->streams[i], each);
    return sum;
}

bool client_has_drained_ring(const struct client *client)
{
    for (uint32_t i = bits_next(client->shared.ready, 0, client->stream_count);
         i < client->stream_count; i = bits_next(client->shared.ready, i + 1, client->stream_count))
        if (!client_stream_in_flight(&client->streams[i]))
            return true;
    return false;
}
