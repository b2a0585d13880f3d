/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * debts: what clients that left still owe, kept by owner, so that nobody gets rid of a
 * debt by leaving and coming back as a new client.
 *
 * A debt is worked off by the clock as if its client were there. Until then every new client
 * of the owner begins with it: it takes nothing off the debt, or a client that wants nothing could
 * be sent ahead to take it away. So does who came before the other left, but after it had begun to
 * spend what it owes. A new client never owes more device time than the one that left, and is free
 * of it no later.
 *
 * Pure functions on the caller's memory; any thread, one at a time for an object.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_DEBTS_H
#define GPUSHARE_SERVER_SCHEDULER_DEBTS_H

#include "common/list.h"
#include "server/scheduler/plan.h"

struct scheduler_client;

/* Of so many owners; the one that is free of debt first makes room for another. */
#define DEBTS_OWNERS 256

struct debt {
    uint32_t owner; /* 0: nobody */
    struct credit request, cap, duty;
    struct credit extra; /* of idle time, worked off at the rate of the clock */
    uint64_t turn_ns;    /* that its turns ran over, */
    uint64_t turn_until; /* until its next one would have been over */
};

struct debts {
    struct debt of[DEBTS_OWNERS];
};

/* The client, which is still in its lease group, is about to leave. first: of all clients. Without
 * an owner: nothing. */
void debts_keep(struct debts *debts, const struct scheduler_client *client,
                const struct list *clients, uint64_t quantum_ns, uint64_t now);
/* The client has just arrived, has had nothing, and has its owner, lease group and rates. */
void debts_owe(const struct debts *debts, struct scheduler_client *client, uint64_t now);

#endif
