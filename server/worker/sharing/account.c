/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/account.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "common/ipc/timeline.h"
#include "server/worker/client/client.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/stream_pool.h"

/* The driver gives elapsed times as floats of milliseconds, which over a second are good to 60
 * ns. */
#define REBASE_NS 1e9

cuda_result account_open(struct account *account, const struct cuda_driver *cuda,
                         const struct partition_table *partitions)
{
    memset(account, 0, sizeof *account);
    account->cuda = cuda;
    account->partitions = partitions;
    account->incoming_end = &account->incoming;
    account->settled =
        -1e18; /* spans may turn out to have begun before the first one that is seen */
    pthread_mutex_init(&account->lock, NULL);
    pthread_mutex_init(&account->collecting, NULL);
    for (uint32_t i = 0; i < ACCOUNT_SPANS; i++) {
        struct account_span *span = &account->spans[i];
        cuda_result result = cuda->cuEventCreate(&span->start, CUDA_EVENT_DEFAULT);
        if (result == CUDA_OK)
            result = cuda->cuEventCreate(&span->end, CUDA_EVENT_DEFAULT);
        if (result != CUDA_OK) {
            account_close(account);
            return result;
        }
        span->next = account->free;
        account->free = span;
        account->free_count++;
    }
    return CUDA_OK;
}

void account_close(struct account *account)
{
    if (!account->cuda)
        return;
    for (uint32_t i = 0; i < ACCOUNT_SPANS; i++) {
        if (account->spans[i].start)
            account->cuda->cuEventDestroy(account->spans[i].start);
        if (account->spans[i].end)
            account->cuda->cuEventDestroy(account->spans[i].end);
    }
    pthread_mutex_destroy(&account->lock);
    pthread_mutex_destroy(&account->collecting);
    account->cuda = NULL;
}

/* ---- submitter ---- */

static struct account_span *take_free(struct account *account, struct client *client)
{
    pthread_mutex_lock(&account->lock);
    /* As many as are left for others: one client alone has half of them at most. */
    struct account_span *span = client->usage.spans < account->free_count ? account->free : NULL;
    if (span) {
        account->free = span->next;
        account->free_count--;
        client->usage.spans++;
    }
    pthread_mutex_unlock(&account->lock);
    return span;
}

/* The span counts no more against its client; it may still be the base of times. */
static void leave_client(struct account *account, const struct account_span *span)
{
    pthread_mutex_lock(&account->lock);
    span->stream->client->usage.spans--;
    pthread_mutex_unlock(&account->lock);
}

static void give_free(struct account *account, struct account_span *span)
{
    pthread_mutex_lock(&account->lock);
    span->next = account->free;
    account->free = span;
    account->free_count++;
    pthread_mutex_unlock(&account->lock);
}

void account_begin(struct account *account, struct client_stream *stream)
{
    struct account_span *span = take_free(account, stream->client);
    if (!span) {
        stream->unmeasured++;
        return;
    }
    span->stream = stream;
    span->begun = trace_is_on(account->trace) ? timeline_now() : 0;
    if (account->cuda->cuEventRecord(span->start, stream->bound->handle) != CUDA_OK) {
        leave_client(account, span);
        give_free(account, span);
        return;
    }
    span->sm_groups = stream->client->shared.partition->sm_groups;
    /* The batches that found no span free are taken to be as long as this one. */
    span->weight = 1 + stream->unmeasured;
    span->first = stream->ring.value;
    stream->unmeasured = 0;
    stream->span = span;
}

void account_end(struct account *account, struct client_stream *stream, uint64_t value)
{
    struct account_span *span = stream->span;
    stream->span = NULL;
    if (account->cuda->cuEventRecord(span->end, stream->bound->handle) != CUDA_OK) {
        leave_client(account, span);
        give_free(account, span);
        return;
    }
    span->value = value;
    span->started = span->over = false;
    span->next = NULL;
    pthread_mutex_lock(&account->lock);
    *account->incoming_end = span;
    account->incoming_end = &span->next;
    pthread_mutex_unlock(&account->lock);
}

/* ---- times ---- */

static void take_incoming(struct account *account)
{
    struct account_span **end = &account->open;
    while (*end)
        end = &(*end)->next;
    pthread_mutex_lock(&account->lock);
    *end = account->incoming;
    account->incoming = NULL;
    account->incoming_end = &account->incoming;
    pthread_mutex_unlock(&account->lock);
}

