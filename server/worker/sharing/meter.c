/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/meter.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/units.h"
#include "common/util.h"
#include "server/scheduler/scheduler.h"
#include "server/worker/client/client.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/stream_pool.h"

/* The driver gives elapsed times as floats of milliseconds, which over a second are good to 60
 * ns. */
#define REBASE_NS 1e9

/* A read of the clock costs the submitter some 25 ns: shared by so many batches it is lost in the
 * cost of one. */
#define TIMED_EVERY 16
/* Of the clock by which latencies are told, where 10 us are of no importance. */
#define LATENCY_TURN_NS UNITS_SECOND
/* Of the clock by which a batch's begin is told. Clocks that differ by 10 parts in a million drift
 * by 4 us in four turns, the oldest that it is told by. */
#define BEGIN_TURN_NS (UNITS_SECOND / 10)
/* A call of the driver takes some 3 us. One that took longer waited for a lock or a processor, as a
 * rule before it handed anything over. */
#define CALL_NS      5000
#define LONG_CALL_NS 20000
/* Later than this, a batch waited for something that is not known here: its queue is another
 * client's too, or the device is another process's for a while. */
#define LATE_NS 50000
/* So many punctual batches of a client make up for one that was late: all of them have start events
 * meanwhile. */
#define PUNCTUAL_AGAIN 64

cuda_result meter_open(struct meter *meter, const struct cuda_driver *cuda,
                       const struct partition_table *partitions)
{
    memset(meter, 0, sizeof *meter);
    meter->cuda = cuda;
    meter->partitions = partitions;
    meter->incoming_end = &meter->incoming;
    meter->settled = -1e18; /* spans may turn out to have begun before the first one that is seen */
    meter_clock_open(&meter->latencies, LATENCY_TURN_NS);
    meter_clock_open(&meter->begins, BEGIN_TURN_NS);
    pthread_mutex_init(&meter->lock, NULL);
    pthread_mutex_init(&meter->collecting, NULL);
    for (uint32_t i = 0; i < METER_SPANS; i++) {
        struct meter_span *span = &meter->spans[i];
        cuda_result result = cuda->cuEventCreate(&span->start, CUDA_EVENT_DEFAULT);
        if (result == CUDA_OK)
            result = cuda->cuEventCreate(&span->end, CUDA_EVENT_DEFAULT);
        if (result != CUDA_OK) {
            meter_close(meter);
            return result;
        }
        span->next = meter->free;
        meter->free = span;
        meter->free_count++;
    }
    return CUDA_OK;
}

void meter_close(struct meter *meter)
{
    if (!meter->cuda)
        return;
    for (uint32_t i = 0; i < METER_SPANS; i++) {
        if (meter->spans[i].start)
            meter->cuda->cuEventDestroy(meter->spans[i].start);
        if (meter->spans[i].end)
            meter->cuda->cuEventDestroy(meter->spans[i].end);
    }
    pthread_mutex_destroy(&meter->lock);
    pthread_mutex_destroy(&meter->collecting);
    meter->cuda = NULL;
}

/* ---- submitter ---- */

static struct meter_span *take_free(struct meter *meter, struct client *client)
{
    pthread_mutex_lock(&meter->lock);
    /* As many as are left for others: one client alone has half of them at most. */
    struct meter_span *span = client->usage.spans < meter->free_count ? meter->free : NULL;
    if (span) {
        meter->free = span->next;
        meter->free_count--;
        client->usage.spans++;
    }
    pthread_mutex_unlock(&meter->lock);
    return span;
}

/* The span counts no more against its client; it may still be the base of times. */
static void leave_client(struct meter *meter, const struct meter_span *span)
{
    pthread_mutex_lock(&meter->lock);
    span->stream->client->usage.spans--;
    pthread_mutex_unlock(&meter->lock);
}

static void give_free(struct meter *meter, struct meter_span *span)
{
    pthread_mutex_lock(&meter->lock);
    span->next = meter->free;
    meter->free = span;
    meter->free_count++;
    pthread_mutex_unlock(&meter->lock);
}

/* Whether the span's begin is known without an event. */
static bool begins_now(const struct meter *meter, const struct meter_span *span, uint64_t now)
{
    /* Relaxed: a guess. */
    return span->alone && !span->timed && !trace_is_on(meter->trace) &&
           !atomic_load_explicit(&span->stream->client->usage.late, memory_order_relaxed) &&
           meter_clock_is_sure(&meter->begins, now);
}

