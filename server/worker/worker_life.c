/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* The worker's beginning and end: worker_start and worker_stop. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/worker.h"

/* Of what is known of clients' images, beside code_memory. */
#define KNOWN_BYTES ((size_t)4 << 20)

/* The client runs elsewhere now. If there was no room for it, it may be able to go on. Under the
 * lock of struct placement_table. */
static void placement_changed(void *context, struct placement *place)
{
    struct worker *worker = context;
    struct client *client = container_of(place, struct client, place);
    gate_set_sm_groups(&worker->gate, client, &place->allocation.now);
    worker_reschedule(worker);
    if (!place->held_since)
        return;
    client_signal_submitter(client);
    wake_submitter(&worker->wake);
}

static void placement_to_make(void *context)
{
    struct worker *worker = context;
    wake_control(&worker->wake);
}

static void between_leases(void *context)
{
    quiet_calls_nudge(context);
}

/* The first clients find CUstreams, whatever runs by then. */
static uint32_t prepare_first_streams(struct worker *worker, struct error *why)
{
    cuda_result made = usual_partitions_make(&worker->partitions, &worker->pool);
    return made == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)made), MESSAGE_TEXT(streams_driver),
                           cuda_driver_error_sentence(made));
}

static uint32_t open_ends(struct worker *worker, struct error *why)
{
    cuda_result result =
        batch_ends_open(&worker->ends, &worker->gpu, worker->pool.streams[0]->handle);
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(batch_ends),
                           cuda_driver_error_sentence(result));
}

static uint32_t open_clearing(struct worker *worker, struct error *why)
{
    cuda_result result = clearing_open(&worker->gpu.clearing, worker->gpu.cuda);
    return result == CUDA_OK
               ? 0
               : error_set(why, error_from_cuda((int)result), MESSAGE_TEXT(clearing_driver),
                           cuda_driver_error_sentence(result));
}

static uint32_t open_places(struct worker *worker, struct error *why)
{
    const struct partition_table *partitions = &worker->partitions;
    struct placement_events notice = {placement_changed, placement_to_make, worker};
    uint32_t error = partition_table_open(&worker->partitions, &worker->gpu, why);
    if (error)
        return error;
    if (placement_table_open(&worker->places, &worker->partitions, &notice) == 0)
        return 0;
    return error_set(why, MESSAGE(sm_groups_split), partitions->count, partitions->sm_group_size,
                     partitions->rest);
}

/* Afterwards worker_stop may be called, whatever was started. */
static void open_parts(struct worker *worker, const struct gpu *gpu, int channel,
                       uint64_t image_memory)
{
    worker->gpu = *gpu;
    /* The completer sends between its looks, and must not wait for a supervisor that doesn't read.
     */
    fcntl(channel, F_SETFL, O_NONBLOCK);
    worker->channel = channel;
    local_memory_open(&worker->gpu.local, worker->gpu.cuda);
    worker->clients = NULL;
    worker->attaching = NULL;
    worker->epoch = worker->orphan_ns = 0;
    worker->client_count = worker->client_room = 0;
    worker->failed = 0;
    worker->work_order = 0;
    overrun_open(&worker->overrun);
    worker->meter.cuda = NULL;
    worker->ends = (struct batch_ends){.gpu = NULL};
    worker->gpu.clearing.cuda = NULL;
    worker->partitions.gpu = NULL;
    worker->makings = NULL;
    worker->call_probe = (struct call_probe){.begun = 0};
    worker->make_again = 0;
    worker->sizes = (struct usual_sizes){.next = 0};
    worker->places.partitions = NULL;
    trace_open(&worker->trace);
    code_memory_open(&worker->code_memory, image_memory);
    worker->compiler = (struct compiler){.stop = -1};
    known_images_open(&worker->known_images, KNOWN_BYTES);
    wake_open(&worker->wake);
    worker->submitter.epoll = -1;
    worker->submitter.thread.running = worker->completer.thread.running = false;
    worker->loader.worker = worker->clearer.worker = NULL;
    worker->quiet_window.thread.running = worker->driver_caller.thread.running = false;
    driver_calls_open(&worker->driver_calls, &worker->wake);
    quiet_calls_open(&worker->quiet_calls, &worker->wake);
    worker->submitter.scanned = NULL;
    worker->submitter.command.cuda = NULL;
    pthread_mutex_init(&worker->clients_lock, NULL);
    pthread_mutex_init(&worker->fault_lock, NULL);
    stream_pool_open(&worker->pool, &worker->gpu);
    gate_open(&worker->gate);
    worker->accounts = (struct account_table){.first = NULL};
    usage_ledger_init(&worker->ledger);
    worker->gate.watch.trace = &worker->trace;
    worker->gate.between = between_leases;
    worker->gate.between_context = &worker->quiet_calls;
}

