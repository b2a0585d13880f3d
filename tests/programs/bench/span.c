/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/programs/bench/span.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

/* The part of a span between two times; empty if the result's begin is not below its end. */
static struct span cut(struct span span, uint64_t from, uint64_t to)
{
    if (span.begin < from)
        span.begin = from;
    if (span.end > to)
        span.end = to;
    return span;
}

uint64_t span_sum(const struct span *spans, size_t count, uint64_t from, uint64_t to)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct span part = cut(spans[i], from, to);
        if (part.begin < part.end)
            sum += part.end - part.begin;
    }
    return sum;
}

uint64_t span_sum_joined(const struct span *spans, size_t count, uint64_t from, uint64_t to,
                         uint64_t gap)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        struct span whole = spans[i];
        if (i + 1 < count && spans[i + 1].begin > whole.end &&
            spans[i + 1].begin - whole.end <= gap)
            whole.end = spans[i + 1].begin;
        sum += span_sum(&whole, 1, from, to);
    }
    return sum;
}

/* The begin or the end of a span. */
struct edge {
    uint64_t at;
    int change;
};

/* At the same time ends come first: a span that follows another without a pause does not overlap
 * it. */
static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    return x->at != y->at ? (x->at > y->at) - (x->at < y->at) : x->change - y->change;
}

/* The nanoseconds in which at least `least` and at most `most` of the spans were under way. */
static int64_t sum_of(const struct span *spans, size_t count, uint64_t from, uint64_t to, int least,
                      int most)
{
    struct edge *edges = calloc(2 * count + 1, sizeof *edges);
    size_t used = 0;
    uint64_t sum = 0;
    int running = 0;
    if (!edges)
        return -1;
    for (size_t i = 0; i < count; i++) {
        struct span part = cut(spans[i], from, to);
        if (part.begin >= part.end)
            continue;
        edges[used++] = (struct edge){part.begin, 1};
        edges[used++] = (struct edge){part.end, -1};
    }
    qsort(edges, used, sizeof *edges, by_time);
    for (size_t i = 0; i < used; i++) {
        if (running >= least && running <= most)
            sum += edges[i].at - edges[i - 1].at;
        running += edges[i].change;
    }
    free(edges);
    return (int64_t)sum;
}

int64_t span_single(const struct span *spans, size_t count, uint64_t from, uint64_t to)
{
    return sum_of(spans, count, from, to, 1, 1);
}

int64_t span_any(const struct span *spans, size_t count, uint64_t from, uint64_t to)
{
    return sum_of(spans, count, from, to, 1, INT_MAX);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double span_percentile(double *values, size_t count, double percentile)
{
    qsort(values, count, sizeof *values, by_value);
    size_t rank = (size_t)ceil((double)count * percentile / 100);
    return values[rank > 0 ? rank - 1 : 0];
}
