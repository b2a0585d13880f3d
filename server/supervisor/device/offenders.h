/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * offenders: users whose kernels have made devices fail, and how long their next clients wait.
 *
 * A first fault may happen to anybody. From the second one on, new clients of the same user wait:
 * for a while after that fault, then twice as long after each further one, up to a limit. Ten
 * minutes without a fault, and the user is like any other. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_DEVICE_OFFENDERS_H
#define GPUSHARE_SERVER_SUPERVISOR_DEVICE_OFFENDERS_H

#include <stdint.h>
#include <sys/types.h>

struct offender {
    uid_t uid;
    uint32_t faults;
    uint64_t faulted_at; /* CLOCK_MONOTONIC: the latest time */
};

/* All zero: nobody. */
struct offenders {
    struct offender *rows;
    uint32_t count, room;
};

/* A client of this user has made a device fail. Without memory it is not remembered. */
void offenders_note(struct offenders *offenders, uid_t uid, uint64_t now);

/* The nanoseconds for which this user's new clients wait from now on; 0: they do not. first: the
 * wait after the second fault; 0: nobody waits. *faults becomes the number of faults that count. */
uint64_t offenders_wait(const struct offenders *offenders, uid_t uid, uint64_t now, uint64_t first,
                        uint32_t *faults);

/* Frees the table. Idempotent. */
void offenders_close(struct offenders *offenders);

#endif
