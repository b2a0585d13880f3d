/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "common/ipc/timeline.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/settings.h"

/* Delays between starts, for a driver that stays broken. After a worker that served there is none:
 * its clients wait for the next one. */
#define RESTART_DELAY_MIN_MS 50
#define RESTART_DELAY_MAX_MS 10000
/* Time that a worker has to end after it lost its channel or was told to stop. */
#define EXIT_TIMEOUT_MS 5000
#define MS_NS           UINT64_C(1000000)
/* A device that serves one client at a time does so for a second, in the shortest turns. */
#define SINGLY_MS      1000
#define SINGLY_TURN_NS (5 * MS_NS)

static void device_down(struct device *device);

const char *device_state_name(enum device_state state)
{
    static const char *const names[] = {"starting", "ready", "waiting", "stopped"};
    return names[state];
}

void device_open(struct device *device, uv_loop_t *loop, struct job_pool *jobs,
                 const struct settings *settings, uint32_t index,
                 const struct discovery_device *found, const struct device_events *events)
{
    *device = (struct device){.loop = loop,
                              .jobs = jobs,
                              .settings = settings,
                              .events = *events,
                              .index = index,
                              .found = *found,
                              .state = DEVICE_WAITING,
                              .schedule = settings->schedule};
    device->admission.limits = allowance_none;
    ACCOUNT_FOR_EACH (i)
        if (allowance_resource(i)->of_device)
            quota_open(&device->accounts[i], allowance_resource(i)->whole_account, 0, NULL);
    uv_timer_init(loop, &device->timer);
    uv_timer_init(loop, &device->beat);
    uv_timer_init(loop, &device->absolve);
    device->timer.data = device->beat.data = device->absolve.data = device;
    device->timers = 3;
    device->heartbeat.page = SHM_NONE;
}

static bool request_hold(void *context, const struct worker_request_row *row)
{
    struct device *device = context;
    return device->events.holds(device->events.context, row->client) &&
           held_requests_add(&device->held, row->packet, row->reply, row->context) == 0;
}

/* Gives the present worker up. Its clients are marked first, so that the answers which the link's
 * end gives them are not passed on. */
static void device_fail(struct device *device, uint32_t error, const char *text)
{
    if (!device->link)
        return;
    bool was_ready = device->state == DEVICE_READY;
    device->ended_at = timeline_now();
    if (!device->stopping) {
        snprintf(device->trouble, sizeof device->trouble, "%s", text);
        if (was_ready)
            log_error(MESSAGE_TEXT(log_worker_lost), device->index, error_name(error), text);
    }
    device->state = DEVICE_WAITING;
    device->unanswering = false;
    device->loss = error;
    uv_timer_stop(&device->beat);
    uv_timer_stop(&device->absolve);
    device->events.lost(device->events.context, device, error, text);
    worker_link_close(device->link, request_hold, device);
    device->link = NULL;
    device->failures = was_ready ? 0 : device->failures + 1;
    if (device->process)
        worker_process_expire(device->process, EXIT_TIMEOUT_MS);
    else
        device_down(device);
}

void device_replace(struct device *device, const struct error *why)
{
    /* First: the time that a worker has to end by itself does not shorten this one. */
    if (device->link && device->process)
        worker_process_expire(device->process, 0);
    device_fail(device, why->number, why->text);
}

/* ---- whether the worker answers ---- */

bool device_serves(const struct device *device)
{
    return device->state == DEVICE_READY && !device->unanswering;
}

static pid_t pid_of(const struct device *device)
{
    return device->process ? worker_process_pid(device->process) : 0;
}

static void beat_look(uv_timer_t *timer);

static bool is_watched(const struct device *device)
{
    return device->heartbeat.page.base &&
           (device->schedule.watchdog_warning_ns || device->schedule.watchdog_limit_ns);
}

static void beat_answered(void *context, const struct worker_answer *answer)
{
    struct device *device = context;
    if (answer->outcome != WORKER_ANSWERED)
        return;
    heartbeat_answered(&device->heartbeat);
    if (is_watched(device))
        uv_timer_start(&device->beat, beat_look, device->heartbeat.next_ns / MS_NS, 0);
}

