/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reading: reads the configuration file that the settings name.
 *
 * The file may lie on another machine, and so may the directory in which names of users and groups
 * are looked up. While the server serves clients it is therefore read on another thread, which may
 * wait for as long as these take. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_READING_H
#define GPUSHARE_SERVER_SUPERVISOR_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct config;
struct reading;
struct supervisor;

/* Reads the file at once. *config: the caller's; NULL after an error, and where no file is named or
 * the usual one is missing. taking_over: if the file is refused, the copy of what the last server
 * had in force takes its place (config/accepted.h); the refusal is logged, and administrators see
 * it (view_warning) until a reload puts the file in force. */
uint32_t reading_now(struct supervisor *supervisor, bool taking_over, struct config **config,
                     struct error *why);

/* Begins to read the file on another thread. done is called once, from the loop and never before
 * this function returns; reading_take follows it. Returns NULL if memory is short. The supervisor
 * must live until then. */
struct reading *reading_start(struct supervisor *supervisor, void (*done)(void *context),
                              void *context);

/* Result and *config of a reading that is done are as from reading_now, of one that takes nothing
 * over. Frees it. */
uint32_t reading_take(struct reading *reading, struct config **config, struct error *why);

/* Logs which configuration is in force, and what of it the GPUs' modes leave without effect. */
void reading_log(const struct supervisor *supervisor);

#endif