void meter_begin(struct meter *meter, struct client_stream *stream, bool alone)
{
    struct meter_span *span = take_free(meter, stream->client);
    if (!span) {
        stream->unmeasured++;
        return;
    }
    span->stream = stream;
    span->alone = alone;
    span->timed = stream->client->usage.turns++ % TIMED_EVERY == 0;
    span->called = span->begun =
        alone || span->timed || trace_is_on(meter->trace) ? clock_now() : 0;
    span->by_host = begins_now(meter, span, span->begun);
    span->handed = false;
    if (!span->by_host &&
        meter->cuda->cuEventRecord(span->start, stream->bound->handle) != CUDA_OK) {
        leave_client(meter, span);
        give_free(meter, span);
        return;
    }
    span->sm_groups = stream->client->shared.partition->sm_groups;
    /* The batches that found no span free are taken to be as long as this one. */
    span->weight = 1 + stream->unmeasured;
    span->first = stream->ring.value;
    span->launches = stream->client->usage.launches;
    stream->unmeasured = 0;
    stream->span = span;
}

void meter_hand_over(struct client_stream *stream)
{
    struct meter_span *span = stream->span;
    if (!span || !span->by_host || span->handed)
        return;
    uint64_t now = clock_now();
    span->handed = true;
    if (now - span->begun > LONG_CALL_NS)
        span->begun = now - CALL_NS;
}

void meter_end(struct meter *meter, struct client_stream *stream, uint64_t value)
{
    struct meter_span *span = stream->span;
    stream->span = NULL;
    if (meter->cuda->cuEventRecord(span->end, stream->bound->handle) != CUDA_OK) {
        leave_client(meter, span);
        give_free(meter, span);
        return;
    }
    span->value = value;
    bool one_launch =
        value - span->first == 1 && stream->client->usage.launches - span->launches == 1;
    span->width = one_launch ? stream->client->shared.width : 0;
    span->started = span->over = false;
    span->next = NULL;
    pthread_mutex_lock(&meter->lock);
    *meter->incoming_end = span;
    meter->incoming_end = &span->next;
    pthread_mutex_unlock(&meter->lock);
}

/* ---- times ---- */

static void take_incoming(struct meter *meter)
{
    struct meter_span **end = &meter->open;
    while (*end)
        end = &(*end)->next;
    pthread_mutex_lock(&meter->lock);
    *end = meter->incoming;
    meter->incoming = NULL;
    meter->incoming_end = &meter->incoming;
    pthread_mutex_unlock(&meter->lock);
}

/* Finds when a span began, if it has begun. The first span of all is the origin of times. */
static bool find_start(struct meter *meter, struct meter_span *span)
{
    float milliseconds = 0;
    if (span->by_host) {
        span->from = (double)span->begun - meter_clock_ahead(&meter->begins);
        return true;
    }
    if (meter->cuda->cuEventQuery(span->start) != CUDA_OK)
        return false;
    if (!meter->base) {
        span->from = meter->base_time;
        meter->base = span;
        return true;
    }
    if (meter->cuda->cuEventElapsedTime(&milliseconds, meter->base->start, span->start) != CUDA_OK)
        return false;
    span->from = meter->base_time + (double)milliseconds * 1e6;
    return true;
}

static bool is_reached(const struct meter_span *span)
{
    return client_stream_reached(span->stream) >= span->value;
}

static bool find_end(struct meter *meter, struct meter_span *span)
{
    float milliseconds = 0;
    cuda_event since = span->by_host ? meter->base->start : span->start;
    if (!is_reached(span) ||
        meter->cuda->cuEventElapsedTime(&milliseconds, since, span->end) != CUDA_OK)
        return false;
    span->to = (span->by_host ? meter->base_time : span->from) + (double)milliseconds * 1e6;
    /* The thread lost its processor behind the call, and not before the device had the work. */
    if (span->by_host && span->from > span->to)
        span->from = (double)span->called - meter_clock_ahead(&meter->begins);
    span->from = min(span->from, span->to);
    return true;
}

/* ---- time at the driver ---- */

static void note_punctuality(const struct meter *meter, const struct meter_span *span)
{
    double waited = span->from + meter_clock_ahead(&meter->begins) - (double)span->begun;
    /* Relaxed: a guess. This thread alone writes it, and only where it changes: the submitter reads
     * it for each batch. */
    _Atomic uint32_t *late = &span->stream->client->usage.late;
    uint32_t was = atomic_load_explicit(late, memory_order_relaxed);
    uint32_t is = waited > LATE_NS ? PUNCTUAL_AGAIN : was - (was > 0);
    if (is != was)
        atomic_store_explicit(late, is, memory_order_relaxed);
}

