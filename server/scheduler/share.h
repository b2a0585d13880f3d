/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * share: which of the device's SM groups (groups of multiprocessors) each client has now.
 *
 * A request is SM groups of the client's own: nobody else is on them while it has work.
 * While it has none they are lent, and taken back the moment it has some. A limit is
 * a cap: what a client has beyond its own SM groups may overlap with others' and goes to
 * the least loaded.
 *
 *   8 SM groups; a: request 4, limit 4; b: request 2, limit 8; c: limit 4
 *     a and b have work        a a a a | b b | . .    b: 4 5 and 6 7; c: 6 7
 *     a has none               . . . . | b b | . .    b: 0 to 7;      c: 0 1 6 7
 *     a has work again         named: b, now 4 5 6 7; c, now 6 7; a runs on 0 1 2 3
 *
 * Percentages are rounded down to SM groups, and what is below one SM group is one. The
 * remainder, an SM group of fewer multiprocessors, is the last; it is part of a share only
 * where the share, rounded down to whole SM groups, leaves room for it, and of one at a time:
 * ten clients of a tenth each would else meet there.
 * Requests must not come to more than the SM groups there are. A client without a request
 * for which no SM group is free has the empty set: it is held until there is one.
 * Where there is one SM group in all there is nothing to call one's own: everybody has it, and
 * requests mean nothing.
 *
 * The caller decides when a client has "no work": if it said so at the first pause, SM groups
 * would change hands all the time. A borrower hands nothing more to the SM groups from when the
 * owner is named; what it has in flight there, little (scheduler.h, IN-FLIGHT LIMITS), runs to its
 * end beside the owner's work.
 *
 * Pure; no clock, no memory but the caller's; one thread at a time. share_borrows is O(1), and
 * share_wants for a client that has all that its limit allows and whose SM groups nobody
 * borrowed; the other calls are O(clients x SM groups).
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SHARE_H
#define GPUSHARE_SERVER_SCHEDULER_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/list.h"

enum { SHARE_SM_GROUPS_MAX = 256 };

struct share_set {
    uint64_t bits[SHARE_SM_GROUPS_MAX / 64];
};

static inline bool share_set_has(const struct share_set *set, uint32_t sm_group)
{
    return set->bits[sm_group / 64] >> (sm_group % 64) & 1;
}

void share_set_add(struct share_set *set, uint32_t sm_group);
void share_set_all(struct share_set *set); /* SHARE_SM_GROUPS_MAX SM groups */
bool share_set_empty(const struct share_set *set);
bool share_set_overlap(const struct share_set *a, const struct share_set *b);
bool share_set_same(const struct share_set *a, const struct share_set *b);
void share_set_join(struct share_set *set, const struct share_set *other);
void share_set_cut(struct share_set *set, const struct share_set *other);
uint32_t share_set_count(const struct share_set *set);

/* Lives in its owner, zeroed before share_add. To be read; changed by the calls below alone. */
struct share_client {
    uint32_t request, limit; /* as asked, hundredths of a per cent */
    struct share_set own;    /* nobody else's while it has work */
    struct share_set now;    /* where it may run; empty: nowhere */
    uint32_t most;           /* whole SM groups that its limit allows */
    bool most_remainder;     /* and the remainder */
    bool wants;
    bool lent; /* others may be on its own SM groups */
    /* private */
    bool present, named;
    struct share_client *next, *previous;
    struct queue_link name_link;
};

struct share {
    uint32_t count;         /* whole SM groups */
    uint32_t sm_group_size; /* multiprocessors of one */
    uint32_t remainder;     /* multiprocessors of the SM group behind them; 0: there is none */
    uint32_t total;         /* multiprocessors of the device */
    uint32_t
        load[SHARE_SM_GROUPS_MAX]; /* clients that have the SM group, but for those that have all */
    struct share_set owned;        /* by all clients together; no two own the same SM group */
    struct share_client *first, *last; /* in the order of their coming */
    struct queue names;
};

/* count and, with a remainder, one more: SHARE_SM_GROUPS_MAX at most, and at least 1. 0 or -EINVAL.
 */
int share_open(struct share *share, uint32_t count, uint32_t sm_group_size, uint32_t remainder);

/*
 * A client without work arrives; other fractions for one that is there. request 0 (none) to
 * PLAN_WHOLE, limit 1 to PLAN_WHOLE and not less. Returns 0, or INVALID_VALUE with
 * the arithmetic or the range. Unless 0, nothing changed.
 */
uint32_t share_add(struct share *share, struct share_client *client, uint32_t request,
                   uint32_t limit, struct error *why);
uint32_t share_update(struct share *share, struct share_client *client, uint32_t request,
                      uint32_t limit, struct error *why);
/* Idempotent. */
void share_remove(struct share *share, struct share_client *client);

/* The client has work: its SM groups are taken back. It has none: they are lent. Idempotent. */
void share_wants(struct share *share, struct share_client *client);
void share_idle(struct share *share, struct share_client *client);

/* The calls above changed where clients may run. Each call names one whose `now` is another than
 * when it was last named; NULL: that was all. A client that must make room comes before the client
 * that gets it. */
struct share_client *share_named(struct share *share);

/* Whether the client may run on these SM groups, as far as it depends on others: nobody with work
 * calls one of them its own. And whether one of them is another's own, with work or without. */
bool share_may_use(const struct share *share, const struct share_client *client,
                   const struct share_set *sm_groups);
bool share_borrows(const struct share *share, const struct share_client *client,
                   const struct share_set *sm_groups);

/* Multiprocessors of a set; what status shows as granted. */
uint32_t share_multiprocessors(const struct share *share, const struct share_set *set);
/* Multiprocessors that its limit allows. */
uint32_t share_most(const struct share *share, const struct share_client *client);
/* The whole SM groups of a percentage (0 to PLAN_WHOLE), and whether the remainder belongs to it.
 */
uint32_t share_sm_groups(const struct share *share, uint32_t percentage, bool *remainder);

#endif
