/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * change: what clients are granted and how devices are shared, changed by an administrator while
 * the clients work. Loop thread.
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
 * Finds what an attached client would be granted now, had no administrator changed it. A limit
 * stays within the window of addresses that it has. A request that is its own is as it is now, and
 * rises to the part that it may have about a second later.
 *
 * Returns 0, or an error number: it has left, or asked for a profile that is no longer there.
 */
uint32_t change_configured(struct supervisor *supervisor, uint32_t client,
                           struct allowance *configured, struct error *why);

/*
 * Changes the grant of an attached client that change_check allows, while it works. A memory limit
 * below what is in use takes nothing away; it refuses further allocations.
 *
 * Returns 1 if the change is made. Returns 0 if the worker has to be asked: asker->done is then
 * called exactly once, from the loop and never before this function returns. Returns -ENOENT,
 * -EBUSY (a reload is under way), -ENOSPC (the guarantee does not fit: change_check says why), or
 * another -errno: asker->done is not called, and nothing has changed.
 */
int change_set(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
               const struct change_asker *asker);

/*
 * Like change_set, to undo changes of which one was refused. To be called from within the callback
 * of the last of them: then a reload that began meanwhile waits for this change too.
 */
int change_put_back(struct supervisor *supervisor, uint32_t client, const struct allowance *change,
                    const struct change_asker *asker);

/*
 * Changes how the clients of a device share it: the parts (bits of enum schedule_part) of `to`.
 * Changes of one device are carried out in order.
 *
 * Returns 1 if the change is made, as when there is no worker now: its successor is told before any
 * client. Returns 0 if the worker is asked: asker->done is then called exactly once, from the loop
 * and never before this function returns; after a refusal everything is as it was. Returns -ENOENT
 * (no such device), -EBUSY (a reload is under way) or another -errno: asker->done is not called,
 * and nothing has changed.
 *
 * The watchdog's parts are an exception: on a device that exists they are in force at once, and
 * stay whatever becomes of the other parts. -EBUSY leaves them alone too.
 */
int change_schedule(struct supervisor *supervisor, uint32_t device, const struct schedule *to,
                    unsigned parts, const struct change_asker *asker);

/* Limits of clients that attach to a device from now on. change: limits and scalars, which hold
 * beside those that are set already. back_limits (RESOURCE_BITs) and back_scalars (bits of scalars)
 * are lifted. device: one that exists. */
void change_newcomers(struct supervisor *supervisor, uint32_t device,
                      const struct allowance *change, unsigned back_limits, unsigned back_scalars);

#endif
