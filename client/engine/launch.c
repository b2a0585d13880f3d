/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/launch.h"

#include <string.h>

#include "client/engine/connection.h"
#include "client/engine/module.h"
#include "client/engine/stream.h"
#include "client/engine/thread_stream.h"
#include "client/session/failure.h"
#include "common/cpu.h"
#include "common/messages.h"

/* The minor version of the first server that knows such launches. */
enum { COOPERATIVE_SINCE = 1 };

/* The command that a launch pushes, and the same bytes as a descriptor of the ring. */
union command {
    struct ring_descriptor descriptor;
    struct proto_command_launch launch;
};

/* Registers are given to whole warps, eight for each thread at a time (CUDA occupancy calculator,
 * compute capability 7.0 and later). */
enum { REGISTERS_STEP = 8 };

static bool has_registers(const struct gpushare_function *function, uint64_t threads)
{
    const struct gpushare_device *device = &function->connection->device;
    const uint64_t each =
        ((uint64_t)function->info.registers + REGISTERS_STEP - 1) / REGISTERS_STEP * REGISTERS_STEP;
    const uint64_t warps = (threads + device->warp_threads - 1) / device->warp_threads;
    return each * warps * device->warp_threads <= device->block_registers;
}

/* A driver that has the registers finds that the kernel was compiled for smaller blocks
 * (__launch_bounds__), which is a wrong argument. */
static gpushare_error refuse_threads(const struct gpushare_function *function, uint64_t threads)
{
    const uint32_t most = function->connection->device.block_threads;
    if (threads > most)
        return failure(MESSAGE(launch_block_threads), function->name, (unsigned long long)threads,
                       most);
    if (has_registers(function, threads))
        return failure(MESSAGE(launch_bounds), function->name, (unsigned long long)threads,
                       function->block_threads);
    return failure(MESSAGE(launch_threads), function->name, (unsigned long long)threads,
                   function->block_threads);
}

static gpushare_error refuse_geometry(const struct gpushare_function *function,
                                      struct gpushare_dim grid, struct gpushare_dim block,
                                      uint32_t shared) __attribute__((cold, noinline));
static gpushare_error refuse_geometry(const struct gpushare_function *function,
                                      struct gpushare_dim grid, struct gpushare_dim block,
                                      uint32_t shared)
{
    const struct gpushare_device *device = &function->connection->device;
    uint32_t max = atomic_load_explicit(&function->dynamic_shared, memory_order_relaxed);
    if (!grid.x || !grid.y || !grid.z || grid.x > device->grid.x || grid.y > device->grid.y ||
        grid.z > device->grid.z)
        return failure(MESSAGE(launch_grid), function->name, grid.x, grid.y, grid.z, device->grid.x,
                       device->grid.y, device->grid.z);
    if (!block.x || !block.y || !block.z || block.x > device->block.x ||
        block.y > device->block.y || block.z > device->block.z)
        return failure(MESSAGE(launch_block), function->name, block.x, block.y, block.z,
                       device->block.x, device->block.y, device->block.z);
    if (shared > max)
        return failure(MESSAGE(launch_shared_memory), function->name, shared, max);
    return refuse_threads(function, (uint64_t)block.x * block.y * block.z);
}

/* Zero does not fit either: 0 - 1 wraps around to more than any limit. */
static inline bool dims_fit(struct gpushare_dim dim, struct gpushare_dim max)
{
    return dim.x - 1 < max.x && dim.y - 1 < max.y && dim.z - 1 < max.z;
}

static inline gpushare_error check_geometry(const struct gpushare_function *function,
                                            struct gpushare_dim grid, struct gpushare_dim block,
                                            uint32_t shared)
{
    const struct gpushare_device *device = &function->connection->device;
    if (__builtin_expect(
            !dims_fit(grid, device->grid) || !dims_fit(block, device->block) ||
                (uint64_t)block.x * block.y * block.z > function->block_threads ||
                shared > atomic_load_explicit(&function->dynamic_shared, memory_order_relaxed),
            0))
        return refuse_geometry(function, grid, block, shared);
    return GPUSHARE_SUCCESS;
}

static gpushare_error refuse_parameter(const struct gpushare_function *function,
                                       struct launch_source source, uint32_t number)
    __attribute__((cold, noinline));
static gpushare_error refuse_parameter(const struct gpushare_function *function,
                                       struct launch_source source, uint32_t number)
{
    if (!source.each)
        return failure(MESSAGE(parameters_null), function->name, function->parameters);
    return failure(MESSAGE(parameter_null), function->name, function->parameters, number);
}

static inline gpushare_error pack_parameters(const struct gpushare_function *function,
                                             struct launch_source source, void *to)
{
    if (source.packed) {
        memcpy(to, source.packed, function->parameter_bytes);
        return GPUSHARE_SUCCESS;
    }
    for (uint32_t i = 0; i < function->parameters; i++) {
        struct module_parameter parameter = function->table[i];
        uint8_t *at = (uint8_t *)to + parameter.offset;
        /* Here and not in a loop of its own, which took 17 of 542 instructions of a launch. */
        const void *from = source.each ? source.each[i] : NULL;
        if (__builtin_expect(!from, 0))
            return refuse_parameter(function, source, i);
        /* Almost every parameter has 8 or 4 bytes. memcpy of a constant size is one move; with a
         * size that the compiler does not know it is a call, which costs more than the copy. */
        if (parameter.bytes == 8)
            memcpy(at, from, 8);
        else if (parameter.bytes == 4)
            memcpy(at, from, 4);
        else
            memcpy(at, from, parameter.bytes);
    }
    return GPUSHARE_SUCCESS;
}

