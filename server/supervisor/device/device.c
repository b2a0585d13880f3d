/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/account/address_plan.h"
#include "server/supervisor/device/device_memory.h"
#include "server/supervisor/device/device_request.h"
#include "server/supervisor/device/device_schedule.h"
#include "server/supervisor/device/device_singly.h"
#include "server/supervisor/settings.h"

/* Delays between starts, for a driver that stays broken. After a worker that served there is none:
 * its clients wait for the next one. */
#define RESTART_DELAY_MIN_MS 50
#define RESTART_DELAY_MAX_MS 10000
/* Time that a worker has to end after it lost its channel or was told to stop. */
#define EXIT_TIMEOUT_MS 5000
/* Time that a standby has to say that it was told to serve. */
#define SERVE_MS 500

static void device_down(struct device *device);
static void part_closed(void *context);
static void watchdog_ask(void *context);
static void worker_speaks(void *context);
static void worker_expired(void *context, const struct error *why);

void device_open(struct device *device, const struct device_options *options)
{
    uv_loop_t *loop = options->loop;
    const struct settings *settings = options->settings;
    const uint32_t index = options->index;
    *device = (struct device){.loop = loop,
                              .jobs = options->jobs,
                              .settings = settings,
                              .events = *options->events,
                              .index = index,
                              .found = *options->found,
                              .state = DEVICE_WAITING,
                              .schedule = settings->schedule,
                              .configured = settings->schedule};
    device->admission.limits = device->newcomers = allowance_none;
    QUOTA_FOR_EACH (i)
        if (allowance_resource(i)->of_device)
            quota_open(&device->quotas[i], allowance_resource(i)->whole_quota, 0, NULL);
    uv_timer_init(loop, &device->timer);
    uv_timer_init(loop, &device->absolve);
    uv_timer_init(loop, &device->pace);
    device->timer.data = device->absolve.data = device->pace.data = device;
    device->ledger = device->code = SHM_NONE;
    device->watchdog = (struct watchdog){.loop = loop,
                                         .schedule = &device->schedule,
                                         .process = &device->process,
                                         .index = index,
                                         .ask = watchdog_ask,
                                         .speaks = worker_speaks,
                                         .expired = worker_expired,
                                         .closed = part_closed,
                                         .context = device};
    watchdog_open(&device->watchdog);
    device->standby = (struct standby){.loop = loop,
                                       .settings = settings,
                                       .found = &device->found,
                                       .schedule = &device->schedule,
                                       .code = &device->code,
                                       .index = index,
                                       .worker = &device->link,
                                       .charged = &device->quotas[RESOURCE_MEMORY],
                                       .closed = part_closed,
                                       .context = device};
    standby_open(&device->standby);
    device->open_parts = 5;
}

static bool request_hold(void *context, const struct worker_request_row *row)
{
    struct device *device = context;
    return device->events.holds(device->events.context, row->client) &&
           held_requests_add(&device->held, row->packet, row->reply, row->context) == 0;
}

static bool is_held(const struct device *device)
{
    return device->process && worker_process_is_held(device->process);
}

/* Gives the present worker up. Its clients are marked first, so that the answers which the link's
 * end gives them are not passed on. */
