/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * session_lost_kernels: the kernels of a session that its worker has handed to the driver and that
 * were not seen to finish, by name, as its journal says. The worker may be lost by then. Loop
 * thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_LOST_KERNELS_H
#define GPUSHARE_SERVER_SUPERVISOR_SESSION_LIFE_LOST_KERNELS_H

#include "server/supervisor/session/session.h"

/* A sentence for a client has room for it and for what happened. */
#define LOST_KERNELS_TEXT 200

/*
 * Writes them as they are launched in CUDA C: "add<<<(4,1,1),(256,1,1),0>>>"; the last number is
 * the dynamic shared memory. Equal launches stand there once, and of different ones the first
 * three, "and others" behind them. "unknown" if the journal has none. The device reports the end of
 * several commands at a time, so one that is named may have finished. Returns text, cut to fit.
 */
const char *session_lost_kernels(struct session *session, char text[LOST_KERNELS_TEXT]);

#endif
