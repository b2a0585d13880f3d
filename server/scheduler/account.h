/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * account: what clients have together: a user's, a group's, or one client's alone.
 *
 * A client is scheduled in one account. The account's request belongs to it, and so does its part
 * of the idle time; both are divided among its clients. So a user with ten connections has as much
 * as a user with one. A client may count in other accounts besides. Their limits hold for it, and
 * nothing else of them.
 *
 * Requests of the account's own clients come out of its request. The rest of it is one credit, as a
 * client's request is: it grows while a client that has no request of its own has work, and pays
 * for leases of these clients. The client that had least of the account's time is next. A client
 * with a request takes it out of the account's while it has work, and in a pause while it is owed
 * something.
 *
 *   Worked (fair): user a has a request of 50 % and two clients, one of which requests 20 %; user b
 *   has none and eight clients. All have work. The client with a request has 20 % of the time and
 *   the other one 30 %. The idle half is divided between a and b: 25 % each. Of a's, both clients
 *   get 12.5 %; each of b's clients gets an eighth of 25 %.
 *
 * In concurrent mode a duty bounds the device time of all clients that count in the account, as the
 * duty of a client bounds that client's.
 *
 * A limit holds for the sum of the leases of all clients that count in the account, in whichever
 * lease group they are. A request has to fit into each lease group in which the account has
 * clients, and the leases of all of them are charged to it.
 *
 * The functions below are the scheduler's own; its callers use scheduler_account_set and pass
 * accounts to scheduler_add. One thread at a time, as for scheduler.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_ACCOUNT_H
#define GPUSHARE_SERVER_SCHEDULER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "server/scheduler/claim.h"
#include "server/scheduler/plan.h"

struct scheduler_client;

/* A place in the order of turns that was given by another scheduler (carry.h). All zero: none. */
struct kept_place {
    uint64_t ticket;
    uint64_t until; /* without work before then, the place is one behind the others */
};

/* An account, in memory of the caller's. It must stay until no client counts in it. The caller
 * reads only the members under `for status`. */
struct scheduler_account {
    /* for status */
    uint64_t number;  /* the caller's; 0: of a client alone, and its debts end with the client */
    const char *name; /* for sentences: "user 1001"; static, or the caller's for as long */
    uint32_t time_request, time_limit; /* hundredths of a per cent; 0: no request */
    uint32_t members;                  /* clients that count in it */
    /* private */
    uint32_t clients;     /* clients that are scheduled in it */
    uint32_t wants;       /* of these, clients with work */
    uint32_t sharers;     /* clients with work or a lease, and without a request of their own */
    uint32_t own;         /* the sum of the requests of its other clients: account_part */
    struct list pausing;  /* those of them that pause, and whose requests count nevertheless */
    struct claim request; /* busy while it has sharers */
    struct credit cap;
    int64_t owed;         /* to the requests of clients that count in it, when last looked at */
    bool request_is_owed; /* its own request is a part of that */
    bool is_usable;       /* the limits of its sharers leave some of its request to use now */
    struct credit duty;   /* a rate of PLAN_WHOLE: no bound */
    uint64_t ticket;      /* in turns: the order among accounts with work; smaller is earlier */
    struct kept_place kept;
    uint64_t debt_ns; /* in turns: by which its last turns ran over */
    uint64_t busy_at; /* when one of its clients was last seen busy (balance.h); 0: never */
    uint64_t counted; /* the last sum of requests that has this one in it */
};

/* The part of a client in the counts of its account. Its own request counts while it has work or a
 * lease, and in a pause while it is owed something: that lapses as if it had the device, so the
 * time is not the account's other clients' too. */
struct account_part {
    bool wants, shares;
    uint32_t own;
};

/* Initialises an account without a request and without a limit, and without clients. */
void account_open(struct scheduler_account *account, uint64_t number, const char *name,
                  uint64_t now);

/* Sets the rates of its credits from its request and limit. strict: the mode is strict, in which a
 * request is a bound by itself. The credits have been settled. */
void account_set_rates(struct scheduler_account *account, bool strict);

/* The most parts of credit under the limit of an account: a lease, or its share of a plan if that
 * is less, and what the requests of its clients are owed (policy.c), which is two leases at most.
 */
int64_t account_cap_most(const struct plan *plan, uint32_t rate);
int64_t account_owed_most(const struct plan *plan);

/* Lets the account's credits grow up to now. */
void account_settle(const struct plan *plan, struct scheduler_account *account, uint64_t now);

/* Brings the claims of the client and its account up to date, and the account's counts; its credit
 * is settled first if they change. The client's own credit was settled. To be called when the
 * client has work, or has none any more, when it gets or gives back a lease, and when its request
 * changes. O(1). */
void account_note(const struct plan *plan, struct scheduler_client *client, uint64_t *tickets,
                  uint64_t now);

/* The ticket of a client or account that has work from now on: that of the place that was kept, or
 * one behind all others. The place is kept no longer. */
uint64_t account_next_ticket(struct kept_place *kept, uint64_t *tickets, uint64_t now);

/* The client, which has neither work nor a lease, does not count in its account any more: it
 * leaves, or moves to another account. */
void account_leave(const struct plan *plan, struct scheduler_client *client, uint64_t now);

/* When the account's request next grows faster, because a pause of one of its clients counts no
 * longer. PLAN_NEVER: by time alone it does not. */
uint64_t account_grows_at(const struct plan *plan, const struct scheduler_account *account);

/* Whether the client or its account has a request. */
bool account_has_request(const struct scheduler_client *client);

/* The claim that pays for the client's leases by request: its own one or its account's. NULL:
 * neither has a request. */
struct claim *account_claim(struct scheduler_client *client);

#endif
