/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * explain: says of an executable, or of all that a folder holds, what `gpushare run` can't do for
 * it, from the files alone. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPLAIN_EXPLAIN_H
#define GPUSHARE_CLIENT_TOOLS_EXPLAIN_EXPLAIN_H

#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

/*
 * Prints a line to out for each thing that was found in the program and in the libraries that it
 * needs, each with its remedy. Of a folder, prints a line for each file of CUDA in it, and one for
 * all of them; symbolic links are not followed.
 *
 * library_path: LD_LIBRARY_PATH, or NULL. *problems: how many of the things keep a program from
 * running as it is, or from being looked at. Returns 0; or an error number, with the sentence in
 * *why, if the file can't be read or is no executable of this machine.
 */
uint32_t explain_path(const char *path, const char *library_path, FILE *out, unsigned *problems,
                      struct error *why);

#endif
