/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reload: puts another configuration in force while clients work, either whole or not at all.
 *
 * Workers decide about everything that belongs to them: schedules, and whether requests fit
 * together. So a reload takes steps. It lowers every request that falls, then gives devices their
 * schedules, then clients their shares; each step waits for all answers. The last step is memory,
 * which the supervisor changes by itself, at once.
 *
 * The first refusal turns the reload round: the same steps, in the same order, put back what was
 * before. Only values that differ between the two files are touched.
 *
 * A reload begins when no client is being attached. Until it is over clients that want to attach
 * wait, and no other change is accepted. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_RELOAD_H
#define GPUSHARE_SERVER_SUPERVISOR_RELOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct supervisor;

/* error: 0, or an error number with a sentence in text. The reload is over when this is called: the
 * callee may begin another. */
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

/* Takes the steps of a reload under way for which all answers are there. The loop calls it in every
 * turn. */
void reload_advance(struct supervisor *supervisor);

#endif
