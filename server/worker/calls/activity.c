/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/activity.h"

#include <errno.h>
#include <sys/mman.h>

static struct activity_page own;
static struct activity_page *page = &own;
_Thread_local struct activity_slot *activity_own;
static struct cuda_driver real;

int activity_open(int fd)
{
    void *mapped = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    page = mapped;
    return 0;
}

void activity_begin(enum activity_thread thread)
{
    activity_own = &page->thread[thread];
}

void activity_beat(void)
{
    if (!activity_own)
        return;
    uint32_t asked = atomic_load_explicit(&page->asked, memory_order_relaxed);
    if (atomic_load_explicit(&activity_own->beat, memory_order_relaxed) != asked)
        atomic_store_explicit(&activity_own->beat, asked, memory_order_relaxed);
}

void activity_rest(bool rests)
{
    if (activity_own)
        atomic_store_explicit(&activity_own->rests, rests, memory_order_relaxed);
}

/* Without the time: the submitter is silent for as long as the call lasts, and that is counted. */
void activity_batch(bool begins)
{
    if (activity_own)
        atomic_store_explicit(&activity_own->call, begins ? ACTIVITY_BATCH : ACTIVITY_NO_CALL,
                              memory_order_relaxed);
}

void activity_add(enum activity_count what)
{
    atomic_fetch_add_explicit(&page->count[what], 1, memory_order_relaxed);
}

void activity_subtract(enum activity_count what)
{
    atomic_fetch_sub_explicit(&page->count[what], 1, memory_order_relaxed);
}

/* Returns what the thread was in, since a batch of the submitter may make such a call. */
static uint32_t call_begin(enum activity_call call)
{
    if (!activity_own)
        return ACTIVITY_NO_CALL;
    uint32_t before = atomic_load_explicit(&activity_own->call, memory_order_relaxed);
    atomic_store_explicit(&activity_own->called_at, clock_now(), memory_order_relaxed);
    atomic_store_explicit(&activity_own->call, call, memory_order_relaxed);
    return before;
}

static cuda_result call_end(uint32_t before, cuda_result result)
{
    if (!activity_own)
        return result;
    atomic_store_explicit(&activity_own->call, before, memory_order_relaxed);
    atomic_store_explicit(&activity_own->called_at, 0, memory_order_relaxed);
    return result;
}

/* One function for each watched entry, and the list of them. */
#include "activity_calls.inc"
#include "common/clock.h"
_Static_assert(ACTIVITY_ENTRIES_READ == ACTIVITY_CALLS - ACTIVITY_BATCH - 1,
               "the program that writes the list has read every entry");

void activity_watch(struct cuda_driver *driver)
{
    real = *driver;
#define X(name)                                                                                    \
    if (driver->name)                                                                              \
        driver->name = watched_##name;
    ACTIVITY_WATCHED(X)
#undef X
}
