/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * variables: the names of all environment variables that gpushare's programs read. They serve to
 * notice a misspelt one: a limit whose name has a typing error would otherwise silently have no
 * effect.
 *
 * The values are not read. Any thread may call, as long as no thread changes the environment
 * meanwhile.
 */
#ifndef GPUSHARE_COMMON_LIMITS_VARIABLES_H
#define GPUSHARE_COMMON_LIMITS_VARIABLES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* Receives one sentence that names the variable, and the known name that it resembles, if there
 * is one. told: valid during the call. */
typedef void variables_unknown(void *context, const struct error *told);

/*
 * Calls `unknown` for each variable whose name begins with GPUSHARE_ and that no program of
 * gpushare reads, in the order of the environment, sixteen at most. environment: of the form of
 * `environ`, or NULL for none.
 *
 * Variables that Kubernetes sets for a Service whose name begins with gpushare, such as
 * GPUSHARE_SERVICE_HOST and GPUSHARE_WEB_PORT, are passed over.
 */
void variables_check(char *const *environment, variables_unknown *unknown, void *context);

/* Whether only clients and their tools read a variable: the server has no use for it. */
bool variables_is_clients(const char *name);

/* Calls `told` with a sentence for each variable of the environment that is set and that only
 * clients read, in alphabetical order. For a server, on which these have no effect. */
void variables_check_clients(char *const *environment, variables_unknown *told, void *context);

/* Receives one name, which stays valid for the program's life. */
typedef void variables_row(const char *name, void *context);

/* Calls row with every name that a program of gpushare reads, in alphabetical order. */
void variables_known(variables_row *row, void *context);

#endif
