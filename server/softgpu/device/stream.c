/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/stream.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/list.h"
#include "common/util.h"
#include "server/softgpu/device/cost.h"
#include "server/softgpu/device/grid.h"
#include "server/softgpu/device/hardware_queue.h"

/* ---- operations ------------------------------------------------------------------ */

static void operation_become_ready(struct engine_event *event, uint64_t time);
static void operation_begin(struct operation *op, uint64_t time);

struct operation *stream_operation_create(enum operation_kind kind)
{
    struct operation *op = calloc(1, sizeof(*op));

    if (!op)
        return NULL;
    op->kind = kind;
    op->refs = 1;
    op->unmet = 1;
    op->event.happen = operation_become_ready;
    return op;
}

void stream_operation_ref(struct operation *op)
{
    op->refs++;
}

void stream_operation_unref(struct operation *op)
{
    if (!op || --op->refs > 0)
        return;
    if (op->kind == OPERATION_KERNEL)
        grid_destroy(op->grid);
    else if (op->kind == OPERATION_WRITE)
        free(op->write.writes);
    for (unsigned i = 0; i < op->dependent_count; i++)
        stream_operation_unref(op->dependents[i]);
    free(op->dependents);
    free(op);
}

int stream_operation_after(struct operation *op, struct operation *before)
{
    if (!before)
        return 0;
    if (before->done) {
        op->ready_at = max(op->ready_at, before->end);
        return 0;
    }
    if (array_reserve(before->dependents, before->dependent_capacity,
                      (size_t)before->dependent_count + 1) < 0)
        return -ENOMEM;
    before->dependents[before->dependent_count++] = op;
    stream_operation_ref(op);
    op->unmet++;
    return 0;
}

static void set_event(struct engine_event *event, uint64_t time)
{
    if (engine_at(event, time) < 0)
        device_fail(CUDA_ERR_LAUNCH_FAILED, "an operation failed: out of host memory");
}

static void operation_met(struct operation *op, uint64_t time)
{
    op->ready_at = max(op->ready_at, time);
    if (--op->unmet == 0)
        set_event(&op->event, op->ready_at);
}

/* Begins the first operation of the queue if it is ready. An operation that has begun makes room
 * for the next. */
static void queue_advance(struct hardware_queue *queue, uint64_t time)
{
    struct operation *op;

    while ((op = QUEUE_FIRST(&queue->waiting, struct operation, queue_link)) && op->ready &&
           !engine_stopped()) {
        hardware_queue_take(queue);
        op->begun = true;
        time = max(time, op->ready_at);
        operation_begin(op, time);
    }
}

/*
 * Whether the value is there. If it is not, sets the next look: a wait that is over soon is seen
 * soon, and one that lasts costs little.
 *
 * A wait that is not over does not begin, so it holds up all behind it in its hardware queue, as a
 * device does.
 */
static bool wait_is_over(struct operation *op, uint64_t time)
{
    const uint64_t first = 5000, longest = 200000;
    uint64_t there;

    if (!memory_read_value(op->wait.wanted.address, op->wait.wanted.width, &there)) {
        device_fail_address("stream wait", op->wait.wanted.address);
        return false;
    }
    if (stream_value_met(&op->wait.wanted, there))
        return true;
    op->wait.pause = min(max(op->wait.pause + op->wait.pause / 4, first), longest);
    set_event(&op->event, max(time, engine_now()) + op->wait.pause);
    return false;
}

static void operation_become_ready(struct engine_event *event, uint64_t time)
{
    struct operation *op = container_of(event, struct operation, event);

    if (op->kind == OPERATION_WAIT && !wait_is_over(op, time))
        return;
    op->ready_at = max(op->ready_at, time);
    op->ready = true;
    queue_advance(op->stream->queue, time);
}

static void stream_drop_if_unused(struct stream *stream);

void stream_operation_complete(struct operation *op, uint64_t time)
{
    struct stream *stream = op->stream;

    op->done = true;
    op->end = time;
    /* Ends of one stream are seen in their order. */
    op->seen_at = max(stream->seen_at, time + cost_completion_ns());
    stream->seen_at = op->seen_at;
    stream->device->seen_at = max(stream->device->seen_at, op->seen_at);
    for (unsigned i = 0; i < op->dependent_count; i++) {
        operation_met(op->dependents[i], time);
        stream_operation_unref(op->dependents[i]);
    }
    op->dependent_count = 0;
    stream->in_flight--;
    if (stream->last == op) {
        stream->last = NULL;
        stream_operation_unref(op);
    }
    stream_drop_if_unused(stream);
    stream_operation_unref(op);
    engine_announce();
}

