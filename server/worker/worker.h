/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * worker: the object that all threads of the process share. The threads have seven roles:
 *
 *   control    the main thread; serves the supervisor's messages and waits for no other thread
 *   caller     makes driver calls that take the context's lock, for the control thread
 *   loader     two threads; read and compile modules, which may take minutes
 *   clearer    clears new device memory and waits until the device has done so
 *   submitter  reads the clients' rings and hands their work to the device
 *   driver     makes calls that wait for the device, in quiet windows
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
#include "server/worker/client/kept_buffers.h"
#include "server/worker/code/code_memory.h"
#include "server/worker/code/compiler.h"
#include "server/worker/code/cache/known_image.h"
#include "server/worker/device/call_probe.h"
#include "server/worker/device/context_loss.h"
#include "server/worker/run/completer.h"
#include "server/worker/device/gpu.h"
#include "server/worker/sharing/account_table.h"
#include "server/worker/sharing/gate.h"
#include "server/worker/code/loader.h"
#include "server/worker/run/batch_ends.h"
#include "server/worker/run/usage_ledger.h"
#include "server/worker/run/overrun.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/placement.h"
#include "server/worker/sharing/stream_pool.h"
#include "server/worker/calls/driver_calls.h"
#include "server/worker/sharing/usual_partitions.h"
#include "server/worker/calls/quiet_calls.h"
#include "server/worker/run/driver_caller.h"
#include "server/worker/run/quiet_window.h"
#include "server/worker/run/submitter.h"
#include "server/worker/trace.h"
#include "server/worker/calls/wake.h"

struct making;

struct worker {
    struct gpu gpu;
    struct partition_table partitions;
    struct placement_table places;
    struct stream_pool pool;
    struct meter meter;
    struct batch_ends ends;
    struct gate gate;
    struct account_table accounts; /* the control thread's */
    struct usage_ledger ledger;
    struct trace trace;
    struct code_memory code_memory; /* this process's memory for clients' code */
    struct known_images known_images;
    struct compiler compiler; /* closed after worker_start: the loaders compile by themselves */

    /* The clients. The control thread alone changes the table and frees clients, so it reads the
     * table without the lock. Every other thread holds the lock while it walks the table. Between
     * walks the submitter keeps pointers only to clients that it has not dropped. */
    pthread_mutex_t clients_lock;
    struct client **clients;
    uint32_t client_count, client_room;
    uint64_t epoch;     /* of the supervisor that asked last: serials of the next are greater */
    uint64_t orphan_ns; /* without a supervisor it ends after so long; 0: only with its socket */
    struct client *attaching; /* control thread: those that are not in the table yet */
    uint32_t limits_waiting;  /* control thread: clients with a limits_answer that is due */
    struct kept_buffers kept; /* control thread */

    struct wake wake;
    struct submitter submitter;
    struct completer completer;
    struct overrun overrun;
    _Atomic uint64_t work_order; /* counts commands that have come to the head of their stream */
    struct loader loader, clearer;
    struct driver_calls driver_calls;
    struct driver_caller driver_caller;
    struct quiet_calls quiet_calls;
    struct quiet_window quiet_window;
    /* Control thread: partitions and CUstreams (control_making.h). */
    struct making *makings; /* that wait for a quiet window, or for the caller thread */
    struct call_probe call_probe;
    uint32_t placement_error;   /* why the last partition could not be made */
    uint64_t make_again;        /* ns: when it is tried again */
    uint64_t make_openly_at;    /* ns: the next call beside work; the caller thread's */
    struct usual_sizes sizes;   /* that the schedule names */
    int channel;                /* to the supervisor; the caller's */
    pthread_mutex_t fault_lock; /* held while the supervisor is told that the context is lost */
    _Atomic uint32_t failed;    /* error number once it has been told */
};

/* ---- worker_life.c ---- */

/*
 * Divides the device and starts the other threads. The worker takes over *gpu and closes it in
 * worker_stop. channel stays the caller's, and becomes non-blocking. image_memory is the number of
 * bytes for clients' code (code_memory_open). Returns 0, or an error number with a sentence in why;
 * after a failure everything is stopped and freed, and the device is closed.
 */
uint32_t worker_start(struct worker *worker, const struct gpu *gpu, int channel,
                      uint64_t image_memory, struct error *why);

/* Ends the threads, frees what they shared and closes the device. The control thread has removed
 * and freed the clients before (control_client_drop_all). */
void worker_stop(struct worker *worker);

/* ---- worker.c: what the threads share; it calls none of them ---- */

/* Makes sure that the submitter sleeps no longer than gate_next says now. To be called after the
 * gate was told something. Any thread, whatever locks it holds. */
void worker_reschedule(struct worker *worker);

/*
 * The device context is lost: tells the supervisor, which says what becomes of each client. result
 * is not CUDA_OK; loss says what met it, for the sentence. Only the first call does anything. Any
 * thread, without locks held.
 */
void worker_fail(struct worker *worker, cuda_result result, enum context_loss loss);

/* The table of clients; control thread. worker_add_client returns 0, or -ENOMEM: the client is not
 * in the table then. The table does not own its clients. worker_find_client returns NULL if no
 * client has this number. */
int worker_add_client(struct worker *worker, struct client *client);
void worker_remove_client(struct worker *worker, struct client *client);
struct client *worker_find_client(struct worker *worker, uint32_t number);

#endif
