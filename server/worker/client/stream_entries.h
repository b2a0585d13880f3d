/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stream_entries: how many entries of a hardware queue a ring has in use, at most.
 *
 * Submitted work is counted in two spans of the ring's timeline; a span is forgotten when its
 * end is reached. So the count is never too low, and at most twice what is in use. Submitter.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_STREAM_ENTRIES_H
#define GPUSHARE_SERVER_WORKER_CLIENT_STREAM_ENTRIES_H

#include <stdint.h>

/* Zeroed at first. */
struct stream_entries {
    uint32_t older, newer;
    uint64_t older_end, newer_end; /* values of the timeline */
};

/* So many entries were submitted; they are done when the timeline reaches the value. */
static inline void stream_entries_add(struct stream_entries *entries, uint32_t count,
                                      uint64_t value)
{
    if (!entries->older) {
        entries->older = count;
        entries->older_end = value;
        return;
    }
    entries->newer += count;
    entries->newer_end = value;
}

/* The timeline has reached a value: returns how many are in use. */
static inline uint32_t stream_entries_left(struct stream_entries *entries, uint64_t reached)
{
    if (reached >= entries->older_end) {
        entries->older = entries->newer;
        entries->older_end = entries->newer_end;
        entries->newer = 0;
    }
    if (reached >= entries->older_end)
        entries->older = 0;
    return entries->older + entries->newer;
}

#endif
