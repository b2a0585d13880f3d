/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/admission.h"

#include <errno.h>

#include "common/limits/allowance.h"
#include "common/util.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/config/config.h"
#include "server/supervisor/config/rules.h"

/* The amounts of the whole device; they have no source. */
static void limit_to(struct allowance *to, enum resource resource, uint64_t most)
{
    struct allowance by = allowance_none;
    by.of[resource].limit = most;
    allowance_tighten(to, &by);
}

/* Memory beyond the window has no addresses; an amount that the worker enforces has no end. */
static uint64_t most_of(enum resource resource, uint64_t window)
{
    const struct allowance_resource *row = allowance_resource(resource);
    if (row->unit == DIALECT_SHARE)
        return ALLOWANCE_WHOLE;
    return row->by_worker ? ALLOWANCE_ENDLESS : window;
}

/* The amount of a resource that all clients together may have; ALLOWANCE_UNSET: it has no account,
 * or none that is known here. */
static uint64_t whole_of(const struct admission *admission, enum resource resource,
                         uint64_t device_memory)
{
    if (allowance_resource(resource)->of_device)
        return device_memory;
    return resource == RESOURCE_HOST_MEMORY && admission->host_total ? admission->host_total
                                                                     : ALLOWANCE_UNSET;
}

/* A client's own request for more than there is stays whole: it is then refused with the sum where
 * the memory is guaranteed, and not lowered without a word. */
static bool never_fits(const struct allowance *to, enum resource resource, uint64_t whole)
{
    return whole != ALLOWANCE_UNSET && to->of[resource].request != ALLOWANCE_UNSET &&
           to->of[resource].request > whole &&
           allowance_source(to, resource, ALLOWANCE_REQUEST).origin == ALLOWANCE_BY_CLIENT;
}

/* A request that never fits is none that could be lowered: it is refused. */
static bool is_own(const struct admission *admission, enum resource resource, bool never)
{
    return !never && !allowance_has(&admission->limits, resource, ALLOWANCE_REQUEST);
}

struct grant admission_grant(const struct admission *admission,
                             const struct proto_device_info *device, const struct allowance *wish)
{
    struct allowance to = admission->limits;
    struct grant grant = {.window_bytes = 0};
    uint64_t most =
        admission->max_window ? admission->max_window : address_plan_round(device->memory);
    allowance_tighten(&to, wish);
    QUOTA_FOR_EACH (i)
        if (allowance_resource(i)->of_device) {
            allowance_resolve(&to, i, device->memory);
            limit_to(&to, i, device->memory);
        }
    uint64_t window = address_plan_size(to.memory.limit, to.host_memory.limit, most);
    for (enum resource i = 0; i < RESOURCES; i++) {
        uint64_t request = to.of[i].request == ALLOWANCE_UNSET ? 0 : to.of[i].request;
        const bool whole = never_fits(&to, i, whole_of(admission, i, device->memory));
        limit_to(&to, i, most_of(i, window));
        to.of[i].request = whole ? request : min(request, to.of[i].limit);
        grant.own[i] = is_own(admission, i, whole) ? to.of[i].request : 0;
    }
    for (enum scalar i = 0; i < SCALARS; i++)
        if (to.scalar[i] == ALLOWANCE_UNSET)
            to.scalar[i] = 0;
    grant.allowance = to;
    grant.window_bytes = window;
    return grant;
}

void admission_put_newcomers(struct grant *grant, const struct allowance *newcomers,
                             uint64_t device_memory)
{
    struct allowance by = *newcomers;
    QUOTA_FOR_EACH (i)
        if (allowance_resource(i)->of_device)
            allowance_resolve(&by, i, device_memory);
    allowance_tighten(&grant->allowance, &by);
    for (enum resource i = 0; i < RESOURCES; i++) {
        struct allowance_range *range = &grant->allowance.of[i];
        if (by.of[i].limit != ALLOWANCE_UNSET && range->request > range->limit) {
            range->request = range->limit;
            grant->own[i] = min(grant->own[i], range->limit);
        }
    }
}

int admission_choose(const struct admission *admission, const struct config *config,
                     uint32_t device_index, const struct config_who *who,
                     const struct proto_device_info *device, const struct allowance *wish,
                     struct grant *grant)
{
    struct admission tightened = *admission;
    struct allowance limits = allowance_none;
    if (!config && *who->profile)
        return -ENOENT;
    int result = config ? config_rules_choose(config, device_index, who, &limits) : 0;
    if (result < 0)
        return result;
    allowance_tighten(&tightened.limits, &limits);
    *grant = admission_grant(&tightened, device, wish);
    return 0;
}
