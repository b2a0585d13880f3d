/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * accepted: a copy of the configuration in force, in the folder of the server's state.
 *
 * A server that takes over from another one has clients to lose: a mistake that somebody has
 * written into the file since must not end them. It goes on with the copy then, and says so. A
 * server that starts anew has nobody to lose, and refuses the file. Loop thread: the copy has a
 * megabyte at most, and is written without waiting for the disk, for it only has to outlive this
 * process.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_ACCEPTED_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_ACCEPTED_H

#include <stdint.h>

#include "common/error.h"

struct config;

/* config: from config_load; NULL: none is in force, and a copy is removed. folder: ""; nothing is
 * kept. A failure is logged. */
void accepted_keep(const char *folder, const struct config *config);

/* As config_load, of the copy. A copy that others may write to is refused. */
uint32_t accepted_load(struct config **config, const char *folder, struct error *why);

#endif
