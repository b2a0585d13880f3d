/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * reload: puts another configuration in force while clients work, either whole or not at all.
 *
 * Workers decide about everything that belongs to them: schedules, and whether requests fit
 * together. So a reload is a transaction of three ranks. It lowers every request that falls, then
 * gives devices their schedules, then clients their shares; each rank waits for all answers. The
 * last is memory, which the supervisor changes by itself, at once.
 *
 * The first refusal takes back what was made. Only values that differ between the two files are
 * touched, unless it is a reset.
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
struct total_overrides;

/* error: 0, or an error number with a sentence in text. The reload is over when this is called: the
 * callee may begin another. */
typedef void reload_done(void *context, uint32_t error, const char *text);

/* Somebody who asks for a change that workers may have to agree to. */
struct reload_asker {
    const char *by; /* for the log; read until done is called */
    reload_done *done;
    void *context;
};

/*
 * Puts the configuration file that the settings name in force at the server's start. The file is
 * read at once, and no worker has to be asked, since there is none yet. taking_over: as for
 * reading_now. Returns 0, or an error number with a sentence in *why.
 */
uint32_t reload_start(struct supervisor *supervisor, bool taking_over, struct error *why);

/*
 * Reads that file again, on another thread (reading.h), and puts all of it in force, or nothing. It
 * holds for clients that attach from then on, for attached clients whose values differ from those
 * of the old file, and for the devices. No client is dropped. reset: everything that an
 * administrator has set goes back to what the new file says.
 *
 * Returns 0: the loop calls done exactly once, never before this function returns, with an error if
 * the file has a mistake or a worker refuses; then everything is as it was. Or returns an error
 * number with a sentence in *why: done is not called. change_check, change_set and change_schedule
 * refuse from when the file was read until the reload is over.
 */
uint32_t reload_file(struct supervisor *supervisor, bool reset, reload_done *done, void *context,
                     struct error *why);

/*
 * Puts these overrides in force in the place of those that are, and changes nothing else; takes
 * *overrides over in any case.
 *
 * Returns 0, or an error number with a sentence in *why; then nothing has changed, and done is not
 * called. *over: true if the change is complete, and done is not called either. If it is false,
 * workers have to be asked: the loop calls done exactly once, never before this function returns.
 */
uint32_t reload_totals(struct supervisor *supervisor, struct total_overrides *overrides,
                       const struct reload_asker *asker, bool *over, struct error *why);

/* Goes on with a reload under way whose file or answers are there. The loop calls it in every turn.
 */
void reload_advance(struct supervisor *supervisor);

#endif
