/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sm_packing: finds SM groups for clients so that their requests of time fit, too.
 *
 * Clients whose SM groups overlap, directly or through others, are a lease group, and their
 * requests of time must not come to more than the whole. The least loaded SM groups may be the
 * wrong ones:
 *
 *   8 SM groups; a and b have a limit of 4 and request 50 % of the time each; c wants 4 and 90 %
 *     as they came     a a a a | b b b b    c fits beside neither
 *     packed           ab ab ab ab | c c c c
 *
 * A client that fits nowhere as the others are moves as few of them as it can: none, one without
 * work, one with work, or any. The search looks at 2000 arrangements at most, so among many clients
 * it may miss one.
 *
 * Only clients move that have a limit, own nothing, and are in no account with a request or limit
 * of threads; and only to SM groups that nobody owns. The others stay.
 *
 * Pure but for the members of clients that are named below. One thread at a time, as for
 * sm_allocation.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SM_SM_PACKING_H
#define GPUSHARE_SERVER_SCHEDULER_SM_SM_PACKING_H

#include <stdbool.h>

#include "server/scheduler/sm/sm_allocation.h"

/* Whether the requests of time fit in the client's lease group as all clients are now. An account's
 * request counts once in a lease group, and its clients' own are a part of it. O(clients^2). */
bool sm_packing_fits(struct sm_allocation *allocation, const struct sm_allocation_client *client);

/* Looks for an arrangement in which the client fits. Returns whether there is one; then it has
 * marked the clients that have to go elsewhere, each with the set to which it goes
 * (sm_allocation.h). The client is one for which sm_packing_fits says no. */
bool sm_packing_find(struct sm_allocation *allocation, struct sm_allocation_client *client);

#endif