static void operation_finished(struct engine_event *event, uint64_t time)
{
    stream_operation_complete(container_of(event, struct operation, event), time);
}

/* ---- copies and fills -------------------------------------------------------------------- */

static void copy_next(struct copy_engine *engine, uint64_t time);

static void copy_finished(struct engine_event *event, uint64_t time)
{
    struct operation *op = container_of(event, struct operation, event);
    struct copy_engine *engine = op->copy.engine;

    stats_add(&op->copy.stats->busy_ns, time - op->start);
    stats_add(&op->copy.stats->bytes, op->copy.bytes);
    stats_add(&op->copy.stats->copies, 1);
    engine->free_at = time;
    queue_take(&engine->waiting);
    engine->busy = false;
    copy_next(engine, time);
    stream_operation_complete(op, time);
}

static uint64_t copy_time(const struct operation *op, uint64_t took)
{
    uint64_t speed = device_settings()->copy_bytes_per_second;

    if (speed == 0 || !op->copy.engine)
        return took;
    return (uint64_t)((double)op->copy.bytes * 1e9 / (double)speed);
}

/*
 * One slice of a copy or fill: about a millisecond, so that a large one does not
 * keep a thread from everything else. False, with the address, for a fault.
 */
static bool copy_slice(struct operation *op, uint64_t *fault)
{
    const uint64_t slice = 4 << 20;
    uint64_t total = op->kind == OPERATION_COPY ? op->copy.bytes : op->fill.count;
    uint64_t count = min(total - op->progress, slice);
    uint64_t at = op->progress;

    op->progress += count;
    if (op->kind == OPERATION_FILL)
        return memory_fill(op->fill.address + at * op->fill.width, op->fill.value, op->fill.width,
                           count, fault);
    return memory_copy((struct memory_side){op->copy.to.address + at, op->copy.to.checked},
                       (struct memory_side){op->copy.from.address + at, op->copy.from.checked},
                       count, fault);
}

static void copy_end(struct operation *op)
{
    bool engine = op->kind == OPERATION_COPY && op->copy.engine;

    op->event.happen = engine ? copy_finished : operation_finished;
    set_event(&op->event,
              op->start + (op->kind == OPERATION_COPY ? copy_time(op, op->took) : op->took));
}

static void copy_run(struct engine_task *task)
{
    struct operation *op = container_of(task, struct operation, task);
    uint64_t before = engine_thread_ns(), fault = 0;
    bool good = copy_slice(op, &fault);

    op->took += engine_thread_ns() - before;
    engine_lock();
    if (!good)
        device_fail_address(op->kind == OPERATION_COPY ? "copy" : "fill", fault);
    else if (op->progress < (op->kind == OPERATION_COPY ? op->copy.bytes : op->fill.count))
        engine_run(&op->task);
    else
        copy_end(op);
}

static void copy_start(struct operation *op, uint64_t time)
{
    op->start = time;
    op->task.run = copy_run;
    engine_run(&op->task);
}

static void copy_next(struct copy_engine *engine, uint64_t time)
{
    struct operation *op = QUEUE_FIRST(&engine->waiting, struct operation, queue_link);

    if (engine->busy || !op)
        return;
    engine->busy = true;
    copy_start(op, max(max(time, op->start), engine->free_at));
}

static void copy_begin(struct operation *op, uint64_t time)
{
    struct copy_engine *engine = op->copy.engine;

    if (!engine) {
        copy_start(op, time);
        return;
    }
    op->start = time; /* at the earliest */
    queue_append(&engine->waiting, &op->queue_link);
    copy_next(engine, time);
}

/* ---- functions on the host ------------------------------------------------------------------- */

/* Functions on the host run one at a time on a thread of their own, which a program may block. */
static struct {
    sem_t more;
    struct queue waiting;
    bool started;
} hosts;

static _Thread_local bool calls_host;

bool stream_calls_host(void)
{
    return calls_host;
}

static void *host_main(void *unused)
{
    calls_host = true;
    for (;;) {
        struct operation *op;
        uint64_t now;

        while (sem_wait(&hosts.more) < 0)
            ;
        engine_lock();
        op = engine_stopped() ? NULL : QUEUE_TAKE(&hosts.waiting, struct operation, host_link);
        engine_unlock();
        if (!op) /* after an error the functions are not called any more */
            continue;
        op->host.fn(op->host.user);
        engine_lock();
        now = engine_now();
        op->event.happen = operation_finished;
        set_event(&op->event, max(now, op->start));
        engine_unlock();
    }
    return unused;
}

