/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * account table: the accounts that clients count in, by the numbers that the supervisor chose.
 *
 * An account is there from the message that sets it, or from its first client, until no client
 * counts in it any more. One that was set before its first client came stays until that client has
 * come and left. server/scheduler/account.h says what an account is.
 *
 * The control thread makes and frees accounts. `time` is under the gate's lock, `threads` under
 * that of struct placement_table.
 */
#ifndef GPUSHARE_SERVER_WORKER_SHARING_ACCOUNT_TABLE_H
#define GPUSHARE_SERVER_WORKER_SHARING_ACCOUNT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol.h"
#include "server/scheduler/account.h"
#include "server/scheduler/scheduler.h"
#include "server/scheduler/sm/sm_allocation.h"

struct account_entry {
    struct scheduler_account time;
    struct sm_allocation_account threads;
    struct account_entry *next;
    uint32_t ledger_at; /* its row, if it still has that; the lock of struct usage_ledger */
    bool expected;      /* it was set, and none of its clients has come yet */
    char name[sizeof((struct proto_worker_account *)0)->name];
};

struct account_table {
    struct account_entry *first;
};

/* The accounts of one client. */
struct account_choice {
    struct scheduler_accounts time;        /* none, if the supervisor names none */
    struct sm_allocation_account *threads; /* the first one's; NULL then */
};

/* The account of this number, which is not 0; made if there is none. NULL: memory is short. */
struct account_entry *account_table_find(struct account_table *table, uint64_t number);

/* The accounts of these numbers, up to the first 0. Returns 0, or -ENOMEM; accounts without clients
 * may have been made then. */
int account_table_find_all(struct account_table *table, const uint64_t *numbers,
                           struct account_choice *choice);

/* The limit of threads that the accounts behind the first set for a client that counts in them, in
 * hundredths of a per cent: the lowest; PLAN_WHOLE: none. Control thread. */
uint32_t account_table_threads_limit(const struct scheduler_accounts *accounts);

/* Whether the account is one of these, behind the first. */
bool account_table_is_further(const struct scheduler_accounts *accounts,
                              const struct account_entry *entry);

/* Frees the accounts that no client counts in and that none is expected for. */
void account_table_tidy(struct account_table *table);

/* Frees all accounts; no client counts in one. */
void account_table_close(struct account_table *table);

#endif
