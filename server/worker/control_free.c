/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* What had to wait until the device was done with it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/timeline.h"
#include "server/worker/control.h"
#include "server/worker/control_client.h"
#include "server/worker/level.h"
#include "server/worker/memory.h"
#include "server/worker/module.h"

int control_send_with(struct worker *worker, uint16_t opcode, uint32_t serial, uint32_t client,
                      const void *body, const void *tail, size_t tail_bytes, const int *fds,
                      unsigned fd_count)
{
    for (;;) {
        int error = channel_send(worker->channel, opcode, serial, client, body, tail, tail_bytes,
                                 fds, fd_count);
        if (error != -EAGAIN)
            return error;
        struct pollfd room = {.fd = worker->channel, .events = POLLOUT};
        if (poll(&room, 1, -1) < 0 && errno != EINTR)
            return -errno;
    }
}

int control_send(struct worker *worker, uint16_t opcode, uint32_t serial, uint32_t client,
                 const void *body)
{
    return control_send_with(worker, opcode, serial, client, body, NULL, 0, NULL, 0);
}

int control_refuse(struct worker *worker, uint32_t serial, uint32_t client, uint32_t error,
                   const char *text)
{
    struct proto_failed failed = {.error = error ? error : PROTO_ERROR_UNKNOWN};
    /* A driver call of this thread may be the first to learn that the context is lost. "unknown"
     * also stands for results that the error table lacks, so it proves nothing. */
    if (error != PROTO_ERROR_UNKNOWN && cuda_error_is_sticky((cuda_result)error))
        worker_fail(worker, (cuda_result)error, "a request");
    strncpy(failed.text, text, sizeof failed.text - 1);
    /* The text may quote a client; the receiver would refuse control characters. */
    for (char *c = failed.text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return control_send(worker, PROTO_FAILED, serial, client, &failed);
}

static void destroy_event(struct client *client, uint32_t handle)
{
    pthread_mutex_lock(&client->lock);
    cuda_event gone = client->events[handle - 1].handle;
    client->events[handle - 1] = (struct event){.handle = NULL};
    client->event_live--;
    pthread_mutex_unlock(&client->lock);
    client->device->cuda->cuEventDestroy(gone);
}

static uint32_t carry_out(struct client *client, const struct memory_free *request,
                          struct refusal *why)
{
    switch (request->kind) {
    case MEMORY_FREE_NOTHING:
        return 0;
    case MEMORY_FREE_DEVICE:
        return memory_unmap(client, request->address, request->count, why);
    case MEMORY_FREE_HOST:
        return memory_host_unmap(client, request->address, request->count, why);
    case MEMORY_FREE_MODULE:
        module_destroy(client, module_find(client, request->handle));
        return 0;
    case MEMORY_FREE_EVENT:
        destroy_event(client, request->handle);
        return 0;
    }
    return PROTO_ERROR_UNKNOWN;
}

int control_finish_frees(struct worker *worker, struct client *client)
{
    for (;;) {
        pthread_mutex_lock(&client->lock);
        struct memory_free *request = memory_free_take(client);
        pthread_mutex_unlock(&client->lock);
        if (!request)
            return 0;
        struct refusal why = {""};
        uint32_t refused = carry_out(client, request, &why);
        uint32_t serial = request->serial;
        free(request);
        int error = 0;
        if (refused)
            error = control_refuse(worker, serial, client->number, refused, why.text);
        else if (serial)
            error = control_send(worker, PROTO_DONE, serial, client->number, NULL);
        if (error < 0)
            return error;
    }
}

void control_finish_streams(struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&client->lock);
    for (uint32_t i = 0; client->closing_count && i < client->stream_count; i++) {
        struct stream *stream = &client->streams[i];
        if (!stream_finished(stream))
            continue;
        stream_pool_unbind(&worker->pool, stream);
        bits_clear(client->ready, i);
        stream->state = STREAM_FREE;
        client->closing_count--;
    }
    pthread_mutex_unlock(&client->lock);
}

