/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_list: what `gpushare-worker --driver PATH --list` prints, for the supervisor,
 * which never opens a driver: a line "device ORDINAL UUID" for each device (UUID:
 * 32 hexadecimal digits), or one line "error NUMBER SENTENCE".
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_LIST_H
#define GPUSHARE_SERVER_WORKER_DEVICE_LIST_H

#include <stdio.h>

/* Opens the driver, makes no context. Returns the program's exit status. */
int device_list_print(const char *driver_path, FILE *to);

#endif
