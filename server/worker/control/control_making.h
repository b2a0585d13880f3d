/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * control_making: partitions and CUstreams that are made and destroyed while the worker runs.
 *
 * The driver may wait for the device in each of these calls, so they are left to quiet windows
 * (quiet_calls.h). A partition that a client needs asks for a window; CUstreams, and partitions
 * that go, ride along, as do partitions that are made before a client needs them. Meanwhile clients
 * go on where they are, and a client that has nowhere to be is held. Control thread.
 *
 * The first CUstreams that are made in a window, and the first partitions that go in one, show
 * whether this driver waits (call_probe.h). If it does not, the next ones ride along no more: the
 * caller thread makes the calls at once, between two windows.
 */
#ifndef GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_MAKING_H
#define GPUSHARE_SERVER_WORKER_CONTROL_CONTROL_MAKING_H

#include <stdbool.h>
#include <stdint.h>

struct partition;
struct worker;

/* Asks for the partitions that clients have to move to. When one is made, or could not be,
 * client->control.making goes down, and making_error says why. After a failure nothing is asked for
 * until a second later. Returns whether something has to wait for that. */
bool control_making_start(struct worker *worker);

/* Asks for a CUstream of this priority if the partition has none. */
void control_making_stream(struct worker *worker, struct partition *partition, int32_t priority);

/* Partitions of these sizes (PROTO_PARTITION_SIZES_MAX, in hundredths of a per cent; 0: none) are
 * made beforehand from now on, as far as they can be kept. */
void control_making_sizes(struct worker *worker, const uint32_t *sizes);

/* Asks for the CUstreams that the submitter wished for, for the next partition that is made
 * beforehand, and for the end of the partitions that are too many to keep. */
void control_making_tidy(struct worker *worker);

#endif
