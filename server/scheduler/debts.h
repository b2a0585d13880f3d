/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * debts: the debts of clients that left, kept for each account. A client can't get rid of a debt by
 * leaving and coming back as a new client.
 *
 * A debt is worked off by the clock, as if its client were still there. Until then every new client
 * of the account begins with the whole debt. A new client does not reduce the debt that is kept;
 * otherwise a user could send a client without work ahead to take it away. A client that came
 * before the other left inherits the debt too, if it came after the other had begun to spend what
 * it owes.
 *
 * The debts of an account as a whole stay with it while it has clients. When the last one leaves,
 * they are kept here for the account's next client.
 *
 * A client never inherits more device time than the one that left owed, and its inherited debt ends
 * no later. A client that leaves without having run passes nothing on: what it owed is kept
 * already.
 *
 * Functions without state, on the caller's memory. Any thread may call; one struct debts belongs to
 * one thread at a time.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_DEBTS_H
#define GPUSHARE_SERVER_SCHEDULER_DEBTS_H

#include "common/list.h"
#include "server/scheduler/plan.h"

struct scheduler_client;

/* Debts of this many accounts are kept. The debt that ends first makes room for another. */
#define DEBTS_ACCOUNTS 256

struct debt {
    uint64_t account;                 /* its number; 0: the entry is free */
    struct credit request, cap, duty; /* of single clients */
    struct credit account_request, account_cap, account_duty;
    /* Idle time that the account had beyond the others; worked off at its own rate. */
    struct credit extra;
    uint64_t turn_ns;    /* by which its turns ran over */
    uint64_t turn_until; /* when its next turn would have been over */
};

struct debts {
    struct debt of[DEBTS_ACCOUNTS];
    uint64_t changes; /* how often one was added */
};

/* Keeps the debts of a client that is about to leave, and is still in its lease group. clients:
 * the list of all clients, some of which may inherit. Does nothing where the account has no number.
 */
void debts_keep(struct debts *debts, const struct scheduler_client *client,
                const struct list *clients, uint64_t quantum_ns, uint64_t now);
/* The same of a client of which nothing else is known: what it owed, of debt->account, which is not
 * 0; spends: its device time since then is what it owes. */
void debts_keep_of(struct debts *debts, const struct debt *debt, uint64_t spends,
                   const struct list *clients, uint64_t now);
/* Takes all debts that an earlier scheduler kept; values out of range are cut to it. */
void debts_give(struct debts *debts, const struct debts *from, uint64_t now);
/* Sets the members about turns, of an account whose last turns ran over by so much, beside so many
 * clients with work. */
void debts_owe_turn(struct debt *debt, uint64_t overrun_ns, uint64_t others, uint64_t quantum_ns,
                    uint64_t now);
/* Gives a client the debts of its account. The client has just arrived, has had no device time, and
 * has its account, lease group and rates. */
void debts_owe(const struct debts *debts, struct scheduler_client *client, uint64_t now);

#endif
