/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * explain: says of an executable what `gpushare run` can't do for it, from the file alone. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_EXPLAIN_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_EXPLAIN_H

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

/*
 * Prints a line for each thing that was found to out, each with its remedy. *problems: how many of
 * them keep the program from running as it is. Returns 0; or an error number, with the sentence in
 * *why, if the file can't be read or is no executable of this machine.
 */
uint32_t explain_program(const char *path, FILE *out, unsigned *problems, struct error *why);

#endif
