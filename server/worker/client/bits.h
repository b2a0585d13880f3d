/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * bits: sets of small numbers, as arrays of 64-bit words.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_BITS_H
#define GPUSHARE_SERVER_WORKER_CLIENT_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"

static inline void bits_set(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

static inline void bits_clear(uint64_t *bits, uint32_t i)
{
    bits[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static inline bool bits_test(const uint64_t *bits, uint32_t i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

/* First bit set at or after `from`, below `count`; count if none. */
static inline uint32_t bits_next(const uint64_t *bits, uint32_t from, uint32_t count)
{
    while (from < count) {
        uint64_t rest = bits[from / 64] >> (from % 64);
        if (rest) {
            from += (uint32_t)__builtin_ctzll(rest);
            return min(from, count);
        }
        from = (from / 64 + 1) * 64;
    }
    return count;
}

#endif
