/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * usage_ledger: what clients and accounts have used, owe and are owed, in memory that outlives the
 * worker. The next worker goes on from it, so a worker's end clears no debt and no counter.
 *
 *   completer: usage_ledger_tick, every few milliseconds while somebody has work
 *   control:   usage_ledger_note before it tells the supervisor of a client's use, so that a number
 * which was shown never falls; usage_ledger_forget when a client has left next worker:
 * usage_ledger_open reads all of it; usage_ledger_give for each client that comes back;
 *              usage_ledger_settle when the first new client comes: those that did not come back
 * have left, and their accounts owe what they owed
 *
 * Use after the last note is lost with the worker. The supervisor keeps the memory, and
 * no client has it. The supervisor reads the counts at its head (common/ipc/usage_counts.h), also
 * of clients that have left. A row has two copies, which are written in turn: a worker may die at
 * any instruction. Where there are more clients than rows, the rest keeps those counts and begins
 * anew otherwise.
 *
 * The ledger's lock is taken under worker->clients_lock and above client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_USAGE_LEDGER_H
#define GPUSHARE_SERVER_WORKER_RUN_USAGE_LEDGER_H

#include <pthread.h>
#include <stdint.h>

#include "common/ipc/shm.h"

struct client;
struct ledger_left;
struct ledger_memory;
struct worker;

enum { LEDGER_ROWS = 4096 }; /* clients, and accounts */

struct usage_ledger {
    pthread_mutex_t lock;
    struct shm shm;
    struct ledger_memory *memory; /* NULL: none; then nothing is noted */
    struct ledger_left *left;     /* by the last worker, not taken yet; control thread */
    uint64_t debts_noted;         /* the changes of the scheduler's debts that are noted */
    uint64_t ticks;
    uint32_t clients[LEDGER_ROWS];  /* whose row it is; 0: nobody's */
    uint64_t accounts[LEDGER_ROWS]; /* likewise */
    uint64_t used[LEDGER_ROWS];     /* the tick at which an account's row was written last */
};

/* A ledger without memory. */
void usage_ledger_init(struct usage_ledger *ledger);
void usage_ledger_close(struct usage_ledger *ledger);

/* Takes over memory, with what the last worker left there: of one of another version, nothing. Owns
 * fd on success. Returns 0 or -errno. Control thread, once, before the first client. */
int usage_ledger_open(struct usage_ledger *ledger, struct worker *worker, int fd);

/* Gives a client that was attached again what it had, as far as that is known.
 * Control thread, before the other threads know the client. */
void usage_ledger_give(struct usage_ledger *ledger, struct worker *worker, struct client *client);
/* A new client comes: see above. Control thread. */
void usage_ledger_settle(struct usage_ledger *ledger, struct worker *worker);

/* Writes a client's row, and those of its accounts. Takes the client's lock. */
void usage_ledger_note(struct usage_ledger *ledger, struct worker *worker, struct client *client);
/* The same of all clients that have work, or had some at the last tick. Under
 * worker->clients_lock. */
void usage_ledger_tick(struct usage_ledger *ledger, struct worker *worker);
/* The client has left the gate: its debts are written, and its row is given back. Control
 * thread. */
void usage_ledger_forget(struct usage_ledger *ledger, struct worker *worker, struct client *client);

#endif