uint32_t control_make_places(struct worker *worker)
{
    struct share_set atoms;
    struct place *place;
    while ((place = places_to_make(&worker->places, &atoms))) {
        struct client *client = (struct client *)((char *)place - offsetof(struct client, place));
        struct partition *partition;
        uint32_t error = partition_get(&worker->partitions, &atoms, &partition);
        if (error) {
            places_made(&worker->places, place, NULL);
            return error;
        }
        /* Made here so that the submitter need not; if it can't be made the submitter shares one.
         */
        cuda_result made =
            stream_pool_prepare(&worker->pool, partition, client->streams[0].priority);
        if (cuda_error_is_sticky(made))
            worker_fail(worker, made, "making a stream");
        places_made(&worker->places, place, partition);
    }
    return 0;
}

/* Rings keep their CUstream when their work is done, for the next time. */
static void leave_old_partitions(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        pthread_mutex_lock(&client->lock);
        stream_pool_leave(&worker->pool, client);
        pthread_mutex_unlock(&client->lock);
    }
}

/* Returns whether there are more than should be kept. */
static bool drop_unused(struct worker *worker)
{
    struct partition *partition;
    while ((partition = partition_take_unused(&worker->partitions))) {
        if (!stream_pool_drained(&worker->pool, partition))
            leave_old_partitions(worker);
        if (!stream_pool_drained(&worker->pool, partition)) {
            partition_return(&worker->partitions, partition);
            return true;
        }
        stream_pool_drop(&worker->pool, partition);
        partition_destroy(&worker->partitions, partition);
    }
    return false;
}

bool control_finish_places(struct worker *worker)
{
    uint32_t error = control_make_places(worker);
    if (error && error != worker->place_error)
        log_warning("device %u: a client can't be put on other multiprocessors yet: %s",
                    worker->device.info.device, error_sentence(error));
    worker->place_error = error;
    return drop_unused(worker) || error;
}

static void free_all_memory(struct client *client)
{
    struct refusal why;
    while (client->range_count) {
        struct range range = client->ranges[client->range_count - 1];
        uint64_t count = range.end - range.start;
        if (range.kind == RANGE_DEVICE && memory_unmap(client, range.start, count, &why)) {
            log_error("client %u: %s: 0x%llx is lost until this worker ends", client->number,
                      why.text, (unsigned long long)range.start);
            memory_forget(client, range.start, count);
        } else if (range.kind != RANGE_DEVICE) {
            memory_host_unmap(client, range.start, count, &why);
        }
    }
}

void control_drop_client(struct worker *worker, struct client *client)
{
    worker_remove_client(worker, client);
    level_apply(worker);
    for (uint32_t i = 0; i < client->stream_count; i++) {
        stream_pool_unbind(&worker->pool, &client->streams[i]);
        /* Nothing more will ever be reached: who waits for it on another device must not hang. */
        __atomic_store_n(client->streams[i].twin, UINT64_MAX, __ATOMIC_RELEASE);
    }
    account_forget(&worker->account, client);
    stream_pool_forget(&worker->pool, client);
    while (client->frees) {
        struct memory_free *request = client->frees;
        client->frees = request->next;
        free(request);
    }
    client->frees_end = &client->frees;
    module_destroy_all(client); /* with its variables' ranges */
    free_all_memory(client);
    for (uint32_t i = 0; i < client->event_count; i++)
        if (client->events[i].handle)
            destroy_event(client, i + 1);
    gate_remove(&worker->gate, client);
    place_remove(&worker->places, &client->place);
    submitter_heed(&worker->submitter);
    if (client->partition)
        partition_put(&worker->partitions, client->partition);
    client_destroy(client);
}

static bool all_quiet(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (!client_is_quiet(worker->clients[i]))
            return false;
    return true;
}

bool control_drop_all(struct worker *worker)
{
    uint64_t end = timeline_now() + 1000000000u;
    loader_stop(&worker->loader);
    loader_stop(&worker->clearer);
    submitter_stop(&worker->submitter);
    while (!all_quiet(worker)) {
        if (timeline_now() > end || __atomic_load_n(&worker->failed, __ATOMIC_SEQ_CST))
            return false;
        usleep(1000);
    }
    completer_stop(&worker->completer);
    while (worker->client_count)
        control_drop_client(worker, worker->clients[worker->client_count - 1]);
    return true;
}
