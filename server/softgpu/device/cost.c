/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/device/cost.h"

#include "server/softgpu/device/device.h"

void cost_pay_enqueue(void)
{
    const uint64_t cost = device_settings()->enqueue_ns;

    if (cost > 0)
        engine_pass_time(engine_now() + cost);
}

static void pay_us(uint64_t us)
{
    if (us > 0)
        engine_pass_time(engine_now() + us * 1000);
}

void cost_pay_creation(void)
{
    pay_us(device_settings()->creation_us);
}

void cost_pay_load(void)
{
    pay_us(device_settings()->load_us);
}

void cost_pay_registration(uint64_t bytes)
{
    pay_us((uint64_t)((double)bytes * (double)device_settings()->register_us_per_mib / (1 << 20)));
}

uint64_t cost_arrival_ns(void)
{
    const struct softgpu_settings *settings = device_settings();
    uint64_t late = 0;

    if (settings->arrival_ns > 0) {
        uint32_t random = device_random();

        /* The 28 bits that are left spread over all of the time, however long it is. */
        late = random % 8 == 0 ? (random >> 3) * settings->arrival_ns >> 28 : 0;
    }
    return settings->launch_ns + late;
}

uint64_t cost_completion_ns(void)
{
    const struct softgpu_settings *settings = device_settings();
    uint32_t random;

    if (!settings->completion_tail)
        return settings->completion_ns;
    random = device_random() % 100000;
    if (random == 0)
        return 1000000;
    return random <= 100 ? 50000 : settings->completion_ns;
}