/* Writes for how long the worker has been silent, in whole tenths of a second. */
static const char *silence_format(const struct device *device, char text[UNITS_TEXT])
{
    uint64_t ns = heartbeat_silent_ns(&device->heartbeat);
    return units_format_duration(ns - ns % (100 * MS_NS), text);
}

/* The worker has fallen silent, or is not called silent any more: it speaks again, or an
 * administrator allows it a longer silence. */
static void silence_note(struct device *device, bool silent)
{
    char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
    if (silent == device->unanswering)
        return;
    device->unanswering = silent;
    if (silent) {
        log_warning(MESSAGE_TEXT(log_worker_silent), device->index, silence_format(device, time),
                    heartbeat_explain(&device->heartbeat, pid_of(device), text));
        return;
    }
    if (!heartbeat_silent_ns(&device->heartbeat))
        log_notice(MESSAGE_TEXT(log_worker_answers), device->index);
    device->events.ready(device->events.context, device);
}

static void beat_look(uv_timer_t *timer)
{
    struct device *device = timer->data;
    struct heartbeat *heartbeat = &device->heartbeat;
    const struct schedule *schedule = &device->schedule;
    struct channel_packet request = {.opcode = PROTO_WORKER_BEAT};
    char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
    struct error why;
    bool ask = heartbeat_look(heartbeat, timeline_now());
    uint64_t silent = heartbeat_silent_ns(heartbeat);
    if (schedule->watchdog_limit_ns && silent >= schedule->watchdog_limit_ns) {
        error_set(&why, MESSAGE(worker_silent), device->index, silence_format(device, time),
                  heartbeat_explain(heartbeat, pid_of(device), text));
        device_replace(device, &why);
        return;
    }
    silence_note(device, schedule->watchdog_warning_ns && silent >= schedule->watchdog_warning_ns);
    uv_timer_start(&device->beat, beat_look, heartbeat->next_ns / MS_NS, 0);
    /* The link's end tells of a worker that can't be asked. */
    if (ask)
        device_request(device, &request, beat_answered, device);
}

static void beat_begin(struct device *device)
{
    if (is_watched(device))
        uv_timer_start(&device->beat, beat_look, device->heartbeat.next_ns / MS_NS, 0);
}

/* The driver's own start takes seconds, many where several GPUs start at once: a worker that
 * starts may be silent for so many times as long. */
#define START_LIMITS 12

static void start_late(uv_timer_t *timer)
{
    struct device *device = timer->data;
    char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
    struct error why;
    error_set(&why, MESSAGE(worker_start_silent), device->index,
              units_format_duration(START_LIMITS * device->schedule.watchdog_limit_ns, time),
              heartbeat_explain(&device->heartbeat, pid_of(device), text));
    log_error("%s", why.text);
    device_replace(device, &why);
}

static void start_watch(struct device *device)
{
    uint64_t limit = START_LIMITS * device->schedule.watchdog_limit_ns;
    uint64_t passed = timeline_now() - device->start_at;
    if (limit && device->heartbeat.page.base)
        uv_timer_start(&device->beat, start_late, saturating_sub(limit, passed) / MS_NS, 0);
    else
        uv_timer_stop(&device->beat);
}

static uint64_t shortest_silence(const struct schedule *schedule)
{
    uint64_t warning = schedule->watchdog_warning_ns, limit = schedule->watchdog_limit_ns;
    return warning && limit ? min(warning, limit) : max(warning, limit);
}

/* The watchdog's times have changed. A look at once finds what the new times say about a worker
 * that is silent already. */
static void watch_follow(struct device *device)
{
    heartbeat_retime(&device->heartbeat, shortest_silence(&device->schedule));
    if (device->state == DEVICE_STARTING) {
        start_watch(device);
    } else if (device->state == DEVICE_READY && is_watched(device)) {
        uv_timer_start(&device->beat, beat_look, 0, 0);
    } else if (device->state == DEVICE_READY) {
        uv_timer_stop(&device->beat);
        silence_note(device, false);
    }
}

/* ---- the schedule: telling the worker, and its answer ---- */

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
        watch_follow(device);
}

