/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/overrun.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/ipc/channel.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/scheduler/lateness.h"
#include "server/worker/worker.h"

/* Of a client with a limit: a kernel that never ends is late by one limit at most. A launch pays
 * for half of a completion. */
#define BATCH_MAX 2u
/* The head of a stream is seen that late: on a busy machine the completer looks less often. Work
 * that began within this time began at once. */
#define SEEN_LATE_NS (4 * LATENESS_NS)
/* Nobody waits who waits for less. */
#define WAITS_NS (100 * UNITS_MS)
/* Time in which the completer did not run is not counted beyond this: on a machine that kept it
 * from running, nobody knows when older work ended. */
#define LOOK_NS_MAX UINT64_C(50000000)

struct overrun_head {
    struct client *client;
    struct client_stream *stream;
    struct sm_group_set sm_groups;
    uint64_t started_at, order, kernel_time;
    uint64_t commands; /* of its batch, at most */
    bool leaving;
    bool waits;  /* it waits for other streams of its client, and occupies nothing */
    bool behind; /* it waits, or older work is in flight on its multiprocessors */
};

void overrun_open(struct overrun *overrun)
{
    *overrun = (struct overrun){.departed_limit = 0};
}

void overrun_close(struct overrun *overrun)
{
    free(overrun->heads);
    *overrun = (struct overrun){.departed_limit = 0};
}

void overrun_set_departed(struct overrun *overrun, struct worker *worker, uint64_t limit)
{
    pthread_mutex_lock(&worker->clients_lock);
    overrun->departed_limit = limit;
    pthread_mutex_unlock(&worker->clients_lock);
}

void overrun_set_kernel_time(struct client *client, uint64_t kernel_time)
{
    for (uint32_t i = 0; !client->shared.kernel_time && i < client->stream_count; i++)
        client->streams[i].unsplit = client_stream_written(&client->streams[i]);
    client->shared.kernel_time = kernel_time;
}

uint32_t overrun_batch(const struct client *client)
{
    return client->shared.kernel_time ? BATCH_MAX : (uint32_t)SUBMITTER_BATCH;
}

/* ---- what is at work ---- */

/* The commands of the batch that runs, at most. */
static uint64_t commands_of(const struct client_stream *stream, uint64_t reached, uint64_t written)
{
    if (stream->work.batch > reached)
        return stream->work.batch - reached;
    if (stream->unsplit > reached)
        return min(stream->unsplit - reached, (uint64_t)SUBMITTER_BATCH);
    return min(written - reached, (uint64_t)BATCH_MAX);
}

/* Whether the command at the head waits for a stream that is still at work. A wait further behind
 * says nothing about the command that runs. */
static bool waits_for_stream(const struct client_stream *stream, uint64_t reached)
{
    const struct stream_wait *wait = stream_waits_find(&stream->waits, reached + 1);
    for (uint32_t i = 0; wait && i < wait->count; i++) {
        const struct client_stream *source = &stream->client->streams[wait->sources[i].stream];
        if (client_stream_reached(source) < wait->sources[i].value)
            return true;
    }
    return false;
}

/* Returns false if there is no memory for the row: this look is left out then. */
static bool add_head(struct overrun *overrun, struct client_stream *stream)
{
    struct client *client = stream->client;
    uint64_t written = client_stream_written(stream), reached = client_stream_reached(stream);
    if (reached >= written)
        return true;
    if (array_reserve(overrun->heads, overrun->room, overrun->count + 1) < 0)
        return false;
    struct overrun_head *head = &overrun->heads[overrun->count++];
    uint64_t started_at = max(stream->work.started_at, stream->excused);
    if (overrun->unseen)
        started_at = stream->excused = min(started_at + overrun->unseen, overrun->looked_at);
    *head = (struct overrun_head){.client = client,
                                  .stream = stream,
                                  .started_at = started_at,
                                  .order = stream->work.order,
                                  .kernel_time = client->shared.kernel_time,
                                  .commands = commands_of(stream, reached, written),
                                  .leaving = client_state_is_leaving(client_state(client)),
                                  .waits = waits_for_stream(stream, reached)};
    if (client->shared.partition)
        head->sm_groups = client->shared.partition->sm_groups;
    else
        sm_group_set_all(&head->sm_groups);
    return true;
}

static bool add_client(struct overrun *overrun, struct client *client)
{
    bool added = true;
    client_lock(client);
    for (uint32_t i = bits_next(client->shared.busy, 0, client->stream_count);
         added && i < client->stream_count;
         i = bits_next(client->shared.busy, i + 1, client->stream_count))
        added = add_head(overrun, &client->streams[i]);
    pthread_mutex_unlock(&client->lock);
    return added;
}

static int by_order(const void *a, const void *b)
{
    const struct overrun_head *one = a, *other = b;
    return one->order < other->order ? -1 : one->order > other->order;
}

/* Finds the heads that wait, and those that may wait for older ones. Their time begins anew. */
static void excuse_heads(struct overrun *overrun, uint64_t now)
{
    struct sm_group_set older = {{0}};
    if (!overrun->count)
        return; /* with nothing ever seen there is no array, which qsort must not be given */
    qsort(overrun->heads, overrun->count, sizeof *overrun->heads, by_order);
    for (size_t i = 0; i < overrun->count; i++) {
        struct overrun_head *head = &overrun->heads[i];
        head->behind = head->waits || sm_group_set_overlaps(&head->sm_groups, &older);
        if (head->behind)
            head->stream->excused = now;
        if (!head->waits)
            sm_group_set_join(&older, &head->sm_groups);
    }
}

