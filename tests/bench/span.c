/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "tests/bench/span.h"

#include <math.h>
#include <stdlib.h>

/* What of a span lies between; empty where begin is not below end. */
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

static int by_begin(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

uint64_t span_union(struct span *spans, size_t count, uint64_t from, uint64_t to)
{
    uint64_t sum = 0, reached = from;
    qsort(spans, count, sizeof *spans, by_begin);
    for (size_t i = 0; i < count; i++) {
        struct span part = cut(spans[i], reached, to);
        if (part.begin >= part.end)
            continue;
        sum += part.end - part.begin;
        reached = part.end;
    }
    return sum;
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
