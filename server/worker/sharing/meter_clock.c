/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/meter_clock.h"

#include <math.h>

#include "common/util.h"

/* Where every second batch begins late since a thread lost its processor, one turn in 256 is told
 * of by late ones alone. */
#define SURE_BATCHES 8
/* Clocks that differ by 50 parts in a million come so far in a turn of 100 ms. NTP slews a clock by
 * 500, and a batch that begins late by chance is late by more. */
#define SURE_NS 5000

void meter_clock_open(struct meter_clock *clock, uint64_t turn)
{
    *clock = (struct meter_clock){.turn = turn};
}

/* The turn that ends tells about the next one. */
static bool was_sure(const struct meter_clock *clock)
{
    return clock->batches >= SURE_BATCHES && clock->follows &&
           fabs(clock->ahead - clock->ahead_before) <= SURE_NS;
}

static void turn(struct meter_clock *clock, uint64_t submitted, double ahead)
{
    bool gap = !clock->turned_at || submitted - clock->turned_at >= 2 * clock->turn;
    uint64_t until = !gap && was_sure(clock) ? submitted + 2 * clock->turn : 0;
    atomic_store_explicit(&clock->sure_until, until, memory_order_relaxed);
    clock->ahead_before = gap ? ahead : clock->ahead;
    clock->ahead = ahead;
    clock->follows = !gap;
    clock->batches = 0;
    clock->turned_at = submitted;
}

void meter_clock_lay(struct meter_clock *clock, uint64_t submitted, double began)
{
    double ahead = (double)submitted - began;
    if (!clock->turned_at || saturating_sub(submitted, clock->turned_at) >= clock->turn)
        turn(clock, submitted, ahead);
    clock->ahead = max(clock->ahead, ahead);
    clock->batches++;
}

double meter_clock_ahead(const struct meter_clock *clock)
{
    return max(clock->ahead, clock->ahead_before);
}
