/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * report: carries out `gpusharectl report`: adds up files of the accounting, without a server. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_REPORT_REPORT_H
#define GPUSHARE_CLIENT_TOOLS_REPORT_REPORT_H

#include <stdbool.h>

#include "client/tools/table.h"
#include "common/error.h"

struct report_options {
    const char *since, *until; /* NULL: from the first line on; to the last one */
    const char *by;            /* NULL: user */
    bool json, csv;
    struct table_look look;
    char **files; /* each with what logrotate has made of it; none: COMMAND_REPORT_FILE */
    int file_count;
};

/* Prints the report. Returns the exit status: 0 done; 1 a file can't be read or a line is damaged,
 * which was said on standard error, and the rest is printed; 2 an option is wrong: *why says
 * which, and nothing was printed. */
int report_run(const struct report_options *options, struct error *why);

#endif
