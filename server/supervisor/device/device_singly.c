/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device_singly.h"

#include <string.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/device/device_schedule.h"

/* For which a device serves one client at a time, at least. */
#define SINGLY_MS 1000

static void set_singly(struct device *device, bool singly)
{
    if (singly == device->singly)
        return;
    device->singly_ns = device_singly_ns(device);
    device->singly_since = clock_now();
    device->singly = singly;
}

uint64_t device_singly_ns(const struct device *device)
{
    return device->singly_ns + (device->singly ? clock_now() - device->singly_since : 0);
}

void device_singly_begin(struct device *device)
{
    if (!device->singly)
        log_warning(MESSAGE_TEXT(log_singly), device->index);
    set_singly(device, true);
}

void device_singly_forget(struct device *device)
{
    if (device->singly)
        log_notice(MESSAGE_TEXT(log_singly_over), device->index);
    set_singly(device, false);
}

static void absolve_look(uv_timer_t *timer);

/* The worker may refuse, if clients have come meanwhile whose requests do not fit beside the
 * others'. Then the device goes on serving one at a time, and tries again. */
static void singly_answered(void *context, uint32_t index, uint32_t error, const char *text)
{
    struct device *device = context;
    if (!error) {
        log_notice(MESSAGE_TEXT(log_singly_over), index);
    } else if (device->state == DEVICE_READY) {
        log_warning(MESSAGE_TEXT(log_singly_goes_on), index, text);
        set_singly(device, true);
        uv_timer_start(&device->absolve, absolve_look, SINGLY_MS, 0);
    }
}

static void singly_end(struct device *device)
{
    set_singly(device, false);
    int result = device_schedule_tell(device, singly_answered, device);
    if (result < 0)
        singly_answered(device, device->index, error_from_errno(result), strerror(-result));
}

static void absolve_look(uv_timer_t *timer)
{
    struct device *device = timer->data;
    if (device->events.absolves(device->events.context, device))
        singly_end(device);
    else
        uv_timer_start(timer, absolve_look, SINGLY_MS, 0);
}

void device_singly_look_soon(struct device *device)
{
    if (device->singly && device->state == DEVICE_READY)
        uv_timer_start(&device->absolve, absolve_look, 0, 0);
}

void device_singly_look_later(struct device *device)
{
    if (device->singly)
        uv_timer_start(&device->absolve, absolve_look, SINGLY_MS, 0);
}
