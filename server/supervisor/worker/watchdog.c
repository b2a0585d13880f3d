/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/watchdog.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/util.h"

static void timer_due(uv_timer_t *timer);

static uint64_t shortest_silence(const struct watchdog *watchdog)
{
    uint64_t warning = watchdog->schedule->watchdog_warning_ns;
    uint64_t limit = watchdog->schedule->watchdog_limit_ns;
    return warning && limit ? min(warning, limit) : max(warning, limit);
}

static bool is_watched(const struct watchdog *watchdog)
{
    return watchdog->heartbeat.page.base && shortest_silence(watchdog);
}

void watchdog_open(struct watchdog *watchdog)
{
    watchdog->phase = WATCHDOG_RESTS;
    watchdog->silent = false;
    watchdog->heartbeat = (struct heartbeat){.page = SHM_NONE};
    uv_timer_init(watchdog->loop, &watchdog->timer);
    watchdog->timer.data = watchdog;
}

int watchdog_make_page(struct watchdog *watchdog)
{
    return heartbeat_open(&watchdog->heartbeat, shortest_silence(watchdog));
}

void watchdog_take_heartbeat(struct watchdog *watchdog, const struct heartbeat *heartbeat)
{
    heartbeat_close(&watchdog->heartbeat);
    watchdog->heartbeat = *heartbeat;
    heartbeat_retime(&watchdog->heartbeat, shortest_silence(watchdog));
}

void watchdog_adopt_page(struct watchdog *watchdog, int fd)
{
    heartbeat_adopt(&watchdog->heartbeat, fd, shortest_silence(watchdog));
}

const char *watchdog_silence(const struct watchdog *watchdog, char text[UNITS_TEXT])
{
    return units_format_duration(units_tenth_passed(heartbeat_silent_ns(&watchdog->heartbeat)),
                                 text);
}

const char *watchdog_explain(const struct watchdog *watchdog, char text[HEARTBEAT_TEXT])
{
    const struct worker_process *process = *watchdog->process;
    return heartbeat_explain(&watchdog->heartbeat, process ? worker_process_pid(process) : 0, text);
}

/* ---- a worker that serves ---- */

static void look_later(struct watchdog *watchdog)
{
    uv_timer_start(&watchdog->timer, timer_due, watchdog->heartbeat.next_ns / UNITS_MS, 0);
}

/* The worker has fallen silent, or is not called silent any more: it speaks again, or an
 * administrator allows it a longer silence. */
static void note_silence(struct watchdog *watchdog, bool silent)
{
    char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
    if (silent == watchdog->silent)
        return;
    watchdog->silent = silent;
    if (silent) {
        log_about_device(watchdog->index);
        log_warning(MESSAGE_TEXT(log_worker_silent), watchdog->index,
                    watchdog_silence(watchdog, time), watchdog_explain(watchdog, text));
        return;
    }
    if (!heartbeat_silent_ns(&watchdog->heartbeat))
        log_notice(MESSAGE_TEXT(log_worker_answers), watchdog->index);
    watchdog->speaks(watchdog->context);
}

static void timer_due(uv_timer_t *timer)
{
    struct watchdog *watchdog = timer->data;
    const struct schedule *schedule = watchdog->schedule;
    char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
    struct error why;
    bool ask = heartbeat_look(&watchdog->heartbeat, clock_now());
    uint64_t silent = heartbeat_silent_ns(&watchdog->heartbeat);
    if (schedule->watchdog_limit_ns && silent >= schedule->watchdog_limit_ns) {
        error_set(&why, MESSAGE(worker_silent), watchdog->index, watchdog_silence(watchdog, time),
                  watchdog_explain(watchdog, text));
        watchdog->expired(watchdog->context, &why);
        return;
    }
    note_silence(watchdog,
                 schedule->watchdog_warning_ns && silent >= schedule->watchdog_warning_ns);
    look_later(watchdog);
    if (ask)
        watchdog->ask(watchdog->context);
}

void watchdog_answered(struct watchdog *watchdog)
{
    heartbeat_answered(&watchdog->heartbeat);
    if (is_watched(watchdog))
        look_later(watchdog);
}

void watchdog_serving(struct watchdog *watchdog)
{
    watchdog->phase = WATCHDOG_SERVING;
    if (is_watched(watchdog))
        look_later(watchdog);
    else
        uv_timer_stop(&watchdog->timer);
}

/* ---- a worker that starts ---- */

static void start_late(uv_timer_t *timer)
{
    struct watchdog *watchdog = timer->data;
    char text[HEARTBEAT_TEXT], time[UNITS_TEXT];
    struct error why;
    error_set(&why, MESSAGE(worker_start_silent), watchdog->index,
              units_format_duration(schedule_start_limit_ns(watchdog->schedule), time),
              watchdog_explain(watchdog, text));
    log_about_device(watchdog->index);
    log_sentence(LOG_LEVEL_ERROR, &why);
    watchdog->expired(watchdog->context, &why);
}

void watchdog_starting(struct watchdog *watchdog, uint64_t start_at)
{
    uint64_t limit = schedule_start_limit_ns(watchdog->schedule);
    uint64_t left = saturating_sub(limit, clock_now() - start_at);
    watchdog->phase = WATCHDOG_STARTING;
    watchdog->start_at = start_at;
    if (limit && watchdog->heartbeat.page.base)
        uv_timer_start(&watchdog->timer, start_late, left / UNITS_MS, 0);
    else
        uv_timer_stop(&watchdog->timer);
}

/* ---- changes ---- */

void watchdog_rest(struct watchdog *watchdog)
{
    watchdog->phase = WATCHDOG_RESTS;
    watchdog->silent = false;
    uv_timer_stop(&watchdog->timer);
}

void watchdog_follow(struct watchdog *watchdog)
{
    heartbeat_retime(&watchdog->heartbeat, shortest_silence(watchdog));
    if (watchdog->phase == WATCHDOG_STARTING) {
        watchdog_starting(watchdog, watchdog->start_at);
    } else if (watchdog->phase == WATCHDOG_SERVING && is_watched(watchdog)) {
        uv_timer_start(&watchdog->timer, timer_due, 0, 0);
    } else if (watchdog->phase == WATCHDOG_SERVING) {
        uv_timer_stop(&watchdog->timer);
        note_silence(watchdog, false);
    }
}

static void timer_closed(uv_handle_t *handle)
{
    struct watchdog *watchdog = handle->data;
    heartbeat_close(&watchdog->heartbeat);
    watchdog->closed(watchdog->context);
}

void watchdog_close(struct watchdog *watchdog)
{
    uv_close((uv_handle_t *)&watchdog->timer, timer_closed);
}
