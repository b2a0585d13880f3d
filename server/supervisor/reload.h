/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reload: another configuration, put in force whole or not at all, with clients at work.
 *
 * The supervisor must ask workers for everything that belongs to them: schedules, requests that
 * must fit together. So first every request that falls is lowered, then devices get their
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

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct supervisor;

/* error: 0, or a number of the error table with a sentence. The reload is over when this is called:
 * the callee may begin another. */
typedef void reload_done(void *context, uint32_t error, const char *text);

/*
 * Reads the configuration (settings) again and puts it in force whole, for clients that
 * attach from now on and, where it says something else of them than the one before, for
 * those attached and for the devices; or changes nothing. No client is dropped. *over: all is
 * done; else  * workers have to be asked: done is then called exactly once, from the loop and never
 * before this returns, and after a refusal everything is as it was. After an error done is not
 * called. While it is under way change_check, _set and _schedule refuse. Called at start, too.
 */
uint32_t reload_start(struct supervisor *supervisor, bool *over, reload_done *done, void *context,
                      struct error *why);

/* Takes the steps for which all answers are there, if a reload is under way. The loop calls it
 * whenever something may have changed. */
void reload_advance(struct supervisor *supervisor);

#endif
