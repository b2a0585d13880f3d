/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cuda/launch_attribute.h"
#include "common/error.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/calls/activity.h"
#include "server/worker/client/client_memory.h"
#include "server/worker/client/twins.h"
#include "server/worker/code/client_module.h"
#include "server/worker/run/launch_width.h"
#include "server/worker/sharing/stream_pool.h"

cuda_result command_open(struct command *command, const struct gpu *gpu, struct meter *meter,
                         struct stream_pool *pool)
{
    *command = (struct command){.cuda = gpu->cuda, .meter = meter, .pool = pool};
    for (size_t i = 0; i < sizeof command->order / sizeof *command->order; i++) {
        cuda_result result =
            gpu->cuda->cuEventCreate(&command->order[i], CUDA_EVENT_DISABLE_TIMING);
        if (result != CUDA_OK) {
            command_close(command);
            return result;
        }
    }
    return CUDA_OK;
}

void command_close(struct command *command)
{
    for (size_t i = 0; i < sizeof command->order / sizeof *command->order; i++) {
        if (command->order[i])
            command->cuda->cuEventDestroy(command->order[i]);
        command->order[i] = NULL;
    }
}

cuda_event command_event(struct command *command)
{
    /* Sixteen one after the other, though few orders are set up at once: a wait keeps what was
     * recorded when it was asked for, so an event may be recorded again while a stream still waits.
     */
    return command->order[command->order_next++ % (sizeof command->order / sizeof *command->order)];
}

__attribute__((format(printf, 3, 4))) static int
note_violation(struct client_stream *stream, uint32_t error, const char *format, ...)
{
    struct client *client = stream->client;
    struct error *why = &client->shared.violation;
    va_list arguments;
    why->number = error;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    error_prefix(why, "client %u, stream %u, command %llu: ", client->number, stream->index,
                 (unsigned long long)stream->ring.value + 1);
    return COMMAND_VIOLATION;
}

/* Judges a result of the driver: success, a failure of this stream alone, or the loss of the
 * context. */
static int settle_result(struct command *command, struct client_stream *stream, cuda_result result,
                         enum context_loss loss)
{
    meter_hand_over(stream);
    if (result == CUDA_OK)
        return 0;
    if (cuda_driver_error_is_sticky(result)) {
        command->fatal = result;
        command->loss = loss;
        return COMMAND_FATAL;
    }
    client_stream_report(stream, error_from_cuda((int)result));
    return 0;
}

/* Whether this command may still name an object that is being destroyed: only if the client had
 * issued it before the destruction. */
static bool is_alive(const struct retirement *dying, const struct client_stream *stream)
{
    return !dying || retire_covers(dying, stream->index, stream->ring.value + 1);
}

/* Whether the stream's next work is at the head of its hardware queue at once. */
static bool is_first(struct command *command, const struct client_stream *stream)
{
    /* Otherwise a command of this batch may have the stream wait for another one. */
    bool first_of_batch = stream->ring.value == client_stream_written(stream);
    return first_of_batch && stream_pool_is_idle(command->pool, stream);
}

/* Called before each command that makes the device work; begins the batch's span once. */
static void begin_work(struct command *command, struct client_stream *stream)
{
    if (!stream->span)
        meter_begin(command->meter, stream, is_first(command, stream));
    command->entries++;
}

/* The work before the command finishes, or is lost itself. */
static int interrupt_stream(struct client_stream *stream)
{
    stream->blocked_on = (struct stream_dependencies){.own_end = true};
    client_stream_interrupt(stream, stream->ring.value);
    return COMMAND_BLOCKED;
}

/* ---- launch ---- */

/* The driver would wait for the device with the context's lock held, and everybody with it. */
static int await_local_memory(struct command *command, struct client_stream *stream, uint64_t bytes)
{
    struct client_shared *shared = &stream->client->shared;
    if (shared->local_refused && bytes >= shared->local_refused) {
        shared->local_refused = 0;
        return settle_result(command, stream, CUDA_ERR_OUT_OF_MEMORY, CONTEXT_LOSS_LAUNCH);
    }
    stream->blocked_on = (struct stream_dependencies){.local_bytes = bytes};
    shared->local_wanted = max(shared->local_wanted, bytes);
    local_memory_wish(&stream->client->gpu->local);
    return COMMAND_BLOCKED;
}

