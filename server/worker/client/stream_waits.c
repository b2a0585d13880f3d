/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/stream_waits.h"

#include <stddef.h>
#include <string.h>

bool stream_waits_reach(struct stream_waits *waits, uint64_t reached)
{
    uint32_t ended = 0;
    while (ended < waits->count && waits->waits[ended].value <= reached)
        ended++;
    waits->count -= ended;
    memmove(waits->waits, waits->waits + ended, waits->count * sizeof *waits->waits);
    return waits->count < STREAM_WAITS_MAX;
}

void stream_waits_add(struct stream_waits *waits, const struct stream_wait *wait)
{
    if (waits->count < STREAM_WAITS_MAX)
        waits->waits[waits->count++] = *wait;
}

const struct stream_wait *stream_waits_find(const struct stream_waits *waits, uint64_t value)
{
    for (uint32_t i = 0; i < waits->count; i++)
        if (waits->waits[i].value == value)
            return &waits->waits[i];
    return NULL;
}
