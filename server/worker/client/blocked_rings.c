/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/blocked_rings.h"

#include "server/worker/client/bits.h"
#include "server/worker/client/client_stream.h"

static bool waits_for_device(const struct client_stream *stream)
{
    if (stream->blocked_on.own_end)
        return true;
    for (uint32_t i = 0; i < stream->blocked_on.count; i++)
        if (stream->blocked_on.on[i].link)
            return true;
    return false;
}

bool blocked_rings_add(struct blocked_rings *rings, const struct client_stream *stream)
{
    bool linked = waits_for_device(stream);
    bits_set(rings->bits, stream->index);
    rings->count++;
    rings->linked += linked;
    return linked;
}

void blocked_rings_remove(struct blocked_rings *rings, const struct client_stream *stream)
{
    if (!blocked_rings_has(rings, stream->index))
        return;
    bits_clear(rings->bits, stream->index);
    rings->count--;
    rings->linked -= waits_for_device(stream);
}

void blocked_rings_clear(struct blocked_rings *rings)
{
    *rings = (struct blocked_rings){.count = 0};
}

bool blocked_rings_has(const struct blocked_rings *rings, uint32_t stream)
{
    return bits_test(rings->bits, stream);
}

uint32_t blocked_rings_next(const struct blocked_rings *rings, uint32_t from, uint32_t count)
{
    return bits_next(rings->bits, from, count);
}
