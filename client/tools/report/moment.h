/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * moment: a moment as an option names it, in UTC: "2026-11-01", "2026-11-01T12:30",
 * "2026-11-01T12:30:15Z", "today", "yesterday", or a time ago: "7d", "36h", "90min". Pure.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_REPORT_MOMENT_H
#define GPUSHARE_CLIENT_TOOLS_REPORT_MOMENT_H

#include <time.h>

/* Returns 0 or -EINVAL. now, *moment: seconds since 1970. */
int moment_parse(const char *text, time_t now, double *moment);

#endif
