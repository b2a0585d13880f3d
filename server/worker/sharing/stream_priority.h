/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_priority: which of the device's stream priorities belong to which clients.
 *
 * The levels of priority that clients have (and the normal one, 0) divide the device's
 * range: the most urgent level begins at its greatest priority, each level ends before
 * the next one begins, and the last has the least one. A client's own streams keep their
 * order within that. Where there are more levels than priorities some share one; what
 * lower levels may have in flight does not depend on it.
 *
 *   range -5 to 0; levels 0 alone: -5 to 0; 0 and 7: -5 to -1, and 0;
 *   0, 7 and 9: -5 to -4, -3 to -1, and 0
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_STREAM_PRIORITY_H
#define GPUSHARE_SERVER_WORKER_SHARING_STREAM_PRIORITY_H

struct worker;

/* Control thread, without locks held, after a client came, went or got another level. Streams move
 * with their next batch. */
void stream_priority_assign(struct worker *worker);

#endif