/* The worker shares the device by the defaults that it was built with. */
static void schedule_first_refused(struct device *device, const char *text)
{
    char kept[SCHEDULE_TEXT];
    struct schedule asked = device->schedule, built = schedule_default();
    schedule_merge(&device->schedule, &built, SCHEDULE_WHOLE & ~SCHEDULE_WATCHDOG);
    log_error(MESSAGE_TEXT(log_schedule_refused), device->index,
              schedule_format(&asked, kept, sizeof kept), text);
}

static void schedule_answered(void *context, const struct worker_answer *answer)
{
    struct scheduling *scheduling = context;
    struct device *device = scheduling->device;
    bool first = !scheduling->done;
    device->scheduling--;
    /* The watchdog's times may have changed since. */
    schedule_merge(&scheduling->schedule, &device->schedule, SCHEDULE_WATCHDOG);
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

static int schedule_ask(struct device *device, const struct schedule *schedule, const char *by,
                        change_done *done, void *context)
{
    struct schedule told = schedule_to_tell(device, schedule);
    struct proto_worker_schedule body = schedule_message(&told);
    struct scheduling *scheduling = malloc(sizeof *scheduling);
    if (!scheduling)
        return -ENOMEM;
    *scheduling = (struct scheduling){
        .device = device, .schedule = *schedule, .done = done, .context = context};
    snprintf(scheduling->by, sizeof scheduling->by, "%s", by);
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

/* Tells a new worker how its clients share the device, before it hears of any client. */
static void schedule_begin(struct device *device)
{
    int result = schedule_ask(device, &device->schedule, "", NULL, NULL);
    if (result < 0)
        schedule_first_refused(device, strerror(-result));
}

/* ---- one client at a time ---- */

void device_serve_singly(struct device *device)
{
    if (!device->singly)
        log_warning(MESSAGE_TEXT(log_singly), device->index);
    device->singly = true;
}

void device_serve_together(struct device *device)
{
    if (device->singly)
        log_notice(MESSAGE_TEXT(log_singly_over), device->index);
    device->singly = false;
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
        device->singly = true;
        uv_timer_start(&device->absolve, absolve_look, SINGLY_MS, 0);
    }
}

static void singly_end(struct device *device)
{
    struct schedule wanted = schedule_latest(device);
    device->singly = false;
    int result = schedule_ask(device, &wanted, "", singly_answered, device);
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

/* ---- what the worker says ---- */

static void info_take(struct device *device, const struct proto_device_info *info)
{
    if (device->state != DEVICE_STARTING) {
        device_fail(device, PROTO_ERROR_WORKER_LOST, MESSAGE_TEXT(worker_described_twice));
        return;
    }
    if (!info->memory || !info->granularity || (info->granularity & (info->granularity - 1)) ||
        info->granularity > ADDRESS_PLAN_SMALLEST) {
        device_fail(device, PROTO_ERROR_WORKER_LOST, MESSAGE_TEXT(device_unusable));
        return;
    }
    device->info = *info;
    device->info.device = device->index;
    device->accounts[RESOURCE_MEMORY].limit = info->memory;
    device->known = true;
    device->state = DEVICE_READY;
    device->ready_at = timeline_now();
    device->served = true;
    log_notice(MESSAGE_TEXT(log_device_ready), device->index, info->name, info->multiprocessors,
               (unsigned long long)(info->memory >> 20));
    schedule_begin(device);
    if (device->singly)
        uv_timer_start(&device->absolve, absolve_look, SINGLY_MS, 0);
    beat_begin(device);
    device->events.ready(device->events.context, device);
}

static void warning_take(struct device *device, const struct proto_worker_warning *warning)
{
    if (device->warning_count == DEVICE_WARNINGS_MAX)
        return;
    struct device_warning *taken = &device->warnings[device->warning_count++];
    taken->which = warning->warning;
    snprintf(taken->text, sizeof taken->text, "%.*s", (int)sizeof warning->text, warning->text);
    log_warning(MESSAGE_TEXT(device_warning), device->index, taken->text);
}

bool device_has_warning(const struct device *device, uint32_t which)
{
    for (uint32_t i = 0; i < device->warning_count; i++)
        if (device->warnings[i].which == which)
            return true;
    return false;
}

/* The client that caused it is told first: a session ends with the first reason that it gets. */
static void overran_take(struct device *device, uint32_t client,
                         const struct proto_worker_overran *overran)
{
    struct error why;
    if (client && overran->error)
        device->events.client_violated(device->events.context, device, client, overran->error,
                                       overran->text);
    error_set(&why, MESSAGE(worker_overran), device->index, overran->text);
    device_replace(device, &why);
}

static void link_notice(void *context, struct channel_message *message)
{
    struct device *device = context;
    switch (message->header.opcode) {
    case PROTO_DEVICE_INFO:
        info_take(device, message->body);
        break;
    case PROTO_WORKER_WARNING: {
        struct proto_worker_warning warning;
        memcpy(&warning, message->body, sizeof warning);
        warning_take(device, &warning);
        break;
    }
    case PROTO_WORKER_FAULT: {
        struct proto_worker_fault fault;
        memcpy(&fault, message->body, sizeof fault);
        device_fail(device, fault.error, fault.text);
        break;
    }
    case PROTO_WORKER_MISBEHAVED: {
        struct proto_worker_misbehaved complaint;
        memcpy(&complaint, message->body, sizeof complaint);
        device->events.client_violated(device->events.context, device, message->header.client,
                                       complaint.error, complaint.text);
        break;
    }
    case PROTO_WORKER_OVERRAN: {
        struct proto_worker_overran overran;
        memcpy(&overran, message->body, sizeof overran);
        overran_take(device, message->header.client, &overran);
        break;
    }
    case PROTO_WORKER_RELEASED:
        device->events.client_released(device->events.context, device, message->header.client);
        break;
    case PROTO_WORKER_STREAM_ENDED:
    case PROTO_WORKER_EVENT_ENDED:
        device->events.object_ended(device->events.context, device, message);
        break;
    default:
        log_warning(MESSAGE_TEXT(log_worker_unasked), device->index, message->type->name);
    }
}

static void link_lost(void *context, const char *why)
{
    struct device *device = context;
    struct error lost;
    device->silent = !why;
    if (!why && device->how[0] && !device->served) {
        error_set(&lost, MESSAGE(worker_ended_how), device->index, device->how);
    } else {
        if (!why)
            why = device->how[0] ? device->how : MESSAGE_TEXT(worker_hung_up);
        error_set(&lost, MESSAGE(worker_ended_why), device->index, why);
    }
    device_fail(device, lost.number, lost.text);
}

/* A worker that hung up did not say why; its exit status tells more. */
static void process_ended(void *context, int status)
{
    struct device *device = context;
    worker_process_describe(status, device->how);
    if (status || !device->stopping)
        log_warning(MESSAGE_TEXT(log_worker_ended), device->index, device->how);
    worker_process_free(device->process);
    device->process = NULL;
    if (device->link) {
        /* The worker's last messages may still be in the socket. */
        device_abandon(device);
        return;
    }
    if (device->silent)
        snprintf(device->trouble, sizeof device->trouble,
                 device->served ? MESSAGE_TEXT(worker_trouble) : MESSAGE_TEXT(worker_trouble_early),
                 device->how);
    device_down(device);
}

static int channel_adopt(struct device *device, int fd)
{
    struct worker_link_events events = {
        .notice = link_notice, .lost = link_lost, .context = device};
    device->silent = device->served = false;
    device->how[0] = 0;
    device->warning_count = 0;
    device->state = DEVICE_STARTING;
    return worker_link_open(&device->link, device->loop, fd, &events);
}

int device_adopt(struct device *device, int fd)
{
    device->starts++;
    device->adopted = true;
    return channel_adopt(device, fd);
}

int device_start(struct device *device)
{
    int channel;
    device->starts++;
    device->start_at = timeline_now();
    int result = heartbeat_open(&device->heartbeat, shortest_silence(&device->schedule));
    if (result == 0)
        result =
            worker_process_start(&device->process, device->loop, device->settings, &device->found,
                                 device->heartbeat.page.fd, &channel, process_ended, device);
    if (result == 0)
        result = channel_adopt(device, channel);
    if (result == 0)
        start_watch(device);
    if (result < 0) {
        device->state = DEVICE_WAITING;
        snprintf(device->trouble, sizeof device->trouble, MESSAGE_TEXT(worker_not_started),
                 strerror(-result));
        if (device->process)
            worker_process_expire(device->process, 0);
    }
    return result;
}

static void start_again(uv_timer_t *timer)
{
    struct device *device = timer->data;
    if (device_start(device) < 0) {
        device->failures++;
        if (!device->process)
            device_down(device);
    }
}

static void timer_closed(uv_handle_t *handle)
{
    struct device *device = handle->data;
    if (--device->timers)
        return;
    heartbeat_close(&device->heartbeat);
    held_requests_close(&device->held);
    device->state = DEVICE_STOPPED;
    device->events.stopped(device->events.context, device);
}

/* Neither a process nor a link is left. */
static void device_down(struct device *device)
{
    device->events.gone(device->events.context, device);
    if (device->stopping) {
        if (!device->closing) {
            device->closing = true;
            uv_close((uv_handle_t *)&device->timer, timer_closed);
            uv_close((uv_handle_t *)&device->beat, timer_closed);
            uv_close((uv_handle_t *)&device->absolve, timer_closed);
        }
        return;
    }
    device->state = DEVICE_WAITING;
    if (!device->known) {
        device->failed_once = true;
        device->events.failed(device->events.context, device);
        if (device->stopping)
            return;
    }
    if (device->adopted)
        return;
    uint32_t doublings = min(device->failures, 8u);
    uint64_t delay = device->failures ? (uint64_t)RESTART_DELAY_MIN_MS << (doublings - 1) : 0;
    uv_timer_start(&device->timer, start_again, min(delay, (uint64_t)RESTART_DELAY_MAX_MS), 0);
}

void device_stop(struct device *device)
{
    if (device->stopping)
        return;
    device->stopping = true;
    uv_timer_stop(&device->timer);
    if (device->link)
        device_fail(device, MESSAGE(server_ended));
    else if (device->process)
        worker_process_expire(device->process, EXIT_TIMEOUT_MS);
    else
        device_down(device);
}

int device_request(struct device *device, const struct channel_packet *request,
                   worker_link_reply *reply, void *context)
{
    return device->link ? worker_link_request(device->link, request, reply, context) : -EPIPE;
}

int device_request_again(struct device *device, const struct channel_packet *request,
                         worker_link_reply *reply, void *context)
{
    return device->link ? worker_link_request_again(device->link, request, reply, context) : -EPIPE;
}

void device_send_held(struct device *device, uint32_t client)
{
    if (device->link)
        held_requests_send(&device->held, client, device->link);
}

void device_cancel(struct device *device, uint32_t client)
{
    held_requests_cancel(&device->held, client);
    if (device->link)
        worker_link_cancel(device->link, client);
}

void device_abandon(struct device *device)
{
    if (device->link)
        worker_link_finish(device->link);
}

uint32_t device_refuse(const struct device *device, struct error *why)
{
    if (device->stopping)
        return error_set(why, MESSAGE(server_stopping));
    if (device->unanswering) {
        char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
        return error_set(why, MESSAGE(device_silent), device->index, silence_format(device, time),
                         heartbeat_explain(&device->heartbeat, pid_of(device), text));
    }
    if (device->trouble[0])
        return error_set(why, MESSAGE(device_no_worker), device->index, device->trouble);
    return error_set(why, MESSAGE(device_starting), device->index);
}

int device_schedule_set(struct device *device, const struct schedule *to, unsigned parts,
                        const char *by, change_done *done, void *context)
{
    /* The worker may not have answered the change before this one. The parts that this change
     * leaves alone are as that change leaves them. */
    struct schedule wanted = schedule_latest(device);
    struct schedule watched = device->schedule;
    schedule_merge(&watched, to, parts & SCHEDULE_WATCHDOG);
    schedule_merge(&wanted, &watched, SCHEDULE_WATCHDOG);
    schedule_merge(&wanted, to, parts);
    if (device->state != DEVICE_READY) {
        schedule_take(device, &wanted, by);
        return 1;
    }
    /* A worker that does not answer can't be asked about its watchdog. */
    schedule_take(device, &watched, by);
    if (!(parts & ~(unsigned)SCHEDULE_WATCHDOG))
        return 1;
    return schedule_ask(device, &wanted, by, done, context);
}