static inline void fill_command(union command *command, const struct gpushare_function *function,
                                struct gpushare_dim grid, struct gpushare_dim block,
                                uint32_t shared, uint16_t flags)
{
    *command =
        (union command){.launch = {
                            .opcode = PROTO_COMMAND_LAUNCH,
                            .flags = flags,
                            .function = function->handle,
                            .grid = {grid.x, grid.y, grid.z},
                            .block = {(uint16_t)block.x, (uint16_t)block.y, (uint16_t)block.z},
                            .parameter_bytes = (uint16_t)function->parameter_bytes,
                            .shared_bytes = shared,
                        }};
}

/* Parameters that don't fit the descriptor go through the arena. */
static inline gpushare_error submit_long(struct gpushare_stream *stream, union command *command,
                                         const struct gpushare_function *function,
                                         struct launch_source source)
{
    void *at;
    gpushare_error error = stream_begin(stream);
    if (error)
        return error;
    error = stream_arena(stream, function->parameter_bytes, &at, &command->launch.parameter_offset);
    if (!error)
        error = pack_parameters(function, source, at);
    if (!error)
        error = stream_push(stream, &command->descriptor);
    stream_end(stream);
    return error;
}

/* A module was lost since the server was asked for this one. */
static inline gpushare_error check_loss(gpushare_function *function)
{
    uint32_t lost = shared_word_hint(&function->connection->status->modules_lost);
    return __builtin_expect(
               lost != atomic_load_explicit(&function->losses_seen, memory_order_relaxed), 0)
               ? module_check_function(function)
               : GPUSHARE_SUCCESS;
}

__attribute__((always_inline)) static inline gpushare_error
queue_launch(gpushare_function *function, struct gpushare_dim grid, struct gpushare_dim block,
             uint32_t shared, gpushare_stream *handle, struct launch_source source, uint16_t flags)
{
    struct gpushare_stream *stream = function->connection->default_stream;
    gpushare_error error =
        handle ? thread_stream_resolve(function->connection, handle, &stream) : GPUSHARE_SUCCESS;
    if (error || (error = check_loss(function)) ||
        (error = check_geometry(function, grid, block, shared)))
        return error;
    cpu_prefetch_write(&stream->producer.ring.header->tail);
    union command command;
    fill_command(&command, function, grid, block, shared, flags);
    if (function->parameter_bytes > PROTO_PARAMETERS_INLINE)
        return submit_long(stream, &command, function, source);
    if (function->parameter_bytes &&
        (error = pack_parameters(function, source, command.launch.inline_parameters)))
        return error;
    return stream_push_alone(stream, &command.descriptor);
}

gpushare_error launch_kernel(gpushare_function *function, struct gpushare_dim grid,
                             struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                             void *const *parameters)
{
    return queue_launch(function, grid, block, shared, stream,
                        (struct launch_source){.each = parameters}, 0);
}

gpushare_error launch_shaped(gpushare_function *function, const struct launch_shape *shape,
                             gpushare_stream *stream, void *const *parameters)
{
    return queue_launch(function, shape->grid, shape->block, shape->shared, stream,
                        (struct launch_source){.each = parameters}, 0);
}

gpushare_error launch_packed(gpushare_function *function, struct gpushare_dim grid,
                             struct gpushare_dim block, uint32_t shared, gpushare_stream *stream,
                             const void *parameters)
{
    return queue_launch(
        function, grid, block, shared, stream,
        (struct launch_source){.packed = function->parameter_bytes ? parameters : ""}, 0);
}

/* The driver would refuse it too, but only once it is launched, as a failure of the stream. */
static gpushare_error check_fit(gpushare_function *function, struct gpushare_dim grid,
                                struct gpushare_dim block, uint32_t shared)
{
    gpushare_connection *connection = function->connection;
    uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    uint32_t each;
    if (connection->server_minor < COOPERATIVE_SINCE)
        return failure(MESSAGE(launch_cooperative_server), function->name);
    gpushare_error error =
        module_query_occupancy(function, block.x * block.y * block.z, shared, &each);
    if (error)
        return error;
    uint32_t multiprocessors = atomic_load(&connection->multiprocessors);
    return blocks <= (uint64_t)each * multiprocessors
               ? GPUSHARE_SUCCESS
               : failure(MESSAGE(launch_cooperative_large), function->name,
                         (unsigned long long)blocks, each, multiprocessors);
}

gpushare_error launch_cooperative(gpushare_function *function, struct gpushare_dim grid,
                                  struct gpushare_dim block, uint32_t shared,
                                  gpushare_stream *stream, struct launch_source source)
{
    gpushare_error error = check_geometry(function, grid, block, shared);
    if (!error)
        error = check_fit(function, grid, block, shared);
    return error ? error
                 : queue_launch(function, grid, block, shared, stream, source,
                                PROTO_LAUNCH_COOPERATIVE);
}
