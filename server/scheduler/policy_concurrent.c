/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/scheduler/policy.h"

#include "common/util.h"

static uint64_t duty_ready(const struct plan *plan, struct credit *duty, uint64_t now)
{
    if (duty->rate == PLAN_WHOLE)
        return now;
    plan_credit_settle(duty, now, plan_burst(plan, duty->rate));
    return plan_credit_ready(duty);
}

static void duty_charge(const struct plan *plan, struct credit *duty, uint64_t device_ns,
                        uint64_t now)
{
    plan_credit_settle(duty, now, plan_burst(plan, duty->rate));
    if (duty->rate != PLAN_WHOLE)
        plan_credit_charge(duty, device_ns);
}

uint64_t policy_concurrent_ready(const struct plan *plan, struct scheduler_client *client,
                                 uint64_t now)
{
    uint64_t ready = duty_ready(plan, &client->duty, now);
    for (uint32_t i = 0; i < client->accounts.count; i++)
        ready = max(ready, duty_ready(plan, &client->accounts.of[i]->duty, now));
    return ready;
}

void policy_concurrent_charge(const struct plan *plan, struct scheduler_client *client,
                              uint64_t device_ns, uint64_t now)
{
    plan_credit_settle(&client->duty, now, plan_burst(plan, client->duty.rate));
    /* Not in debt now: a debt that follows comes from device time since this moment. */
    if (client->duty.parts >= 0)
        client->spends = now;
    duty_charge(plan, &client->duty, device_ns, now);
    for (uint32_t i = 0; i < client->accounts.count; i++)
        duty_charge(plan, &client->accounts.of[i]->duty, device_ns, now);
}

uint32_t policy_concurrent_low_limit(const struct scheduler_schedule *schedule, uint64_t mean_ns)
{
    uint64_t short_ones = mean_ns ? schedule->low_ns / mean_ns : 0;
    uint64_t least = schedule->low_in_flight_limit, most = schedule->quiet_in_flight_limit;
    return (uint32_t)min(max(short_ones, least), most);
}

uint32_t policy_concurrent_urgent(struct scheduler *scheduler, uint64_t now)
{
    for (uint32_t word = 0; word < SCHEDULER_LEVELS / 64; word++)
        while (scheduler->about[word]) {
            uint32_t level = word * 64 + (uint32_t)__builtin_ctzll(scheduler->about[word]);
            if (scheduler->level_busy[level] ||
                now - scheduler->level_seen[level] < scheduler->schedule.linger_ns)
                return level;
            /* The level has been quiet for linger_ns. Without its bit the next look is short. */
            scheduler->about[word] &= scheduler->about[word] - 1;
        }
    return SCHEDULER_LEVELS;
}

static bool somebody_above(const struct scheduler *scheduler, uint32_t level)
{
    return scheduler->first_level < level;
}

uint32_t policy_concurrent_in_flight_limit(const struct scheduler *scheduler,
                                           const struct scheduler_client *client, uint32_t urgent)
{
    const struct scheduler_schedule *schedule = &scheduler->schedule;
    if (client->limits.level <= urgent) {
        uint32_t in_flight_limit = policy_in_flight_limit(schedule, client, false);
        bool quiet = somebody_above(scheduler, client->limits.level);
        return quiet ? min(in_flight_limit, schedule->quiet_in_flight_limit) : in_flight_limit;
    }
    uint32_t most = policy_concurrent_low_limit(schedule, client->mean_ns);
    uint32_t lower = scheduler->total_in_flight - scheduler->level_in_flight[urgent];
    return lower < most ? client->in_flight + most - lower : 0;
}

uint32_t scheduler_least_room(const struct scheduler *scheduler,
                              const struct scheduler_client *client, uint32_t lacking)
{
    const struct scheduler_schedule *schedule = &scheduler->schedule;
    bool quiet = somebody_above(scheduler, client->limits.level);
    uint32_t most = quiet ? schedule->quiet_in_flight_limit : schedule->in_flight_limit;
    uint64_t least = SCHEDULER_IN_FLIGHT_MIN * (uint64_t)max(client->rings, 1u);
    if (schedule->mode != PROTO_MODE_CONCURRENT || client->borrows)
        return 0;
    return (uint32_t)min((uint64_t)lacking, saturating_sub(most, saturating_sub(least, lacking)));
}

int32_t scheduler_stream_priority(uint32_t level, uint32_t levels, int32_t greatest, int32_t least)
{
    if (levels < 2 || least <= greatest)
        return greatest;
    if (level > levels - 1)
        level = levels - 1;
    return greatest + (int32_t)((uint64_t)level * (uint64_t)(least - greatest) / (levels - 1));
}