/* The span's start is known, by an event. */
static void lay_clocks(struct meter *meter, const struct meter_span *span)
{
    if (span->timed)
        meter_clock_lay(&meter->latencies, span->begun, span->from);
    /* Other spans may have begun when what was before them ended, and times that are far from the
     * base are coarse. */
    if (!span->alone || span->from - meter->base_time > 4 * REBASE_NS)
        return;
    if (meter_clock_is_sure(&meter->begins, span->begun))
        note_punctuality(meter, span);
    meter_clock_lay(&meter->begins, span->begun, span->from);
}

/* The span's end is known. */
static void count_latency(const struct meter_clock *clock, const struct meter_span *span)
{
    double took = span->to + meter_clock_ahead(clock) - (double)span->begun;
    uint32_t bucket = latency_bucket(took > 0 ? (uint64_t)took : 0);
    /* Relaxed: a sum that is only read for display. */
    atomic_fetch_add_explicit(&span->stream->client->usage.latencies[bucket], 1,
                              memory_order_relaxed);
}

/* ---- trace ---- */

static void align_clock(struct meter *meter, const struct meter_span *span, uint64_t seen)
{
    double least = (double)span->begun - span->from, most = (double)seen - span->to;
    if (!meter->aligned)
        meter->offset = span->begun ? least : most;
    else if (span->begun && meter->offset < least)
        meter->offset = least;
    if (meter->offset > most)
        meter->offset = most;
    meter->aligned = true;
}

static void write_span(struct meter *meter, struct meter_span *span, double to)
{
    struct client_stream *stream = span->stream;
    double from = span->from + meter->offset;
    struct proto_trace_record record = {
        .kind = TRACE_SPAN,
        .client = stream->client->number,
        .stream = stream->index,
        .value = (uint32_t)(span->value - span->first),
        .from = from > 0 ? (uint64_t)from : 0,
        .to = (uint64_t)(to + meter->offset),
    };
    /* The two clocks may have been aligned again since the stream's last span. */
    if (record.from < stream->traced)
        record.from = stream->traced;
    if (record.to < record.from)
        record.to = record.from;
    stream->traced = record.to;
    memcpy(record.sm_groups, span->sm_groups.bits, sizeof record.sm_groups);
    trace_add(meter->trace, &record);
}

void meter_trace_begin(struct meter *meter)
{
    meter_collect(meter);
    pthread_mutex_lock(&meter->collecting);
    meter->aligned = false;
    pthread_mutex_unlock(&meter->collecting);
}

void meter_trace_end(struct meter *meter)
{
    meter_collect(meter);
    pthread_mutex_lock(&meter->collecting);
    double now = (double)clock_now();
    for (struct meter_span *span = meter->open; span; span = span->next) {
        if (!span->started || span->over)
            continue;
        if (!meter->aligned || meter->offset > now - span->from)
            meter->offset = now - span->from; /* the span has begun, so it began before now */
        meter->aligned = true;
        write_span(meter, span, now - meter->offset);
    }
    pthread_mutex_unlock(&meter->collecting);
}

/* ---- times, continued ---- */

