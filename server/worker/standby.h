/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * standby: a worker that is prepared, and waits to be told to serve.
 *
 * It tells the supervisor so, and answers its questions whether it is still there. The thread that
 * serves the supervisor calls this, before control_serve.
 */
#ifndef GPUSHARE_SERVER_WORKER_STANDBY_H
#define GPUSHARE_SERVER_WORKER_STANDBY_H

enum standby_kind {
    STANDBY_NONE,   /* the worker serves at once */
    STANDBY_DRIVER, /* it waits once the driver is initialised, without a context */
    STANDBY_CONTEXT /* it waits when it has made all that it makes before its first client */
};

/* The kind with this name; -1: there is none. */
int standby_kind_of(const char *name);

/* The supervisor hung up: this worker is not needed. */
enum { STANDBY_UNWANTED = 1 };

/* Waits on the socket to the supervisor, which may be blocking or not. Returns 0 when the worker is
 * to serve; STANDBY_UNWANTED; or -errno, -EPROTO for a message that a standby does not know. */
int standby_wait(int channel);

#endif
