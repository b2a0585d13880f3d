/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * accepted: copies of the configuration in force, and of the arguments and variables of the server,
 * in the folder of the server's state.
 *
 * A server that takes over from another one has clients to lose: a mistake that somebody has
 * written into the file, or among the service's options, since must not end them. It goes on with
 * the copy then, and says so. A
 * server that starts anew has nobody to lose, and refuses the file. Loop thread: the copy has a
 * megabyte at most, and is written without waiting for the disk, for it only has to outlive this
 * process.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_ACCEPTED_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_ACCEPTED_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct config;

#define ACCEPTED_START_FILE "accepted-start.json"

/* config: from config_load; NULL: none is in force, and a copy is removed. folder: ""; nothing is
 * kept. again: the last try failed; then a success is logged, and otherwise a failure. Returns 0,
 * or -errno: a failure; an older copy is removed then, since nobody could tell it from this one. */
int accepted_keep(const char *folder, const struct config *config, bool again);

/* As config_load, of the copy. A copy that others may write to is refused. */
uint32_t accepted_load(struct config **config, const char *folder, struct error *why);

/* Keeps what this server was started with: its arguments, and the variables that gpushare reads.
 * argv: ended by NULL, with the program's name. Returns 0, or -errno, as accepted_keep does. */
int accepted_keep_start(const char *folder, char *const *argv, bool again);

/*
 * Gives the variables that gpushare reads the values that they had then, in this process, and
 * returns the arguments, with the program's name and ended by NULL: they are kept for good. Only
 * before there are threads. Returns 0, or an error number; then the arguments are not set, and a
 * variable may be missing.
 */
uint32_t accepted_load_start(const char *folder, char *program, int *argc, char ***argv,
                             struct error *why);

#endif
