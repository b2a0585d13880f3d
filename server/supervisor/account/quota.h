/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * quota: accounts of a countable resource, and charges against them.
 *
 * Charge first, then allocate. The charge is a member of what it pays for, so what
 * is freed without being paid back shows when its account is closed. An account
 * may stand under another (a client's under the server's), and count in totals
 * besides (those of its user and its groups): all of them must have room.
 *
 * A guarantee of an account is held in those above it and in its totals as if
 * it were used: nobody else can have it, and its own charges find room for as much.
 *
 *   device 100: a guaranteed 40, uses 10; b uses 50
 *     the device holds 40 + 50; b can have 10 more, a 40 more
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_QUOTA_H
#define GPUSHARE_SERVER_SUPERVISOR_QUOTA_H

#include <stdint.h>

struct quota;

/* Membership of an account in a total. Belongs to the caller that joined it. */
struct quota_link {
    struct quota *total;
    struct quota_link *next;
};

struct quota {
    const char *name; /* for messages: "device memory limit"; outlives the account */
    uint64_t limit;
    uint64_t used;             /* of one that others stand under or count in: what they hold */
    uint64_t guarantee;        /* of one without others under it; see quota_guarantee */
    struct quota *parent;      /* or NULL */
    struct quota_link *totals; /* which have neither parent nor totals */
};

/* The charge of one object. All zero: none. */
struct charge {
    struct quota *quota;
    uint64_t amount;
};

#define CHARGE_NONE ((struct charge){0})

enum { QUOTA_OVER = 1 };

void quota_open(struct quota *quota, const char *name, uint64_t limit, struct quota *parent);

/* Asserts that every charge has come back and every total was left; its guarantee ends. */
void quota_close(struct quota *quota);

/* From now on it counts in this total, with what it holds already, even beyond the total's limit.
 */
void quota_join(struct quota *quota, struct quota_link *link, struct quota *total);
void quota_leave(struct quota *quota, struct quota_link *link);

/*
 * Guarantees it so much from now on. Less is always possible; for more, those above and
 * the totals must have room: else QUOTA_OVER, with the account that lacks it in *culprit
 * (which may be NULL), and nothing changed.
 */
int quota_guarantee(struct quota *quota, uint64_t amount, const struct quota **culprit);

/*
 * Guarantees it what it was guaranteed a moment ago. Totals are not asked, for their limits may
 * have been set below what is held, and who is given back takes nothing new; those above are. 0 or
 * QUOTA_OVER, and nothing changed.
 */
int quota_restore(struct quota *quota, uint64_t amount);

/*
 * Charges amount to the account, to those above it and to its totals, or to none of them. The
 * charge must be empty. Returns 0; QUOTA_OVER with the account that lacks room in
 * *culprit (which may be NULL).
 */
int quota_charge(struct quota *quota, struct charge *charge, uint64_t amount,
                 const struct quota **culprit);

/* The amount that could be charged now, all accounts considered. */
uint64_t quota_left(const struct quota *quota);

/* Pays back; idempotent. */
void quota_return(struct charge *charge);

#endif
