/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/engine/connection.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

static bool range_contains(uint64_t base, uint64_t bytes, uint64_t address)
{
    return address - base < bytes;
}

static bool in_window(const gpushare_connection *connection, uint64_t address)
{
    return range_contains(connection->device_base, connection->window_bytes, address) ||
           range_contains(connection->host_base, connection->window_bytes, address);
}

enum memory_kind memory_classify(gpushare_connection *connection, uint64_t address, uint64_t count)
{
    struct allocation allocation;
    uint64_t last = address + count - 1;
    if (last < address)
        return MEMORY_ASTRAY;
    if (allocation_find(&connection->allocations, address, &allocation)) {
        uint64_t offset = address - allocation.address;
        if (offset > allocation.asked || count > allocation.asked - offset)
            return MEMORY_ASTRAY;
        return allocation.kind == ALLOCATION_HOST || allocation.kind == ALLOCATION_MANAGED
                   ? MEMORY_HOST
                   : MEMORY_DEVICE;
    }
    if (in_window(connection, address) || in_window(connection, last))
        return MEMORY_ASTRAY;
    /* Device memory of another connection is not readable here: it is no ordinary memory. */
    return connection_any_window(address) || connection_any_window(last) ? MEMORY_ASTRAY
                                                                         : MEMORY_ORDINARY;
}

static gpushare_error fail_no_memory(void)
{
    return failure(MESSAGE(process_no_memory));
}

/* ---- device memory ---- */

static gpushare_error send_device_free(gpushare_connection *connection, uint64_t address)
{
    struct proto_memory_free body = {.address = address};
    struct session_call call = {.request = PROTO_MEMORY_FREE, .body = &body, .reply = PROTO_DONE};
    return connection_call(connection, &call);
}

/* ---- freed memory that stays ---- */

/* The minor version of the protocol whose servers take it back. */
enum { IDLE_SINCE = 3 };

void memory_keep_freed(gpushare_connection *connection)
{
    if (connection->server_minor >= IDLE_SINCE)
        idle_memory_begin(&connection->idle, connection->header->idle,
                          connection->attached.grant.allowance.memory.limit / 2);
}

static bool note_stream(const gpushare_connection *connection, const struct gpushare_stream *stream,
                        struct idle_work *work)
{
    uint64_t last = stream_last(stream);
    if (stream_has_reached(connection, stream->index, last))
        return true;
    if (work->streams == IDLE_STREAMS_MAX)
        return false;
    work->of[work->streams].completed =
        &ring_at(connection->rings.base, connection->status_memory.base, stream->index)
             .status->completed;
    work->of[work->streams++].value = last;
    return true;
}

/* Notes the work that was issued until now and is not done. Returns false if it is in too many
 * streams. */
static bool note_work(gpushare_connection *connection, struct idle_work *work)
{
    const struct gpushare_stream *stream;
    pthread_mutex_lock(&connection->lists);
    bool noted = note_stream(connection, connection->default_stream, work);
    LIST_FOR_EACH (stream, &connection->streams, in_connection)
        noted = noted && note_stream(connection, stream, work);
    pthread_mutex_unlock(&connection->lists);
    return noted;
}

/* Keeps a block that was freed; older ones give way. Returns false if it is to go to the server. */
static bool keep_idle(gpushare_connection *connection, const struct allocation *freed)
{
    struct idle_memory *idle = &connection->idle;
    struct idle_work work = {0};
    uint64_t oldest;
    if (!idle_memory_may_keep(idle, freed->bytes) || !note_work(connection, &work))
        return false;
    while (!idle_memory_keep(idle, freed, &work))
        if (!idle_memory_oldest(idle, &oldest) || send_device_free(connection, oldest))
            return false;
    return true;
}

/* ---- allocating and freeing ---- */

