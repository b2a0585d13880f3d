/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * placement: where each client runs now, and where it has to go.
 *
 * server/scheduler/sm/sm_allocation.h decides which SM groups a client may have. This file tells it
 * which clients have work, and finds the partitions that the decisions ask for. At the client's
 * next visit it tells the submitter to go on there. Work in flight stays where it is; the move of
 * the streams orders later work behind it.
 *
 * A client counts as without work when it has had none, neither in its rings nor in flight, for
 * PLACEMENT_LINGER_NS. If it lost its SM groups at the first pause, SM groups would change hands
 * all the time.
 *
 * The control thread makes a partition that is not in the pool. Meanwhile the client goes on where
 * it is, unless other clients with work own some of those SM groups, or its account may not have
 * them any more: then the client waits. A client for which there is no SM group at all waits too.
 *
 * Any thread, except where a function names the control thread. One lock protects all placements;
 * it is never held across a call of the driver. A change of where clients may run is O(clients x SM
 * groups); placement_enter takes no lock where nothing changed. Times are nanoseconds.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_PLACEMENT_H
#define GPUSHARE_SERVER_WORKER_SHARING_PLACEMENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/units.h"
#include "server/scheduler/sm/sm_allocation.h"
#include "server/worker/sharing/partition.h"

#define PLACEMENT_LINGER_NS (5 * UNITS_MS)
#define PLACEMENT_NEVER     UINT64_MAX

/* A client's placement; zeroed before placement_add. Only the calls below change it; its members
 * are read under the lock. */
struct placement {
    struct sm_allocation_client allocation;
    uint64_t held_since;    /* since then it has work and can go nowhere; 0: it is not held */
    uint64_t held_ns;       /* sum of the times for which it was held before */
    struct sm_group_set at; /* where its next batch would go if nothing had changed */
    struct partition *next; /* it has this partition and has to move there; or NULL */
    bool settled;           /* `at` is where it belongs */
    bool working, idle, making;
    uint64_t idle_since;
    struct placement *idle_next, *idle_previous, *make_next;
    _Atomic uint32_t steady;  /* it has work and is settled: placement_enter has nothing to do */
    _Atomic uint32_t borrows; /* it is on SM groups that another client owns */
    _Atomic uint32_t at_home; /* it is on SM groups of its own, or of its account, alone */
};

/* Called under the lock of struct placement_table; they must not call placement.h again. */
struct placement_events {
    /* The client may run elsewhere now; if it was held it may be able to go on. */
    void (*changed)(void *context, struct placement *place);
    /* placement_next_to_make has a client. */
    void (*to_make)(void *context);
    void *context;
};

struct placement_table {
    pthread_mutex_t lock;
    struct sm_allocation allocation;
    struct partition_table *partitions;
    struct placement_events notice;
    struct placement *idle_first, *idle_last; /* in the order in which they became idle */
    struct placement *make_first, *make_last;
};

/* The partitions stay the caller's and must outlive *places. Returns 0, or -EINVAL for a split that
 * sm_allocation_open does not accept. */
int placement_table_open(struct placement_table *places, struct partition_table *partitions,
                         const struct placement_events *notice);
/* Every placement must have been removed. Idempotent. */
void placement_table_close(struct placement_table *places);

/* Set a client's request and limit, its account (NULL: none), and what an account's clients have
 * together (server/scheduler/sm/sm_allocation.h says in which unit, and for how long an account
 * stays). Return 0, or an error number with a sentence in why, and then nothing has changed.
 * Afterwards placement_next_to_make has the partitions to make; a new client can run nowhere before
 * that. Control thread. */
uint32_t placement_add(struct placement_table *places, struct placement *place,
                       struct sm_allocation_account *account, uint32_t request, uint32_t limit,
                       struct error *why);
uint32_t placement_update(struct placement_table *places, struct placement *place, uint32_t request,
                          uint32_t limit, struct error *why);
uint32_t placement_move_account(struct placement_table *places, struct placement *place,
                                struct sm_allocation_account *account, struct error *why);
uint32_t placement_account_set(struct placement_table *places,
                               struct sm_allocation_account *account, uint32_t request,
                               uint32_t limit, struct error *why);
/* A client's request of time, in hundredths of a per cent; set it before placement_add and
 * placement_update, which then choose SM groups on which it fits. And whether such requests bind;
 * clients may move when they begin to. Control thread. */
void placement_set_time(struct placement_table *places, struct placement *place, uint32_t request);
void placement_bind_time(struct placement_table *places, bool binds);
/* Calls `changed` once more for a client, which the gate did not know yet when placement_add called
 * it. Control thread. */
void placement_notify(struct placement_table *places, struct placement *place);
/* The client leaves; nothing of it is in flight. placement_idle and placement_made may still be
 * called with its place, and do nothing then. Idempotent. Control thread. */
void placement_remove(struct placement_table *places, struct placement *place);

enum placement_answer {
    PLACEMENT_STAY, /* the client may submit work where it was last */
    PLACEMENT_MOVE, /* the client moves to *to, which the caller has now; it puts the old one */
    PLACEMENT_HOLD, /* the client may submit nothing now; `changed` is called when it may again */
};

/* The client has something to submit: takes its SM groups back if they were lent, and says where
 * the work may go. *to is set for PLACEMENT_MOVE only. */
enum placement_answer placement_enter(struct placement_table *places, struct placement *place,
                                      struct partition **to, uint64_t now);

/* The client has nothing to submit and nothing in flight. Idempotent. */
void placement_idle(struct placement_table *places, struct placement *place, uint64_t now);

/* Clients that have had no work for PLACEMENT_LINGER_NS lend their SM groups from now on. Returns
 * when the next client will, or PLACEMENT_NEVER. */
uint64_t placement_tick(struct placement_table *places, uint64_t now);

/* Whether all of these SM groups are the client's own, or its account's and no other client's. Any
 * thread. */
bool placement_is_home(struct placement_table *places, const struct placement *place,
                       const struct sm_group_set *sm_groups);

/* Finds the SM groups that are of others (sm_allocation_foreign). Any thread. */
void placement_foreign(struct placement_table *places, const struct placement *place,
                       struct sm_group_set *foreign);

/*
 * Control thread: a client for whose SM groups a partition must be made, or NULL. Report the new
 * partition with placement_made, which releases it at once if it is no longer needed; or NULL if
 * it could not be made, which puts the client at the end of the queue again.
 */
struct placement *placement_next_to_make(struct placement_table *places,
                                         struct sm_group_set *sm_groups);
void placement_made(struct placement_table *places, struct placement *place,
                    struct partition *partition);

/* Where the client belongs now, whether it has something to submit or not. PLACEMENT_HOLD: nowhere,
 * or its partition is not made yet. *to as in placement_enter. */
enum placement_answer placement_apply(struct placement_table *places, struct placement *place,
                                      struct partition **to);

/* A placement as status shows it. */
struct placement_view {
    uint32_t multiprocessors;      /* that the client has now */
    uint32_t max_multiprocessors;  /* that its limit allows */
    struct sm_group_set sm_groups; /* that it has now */
    uint64_t held_ns;    /* for how long it had work and no multiprocessor was free for it */
    uint64_t held_since; /* since when it waits now; 0: it does not */
};
void placement_view(struct placement_table *places, const struct placement *place, uint64_t now,
                    struct placement_view *view);

#endif