/* Finds when a span began, if it has begun. The first span of all is the origin of times. */
static bool find_start(struct account *account, struct account_span *span)
{
    float milliseconds = 0;
    if (account->cuda->cuEventQuery(span->start) != CUDA_OK)
        return false;
    if (!account->base) {
        span->from = account->base_time;
        account->base = span;
        return true;
    }
    if (account->cuda->cuEventElapsedTime(&milliseconds, account->base->start, span->start) !=
        CUDA_OK)
        return false;
    span->from = account->base_time + (double)milliseconds * 1e6;
    return true;
}

static bool find_end(struct account *account, struct account_span *span)
{
    float milliseconds = 0;
    if (client_stream_reached(span->stream) < span->value ||
        account->cuda->cuEventElapsedTime(&milliseconds, span->start, span->end) != CUDA_OK)
        return false;
    span->to = span->from + (double)milliseconds * 1e6;
    return true;
}

/* ---- trace ---- */

static void align_clock(struct account *account, const struct account_span *span, uint64_t seen)
{
    double least = (double)span->begun - span->from, most = (double)seen - span->to;
    if (!account->aligned)
        account->offset = span->begun ? least : most;
    else if (span->begun && account->offset < least)
        account->offset = least;
    if (account->offset > most)
        account->offset = most;
    account->aligned = true;
}

static void write_span(struct account *account, struct account_span *span, double to)
{
    struct client_stream *stream = span->stream;
    double from = span->from + account->offset;
    struct proto_trace_record record = {
        .kind = TRACE_SPAN,
        .client = stream->client->number,
        .stream = stream->index,
        .value = (uint32_t)(span->value - span->first),
        .from = from > 0 ? (uint64_t)from : 0,
        .to = (uint64_t)(to + account->offset),
    };
    /* The two clocks may have been aligned again since the stream's last span. */
    if (record.from < stream->traced)
        record.from = stream->traced;
    if (record.to < record.from)
        record.to = record.from;
    stream->traced = record.to;
    memcpy(record.sm_groups, span->sm_groups.bits, sizeof record.sm_groups);
    trace_add(account->trace, &record);
}

void account_trace_begin(struct account *account)
{
    account_collect(account);
    pthread_mutex_lock(&account->collecting);
    account->aligned = false;
    pthread_mutex_unlock(&account->collecting);
}

void account_trace_end(struct account *account)
{
    account_collect(account);
    pthread_mutex_lock(&account->collecting);
    double now = (double)timeline_now();
    for (struct account_span *span = account->open; span; span = span->next) {
        if (!span->started || span->over)
            continue;
        if (!account->aligned || account->offset > now - span->from)
            account->offset = now - span->from; /* the span has begun, so it began before now */
        account->aligned = true;
        write_span(account, span, now - account->offset);
    }
    pthread_mutex_unlock(&account->collecting);
}

/* ---- times, continued ---- */

/* Returns the time up to which all spans are known well enough to be counted. */
static double find_times(struct account *account)
{
    double horizon = account->settled;
    bool traced = trace_is_on(account->trace);
    for (struct account_span *span = account->open; span; span = span->next) {
        if (!span->started)
            span->started = find_start(account, span);
        if (span->started && !span->over) {
            span->over = find_end(account, span);
            if (span->over && traced) {
                align_clock(account, span, timeline_now());
                write_span(account, span, span->to);
            }
        }
        if (span->over && span->to > horizon)
            horizon = span->to;
    }
    return horizon;
}

/* ---- sharing ---- */

struct edge {
    double at;
    struct account_span *span;
    bool begins;
};

static int by_time(const void *a, const void *b)
{
    const struct edge *one = a, *other = b;
    if (one->at != other->at)
        return one->at < other->at ? -1 : 1;
    /* Ends first: a span that begins as another one ends does not run beside it. */
    return (int)one->begins - (int)other->begins;
}

/* A client with spans under way. */
struct runner {
    struct client *client;
    struct sm_group_set sm_groups; /* of the span that began last */
    uint32_t spans, weight;
    double earned;
};

/* How many clients run on each SM group. */
static void count_runners(const struct partition_table *partitions, const struct runner *runners,
                          uint32_t count, uint32_t on[SM_GROUPS_MAX])
{
    memset(on, 0, partitions->count * sizeof *on);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t a = 0; runners[i].spans && a < partitions->count; a++)
            on[a] += sm_group_set_has(&runners[i].sm_groups, a);
}

