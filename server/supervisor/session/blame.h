/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_blame: whose kernel ended a context. The driver says neither client nor kernel, so it is
 * found by elimination, from the streams that had work in flight.
 *
 *   one client had            it is guilty: it ends with CUDA's error
 *   several had               they are suspects: their streams are interrupted, and for a second
 *                             the device serves one client at a time. If it fails again, one
 *                             client had work in flight, and the others are suspects no more
 *   a client is a suspect     it faults in company only. It is isolated: while it is connected the
 *   for the third time        device serves one client at a time. That is no verdict
 *
 * Hardware errors, and workers that crash, hang or are killed, blame nobody. Clients of a device
 * share one address space: the author of a fault is the one whose kernel faulted, and another's
 * kernel may have corrupted what it read. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_BLAME_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_BLAME_H

#include <stdbool.h>
#include <stdint.h>

struct device;
struct server;

/* Notes the clients that have left with work in flight, while the server still knows them. To be
 * called when a worker is lost. */
void session_blame_departed(const struct server *server, struct device *device);

/* The lost worker's process is gone. Ends the guilty client, if there is one; marks suspects, whose
 * device then serves one client at a time. Call it before the device's sessions are judged. */
void session_blame_find(struct server *server, struct device *device);

/* The suspects' second is over: they are suspects no more. Returns false if an isolated client is
 * still connected, for which the device goes on serving one client at a time. */
bool session_blame_absolve(struct server *server, const struct device *device);

#endif
