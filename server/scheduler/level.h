/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * level: which levels of priority have clients, work and commands in flight.
 *
 * scheduler.h says what a level's work means for less urgent levels. A level counts as busy while a
 * client of it wants the device or has commands in flight. The counts belong to struct scheduler;
 * the thread that may call the scheduler may call these functions. They have no errors, and no
 * argument may be NULL.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_LEVEL_H
#define GPUSHARE_SERVER_SCHEDULER_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#include "server/scheduler/scheduler.h"

/* Whether the client wants the device or has commands in flight. */
bool level_has_work(const struct scheduler_client *client);

/* A client of the level gets work, having had none; or has none any more, at the time `now`. */
void level_begin(struct scheduler *scheduler, uint32_t level);
void level_end(struct scheduler *scheduler, uint32_t level, uint64_t now);

/* The client enters the level of its limits, or leaves it, with its work and its commands. */
void level_join(struct scheduler *scheduler, struct scheduler_client *client);
void level_leave(struct scheduler *scheduler, struct scheduler_client *client, uint64_t now);

/* When the first client that is held for more urgent levels may ask again (ns); 0: at once;
 * SCHEDULER_NEVER: when their work ends, or nobody is held. */
uint64_t level_next_event(const struct scheduler *scheduler);

#endif
