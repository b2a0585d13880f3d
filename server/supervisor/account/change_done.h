/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* change_done: how an administrator or a reload is told that a change has ended. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_CHANGE_DONE_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_CHANGE_DONE_H

#include <stdint.h>

/*
 * A change of a client or a device, whose number is given, was made or refused. error: 0, or an
 * error number with a sentence in text, which is the worker's own if the worker refused. The callee
 * may make further changes. The client and the device are not freed before control returns to the
 * loop. Loop thread.
 */
typedef void change_done(void *context, uint32_t number, uint32_t error, const char *text);

#endif
