/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void report(const char *format, ...)
{
    static const char prefix[] = "softgpu: ";
    char line[1024];
    size_t length = sizeof(prefix) - 1;
    va_list args;
    int written;

    memcpy(line, prefix, length);
    va_start(args, format);
    written = vsnprintf(line + length, sizeof(line) - length - 1, format, args);
    va_end(args);
    if (written < 0)
        return;
    length +=
        (size_t)written < sizeof(line) - length - 1 ? (size_t)written : sizeof(line) - length - 2;
    line[length++] = '\n';
    /* A closed standard error is no reason to fail a call. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}