/* The client's part of the time of each of its SM groups, averaged over these groups. */
static double share_of(const struct partition_table *partitions, const uint32_t on[SM_GROUPS_MAX],
                       const struct runner *one)
{
    double sum = 0;
    uint32_t sm_groups = 0;
    for (uint32_t a = 0; a < partitions->count; a++) {
        if (!sm_group_set_has(&one->sm_groups, a))
            continue;
        sum += 1.0 / on[a];
        sm_groups++;
    }
    return sm_groups ? sum / sm_groups : 1.0;
}

/* Adds this time to what each running client has earned. */
static void earn_time(const struct partition_table *partitions, struct runner *runners,
                      uint32_t count, double passed)
{
    uint32_t on[SM_GROUPS_MAX];
    count_runners(partitions, runners, count, on);
    for (uint32_t i = 0; i < count; i++)
        if (runners[i].spans)
            runners[i].earned += passed * runners[i].weight / runners[i].spans *
                                 share_of(partitions, on, &runners[i]);
}

static struct runner *runner_of(struct runner *runners, uint32_t *count, struct client *client)
{
    for (uint32_t i = 0; i < *count; i++)
        if (runners[i].client == client)
            return &runners[i];
    runners[*count] = (struct runner){.client = client};
    return &runners[(*count)++];
}

static void sweep_edges(struct account *account, struct edge *edges, uint32_t edge_count,
                        struct runner *runners)
{
    uint32_t count = 0;
    double last = 0;
    qsort(edges, edge_count, sizeof *edges, by_time);
    for (uint32_t e = 0; e < edge_count; e++) {
        double passed = edges[e].at - last;
        if (e && passed > 0)
            earn_time(account->partitions, runners, count, passed);
        last = edges[e].at;
        struct runner *runner = runner_of(runners, &count, edges[e].span->stream->client);
        uint32_t weight = edges[e].span->weight;
        if (edges[e].begins)
            runner->sm_groups = edges[e].span->sm_groups;
        runner->spans += edges[e].begins ? 1 : -1u;
        runner->weight += edges[e].begins ? weight : -weight;
    }
    for (uint32_t i = 0; i < count; i++)
        /* Relaxed: a sum that is only read for display and charging, in any order. */
        atomic_fetch_add_explicit(&runners[i].client->usage.gpu_nanoseconds,
                                  (uint64_t)(runners[i].earned + 0.5), memory_order_relaxed);
}

static void settle_spans(struct account *account, double horizon)
{
    static const size_t most = ACCOUNT_SPANS;
    struct edge *edges = malloc(2 * most * sizeof *edges);
    struct runner *runners = malloc(most * sizeof *runners);
    uint32_t count = 0;
    for (struct account_span *span = account->open; edges && span; span = span->next) {
        if (!span->started)
            continue;
        double from = max(span->from, account->settled);
        double to = span->over ? min(span->to, horizon) : horizon;
        if (to <= from)
            continue;
        edges[count++] = (struct edge){.at = from, .span = span, .begins = true};
        edges[count++] = (struct edge){.at = to, .span = span, .begins = false};
    }
    /* If memory is short, no client is charged for this stretch of time; the next one counts
     * again. */
    if (edges && runners)
        sweep_edges(account, edges, count, runners);
    free(edges);
    free(runners);
    account->settled = horizon;
}

/* Makes a later span's start the origin of times, before the floats get too coarse. */
static void rebase_times(struct account *account, struct account_span *span)
{
    if (!account->base || span == account->base || !account->base->over)
        return;
    if (span->from - account->base_time < REBASE_NS)
        return;
    give_free(account, account->base);
    account->base = span;
    account->base_time = span->from;
}

static void release_settled(struct account *account)
{
    struct account_span **link = &account->open;
    while (*link) {
        struct account_span *span = *link;
        if (!span->over) {
            link = &span->next;
            continue;
        }
        *link = span->next;
        leave_client(account, span);
        rebase_times(account, span);
        if (span != account->base)
            give_free(account, span);
    }
}

void account_collect(struct account *account)
{
    pthread_mutex_lock(&account->collecting);
    take_incoming(account);
    double horizon = find_times(account);
    if (horizon > account->settled)
        settle_spans(account, horizon);
    release_settled(account);
    pthread_mutex_unlock(&account->collecting);
}

void account_forget(struct account *account, const struct client *client)
{
    account_collect(account);
    pthread_mutex_lock(&account->collecting);
    struct account_span **link = &account->open;
    while (*link) {
        struct account_span *span = *link;
        if (span->stream->client != client) {
            link = &span->next;
            continue;
        }
        *link = span->next;
        leave_client(account, span);
        if (span != account->base)
            give_free(account, span);
    }
    pthread_mutex_unlock(&account->collecting);
}
