/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/offenders.h"

#include <stdbool.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/units.h"
#include "common/util.h"

#define FORGET_NS (600 * UNITS_SECOND)
#define WAIT_MAX  (300 * UNITS_SECOND)

static struct offender *find_offender(const struct offenders *offenders, uid_t uid)
{
    for (uint32_t i = 0; i < offenders->count; i++)
        if (offenders->rows[i].uid == uid)
            return &offenders->rows[i];
    return NULL;
}

static bool is_forgotten(const struct offender *offender, uint64_t now)
{
    return now - offender->faulted_at >= FORGET_NS;
}

/* A row for this user: its own, one of somebody who is forgotten, or a new one. */
static struct offender *row_for(struct offenders *offenders, uid_t uid, uint64_t now)
{
    struct offender *row = find_offender(offenders, uid);
    for (uint32_t i = 0; !row && i < offenders->count; i++)
        if (is_forgotten(&offenders->rows[i], now))
            row = &offenders->rows[i];
    if (!row && array_reserve(offenders->rows, offenders->room, offenders->count + 1) == 0)
        row = &offenders->rows[offenders->count++];
    return row;
}

void offenders_note(struct offenders *offenders, uid_t uid, uint64_t now)
{
    const struct offender *known = find_offender(offenders, uid);
    uint32_t before = known && !is_forgotten(known, now) ? known->faults : 0;
    struct offender *row = row_for(offenders, uid, now);
    if (row)
        *row = (struct offender){.uid = uid, .faults = before + 1, .faulted_at = now};
}

uint64_t offenders_wait(const struct offenders *offenders, uid_t uid, uint64_t now, uint64_t first,
                        uint32_t *faults)
{
    const struct offender *offender = find_offender(offenders, uid);
    *faults = offender && !is_forgotten(offender, now) ? offender->faults : 0;
    if (*faults < 2 || !first)
        return 0;
    uint64_t wait = saturating_double(first, *faults - 2, WAIT_MAX);
    return saturating_sub(offender->faulted_at + wait, now);
}

void offenders_close(struct offenders *offenders)
{
    free(offenders->rows);
    *offenders = (struct offenders){.rows = NULL};
}