/* A moving average: one launch weighs a quarter. */
static void note_width(struct client *client, const struct function *function,
                       const struct proto_command_launch *launch)
{
    uint32_t had = client->shared.width;
    uint32_t width = launch_width(&client->gpu->info, function, launch,
                                  client->shared.partition->multiprocessors);
    client->shared.width = had ? max((3 * had + width) / 4, 1u) : width;
}

/* cuLaunchCooperativeKernel takes no block of parameters. A partition that has become too small
 * since the client looked is the driver's refusal, which fails the stream. */
static cuda_result launch_cooperative(const struct cuda_driver *cuda, cuda_function function,
                                      const struct proto_command_launch *launch, cuda_stream on,
                                      void **extra)
{
    const struct cuda_launch_attribute cooperative = {.id = CUDA_LAUNCH_COOPERATIVE, .number = 1};
    const struct cuda_launch_config config = {
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->block[0], launch->block[1], launch->block[2]},
        .dynamic_shared_bytes = launch->shared_bytes,
        .stream = on,
        .attributes = &cooperative,
        .attribute_count = 1,
    };
    if (!cuda->cuLaunchKernelEx)
        return CUDA_ERR_NOT_SUPPORTED;
    activity_in(ACTIVITY_cuLaunchKernelEx);
    return cuda->cuLaunchKernelEx(&config, function, NULL, extra);
}

static cuda_result hand_over(const struct cuda_driver *cuda, cuda_function function,
                             const struct proto_command_launch *launch, cuda_stream on,
                             void **extra)
{
    if (launch->flags & PROTO_LAUNCH_COOPERATIVE)
        return launch_cooperative(cuda, function, launch, on, extra);
    activity_in(ACTIVITY_cuLaunchKernel);
    return cuda->cuLaunchKernel(function, launch->grid[0], launch->grid[1], launch->grid[2],
                                launch->block[0], launch->block[1], launch->block[2],
                                launch->shared_bytes, on, NULL, extra);
}

static int run_launch(struct command *command, struct client_stream *stream,
                      const struct proto_command_launch *launch)
{
    struct client *client = stream->client;
    uint32_t index = launch->function - 1;
    if (index >= client->objects.function_count || !client->objects.functions[index].module ||
        !is_alive(client_module_dying(client->objects.functions[index].module), stream))
        return note_violation(stream, MESSAGE(command_launch_function), launch->function);
    const struct function *function = &client->objects.functions[index];
    if (client_module_reaches_lost(client, function->module))
        return interrupt_stream(stream);
    uint32_t threads = (uint32_t)launch->block[0] * launch->block[1] * launch->block[2];
    if (threads > function->block_threads)
        return note_violation(stream, MESSAGE(command_launch_block), threads,
                              function->block_threads);
    if (launch->parameter_bytes != function->parameter_bytes)
        return note_violation(stream, MESSAGE(command_launch_parameter_bytes),
                              launch->parameter_bytes, function->parameter_bytes);
    if (launch->shared_bytes > function->dynamic_bytes)
        return note_violation(stream, MESSAGE(command_launch_shared_bytes), launch->shared_bytes,
                              function->dynamic_bytes);
    size_t bytes = launch->parameter_bytes;
    const void *parameters = launch->inline_parameters;
    if (bytes > PROTO_PARAMETERS_INLINE) {
        if (!ring_arena_copy(&stream->ring, launch->parameter_offset, (uint32_t)bytes,
                             command->parameters))
            return note_violation(stream, MESSAGE(command_launch_parameter_offset),
                                  launch->parameter_offset, bytes);
        parameters = command->parameters;
    }
    if (function->local_bytes > local_memory_room(&client->gpu->local))
        return await_local_memory(command, stream, function->local_bytes);
    void *extra[] = {CUDA_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)parameters,
                     CUDA_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CUDA_LAUNCH_PARAM_END};
    if (command->weighs)
        note_width(client, function, launch);
    begin_work(command, stream);
    cuda_result result = hand_over(command->cuda, function->handle, launch, stream->bound->handle,
                                   bytes ? extra : NULL);
    client->usage.launches++;
    return settle_result(command, stream, result, CONTEXT_LOSS_LAUNCH);
}

/* ---- copies and fills ---- */

/* A copy of so many bytes counts as one launch of a visit to its client: it takes about as long. */
#define BYTES_A_COMMAND (UINT64_C(256) << 10)
#define WEIGHT_MAX      1024

static void add_weight(struct command *command, uint64_t bytes)
{
    uint64_t weight = bytes / BYTES_A_COMMAND;
    command->weight += (uint32_t)min(weight, (uint64_t)WEIGHT_MAX);
}

