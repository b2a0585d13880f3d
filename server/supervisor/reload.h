/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reload: another configuration, put in force whole or not at all, with clients at work.
 *
 * What belongs to workers can only be had by asking: schedules, requests that must fit
 * together. So first every request that falls is lowered, then devices get their
 * schedules, then clients their shares, each step waiting for all answers; last comes memory,
 * which is the supervisor's own, in one go. The first refusal turns the steps round:
 * all goes back, in the same order, to where it was. Only what the two files say
 * differently is touched.
 *
 * It begins when no client is on its way to be attached, and none is let in until it is
 * over (they wait); nobody else changes shares meanwhile. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_RELOAD_H
#define GPUSHARE_SERVER_SUPERVISOR_RELOAD_H

#include <stddef.h>

#include "server/supervisor/supervisor.h"

struct config;
struct supervisor;

/*
 * Takes config over (NULL: none). Returns and calls done as supervisor_reload.
 * supervisor->reload is set while it is under way, and supervisor->config is the one
 * in force.
 */
int reload_begin(struct supervisor *supervisor, struct config *config, char *text,
                 size_t text_bytes, supervisor_reload_done *done, void *context);

/* Takes the steps for which all answers are there, if a reload is under way. The loop calls it
 * whenever something may have changed. */
void reload_advance(struct supervisor *supervisor);

#endif
