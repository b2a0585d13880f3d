/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * variables: the names of the environment variables that gpushare's programs read, so
 * that one which none of them reads is noticed: a limit with a slip in its name would
 * otherwise be no limit, without a word.
 *
 * Reads nothing but names. Any thread, as far as nobody changes the environment.
 */
#ifndef GPUSHARE_COMMON_VARIABLES_H
#define GPUSHARE_COMMON_VARIABLES_H

#include <stddef.h>

/* Room for a sentence about one variable, its end included. */
enum { VARIABLES_TEXT = 256 };

/* text: one sentence that names the variable, and the nearest known one if it is near. */
typedef void variables_unknown(void *context, const char *text);

/*
 * Tells every variable of an environment (as environ; NULL for none) whose name begins with
 * GPUSHARE_ and that nothing of gpushare reads, in order, sixteen at most. What Kubernetes sets
 * for a Service whose name begins with gpushare (GPUSHARE_SERVICE_HOST, GPUSHARE_WEB_PORT and so
 * on) is passed over.
 */
void variables_check(char *const *environment, variables_unknown *unknown, void *context);

/* name: constant for the program's life. */
typedef void variables_row(const char *name, void *context);

/* Calls row with every name that something of gpushare reads, in order. */
void variables_known(variables_row *row, void *context);

#endif