/* The range that holds all of it, if the command may use that; NULL. */
static const struct range *find_alive(const struct client_stream *stream, uint64_t address,
                                      uint64_t count)
{
    const struct range *range = client_memory_range_find(stream->client, address, count);
    return range && is_alive(range->dying, stream) ? range : NULL;
}

/* A driver refuses a copy whose host side lies in two registrations, and that would be found on the
 * stream, as a failure of the client's. The library's commands end at the edges of the steps.
 * Returns what the range's commands may cross no multiple of, if this one does; else 0. */
static uint32_t crossed_edge(const struct range *range, uint64_t address, uint64_t count)
{
    uint32_t step = range->kind == RANGE_HOST ? PROTO_REGISTRATION_BYTES : PROTO_SLICE_BYTES;
    return address / step != (address + count - 1) / step ? step : 0;
}

static int note_edge(struct client_stream *stream, const char *what, uint64_t address,
                     uint64_t count, uint32_t step)
{
    return note_violation(stream, MESSAGE(command_over_edge), what, (unsigned long long)address,
                          (unsigned long long)count, step);
}

/* A variable of a lost module, for all that this worker knows. */
static bool may_be_lost(const struct client_stream *stream, uint64_t address)
{
    return stream->client->objects.lost_modules && gpu_is_outside(stream->client->gpu, address);
}

/* ---- constants ---- */

/* The parts of twins that a command writes. */
struct twins_written {
    struct twin parts[COMMAND_TWINS_MAX];
    size_t count;
};

/* Finds them before the command is handed over. Returns false, and reports a failure of the
 * stream's work, if there are too many. */
static bool find_twins(struct client_stream *stream, uint64_t address, uint64_t bytes,
                       struct twins_written *written)
{
    written->count =
        stream->client->objects.twin_count
            ? twins_find(stream->client, address, bytes, written->parts, COMMAND_TWINS_MAX)
            : 0;
    if (written->count <= COMMAND_TWINS_MAX)
        return true;
    client_stream_report(stream, PROTO_ERROR_INVALID_VALUE);
    return false;
}

/* Behind the command, in the order of its stream. */
static cuda_result write_constants(struct command *command, const struct client_stream *stream,
                                   const struct twins_written *written)
{
    cuda_result result = CUDA_OK;
    for (size_t i = 0; result == CUDA_OK && i < written->count; i++) {
        const struct twin *part = &written->parts[i];
        if (!is_alive(client_module_dying(part->module), stream))
            continue;
        command->entries++;
        activity_in(ACTIVITY_cuMemcpyAsync);
        result = command->cuda->cuMemcpyAsync(part->constant, part->address, part->bytes,
                                              stream->bound->handle);
    }
    return result;
}

static int run_copy(struct command *command, struct client_stream *stream,
                    const struct proto_command_copy *copy)
{
    if (copy->count == 0)
        return 0;
    const struct range *to = find_alive(stream, copy->destination, copy->count);
    const struct range *from = find_alive(stream, copy->source, copy->count);
    uint32_t edge;
    if ((!to && may_be_lost(stream, copy->destination)) ||
        (!from && may_be_lost(stream, copy->source)))
        return interrupt_stream(stream);
    if (!to)
        return note_violation(stream, MESSAGE(command_copy_destination),
                              (unsigned long long)copy->destination,
                              (unsigned long long)copy->count);
    if (!from)
        return note_violation(stream, MESSAGE(command_copy_source),
                              (unsigned long long)copy->source, (unsigned long long)copy->count);
    if ((edge = crossed_edge(to, copy->destination, copy->count)))
        return note_edge(stream, "copy.destination", copy->destination, copy->count, edge);
    if ((edge = crossed_edge(from, copy->source, copy->count)))
        return note_edge(stream, "copy.source", copy->source, copy->count, edge);
    /* Both lie in memory, so neither sum overflows. */
    if (copy->source < copy->destination + copy->count &&
        copy->destination < copy->source + copy->count)
        return note_violation(stream, MESSAGE(command_copy_overlap),
                              (unsigned long long)copy->destination,
                              (unsigned long long)copy->source, (unsigned long long)copy->count);
    struct twins_written written;
    if (!find_twins(stream, copy->destination, copy->count, &written))
        return 0;
    begin_work(command, stream);
    stream->client->usage.copies++;
    stream->client->usage.copied_bytes += copy->count;
    add_weight(command, copy->count);
    activity_in(ACTIVITY_cuMemcpyAsync);
    cuda_result result = command->cuda->cuMemcpyAsync(copy->destination, copy->source, copy->count,
                                                      stream->bound->handle);
    if (result == CUDA_OK)
        result = write_constants(command, stream, &written);
    return settle_result(command, stream, result, CONTEXT_LOSS_COPY);
}

