/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quota: a limited amount of a countable resource, and charges against it.
 *
 * Charge first, then allocate. The charge is a member of the object that it pays for, so an object
 * that is freed without giving its charge back shows when the quota is closed. A quota may
 * stand under another one (a client's under the server's), and may count in totals besides (those
 * of its user and its groups): all of them must have room.
 *
 * A quota's guarantee is held in the quotas above it and in its totals as if it were used. So
 * no other quota can have it, and the quota's own charges find room for as much.
 *
 *   device 100: a is guaranteed 40 and uses 10; b uses 50
 *     the device holds 40 + 50; b can have 10 more, a 40 more
 *
 * One thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_QUOTA_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_QUOTA_H

#include <stdint.h>

struct bill_level;
struct quota;

/* Membership of a quota in a total. It belongs to the caller of quota_join. */
struct quota_link {
    struct quota *total;
    struct quota_link *next;
};

struct quota {
    const char *name; /* for messages: "device memory limit"; must outlive the quota */
    uint64_t limit;
    uint64_t used;             /* charged; in a quota above others, or a total: what those hold */
    uint64_t guarantee;        /* only in a quota that has none under it; see quota_guarantee */
    struct quota *parent;      /* the quota above, or NULL */
    struct quota_link *totals; /* a total itself has neither parent nor totals */
    struct bill_level *level;  /* is told what is used, each time that it changes; or NULL */
};

/* The charge for one object. All zero: nothing is charged. */
struct charge {
    struct quota *quota;
    uint64_t amount;
};

#define CHARGE_NONE ((struct charge){0})

enum { QUOTA_OVER = 1 };

/* Makes a quota in which nothing is charged and nothing guaranteed. name: for messages; it must
 * outlive the quota, as the quota above must. parent: NULL for none. */
void quota_open(struct quota *quota, const char *name, uint64_t limit, struct quota *parent);

/* Ends a quota and its guarantee. Every charge must have been given back and every total left;
 * assertions check that. */
void quota_close(struct quota *quota);

/* The quota counts in this total from now on, or no longer. The amount that it holds already
 * counts at once, even beyond the total's limit. */
void quota_join(struct quota *quota, struct quota_link *link, struct quota *total);
void quota_leave(struct quota *quota, struct quota_link *link);

/*
 * Guarantees the quota this amount from now on. A lower amount is always possible. For a higher
 * one the quotas above and the totals must have room. Returns 0; or QUOTA_OVER, with the quota
 * that lacks room in *culprit (which may be NULL), and nothing has changed.
 */
int quota_guarantee(struct quota *quota, uint64_t amount, const struct quota **culprit);

/*
 * Guarantees the quota what it was guaranteed a moment ago. Totals are not asked: their limits
 * may have been set below what is held, and the quota takes nothing new. The quotas above must
 * have room. Returns 0; or QUOTA_OVER, and nothing has changed.
 */
int quota_restore(struct quota *quota, uint64_t amount);

/*
 * Charges amount to the quota, to the quotas above it and to its totals, or to none of them.
 * *charge must be empty. Returns 0; or QUOTA_OVER, with the quota that lacks room in *culprit
 * (which may be NULL).
 */
int quota_charge(struct quota *quota, struct charge *charge, uint64_t amount,
                 const struct quota **culprit);

/* Charges what the last server had charged, even beyond limits, which may have been lowered since.
 * *charge must be empty. */
void quota_charge_again(struct quota *quota, struct charge *charge, uint64_t amount);

/* The amount that could be charged now, in view of all quotas. */
uint64_t quota_left(const struct quota *quota);

/* How much less the quotas above and the totals would hold if `idle` of the charge were returned.
 * idle: at most what is used. */
uint64_t quota_gives_up(const struct quota *quota, uint64_t idle);

/* Sums quota_gives_up of the other members of a total, or of those below a quota above. */
typedef uint64_t quota_others(const void *context, const struct quota *total);

/* The amount that its own limit and its totals would leave if `idle` of its charge were returned,
 * and what the others give up; the quotas above are not asked. idle: at most what is used. others:
 * NULL, they give up nothing. */
uint64_t quota_left_in_totals(const struct quota *quota, uint64_t idle, quota_others *others,
                              const void *context);

/* The amount that the quotas above alone would leave it then; UINT64_MAX without one. */
uint64_t quota_left_above(const struct quota *quota, uint64_t idle, quota_others *others,
                          const void *context);

/* Gives a charge back and empties it. Idempotent. */
void quota_return(struct charge *charge);

#endif
