/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * honest: a client, in a process of its own, that computes on three streams and verifies all that
 * it has, again and again. Its oracle is the same computation on the CPU.
 *
 * A batch is a chain of steps on two streams by turns, each of which waits for the event of the one
 * before; on a third stream each result is copied to a host buffer. A kernel counts its blocks.
 * Facts that must hold after a batch, whole or interrupted:
 *
 *   an event that is done      its step's result, on the device and in the buffer, is exact, and
 *                              its kernel ran once
 *   a step that was lost       ran once at most
 *   a kernel that has begun    all steps before it ran once, and their results are exact
 *   memory that no batch uses  is as it was, and so is the variable of the module
 *
 * After an interruption the batch goes on behind the last finished step, from what the device has.
 */
#ifndef GPUSHARE_TESTS_PROGRAMS_RECOVERY_HONEST_H
#define GPUSHARE_TESTS_PROGRAMS_RECOVERY_HONEST_H

#include "tests/programs/recovery/page.h"

/* The work of a client. */
struct honest_spec {
    const char *socket;
    unsigned seed;
    struct page *pages; /* of all clients; the others' in_flight and stamp are read */
    int count, me;      /* pages; this client's */
    uint32_t rest;      /* a step's kernel sleeps for up to so many times 20 us */
};

/* Works as its page orders, until ORDER_LEAVE (exit status 0), until it is found guilty after
 * ORDER_FAULT (0), or until something does not hold (3). For a forked process. */
_Noreturn void honest_run(const struct honest_spec *spec);

/* Like honest_run, for a client that faults without an order, as fast as it can connect, until
 * ORDER_LEAVE. Counts in page->faults how often it was found guilty. */
_Noreturn void honest_storm(const struct honest_spec *spec);

/* Like honest_run, for a client whose kernel faults only while a kernel of another client runs.
 * Counts in page->faults how often it was interrupted. */
_Noreturn void honest_company(const struct honest_spec *spec);

#endif
