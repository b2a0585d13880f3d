/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/calls/wake.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

void wake_open(struct wake *wake)
{
    wake->control_event = wake->submitter_event = -1;
    atomic_store(&wake->submitter_noted, 0);
    atomic_store(&wake->submitter_asleep, 0);
    atomic_store(&wake->submitter_until, 0);
    atomic_store(&wake->completer_bell, 0);
    atomic_store(&wake->completer_rest, WAKE_POLLING);
}

static int open_event(int *event)
{
    *event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return *event < 0 ? -errno : 0;
}

static void close_event(int *event)
{
    if (*event >= 0)
        close(*event);
    *event = -1;
}

/* A full counter wakes the reader too, so a failed write needs no answer. */
static void write_event(int event)
{
    uint64_t one = 1;
    ssize_t written = write(event, &one, sizeof one);
    (void)written;
}

int wake_control_open(struct wake *wake)
{
    return open_event(&wake->control_event);
}

int wake_submitter_open(struct wake *wake)
{
    return open_event(&wake->submitter_event);
}

void wake_close(struct wake *wake)
{
    close_event(&wake->control_event);
    close_event(&wake->submitter_event);
}

/* ---- the control thread ---- */

void wake_control(struct wake *wake)
{
    write_event(wake->control_event);
}

void wake_control_taken(struct wake *wake)
{
    uint64_t count;
    ssize_t got = read(wake->control_event, &count, sizeof count);
    (void)got;
}

/* ---- the submitter ---- */

bool wake_submitter_sleeps(const struct wake *wake)
{
    return atomic_load(&wake->submitter_asleep);
}

void wake_submitter(struct wake *wake)
{
    atomic_store(&wake->submitter_noted, 1);
    if (wake_submitter_sleeps(wake))
        write_event(wake->submitter_event);
}

void wake_submitter_before(struct wake *wake, uint64_t next)
{
    if (next < atomic_load(&wake->submitter_until) && wake_submitter_sleeps(wake))
        write_event(wake->submitter_event);
}

bool wake_submitter_rests(struct wake *wake, uint64_t until)
{
    atomic_store(&wake->submitter_until, until);
    atomic_store(&wake->submitter_asleep, 1);
    /* Read after the flag is up: a thread that sets the note later sees the flag and writes the
     * eventfd. */
    return !atomic_load(&wake->submitter_noted);
}

void wake_submitter_up(struct wake *wake)
{
    atomic_store(&wake->submitter_asleep, 0);
}

/* ---- the completer ---- */

void wake_completer_always(struct wake *wake)
{
    atomic_fetch_add(&wake->completer_bell, 1);
    syscall(SYS_futex, &wake->completer_bell, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void wake_completer(struct wake *wake, bool urgent)
{
    uint32_t how = atomic_load(&wake->completer_rest);
    if (how == WAKE_ASLEEP || (urgent && how == WAKE_TICKING))
        wake_completer_always(wake);
}

uint32_t wake_completer_rests(struct wake *wake, enum wake_rest how)
{
    /* The bell is read before the announcement: a ring after that changes the bell, and the futex
     * does not wait. */
    uint32_t seen = atomic_load(&wake->completer_bell);
    atomic_store(&wake->completer_rest, how);
    return seen;
}

void wake_completer_pause(struct wake *wake, uint32_t seen, uint64_t nanoseconds)
{
    struct timespec limit = clock_timespec(nanoseconds);
    syscall(SYS_futex, &wake->completer_bell, FUTEX_WAIT_PRIVATE, seen, nanoseconds ? &limit : NULL,
            NULL, 0);
}

void wake_completer_up(struct wake *wake)
{
    atomic_store(&wake->completer_rest, WAKE_POLLING);
}
