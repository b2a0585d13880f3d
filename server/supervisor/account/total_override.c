/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/total_override.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/printable.h"
#include "server/supervisor/config/rules.h"

static bool is_known(const struct account_owner *owner)
{
    return owner->kind == TOTAL_CGROUP ? owner->cgroup != NULL : owner->id != CONFIG_ID_UNKNOWN;
}

const char *account_owner_text(const struct account_owner *owner, char text[ACCOUNT_OWNER_TEXT])
{
    if (owner->kind == TOTAL_CGROUP)
        snprintf(text, ACCOUNT_OWNER_TEXT, "cgroup %s", owner->cgroup);
    else if (!is_known(owner))
        snprintf(text, ACCOUNT_OWNER_TEXT, "%ss that can't be seen",
                 owner->kind == TOTAL_USER ? "user" : "group");
    else
        snprintf(text, ACCOUNT_OWNER_TEXT, "%s %u", owner->kind == TOTAL_USER ? "user" : "group",
                 owner->id);
    printable_replace(text);
    return text;
}

static struct account_owner owner_of(const struct total_override *override)
{
    return (struct account_owner){.kind = override->kind,
                                  .id = override->id,
                                  .cgroup =
                                      override->kind == TOTAL_CGROUP ? override->cgroup : NULL};
}

static bool is_of(const struct total_override *override, const struct account_owner *owner)
{
    if (override->kind != owner->kind)
        return false;
    return owner->kind == TOTAL_CGROUP ? strcmp(override->cgroup, owner->cgroup) == 0
                                       : override->id == owner->id;
}

static void file_says(const struct config *config, const struct account_owner *owner,
                      struct allowance *limits)
{
    *limits = allowance_none;
    if (config && owner->kind == TOTAL_USER)
        config_rules_total(config->users, config->user_count, owner->id, limits);
    else if (config && owner->kind == TOTAL_GROUP)
        config_rules_total(config->groups, config->group_count, owner->id, limits);
    else if (config)
        config_rules_cgroup(config, owner->cgroup, limits);
}

static void overrides_copy(struct allowance *to, const struct allowance *from, unsigned parts)
{
    for (enum resource i = 0; i < RESOURCES; i++)
        if (parts & RESOURCE_BIT(i)) {
            to->of[i] = from->of[i];
            to->part[i] = from->part[i];
            to->of_from[i] = from->of_from[i];
            to->part_from[i] = from->part_from[i];
        }
}

/* The parts that have a limit or a request. */
static unsigned parts_set(const struct allowance *limits)
{
    unsigned parts = 0;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (allowance_has(limits, i, ALLOWANCE_LIMIT) ||
            allowance_has(limits, i, ALLOWANCE_REQUEST))
            parts |= RESOURCE_BIT(i);
    return parts;
}

static bool range_equal(const struct allowance_range *a, const struct allowance_range *b)
{
    return a->request == b->request && a->limit == b->limit;
}

/* The parts of an override about which the configuration still says what it said at that time. */
static unsigned override_in_force(const struct total_override *override,
                                  const struct allowance *says)
{
    const struct allowance *said = &override->said;
    unsigned same = 0;
    for (enum resource i = 0; i < RESOURCES; i++)
        if (range_equal(&said->of[i], &says->of[i]) && range_equal(&said->part[i], &says->part[i]))
            same |= RESOURCE_BIT(i);
    return override->parts & same;
}

static struct total_override *override_find(const struct total_overrides *overrides,
                                            const struct account_owner *owner)
{
    for (size_t i = 0; i < overrides->count; i++)
        if (is_of(&overrides->items[i], owner))
            return &overrides->items[i];
    return NULL;
}

static unsigned tighten_by_all(const struct total_overrides *overrides, const struct config *config,
                               enum total_kind kind, struct allowance *limits)
{
    unsigned parts = 0;
    for (size_t i = 0; i < overrides->count; i++) {
        const struct total_override *override = &overrides->items[i];
        struct allowance says, set = allowance_none;
        const struct account_owner owner = owner_of(override);
        if (override->kind != kind)
            continue;
        file_says(config, &owner, &says);
        overrides_copy(&set, &override->limits, override_in_force(override, &says));
        allowance_tighten(limits, &set);
        parts |= override_in_force(override, &says);
    }
    return parts;
}

unsigned total_override_limits(const struct total_overrides *overrides, const struct config *config,
                               const struct account_owner *owner, struct allowance *limits)
{
    file_says(config, owner, limits);
    if (!is_known(owner))
        return tighten_by_all(overrides, config, owner->kind, limits);
    const struct total_override *override = override_find(overrides, owner);
    unsigned parts = override ? override_in_force(override, limits) : 0;
    if (parts)
        overrides_copy(limits, &override->limits, parts);
    return parts;
}

int total_override_with(struct total_overrides *to, const struct total_overrides *of,
                        const struct config *config, const struct account_owner *owner,
                        unsigned parts, const struct allowance *limits)
{
    struct allowance says;
    *to = (struct total_overrides){.items = calloc(of->count + 1, sizeof *to->items)};
    if (!to->items)
        return -ENOMEM;
    if (of->count)
        memcpy(to->items, of->items, of->count * sizeof *of->items);
    to->count = of->count;
    struct total_override *override = override_find(to, owner);
    if (!override) {
        override = &to->items[to->count++];
        *override = (struct total_override){
            .kind = owner->kind, .id = owner->id, .limits = allowance_none, .said = allowance_none};
        if (owner->kind == TOTAL_CGROUP)
            snprintf(override->cgroup, sizeof override->cgroup, "%s", owner->cgroup);
    }
    file_says(config, owner, &says);
    overrides_copy(&override->limits, limits, parts);
    overrides_copy(&override->said, &says, parts);
    override->parts = parts_set(&override->limits);
    if (!override->parts)
        *override = to->items[--to->count];
    if (to->count <= TOTAL_OVERRIDES_MAX)
        return 0;
    total_override_free(to);
    return -ENOSPC;
}

void total_override_forget(struct total_overrides *overrides, const struct config *config,
                           total_override_forgotten *forgotten, void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < overrides->count; i++) {
        struct total_override override = overrides->items[i];
        const struct account_owner owner = owner_of(&override);
        struct allowance says;
        file_says(config, &owner, &says);
        unsigned still = override_in_force(&override, &says);
        if (still != override.parts && forgotten)
            forgotten(context, &owner, override.parts & ~still);
        overrides_copy(&override.limits, &allowance_none, ~still);
        override.parts = still;
        if (still)
            overrides->items[kept++] = override;
    }
    overrides->count = kept;
}

void total_override_free(struct total_overrides *overrides)
{
    free(overrides->items);
    *overrides = (struct total_overrides){0};
}
