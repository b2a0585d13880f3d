/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_blame: whose kernel ended a context. The driver says neither client nor kernel, so it is
 * found by elimination, from the streams that had work in flight.
 *
 *   one client had            it is guilty: it ends with CUDA's error
 *   several had               they are suspects: their streams are interrupted, and the device
 *                             serves one client and one command at a time, until each suspect has
 *                             run alone what was interrupted, or for a second. Suspects that are
 *                             at it have up to ten. If it fails again, one client had one kernel in
 *                             flight, and the others are suspects no more
 *   the third common fault    a fault counts for the suspects that had not run alone by then, and
 *   of a client               for all of them if each had. Of those that left meanwhile nobody
 *                             knows: beside them it counts for all others, for ten minutes. A
 *                             client of three such faults is isolated: while it is connected the
 *                             device serves one client at a time. That is no verdict
 *
 * A worker that crashes makes suspects in the same way of those with work or a request under way,
 * and nobody is guilty of it. Hardware errors, and workers that hang or are killed, blame nobody.
 * Clients of a device
 * share one address space: the author of a fault is the one whose kernel faulted, and another's
 * kernel may have corrupted what it read. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_BLAME_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_BLAME_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct server;
struct session;

/* Notes the clients that have left with work in flight, while the server still knows them. To be
 * called when a worker is lost. */
void session_blame_departed(const struct server *server, struct device *device);

/* The lost worker's process is gone. Ends the guilty client, if there is one; marks suspects, whose
 * device then serves one client at a time. Call it before the device's sessions are judged. */
void session_blame_find(struct server *server, struct device *device);

/* The interrupted kernels of a suspect have run alone. When that holds for all suspects, the device
 * is asked to serve as its schedule says again. */
void session_blame_prove(struct server *server, struct session *session);

/* The probation is over: there are no suspects any more. Returns false if an isolated client is
 * still connected, for which the device goes on serving one client at a time. */
bool session_blame_absolve(struct server *server, struct device *device);

#endif
