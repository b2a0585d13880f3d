/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/life/owners.h"

#include <stdio.h>
#include <string.h>

#include "server/supervisor/config/rules.h"
#include "server/supervisor/session/life/attach.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session_client.h"

/* NULL: there is no room. */
static struct proto_owner *new_owner(struct proto_owners *body, const char *name)
{
    if (body->count == PROTO_OWNERS_MAX) {
        body->more = 1;
        return NULL;
    }
    struct proto_owner *owner = &body->owners[body->count++];
    *owner = (struct proto_owner){.time_limit = ALLOWANCE_WHOLE,
                                  .threads_limit = ALLOWANCE_WHOLE,
                                  .memory_limit = PROTO_UNSET,
                                  .host_memory_limit = PROTO_UNSET};
    snprintf(owner->name, sizeof owner->name, "%s", name);
    return owner;
}

/* The owner of a total, who may have an account and another total, each of which has that name.
 * Names of accounts are cut, and then two may be alike: a total whose name is cut has a row of its
 * own. */
static struct proto_owner *find_owner(struct proto_owners *body, const char *name)
{
    for (uint32_t i = 0; i < body->count; i++)
        if (!strcmp(body->owners[i].name, name))
            return &body->owners[i];
    return new_owner(body, name);
}

static void add_account(struct proto_owners *body, const struct proto_worker_account *account,
                        bool scheduled)
{
    struct proto_owner *owner = new_owner(body, account->name);
    if (!owner)
        return;
    owner->time_request = account->time_request;
    owner->time_limit = account->time_limit;
    owner->threads_request = account->threads_request;
    owner->threads_limit = account->threads_limit;
    owner->scheduled = scheduled;
}

static void add_total(struct proto_owners *body, const struct total *total)
{
    const struct account_owner of = {.kind = total->kind, .id = total->id};
    char name[ACCOUNT_OWNER_TEXT];
    struct proto_owner *owner = find_owner(body, account_owner_text(&of, name));
    if (!owner)
        return;
    if (total->resource == RESOURCE_MEMORY) {
        owner->memory_limit = total->quota.limit;
        owner->memory_used = total->quota.used;
    } else {
        owner->host_memory_limit = total->quota.limit;
        owner->host_memory_used = total->quota.used;
    }
}

void session_owners_query(struct session *session, struct channel_message *message)
{
    const struct config *config = session->server->config;
    struct proto_owners body = {0};
    if (config) {
        const struct config_who who = session_attach_who(session);
        config_rules_profiles(config, &who, body.profiles, sizeof body.profiles);
    }
    for (uint32_t i = 0; i < session->counts_in.count; i++)
        add_account(&body, &session->counts_in.of[i], i == 0);
    QUOTA_FOR_EACH (i)
        for (const struct total_member *of = session->totals.of[i]; of; of = of->next)
            add_total(&body, of->total);
    session_answer(session, PROTO_OWNERS, message->header.serial, &body, NULL, 0);
}
