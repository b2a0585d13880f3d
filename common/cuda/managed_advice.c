/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/managed_advice.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/list.h"
#include "common/util.h"

struct note {
    struct list_link link;
    struct managed_range range;
    struct managed_topic topic;
    cuda_mem_location value;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list notes = LIST_INIT(notes); /* newest first; under the lock */

static bool same_topic(struct managed_topic one, struct managed_topic other)
{
    return one.kind == other.kind && one.device == other.device;
}

static bool same_value(cuda_mem_location one, cuda_mem_location other)
{
    return one.type == other.type && one.id == other.id;
}

/* A newer note of the whole range replaces the old one; a note of another allocation at these
 * addresses is of one that is gone. */
static bool is_replaced(const struct note *old, const struct note *made)
{
    if (old->range.id != made->range.id)
        return old->range.start < made->range.end && made->range.start < old->range.end;
    return same_topic(old->topic, made->topic) && old->range.start >= made->range.start &&
           old->range.end <= made->range.end;
}

/* The newest note of a topic hides all others, so it can grow by what touches it: a loop that
 * prefetches part after part leaves one note. The lock is held. */
static void grow(struct note *made)
{
    const struct note *newest;
    LIST_FOR_EACH (newest, &notes, link)
        if (newest->range.id == made->range.id && same_topic(newest->topic, made->topic))
            break;
    if (!newest || !same_value(newest->value, made->value) ||
        newest->range.start > made->range.end || made->range.start > newest->range.end)
        return;
    made->range.start = min(made->range.start, newest->range.start);
    made->range.end = max(made->range.end, newest->range.end);
}

int managed_advice_note(const struct managed_range *range, struct managed_topic topic,
                        cuda_mem_location value)
{
    struct note *old, *made = calloc(1, sizeof *made);
    if (!made)
        return -ENOMEM;
    made->range = *range;
    made->topic = topic;
    made->value = value;
    pthread_mutex_lock(&lock);
    grow(made);
    list_prepend(&notes, &made->link);
    LIST_FOR_EACH (old, &notes, link)
        if (old != made && is_replaced(old, made)) {
            list_remove(&old->link);
            free(old);
        }
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The lock is held. */
static cuda_mem_location value_at(uint64_t id, struct managed_topic topic, uint64_t address)
{
    const struct note *note;
    LIST_FOR_EACH (note, &notes, link)
        if (note->range.id == id && same_topic(note->topic, topic) &&
            note->range.start <= address && address < note->range.end)
            return note->value;
    return (cuda_mem_location){0};
}

/* A value can change only where a note begins or ends. */
cuda_mem_location managed_advice_find(const struct managed_range *range, struct managed_topic topic)
{
    const struct note *note;
    bool same = true;
    pthread_mutex_lock(&lock);
    cuda_mem_location value = value_at(range->id, topic, range->start);
    LIST_FOR_EACH (note, &notes, link) {
        const uint64_t edges[] = {note->range.start, note->range.end};
        for (int i = 0; i < 2 && same; i++)
            if (range->start < edges[i] && edges[i] < range->end)
                same = same_value(value, value_at(range->id, topic, edges[i]));
    }
    pthread_mutex_unlock(&lock);
    return same ? value : (cuda_mem_location){0};
}
