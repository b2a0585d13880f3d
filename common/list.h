/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * list: lists whose links are members of the structs that they hold. Nothing is allocated, so
 * nothing can fail.
 *
 *   struct list   doubly linked; a member can leave from anywhere, knowing only its own link
 *   struct queue  singly linked; members are taken out at the front (queues, stacks, free lists)
 *
 * A link is in one list at a time; a struct that is in several lists has a link for each. A list
 * does not own its members. There is no locking: a thread that uses a list holds whatever lock
 * protects that list.
 *
 *   struct session { struct list_link link; ... };
 *   struct list sessions = LIST_INIT(sessions);
 *   list_append(&sessions, &session->link);
 *   struct session *each;
 *   LIST_FOR_EACH (each, &sessions, link)
 *       ...
 */
#ifndef GPUSHARE_COMMON_LIST_H
#define GPUSHARE_COMMON_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/util.h"

/* ---- struct list ---- */

/* Both pointers are NULL while the link is in no list. A zeroed struct is therefore ready for
 * use. */
struct list_link {
    struct list_link *next, *previous;
};

/* The links form a ring through `ends`: ends.next is the first link, ends.previous the last. */
struct list {
    struct list_link ends;
};

/* Initialises a declared list as empty. Zeroed memory is no valid list: it needs this or
 * list_init(). */
#define LIST_INIT(list)                                                                            \
    {                                                                                              \
        {                                                                                          \
            &(list).ends, &(list).ends                                                             \
        }                                                                                          \
    }

static inline void list_init(struct list *list)
{
    list->ends.next = list->ends.previous = &list->ends;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->ends.next == &list->ends;
}

/* Returns whether the link is in a list. */
static inline bool list_is_linked(const struct list_link *link)
{
    return link->next != NULL;
}

/* Puts `link`, which is in no list, behind `before`, which is in one. */
static inline void list_insert_after(struct list_link *before, struct list_link *link)
{
    link->previous = before;
    link->next = before->next;
    before->next->previous = link;
    before->next = link;
}

/* Puts `link`, which is in no list, at the end. */
static inline void list_append(struct list *list, struct list_link *link)
{
    list_insert_after(list->ends.previous, link);
}

/* Puts `link`, which is in no list, at the front. */
static inline void list_prepend(struct list *list, struct list_link *link)
{
    list_insert_after(&list->ends, link);
}

/* Takes the link out of its list. Does nothing if it is in none. */
static inline void list_remove(struct list_link *link)
{
    if (!list_is_linked(link))
        return;
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->next = link->previous = NULL;
}

/* Moves all links of `from` to the end of `list` and keeps their order. Afterwards `from` is
 * empty. */
static inline void list_append_list(struct list *list, struct list *from)
{
    if (list_is_empty(from))
        return;
    from->ends.next->previous = list->ends.previous;
    list->ends.previous->next = from->ends.next;
    from->ends.previous->next = &list->ends;
    list->ends.previous = from->ends.previous;
    list_init(from);
}

/* The first and the last link, and the links after and before one; NULL if there is none. */
static inline struct list_link *list_first(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->ends.next;
}

static inline struct list_link *list_last(const struct list *list)
{
    return list_is_empty(list) ? NULL : list->ends.previous;
}

static inline struct list_link *list_next(const struct list *list, const struct list_link *link)
{
    return link->next == &list->ends ? NULL : link->next;
}

static inline struct list_link *list_previous(const struct list *list, const struct list_link *link)
{
    return link->previous == &list->ends ? NULL : link->previous;
}

/* ---- struct queue ---- */

struct queue_link {
    struct queue_link *next;
};

/* A zeroed queue is an empty queue. */
struct queue {
    struct queue_link *first, *last; /* `last` is valid only while `first` is not NULL */
};

static inline bool queue_is_empty(const struct queue *queue)
{
    return queue->first == NULL;
}

/* Puts `link`, which is in no queue, at the end. */
static inline void queue_append(struct queue *queue, struct queue_link *link)
{
    link->next = NULL;
    if (queue->first)
        queue->last->next = link;
    else
        queue->first = link;
    queue->last = link;
}

/* Puts `link`, which is in no queue, at the front. */
static inline void queue_prepend(struct queue *queue, struct queue_link *link)
{
    if (!queue->first)
        queue->last = link;
    link->next = queue->first;
    queue->first = link;
}

/* Takes the first link out and returns it; NULL if the queue is empty. */
static inline struct queue_link *queue_take(struct queue *queue)
{
    struct queue_link *link = queue->first;
    if (link) {
        queue->first = link->next;
        link->next = NULL;
    }
    return link;
}

/* Takes this link out, in time linear in the queue's length. Returns false if the queue does not
 * hold it. */
static inline bool queue_remove(struct queue *queue, struct queue_link *link)
{
    struct queue_link *before = NULL;
    for (struct queue_link *at = queue->first; at; before = at, at = at->next) {
        if (at != link)
            continue;
        if (before)
            before->next = at->next;
        else
            queue->first = at->next;
        if (queue->last == at)
            queue->last = before;
        at->next = NULL;
        return true;
    }
    return false;
}

/* ---- both ---- */

/* The struct around a link; NULL if the link is NULL. */
#define LIST_ENTRY(link, type, member)                                                             \
    (__extension__({                                                                               \
        __auto_type list_entry_link = (link);                                                      \
        list_entry_link ? container_of(list_entry_link, type, member) : NULL;                      \
    }))

/* The first or the last struct of a list or a queue; NULL if it is empty. */
#define LIST_FIRST(list, type, member)   LIST_ENTRY(list_first(list), type, member)
#define LIST_LAST(list, type, member)    LIST_ENTRY(list_last(list), type, member)
#define QUEUE_FIRST(queue, type, member) LIST_ENTRY((queue)->first, type, member)

/* Takes the first struct out of a queue and returns it; NULL if the queue is empty. */
#define QUEUE_TAKE(queue, type, member) LIST_ENTRY(queue_take(queue), type, member)

/*
 * Walks from the first struct to the last. `entry` is a pointer to the struct, declared before the
 * loop. After the loop it is NULL, unless a `break` left the loop.
 *
 * The body may take the current entry out of the list and free it. It must not take out the entry
 * that follows. An entry that the body inserts right behind the current one is not visited.
 */
#define LIST_FOR_EACH(entry, list, member)                                                         \
    LIST_WALK(entry, (list)->ends.next, &(list)->ends, member, UTIL_JOIN(list_at_, __COUNTER__),   \
              UTIL_JOIN(list_after_, __COUNTER__))

#define QUEUE_FOR_EACH(entry, queue, member)                                                       \
    LIST_WALK(entry, (queue)->first, NULL, member, UTIL_JOIN(list_at_, __COUNTER__),               \
              UTIL_JOIN(list_after_, __COUNTER__))

/* `end` is never converted to an entry: if the struct needs a greater alignment than the list,
 * that pointer would be invalid. */
#define LIST_WALK(entry, start, end, member, at, after)                                            \
    for (__typeof__(&*(start)) at = (start), after;                                                \
         at != (end) ? ((after) = at->next,                                                        \
                       (entry) = container_of(at, __typeof__(*(entry)), member), true)             \
                     : ((entry) = NULL, false);                                                    \
         at = after)

#endif
