/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * failure: the sentence that goes with an error, one a thread, which
 * gpushare_error_text() shows. Any thread.
 *
 * Inside the library an operation returns a gpushare_error whose sentence is set
 * already; whoever forwards it leaves the sentence alone.
 */
#ifndef GPUSHARE_CLIENT_FAILURE_H
#define GPUSHARE_CLIENT_FAILURE_H

#include <stdint.h>

#include "client/gpushare.h"

/* Sets the thread's sentence and returns error, so that a check is one line. */
gpushare_error failure(gpushare_error error, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold, noinline));

/* The same with the table's own sentence. error: a number of the table. */
gpushare_error failure_plain(uint32_t error) __attribute__((cold));

/* The same with a sentence that comes from elsewhere; the table's where text is empty. */
gpushare_error failure_text(uint32_t error, const char *text) __attribute__((cold));

/* Puts words before the thread's present sentence ("for staging: ..."). Returns error. */
gpushare_error failure_prefix(gpushare_error error, const char *words) __attribute__((cold));

#endif
