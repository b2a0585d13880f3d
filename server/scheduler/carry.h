/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * carry: what a scheduler knows of clients and accounts, as another scheduler can go on with it.
 *
 * A device's scheduler ends with its worker, at any moment, and the next worker begins with another
 * one. A client's debts and credits, and how far its account is ahead of others, are taken
 * while the first one works, again and again, and given to the second one.
 *
 *   debts     are worked off by the clock, while nobody serves too
 *   credit    stands still meanwhile: what is owed for time in which nobody was served would have
 *             to come from others' time. That of a client that pauses for a tenth of a plan lapses
 *   levels    (sums of idle time) are carried as the distance to the others' in the lease group
 *   a lease   that is under way counts as charged up to the moment at which it is taken. It ends
 *             with its scheduler, and so does a turn. Leases and plans begin anew
 *   places    in the order of turns are kept for those that wait, and have work again within a turn
 *
 * Clients that do not come back have left, and their account owes what they owed (debts.h). Times
 * are on the same clock in both schedulers. The values given may come from a process that crashed:
 * those out of range are cut to it. One thread at a time, as for scheduler.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_CARRY_H
#define GPUSHARE_SERVER_SCHEDULER_CARRY_H

#include <stdbool.h>
#include <stdint.h>

#include "server/scheduler/scheduler.h"

struct carry_client {
    struct claim request; /* this and the credits: when it was taken */
    struct credit cap, duty;
    uint64_t arrived, spends;
    uint64_t ahead_ns;         /* of its account's other clients */
    uint64_t account_ahead_ns; /* its account, of the others in the lease group */
    uint64_t crowd;            /* clients with work in the lease group */
    uint64_t mean_ns, peak_ns, pair_ns;
    uint64_t charged_ns, leases, throttled_ns[SCHEDULER_HOLDS];
    uint64_t ticket;  /* of its place in the order of turns; 0: it did not wait for one */
    uint64_t tickets; /* all that were given */
};

struct carry_account {
    uint64_t number;
    struct claim request;
    struct credit cap, duty;
    uint64_t debt_ns; /* by which its turns ran over */
    uint64_t ticket;  /* likewise */
};

/* Takes all that is known at `now`; nothing changes. The client was added. */
void carry_client_take(const struct scheduler *scheduler, const struct scheduler_client *client,
                       uint64_t now, struct carry_client *to);
/* The same of an account with clients. O(lease groups). */
void carry_account_take(const struct scheduler *scheduler, const struct scheduler_account *account,
                        uint64_t now, struct carry_account *to);

/* The client goes on with what was taken, instead of what a client that arrives has. It was added a
 * moment ago, has had no device time and no work. */
void carry_client_give(struct scheduler *scheduler, struct scheduler_client *client,
                       const struct carry_client *from, uint64_t now);
/* The client may have work from now on: until now what it is owed, and its place, has not
 * lapsed. */
void carry_client_resume(const struct scheduler *scheduler, struct scheduler_client *client,
                         uint64_t now);
/* The same of an account whose request and limit are set, before any of its clients has work. */
void carry_account_give(struct scheduler *scheduler, struct scheduler_account *account,
                        const struct carry_account *from, uint64_t now);

/* A client of this account, which is not 0, does not come back. account: what was taken of that,
 * whose last client it was; NULL: others of it are there. Call it when all that come back have been
 * given what was theirs, and before a new one is added. */
void carry_client_leave(struct scheduler *scheduler, uint64_t number,
                        const struct carry_client *client, const struct carry_account *account,
                        uint64_t now);

#endif
