/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* shown: the configuration that a server has in force, as a file that gpushared reads. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_CONFIGURATION_SHOWN_H
#define GPUSHARE_CLIENT_TOOLS_CONFIGURATION_SHOWN_H

#include <stdio.h>

#include <jansson.h>

/* answer: to "config". Totals that were set stand above the file, as commands in comments: they
 * take the place of the file's totals, and entries of a file can only tighten each other. Returns
 * 0, or -1 if the stream can't be written or memory was short. */
int shown_print(FILE *out, const json_t *answer);

#endif
