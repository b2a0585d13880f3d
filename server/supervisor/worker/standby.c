/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/standby.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/log.h"
#include "common/machine.h"
#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"
#include "server/supervisor/worker/discovery.h"
#include "server/supervisor/settings.h"

/* After the device serves: clients that go on with it have it for themselves first. Each failure
 * doubles the time. */
#define DELAY_MS     250
#define DELAY_MAX_MS 60000
/* A standby that was ready for so long shows that it can be: failures before it count no more. */
#define PROVEN_NS (10000 * UNITS_MS)
/* Time to end by itself, once its channel is closed. */
#define EXIT_MS 5000
/* Between questions, where the watchdog has no limit. */
#define ASK_MS 5000
/* A worker that has not said by then how much memory is free holds the standby up no longer. */
#define MEASURE_MS 1000

static void timer_due(uv_timer_t *timer);

const char *standby_state_name(enum standby_state state)
{
    static const char *const names[] = {"off", "waiting", "starting", "ready", "ending"};
    return names[state];
}

void standby_open(struct standby *standby)
{
    standby->heartbeat.page = SHM_NONE;
    standby->free_before = standby->device_bytes = STANDBY_UNKNOWN;
    standby->kind = standby->schedule->standby;
    standby->state = standby->kind ? STANDBY_WAITING : STANDBY_OFF;
    uv_timer_init(standby->loop, &standby->timer);
    standby->timer.data = standby;
}

static enum schedule_standby kind_wanted(const struct standby *standby)
{
    return standby->closing ? SCHEDULE_STANDBY_NONE : standby->schedule->standby;
}

/* ---- there is none ---- */

static uint64_t delay_ms(const struct standby *standby)
{
    return saturating_double(DELAY_MS, standby->failures, DELAY_MAX_MS);
}

static void timer_closed(uv_handle_t *handle)
{
    struct standby *standby = handle->data;
    standby->closed(standby->context);
}

/* Neither process nor link is left. */
static void rest_for_delay(struct standby *standby)
{
    uv_timer_stop(&standby->timer);
    heartbeat_close(&standby->heartbeat);
    standby->measuring = standby->hung_up = false;
    standby->how[0] = 0;
    standby->ready_at = 0;
    standby->free_before = standby->device_bytes = STANDBY_UNKNOWN;
    standby->kind = kind_wanted(standby);
    standby->state = standby->kind ? STANDBY_WAITING : STANDBY_OFF;
    if (standby->closing)
        uv_close((uv_handle_t *)&standby->timer, timer_closed);
    else if (standby->kind && standby->serves)
        uv_timer_start(&standby->timer, timer_due, delay_ms(standby), 0);
}

/* ---- giving one up ---- */

static bool hold_nothing(void *context, const struct worker_request_row *row)
{
    (void)context;
    (void)row;
    return false;
}

/* The process ends when its channel does, or is killed. */
static void give_up(struct standby *standby, uint64_t exit_ms)
{
    worker_link_close(standby->link, hold_nothing, NULL);
    standby->link = NULL;
    uv_timer_stop(&standby->timer);
    if (!standby->process) {
        rest_for_delay(standby);
        return;
    }
    standby->state = STANDBY_ENDING;
    worker_process_expire(standby->process, exit_ms);
}

static void note_failure(struct standby *standby, const char *why)
{
    char time[UNITS_TEXT];
    bool proven = standby->ready_at && clock_now() - standby->ready_at >= PROVEN_NS;
    standby->failures = proven ? 1 : standby->failures + 1;
    snprintf(standby->trouble, sizeof standby->trouble, "%s", why);
    log_warning(MESSAGE_TEXT(log_standby_failed), standby->index, why,
                units_format_duration(delay_ms(standby) * UNITS_MS, time));
}

static void process_failed(struct standby *standby, const char *why, uint64_t exit_ms)
{
    if (!standby->link)
        return;
    note_failure(standby, why);
    give_up(standby, exit_ms);
}

/* ---- what it takes of the device ---- */

