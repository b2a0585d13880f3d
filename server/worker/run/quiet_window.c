/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/run/quiet_window.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/messages.h"
#include "common/util.h"
#include "server/worker/calls/activity.h"
#include "server/worker/worker.h"

/* How often the end of the last work is looked for: the device idles that long. */
#define DRAIN_LOOK_NS 50000
/* How often a device with work is looked at while the calls that wait may not ask: a client that
 * pauses is a window that costs nothing. */
#define CHANCE_NS (2 * UNITS_MS)
/* When this time is over no other call of a window is begun; what is left has the next one. Clients
 * with kernels of a millisecond run some in between. Where draining took longer, so may the calls,
 * up to CALLS_MAX_NS: windows that are dear are few. */
#define CALLS_NS     (8 * UNITS_MS)
#define CALLS_MAX_NS (100 * UNITS_MS)

/* ---- what runs ---- */

/* Describes the client's work on the device. Returns false if there is none. */
static bool expect_client(struct client *client, uint64_t now, struct quiet_work *work)
{
    bool any = false;
    *work = (struct quiet_work){.client = client->number};
    client_lock(client);
    uint32_t batch = client->gate.batch;
    for (uint32_t i = bits_next(client->shared.busy, 0, client->stream_count);
         i < client->stream_count;
         i = bits_next(client->shared.busy, i + 1, client->stream_count)) {
        const struct client_stream *stream = &client->streams[i];
        uint64_t written = client_stream_written(stream), reached = client_stream_reached(stream);
        if (reached >= written)
            continue;
        struct work_expected expected = work_length_expect(&client->shared.length, &stream->work,
                                                           written - reached, batch, now);
        any = true;
        work->left_ns = max(work->left_ns, expected.left_ns);
        work->likely_ns = max(work->likely_ns, expected.likely_ns);
        work->overdue |= expected.overdue;
    }
    pthread_mutex_unlock(&client->lock);
    return any;
}

/* Without memory for its row a client's work is others': it is waited for, without an expectation.
 */
static void see_scene(struct quiet_window *window, uint64_t now, struct quiet_scene *scene)
{
    struct worker *worker = window->worker;
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        struct client *client = worker->clients[i];
        struct quiet_work work;
        if (!expect_client(client, now, &work))
            continue;
        work.level = gate_level(&worker->gate, client);
        if (array_reserve(window->works, window->room, (size_t)scene->count + 1) < 0)
            scene->others = true;
        else
            window->works[scene->count++] = work;
    }
    pthread_mutex_unlock(&worker->clients_lock);
    scene->works = window->works;
}

static void note_asking(void *context, const struct quiet_caller *caller, uint64_t asks_at)
{
    struct quiet_asker *asker = (struct quiet_asker *)context + quiet_user(caller->owner);
    asker->asked_at = min(asker->asked_at, asks_at);
    asker->level = min(asker->level, caller->level);
    asker->restores |= caller->restores;
}

/* The call whose turn it is. If no call may ask, the oldest stands for those that ride along. Under
 * the window's lock. */
static void choose_asker(struct quiet_window *window, const struct quiet_calls_view *view,
                         uint64_t now, struct quiet_scene *scene)
{
    struct quiet_asker askers[QUIET_USERS];
    for (uint32_t i = 0; i < QUIET_USERS; i++)
        askers[i] = (struct quiet_asker){.asked_at = QUIET_NEVER, .level = UINT32_MAX};
    quiet_calls_each_asking(&window->worker->quiet_calls, now, note_asking, askers);
    uint32_t asks = quiet_choose(&window->quiet, askers);
    scene->asked |= asks < QUIET_USERS;
    scene->user = asks < QUIET_USERS ? asks : quiet_user(view->owner);
    scene->asked_at = min(askers[scene->user].asked_at, now);
    scene->level = askers[scene->user].level;
    scene->restores = asks < QUIET_USERS && askers[asks].restores;
}

/* ---- what the decision says ---- */

/* After this no client submits: each of them is between two visits once its lock was had. */
static void hold_clients(struct quiet_window *window)
{
    struct worker *worker = window->worker;
    window->holds = true;
    quiet_calls_shut(&worker->quiet_calls, true);
    gate_pause(&worker->gate);
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++) {
        client_lock(worker->clients[i]);
        pthread_mutex_unlock(&worker->clients[i]->lock);
    }
    pthread_mutex_unlock(&worker->clients_lock);
}

static void mark_all(struct worker *worker)
{
    pthread_mutex_lock(&worker->clients_lock);
    for (uint32_t i = 0; i < worker->client_count; i++)
        client_signal_submitter(worker->clients[i]);
    pthread_mutex_unlock(&worker->clients_lock);
    wake_submitter(&worker->wake);
}

/* Returns when a client first waited for this; QUIET_NEVER: none did. */
static uint64_t let_go(struct quiet_window *window)
{
    struct worker *worker = window->worker;
    window->holds = false;
    uint64_t wanted = gate_resume(&worker->gate);
    quiet_calls_shut(&worker->quiet_calls, false);
    mark_all(worker);
    worker_reschedule(worker);
    return wanted;
}

