/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * array: arrays that grow. An array has three parts that its owner keeps: a pointer, a count of
 * items, and its room, which is the number of items that fit. The pointer comes from malloc(), or
 * is NULL while there is no item; the owner frees it with free(). There is no locking.
 *
 *   if (array_reserve(table->rows, table->room, table->count + 1) < 0)
 *       return -ENOMEM;
 *   table->rows[table->count++] = row;
 */
#ifndef GPUSHARE_COMMON_ARRAY_H
#define GPUSHARE_COMMON_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/util.h"

#define ARRAY_ROOM_MIN 16 /* items, in the first allocation */

/*
 * Returns the room that an array should have to hold `wanted` items. That is the present room if it
 * suffices, else at least twice the present room, at most SIZE_MAX. Doubling bounds the cost: n
 * additions copy at most 2 n items. array_reserve() grows by this rule; arrays in memory that does
 * not come from malloc() call it directly.
 */
static inline size_t array_room(size_t room, size_t wanted)
{
    if (room >= wanted)
        return room;
    return max(room > SIZE_MAX / 2 ? SIZE_MAX : 2 * room, wanted);
}

/* Carries out array_reserve(). items: the address of the array's pointer. room_max: the largest
 * room that the owner's counter can hold. */
static inline int array_reserve_upto(void *items, size_t *room, size_t wanted, size_t item_bytes,
                                     size_t room_max)
{
    void **at = items; /* the pointer may have another type: we build with -fno-strict-aliasing */
    room_max = min(room_max, SIZE_MAX / item_bytes);
    size_t more = min(array_room(*room, max(wanted, (size_t)ARRAY_ROOM_MIN)), room_max);
    if (more < wanted)
        return -ENOMEM;
    if (*at && more == *room)
        return 0;
    void *moved = reallocarray(*at, more, item_bytes);
    if (!moved)
        return -ENOMEM;
    *at = moved;
    *room = more;
    return 0;
}

static inline int array_reserve_size(void *items, size_t *room, size_t wanted, size_t item_bytes)
{
    return array_reserve_upto(items, room, wanted, item_bytes, SIZE_MAX);
}

static inline int array_reserve_u32(void *items, uint32_t *room, size_t wanted, size_t item_bytes)
{
    size_t own = *room;
    int result = array_reserve_upto(items, &own, wanted, item_bytes, UINT32_MAX);
    *room = (uint32_t)own;
    return result;
}

/*
 * Makes room for `wanted` items in total. `items` is a pointer to the items' type, `room` a
 * uint32_t or a size_t; both are lvalues, and both are changed. New items are not cleared. Returns
 * 0; or -ENOMEM without memory, or if `room` can't count so many items. Then nothing has changed.
 */
#define array_reserve(items, room, wanted)                                                         \
    _Generic((room), uint32_t                                                                      \
             : array_reserve_u32, size_t                                                           \
             : array_reserve_size)(&(items), &(room), (wanted), sizeof *(items))

#endif
