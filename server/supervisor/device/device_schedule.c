/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device_schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "server/supervisor/device/device.h"
#include "server/supervisor/device/device_request.h"

/* The shortest turns: each client that is served alone comes soon. */
#define SINGLY_TURN_NS (5 * UNITS_MS)

struct scheduling {
    struct device *device;
    struct schedule schedule;
    change_done *done; /* NULL: the first schedule of a new worker */
    void *context;
    char by[64];
};

static void schedule_take(struct device *device, const struct schedule *schedule, const char *by)
{
    char text[SCHEDULE_TEXT];
    unsigned parts = schedule_differs(&device->schedule, schedule);
    if (!parts)
        return;
    device->schedule = *schedule;
    if (parts & ~(unsigned)SCHEDULE_PARTITION_SIZES)
        log_notice(MESSAGE_TEXT(log_schedule_set), device->index, by,
                   schedule_format(schedule, text, sizeof text));
    if (parts & SCHEDULE_WATCHDOG)
        watchdog_follow(&device->watchdog);
    if (parts & SCHEDULE_STANDBY)
        standby_follow(&device->standby);
}

/* The worker shares the device by the defaults that it was built with. */
static void schedule_first_refused(struct device *device, const char *text)
{
    char kept[SCHEDULE_TEXT];
    struct schedule asked = device->schedule, built = schedule_default();
    schedule_merge(&device->schedule, &built, SCHEDULE_WHOLE & ~SCHEDULE_SUPERVISOR);
    log_error(MESSAGE_TEXT(log_schedule_refused), device->index,
              schedule_format(&asked, kept, sizeof kept), text);
}

static void schedule_answered(void *context, const struct worker_answer *answer)
{
    struct scheduling *scheduling = context;
    struct device *device = scheduling->device;
    bool first = !scheduling->done;
    device->scheduling--;
    /* The parts that no worker is asked about may have changed since. */
    schedule_merge(&scheduling->schedule, &device->schedule, SCHEDULE_SUPERVISOR);
    if (answer->outcome == WORKER_ANSWERED && !first)
        schedule_take(device, &scheduling->schedule, scheduling->by);
    else if (answer->outcome == WORKER_REFUSED && first)
        schedule_first_refused(device, answer->text);
    if (!first)
        scheduling->done(scheduling->context, device->index, answer->error, answer->text);
    free(scheduling);
}

/* As the changes that are on their way leave it. */
static struct schedule schedule_latest(const struct device *device)
{
    return device->scheduling ? device->scheduled : device->schedule;
}

static struct schedule schedule_to_tell(const struct device *device,
                                        const struct schedule *schedule)
{
    struct schedule told = *schedule;
    if (device->singly) {
        told.mode = PROTO_MODE_TURNS;
        told.quantum_ns = SINGLY_TURN_NS;
    }
    return told;
}

static int schedule_ask(struct device *device, const struct schedule *schedule,
                        const struct change_asker *asker)
{
    struct schedule told = schedule_to_tell(device, schedule);
    struct proto_worker_schedule body = schedule_message(&told);
    body.singly = device->singly;
    struct scheduling *scheduling = malloc(sizeof *scheduling);
    if (!scheduling)
        return -ENOMEM;
    *scheduling = (struct scheduling){
        .device = device, .schedule = *schedule, .done = asker->done, .context = asker->context};
    snprintf(scheduling->by, sizeof scheduling->by, "%s", asker->by);
    struct channel_packet request = {.opcode = PROTO_WORKER_SCHEDULE, .body = &body};
    int result = device_request(device, &request, schedule_answered, scheduling);
    if (result < 0) {
        free(scheduling);
        return result;
    }
    device->scheduled = *schedule;
    device->scheduling++;
    return 0;
}

int device_schedule_tell(struct device *device, change_done *done, void *context)
{
    struct schedule wanted = schedule_latest(device);
    return schedule_ask(device, &wanted, &(struct change_asker){"", done, context});
}

void device_schedule_begin(struct device *device)
{
    int result = schedule_ask(device, &device->schedule, &(struct change_asker){.by = ""});
    if (result < 0)
        schedule_first_refused(device, strerror(-result));
}

int device_schedule_set(struct device *device, const struct schedule *to, unsigned parts,
                        const struct change_asker *asker)
{
    /* The worker may not have answered the change before this one. The parts that this change
     * leaves alone are as that change leaves them. */
    struct schedule wanted = schedule_latest(device);
    struct schedule watched = device->schedule;
    schedule_merge(&watched, to, parts & SCHEDULE_SUPERVISOR);
    schedule_merge(&wanted, &watched, SCHEDULE_SUPERVISOR);
    schedule_merge(&wanted, to, parts);
    if (device->state != DEVICE_READY) {
        schedule_take(device, &wanted, asker->by);
        return 1;
    }
    /* A worker that does not answer can't be asked about its watchdog. */
    schedule_take(device, &watched, asker->by);
    if (!(parts & ~(unsigned)SCHEDULE_SUPERVISOR))
        return 1;
    return schedule_ask(device, &wanted, asker);
}
