/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/meter_clock.h"

#include "common/util.h"

/* Where every second batch begins late since a thread lost its processor, one in 256 clocks is
 * laid by late ones alone. */
#define SURE_BATCHES 8

void meter_clock_open(struct meter_clock *clock, uint64_t turn)
{
    *clock = (struct meter_clock){.turn = turn};
}

void meter_clock_lay(struct meter_clock *clock, uint64_t submitted, double began)
{
    double ahead = (double)submitted - began;
    uint64_t passed = saturating_sub(submitted, clock->turned_at);
    if (passed >= clock->turn) {
        bool gap = passed >= 2 * clock->turn;
        clock->ahead_before = gap ? ahead : clock->ahead;
        clock->batches_before = gap ? 0 : clock->batches;
        clock->ahead = ahead;
        clock->batches = 0;
        clock->turned_at = submitted;
    }
    clock->ahead = max(clock->ahead, ahead);
    clock->batches++;
    if (clock->batches + clock->batches_before >= SURE_BATCHES)
        atomic_store_explicit(&clock->sure_until, submitted + clock->turn, memory_order_relaxed);
}

double meter_clock_ahead(const struct meter_clock *clock)
{
    return max(clock->ahead, clock->ahead_before);
}
