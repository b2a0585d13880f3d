/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream: streams, events, and the operations on them.
 *
 * Order is a graph: an operation knows how many others it still waits for (its
 * stream's previous one, an event's record, the default stream's rules), and
 * each that completes tells those that wait for it, with the modelled time. In
 * between stand hardware queues: where streams share one, an operation also
 * waits until those submitted to the queue before it have begun.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_STREAM_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cuda_driver.h"
#include "server/softgpu/device/device.h"
#include "server/softgpu/memory/memory.h"

enum op_kind { OP_KERNEL, OP_COPY, OP_FILL, OP_WRITE, OP_MARK, OP_HOST };

struct op {
    struct engine_event event; /* it becomes ready; later: it completes */
    struct engine_task task;   /* copies and fills */
    enum op_kind kind;
    unsigned refs;
    unsigned unmet; /* operations it waits for, plus one while it is being submitted */
    bool ready, begun, done;
    uint64_t ready_at; /* modelled; grows until unmet is 0 */
    uint64_t start, end;
    uint64_t progress, took; /* of a copy or fill: bytes or words done, CPU time spent */
    struct op **dependents;
    unsigned dependent_count, dependent_capacity;
    struct stream *stream;
    struct queue_link queue_link; /* in its hardware queue, then in its copy engine */
    struct queue_link host_link;
    union {
        struct grid *grid;
        struct {
            struct memory_side to, from;
            uint64_t bytes;
            struct copy_engine *engine; /* NULL: within the device */
            struct stats_engine *stats;
        } copy;
        struct {
            uint64_t address, count;
            uint32_t value;
            unsigned width;
        } fill;
        struct {
            unsigned count;
            struct op_write {
                uint64_t address, value;
                unsigned width;
            } * writes;
        } write;
        struct {
            cuda_host_fn fn;
            void *user;
        } host;
    };
};

struct stream {
    unsigned magic;
    struct list_link link; /* on its device, or in the store of unused ones */
    struct device *device;
    struct cuda_green_ctx_object *green; /* NULL: of the primary context */
    struct sm_set sms;
    int priority;
    unsigned flags;
    bool blocking;      /* keeps the default stream's rules */
    struct op *last;    /* the last submitted; holds a reference */
    unsigned in_flight; /* operations that have not completed */
    bool destroyed;
    struct queue *queue;
    struct queue own_queue;
};

struct event {
    unsigned magic;
    struct queue_link link; /* in the store of unused ones */
    unsigned flags;
    struct device *device;
    struct op *op; /* of the last record; holds a reference. NULL before */
};

/* All below: engine lock held, unless said otherwise. */

/* sms NULL: all of the device. NULL when memory is short. */
struct stream *stream_create(struct device *device, const struct sm_set *sms, unsigned flags,
                             int priority);
void stream_destroy(struct stream *stream);
/* A device's legacy default stream, for device_init(). 0 or -ENOMEM. */
int stream_complete_device(struct device *device);

/* A new operation, not yet submitted; NULL when memory is short. */
struct op *op_create(enum op_kind kind);

/*
 * Hands the operation to the stream. It belongs to the stream from then on; the
 * caller may keep a reference by op_hold() before. -ENOMEM: nothing was done, and
 * the operation is gone.
 */
int stream_submit(struct stream *stream, struct op *op);
/* The operation waits for `before` as well. Before stream_submit(). 0 or -ENOMEM. */
int op_after(struct op *op, struct op *before);

/* References. An operation that nobody holds any more is freed; op_drop(NULL) does nothing. */
void op_hold(struct op *op);
void op_drop(struct op *op);

/* Waits until it is done; the sticky error if there is one. */
cuda_result op_await(struct op *op);
/* The same for all submitted to the stream up to now. Takes the default stream's rules into
 * account. */
cuda_result stream_await(struct stream *stream);
bool stream_idle(struct stream *stream);
/* All submitted to the device up to now. */
cuda_result device_await(struct device *device);

/* Completes at that modelled time. */
void op_complete(struct op *op, uint64_t time);

/* NULL without memory. */
struct event *event_create(struct device *device, unsigned flags);
void event_destroy(struct event *event);

#endif
