/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * configuration: the configuration in force, in the form of the configuration file: the file as it
 * was read, and each GPU with all of its settings and limits, whatever said them. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_SHOW_CONFIGURATION_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_SHOW_CONFIGURATION_H

#include <stdint.h>

#include <jansson.h>

#include "common/error.h"

struct supervisor;

/*
 * Makes the answer to a request of kind ADMIN_CONFIG, which the caller owns; NULL without memory.
 * Returns 0, or an error number that *why explains: the limits of a GPU are not known before its
 * first worker was ready.
 */
uint32_t configuration_answer(const struct supervisor *supervisor, json_t **answer,
                              struct error *why);

#endif
