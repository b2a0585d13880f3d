/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker: the whole of it, as its five threads see it.
 *
 *   control    (the main thread) serves the supervisor's messages; slow driver calls
 *   loader     reads and compiles modules, slower than all else
 *   clearer    clears new device memory, which waits for its turn on the device
 *   submitter  reads the clients' rings and hands their work to the device
 *   completer  watches how far the device has come; wakes sleeping clients
 */
#ifndef GPUSHARE_SERVER_WORKER_WORKER_H
#define GPUSHARE_SERVER_WORKER_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "server/worker/client/client.h"
#include "server/worker/code/code_memory.h"
#include "server/worker/run/completer.h"
#include "server/worker/gpu.h"
#include "server/worker/sharing/gate.h"
#include "server/worker/code/loader.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/placement.h"
#include "server/worker/sharing/stream_pool.h"
#include "server/worker/run/submitter.h"
#include "server/worker/trace.h"
#include "server/worker/wake.h"

struct worker {
    struct gpu device;
    struct partitions partitions;
    struct placements places;
    struct stream_pool pool;
    struct account account;
    struct gate gate;
    struct trace trace;
    struct code_memory code_memory; /* this process's memory for clients' code */

    /* The clients. The control thread changes the table and frees clients; the others hold the lock
     * while they walk it, or keep to clients that have not left. */
    pthread_mutex_t clients_lock;
    struct client **clients;
    uint32_t client_count, client_room;

    struct wake wake;
    struct submitter submitter;
    struct completer completer;
    struct loader loader, clearer;
    uint32_t placement_error;   /* control thread: why the last partition could not be made */
    int channel;                /* to the supervisor; the caller's */
    pthread_mutex_t fault_lock; /* held while the supervisor is told that the context is lost */
    _Atomic uint32_t failed;    /* error number once it has been told */
};

/* ---- worker_life.c ---- */

/*
 * Divides the device and starts the other threads. device is moved in; channel stays
 * the caller's. 0, or an error number with a sentence; then worker->device is
 * closed too. image_memory: bytes for clients' code, see code_memory_open.
 */
uint32_t worker_start(struct worker *worker, const struct gpu *device, int channel,
                      uint64_t image_memory, struct error *why);

/* Ends the threads and frees everything, clients that are left included. */
void worker_stop(struct worker *worker);

/* ---- worker.c: what the threads share; it calls none of them ---- */

/* Any thread, whatever locks it holds, after it told the gate something: the submitter does not
 * sleep longer than the gate says now. */
void worker_reschedule(struct worker *worker);

/*
 * The device context is lost: tells the supervisor, ends every client's connection
 * with this error and wakes all their threads. Only the first call does anything.
 * Any thread, without locks held.
 */
void worker_fail(struct worker *worker, cuda_result result, const char *during);

/* Ends every client's connection and wakes all their threads. */
void worker_end_clients(struct worker *worker, uint32_t error);

/* Control thread. 0, or -ENOMEM and the client is not in the table. */
int worker_add_client(struct worker *worker, struct client *client);
void worker_remove_client(struct worker *worker, struct client *client);
struct client *worker_find_client(struct worker *worker, uint32_t number);

#endif
