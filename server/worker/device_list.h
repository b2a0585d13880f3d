/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_list: the output of `gpushare-worker --driver PATH --list`. The supervisor reads it, since
 * it never opens a driver itself. The output is a line "device ORDINAL UUID" for each device (UUID:
 * 32 hexadecimal digits), or one line "error NUMBER SENTENCE".
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_LIST_H
#define GPUSHARE_SERVER_WORKER_DEVICE_LIST_H

#include <stdio.h>

/* Opens the driver at this absolute path, makes no context, and writes the lines to the stream,
 * which stays the caller's. Returns the program's exit status: 0, or 1 after an error line. */
int device_list_print(const char *driver_path, FILE *to);

#endif
