/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* yaml: a JSON value as a YAML text. Pure but for the stream; one thread. */
#ifndef GPUSHARE_CLIENT_TOOLS_CONFIGURATION_YAML_H
#define GPUSHARE_CLIENT_TOOLS_CONFIGURATION_YAML_H

#include <stdio.h>

#include <jansson.h>

/* Writes a value as one document in block style. A text that YAML would take for null has quotes.
 * Returns 0, or -1: the stream can't be written, or there was no memory. */
int yaml_write(FILE *out, const json_t *value);

#endif