static void process_start(struct standby *standby);

/* bytes: what is free and what clients are charged for; or STANDBY_UNKNOWN. */
static void note_memory(struct standby *standby, uint64_t bytes)
{
    if (standby->state == STANDBY_WAITING && standby->measuring) {
        standby->free_before = bytes;
        process_start(standby);
    } else if (standby->state == STANDBY_READY && standby->device_bytes == STANDBY_UNKNOWN &&
               standby->free_before != STANDBY_UNKNOWN && bytes != STANDBY_UNKNOWN) {
        standby->device_bytes = saturating_sub(standby->free_before, bytes);
    }
}

static void memory_answered(void *context, const struct worker_answer *answer)
{
    struct standby *standby = context;
    struct proto_worker_memory memory;
    if (answer->outcome != WORKER_ANSWERED) {
        note_memory(standby, STANDBY_UNKNOWN);
        return;
    }
    memcpy(&memory, answer->message->body, sizeof memory);
    note_memory(standby, memory.available + standby->charged->used);
}

static void measure_memory(struct standby *standby)
{
    struct channel_packet question = {.opcode = PROTO_WORKER_MEMORY_QUERY};
    if (!*standby->worker ||
        worker_link_request(*standby->worker, &question, memory_answered, standby) < 0)
        note_memory(standby, STANDBY_UNKNOWN);
}

/* ---- a process that is there ---- */

/* One that ended by itself may have said why: its last messages are read first. */
static void process_ended(void *context, int status)
{
    struct standby *standby = context;
    worker_process_describe(status, standby->how);
    worker_process_free(standby->process);
    standby->process = NULL;
    if (standby->link) {
        worker_link_finish(standby->link);
        return;
    }
    if (standby->hung_up)
        note_failure(standby, standby->how);
    rest_for_delay(standby);
}

static void ask_answered(void *context, const struct worker_answer *answer)
{
    struct standby *standby = context;
    if (answer->outcome == WORKER_ANSWERED)
        standby->asked = false;
}

static uint64_t ask_after(const struct standby *standby)
{
    uint64_t limit = standby->schedule->watchdog_limit_ns / UNITS_MS;
    return limit ? max(limit / 2, UINT64_C(1)) : ASK_MS;
}

/* One that has not answered when the next question is due is of no use. */
static void ask_alive(struct standby *standby)
{
    struct channel_packet question = {.opcode = PROTO_WORKER_BEAT};
    if (standby->asked && standby->schedule->watchdog_limit_ns) {
        process_failed(standby, MESSAGE_TEXT(standby_silent), 0);
        return;
    }
    standby->asked = true;
    worker_link_request(standby->link, &question, ask_answered, standby);
    uv_timer_start(&standby->timer, timer_due, ask_after(standby), 0);
}

static void ready_take(struct standby *standby)
{
    if (standby->state != STANDBY_STARTING)
        return;
    standby->state = STANDBY_READY;
    standby->ready_at = clock_now();
    standby->asked = false;
    log_info(MESSAGE_TEXT(log_standby_ready), standby->index,
             (int)worker_process_pid(standby->process), schedule_standby_name(standby->kind));
    uv_timer_start(&standby->timer, timer_due, ask_after(standby), 0);
    if (standby->free_before != STANDBY_UNKNOWN)
        measure_memory(standby);
}

static void link_notice(void *context, struct channel_message *message)
{
    struct standby *standby = context;
    if (message->header.opcode == PROTO_WORKER_STANDBY) {
        ready_take(standby);
    } else if (message->header.opcode == PROTO_WORKER_FAULT) {
        struct proto_worker_fault fault;
        memcpy(&fault, message->body, sizeof fault);
        process_failed(standby, fault.text, EXIT_MS);
    } else {
        process_failed(standby, MESSAGE_TEXT(standby_unasked), 0);
    }
}

static void link_lost(void *context, const char *why)
{
    struct standby *standby = context;
    if (!why && !standby->process)
        why = standby->how;
    if (why) {
        process_failed(standby, why, 0);
        return;
    }
    standby->hung_up = true;
    give_up(standby, EXIT_MS);
}