static int run_fill(struct command *command, struct client_stream *stream,
                    const struct proto_command_fill *fill)
{
    const struct cuda_driver *cuda = command->cuda;
    const struct range *range;
    uint32_t edge;
    uint64_t bytes;
    if (fill->width != 1 && fill->width != 2 && fill->width != 4)
        return note_violation(stream, MESSAGE(command_fill_width), fill->width);
    if (fill->destination % fill->width)
        return note_violation(stream, MESSAGE(command_fill_alignment),
                              (unsigned long long)fill->destination, fill->width);
    if (fill->count == 0)
        return 0;
    if (may_be_lost(stream, fill->destination) &&
        !client_memory_range_find(stream->client, fill->destination, 1))
        return interrupt_stream(stream);
    if (__builtin_mul_overflow(fill->count, (uint64_t)fill->width, &bytes) ||
        !(range = find_alive(stream, fill->destination, bytes)))
        return note_violation(stream, MESSAGE(command_fill_destination),
                              (unsigned long long)fill->destination,
                              (unsigned long long)fill->count, fill->width);
    if ((edge = crossed_edge(range, fill->destination, bytes)))
        return note_edge(stream, "fill.destination", fill->destination, bytes, edge);
    struct twins_written written;
    if (!find_twins(stream, fill->destination, bytes, &written))
        return 0;
    begin_work(command, stream);
    stream->client->usage.copies++;
    stream->client->usage.copied_bytes += bytes;
    add_weight(command, bytes);
    cuda_stream on = stream->bound->handle;
    cuda_result result;
    if (fill->width == 1) {
        activity_in(ACTIVITY_cuMemsetD8Async);
        result =
            cuda->cuMemsetD8Async(fill->destination, (unsigned char)fill->value, fill->count, on);
    } else if (fill->width == 2) {
        activity_in(ACTIVITY_cuMemsetD16Async);
        result =
            cuda->cuMemsetD16Async(fill->destination, (unsigned short)fill->value, fill->count, on);
    } else {
        activity_in(ACTIVITY_cuMemsetD32Async);
        result = cuda->cuMemsetD32Async(fill->destination, fill->value, fill->count, on);
    }
    if (result == CUDA_OK)
        result = write_constants(command, stream, &written);
    return settle_result(command, stream, result, CONTEXT_LOSS_FILL);
}

/* ---- waits ---- */

/* Whether blocked ring `from` waits for stream `to`, directly or through other blocked rings. seen:
 * rings from which no way leads to `to`. */
static bool waits_for(const struct client *client, uint32_t from, uint32_t to, uint64_t *seen,
                      uint32_t *stack)
{
    uint32_t depth = 0;
    stack[depth++] = from;
    while (depth) {
        uint32_t at = stack[--depth];
        if (at == to)
            return true;
        if (bits_test(seen, at) || !blocked_rings_has(&client->shared.blocked, at))
            continue;
        bits_set(seen, at);
        const struct stream_dependencies *dependencies = &client->streams[at].blocked_on;
        for (uint32_t i = 0; i < dependencies->count; i++) {
            const struct proto_dependency *on = &dependencies->on[i];
            if (!on->link && client->streams[on->stream].ring.value < on->value)
                stack[depth++] = on->stream;
        }
    }
    return false;
}

static int check_dependency(struct client_stream *stream, uint32_t i,
                            const struct proto_dependency *on)
{
    struct client *client = stream->client;
    if (on->link) {
        if (on->link > client->objects.link_count)
            return note_violation(stream, MESSAGE(command_wait_link), i, on->link);
        if (on->stream >= client->objects.links[on->link - 1].streams)
            return note_violation(stream, MESSAGE(command_wait_link_stream), i, on->link,
                                  on->stream);
        return 0;
    }
    if (on->stream >= client->stream_count)
        return note_violation(stream, MESSAGE(command_wait_stream), i, on->stream);
    const struct client_stream *source = &client->streams[on->stream];
    bool never = source->state == STREAM_FREE
                     ? on->value > source->ring.value
                     : source->state == STREAM_CLOSING && on->value > source->limit;
    if (never)
        return note_violation(stream, MESSAGE(command_wait_never), i, on->stream,
                              (unsigned long long)on->value);
    if (source == stream && on->value > stream->ring.value)
        return note_violation(stream, MESSAGE(command_wait_itself), i,
                              (unsigned long long)on->value);
    return 0;
}

