/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * span: the time from a block's begin to its end, as the block itself wrote it, and sums over
 * spans. Pure; any thread.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_BENCH_SPAN_H
#define GPUSHARE_TESTS_PROGRAMS_BENCH_SPAN_H

#include <stddef.h>
#include <stdint.h>

/* The kernel `span` of tests/programs/bench/kernels/bench.cu writes it, `done` last. */
struct span {
    uint64_t begin, end; /* nanoseconds of the device's clock */
    uint32_t sm;         /* the multiprocessor's number */
    uint32_t done;       /* 1 when the span is complete */
};

/* The sum of the nanoseconds of each span between from and to. */
uint64_t span_sum(const struct span *spans, size_t count, uint64_t from, uint64_t to);

/* The nanoseconds between from and to that the spans of one stream take, in the stream's order,
 * each up to the begin of the next one if that comes at most gap later. */
uint64_t span_sum_joined(const struct span *spans, size_t count, uint64_t from, uint64_t to,
                         uint64_t gap);

/* The nanoseconds between from and to in which exactly one of the spans was under way; -1 if memory
 * is short. */
int64_t span_single(const struct span *spans, size_t count, uint64_t from, uint64_t to);

/* The nanoseconds between from and to in which at least one of the spans was under way; -1 if
 * memory is short. */
int64_t span_any(const struct span *spans, size_t count, uint64_t from, uint64_t to);

/* The values' percentile (0 to 100) by nearest rank: of 1,000 values the 99th is the 990th
 * smallest. Sorts the values. count is not 0. */
double span_percentile(double *values, size_t count, double percentile);

#endif
