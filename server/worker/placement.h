/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * place: where each client runs now, and where it is to go.
 *
 * server/scheduler/share.h decides which atoms a client may have; this tells it who has
 * work and who has none, finds the partitions that the decisions ask for, and says to the
 * submitter, at a client's next visit, to go on there. What is in flight stays where it
 * is; what follows is ordered behind it by the streams' move.
 *
 * A client has no work once it had none, neither in its rings nor in flight, for
 * PLACE_LINGER_NS: said at the first pause, atoms would change hands all the time.
 *
 * A partition that is not in the pool is made by the control thread. Meanwhile the client
 * goes on where it is, unless others with work call some of those atoms their own: then it
 * waits, as does a client for which there is no atom at all.
 *
 * Any thread, but for what is said to be the control thread's; there is a lock, never held
 * across a call of the driver. What changes where clients may run is O(clients x atoms);
 * place_enter takes no lock where nothing changed.
 */
#ifndef GPUSHARE_SERVER_WORKER_PLACEMENT_H
#define GPUSHARE_SERVER_WORKER_PLACEMENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/scheduler/share.h"
#include "server/worker/partition.h"

#define PLACE_LINGER_NS UINT64_C(5000000)
#define PLACE_NEVER     UINT64_MAX

/* Of a client; zeroed before place_add. Changed by the calls below alone, read under the lock. */
struct place {
    struct share_client share;
    uint64_t held_since;    /* it has work and can go nowhere; 0: it is not held */
    uint64_t held_ns;       /* the same until it last could */
    struct share_set at;    /* where its next batch would go, had nothing changed */
    struct partition *next; /* it has it, and is to move there */
    bool settled;           /* at is where it belongs */
    bool working, quiet, making;
    uint64_t quiet_since;
    struct place *quiet_next, *quiet_previous, *make_next;
    /* Atomic: */
    uint32_t steady;  /* it has work, and is settled: nothing to do for place_enter */
    uint32_t borrows; /* it is on atoms that another client calls its own */
};

/* Called under the lock; they must not call back. */
struct places_notice {
    /* Where the client may run is not what it was: it may go on, if it was held. */
    void (*changed)(void *context, struct place *place);
    /* places_to_make has something. */
    void (*to_make)(void *context);
    void *context;
};

struct places {
    pthread_mutex_t lock;
    struct share share;
    struct partitions *partitions;
    struct places_notice notice;
    struct place *quiet_first, *quiet_last; /* in the order in which they became so */
    struct place *make_first, *make_last;
};

/* The partitions stay the caller's and must outlive it. 0; -EINVAL for a split that share.h does
 * not take. */
int places_open(struct places *places, struct partitions *partitions,
                const struct places_notice *notice);
/* No place is left. Idempotent. */
void places_close(struct places *places);

/* Control thread: as share_add and share_update. Afterwards places_to_make has what must be made;
 * a new client can run nowhere before that. */
int place_add(struct places *places, struct place *place, uint32_t request, uint32_t limit,
              char *why, size_t why_size);
int place_update(struct places *places, struct place *place, uint32_t request, uint32_t limit,
                 char *why, size_t why_size);
/* Control thread: `changed` is called once more, for who could not heed it since place_add. */
void place_tell(struct places *places, struct place *place);
/* Control thread: the client goes; nothing of it is in flight. Idempotent. */
void place_remove(struct places *places, struct place *place);

enum place_answer {
    PLACE_STAY, /* work may be submitted where it was last */
    PLACE_MOVE, /* in *to, which the caller has now; who had the old one puts it */
    PLACE_HOLD, /* not now; it is told when that may have changed */
};

/* The client has something to submit: where may that go? Its atoms are taken back. */
enum place_answer place_enter(struct places *places, struct place *place, struct partition **to,
                              uint64_t now);

/* It has nothing to submit and nothing in flight. Idempotent. */
void place_quiet(struct places *places, struct place *place, uint64_t now);

/* Those that have had no work for long enough lend their atoms from now on. Returns when the next
 * one will, or PLACE_NEVER. */
uint64_t places_tick(struct places *places, uint64_t now);

/*
 * Control thread: one for whose atoms a partition must be made, or NULL. Who made it says so: the
 * place has it from then on, or gives it back if things have changed meanwhile. Who could not
 * says NULL: the place is the last in the queue again.
 */
struct place *places_to_make(struct places *places, struct share_set *atoms);
void places_made(struct places *places, struct place *place, struct partition *partition);

/* Where the client belongs now, whether it has something to submit or not. PLACE_HOLD: nowhere, or
 * the partition is not made yet. */
enum place_answer place_settle(struct places *places, struct place *place, struct partition **to);

/* What status shows. */
struct place_view {
    uint32_t multiprocessors; /* that it has now */
    uint32_t most;            /* that its limit allows */
    struct share_set atoms;   /* that it has now */
    uint64_t held_ns;         /* it had work, and no multiprocessor was free for it */
    uint64_t held_since;      /* the same has gone on since; 0: it does not */
};
void place_look(struct places *places, const struct place *place, uint64_t now,
                struct place_view *view);

#endif
