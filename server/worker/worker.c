/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/error.h"
#include "common/log.h"
#include "common/timeline.h"

/* Under the lock of the places: the client runs elsewhere; if there was no room for it, it may go
 * on. */
static void place_changed(void *context, struct place *place)
{
    struct worker *worker = context;
    struct client *client = (struct client *)((char *)place - offsetof(struct client, place));
    gate_place(&worker->gate, client, &place->share.now);
    submitter_heed(&worker->submitter);
    if (!place->held_since)
        return;
    __atomic_store_n(&client->recheck, 1, __ATOMIC_SEQ_CST);
    submitter_wake(&worker->submitter);
}

static void place_to_make(void *context)
{
    worker_wake_control(context);
}

static uint32_t open_places(struct worker *worker, char *why, size_t why_size)
{
    const struct partitions *partitions = &worker->partitions;
    struct places_notice notice = {place_changed, place_to_make, worker};
    uint32_t error = partitions_open(&worker->partitions, &worker->device, why, why_size);
    if (error)
        return error;
    if (places_open(&worker->places, &worker->partitions, &notice) == 0)
        return 0;
    snprintf(why, why_size, "dividing the multiprocessors: %u groups of %u and one of %u",
             partitions->count, partitions->atom_size, partitions->remainder);
    return PROTO_ERROR_UNKNOWN;
}

uint32_t worker_start(struct worker *worker, const struct device *device, int channel,
                      uint64_t image_memory, char *why, size_t why_size)
{
    worker->device = *device;
    worker->channel = channel;
    worker->clients = NULL;
    worker->client_count = worker->client_room = 0;
    worker->failed = 0;
    worker->account.cuda = NULL;
    worker->partitions.device = NULL;
    worker->places.partitions = NULL;
    trace_open(&worker->trace);
    budget_open(&worker->budget, image_memory);
    worker->submitter.event = worker->submitter.epoll = -1;
    worker->submitter.running = worker->completer.running = false;
    worker->loader.worker = worker->clearer.worker = NULL;
    worker->submitter.active = NULL;
    worker->submitter.command.cuda = NULL;
    pthread_mutex_init(&worker->clients_lock, NULL);
    stream_pool_open(&worker->pool, &worker->device);
    gate_open(&worker->gate);
    worker->gate.watch.trace = &worker->trace;
    worker->control_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    uint32_t error = 0;
    if (worker->control_event < 0) {
        snprintf(why, why_size, "the control thread's doorbell: %s", strerror(errno));
        error = PROTO_ERROR_SERVER_RESOURCES;
    }
    if (!error)
        error = open_places(worker, why, why_size);
    if (!error) {
        cuda_result opened =
            account_open(&worker->account, worker->device.cuda, &worker->partitions);
        if (opened != CUDA_OK) {
            snprintf(why, why_size, "making timing events: %s", cuda_error_sentence(opened));
            error = error_from_cuda((int)opened);
        }
        worker->account.trace = &worker->trace;
    }
    /* The completer looks at the submitter even while there are no clients. */
    if (!error)
        error = submitter_start(&worker->submitter, worker, why, why_size);
    if (!error)
        error = completer_start(&worker->completer, worker, why, why_size);
    if (!error)
        error = loader_start(&worker->loader, worker, LOADER_MODULES, why, why_size);
    if (!error)
        error = loader_start(&worker->clearer, worker, LOADER_MEMORY, why, why_size);
    if (error) {
        worker_stop(worker);
        return error;
    }
    worker->device.info.partition_multiprocessors =
        worker->partitions.supported ? worker->partitions.atom_size : 0;
    if (!worker->partitions.supported)
        log_warning("device %u: shares of multiprocessors are enforced by duty cycle: %s",
                    worker->device.info.device, worker->partitions.why);
    return 0;
}

