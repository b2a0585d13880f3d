/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/client_accounts.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/limits/limits.h"
#include "common/printable.h"
#include "common/util.h"

/* A number is a kind and an id of 32 bits; of a cgroup it is a bit and a hash of its path. */
enum number_kind { NUMBER_USER = 1, NUMBER_GROUP = 2, NUMBER_UNSEEN_CGROUP = 3, NUMBER_CLIENT = 4 };
#define NUMBER_CGROUP (UINT64_C(1) << 62)

static uint64_t number_of(enum number_kind kind, uint32_t id)
{
    return (uint64_t)kind << 32 | id;
}

static uint64_t number_of_cgroup(const struct hash_key *key, const char *path, size_t length)
{
    uint64_t hash = hash_add(key, HASH_BEGIN, length);
    return NUMBER_CGROUP | hash_end(key, hash_add_bytes(key, hash, path, length));
}

static bool says_anything(const struct allowance *limits)
{
    static const enum resource shares[] = {RESOURCE_TIME, RESOURCE_THREADS};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++)
        if (allowance_has(limits, shares[i], ALLOWANCE_REQUEST) ||
            allowance_has(limits, shares[i], ALLOWANCE_LIMIT))
            return true;
    return false;
}

static uint32_t limit_of(const struct allowance_range *range)
{
    return (uint32_t)min(range->limit, ALLOWANCE_WHOLE);
}

static uint32_t request_of(const struct allowance_range *range, bool certain)
{
    if (!certain || range->request == ALLOWANCE_UNSET)
        return 0;
    return (uint32_t)min(range->request, (uint64_t)limit_of(range));
}

/* certain: the client is known to be meant. */
static struct proto_worker_account account_of(uint64_t number, const struct allowance *limits,
                                              bool certain)
{
    struct proto_worker_account account;
    memset(&account, 0, sizeof account);
    account.account = number;
    account.time_request = request_of(&limits->time, certain);
    account.time_limit = limit_of(&limits->time);
    account.threads_request = request_of(&limits->threads, certain);
    account.threads_limit = limit_of(&limits->threads);
    return account;
}

static uint64_t number_of_owner(const struct account_owner *owner, const struct hash_key *key)
{
    if (owner->kind == TOTAL_CGROUP && owner->cgroup)
        return number_of_cgroup(key, owner->cgroup, strlen(owner->cgroup));
    return number_of(owner->kind == TOTAL_USER    ? NUMBER_USER
                     : owner->kind == TOTAL_GROUP ? NUMBER_GROUP
                                                  : NUMBER_UNSEEN_CGROUP,
                     owner->id);
}

struct proto_worker_account client_accounts_owner(const struct total_overrides *overrides,
                                                  const struct config *config,
                                                  const struct account_owner *owner,
                                                  const struct hash_key *key)
{
    static const char *const words[] = {
        [TOTAL_USER] = "user", [TOTAL_GROUP] = "group", [TOTAL_CGROUP] = "cgroup"};
    const char *word = words[owner->kind];
    const bool known =
        owner->kind == TOTAL_CGROUP ? owner->cgroup != NULL : owner->id != CONFIG_ID_UNKNOWN;
    struct allowance limits;
    total_override_limits(overrides, config, owner, &limits);
    struct proto_worker_account account = account_of(number_of_owner(owner, key), &limits, known);
    if (!known)
        snprintf(account.name, sizeof account.name, "%ss that can't be seen", word);
    else if (owner->kind == TOTAL_CGROUP)
        snprintf(account.name, sizeof account.name, "%s %s", word, owner->cgroup);
    else
        snprintf(account.name, sizeof account.name, "%s %u", word, owner->id);
    printable_replace(account.name);
    return account;
}

/* ---- choosing ---- */

struct choice {
    struct client_accounts *to;
    const struct total_overrides *overrides;
    const struct config *config;
    const struct config_who *who;
    const struct hash_key *key;
    unsigned left_out;
};

static uint32_t rank_tightness(const struct proto_worker_account *account)
{
    return min(account->time_limit, account->threads_limit);
}

/* Takes a further account in the place of the loosest one, if that is looser. */
static void add_in_place(struct choice *choice, const struct proto_worker_account *account)
{
    struct client_accounts *to = choice->to;
    struct proto_worker_account *loosest = &to->of[1];
    for (uint32_t i = 2; i < to->count; i++)
        if (rank_tightness(&to->of[i]) > rank_tightness(loosest))
            loosest = &to->of[i];
    choice->left_out++;
    if (rank_tightness(account) < rank_tightness(loosest))
        *loosest = *account;
}

/* The first account is where the client is scheduled; of the others the limits alone matter. */
static void add_account(struct choice *choice, const struct proto_worker_account *account)
{
    struct client_accounts *to = choice->to;
    if (client_accounts_find(to, account->account) ||
        (to->count && rank_tightness(account) == ALLOWANCE_WHOLE))
        return;
    if (to->count == PROTO_CLIENT_ACCOUNTS)
        add_in_place(choice, account);
    else
        to->of[to->count++] = *account;
}

static void add_owner(struct choice *choice, const struct account_owner *owner)
{
    struct allowance limits;
    total_override_limits(choice->overrides, choice->config, owner, &limits);
    if (!says_anything(&limits))
        return;
    const struct proto_worker_account account =
        client_accounts_owner(choice->overrides, choice->config, owner, choice->key);
    add_account(choice, &account);
}