/* Called once for each wait that blocks: a blocked ring is not looked at again before its
 * conditions are met, and a circle is closed by the last of its waits. */
static int check_circle(struct client_stream *stream)
{
    struct client *client = stream->client;
    uint64_t seen[CLIENT_STREAM_WORDS] = {0};
    for (uint32_t i = 0; i < stream->blocked_on.count; i++) {
        const struct proto_dependency *on = &stream->blocked_on.on[i];
        /* Each stream is expanded once and pushes at most three others. */
        uint32_t stack[3 * PROTO_STREAMS_MAX + 1];
        if (on->link || client->streams[on->stream].ring.value >= on->value)
            continue;
        if (waits_for(client, on->stream, stream->index, seen, stack))
            return note_violation(stream, MESSAGE(command_wait_circle), stream->index, on->stream);
    }
    return 0;
}

/* The stream whose end the dependency asks for on the device; NULL: its value is reached, or order
 * is kept without a wait. */
static struct client_stream *find_source(const struct client_stream *stream,
                                         const struct proto_dependency *on)
{
    if (on->link)
        return NULL;
    struct client_stream *source = &stream->client->streams[on->stream];
    /* One CUstream keeps the order of both by itself. */
    bool ordered = source == stream || !source->bound || source->bound == stream->bound;
    return ordered || client_stream_reached(source) >= on->value ? NULL : source;
}

/* Whether each stream that is waited for has room on its queue for the events of all of them, and
 * the stream for a note of its wait. Only a client with a limit of its kernels' time has to be able
 * to show that it waits. */
static bool check_sources_room(const struct command *command, struct client_stream *stream)
{
    const struct stream_dependencies *dependencies = &stream->blocked_on;
    if (!stream_waits_reach(&stream->waits, client_stream_reached(stream)) &&
        stream->client->shared.kernel_time)
        return false;
    for (uint32_t i = 0; i < dependencies->count; i++) {
        const struct client_stream *source = find_source(stream, &dependencies->on[i]);
        if (source && stream_pool_entries_free(command->pool, source) < COMMAND_EVENTS_MAX)
            return false;
    }
    return true;
}

/* Makes the stream wait, on the device, for the work handed to the source's CUstream so far. */
static cuda_result order_after(struct command *command, struct client_stream *stream,
                               struct client_stream *source)
{
    cuda_event event = command_event(command);
    activity_in(ACTIVITY_cuEventRecord);
    cuda_result result = command->cuda->cuEventRecord(event, source->bound->handle);
    if (result != CUDA_OK)
        return result;
    stream_pool_note_entries(source, 1);
    command->entries++;
    activity_in(ACTIVITY_cuStreamWaitEvent);
    return command->cuda->cuStreamWaitEvent(stream->bound->handle, event, 0);
}

static bool any_lost(const struct client_stream *stream)
{
    for (uint32_t i = 0; i < stream->blocked_on.count; i++)
        if (client_stream_dependency_lost(stream->client, &stream->blocked_on.on[i]))
            return true;
    return false;
}

static int look_at_wait(struct command *command, struct client_stream *stream,
                        const struct proto_command_wait *wait)
{
    _Static_assert(sizeof wait->on == sizeof stream->blocked_on.on, "copied whole");
    stream->blocked_on = (struct stream_dependencies){.count = wait->count};
    memcpy(stream->blocked_on.on, wait->on, sizeof wait->on);
    for (uint32_t i = 0; i < stream->blocked_on.count; i++) {
        int checked = check_dependency(stream, i, &stream->blocked_on.on[i]);
        if (checked)
            return checked;
    }
    if (any_lost(stream))
        return interrupt_stream(stream);
    if (!client_stream_may_go_on(stream)) {
        int circle = check_circle(stream);
        return circle ? circle : COMMAND_BLOCKED;
    }
    return check_sources_room(command, stream) ? 0 : COMMAND_FULL;
}

