/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/slowdown.h"

#include "common/util.h"

/* Multiprocessors that the grid is spread over. */
static unsigned spread_of(const struct slowdown *slowdown)
{
    return (unsigned)min(slowdown->resident, (uint64_t)slowdown->width);
}

void slowdown_begin(struct slowdown *slowdown, const struct sm_set *sms)
{
    const uint32_t most = (uint32_t)device_settings()->variation_percent * 10;

    *slowdown = (struct slowdown){.length_permille = 1000, .width = device_sm_set_count(sms)};
    if (most > 0)
        slowdown->length_permille = 1000 - most + device_random() % (2 * most + 1);
}

void slowdown_block_came(struct slowdown *slowdown, struct device *device)
{
    device->spread -= spread_of(slowdown);
    slowdown->resident++;
    device->spread += spread_of(slowdown);
}

void slowdown_block_went(struct slowdown *slowdown, struct device *device)
{
    device->spread -= spread_of(slowdown);
    slowdown->resident--;
    device->spread += spread_of(slowdown);
}

uint32_t slowdown_permille(const struct slowdown *slowdown, const struct device *device)
{
    const uint64_t all = device_settings()->sms;
    uint64_t others = min((uint64_t)(device->spread - spread_of(slowdown)), all);
    uint64_t contention = device_settings()->contention_percent * others * 10 / all;

    return (uint32_t)(slowdown->length_permille * (1000 + contention) / 1000);
}
