/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/work_length.h"

#include "common/util.h"
#include "server/scheduler/lateness.h"

void work_length_begin(struct work_span *span, uint64_t value, uint64_t now)
{
    *span = (struct work_span){.started_at = now, .value = value};
}

static void learn_length(struct work_length *length, uint64_t commands, uint64_t each)
{
    /* As scheduler_pace: an eighth for one command, a batch of eight says all there is to know. */
    uint64_t weight = min(commands, UINT64_C(8));
    length->mean_ns = length->mean_ns ? (length->mean_ns * (8 - weight) + each * weight) / 8 : each;
    if (length->mean_ns == 0)
        length->mean_ns = 1;
    length->peak_ns -= length->peak_ns / 32 * min(commands, UINT64_C(16));
    length->peak_ns = max(length->peak_ns, max(each, length->mean_ns));
}

void work_length_reach(struct work_length *length, struct work_span *span, uint64_t value,
                       uint64_t now)
{
    if (value <= span->value || span->started_at == 0)
        return;
    uint64_t commands = value - span->value;
    learn_length(length, commands, saturating_sub(now, span->started_at) / commands);
    *span = (struct work_span){.started_at = now, .value = value};
}

static uint64_t length_of(const struct work_length *length, uint64_t commands)
{
    uint64_t mean = length->mean_ns ? length->mean_ns : WORK_LENGTH_UNKNOWN_NS;
    uint64_t peak = length->mean_ns ? length->peak_ns : WORK_LENGTH_UNKNOWN_NS;
    return peak + (commands - 1) * mean;
}

uint64_t work_length_fit(const struct work_length *length, uint64_t ns)
{
    return length->mean_ns ? max(ns / length->mean_ns, UINT64_C(1)) : 1;
}

/* One that has taken longer than usual ends somewhere between now and the longest. */
static uint64_t likely_left(const struct work_length *length, uint64_t in_flight, uint64_t elapsed)
{
    uint64_t mean = length->mean_ns ? length->mean_ns : WORK_LENGTH_UNKNOWN_NS;
    uint64_t first =
        elapsed < mean ? mean - elapsed : saturating_sub(length_of(length, 1), elapsed) / 2;
    return first + (in_flight - 1) * mean;
}

struct work_expected work_length_expect(const struct work_length *length,
                                        const struct work_span *span, uint64_t in_flight,
                                        uint64_t batch, uint64_t now)
{
    uint64_t elapsed = saturating_sub(now, span->started_at);
    uint64_t first = length_of(length, min(in_flight, max(batch, UINT64_C(1))));
    /* Work that is late by now is not expected to end at once. */
    uint64_t least = length_of(length, 1) / 4;
    if (elapsed > first + first / 2 + LATENESS_NS)
        return (struct work_expected){.left_ns = elapsed, .overdue = true};
    uint64_t left = max(saturating_sub(length_of(length, in_flight), elapsed), least);
    return (struct work_expected){.left_ns = left,
                                  .likely_ns = likely_left(length, in_flight, elapsed)};
}