/* Of one that command_look has let through. */
static int run_wait(struct command *command, struct client_stream *stream)
{
    struct stream_wait noted = {.value = stream->ring.value + 1};
    for (uint32_t i = 0; i < stream->blocked_on.count; i++) {
        struct client_stream *source = find_source(stream, &stream->blocked_on.on[i]);
        cuda_result result = source ? order_after(command, stream, source) : CUDA_OK;
        if (result != CUDA_OK) {
            /* Without the order results would be wrong, so the context is given up. */
            command->fatal = result;
            command->loss = CONTEXT_LOSS_ORDER;
            return COMMAND_FATAL;
        }
        if (source) {
            noted.sources[noted.count].stream = source->index;
            noted.sources[noted.count++].value = source->ring.value;
        }
    }
    if (noted.count)
        stream_waits_add(&stream->waits, &noted);
    return 0;
}

/* ---- the rest ---- */

static int run_event_record(struct command *command, struct client_stream *stream,
                            const struct proto_command_event_record *record)
{
    struct client *client = stream->client;
    uint32_t index = record->event - 1;
    if (index >= client->objects.event_count || !client->objects.events[index].handle ||
        !is_alive(client->objects.events[index].dying, stream))
        return note_violation(stream, MESSAGE(command_event_record), record->event);
    client->objects.events[index].recorded = true;
    command->entries++;
    activity_in(ACTIVITY_cuEventRecord);
    cuda_result result =
        command->cuda->cuEventRecord(client->objects.events[index].handle, stream->bound->handle);
    return settle_result(command, stream, result, CONTEXT_LOSS_EVENT);
}

bool command_is_wait(const struct ring_descriptor *descriptor)
{
    return *(const uint16_t *)descriptor->bytes == PROTO_COMMAND_WAIT;
}

int command_look(struct command *command, struct client_stream *stream,
                 const struct ring_descriptor *descriptor)
{
    const char *wrong = proto_command_check(descriptor->bytes);
    if (wrong)
        return note_violation(stream, MESSAGE(command_malformed), wrong);
    return command_is_wait(descriptor)
               ? look_at_wait(command, stream, (const void *)descriptor->bytes)
               : 0;
}

int command_run(struct command *command, struct client_stream *stream,
                const struct ring_descriptor *descriptor)
{
    switch (*(const uint16_t *)descriptor->bytes) {
    case PROTO_COMMAND_LAUNCH:
        return run_launch(command, stream, (const void *)descriptor->bytes);
    case PROTO_COMMAND_COPY:
        return run_copy(command, stream, (const void *)descriptor->bytes);
    case PROTO_COMMAND_FILL:
        return run_fill(command, stream, (const void *)descriptor->bytes);
    case PROTO_COMMAND_WAIT:
        return run_wait(command, stream);
    case PROTO_COMMAND_EVENT_RECORD:
        return run_event_record(command, stream, (const void *)descriptor->bytes);
    case PROTO_COMMAND_NOP:
    default: /* proto_command_check knows no others */
        return 0;
    }
}

/* Without its completion no waiter would ever wake, so the context is given up, whatever the
 * reason. */
static int settle_completion(struct command *command, cuda_result result)
{
    if (result == CUDA_OK)
        return 0;
    command->fatal = result;
    command->loss = CONTEXT_LOSS_COMPLETION;
    return COMMAND_FATAL;
}

/* The client's word is written before the private shadow: a thread that sees the shadow move may
 * wake threads that sleep on the client's word. */
static cuda_result write_words(struct command *command, struct client_stream *stream,
                               uint64_t value)
{
    cuda_mem_op_params writes[2] = {
        {.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_64,
                         .address = client_stream_status_address(stream),
                         .value64 = value}},
        {.write_value = {.operation = CUDA_MEM_OP_WRITE_VALUE_64,
                         .address = client_stream_shadow_address(stream),
                         .value64 = value}},
    };
    activity_in(ACTIVITY_cuStreamBatchMemOp);
    return command->cuda->cuStreamBatchMemOp(stream->bound->handle, 2, writes, 0);
}

int command_complete(struct command *command, struct client_stream *stream)
{
    uint64_t value = stream->ring.value;
    /* Stored before the device can write the value, so that no thread sees more reached than
     * written. */
    atomic_store(&stream->written, value);
    cuda_result result = command->ends && batch_ends_polled(command->ends)
                             ? batch_ends_note(command->ends, stream, value)
                             : write_words(command, stream, value);
    /* Behind the words: a client that waits for them does not wait for the submission of an event.
     */
    if (stream->span && result == CUDA_OK) {
        activity_in(ACTIVITY_cuEventRecord);
        meter_end(command->meter, stream, value);
    }
    return settle_completion(command, result);
}