static void device_fail(struct device *device, uint32_t error, const char *text)
{
    if (!device->link)
        return;
    bool was_ready = device->state == DEVICE_READY;
    device->ended_at = clock_now();
    if (!device->stopping) {
        snprintf(device->trouble, sizeof device->trouble, "%s", text);
        if (was_ready) {
            log_about_device(device->index);
            log_error(MESSAGE_TEXT(log_worker_lost), device->index, error_name(error), text);
        }
    }
    device->state = is_held(device) ? DEVICE_HELD : DEVICE_WAITING;
    device->loss = error;
    if (!device->stopping)
        ailment_note(&device->ailment, error, device->ended_at);
    standby_device_serves(&device->standby, false);
    watchdog_rest(&device->watchdog);
    uv_timer_stop(&device->timer);
    uv_timer_stop(&device->absolve);
    uv_timer_stop(&device->pace);
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

const char *device_state_name(enum device_state state)
{
    static const char *const names[] = {"starting", "ready", "waiting", "held", "stopped"};
    return names[state];
}

bool device_serves(const struct device *device)
{
    return device->state == DEVICE_READY && !device->watchdog.silent;
}

/* ---- what the watchdog says ---- */

static void beat_answered(void *context, const struct worker_answer *answer)
{
    struct device *device = context;
    if (answer->outcome == WORKER_ANSWERED)
        watchdog_answered(&device->watchdog);
}

/* The link's end tells of a worker that can't be asked. */
static void watchdog_ask(void *context)
{
    struct channel_packet request = {.opcode = PROTO_WORKER_BEAT};
    device_request(context, &request, beat_answered, context);
}

static void worker_speaks(void *context)
{
    struct device *device = context;
    device->events.ready(device->events.context, device);
}

static void worker_expired(void *context, const struct error *why)
{
    device_replace(context, why);
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
    device->quotas[RESOURCE_MEMORY].limit = info->memory;
    device->known = true;
    device->state = DEVICE_READY;
    device->ready_at = clock_now();
    device->served = true;
    ailment_recover(&device->ailment);
    log_about_device(device->index);
    log_notice(MESSAGE_TEXT(log_device_ready), device->index, info->name, info->multiprocessors,
               (unsigned long long)(info->memory >> 20));
    device_memory_begin(device);
    device_schedule_begin(device);
    device_singly_look_later(device);
    watchdog_serving(&device->watchdog);
    /* A device that was adopted has a worker of somebody else's. */
    standby_device_serves(&device->standby, !device->adopted);
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
    case PROTO_KERNEL_HEAP:
        memcpy(&device->heap, message->body, sizeof device->heap);
        break;
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
    case PROTO_WORKER_PROVEN:
        device->events.client_proven(device->events.context, device, message->header.client);
        break;
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
    device->crashed = worker_process_crashed(status);
    if (status || !device->stopping) {
        log_about_device(device->index);
        log_warning(MESSAGE_TEXT(log_worker_ended), device->index, device->how);
    }
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

/* The other process may have inherited the channel as well, so the link's end tells nothing. */
static void process_held(void *context, int status)
{
    struct device *device = context;
    worker_process_describe(status, device->how);
    device->crashed = worker_process_crashed(status);
    if (device->link)
        device_abandon(device);
    else if (!device->stopping)
        device->state = DEVICE_HELD;
}

static struct worker_process_events process_events(struct device *device)
{
    return (struct worker_process_events){
        .held = process_held, .ended = process_ended, .context = device};
}

/* ---- starting ---- */

static const struct worker_link_events *worker_begin(struct device *device,
                                                     struct worker_link_events *events)
{
    *events =
        (struct worker_link_events){.notice = link_notice, .lost = link_lost, .context = device};
    device->silent = device->served = device->crashed = false;
    device->how[0] = 0;
    device->warning_count = 0;
    device->state = DEVICE_STARTING;
    return events;
}

static int channel_adopt(struct device *device, int fd)
{
    struct worker_link_events events;
    int result = worker_link_open(&device->link, device->loop, fd, worker_begin(device, &events));
    if (result == 0)
        worker_link_begin(device->link, device->base, device->hold);
    return result;
}

int device_adopt(struct device *device, int fd)
{
    device->starts++;
    device->adopted = true;
    return channel_adopt(device, fd);
}

static void serve_answered(void *context, const struct worker_answer *answer)
{
    struct device *device = context;
    if (answer->outcome != WORKER_ANSWERED)
        return;
    uv_timer_stop(&device->timer);
    if (device->state == DEVICE_STARTING)
        watchdog_starting(&device->watchdog, device->start_at);
}

static void serve_late(uv_timer_t *timer)
{
    struct device *device = timer->data;
    struct error why;
    error_set(&why, MESSAGE(standby_not_serving), device->index,
              (int)worker_process_pid(device->process), SERVE_MS);
    standby_failed_as_worker(&device->standby, why.text);
    device_replace(device, &why);
}

/* A standby only waits for this message, so one that does not answer soon never will. Its clients
 * would wait for as long as for a worker that starts. */
static void take_over(struct device *device, const struct standby_worker *standby)
{
    struct channel_packet request = {.opcode = PROTO_WORKER_SERVE};
    struct worker_link_events events;
    watchdog_take_heartbeat(&device->watchdog, &standby->heartbeat);
    device->process = standby->process;
    device->link = standby->link;
    const struct worker_process_events process = process_events(device);
    worker_process_adopt(device->process, &process);
    worker_link_redirect(device->link, worker_begin(device, &events));
    worker_link_begin(device->link, device->base, device->hold);
    log_notice(MESSAGE_TEXT(log_standby_serves), device->index,
               (int)worker_process_pid(device->process));
    if (device->schedule.watchdog_limit_ns)
        uv_timer_start(&device->timer, serve_late, SERVE_MS, 0);
    /* The link's end tells of a standby that can't be asked. */
    device_request(device, &request, serve_answered, device);
}

int device_start(struct device *device)
{
    struct standby_worker standby;
    int channel;
    device->starts++;
    device->start_at = clock_now();
    if (standby_take(&device->standby, &standby)) {
        take_over(device, &standby);
        return 0;
    }
    int result = watchdog_make_page(&device->watchdog);
    if (result == 0)
        result = worker_process_start(&device->process,
                                      &(struct worker_process_options){
                                          .loop = device->loop,
                                          .settings = device->settings,
                                          .found = &device->found,
                                          .activity = device->watchdog.heartbeat.page.fd,
                                          .code = device_memory_code(device),
                                          .standby = schedule_standby_name(SCHEDULE_STANDBY_NONE),
                                          .events = process_events(device)},
                                      &channel);
    if (result == 0)
        result = channel_adopt(device, channel);
    if (result == 0)
        watchdog_starting(&device->watchdog, device->start_at);
    if (result < 0) {
        device->state = DEVICE_WAITING;
        snprintf(device->trouble, sizeof device->trouble, MESSAGE_TEXT(worker_not_started),
                 strerror(-result));
        if (device->process)
            worker_process_expire(device->process, 0);
    }
    return result;
}

int device_take_over(struct device *device, const struct device_left *left)
{
    const struct worker_process_events events = process_events(device);
    uint32_t warnings = device->warning_count;
    int result = 0;
    if (left->process >= 0 && left->barrier >= 0)
        result = worker_process_take_over(&device->process, device->loop,
                                          &(struct worker_process_left){left->pid, left->process,
                                                                        left->barrier,
                                                                        device->found.ordinal},
                                          &events);
    device_memory_adopt(device, left->ledger, left->code);
    if (left->page >= 0)
        watchdog_adopt_page(&device->watchdog, left->page);
    bool serves = result == 0 && device->process && left->link >= 0 && left->served;
    if (serves)
        result = channel_adopt(device, left->link);
    else if (left->link >= 0)
        close(left->link);
    if (serves && result == 0) {
        device->warning_count = warnings;
        device->served = true;
        device->state = DEVICE_READY;
        watchdog_serving(&device->watchdog);
        standby_device_serves(&device->standby, true);
        device_singly_look_later(device);
    } else if (device->process) {
        /* The process may be at any step, and nobody waits for it any more. */
        worker_process_expire(device->process, 0);
    }
    return result;
}

void device_show(struct device *device)
{
    struct channel_packet request = {.opcode = PROTO_WORKER_BEAT};
    device_request(device, &request, NULL, NULL);
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

void device_start_again(struct device *device)
{
    uint64_t ails = ailment_wait(&device->ailment, clock_now());
    if (ails)
        uv_timer_start(&device->timer, start_again, ails / UNITS_MS, 0);
    else
        device_start(device);
}

static void part_closed(void *context)
{
    struct device *device = context;
    if (--device->open_parts)
        return;
    shm_release(&device->ledger);
    shm_release(&device->code);
    held_requests_close(&device->held);
    device->state = DEVICE_STOPPED;
    device->events.stopped(device->events.context, device);
}

static void timer_closed(uv_handle_t *handle)
{
    part_closed(handle->data);
}

/* Neither a process nor a link is left. */
static void device_down(struct device *device)
{
    device->events.gone(device->events.context, device);
    if (device->stopping) {
        if (!device->closing) {
            device->closing = true;
            uv_close((uv_handle_t *)&device->timer, timer_closed);
            watchdog_close(&device->watchdog);
            uv_close((uv_handle_t *)&device->absolve, timer_closed);
            uv_close((uv_handle_t *)&device->pace, timer_closed);
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
    uint64_t delay = 0;
    if (device->failures)
        delay = saturating_double(RESTART_DELAY_MIN_MS, device->failures - 1, RESTART_DELAY_MAX_MS);
    uint64_t ails = ailment_wait(&device->ailment, clock_now());
    char time[UNITS_TEXT];
    delay = max(delay, ails / UNITS_MS);
    if (ails)
        log_warning(MESSAGE_TEXT(log_kept_down), device->index, error_name(device->loss),
                    units_format_duration(delay * UNITS_MS, time));
    uv_timer_start(&device->timer, start_again, delay, 0);
}

void device_stop(struct device *device)
{
    if (device->stopping)
        return;
    device->stopping = true;
    uv_timer_stop(&device->timer);
    standby_close(&device->standby);
    if (device->link)
        device_fail(device, MESSAGE(server_ended));
    else if (device->process)
        worker_process_expire(device->process, EXIT_TIMEOUT_MS);
    else
        device_down(device);
}

static void pace_ended(uv_timer_t *timer)
{
    struct device *device = timer->data;
    device->events.paced(device->events.context, device);
}

void device_pace(struct device *device, uint64_t milliseconds)
{
    if (!device->link || device->closing)
        return;
    if (!uv_is_active((uv_handle_t *)&device->pace) ||
        uv_timer_get_due_in(&device->pace) > milliseconds)
        uv_timer_start(&device->pace, pace_ended, milliseconds, 0);
}

uint32_t device_refuse(const struct device *device, struct error *why)
{
    if (device->stopping)
        return error_set(why, MESSAGE(server_stopping));
    if (device->watchdog.silent) {
        char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
        return error_set(why, MESSAGE(device_silent), device->index,
                         watchdog_silence(&device->watchdog, time),
                         watchdog_explain(&device->watchdog, text));
    }
    uint64_t ails = ailment_wait(&device->ailment, clock_now());
    if (ails) {
        char time[UNITS_TEXT];
        return error_set(why, MESSAGE(device_kept_down), device->index, device->trouble,
                         units_format_duration(units_tenth_to_come(ails), time));
    }
    if (device->trouble[0])
        return error_set(why, MESSAGE(device_no_worker), device->index, device->trouble);
    return error_set(why, MESSAGE(device_starting), device->index);
}

bool device_has_warning(const struct device *device, uint32_t which)
{
    for (uint32_t i = 0; i < device->warning_count; i++)
        if (device->warnings[i].which == which)
            return true;
    return false;
}

void device_abandon(struct device *device)
{
    if (device->link)
        worker_link_finish(device->link);
}
