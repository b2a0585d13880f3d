/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/loop/events.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "common/units.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct event kept[EVENTS_KEPT]; /* under the lock: an event at the remainder of its number */
static uint64_t latest;                /* under the lock */

static void note(enum log_level level, const char *text)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&lock);
    struct event *event = &kept[++latest % EVENTS_KEPT];
    event->number = latest;
    event->moment_ns = (uint64_t)now.tv_sec * UNITS_SECOND + (uint64_t)now.tv_nsec;
    event->level = level;
    snprintf(event->text, sizeof event->text, "%s", text);
    pthread_mutex_unlock(&lock);
}

void events_begin(void)
{
    log_observe(note);
}

uint64_t events_latest(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t number = latest;
    pthread_mutex_unlock(&lock);
    return number;
}

bool events_next(uint64_t after, struct event *event)
{
    pthread_mutex_lock(&lock);
    const uint64_t lost = latest > EVENTS_KEPT ? latest - EVENTS_KEPT : 0;
    const bool found = after < latest;
    if (found)
        *event = kept[((after > lost ? after : lost) + 1) % EVENTS_KEPT];
    pthread_mutex_unlock(&lock);
    return found;
}
