/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* change_done: how the end of a change is told that an administrator or a reload makes. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_CHANGE_DONE_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_CHANGE_DONE_H

#include <stdint.h>

/*
 * A change of a client or a device (its number) is made, or refused. error: 0, or a number of the
 * error table and a sentence in text, the worker's own where it refused. The callee may make
 * further changes; the client and the device that the caller works on are not freed before control
 * returns to the loop.
 */
typedef void change_done(void *context, uint32_t number, uint32_t error, const char *text);

#endif
