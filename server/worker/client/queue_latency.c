/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: one timestamp a batch would be simpler, but nobody knows when a command came: the
 * looks at the ring's tail are all there is, and the header says how they are thinned. */
#include "server/worker/client/queue_latency.h"

#include <stdbool.h>

#include "common/util.h"

/* Values wrap at 32 bits. The difference has the right sign, since a ring is far shorter than half
 * of that range. */
static bool is_behind(uint32_t value, uint32_t mark)
{
    return (int32_t)(value - mark) > 0;
}

static void drop_mark(struct queue_latency *latency, uint32_t at)
{
    latency->count--;
    for (uint32_t i = at; i < latency->count; i++) {
        latency->value[i] = latency->value[i + 1];
        latency->seen[i] = latency->seen[i + 1];
    }
}

/* Merges the two marks that are closest in time, so that the others stay evenly apart. */
static void merge_two(struct queue_latency *latency)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i + 1 < latency->count; i++)
        if (latency->seen[i + 1] - latency->seen[i] < latency->seen[best + 1] - latency->seen[best])
            best = i;
    latency->seen[best + 1] =
        latency->seen[best] + (latency->seen[best + 1] - latency->seen[best]) / 2;
    drop_mark(latency, best);
}

void queue_latency_left(struct queue_latency *latency, uint32_t value, uint64_t now)
{
    uint32_t count = latency->count;
    uint64_t looked = latency->looked_at;
    latency->looked_at = now;
    if (count && !is_behind(value, latency->value[count - 1]))
        return;
    /* So soon after the last mark that a mark of its own would be merged again at once. */
    if (count &&
        now - latency->seen[count - 1] <= (now - latency->seen[0]) / (4 * QUEUE_LATENCY_MARKS)) {
        latency->value[count - 1] = value;
        return;
    }
    uint64_t seen = now;
    /* Commands that the doorbell was rung for wait from then on. Others came since the last look,
     * which is long ago for a client that had as much in flight as it may have. */
    if (!count && latency->rung)
        seen = min(latency->rung, now);
    else if (looked && looked < now)
        seen = looked + (now - looked) / 2;
    if (count == QUEUE_LATENCY_MARKS)
        merge_two(latency);
    latency->value[latency->count] = value;
    latency->seen[latency->count++] = seen;
}

static uint64_t time_since(uint64_t since, uint64_t now)
{
    return saturating_sub(now, since);
}

void queue_latency_served_late(struct queue_latency *latency, uint64_t waits[LATENCY_BUCKETS],
                               uint32_t from, uint32_t count, uint64_t now)
{
    uint32_t end = from + count;
    uint64_t last = latency->count ? latency->looked_at : latency->rung;
    latency->looked_at = last;
    /* At least one command was in the ring when its doorbell was found rung. */
    if (!latency->count) {
        waits[latency_bucket(time_since(last, now))]++;
        from++;
    }
    while (latency->count && from != end) {
        uint32_t upto = is_behind(end, latency->value[0]) ? latency->value[0] : end;
        if (is_behind(upto, from)) {
            waits[latency_bucket(time_since(latency->seen[0], now))] += upto - from;
            from = upto;
        }
        if (is_behind(latency->value[0], from))
            return;
        drop_mark(latency, 0);
    }
    waits[latency_bucket(time_since(last, now) / 2)] += end - from;
}
