/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_list: the output of `gpushare-worker --driver PATH --list`. The supervisor reads it, since
 * it never opens a driver itself. The output is a line "device ORDINAL UUID" for each device (UUID:
 * 32 hexadecimal digits; " mig" follows for a MIG instance), then a line "arena DEVICE_BASE
 * HOST_BASE BYTES" (hexadecimal after 0x) with the pair of address ranges that clients' memory can
 * have. A line "error NUMBER SENTENCE" stands at the place of the first failure and ends the
 * output.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_DEVICE_LIST_H
#define GPUSHARE_SERVER_WORKER_DEVICE_DEVICE_LIST_H

#include <stdio.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "common/ipc/arena.h"

/*
 * Opens the driver at this absolute path, makes no context, and writes the lines to the stream,
 * which stays the caller's. only: the pair that the administrator named; NULL: one of the ladder
 * (gpu_arena.h). Returns the program's exit status: 0, or 1 after an error line.
 */
int device_list_print(const char *driver_path, const struct arena *only, FILE *to);

/* Writes all lines but the error line, with an open driver. Returns 0 or an error number that *why
 * explains. */
uint32_t device_list_write(const struct cuda_driver *driver, const struct arena *only, FILE *to,
                           struct error *why);

#endif