/* ---- who is told ---- */

static void tell_supervisor(struct overrun *overrun, struct worker *worker, uint32_t client,
                            const struct error *why)
{
    struct proto_worker_overran overran = {.error = why->number};
    snprintf(overran.text, sizeof overran.text, "%.*s", (int)sizeof overran.text - 1, why->text);
    /* Tried again at the next look if the socket is full. */
    overrun->told =
        channel_send(worker->channel, &(struct channel_packet){.opcode = PROTO_WORKER_OVERRAN,
                                                               .client = client,
                                                               .body = &overran}) == 0;
}

/* Work of another client that began at the same time on the same multiprocessors, or NULL. */
static const struct overrun_head *find_rival(const struct overrun *overrun,
                                             const struct overrun_head *head)
{
    for (size_t i = 0; i < overrun->count; i++) {
        const struct overrun_head *other = &overrun->heads[i];
        uint64_t apart =
            max(other->started_at, head->started_at) - min(other->started_at, head->started_at);
        if (other->client != head->client && !other->waits && apart <= SEEN_LATE_NS &&
            sm_group_set_overlaps(&other->sm_groups, &head->sm_groups))
            return other;
    }
    return NULL;
}

static void tell_kernel(struct overrun *overrun, struct worker *worker,
                        const struct overrun_head *head)
{
    struct error why;
    char limit[UNITS_TEXT];
    const struct overrun_head *rival = find_rival(overrun, head);
    units_format_duration(head->kernel_time, limit);
    if (rival)
        error_set(&why, MESSAGE(kernel_overran_one_of), head->client->number, head->client->name,
                  rival->client->number, rival->client->name, limit);
    else
        error_set(&why, MESSAGE(kernel_overran), head->client->number, head->client->name, limit);
    tell_supervisor(overrun, worker, rival ? 0 : head->client->number, &why);
}

static void look_at_kernels(struct overrun *overrun, struct worker *worker, uint64_t now)
{
    for (size_t i = 0; i < overrun->count && !overrun->told; i++) {
        const struct overrun_head *head = &overrun->heads[i];
        if (head->kernel_time && !head->behind &&
            saturating_sub(now, head->started_at) / head->commands > head->kernel_time)
            tell_kernel(overrun, worker, head);
    }
}

/* ---- clients that left ---- */

static bool is_held(struct client *client)
{
    return client_state(client) == CLIENT_HELD;
}

/* Whether a client waits because of this work, or may. */
static bool others_wait(const struct overrun *overrun, struct worker *worker,
                        const struct overrun_head *head, uint64_t now)
{
    struct quiet_calls_view view;
    quiet_calls_look(&worker->quiet_calls, now, &view);
    if (view.asks)
        return true;
    for (uint32_t i = 0; i < worker->client_count; i++)
        if (is_held(worker->clients[i]))
            return true;
    for (size_t i = 0; i < overrun->count; i++) {
        const struct overrun_head *other = &overrun->heads[i];
        if (!other->leaving && other->order > head->order &&
            saturating_sub(now, other->stream->work.started_at) > WAITS_NS &&
            sm_group_set_overlaps(&other->sm_groups, &head->sm_groups))
            return true;
    }
    return false;
}

static void look_at_departed(struct overrun *overrun, struct worker *worker, uint64_t now,
                             uint64_t passed)
{
    for (size_t i = 0; i < overrun->count && !overrun->told; i++) {
        const struct overrun_head *head = &overrun->heads[i];
        struct client *client = head->client;
        if (!head->leaving || client->shared.departed_at == now ||
            !others_wait(overrun, worker, head, now))
            continue;
        client->shared.departed_at = now;
        client->shared.departed_ns += passed;
        if (client->shared.departed_ns < overrun->departed_limit)
            continue;
        struct error why;
        char limit[UNITS_TEXT];
        error_set(&why, MESSAGE(departed_overran), client->number, client->name,
                  units_format_duration(overrun->departed_limit, limit));
        tell_supervisor(overrun, worker, client->number, &why);
    }
}

/* ---- one look ---- */

/* Whether there is anything to find. Under clients_lock. */
static bool is_needed(const struct overrun *overrun, struct worker *worker)
{
    bool needed = false;
    for (uint32_t i = 0; i < worker->client_count && !needed; i++) {
        struct client *client = worker->clients[i];
        client_lock(client);
        needed = client->shared.kernel_time ||
                 (overrun->departed_limit && client_state_is_leaving(client_state(client)));
        pthread_mutex_unlock(&client->lock);
    }
    return needed;
}

void overrun_look(struct overrun *overrun, struct worker *worker, uint64_t now)
{
    uint64_t before = saturating_sub(now, overrun->looked_at), passed = min(before, LOOK_NS_MAX);
    overrun->unseen = before - passed;
    overrun->looked_at = now;
    if (overrun->told)
        return;
    pthread_mutex_lock(&worker->clients_lock);
    bool whole = is_needed(overrun, worker);
    overrun->count = 0;
    for (uint32_t i = 0; i < worker->client_count && whole; i++)
        whole = add_client(overrun, worker->clients[i]);
    if (whole) {
        excuse_heads(overrun, now);
        look_at_kernels(overrun, worker, now);
        if (overrun->departed_limit)
            look_at_departed(overrun, worker, now, passed);
    }
    pthread_mutex_unlock(&worker->clients_lock);
}