static int host_start(void)
{
    pthread_attr_t detached;
    pthread_t thread;
    sigset_t all, before;
    int error;

    if (hosts.started)
        return 0;
    if (sem_init(&hosts.more, 0, 0) < 0)
        return -errno;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &detached, host_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    if (error != 0)
        return -error;
    hosts.started = true;
    return 0;
}

static void host_begin(struct operation *op, uint64_t time)
{
    op->start = time;
    queue_append(&hosts.waiting, &op->host_link);
    sem_post(&hosts.more);
}

/* ---- the beginning of an operation
 * --------------------------------------------------------------- */

static void write_happen(struct engine_event *event, uint64_t time)
{
    struct operation *op = container_of(event, struct operation, event);

    for (unsigned i = 0; i < op->write.count; i++)
        if (!memory_write_value(op->write.writes[i].address, op->write.writes[i].value,
                                op->write.writes[i].width)) {
            device_fail_address("stream write", op->write.writes[i].address);
            return;
        }
    stream_operation_complete(op, time);
}

/* Operations behind it wait for the value: a kernel may read it. */
static void write_begin(struct operation *op, uint64_t time)
{
    uint64_t delay = cost_completion_ns();

    op->event.happen = write_happen;
    if (delay == 0)
        write_happen(&op->event, time);
    else
        set_event(&op->event, time + delay);
}

static void operation_begin(struct operation *op, uint64_t time)
{
    switch (op->kind) {
    case OPERATION_KERNEL:
        grid_start(op->grid, op, stream_operation_complete, time);
        break;
    case OPERATION_COPY:
        copy_begin(op, time);
        break;
    case OPERATION_FILL:
        copy_start(op, time);
        break;
    case OPERATION_WRITE:
        write_begin(op, time);
        break;
    case OPERATION_WAIT:
    case OPERATION_MARK:
        stream_operation_complete(op, time);
        break;
    case OPERATION_HOST:
        host_begin(op, time);
        break;
    }
}

/* ---- streams
 * ------------------------------------------------------------------------------------------ */

static struct list unused_streams = LIST_INIT(unused_streams);

struct stream *stream_create(struct device *device, struct stream_place place, unsigned flags,
                             int priority)
{
    static unsigned long long last_id;
    struct stream *stream = LIST_FIRST(&unused_streams, struct stream, link);

    if (stream)
        list_remove(&stream->link);
    else
        stream = malloc(sizeof(*stream));
    if (!stream)
        return NULL;
    memset(stream, 0, sizeof(*stream));
    stream->magic = STREAM_MAGIC;
    stream->id = ++last_id;
    stream->device = device;
    stream->sms = place.sms ? *place.sms : device->all;
    stream->flags = flags;
    stream->blocking = !(flags & CUDA_STREAM_NON_BLOCKING);
    stream->priority =
        min(max(priority, (int)DEVICE_PRIORITY_GREATEST), (int)DEVICE_PRIORITY_LEAST);
    stream->queue =
        hardware_queue_assign(place.queues ? place.queues : &device->queues, &stream->own_queue);
    list_prepend(&device->streams, &stream->link);
    return stream;
}

int stream_complete_device(struct device *device)
{
    device->legacy = stream_create(device, (struct stream_place){0}, 0, DEVICE_PRIORITY_LEAST);
    return device->legacy ? 0 : -ENOMEM;
}

static void stream_drop_if_unused(struct stream *stream)
{
    if (!stream->destroyed || stream->in_flight > 0)
        return;
    list_remove(&stream->link);
    list_prepend(&unused_streams, &stream->link);
}

void stream_destroy(struct stream *stream)
{
    stream->magic = 0;
    stream->destroyed = true;
    stream_drop_if_unused(stream);
}

/* Lets the operation wait for the operations that it must follow, by the stream's order and the
 * default stream's rules. */
static int stream_order(struct stream *stream, struct operation *op)
{
    struct device *device = stream->device;

    if (stream_operation_after(op, stream->last) < 0)
        return -ENOMEM;
    if (stream == device->legacy) {
        struct stream *other;

        LIST_FOR_EACH (other, &device->streams, link)
            if (other != stream && other->blocking && stream_operation_after(op, other->last) < 0)
                return -ENOMEM;
    } else if (stream->blocking) {
        return stream_operation_after(op, device->legacy->last);
    }
    return 0;
}

