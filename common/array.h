/* SPDX-License-Identifier: Apache-2.0
 * SPDX-FileCopyrightText: The gpushare authors
 *
 * Arrays that grow. An array is a pointer that malloc() may have made (NULL: none yet), a count
 * that the owner keeps, and its room, the number of items that fit; free() ends it. No locking.
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

#define ARRAY_ROOM_MIN 16 /* that array_reserve() begins with */

/*
 * The room for at least `wanted` items in an array that has `room`: the room itself where it
 * suffices, else twice the room or more, so that n additions copy at most 2 n items. At most
 * SIZE_MAX. For arrays whose memory array_reserve() can't get; it uses the same.
 */
static inline size_t array_room(size_t room, size_t wanted)
{
    if (room >= wanted)
        return room;
    return max(room > SIZE_MAX / 2 ? SIZE_MAX : 2 * room, wanted);
}

/* The work of array_reserve(); `items` is where the array's pointer is. */
static inline int array_reserve_upto(void *items, size_t *room, size_t wanted, size_t item_bytes,
                                     size_t room_max)
{
    void **at = items; /* a pointer to other types too: aliasing is not strict here */
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
 * Makes room for `wanted` items in all. `items` (a pointer to the items' type) and `room` (a
 * uint32_t or size_t) are lvalues, both changed. New elements are not cleared. 0; -ENOMEM: no
 * memory, or more than `room` can count; nothing has changed then.
 */
#define array_reserve(items, room, wanted)                                                         \
    _Generic((room), uint32_t                                                                      \
             : array_reserve_u32, size_t                                                           \
             : array_reserve_size)(&(items), &(room), (wanted), sizeof *(items))

#endif
