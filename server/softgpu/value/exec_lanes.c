/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Loops of loads, stores and guards over all lanes. Compiled once for each instruction set,
 * as exec_values.c is.
 */
#include "server/softgpu/exec/exec.h"

#ifndef EXEC_LANES
#define EXEC_LANES exec_lanes_v1
#endif

#define BLEND(T)                                                                                   \
    {                                                                                              \
        T *d = row;                                                                                \
        const T *s = result;                                                                       \
        EACH_LANE(i)                                                                               \
        {                                                                                          \
            d[i] = mask >> i & 1 ? s[i] : d[i];                                                    \
        }                                                                                          \
    }

static void blend(void *row, const void *result, uint32_t width, uint32_t mask)
{
    if (width == 0)
        *(uint32_t *)row = (*(const uint32_t *)result & mask) | (*(uint32_t *)row & ~mask);
    else if (width == 4)
        BLEND(uint32_t)
    else if (width == 8)
        BLEND(uint64_t)
    else
        BLEND(uint16_t)
}

#define FILL(T)                                                                                    \
    {                                                                                              \
        T *d = row;                                                                                \
        const T s = *(const T *)value;                                                             \
        EACH_LANE(i)                                                                               \
        {                                                                                          \
            d[i] = mask >> i & 1 ? s : d[i];                                                       \
        }                                                                                          \
    }

static void fill(void *row, const void *value, uint32_t width, uint32_t mask)
{
    if (width == 4)
        FILL(uint32_t)
    else if (width == 8)
        FILL(uint64_t)
    else
        FILL(uint16_t)
}

/* ---- addresses ---- */

#define STEPS(n)                                                                                   \
    {                                                                                              \
        0 * n, 1 * n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n, 8 * n, 9 * n, 10 * n, 11 * n,      \
            12 * n, 13 * n, 14 * n, 15 * n, 16 * n, 17 * n, 18 * n, 19 * n, 20 * n, 21 * n,        \
            22 * n, 23 * n, 24 * n, 25 * n, 26 * n, 27 * n, 28 * n, 29 * n, 30 * n, 31 * n         \
    }
/* Multiplications of 64 bits are slow, where there are vectors of them at all. */
_Alignas(64) static const uint64_t steps[][LANES] = {STEPS(1), STEPS(2),  STEPS(4),
                                                     STEPS(8), STEPS(16), STEPS(32)};

/* The sums over all lanes are by |, and all is of 64 bits: compilers make vectors of that. */
#define SHAPE(lane)                                                                                \
    EACH_LANE(i)                                                                                   \
    {                                                                                              \
        uint64_t beyond = (lane)-first;                                                            \
        differ |= beyond;                                                                          \
        apart |= beyond ^ step[i];                                                                 \
    }

static enum lanes_form form(const uint64_t *base, uint32_t mask, uint32_t bytes)
{
    const uint64_t first = base[__builtin_ctz(mask)];
    const uint64_t *step = steps[__builtin_ctz(bytes)];
    uint64_t differ = 0, apart = 0;
    if (mask == ALL_LANES)
        SHAPE(base[i])
    else
        SHAPE(mask >> i & 1 ? base[i] : first)
    return !differ ? LANES_SAME : apart ? LANES_ANY : LANES_ROW;
}

#define LOCATE(lane)                                                                               \
    EACH_LANE(i)                                                                                   \
    {                                                                                              \
        uint64_t at = (lane) + offset, from = at - start;                                          \
        outside |= (from > span ? UINT64_MAX : 0) | (at & part);                                   \
        host[i] = to + from;                                                                       \
    }

static bool locate(const uint64_t *base, uint64_t offset, uint32_t mask, uint32_t bytes,
                   const struct lane_area *area, uint64_t *host)
{
    const uint64_t first = base[__builtin_ctz(mask)], part = bytes - 1;
    const uint64_t start = area->start, span = area->span, to = area->host;
    uint64_t outside = 0;
    if (mask == ALL_LANES)
        LOCATE(base[i])
    else
        LOCATE(mask >> i & 1 ? base[i] : first)
    return !outside;
}

const struct exec_lanes EXEC_LANES = {.blend = blend, .fill = fill, .form = form, .locate = locate};