static void set_width(struct quiet_window *window, enum quiet_width width)
{
    struct worker *worker = window->worker;
    window->width = width;
    gate_narrow(&worker->gate, width == QUIET_WIDE    ? GATE_WIDE
                               : width == QUIET_SHORT ? QUIET_SHORT_NS
                                                      : 0);
    mark_all(worker);
}

static void make_calls(struct quiet_window *window)
{
    struct worker *worker = window->worker;
    uint64_t now = clock_now(), drained = now - window->quiet.attempt;
    uint64_t end = now + min(max(drained, CALLS_NS), CALLS_MAX_NS);
    uint32_t owner;
    while (now < end && quiet_calls_make_next(&worker->quiet_calls, now, &owner)) {
        now = clock_now();
        pthread_mutex_lock(&window->lock);
        quiet_made(&window->quiet, quiet_user(owner), now);
        pthread_mutex_unlock(&window->lock);
    }
    uint64_t over = clock_now(), wanted = let_go(window);
    pthread_mutex_lock(&window->lock);
    quiet_end(&window->quiet, wanted, over);
    pthread_mutex_unlock(&window->lock);
}

/* While a call waits, a lease that ends is an occasion. */
static void await_leases(struct quiet_window *window, bool any)
{
    if (any != window->stops)
        gate_stop_between(&window->worker->gate, any);
    window->stops = any;
}

/* One look, and what follows from it. Returns when to look again. */
static uint64_t look_once(struct quiet_window *window)
{
    struct worker *worker = window->worker;
    uint64_t now = clock_now();
    struct quiet_calls_view view;
    struct quiet_scene scene = {0};
    quiet_calls_look(&worker->quiet_calls, now, &view);
    await_leases(window, view.any);
    scene.between = gate_is_between(&worker->gate);
    if (scene.between && !window->holds)
        hold_clients(window);
    if (view.any)
        see_scene(window, now, &scene);
    scene.others |= view.working;
    /* A device without work is nobody's loss, so then those ride along that may not ask yet. */
    scene.asked = view.asks || (view.any && scene.count == 0 && !scene.others);
    pthread_mutex_lock(&window->lock);
    choose_asker(window, &view, now, &scene);
    quiet_look(&window->quiet, &scene, now);
    enum quiet_state state = window->quiet.state;
    enum quiet_width width = window->quiet.width;
    uint64_t next = window->quiet.next;
    pthread_mutex_unlock(&window->lock);
    if (width != window->width)
        set_width(window, width);
    if (state >= QUIET_DRAINING && !window->holds) {
        hold_clients(window);
        return 0;
    }
    if (state == QUIET_OPEN) {
        make_calls(window);
        return 0;
    }
    if (state < QUIET_DRAINING && window->holds)
        let_go(window);
    if (state == QUIET_DRAINING)
        return now + DRAIN_LOOK_NS;
    return state == QUIET_RESTING && view.any ? min(view.asks_next, now + CHANCE_NS) : next;
}

static void *quiet_window_main(void *argument)
{
    struct quiet_window *window = argument;
    struct worker *worker = window->worker;
    uint64_t next = QUIET_NEVER;
    activity_begin(ACTIVITY_QUIET);
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    cuda_result result = gpu_enter(&worker->gpu);
    if (result != CUDA_OK)
        worker_fail(worker, result, CONTEXT_LOSS_ENTERING);
    while (result == CUDA_OK && quiet_calls_wait(&worker->quiet_calls, next))
        next = look_once(window);
    await_leases(window, false);
    if (window->holds || gate_is_between(&worker->gate))
        let_go(window);
    return NULL;
}

/* ---- for the other threads ---- */

uint32_t quiet_window_start(struct quiet_window *window, struct worker *worker, struct error *why)
{
    struct quiet_settings settings;
    *window = (struct quiet_window){.worker = worker};
    quiet_defaults(&settings);
    quiet_begin(&window->quiet, &settings, clock_now());
    pthread_mutex_init(&window->lock, NULL);
    int error = thread_start(&window->thread, "quiet", quiet_window_main, window);
    if (error) {
        pthread_mutex_destroy(&window->lock);
        return error_set(why, MESSAGE(quiet_thread), strerror(error));
    }
    return 0;
}

void quiet_window_stop(struct quiet_window *window)
{
    if (!window->thread.running)
        return;
    quiet_calls_stop(&window->worker->quiet_calls);
    thread_join(&window->thread);
}

void quiet_window_close(struct quiet_window *window)
{
    pthread_mutex_destroy(&window->lock);
    free(window->works);
    window->works = NULL;
}

void quiet_window_set_limit(struct quiet_window *window, uint64_t limit_ns)
{
    pthread_mutex_lock(&window->lock);
    quiet_set_limit(&window->quiet, limit_ns);
    pthread_mutex_unlock(&window->lock);
}

uint32_t quiet_window_waits_for(struct quiet_window *window)
{
    pthread_mutex_lock(&window->lock);
    uint32_t client = window->quiet.waits_for;
    pthread_mutex_unlock(&window->lock);
    return client;
}

void quiet_window_counts(struct quiet_window *window, uint32_t *windows, uint64_t *nanoseconds)
{
    pthread_mutex_lock(&window->lock);
    *windows = (uint32_t)window->quiet.windows;
    *nanoseconds = window->quiet.taken_ns;
    pthread_mutex_unlock(&window->lock);
}
