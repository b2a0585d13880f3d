/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_accounts: the accounts in which a client counts, each with its share of time and threads.
 *
 * A client is scheduled in the first of them: that of the first entry of `cgroups` that fits it and
 * says something of time or threads, else of `users`, else of `groups`, else its user's, of which
 * nothing is said.
 *
 * The others are those of all further entries that fit; their limits hold for it
 * too. Shares that an administrator has set count as entries do. Where a rule says `per: client`,
 * the client is scheduled in an account of its own.
 *
 * A client that can't be identified could be anybody, so all entries fit it; their limits hold, and
 * it gets no part of their requests. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_CLIENT_ACCOUNTS_H
#define GPUSHARE_SERVER_SUPERVISOR_ACCOUNT_CLIENT_ACCOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/hash.h"
#include "protocol.h"
#include "server/supervisor/account/total_override.h"
#include "server/supervisor/config/rules.h"

/* count: 0 before the client is attached, else 1 at least. Numbers are unique among kinds of
 * accounts: the same user, group or cgroup has the same number each time. Bytes between and behind
 * the values are 0, so that two shares are compared as memory. */
struct client_accounts {
    uint32_t count;
    struct proto_worker_account of[PROTO_CLIENT_ACCOUNTS];
};

/*
 * Chooses them for a client. config: NULL without one. key: for cgroups' numbers, always the same.
 * Returns how many further accounts were left out, because a client has room for
 * PROTO_CLIENT_ACCOUNTS alone; those with the lowest limits are kept.
 */
unsigned client_accounts_choose(struct client_accounts *accounts,
                                const struct total_overrides *overrides,
                                const struct config *config, const struct config_who *who,
                                uint32_t client, const struct hash_key *key);

/* The account of a user, a group or a control group as a whole, of which nothing may be said. */
struct proto_worker_account client_accounts_owner(const struct total_overrides *overrides,
                                                  const struct config *config,
                                                  const struct account_owner *owner,
                                                  const struct hash_key *key);

/* The same account, of which nothing is said. */
struct proto_worker_account client_accounts_unbound(const struct proto_worker_account *account);

/* The account of this number; NULL: it is none of them. */
const struct proto_worker_account *client_accounts_find(const struct client_accounts *accounts,
                                                        uint64_t number);

/* Whether the client counts in the same accounts, in the same order; their shares may differ. */
bool client_accounts_same(const struct client_accounts *a, const struct client_accounts *b);

/* Writes their numbers as messages carry them: 0 behind the last. */
void client_accounts_numbers(const struct client_accounts *accounts,
                             uint64_t numbers[PROTO_CLIENT_ACCOUNTS]);

#endif
