/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * admin_times: the longest time that the server takes to answer an administrator, and the time that
 * gpusharectl waits for the answer. The tool waits longer. Otherwise it would report that there was
 * no answer to a change that takes effect a moment later.
 */
#ifndef GPUSHARE_COMMON_ADMIN_TIMES_H
#define GPUSHARE_COMMON_ADMIN_TIMES_H

/* How long the server waits for workers to report what their clients used. After that it answers
 * without these numbers: one stuck worker must not hide the others' clients. */
#define ADMIN_USAGE_MS 1000
/* A change of one client or GPU. The worker may have to make a partition, which takes long while
 * the device is busy. */
#define ADMIN_SET_MS 10000
/* A reload asks each worker several times, and each time the worker may have to make partitions. */
#define ADMIN_RELOAD_MS 30000
/* Added to the duration of a trace. It exceeds the times that the supervisor waits for a worker
 * at the beginning and at the end of a trace. */
#define ADMIN_TRACE_LATE_MS 15000

/* How long gpusharectl waits for a whole exchange. It adds the second time for a reload, and the
 * duration for a trace. */
#define ADMIN_CLIENT_SECONDS        20
#define ADMIN_CLIENT_RELOAD_SECONDS 30

_Static_assert(ADMIN_CLIENT_SECONDS * 1000 > ADMIN_USAGE_MS, "clients, get, status");
_Static_assert(ADMIN_CLIENT_SECONDS * 1000 > ADMIN_SET_MS, "set");
_Static_assert(ADMIN_CLIENT_SECONDS * 1000 > ADMIN_TRACE_LATE_MS, "trace");
_Static_assert((ADMIN_CLIENT_SECONDS + ADMIN_CLIENT_RELOAD_SECONDS) * 1000 > ADMIN_RELOAD_MS,
               "reload");

#endif
