/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * change: what clients are granted and how devices are shared, changed by an
 * administrator while they work. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CHANGE_H
#define GPUSHARE_SERVER_SUPERVISOR_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"
#include "server/supervisor/account/change_done.h"
#include "server/supervisor/config/schedule.h"

struct supervisor;

/*
 * Whether a change would be refused now: an error, or 0. A limit may not exceed the client's window
 * of addresses, which is fixed when it attaches, nor what the device has; a request may not exceed
 * its limit. Whether the clients' requests fit together only the worker knows.
 */
uint32_t change_check(const struct supervisor *supervisor, uint32_t client,
                      const struct allowance *change, struct error *why);

/*
 * Changes the grant of an attached client that change_check allows, work in
 * flight or not. A memory limit below what is in use takes nothing away; it refuses
 * what is asked for from now on. Returns 1 if all is done; 0 if a worker has to be
 * asked: done is then called exactly once, from the loop and never before this
 * returns; -ENOENT, -ENOSPC (the guarantee does not fit: change_check
 * says why), or another -errno (done is not called, nothing has changed). by names who
 * asked, for the log.
 */
int change_set(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
               const char *by, change_done *done, void *context);

/*
 * The same, to undo changes of which one was refused, from within the `done` of the last
 * of them: a reload that began meanwhile waits for this, too.
 */
int change_put_back(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
                    const char *by, change_done *done, void *context);

/*
 * Changes how the clients of a device share it: the parts (bits of enum schedule_part)
 * of `to`. Returns 1 if all is done (there is no worker now: its successor is told
 * before any client); 0 if the worker is asked: done is then called exactly once, from
 * the loop and never before this returns, and after a refusal everything is as it was;
 * -ENOENT (no such device) or another -errno (done is not called, nothing has changed).
 * Changes are carried out in order. by names who asked, for the log.
 */
int change_schedule(struct supervisor *supervisor, uint32_t device, const struct schedule *to,
                    unsigned parts, const char *by, change_done *done, void *context);

#endif
