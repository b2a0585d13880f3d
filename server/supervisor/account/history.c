/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/history.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/util.h"

void history_close(struct history *history)
{
    for (size_t i = 0; i < history->user_count; i++)
        free(history->users[i]);
    free(history->users);
    free(history->faults);
    memset(history, 0, sizeof *history);
}

/* ---- users ---- */

void history_use_read(struct history_use *use, const struct proto_worker_usage *usage)
{
    *use = (struct history_use){
        .launches = usage->launches,
        .copies = usage->copies,
        .copied_bytes = usage->copied_bytes,
        .gpu_ns = usage->gpu_nanoseconds,
        .charged_ns = usage->charged,
        .throttled_ns = {[PROTO_HOLD_LEASE] = usage->throttled_lease,
                         [PROTO_HOLD_DUTY] = usage->throttled_duty,
                         [PROTO_HOLD_PRIORITY] = usage->throttled_priority,
                         [PROTO_HOLD_THREADS] = usage->throttled_threads},
    };
    memcpy(use->waits, usage->waits, sizeof use->waits);
    memcpy(use->latencies, usage->latencies, sizeof use->latencies);
}

void history_use_add(struct history_use *sum, const struct history_use *use)
{
    sum->launches += use->launches;
    sum->copies += use->copies;
    sum->copied_bytes += use->copied_bytes;
    sum->gpu_ns += use->gpu_ns;
    sum->charged_ns += use->charged_ns;
    for (uint32_t i = 0; i < PROTO_HOLD_COUNT; i++)
        sum->throttled_ns[i] += use->throttled_ns[i];
    for (uint32_t i = 0; i < LATENCY_BUCKETS; i++) {
        sum->waits[i] += use->waits[i];
        sum->latencies[i] += use->latencies[i];
    }
}

/* Where the row is, or belongs. */
static size_t place_of(const struct history *history, uint32_t device, uint32_t uid)
{
    size_t low = 0, high = history->user_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct history_user *row = history->users[middle];
        if (row->device < device || (row->device == device && row->uid < uid))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* NULL: there is no memory. */
static struct history_user *row_make(struct history *history, size_t at, uint32_t device,
                                     uint32_t uid)
{
    struct history_user *row = calloc(1, sizeof *row);
    if (!row || array_reserve(history->users, history->user_room, history->user_count + 1) < 0) {
        free(row);
        return NULL;
    }
    row->device = device;
    row->uid = uid;
    memmove(&history->users[at + 1], &history->users[at],
            (history->user_count - at) * sizeof *history->users);
    history->users[at] = row;
    history->user_count++;
    return row;
}

static bool is_row_of(const struct history *history, size_t at, uint32_t device, uint32_t uid)
{
    return at < history->user_count && history->users[at]->device == device &&
           history->users[at]->uid == uid;
}

static struct history_user *row_of(struct history *history, uint32_t device, uint32_t uid)
{
    size_t at = place_of(history, device, uid);
    if (is_row_of(history, at, device, uid))
        return history->users[at];
    if (history->user_count < HISTORY_USERS_MAX || uid == HISTORY_NOBODY)
        return row_make(history, at, device, uid);
    return row_of(history, device, HISTORY_NOBODY);
}

void history_leave(struct history *history, uint32_t device, uint32_t uid,
                   const struct history_use *use)
{
    static const struct history_use nothing;
    /* Attempts to attach leave no rows, of which there are so many. */
    struct history_user *row =
        memcmp(use, &nothing, sizeof nothing) ? row_of(history, device, uid) : NULL;
    if (row)
        history_use_add(&row->left, use);
}

void history_count_begin(struct history *history)
{
    for (size_t i = 0; i < history->user_count; i++) {
        struct history_user *row = history->users[i];
        memset(&row->now, 0, sizeof row->now);
        row->clients = 0;
        row->memory = 0;
    }
}

void history_count(struct history *history, uint32_t device, uint32_t uid,
                   const struct history_use *use, uint64_t memory)
{
    struct history_user *row = row_of(history, device, uid);
    if (!row)
        return;
    history_use_add(&row->now, use);
    row->clients++;
    row->memory += memory;
}

/* ---- faults and devices ---- */

static struct history_fault *fault_of(const struct history *history, uint32_t device, uint32_t uid,
                                      uint32_t error)
{
    for (size_t i = 0; i < history->fault_count; i++) {
        struct history_fault *row = &history->faults[i];
        if (row->device == device && row->uid == uid && row->error == error)
            return row;
    }
    return NULL;
}

void history_fault(struct history *history, uint32_t device, uint32_t uid, uint32_t error)
{
    struct history_fault *row = fault_of(history, device, uid, error);
    if (!row && uid != HISTORY_NOBODY && history->authors >= HISTORY_FAULTS_MAX) {
        history_fault(history, device, HISTORY_NOBODY, error);
        return;
    }
    if (!row) {
        if (array_reserve(history->faults, history->fault_room, history->fault_count + 1) < 0)
            return;
        row = &history->faults[history->fault_count++];
        *row = (struct history_fault){.device = device, .uid = uid, .error = error};
        history->authors += uid != HISTORY_NOBODY;
    }
    row->count++;
}

void history_overrun(struct history *history, uint32_t device, uint32_t uid, uint32_t error)
{
    history_fault(history, device, uid, error);
    history->devices[device].overran = true;
}

void history_lose(struct history *history, uint32_t device, uint32_t uid, uint32_t error,
                  uint64_t lost_at)
{
    struct history_device *row = &history->devices[device];
    if (lost_at == row->lost_at)
        return;
    row->lost_at = lost_at;
    if (!row->overran)
        history_fault(history, device, uid, error);
    row->overran = false;
}

void history_recover(struct history *history, uint32_t device, uint64_t lost_at, uint64_t ready_at)
{
    struct history_device *row = &history->devices[device];
    if (!lost_at || lost_at == row->recovered_from || ready_at < lost_at)
        return;
    row->recovered_from = lost_at;
    row->recovery_ns += ready_at - lost_at;
    row->recoveries[latency_bucket(ready_at - lost_at)]++;
}

void history_windows(struct history *history, uint32_t device, uint32_t worker,
                     const struct proto_worker_usage *usage)
{
    struct history_device *row = &history->devices[device];
    if (row->seen_worker != worker) {
        row->windows += row->seen_windows;
        row->window_ns += row->seen_ns;
        row->seen_windows = row->seen_ns = 0;
        row->seen_worker = worker;
    }
    row->seen_windows = max(row->seen_windows, (uint64_t)usage->quiet_windows);
    row->seen_ns = max(row->seen_ns, usage->quiet_nanoseconds);
}
