/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/exporter/textfile.h"

#include <string.h>

#include "common/messages.h"
#include "common/regular_file.h"

/* The collector reads names that end in .prom, so it never sees the new file before it is whole. */
uint32_t textfile_write(const char *path, const char *text, size_t length, struct error *why)
{
    int result = regular_file_replace(path, 0644, text, length);
    return result == 0 ? 0 : error_set(why, MESSAGE(exporter_file), path, strerror(-result));
}
