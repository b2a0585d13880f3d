/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* textfile: a file of metrics for node_exporter's textfile collector, which is always whole. */
#ifndef GPUSHARE_CLIENT_TOOLS_EXPORTER_TEXTFILE_H
#define GPUSHARE_CLIENT_TOOLS_EXPORTER_TEXTFILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Replaces the file, which every user may read, by way of PATH.new. Returns 0, or an error number
 * with a sentence in *why; the old file is then as it was. */
uint32_t textfile_write(const char *path, const char *text, size_t length, struct error *why);

#endif
