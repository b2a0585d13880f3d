/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/worker/heartbeat.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/messages.h"
#include "common/units.h"
#include "common/util.h"

#define INTERVAL_MIN_NS (25 * UNITS_MS)
#define INTERVAL_MAX_NS UNITS_SECOND
/* A worker without work is looked at this much less often: idle threads cost nothing. */
#define IDLE_INTERVALS 4

int heartbeat_open(struct heartbeat *heartbeat, uint64_t shortest_ns)
{
    heartbeat_close(heartbeat);
    heartbeat_retime(heartbeat, shortest_ns);
    return shm_create(&heartbeat->page, "gpushare-activity", sizeof(struct activity_page));
}

void heartbeat_adopt(struct heartbeat *heartbeat, int fd, uint64_t shortest_ns)
{
    heartbeat_close(heartbeat);
    heartbeat_retime(heartbeat, shortest_ns);
    if (shm_adopt(&heartbeat->page, fd, sizeof(struct activity_page), true) < 0)
        close(fd);
}

void heartbeat_retime(struct heartbeat *heartbeat, uint64_t shortest_ns)
{
    heartbeat->interval_ns =
        min(max(shortest_ns / 2, (uint64_t)INTERVAL_MIN_NS), (uint64_t)INTERVAL_MAX_NS);
    heartbeat->next_ns = heartbeat->interval_ns;
}

void heartbeat_close(struct heartbeat *heartbeat)
{
    if (heartbeat->page.base)
        shm_release(&heartbeat->page);
    *heartbeat = (struct heartbeat){.page = SHM_NONE};
}

static bool is_alive(const struct heartbeat *heartbeat, enum activity_thread thread)
{
    struct activity_page *page = heartbeat->page.base;
    const struct activity_slot *slot = &page->thread[thread];
    /* Thousands of requests may lie before the question. A thread that works them off is alive. */
    if (thread == ACTIVITY_CONTROL && !heartbeat->outstanding)
        return true;
    return atomic_load_explicit(&slot->rests, memory_order_relaxed) ||
           atomic_load_explicit(&slot->beat, memory_order_relaxed) ==
               atomic_load_explicit(&page->asked, memory_order_relaxed);
}

static bool all_rest(const struct heartbeat *heartbeat)
{
    const struct activity_page *page = heartbeat->page.base;
    for (unsigned i = ACTIVITY_CONTROL + 1; i < ACTIVITY_SERVING; i++)
        if (!atomic_load_explicit(&page->thread[i].rests, memory_order_relaxed))
            return false;
    return true;
}

bool heartbeat_look(struct heartbeat *heartbeat, uint64_t now)
{
    struct activity_page *page = heartbeat->page.base;
    /* A look that comes late tells nothing about the worker in the time beyond. */
    uint64_t passed = heartbeat->looked_at ? saturating_sub(now, heartbeat->looked_at) : 0;
    passed = min(passed, 2 * heartbeat->next_ns);
    heartbeat->looked_at = now;
    for (unsigned i = 0; i < ACTIVITY_SERVING; i++)
        heartbeat->lag_ns[i] =
            is_alive(heartbeat, (enum activity_thread)i) ? 0 : heartbeat->lag_ns[i] + passed;
    bool ask = !heartbeat->outstanding;
    atomic_fetch_add_explicit(&page->asked, 1, memory_order_relaxed);
    heartbeat->next_ns = heartbeat->interval_ns;
    heartbeat->outstanding = true;
    return ask;
}

void heartbeat_answered(struct heartbeat *heartbeat)
{
    heartbeat->outstanding = false;
    heartbeat->next_ns = heartbeat->interval_ns * (all_rest(heartbeat) ? IDLE_INTERVALS : 1);
}

/* The thread that has been silent for longest. */
static enum activity_thread most_silent(const struct heartbeat *heartbeat)
{
    unsigned most = ACTIVITY_CONTROL;
    for (unsigned i = 0; i < ACTIVITY_SERVING; i++)
        if (heartbeat->lag_ns[i] > heartbeat->lag_ns[most])
            most = i;
    return (enum activity_thread)most;
}

uint64_t heartbeat_silent_ns(const struct heartbeat *heartbeat)
{
    return heartbeat->lag_ns[most_silent(heartbeat)];
}

/* Whether the kernel shows the process as stopped or traced. */
static bool is_stopped(pid_t pid)
{
    char path[32], line[128] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    /* "PID (NAME) STATE ...", and the name may hold anything. */
    const char *read = fgets(line, sizeof line, file);
    fclose(file);
    const char *end = read ? strrchr(line, ')') : NULL;
    return end && end[1] == ' ' && (end[2] == 'T' || end[2] == 't');
}

static const char *call_of(const struct heartbeat *heartbeat, enum activity_thread thread)
{
    const struct activity_page *page = heartbeat->page.base;
    return activity_call_name(
        atomic_load_explicit(&page->thread[thread].call, memory_order_relaxed));
}

/* A thread that hangs in a call holds up others, which wait for its locks: of those that are
 * silent, one that is in a call is the cause. */
static enum activity_thread find_cause(const struct heartbeat *heartbeat)
{
    unsigned cause = most_silent(heartbeat);
    for (unsigned i = 0; i < ACTIVITY_SERVING; i++) {
        bool called = call_of(heartbeat, (enum activity_thread)cause) != NULL;
        if (heartbeat->lag_ns[i] && call_of(heartbeat, (enum activity_thread)i) &&
            (!called || heartbeat->lag_ns[i] > heartbeat->lag_ns[cause]))
            cause = i;
    }
    return (enum activity_thread)cause;
}

const char *heartbeat_explain(const struct heartbeat *heartbeat, pid_t pid,
                              char text[HEARTBEAT_TEXT])
{
    enum activity_thread thread = find_cause(heartbeat);
    const char *call = call_of(heartbeat, thread), *name = activity_thread_name(thread);
    if (is_stopped(pid))
        snprintf(text, HEARTBEAT_TEXT, MESSAGE_TEXT(silence_stopped));
    else if (call)
        snprintf(text, HEARTBEAT_TEXT, MESSAGE_TEXT(silence_in), name, call);
    else
        snprintf(text, HEARTBEAT_TEXT, MESSAGE_TEXT(silence_outside), name);
    return text;
}

unsigned heartbeat_calls(const struct heartbeat *heartbeat, uint64_t now, uint64_t least_ns,
                         struct heartbeat_call calls[ACTIVITY_THREADS])
{
    const struct activity_page *page = heartbeat->page.base;
    unsigned count = 0;
    for (unsigned i = 0; page && i < ACTIVITY_THREADS; i++) {
        uint64_t called_at = atomic_load_explicit(&page->thread[i].called_at, memory_order_relaxed);
        const char *name = call_of(heartbeat, (enum activity_thread)i);
        if (name && called_at && saturating_sub(now, called_at) > least_ns)
            calls[count++] = (struct heartbeat_call){.thread = (enum activity_thread)i,
                                                     .name = name,
                                                     .ns = saturating_sub(now, called_at)};
    }
    return count;
}

uint32_t heartbeat_count(const struct heartbeat *heartbeat, enum activity_count what)
{
    const struct activity_page *page = heartbeat->page.base;
    return page ? atomic_load_explicit(&page->count[what], memory_order_relaxed) : 0;
}