static void process_start(struct standby *standby)
{
    const struct worker_link_events events = {
        .notice = link_notice, .lost = link_lost, .context = standby};
    uint64_t limit = schedule_start_limit_ns(standby->schedule) / UNITS_MS;
    int channel;
    standby->measuring = false;
    standby->state = STANDBY_STARTING;
    /* The pace of looks is set when it is the worker. */
    int result = heartbeat_open(&standby->heartbeat, standby->schedule->watchdog_limit_ns);
    if (result == 0)
        result = worker_process_start(&standby->process,
                                      &(struct worker_process_options){
                                          .loop = standby->loop,
                                          .settings = standby->settings,
                                          .found = standby->found,
                                          .activity = standby->heartbeat.page.fd,
                                          .code = standby->code->fd,
                                          .standby = schedule_standby_name(standby->kind),
                                          .events = {.ended = process_ended, .context = standby}},
                                      &channel);
    if (result == 0)
        result = worker_link_open(&standby->link, standby->loop, channel, &events);
    if (result < 0) {
        note_failure(standby, strerror(-result));
        give_up(standby, 0);
    } else if (limit) {
        uv_timer_start(&standby->timer, timer_due, limit, 0);
    }
}

static void measure_first(struct standby *standby)
{
    standby->measuring = true;
    uv_timer_start(&standby->timer, timer_due, MEASURE_MS, 0);
    measure_memory(standby);
}

/* The timer stands for what the state waits for. */
static void timer_due(uv_timer_t *timer)
{
    struct standby *standby = timer->data;
    switch (standby->state) {
    case STANDBY_WAITING:
        if (standby->measuring)
            process_start(standby);
        else
            measure_first(standby);
        break;
    case STANDBY_STARTING:
        process_failed(standby, MESSAGE_TEXT(standby_late), 0);
        break;
    case STANDBY_READY:
        ask_alive(standby);
        break;
    case STANDBY_OFF:
    case STANDBY_ENDING:
        break;
    }
}

/* ---- the caller ---- */

void standby_device_serves(struct standby *standby, bool serves)
{
    standby->serves = serves;
    if (standby->state == STANDBY_WAITING && !standby->closing)
        rest_for_delay(standby);
}

void standby_follow(struct standby *standby)
{
    bool other = kind_wanted(standby) != standby->kind;
    if (standby->link && other)
        give_up(standby, EXIT_MS);
    else if (!standby->process && other)
        rest_for_delay(standby);
}

bool standby_take(struct standby *standby, struct standby_worker *worker)
{
    if (standby->state != STANDBY_READY) {
        if (standby->link)
            give_up(standby, 0);
        return false;
    }
    *worker = (struct standby_worker){standby->process, standby->link, standby->heartbeat};
    standby->process = NULL;
    standby->link = NULL;
    standby->heartbeat = (struct heartbeat){.page = SHM_NONE};
    standby->takeovers++;
    standby->failures = 0;
    rest_for_delay(standby);
    return true;
}

void standby_failed_as_worker(struct standby *standby, const char *why)
{
    note_failure(standby, why);
}

uint64_t standby_resident(const struct standby *standby)
{
    char path[64];
    uint64_t whole, resident;
    if (!standby->process || worker_process_pid(standby->process) <= 0)
        return STANDBY_UNKNOWN;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)worker_process_pid(standby->process));
    FILE *file = fopen(path, "re");
    if (!file)
        return STANDBY_UNKNOWN;
    int read = fscanf(file, "%" SCNu64 " %" SCNu64, &whole, &resident);
    fclose(file);
    return read == 2 ? resident * machine_page() : STANDBY_UNKNOWN;
}

void standby_close(struct standby *standby)
{
    if (standby->closing)
        return;
    standby->closing = true;
    if (standby->link)
        give_up(standby, EXIT_MS);
    else if (!standby->process)
        rest_for_delay(standby);
}
