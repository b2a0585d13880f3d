/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* change_done: the asker of a change, and how an administrator or a reload is told that it has
 * ended. */
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

/* Read during the call alone that gets it. */
struct change_asker {
    const char *by; /* for the log; "": of a client nothing is logged */
    change_done *done;
    void *context;
};

#endif
