/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * chains: queues of calls of which only the first counts, kept in one list of these first ones.
 *
 * A client may leave thousands of calls. They stand in a chain, in their order, and only the first
 * of a chain is looked at when the next call is chosen. So neither leaving a call nor choosing one
 * takes longer the more calls one client has.
 *
 * Pure. A thread that has the queue's lock may use it.
 */
#ifndef GPUSHARE_SERVER_WORKER_CALLS_CHAINS_H
#define GPUSHARE_SERVER_WORKER_CALLS_CHAINS_H

#include <stdbool.h>

#include "common/list.h"

/* A member of each call, which needs no value before the call joins a chain. */
struct chain_link {
    struct list_link among_firsts; /* of the first call of its chain */
    struct queue behind;           /* of the first call: the others */
    struct queue_link link;        /* of the others; free for its owner while in no chain */
};

/* Puts a call at the end of the chain whose first call this is; NULL: it begins a chain. */
static inline void chain_join(struct list *firsts, struct chain_link *first,
                              struct chain_link *call)
{
    if (first) {
        queue_append(&first->behind, &call->link);
        return;
    }
    call->behind = (struct queue){.first = NULL};
    list_append(firsts, &call->among_firsts);
}

/* Takes the first call of a chain out. Returns the one that is the first now, at the same place
 * among the firsts, or NULL. */
static inline struct chain_link *chain_leave(struct chain_link *first)
{
    struct chain_link *next = QUEUE_TAKE(&first->behind, struct chain_link, link);
    if (next) {
        next->behind = first->behind;
        list_insert_after(&first->among_firsts, &next->among_firsts);
    }
    list_remove(&first->among_firsts);
    return next;
}

/* Takes all calls of a chain out that are to go, and appends their `link` to the queue `gone`. A
 * LIST_FOR_EACH over the firsts may go on behind it. */
static inline void chain_sift(struct chain_link *first, bool (*goes)(const struct chain_link *call),
                              struct queue *gone)
{
    struct queue all = first->behind, stay = {.first = NULL};
    struct chain_link *call;
    queue_prepend(&all, &first->link);
    while ((call = QUEUE_TAKE(&all, struct chain_link, link)))
        queue_append(goes(call) ? gone : &stay, &call->link);
    call = QUEUE_TAKE(&stay, struct chain_link, link);
    if (call && call != first)
        list_insert_after(&first->among_firsts, &call->among_firsts);
    if (call != first)
        list_remove(&first->among_firsts);
    if (call)
        call->behind = stay;
}

#endif
