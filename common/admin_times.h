/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_times: how long the server takes at most to answer an administrator, and how long
 * gpusharectl waits for it. The tool waits longer, or it would say that there was no answer to a
 * change that comes to be in force.
 */
#ifndef GPUSHARE_COMMON_ADMIN_TIMES_H
#define GPUSHARE_COMMON_ADMIN_TIMES_H

/* A worker that does not say what its clients used must not keep an administrator from seeing it.
 */
#define ADMIN_USAGE_MS 1000
/* Making a partition is slow while the device is busy. */
#define ADMIN_SET_MS 10000
/* Each worker may be asked a few times, and making a partition is slow. */
#define ADMIN_RELOAD_MS 30000
/* After a trace's own time: more than the supervisor waits for a worker at both ends of it. */
#define ADMIN_TRACE_LATE_MS 15000

/* The tool's, for a whole exchange; a reload may take so much longer, a trace as long as it lasts.
 */
#define ADMIN_CLIENT_SECONDS        20
#define ADMIN_CLIENT_RELOAD_SECONDS 30

_Static_assert(ADMIN_CLIENT_SECONDS * 1000 > ADMIN_USAGE_MS, "clients, get, status");
_Static_assert(ADMIN_CLIENT_SECONDS * 1000 > ADMIN_SET_MS, "set");
_Static_assert(ADMIN_CLIENT_SECONDS * 1000 > ADMIN_TRACE_LATE_MS, "trace");
_Static_assert((ADMIN_CLIENT_SECONDS + ADMIN_CLIENT_RELOAD_SECONDS) * 1000 > ADMIN_RELOAD_MS,
               "reload");

#endif
