/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * meter_clock: the device's clock laid over the host's.
 *
 * The device tells when an event was reached, on a clock of its own. Submitting work takes at least
 * some microseconds, so of all batches the one that began soonest after its submission tells best
 * how far the host's clock is ahead: its wait counts as nothing. Clocks drift, and the host's is
 * slewed at times, so only the present turn and the one before it count.
 *
 * The clock is sure for a turn or two behind a turn in which enough batches told of it, and as much
 * as in the turn before that to some microseconds.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_METER_CLOCK_H
#define GPUSHARE_SERVER_WORKER_SHARING_METER_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct meter_clock {
    uint64_t turn;               /* ns */
    uint64_t turned_at;          /* when the present turn began; 0: nothing is known */
    double ahead, ahead_before;  /* ns; of the present turn, and of the one before it */
    uint32_t batches;            /* that told in the present turn */
    bool follows;                /* the turn before it was there */
    _Atomic uint64_t sure_until; /* on the host's clock; 0: it is not sure */
};

void meter_clock_open(struct meter_clock *clock, uint64_t turn);

/* A batch was submitted at `submitted` on the host's clock, and began at `began` on the device's,
 * ns. One thread at a time. */
void meter_clock_lay(struct meter_clock *clock, uint64_t submitted, double began);

/* The host's clock less the device's, ns. As meter_clock_lay. */
double meter_clock_ahead(const struct meter_clock *clock);

/* Any thread. */
static inline bool meter_clock_is_sure(const struct meter_clock *clock, uint64_t now)
{
    /* Relaxed: a time that is only compared. */
    return now < atomic_load_explicit(&clock->sure_until, memory_order_relaxed);
}

#endif
