/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * check: has gpushared check a configuration file. No server is needed: the program gpushared
 * beside this one reads the file as it does when it starts, and says what is wrong with it. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_CONFIGURATION_CHECK_H
#define GPUSHARE_CLIENT_TOOLS_CONFIGURATION_CHECK_H

#include <jansson.h>

#include "client/tools/admin_client.h"

/*
 * file: NULL for the one that gpushared reads by itself. *answer: what became of it, in the form of
 * the server's answers, which the caller owns; NULL without memory. Returns ADMIN_OK, ADMIN_FAILED
 * for a file with a mistake or where gpushared could not be executed, or ADMIN_USAGE where the
 * environment has a value that gpushared does not take.
 */
enum admin_outcome check_run(const char *file, json_t **answer);

/* Prints an answer of ADMIN_OK: the sentence on standard output, warnings on standard error. */
void check_print(const json_t *answer);

#endif
