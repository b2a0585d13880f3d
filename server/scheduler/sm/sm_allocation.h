/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sm_allocation: decides which SM groups (groups of multiprocessors) each client has now.
 *
 * A request gives a client SM groups of its own: no other client is on them while the client has
 * work. While it has none they are lent to others, and taken back the moment it has some. A limit
 * is a cap. SM groups that a client has beyond its own may overlap with other clients', and are
 * chosen among the least loaded.
 *
 *   8 SM groups; a: request 4, limit 4; b: request 2, limit 8; c: limit 4
 *     a and b have work        a a a a | b b | . .    b: 4 5 and 6 7; c: 6 7
 *     a has none               . . . . | b b | . .    b: 0 to 7;      c: 0 1 6 7
 *     a has work again         named: b, now 4 5 6 7; c, now 6 7; a runs on 0 1 2 3
 *
 * ACCOUNTS. Clients of an account have one set of SM groups. The account's limit bounds the union
 * of the SM groups of its clients. Its request gives it SM groups of its own: while any of its
 * clients has work, no client of others is on them.
 *
 * Requests of its clients come out of that: such a client owns a part of the account's own SM
 * groups, and while it has no work, the account's other clients have that part. In an account
 * without a request its clients' requests stand beside the others'.
 *
 *   8 SM groups; account u: request 4, limit 4, with clients a (request 2) and b; c is in none
 *     a, b and c have work     a a b b | c c c c      u owns 0 to 3, and a of these 0 and 1
 *     a has none               b b b b | c c c c      b: 0 to 3
 *     neither a nor b has      c c c c | c c c c      c: 0 to 7
 *     b has work again         b b b b | c c c c      named: c, now 4 to 7; b runs on 0 to 3 still
 *
 * The SM groups of an account with a limit are chosen once, as a client's are: the account's own,
 * those that its clients own, then the least loaded. They change only when another owner takes some
 * of them back, or when a request or limit changes. A client of an account with a request goes to
 * the account's own SM groups while no more of its clients work there than elsewhere.
 *
 * When an account's SM groups change, its clients hand no more work to those that it has lost, and
 * sm_allocation_may_use says so; their work in flight there runs to its end.
 *
 * An account owns SM groups, and its request counts, for as long as it has a client. Without a
 * request and with a limit of PLAN_WHOLE it changes nothing for its clients.
 *
 * TIME. Where requests of time bind (sm_allocation_bind_time), a client that comes or changes gets
 * SM groups on which they fit. Clients with limits may move for that (sm_packing.h). If there are
 * none, the client is where it would be otherwise, and the caller refuses it.
 *
 * Percentages are of all multiprocessors. They are rounded down to whole SM groups, but to one at
 * least; only the whole device is all SM groups. The remainder, an SM group of fewer
 * multiprocessors, is the last. It belongs to a share only if the share, rounded down to whole SM
 * groups, leaves room for it.
 *
 * Only one client with a limit has the remainder at a time: otherwise ten clients with a tenth each
 * would all meet there. It is the one with the fewest whole SM groups, which would miss it most,
 * and of equals the first that had it.
 *
 * The last SM group may also be larger than the others: on an H100 15 have 8 multiprocessors, and
 * it has 12. It counts as one. Of equally loaded SM groups it is the first choice of a share that
 * has room for it.
 *
 * Any other share gets it where it would have to be on SM groups of others without it, and with it
 * need not. It has more than its limit then, by what this SM group has beyond the others: two
 * halves of 132 have 64 and 68.
 *
 * The requests must not exceed the number of SM groups: each account's once, and those of clients
 * that stand beside them. A client without a request has the empty
 * set while no SM group is free for it, and has to wait. On a device with a single SM group every
 * client has that one, and requests have no effect.
 *
 * The caller decides when a client has "no work". At the first pause would be too soon: SM groups
 * would change hands all the time. Once the owner is named, a borrower hands no more work to the SM
 * groups. The little that it has in flight there (scheduler.h, IN-FLIGHT LIMITS) runs to its end
 * beside the owner's work.
 *
 * No clock, no memory but the caller's; one thread at a time. sm_allocation_borrows is O(1).
 * sm_allocation_wants is O(1) for a client that has all that its limit allows, whose SM groups are
 * not lent, and whose account has no request. The other calls are O(clients x SM groups);
 * where accounts with limits have to move, O(clients^2 x SM groups).
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SM_SM_ALLOCATION_H
#define GPUSHARE_SERVER_SCHEDULER_SM_SM_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/list.h"
#include "server/scheduler/sm/sm_group_set.h"

/* An account, which lives in memory of the caller's and stays there while a client is in it. Zero
 * it once: it has no request and no limit then. The caller reads the members, and writes `number`
 * and `time_request`; only the calls below change the others. */
struct sm_allocation_account {
    uint64_t number;         /* the caller's, for sentences */
    uint32_t request, limit; /* in hundredths of a per cent; limit 0: never set, no limit */
    uint32_t time_request;   /* hundredths of a per cent of the time; 0: none */
    struct sm_group_set own; /* while one of its clients has work, no others are on these */
    /* With a limit: its clients run on no others. */
    struct sm_group_set now;
    bool lent; /* clients of others may be on its own SM groups */
    /* private */
    uint32_t max_sm_groups; /* as of a client */
    bool max_remainder, max_large;
    uint32_t clients, working;       /* its clients, and those of them that have work */
    struct sm_group_set clients_own; /* what its clients own */
    struct sm_allocation_account *next;
};

/* A client, which lives in memory of the caller's. Zero it before sm_allocation_add. The caller
 * reads the members, and writes `time_request`, before sm_allocation_add and before
 * sm_allocation_update; only the calls below change the others. */
