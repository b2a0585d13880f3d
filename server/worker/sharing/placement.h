/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * placement: where each client runs now, and where it is to go.
 *
 * server/scheduler/share.h decides which SM groups a client may have; this tells it which
 * clients have work, finds the partitions that the decisions ask for, and tells the submitter, at a
 * client's next visit, to go on there. Work in flight stays where it is; later work is ordered
 * behind it by the streams' move.
 *
 * A client has no work once it had none, neither in its rings nor in flight, for
 * PLACEMENT_LINGER_NS: said at the first pause, SM groups would change hands all the time.
 *
 * A partition that is not in the pool is made by the control thread. Meanwhile the client
 * goes on where it is, unless others with work call some of those SM groups their own: then it
 * waits, as does a client for which there is no SM group at all.
 *
 * Any thread, but for what is said to be the control thread's; there is a lock, never held
 * across a call of the driver. A change of where clients may run is O(clients x SM groups);
 * placement_enter takes no lock where nothing changed.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_PLACEMENT_H
#define GPUSHARE_SERVER_WORKER_SHARING_PLACEMENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/scheduler/share.h"
#include "server/worker/sharing/partition.h"

#define PLACEMENT_LINGER_NS UINT64_C(5000000)
#define PLACEMENT_NEVER     UINT64_MAX

/* Of a client; zeroed before placement_add. Changed by the calls below alone, read under the lock.
 */
struct placement {
    struct share_client share;
    uint64_t held_since;    /* it has work and can go nowhere; 0: it is not held */
    uint64_t held_ns;       /* the same until it last could */
    struct share_set at;    /* where its next batch would go, had nothing changed */
    struct partition *next; /* it has it, and is to move there */
    bool settled;           /* at is where it belongs */
    bool working, idle, making;
    uint64_t idle_since;
    struct placement *idle_next, *idle_previous, *make_next;
    _Atomic uint32_t steady;  /* it has work, and is settled: nothing to do for placement_enter */
    _Atomic uint32_t borrows; /* it is on SM groups that another client calls its own */
};

/* Called under the lock; they must not call placement.h again. */
struct placement_events {
    /* Where the client may run is not what it was: it may go on, if it was held. */
    void (*changed)(void *context, struct placement *place);
    /* placements_to_make has something. */
    void (*to_make)(void *context);
    void *context;
};

struct placements {
    pthread_mutex_t lock;
    struct share share;
    struct partitions *partitions;
    struct placement_events notice;
    struct placement *idle_first, *idle_last; /* in the order in which they became so */
    struct placement *make_first, *make_last;
};

/* The partitions stay the caller's and must outlive it. 0; -EINVAL for a split that share.h does
 * not take. */
int placements_open(struct placements *places, struct partitions *partitions,
                    const struct placement_events *notice);
/* No place is left. Idempotent. */
void placements_close(struct placements *places);

/* Control thread: as share_add and share_update. Afterwards placements_to_make has what must be
 * made; a new client can run nowhere before that. */
uint32_t placement_add(struct placements *places, struct placement *place, uint32_t request,
                       uint32_t limit, struct error *why);
uint32_t placement_update(struct placements *places, struct placement *place, uint32_t request,
                          uint32_t limit, struct error *why);
/* Control thread: `changed` is called once more, for a client that the gate did not know when
 * placement_add called it. */
void placement_notify(struct placements *places, struct placement *place);
/* Control thread: the client goes; nothing of it is in flight. Idempotent. */
void placement_remove(struct placements *places, struct placement *place);

enum placement_answer {
    PLACEMENT_STAY, /* work may be submitted where it was last */
    PLACEMENT_MOVE, /* in *to, which the caller has now; it puts the old one */
    PLACEMENT_HOLD, /* not now; it is told when that may have changed */
};

/* The client has something to submit: where may that go? Its SM groups are taken back. */
enum placement_answer placement_enter(struct placements *places, struct placement *place,
                                      struct partition **to, uint64_t now);

/* It has nothing to submit and nothing in flight. Idempotent. */
void placement_idle(struct placements *places, struct placement *place, uint64_t now);

/* Those that have had no work for long enough lend their SM groups from now on. Returns when the
 * next one will, or PLACEMENT_NEVER. */
uint64_t placements_tick(struct placements *places, uint64_t now);

/*
 * Control thread: a client for whose SM groups a partition must be made, or NULL. Report the new
 * partition with placements_made, which releases it at once if it is no longer needed; or NULL if
 * it could not be made, which puts the client at the end of the queue again.
 */
struct placement *placements_to_make(struct placements *places, struct share_set *sm_groups);
void placements_made(struct placements *places, struct placement *place,
                     struct partition *partition);

/* Where the client belongs now, whether it has something to submit or not. PLACEMENT_HOLD: nowhere,
 * or the partition is not made yet. */
enum placement_answer placement_apply(struct placements *places, struct placement *place,
                                      struct partition **to);

/* As status shows it. */
struct placement_view {
    uint32_t multiprocessors;   /* that it has now */
    uint32_t most;              /* that its limit allows */
    struct share_set sm_groups; /* that it has now */
    uint64_t held_ns;           /* it had work, and no multiprocessor was free for it */
    uint64_t held_since;        /* the same has gone on since; 0: it does not */
};
void placement_view(struct placements *places, const struct placement *place, uint64_t now,
                    struct placement_view *view);

#endif
