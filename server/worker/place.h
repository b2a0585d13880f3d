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
 * No lock of its own and no driver call: everything is under its owner's lock, but that
 * places_to_make's partition is made without it. Each call that changes where clients may
 * run is O(clients x atoms); place_work and place_enter are O(1) where nothing changes.
 */
#ifndef GPUSHARE_SERVER_WORKER_PLACE_H
#define GPUSHARE_SERVER_WORKER_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/scheduler/share.h"
#include "server/worker/partition.h"

#define PLACE_LINGER_NS UINT64_C(5000000)
#define PLACE_NEVER     UINT64_MAX

/* Of a client; zeroed before place_add. To be read; changed by the calls below alone. */
struct place {
    struct share_client share;
    bool borrows;     /* it is on atoms that another client calls its own */
    uint64_t held_ns; /* it had work and could go nowhere, until it last could */
    /* private */
    struct share_set at;    /* where its next batch would go, had nothing changed */
    struct partition *next; /* it has it, and is to move there */
    bool settled;           /* at is where it belongs */
    bool working, quiet, named, making;
    uint64_t quiet_since;
    uint64_t held_since; /* 0: it is not held */
    struct place *quiet_next, *quiet_previous, *named_next, *make_next;
};

struct places {
    struct share share;
    struct partitions *partitions;
    struct place *quiet_first, *quiet_last; /* in the order in which they became so */
    struct place *named_first, *named_last;
    struct place *make_first, *make_last;
};

/* The partitions stay the caller's and must outlive it. 0; -EINVAL for a split that share.h does
 * not take. */
int places_open(struct places *places, struct partitions *partitions);

/* As share_add and share_update. Afterwards places_to_make has what the control thread must make;
 * a new client belongs nowhere before that. */
int place_add(struct places *places, struct place *place, uint32_t request, uint32_t limit,
              char *why, size_t why_size);
int place_update(struct places *places, struct place *place, uint32_t request, uint32_t limit,
                 char *why, size_t why_size);
/* The client goes; nothing of it is in flight. Idempotent. */
void place_remove(struct places *places, struct place *place);

/* It has something in its rings or in flight; it has neither. Idempotent. */
void place_work(struct places *places, struct place *place);
void place_quiet(struct places *places, struct place *place, uint64_t now);

/* Those that have had no work for long enough lend their atoms from now on. Returns when the next
 * one will, or PLACE_NEVER. */
uint64_t places_tick(struct places *places, uint64_t now);

enum place_answer {
    PLACE_STAY, /* work may be submitted where it was last */
    PLACE_MOVE, /* in *to, which the caller has now; who had the old one puts it */
    PLACE_HOLD, /* not now; places_named will have it when that changes */
};

/* Where may the client's next batch go? Call place_work first. */
enum place_answer place_enter(struct places *places, struct place *place, struct partition **to,
                              uint64_t now);

/* Each call names one for which that may have changed since; NULL: that was all. */
struct place *places_named(struct places *places);

/* Control thread: one for whose atoms a partition must be made, or NULL. It makes it without the
 * lock, then says so: the place has it from then on, or gives it back if things have changed
 * meanwhile. Who could not make it says NULL: the place is the last in the queue again. */
struct place *places_to_make(struct places *places, struct share_set *atoms);
void places_made(struct places *places, struct place *place, struct partition *partition);

/* Multiprocessors: that the client has now; that its limit allows. */
uint32_t place_has(const struct places *places, const struct place *place);
uint32_t place_most(const struct places *places, const struct place *place);

#endif
