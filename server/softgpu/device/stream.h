/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream: streams, events, and the operations on them.
 *
 * Order is a graph: an operation knows how many others it still waits for (its
 * stream's previous one, an event's record, the default stream's rules), and
 * each that completes tells those that wait for it, with the modelled time. In
 * between stand hardware queues (hardware_queue.h): an operation also waits until
 * those submitted to its queue before it have begun.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_STREAM_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/cuda/stream_value.h"
#include "server/softgpu/device/device.h"
#include "server/softgpu/memory/memory.h"

enum operation_kind {
    OPERATION_KERNEL, /* also a fill that needs multiprocessors */
    OPERATION_COPY,
    OPERATION_FILL, /* one that needs none */
    OPERATION_WRITE,
    OPERATION_WAIT, /* for a value in memory */
    OPERATION_MARK,
    OPERATION_HOST
};

/* Elements of `width` bytes, 1, 2 or 4, from an address on that is a multiple of it. */
struct fill {
    uint64_t address, count;
    uint32_t value;
    unsigned width;
};

struct operation {
    struct engine_event event; /* first its becoming ready, later its completion */
    struct engine_task task;   /* of copies and fills */
    enum operation_kind kind;
    unsigned refs;
    unsigned unmet; /* operations that it waits for, plus one while it is being submitted */
    bool ready, begun, done;
    uint64_t ready_at; /* modelled; grows until unmet is 0 */
    uint64_t start, end;
    uint64_t seen_at; /* modelled: when a program can see that it has ended */
    /* of a copy or fill: bytes or words that are done, and the CPU time for them */
    uint64_t progress, took;
    struct operation **dependents;
    unsigned dependent_count, dependent_capacity;
    struct stream *stream;
    struct queue_link queue_link; /* in its hardware queue, later in its copy engine */
    struct queue_link host_link;
    union {
        struct grid *grid;
        struct {
            struct memory_side to, from;
            uint64_t bytes;
            struct copy_engine *engine; /* NULL: within the device */
            struct stats_engine *stats;
        } copy;
        struct fill fill;
        struct {
            unsigned count;
            struct operation_write {
                uint64_t address, value;
                unsigned width;
            } * writes;
        } write;
        struct {
            struct stream_value wanted;
            uint64_t pause; /* ns until the next look; 0 before the first */
        } wait;
        struct {
            cuda_host_fn fn;
            void *user;
        } host;
    };
};

struct stream {
    unsigned magic;
    struct list_link link; /* among its device's streams, or among the unused ones */
    struct device *device;
    struct cuda_green_ctx_object *green; /* NULL: it belongs to the primary context */
    struct sm_set sms;
    int priority;
    unsigned flags;
    bool blocking;          /* it obeys the default stream's rules */
    struct operation *last; /* the operation submitted last; holds a reference */
    unsigned in_flight;     /* operations that have not completed */
    uint64_t seen_at;       /* of the last that has */
    bool destroyed;
    unsigned long long id; /* unique in the process */
    _Atomic uint32_t note; /* the front's */
    struct hardware_queue *queue;
    struct hardware_queue own_queue;
};

struct event {
    unsigned magic;
    struct queue_link link; /* among the unused ones */
    unsigned flags;
    struct device *device;
    /* The operation of the last record, with a reference; NULL before the first. */
    struct operation *op;
};

/* All below: engine lock held, unless said otherwise. */

/* Where a stream's work goes; NULL: all of the device, and the queues that all share. */
struct stream_place {
    const struct sm_set *sms;
    struct hardware_queues *queues;
};

/* Makes a stream. Returns NULL without memory. */
struct stream *stream_create(struct device *device, struct stream_place place, unsigned flags,
                             int priority);
void stream_destroy(struct stream *stream);
/* Makes a device's legacy default stream, for device_init(). Returns 0 or -ENOMEM. */
int stream_complete_device(struct device *device);

/* Makes an operation, which is not submitted yet. Returns NULL without memory. */
struct operation *stream_operation_create(enum operation_kind kind);

/*
 * Submits the operation to the stream, which owns it from then on. To keep a reference, call
 * stream_operation_ref() before. Returns 0; or -ENOMEM, and then nothing was done and the operation
 * is freed.
 */
int stream_submit(struct stream *stream, struct operation *op);
/* Lets the operation wait for `before` as well. Call it before stream_submit(). Returns 0 or
 * -ENOMEM. */
int stream_operation_after(struct operation *op, struct operation *before);

/* Take and drop a reference. An operation without references is freed. stream_operation_unref(NULL)
 * does nothing. */
void stream_operation_ref(struct operation *op);
void stream_operation_unref(struct operation *op);

/* Whether a program can see by now that it is done. */
bool stream_operation_seen(const struct operation *op);
/* Waits until that is so; the sticky error if there is one. */
cuda_result stream_operation_await(struct operation *op);
/* The same, for all operations that were submitted to the stream so far, with regard to the
 * default stream's rules. */
cuda_result stream_await(struct stream *stream);
bool stream_idle(const struct stream *stream);
/* The same, for all operations that were submitted to the device so far. */
cuda_result stream_await_device(struct device *device);

/* Whether this thread runs functions of the program in a stream's order. Without the lock. */
bool stream_calls_host(void);

/* Completes the operation at this modelled time. */
void stream_operation_complete(struct operation *op, uint64_t time);

/* Makes an event. Returns NULL without memory. */
struct event *stream_event_create(struct device *device, unsigned flags);
void stream_event_destroy(struct event *event);

#endif