static void add_group(struct choice *choice, uint32_t gid)
{
    add_owner(choice, &(struct account_owner){.kind = TOTAL_GROUP, .id = gid});
}

/* The control group that so much of the client's path names; covered: 0 for none. */
static void add_cgroup(struct choice *choice, size_t covered)
{
    char path[PATH_MAX];
    if (!covered)
        return;
    snprintf(path, sizeof path, "%.*s", (int)covered, choice->who->cgroup);
    add_owner(choice, &(struct account_owner){.kind = TOTAL_CGROUP, .cgroup = path});
}

/* The longest part of the client's path, below so many bytes, for which shares were set; 0: there
 * is none. */
static size_t longest_set(const struct choice *choice, size_t below)
{
    size_t longest = 0;
    for (size_t i = 0; i < choice->overrides->count; i++) {
        const struct total_override *override = &choice->overrides->items[i];
        if (override->kind != TOTAL_CGROUP)
            continue;
        size_t covered = config_rules_pattern_covers(override->cgroup, choice->who->cgroup);
        if (covered < below && covered > longest)
            longest = covered;
    }
    return longest;
}

/* In the order of the entries; then those of which an administrator alone has said something, the
 * longest path first. */
static void add_cgroups(struct choice *choice)
{
    const struct config *config = choice->config;
    const char *path = choice->who->identified ? choice->who->cgroup : NULL;
    if (!path) {
        add_owner(choice, &(struct account_owner){.kind = TOTAL_CGROUP});
        return;
    }
    for (size_t i = 0; config && i < config->cgroup_count; i++)
        if (says_anything(&config->cgroups[i].limits))
            add_cgroup(choice, config_rules_cgroup_covers(&config->cgroups[i], path));
    for (size_t at = longest_set(choice, SIZE_MAX); at; at = longest_set(choice, at))
        add_cgroup(choice, at);
}

static bool is_in_entries(const struct config *config, uint32_t gid)
{
    for (size_t i = 0; config && i < config->group_count; i++)
        if (config_rules_total_fits(&config->groups[i], gid) &&
            says_anything(&config->groups[i].limits))
            return true;
    return false;
}

/* In the order of the entries; then those of which an administrator alone has said something. */
static void add_groups(struct choice *choice)
{
    const struct config *config = choice->config;
    const struct config_who *who = choice->who;
    const uint32_t unknown = CONFIG_ID_UNKNOWN;
    const bool known = who->identified && who->gids;
    const uint32_t *gids = known ? who->gids : &unknown;
    const size_t count = known ? who->gid_count : 1;
    for (size_t i = 0; config && i < config->group_count; i++)
        for (size_t k = 0; k < count; k++)
            if (config_rules_total_fits(&config->groups[i], gids[k]) &&
                says_anything(&config->groups[i].limits))
                add_group(choice, gids[k]);
    for (size_t k = 0; k < count; k++)
        if (!is_in_entries(config, gids[k]))
            add_group(choice, gids[k]);
}

unsigned client_accounts_choose(struct client_accounts *accounts,
                                const struct total_overrides *overrides,
                                const struct config *config, const struct config_who *who,
                                uint32_t client, const struct hash_key *key)
{
    struct choice choice = {
        .to = accounts, .overrides = overrides, .config = config, .who = who, .key = key};
    const struct account_owner user = {.kind = TOTAL_USER,
                                       .id = who->identified ? who->uid : CONFIG_ID_UNKNOWN};
    memset(accounts, 0, sizeof *accounts);
    if (config && config_rules_per_client(config, who)) {
        accounts->of[0] = account_of(number_of(NUMBER_CLIENT, client), &allowance_none, true);
        snprintf(accounts->of[0].name, sizeof accounts->of[0].name, "client %u", client);
        accounts->count = 1;
    }
    add_cgroups(&choice);
    add_owner(&choice, &user);
    add_groups(&choice);
    if (!accounts->count)
        accounts->of[accounts->count++] = client_accounts_owner(overrides, config, &user, key);
    return choice.left_out;
}

/* ---- asking ---- */

struct proto_worker_account client_accounts_unbound(const struct proto_worker_account *account)
{
    struct proto_worker_account unbound = *account;
    unbound.time_request = unbound.threads_request = 0;
    unbound.time_limit = unbound.threads_limit = ALLOWANCE_WHOLE;
    return unbound;
}

const struct proto_worker_account *client_accounts_find(const struct client_accounts *accounts,
                                                        uint64_t number)
{
    for (uint32_t i = 0; i < accounts->count; i++)
        if (accounts->of[i].account == number)
            return &accounts->of[i];
    return NULL;
}

bool client_accounts_same(const struct client_accounts *a, const struct client_accounts *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = a->of[i].account == b->of[i].account;
    return same;
}

void client_accounts_numbers(const struct client_accounts *accounts,
                             uint64_t numbers[PROTO_CLIENT_ACCOUNTS])
{
    for (uint32_t i = 0; i < PROTO_CLIENT_ACCOUNTS; i++)
        numbers[i] = i < accounts->count ? accounts->of[i].account : 0;
}