struct sm_allocation_client {
    uint32_t request, limit; /* as asked for, in hundredths of a per cent */
    struct sm_group_set own; /* while it has work, no other client is on these */
    struct sm_group_set now; /* where it may run; empty: it has to wait */
    /* The number of whole SM groups that its limit and its account's allow, and whether they allow
     * the remainder too, or that one of these is a larger last one. */
    uint32_t max_sm_groups;
    bool max_remainder, max_large;
    bool wants;
    struct sm_allocation_account *account; /* or NULL */
    uint32_t time_request;                 /* as of an account */
    bool lent;                             /* other clients may be on its own SM groups */
    /* private */
    bool present, named;
    struct sm_allocation_client *next, *previous;
    struct queue_link name_link;
    uint32_t bin; /* these three are sm_packing's */
    bool moves;
    struct sm_group_set move_to;
};

struct sm_allocation {
    uint32_t count;         /* number of whole SM groups */
    uint32_t sm_group_size; /* multiprocessors of a whole SM group but the last */
    uint32_t last_size;     /* of the last whole SM group: as many, or more */
    uint32_t remainder;     /* multiprocessors of the last, smaller SM group; 0: there is none */
    uint32_t total;         /* multiprocessors of the device */
    /* Number of clients on each SM group, without those that have all SM groups. */
    uint32_t load[SM_GROUPS_MAX];
    struct sm_group_set owned; /* SM groups that accounts own, or clients beside them */
    struct sm_allocation_account *accounts; /* those that have clients */
    bool time_binds;
    struct sm_allocation_client *first, *last; /* in the order of their arrival */
    struct queue names;
};

/* Initialises *allocation. count: SM groups of sm_group_size multiprocessors, at least 1. rest: the
 * multiprocessors that are left. They are one more SM group, the last: the remainder if they are
 * fewer than sm_group_size, else a whole one. There are at most SM_GROUPS_MAX. Returns 0 or
 * -EINVAL. */
int sm_allocation_open(struct sm_allocation *allocation, uint32_t count, uint32_t sm_group_size,
                       uint32_t rest);

/*
 * sm_allocation_add adds a client, which has no work yet; sm_allocation_update changes the
 * fractions of a client; sm_allocation_move puts it into another account. account: NULL for none.
 * request: 0 (none) to limit. limit: 1 to PLAN_WHOLE. Return 0, or INVALID_VALUE with a sentence in
 * *why: for a fraction out of range, and with the arithmetic if the requests need more SM groups
 * than the device or the account has. Unless the result is 0, nothing has changed.
 */
uint32_t sm_allocation_add(struct sm_allocation *allocation, struct sm_allocation_client *client,
                           struct sm_allocation_account *account, uint32_t request, uint32_t limit,
                           struct error *why);
uint32_t sm_allocation_update(struct sm_allocation *allocation, struct sm_allocation_client *client,
                              uint32_t request, uint32_t limit, struct error *why);
uint32_t sm_allocation_move(struct sm_allocation *allocation, struct sm_allocation_client *client,
                            struct sm_allocation_account *account, struct error *why);

/* Sets what the clients of an account have together. Fractions and result as above. The request of
 * an account without clients is compared with the others' when its first client comes. */
uint32_t sm_allocation_account_set(struct sm_allocation *allocation,
                                   struct sm_allocation_account *account, uint32_t request,
                                   uint32_t limit, struct error *why);

/* Says whether requests of time bind. Clients whose requests don't fit where they are may move
 * then, and are named. */
void sm_allocation_bind_time(struct sm_allocation *allocation, bool binds);

/* Removes a client and forgets that it was to be named. Idempotent. */
void sm_allocation_remove(struct sm_allocation *allocation, struct sm_allocation_client *client);

/* sm_allocation_wants: the client has work, and its SM groups are taken back. sm_allocation_idle:
 * it has none, and its SM groups are lent. Both are idempotent. */
void sm_allocation_wants(struct sm_allocation *allocation, struct sm_allocation_client *client);
void sm_allocation_idle(struct sm_allocation *allocation, struct sm_allocation_client *client);

/* Names the clients whose set `now` the calls above have changed, one at each call; NULL when
 * there is no more. A client that must make room is named before the client that gets the room. */
struct sm_allocation_client *sm_allocation_next_changed(struct sm_allocation *allocation);

/* sm_allocation_may_use: whether no other client or account with work owns one of these SM groups,
 * and its account may have them all, so that the client may run there. sm_allocation_owns: whether
 * all of them are the client's, or its account's and no other client's; there is one at least.
 * sm_allocation_borrows: whether one of them is of another client or account, with work or
 * without. */
bool sm_allocation_may_use(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client,
                           const struct sm_group_set *sm_groups);
bool sm_allocation_owns(const struct sm_allocation_client *client,
                        const struct sm_group_set *sm_groups);
bool sm_allocation_borrows(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client,
                           const struct sm_group_set *sm_groups);

/* Finds the SM groups that are of another client or account, with work or without. The client is on
 * loan there, and never runs there while their owner does. */
void sm_allocation_foreign(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client, struct sm_group_set *foreign);

/* The number of multiprocessors that the client's limit and its account's allow. On a larger last
 * SM group it may have more than that. */
uint32_t sm_allocation_max(const struct sm_allocation *allocation,
                           const struct sm_allocation_client *client);
/* The number of whole SM groups of a percentage, 0 to 10000 hundredths of a per cent.
 * *remainder says whether the remainder belongs to it. sm_allocation_has_large: whether one of them
 * may be a last SM group that is larger than the others. */
uint32_t sm_allocation_sm_groups(const struct sm_allocation *allocation, uint32_t percentage,
                                 bool *remainder);
bool sm_allocation_has_large(const struct sm_allocation *allocation, uint32_t percentage);

#endif
