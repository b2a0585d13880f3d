/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * balance: in concurrent mode, an equal part of the multiprocessors for each account, while their
 * kernels fill them.
 *
 * The device runs the kernels of all streams in turns, so a user with ten streams would have ten
 * parts. While the kernels of two or more accounts fill the multiprocessors of a lease group, an
 * account that had more of the device's time there than another one hands over no more work, until
 * the others have caught up. While they don't fill them, they don't hinder each other, and nobody
 * is held.
 *
 * Only accounts of one level of priority are compared: between levels priority decides.
 *
 * How much kernels fill is judged by the clients' `width` and the number of their queues
 * with work. Time counts as scheduler_charge reports it, and only while several accounts have work.
 * An account that had none for BALANCE_PAUSE_NS begins again with the time of the account that had
 * least.
 *
 *   Worked: a has one stream, b eight, and each kernel fills the device. Alone the device would
 *   give b eight of nine kernels. b is held whenever it is 10 ms ahead, so each has half.
 *
 * One thread at a time, as for scheduler.h. Only in concurrent mode.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_BALANCE_H
#define GPUSHARE_SERVER_SCHEDULER_BALANCE_H

#include "common/units.h"
#include "server/scheduler/scheduler.h"

/* Two of the caller's reports apart: less could not be told from chance. */
#define BALANCE_AHEAD_NS (10 * UNITS_MS)
/* A client that launches, synchronises and thinks is still there. */
#define BALANCE_PAUSE_NS (50 * UNITS_MS)

/* The client used the device for this time. */
void balance_charge(struct scheduler *scheduler, struct scheduler_client *client, uint64_t ns);

/* Decides anew which clients are to be held (client->ahead), and which ones have little in flight,
 * since an account that is behind pauses for a moment (client->guest). O(clients). */
void balance_look(struct scheduler *scheduler, uint64_t now);

#endif
