/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* How the clients of a device share it: what its worker is told, and what it said to that. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "common/log.h"
#include "server/supervisor/device.h"
#include "server/supervisor/reload.h"

struct scheduling {
    struct device *device;
    struct schedule schedule;
    supervisor_set_done *done; /* NULL: a new worker's first */
    void *context;
    char by[64];
};

static void take(struct device *device, const struct schedule *schedule, const char *by)
{
    char text[160];
    bool same = schedule_equal(&device->schedule, schedule);
    device->schedule = *schedule;
    if (!same)
        log_notice("device %u has by %s: %s", device->index, by,
                   schedule_format(schedule, text, sizeof text));
}

/* A worker that was never told anything shares as it was built to. */
static void first_answered(struct device *device, uint32_t error, const char *text)
{
    char kept[160];
    if (!error)
        return;
    struct schedule asked = device->schedule;
    device->schedule = schedule_default();
    log_error("device %u can't be shared by %s: %s", device->index,
              schedule_format(&asked, kept, sizeof kept), text);
}

static void answered(void *context, struct channel_message *answer)
{
    struct scheduling *scheduling = context;
    struct device *device = scheduling->device;
    struct proto_failed failed = {.error = PROTO_ERROR_WORKER_LOST,
                                  .text = "the worker ended before it had changed anything"};
    if (answer && answer->header.opcode == PROTO_FAILED)
        memcpy(&failed, answer->body, sizeof failed);
    uint32_t error = answer && answer->header.opcode == PROTO_DONE ? 0 : failed.error;
    char text[400];
    snprintf(text, sizeof text, "%.*s", (int)sizeof failed.text, error ? failed.text : "");
    device->scheduling--;
    if (scheduling->done) {
        if (!error)
            take(device, &scheduling->schedule, scheduling->by);
        scheduling->done(scheduling->context, device->index, error, text);
    } else if (answer) {
        first_answered(device, error, text);
    }
    free(scheduling);
    reload_look(device->supervisor);
}

static int ask(struct device *device, const struct schedule *schedule, const char *by,
               supervisor_set_done *done, void *context)
{
    struct proto_worker_schedule body = schedule_message(schedule);
    struct scheduling *scheduling = malloc(sizeof *scheduling);
    if (!scheduling)
        return -ENOMEM;
    *scheduling = (struct scheduling){
        .device = device, .schedule = *schedule, .done = done, .context = context};
    snprintf(scheduling->by, sizeof scheduling->by, "%s", by);
    int result =
        device_request(device, PROTO_WORKER_SCHEDULE, 0, &body, NULL, 0, answered, scheduling);
    if (result < 0) {
        free(scheduling);
        return result;
    }
    device->scheduled = *schedule;
    device->scheduling++;
    return 0;
}

void device_schedule_begin(struct device *device)
{
    int result = ask(device, &device->schedule, "", NULL, NULL);
    if (result < 0)
        first_answered(device, PROTO_ERROR_SERVER_RESOURCES, strerror(-result));
}

int device_schedule_set(struct device *device, const struct schedule *to, unsigned parts,
                        const char *by, supervisor_set_done *done, void *context)
{
    /* What this change leaves alone is as the one before leaves it, which may be on its way. */
    struct schedule schedule = device->scheduling ? device->scheduled : device->schedule;
    schedule_merge(&schedule, to, parts);
    if (device->state == SUPERVISOR_DEVICE_READY)
        return ask(device, &schedule, by, done, context);
    take(device, &schedule, by);
    return 1;
}