/* Undone by marking it as met: an operation that it had joined will drop it without beginning
 * it. */
static void operation_abandon(struct operation *op)
{
    op->unmet = ~0u / 2;
    stream_operation_unref(op);
}

int stream_submit(struct stream *stream, struct operation *op)
{
    uint64_t now;

    if (hardware_queue_await_room(stream->queue))
        stats_add(&stream->device->stats->full_queues, 1);
    now = engine_now() + cost_arrival_ns();
    if ((op->kind == OPERATION_HOST && host_start() < 0) || stream_order(stream, op) < 0) {
        operation_abandon(op);
        return -ENOMEM;
    }
    op->stream = stream;
    stream->in_flight++;
    stream_operation_ref(op); /* the stream's last, beside the one that completion drops */
    stream_operation_unref(stream->last);
    stream->last = op;
    hardware_queue_append(stream->queue, &op->queue_link);
    operation_met(op, now);
    return 0;
}

bool stream_operation_seen(const struct operation *op)
{
    return op->done && engine_now() >= op->seen_at;
}

static void await_time(uint64_t time)
{
    if (engine_stopped() || engine_now() >= time)
        return;
    engine_unlock();
    engine_pass_time(time);
    engine_lock();
}

cuda_result stream_operation_await(struct operation *op)
{
    stream_operation_ref(op);
    while (!op->done && !engine_stopped())
        engine_await();
    await_time(op->seen_at);
    stream_operation_unref(op);
    return device_check();
}

/* When a program can see the ends of all that has ended, by the default stream's rules. */
static uint64_t stream_seen_at(const struct stream *stream)
{
    const struct stream *other;
    uint64_t time = stream->seen_at;

    if (stream == stream->device->legacy)
        LIST_FOR_EACH (other, &stream->device->streams, link)
            if (other->blocking)
                time = max(time, other->seen_at);
    return time;
}

cuda_result stream_await(struct stream *stream)
{
    struct operation *mark;

    if (stream != stream->device->legacy) {
        if (stream->last)
            return stream_operation_await(stream->last);
        await_time(stream->seen_at);
        return device_check();
    }
    mark = stream_operation_create(OPERATION_MARK);
    if (!mark)
        return CUDA_ERR_OUT_OF_MEMORY;
    stream_operation_ref(mark);
    if (stream_submit(stream, mark) == 0)
        stream_operation_await(mark);
    stream_operation_unref(mark);
    await_time(stream_seen_at(stream));
    return device_check();
}

bool stream_idle(const struct stream *stream)
{
    const struct device *device = stream->device;
    const struct stream *other;

    if (stream->in_flight > 0 || engine_now() < stream_seen_at(stream))
        return false;
    if (stream != device->legacy)
        return true;
    LIST_FOR_EACH (other, &device->streams, link)
        if (other->blocking && other->in_flight > 0)
            return false;
    return true;
}

cuda_result stream_await_device(struct device *device)
{
    struct stream *stream;
    struct operation **last;
    size_t count = 0, used = 0;

    LIST_FOR_EACH (stream, &device->streams, link)
        count++;
    last = malloc((count + 1) * sizeof(struct operation *));
    if (!last)
        return CUDA_ERR_OUT_OF_MEMORY;
    LIST_FOR_EACH (stream, &device->streams, link)
        if (stream->last) {
            stream_operation_ref(stream->last);
            last[used++] = stream->last;
        }
    for (size_t i = 0; i < used; i++) {
        stream_operation_await(last[i]);
        stream_operation_unref(last[i]);
    }
    free(last);
    await_time(device->seen_at);
    return device_check();
}

/* ---- events
 * ---------------------------------------------------------------------------------------------- */

static struct queue unused_events;

struct event *stream_event_create(struct device *device, unsigned flags)
{
    struct event *event = QUEUE_TAKE(&unused_events, struct event, link);

    if (!event)
        event = malloc(sizeof(*event));
    if (!event)
        return NULL;
    *event = (struct event){.magic = EVENT_MAGIC, .flags = flags, .device = device};
    return event;
}

void stream_event_destroy(struct event *event)
{
    event->magic = 0;
    stream_operation_unref(event->op);
    event->op = NULL;
    queue_prepend(&unused_events, &event->link);
}
