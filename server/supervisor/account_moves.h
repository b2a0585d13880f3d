/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * account_moves: what workers are told when another configuration, or a share that an administrator
 * sets, changes the accounts of running clients: accounts get other shares, and clients count in
 * other accounts. Each is a move of a transaction, by its index. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_MOVES_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_MOVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/supervisor/account/change_done.h"
#include "server/supervisor/account/client_accounts.h"

struct config;
struct supervisor;

struct account_move {
    uint32_t client; /* that counts in other accounts; 0: an account of this device changes */
    uint32_t device; /* index */
    /* The client's accounts stay, and a limit of threads of theirs changes: the worker is asked how
     * many multiprocessors the client has then. The accounts have to have their shares by then. */
    bool told;
    struct proto_worker_account share, share_before;
    struct client_accounts accounts, accounts_before; /* of the client */
};

struct account_moves {
    struct supervisor *supervisor;
    struct account_move *of;
    size_t count, room;
};

/* Finds the moves to this configuration (NULL: none) with these overrides. Returns 0, or -ENOMEM.
 * The caller frees the moves in either case. */
int account_moves_plan(struct account_moves *moves, struct supervisor *supervisor,
                       const struct config *config, const struct total_overrides *overrides);
void account_moves_free(struct account_moves *moves);

/* Whether a move only lowers requests of its account, so that it makes room for others. */
bool account_moves_gives(const struct account_move *move);

/* Makes a move or takes it back: 1, 0 or -errno, as the work of a transaction returns; done is told
 * the move's index. */
int account_moves_make(const struct account_moves *moves, uint32_t index, bool back,
                       change_done *done, void *context);

/* The clients count as the configuration and the overrides in force say. */
void account_moves_commit(struct supervisor *supervisor);

#endif
