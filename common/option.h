/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * option: what is wrong with an option of a command line, in the same words for every program.
 *
 * A program sets opterr to 0 and begins its short options with ':'. getopt_long() then returns ':'
 * for an option without its value and '?' for any other fault. One thread, as getopt_long().
 */
#ifndef GPUSHARE_COMMON_OPTION_H
#define GPUSHARE_COMMON_OPTION_H

#include <getopt.h>
#include <stdint.h>

#include "common/error.h"

/* To be called when getopt_long() has returned `result`, which is ':' or '?', for argv and longs.
 * Returns an error number, with the sentence in *why. */
uint32_t option_explain(int result, char *const argv[], const struct option *longs,
                        struct error *why);

#endif