void worker_stop(struct worker *worker)
{
    loader_stop(&worker->loader);
    loader_stop(&worker->clearer);
    submitter_stop(&worker->submitter);
    completer_stop(&worker->completer);
    trace_stop(&worker->trace);
    account_close(&worker->account);
    stream_pool_close(&worker->pool);
    places_close(&worker->places);
    gate_close(&worker->gate);
    partitions_close(&worker->partitions);
    device_close(&worker->device);
    if (worker->control_event >= 0)
        close(worker->control_event);
    worker->control_event = -1;
    free(worker->clients);
    worker->clients = NULL;
    pthread_mutex_destroy(&worker->clients_lock);
    budget_close(&worker->budget);
}

void worker_wake_control(struct worker *worker)
{
    uint64_t one = 1;
    ssize_t written = write(worker->control_event, &one, sizeof one);
    (void)written;
}

void worker_end_clients(struct worker *worker, uint32_t error)
{
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        struct proto_stream_status *streams = client->streams[0].ring.ring.status;
        timeline_fail(ring_status_header(client->status.base), streams, client->stream_count,
                      error);
    }
    pthread_mutex_unlock(&worker->clients_lock);
}

void worker_fail(struct worker *worker, cuda_result result, const char *during)
{
    uint32_t none = 0;
    uint32_t error = error_from_cuda((int)result);
    if (!error)
        error = PROTO_ERROR_UNKNOWN;
    if (!__atomic_compare_exchange_n(&worker->failed, &none, error, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST))
        return;
    struct proto_worker_fault fault = {.error = error};
    const char *name = cuda_error_name(result);
    snprintf(fault.text, sizeof fault.text, "device %u: %s during %s (%s)",
             worker->device.info.device, cuda_error_sentence(result), during,
             name ? name : "unnamed");
    log_error("%s", fault.text);
    worker_end_clients(worker, error);
    channel_send(worker->channel, PROTO_WORKER_FAULT, 0, 0, &fault, NULL, 0, NULL, 0);
    worker_wake_control(worker);
}

void worker_trace_share(struct worker *worker, const struct client *client)
{
    const struct partition *partition = client->partition;
    if (!partition || !trace_is_on(&worker->trace))
        return;
    uint64_t now = timeline_now();
    struct proto_trace_record record = {.kind = TRACE_SHARE,
                                        .client = client->number,
                                        .value = partition->multiprocessors,
                                        .from = now,
                                        .to = now};
    memcpy(record.atoms, partition->atoms.bits, sizeof record.atoms);
    trace_add(&worker->trace, &record);
}

void worker_trace_held(struct worker *worker, const struct client *client, uint64_t from,
                       uint64_t to)
{
    struct proto_trace_record record = {.kind = TRACE_HOLD,
                                        .client = client->number,
                                        .value = TRACE_HELD_THREADS,
                                        .from = from,
                                        .to = to};
    trace_add(&worker->trace, &record);
}

void worker_move_client(struct worker *worker, struct client *client, struct partition *to)
{
    struct partition *old = client->partition;
    client->partition = to;
    worker_trace_share(worker, client);
    if (old && partition_put(&worker->partitions, old))
        worker_wake_control(worker);
}

int worker_add_client(struct worker *worker, struct client *client)
{
    int error = 0;
    pthread_mutex_lock(&worker->clients_lock);
    if (worker->client_count == worker->client_room) {
        uint32_t room = worker->client_room ? worker->client_room * 2 : 64;
        struct client **clients = realloc(worker->clients, room * sizeof(struct client *));
        if (clients) {
            worker->clients = clients;
            worker->client_room = room;
        } else {
            error = -ENOMEM;
        }
    }
    if (!error)
        worker->clients[worker->client_count++] = client;
    pthread_mutex_unlock(&worker->clients_lock);
    return error;
}

void worker_remove_client(struct worker *worker, struct client *client)
{
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (worker->clients[i] == client) {
            worker->clients[i] = worker->clients[--worker->client_count];
            break;
        }
    pthread_mutex_unlock(&worker->clients_lock);
}

struct client *worker_find_client(struct worker *worker, uint32_t number)
{
    /* Only the calling control thread changes the table. */
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (worker->clients[i]->number == number)
            return worker->clients[i];
    return NULL;
}
