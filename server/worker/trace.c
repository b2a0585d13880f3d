/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/trace.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/ipc/shared_word.h"
#include "common/util.h"

/* Of the layouts; and more records than a trace can have, those without room included. */
enum { VERSION = 1 };
#define RECORDS_MAX UINT32_MAX

void trace_open(struct trace *trace)
{
    *trace = (struct trace){.memory = SHM_NONE};
}

static struct proto_trace_header *header_of(const struct trace *trace)
{
    return trace->memory.base;
}

static struct proto_trace_record *records_of(const struct trace *trace)
{
    return (void *)((char *)trace->memory.base + sizeof(struct proto_trace_header));
}

/* Maps the memory. Takes fd over, on failure too. Returns 0 or -errno. */
static int memory_take(struct trace *trace, int fd, uint64_t bytes)
{
    struct shm memory;
    trace_end(trace);
    if (bytes < sizeof(struct proto_trace_header) + sizeof(struct proto_trace_record)) {
        close(fd);
        return -EINVAL;
    }
    int adopted = shm_adopt(&memory, fd, bytes, true);
    if (adopted < 0) {
        close(fd);
        return adopted;
    }
    trace->memory = memory;
    trace->capacity =
        (bytes - sizeof(struct proto_trace_header)) / sizeof(struct proto_trace_record);
    return 0;
}

int trace_begin(struct trace *trace, int fd, uint64_t bytes, const struct trace_device *device)
{
    int taken = memory_take(trace, fd, bytes);
    if (taken < 0)
        return taken;
    trace->started = clock_now();
    trace->lost_at = 0;
    *header_of(trace) = (struct proto_trace_header){
        .version = VERSION,
        .record_bytes = sizeof(struct proto_trace_record),
        .capacity = trace->capacity,
        .started = trace->started,
        .mode = device->mode,
        .sm_groups = device->sm_groups,
        .sm_group_multiprocessors = device->sm_group_multiprocessors,
        .remainder = device->remainder,
    };
    atomic_store(&trace->on, 1);
    return 0;
}

/* The worker that wrote the header may have been lost because it wrote anything anywhere. */
static bool header_is_sound(const struct trace *trace, const struct proto_trace_header *header,
                            uint64_t lost_at)
{
    return header->version == VERSION &&
           header->record_bytes == sizeof(struct proto_trace_record) &&
           header->capacity == trace->capacity && header->started <= lost_at;
}

int trace_go_on(struct trace *trace, int fd, uint64_t bytes, uint64_t lost_at)
{
    int taken = memory_take(trace, fd, bytes);
    if (taken < 0)
        return taken;
    struct proto_trace_header *header = header_of(trace), seen = *header;
    if (!header_is_sound(trace, &seen, lost_at)) {
        shm_release(&trace->memory);
        return -EINVAL;
    }
    trace->started = seen.started;
    trace->lost_at = lost_at;
    /* A number that could wrap would have old records overwritten. */
    shared_word_set(&header->next, min(seen.next, (uint64_t)RECORDS_MAX));
    shared_word_set(&header->ended, 0); /* a worker that ended in order has ended the trace too */
    atomic_store(&trace->on, 1);
    return 0;
}

void trace_end(struct trace *trace)
{
    if (!trace->memory.base)
        return;
    atomic_store(&trace->on, 0);
    /* A thread that counted itself as a writer before this sees the trace still on, and is done
     * soon. A thread that does so later sees the trace off. */
    while (atomic_load(&trace->writers))
        sched_yield();
    /* Published behind the records: whoever reads that it ended finds them all. */
    shared_word_publish(&header_of(trace)->ended, clock_now());
    shm_release(&trace->memory);
}

static void write_down(struct trace *trace, const struct proto_trace_record *record)
{
    struct proto_trace_record made = *record;
    made.to = max(made.to, made.from);
    if (made.to < trace->started)
        return;
    made.from = max(made.from, trace->started);
    uint64_t at = shared_word_draw(&header_of(trace)->next);
    if (at >= trace->capacity)
        return;
    struct proto_trace_record *place = &records_of(trace)[at];
    made.kind = 0;
    *place = made;
    /* The kind comes last: a reader takes a record of kind 0 for one that is not written yet. */
    shared_word_publish(&place->kind, record->kind);
}

void trace_add(struct trace *trace, const struct proto_trace_record *record)
{
    if (!trace_is_on(trace))
        return;
    atomic_fetch_add(&trace->writers, 1);
    if (atomic_load(&trace->on))
        write_down(trace, record);
    atomic_fetch_sub(&trace->writers, 1);
}

void trace_add_recovery(struct trace *trace, uint32_t client)
{
    struct proto_trace_record record = {
        .kind = TRACE_RECOVERY, .client = client, .from = trace->lost_at, .to = clock_now()};
    if (trace->lost_at)
        trace_add(trace, &record);
}