/* Asks the server for memory. */
static gpushare_error ask_device_memory(gpushare_connection *connection, uint64_t count,
                                        struct allocation *allocation)
{
    struct proto_memory_alloc body = {.count = count};
    struct proto_memory_allocated reply;
    struct session_call call = {.request = PROTO_MEMORY_ALLOC,
                                .body = &body,
                                .reply = PROTO_MEMORY_ALLOCATED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(connection, &call);
    if (!error)
        *allocation = (struct allocation){.address = reply.address,
                                          .bytes = reply.count,
                                          .asked = count,
                                          .kind = ALLOCATION_DEVICE};
    return error;
}

gpushare_error memory_device_alloc(gpushare_connection *connection, uint64_t count,
                                   gpushare_address *address)
{
    struct allocation allocation;
    gpushare_error error = idle_memory_take(&connection->idle, count, &allocation)
                               ? GPUSHARE_SUCCESS
                               : ask_device_memory(connection, count, &allocation);
    if (error)
        return error;
    if (allocation_add(&connection->allocations, &allocation) < 0) {
        (void)send_device_free(connection, allocation.address);
        return fail_no_memory();
    }
    *address = allocation.address;
    return GPUSHARE_SUCCESS;
}

gpushare_error memory_device_trim(gpushare_connection *connection)
{
    gpushare_error error = GPUSHARE_SUCCESS;
    uint64_t oldest;
    while (!error && idle_memory_oldest(&connection->idle, &oldest))
        error = send_device_free(connection, oldest);
    return error;
}

/* Of memory that is out of the table. */
static gpushare_error release_device(gpushare_connection *connection,
                                     const struct allocation *taken)
{
    return keep_idle(connection, taken) ? GPUSHARE_SUCCESS
                                        : send_device_free(connection, taken->address);
}

gpushare_error memory_device_free(gpushare_connection *connection, gpushare_address address)
{
    struct allocation taken;
    /* Removed before the server is asked: it may give the address to another thread at once. */
    if (!allocation_take(&connection->allocations, address, ALLOCATION_DEVICE, &taken))
        return failure(MESSAGE(device_free_unknown), (unsigned long long)address);
    if (held_memory_keep(&connection->held, &taken))
        return GPUSHARE_SUCCESS;
    gpushare_error error = release_device(connection, &taken);
    if (error) /* the server did not free it */
        (void)allocation_add(&connection->allocations, &taken);
    return error;
}

gpushare_error memory_usage(gpushare_connection *connection, struct gpushare_memory_info *info)
{
    struct proto_memory_info reply;
    struct session_call call = {.request = PROTO_MEMORY_QUERY,
                                .reply = PROTO_MEMORY_INFO,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply};
    gpushare_error error = connection_call(connection, &call);
    if (!error)
        *info = (struct gpushare_memory_info){.size = sizeof *info,
                                              .limit = reply.limit,
                                              .used = reply.used,
                                              .host_limit = reply.host_limit,
                                              .host_used = reply.host_used};
    return error;
}

/* ---- shared host buffers ---- */

static void *address_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static gpushare_error send_host_free(gpushare_connection *connection, uint64_t address)
{
    struct proto_host_free body = {.address = address};
    struct session_call call = {.request = PROTO_HOST_FREE, .body = &body, .reply = PROTO_DONE};
    return connection_call(connection, &call);
}

/* Takes a buffer's pages out of the process. Its addresses stay reserved. */
static void unmap_buffer(uint64_t address, uint64_t bytes)
{
    void *gone = mmap(address_pointer(address), bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (gone != MAP_FAILED)
        madvise(gone, bytes, MADV_DONTFORK);
}

static gpushare_error map_buffer(gpushare_connection *connection,
                                 const struct proto_host_allocated *reply, uint64_t count, int fd,
                                 enum allocation_kind kind)
{
    uint64_t window = connection->window_bytes, offset = reply->address - connection->host_base;
    if (!reply->count || reply->address % 4096 || reply->count % 4096 || offset >= window ||
        reply->count > window - offset)
        return failure(MESSAGE(server_buffer_outside));
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return failure(MESSAGE(server_buffer_unsealed));
    int result = shm_map_at(fd, reply->address, reply->count, true);
    if (result < 0)
        return failure(MESSAGE(host_buffer_unmapped), strerror(-result));
    /* A forked child would keep the memory after it was freed, charged to nobody. */
    madvise(address_pointer(reply->address), reply->count, MADV_DONTFORK);
    struct allocation allocation = {
        .address = reply->address, .bytes = reply->count, .asked = count, .kind = kind};
    if (allocation_add(&connection->allocations, &allocation) == 0)
        return GPUSHARE_SUCCESS;
    unmap_buffer(reply->address, reply->count);
    return fail_no_memory();
}

static gpushare_error alloc_buffer(gpushare_connection *connection, uint64_t count, void **out,
                                   enum allocation_kind kind)
{
    struct proto_host_alloc body = {.count = count};
    struct proto_host_allocated reply;
    int fd;
    struct session_call call = {.request = PROTO_HOST_ALLOC,
                                .body = &body,
                                .reply = PROTO_HOST_ALLOCATED,
                                .reply_body = &reply,
                                .reply_bytes = sizeof reply,
                                .reply_fds = &fd,
                                .reply_fd_max = 1};
    gpushare_error error = connection_call(connection, &call);
    if (error)
        return error;
    error = map_buffer(connection, &reply, count, fd, kind);
    close(fd);
    if (error) {
        (void)send_host_free(connection, reply.address);
        return error;
    }
    *out = address_pointer(reply.address);
    return GPUSHARE_SUCCESS;
}

gpushare_error memory_buffer_alloc(gpushare_connection *connection, uint64_t count, void **buffer)
{
    return alloc_buffer(connection, count, buffer, ALLOCATION_HOST);
}

gpushare_error memory_managed_alloc(gpushare_connection *connection, uint64_t count, void **buffer)
{
    return alloc_buffer(connection, count, buffer, ALLOCATION_MANAGED);
}

static gpushare_error release_buffer(gpushare_connection *connection,
                                     const struct allocation *buffer)
{
    /* Unmapped before the server is asked: it may give the address to another thread at once. */
    unmap_buffer(buffer->address, buffer->bytes);
    return send_host_free(connection, buffer->address);
}

static gpushare_error free_buffer(gpushare_connection *connection, uint64_t address,
                                  enum allocation_kind kind)
{
    struct allocation buffer;
    if (!allocation_take(&connection->allocations, address, kind, &buffer))
        return failure(MESSAGE(host_free_unknown), (unsigned long long)address);
    if (held_memory_keep(&connection->held, &buffer))
        return GPUSHARE_SUCCESS;
    gpushare_error error = release_buffer(connection, &buffer);
    if (error) /* the server did not free it: it can be freed again, though not be read */
        (void)allocation_add(&connection->allocations, &buffer);
    return error;
}

gpushare_error memory_buffer_free(gpushare_connection *connection, uint64_t address)
{
    return free_buffer(connection, address, ALLOCATION_HOST);
}

gpushare_error memory_managed_free(gpushare_connection *connection, uint64_t address)
{
    return free_buffer(connection, address, ALLOCATION_MANAGED);
}

/* ---- memory that this process will read later ---- */

static bool is_buffer(const struct allocation *allocation)
{
    return allocation->kind == ALLOCATION_HOST || allocation->kind == ALLOCATION_MANAGED;
}

gpushare_error memory_hold(gpushare_connection *connection, uint64_t address, uint64_t count,
                           struct memory_hold *hold, enum memory_kind *kind)
{
    struct allocation found;
    int result =
        held_memory_add(&connection->held, hold, address, &connection->allocations, &found);
    if (result == -ENOMEM)
        return fail_no_memory();
    uint64_t offset = result ? 0 : address - found.address;
    if (result || offset > found.asked || count > found.asked - offset) {
        if (!result)
            memory_let_go(connection, hold);
        return failure(MESSAGE(wait_not_one_allocation), (unsigned long long)count,
                       (unsigned long long)address);
    }
    *kind = is_buffer(&found) ? MEMORY_HOST : MEMORY_DEVICE;
    return GPUSHARE_SUCCESS;
}

/* A server that refuses has ended, or does not know the memory: in both cases it has it no more. */
void memory_let_go(gpushare_connection *connection, struct memory_hold *hold)
{
    struct allocation freed;
    if (!held_memory_end(&connection->held, hold, &freed))
        return;
    if (is_buffer(&freed))
        (void)release_buffer(connection, &freed);
    else
        (void)release_device(connection, &freed);
}