/* Returns the time up to which all spans are known well enough to be counted. */
static double find_times(struct meter *meter)
{
    double horizon = meter->settled;
    bool traced = trace_is_on(meter->trace);
    for (struct meter_span *span = meter->open; span; span = span->next) {
        if (!span->started) {
            span->started = find_start(meter, span);
            if (span->started && span->begun && !span->by_host)
                lay_clocks(meter, span);
        }
        if (span->started && !span->over) {
            span->over = find_end(meter, span);
            if (span->over && span->timed)
                count_latency(&meter->latencies, span);
            if (span->over && traced) {
                align_clock(meter, span, clock_now());
                write_span(meter, span, span->to);
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
    struct meter_span *span;
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

/* The width of a kernel is known to an eighth. */
#define FULL (SCHEDULER_WIDTH - SCHEDULER_WIDTH / 8)

/* A client with spans under way. */
struct runner {
    struct client *client;
    struct sm_group_set sm_groups; /* of the span that began last */
    struct sm_group_set runs_on;   /* of these, where others leave it room now */
    uint32_t spans, weight, width;
    double ends; /* the first of its spans; HUGE_VAL: none is over yet */
    double earned;
};

/* All clients of a stretch of time, in the order in which their work ends. Where no end is known,
 * the client whose work began first is first. */
struct runners {
    struct runner of[METER_SPANS];
    uint32_t order[METER_SPANS]; /* places in `of` */
    uint32_t count;
};

/* Finds where each client runs, and how many run on each SM group. */
static void count_runners(const struct partition_table *partitions, struct runners *runners,
                          uint32_t on[SM_GROUPS_MAX])
{
    uint32_t filled[SM_GROUPS_MAX];
    memset(filled, 0, partitions->count * sizeof *filled);
    memset(on, 0, partitions->count * sizeof *on);
    for (uint32_t i = 0; i < runners->count; i++) {
        struct runner *one = &runners->of[runners->order[i]];
        one->runs_on = (struct sm_group_set){0};
        for (uint32_t a = 0; one->spans && a < partitions->count; a++) {
            if (!sm_group_set_has(&one->sm_groups, a) || filled[a] >= FULL)
                continue;
            sm_group_set_add(&one->runs_on, a);
            filled[a] += min(one->width, (uint32_t)SCHEDULER_WIDTH);
            on[a]++;
        }
    }
}

/* The client's part of the time of each of its SM groups, averaged over their multiprocessors. */
static double share_of(const struct partition_table *partitions, const uint32_t on[SM_GROUPS_MAX],
                       const struct runner *one)
{
    double sum = 0;
    uint32_t multiprocessors = 0;
    for (uint32_t a = 0; a < partitions->count; a++) {
        const uint32_t size = partition_sm_group(partitions, a);
        sum += sm_group_set_has(&one->runs_on, a) ? (double)size / on[a] : 0;
        multiprocessors += sm_group_set_has(&one->sm_groups, a) ? size : 0;
    }
    return multiprocessors ? sum / multiprocessors : 1.0;
}

/* Adds this time to what each running client has earned. */
static void earn_time(const struct partition_table *partitions, struct runners *runners,
                      double passed)
{
    uint32_t on[SM_GROUPS_MAX];
    count_runners(partitions, runners, on);
    for (uint32_t i = 0; i < runners->count; i++) {
        struct runner *one = &runners->of[i];
        if (one->spans)
            one->earned += passed * one->weight / one->spans * share_of(partitions, on, one);
    }
}

static struct runner *runner_of(struct runners *runners, struct client *client)
{
    for (uint32_t i = 0; i < runners->count; i++)
        if (runners->of[i].client == client)
            return &runners->of[i];
    runners->order[runners->count] = runners->count;
    runners->of[runners->count] = (struct runner){.client = client, .ends = HUGE_VAL};
    return &runners->of[runners->count++];
}

/* Puts a client whose `ends` has changed behind those that end at the same time. */
static void sort_runner(struct runners *runners, const struct runner *changed)
{
    uint32_t number = (uint32_t)(changed - runners->of), at = 0;
    while (runners->order[at] != number)
        at++;
    for (; at + 1 < runners->count; at++)
        runners->order[at] = runners->order[at + 1];
    for (; at && runners->of[runners->order[at - 1]].ends > changed->ends; at--)
        runners->order[at] = runners->order[at - 1];
    runners->order[at] = number;
}

static double end_of(const struct meter_span *span)
{
    return span->over ? span->to : HUGE_VAL;
}

/* The end of the client's span that ends next, of those that have begun before edge `at`. */
static double next_end(const struct edge *edges, uint32_t count, uint32_t at,
                       const struct client *client)
{
    double begun = edges[at].at;
    for (uint32_t e = at + 1; e < count; e++)
        if (!edges[e].begins && edges[e].span->stream->client == client &&
            edges[e].span->from <= begun)
            return end_of(edges[e].span);
    return HUGE_VAL;
}

/* One of the client's kernels begins. */
static void add_span(struct runner *runner, const struct meter_span *span)
{
    runner->sm_groups = span->sm_groups;
    runner->spans++;
    runner->weight += span->weight;
    runner->width += span->width;
    runner->ends = min(runner->ends, end_of(span));
}

/* One of the client's kernels ends; its next one to end does so at `next`. */
static void remove_span(struct runner *runner, const struct meter_span *span, double next)
{
    runner->spans--;
    runner->weight -= span->weight;
    runner->width -= span->width;
    runner->ends = runner->spans ? next : HUGE_VAL;
}

static void sweep_edges(struct meter *meter, struct edge *edges, uint32_t count,
                        struct runners *runners)
{
    double last = 0;
    qsort(edges, count, sizeof *edges, by_time);
    for (uint32_t e = 0; e < count; e++) {
        const struct meter_span *span = edges[e].span;
        double passed = edges[e].at - last;
        if (e && passed > 0)
            earn_time(meter->partitions, runners, passed);
        last = edges[e].at;
        struct runner *runner = runner_of(runners, span->stream->client);
        if (edges[e].begins)
            add_span(runner, span);
        else
            remove_span(runner, span, next_end(edges, count, e, runner->client));
        sort_runner(runners, runner);
    }
    for (uint32_t i = 0; i < runners->count; i++)
        /* Relaxed: a sum that is only read for display and charging, in any order. */
        atomic_fetch_add_explicit(&runners->of[i].client->usage.gpu_nanoseconds,
                                  (uint64_t)(runners->of[i].earned + 0.5), memory_order_relaxed);
}

static void settle_spans(struct meter *meter, double horizon)
{
    struct edge *edges = malloc(2 * (size_t)METER_SPANS * sizeof *edges);
    struct runners *runners = malloc(sizeof *runners);
    uint32_t count = 0;
    for (struct meter_span *span = meter->open; edges && span; span = span->next) {
        if (!span->started)
            continue;
        double from = max(span->from, meter->settled);
        double to = span->over ? min(span->to, horizon) : horizon;
        if (to <= from)
            continue;
        edges[count++] = (struct edge){.at = from, .span = span, .begins = true};
        edges[count++] = (struct edge){.at = to, .span = span, .begins = false};
    }
    /* If memory is short, no client is charged for this stretch of time; the next one counts
     * again. */
    if (edges && runners) {
        runners->count = 0;
        sweep_edges(meter, edges, count, runners);
    }
    free(edges);
    free(runners);
    meter->settled = horizon;
}

/* Makes a later span's start the origin of times, before the floats get too coarse. */
static void rebase_times(struct meter *meter, struct meter_span *span)
{
    if (!meter->base || span == meter->base || !meter->base->over || span->by_host)
        return;
    if (span->from - meter->base_time < REBASE_NS)
        return;
    give_free(meter, meter->base);
    meter->base = span;
    meter->base_time = span->from;
}

static void release_settled(struct meter *meter)
{
    struct meter_span **link = &meter->open;
    while (*link) {
        struct meter_span *span = *link;
        if (!span->over) {
            link = &span->next;
            continue;
        }
        *link = span->next;
        leave_client(meter, span);
        rebase_times(meter, span);
        if (span != meter->base)
            give_free(meter, span);
    }
}

void meter_collect(struct meter *meter)
{
    pthread_mutex_lock(&meter->collecting);
    take_incoming(meter);
    double horizon = find_times(meter);
    if (horizon > meter->settled)
        settle_spans(meter, horizon);
    release_settled(meter);
    pthread_mutex_unlock(&meter->collecting);
}

/* The ends of a client's batches that are done. */
enum ends { ENDS_COUNTED, ENDS_COME, ENDS_LATE };

/* Of those that were collected: a client that goes on submits and ends others meanwhile. */
static enum ends look_at_ends(struct meter *meter, const struct client *client)
{
    enum ends ends = ENDS_COUNTED;
    pthread_mutex_lock(&meter->collecting);
    for (struct meter_span *span = meter->open; span && ends != ENDS_LATE; span = span->next)
        if (span->stream->client == client && is_reached(span))
            ends =
                meter->cuda->cuEventQuery(span->end) == CUDA_ERR_NOT_READY ? ENDS_LATE : ENDS_COME;
    pthread_mutex_unlock(&meter->collecting);
    return ends;
}

void meter_settle(struct meter *meter, const struct client *client, uint64_t limit)
{
    uint64_t until = clock_now() + limit;
    enum ends ends;
    meter_collect(meter);
    while ((ends = look_at_ends(meter, client)) == ENDS_LATE && clock_now() < until)
        sched_yield();
    if (ends != ENDS_COUNTED)
        meter_collect(meter);
}

/* A span leaves its client when its time was added. */
bool meter_owes(struct meter *meter, const struct client *client)
{
    pthread_mutex_lock(&meter->lock);
    bool owes = client->usage.spans != 0;
    pthread_mutex_unlock(&meter->lock);
    return owes;
}

void meter_forget(struct meter *meter, const struct client *client)
{
    meter_settle(meter, client, METER_SETTLE_LAST_NS);
    pthread_mutex_lock(&meter->collecting);
    struct meter_span **link = &meter->open;
    while (*link) {
        struct meter_span *span = *link;
        if (span->stream->client != client) {
            link = &span->next;
            continue;
        }
        *link = span->next;
        leave_client(meter, span);
        span->over = true; /* as a base, it may be replaced */
        if (span != meter->base)
            give_free(meter, span);
    }
    pthread_mutex_unlock(&meter->collecting);
}
