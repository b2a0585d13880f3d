/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_priority: which of the device's stream priorities belong to which clients.
 *
 * The levels of priority that clients have, and the normal level 0, divide the range of priorities
 * that the device offers. The most urgent level begins at the device's greatest priority. Each
 * level ends before the next one begins, and the last one ends at the least priority.
 *
 * On SM groups that are all its own a client's streams are more urgent by one: blocks of those who
 * borrowed the SM groups and have not begun come after the owner's.
 *
 * Within its level's range a client's own streams keep their order. If there are more levels than
 * priorities, some levels share one. Limits on what lower levels have in flight do not depend on
 * this.
 *
 *   range -5 to 0; levels 0 alone: -5 to 0; 0 and 7: -5 to -1, and 0;
 *   0, 7 and 9: -5 to -4, -3 to -1, and 0
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_STREAM_PRIORITY_H
#define GPUSHARE_SERVER_WORKER_SHARING_STREAM_PRIORITY_H

struct worker;

/* Gives every client its range of priorities, after a client came, left or changed its level.
 * Streams move with their next batch. Control thread, without locks held. */
void stream_priority_assign(struct worker *worker);

#endif