static uint32_t open_meter(struct worker *worker, struct error *why)
{
    cuda_result made = meter_open(&worker->meter, worker->gpu.cuda, &worker->partitions);
    if (made != CUDA_OK)
        return error_set(why, error_from_cuda((int)made), MESSAGE_TEXT(timing_events),
                         cuda_driver_error_sentence(made));
    worker->meter.trace = &worker->trace;
    return 0;
}

static uint32_t start_threads(struct worker *worker, struct error *why)
{
    /* Before the completer, which writes the submitter's eventfd even while there are no
     * clients. */
    uint32_t error = submitter_start(&worker->submitter, worker, why);
    if (!error)
        error = completer_start(&worker->completer, worker, why);
    if (!error)
        error = quiet_window_start(&worker->quiet_window, worker, why);
    if (!error)
        error = driver_caller_start(&worker->driver_caller, worker, why);
    if (!error)
        error = loader_start(&worker->loader, worker, LOADER_MODULES, why);
    if (!error)
        error = loader_start(&worker->clearer, worker, LOADER_MEMORY, why);
    return error;
}

uint32_t worker_start(struct worker *worker, const struct gpu *gpu, int channel,
                      uint64_t image_memory, struct error *why)
{
    uint32_t error = 0;
    open_parts(worker, gpu, channel, image_memory);
    int opened = wake_control_open(&worker->wake);
    if (opened < 0) {
        error = error_set(why, MESSAGE(control_doorbell), strerror(-opened));
    }
    if (!error)
        error = open_places(worker, why);
    if (!error)
        error = open_clearing(worker, why);
    if (!error)
        error = prepare_first_streams(worker, why);
    if (!error)
        error = open_ends(worker, why);
    if (!error)
        error = open_meter(worker, why);
    if (!error)
        error = start_threads(worker, why);
    if (error) {
        worker_stop(worker);
        return error;
    }
    worker->gpu.info.partition_multiprocessors =
        worker->partitions.supported ? worker->partitions.sm_group_size : 0;
    if (worker->gpu.local.unloadable != CUDA_OK)
        log_notice(MESSAGE_TEXT(local_memory_unloadable), worker->gpu.info.device,
                   cuda_driver_error_sentence(worker->gpu.local.unloadable));
    if (!worker->partitions.supported)
        log_warning(MESSAGE_TEXT(partitions_off), worker->gpu.info.device,
                    worker->partitions.unsupported);
    return 0;
}

void worker_stop(struct worker *worker)
{
    /* The threads end before anything that they use is freed. CUstreams go before the partitions
     * whose green contexts they belong to, and all objects of the driver before the device. */
    quiet_window_stop(&worker->quiet_window);
    driver_caller_stop(&worker->driver_caller);
    loader_stop(&worker->loader);
    loader_stop(&worker->clearer);
    submitter_stop(&worker->submitter);
    completer_stop(&worker->completer);
    overrun_close(&worker->overrun);
    trace_end(&worker->trace);
    meter_close(&worker->meter);
    batch_ends_close(&worker->ends);
    stream_pool_close(&worker->pool);
    placement_table_close(&worker->places);
    usage_ledger_close(&worker->ledger);
    gate_close(&worker->gate);
    account_table_close(&worker->accounts);
    partition_table_close(&worker->partitions);
    clearing_close(&worker->gpu.clearing);
    local_memory_close(&worker->gpu.local, worker->gpu.cuda);
    gpu_close(&worker->gpu);
    wake_close(&worker->wake);
    free(worker->clients);
    worker->clients = NULL;
    pthread_mutex_destroy(&worker->clients_lock);
    pthread_mutex_destroy(&worker->fault_lock);
    known_images_close(&worker->known_images);
    compiler_close(&worker->compiler);
    code_memory_close(&worker->code_memory);
    loader_close(&worker->loader);
    loader_close(&worker->clearer);
    quiet_window_close(&worker->quiet_window);
    quiet_calls_close(&worker->quiet_calls);
    driver_calls_close(&worker->driver_calls);
}
