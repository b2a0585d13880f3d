/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* rewrite_private: a rewriting under way, for rewrite.c and moves.c alone. */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_REWRITE_PRIVATE_H
#define GPUSHARE_SERVER_WORKER_IMAGE_REWRITE_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "common/cuda/ptx.h"
#include "common/error.h"
#include "server/worker/image/rewrite.h"

/* One .global variable, and the decision about it. */
struct placed {
    const struct ptx_variable *variable;
    const char *stays; /* why it stays, or NULL: it moves */
    uint64_t offset;   /* of its new place, from the base */
};

struct rewrite {
    struct ptx_module *tree; /* NULL: not understood */
    struct error unread;
    const char *text;
    size_t length;
    struct placed *placed;
    uint32_t count;
    struct placed **by_id; /* variable->id -> its entry, or NULL */
    uint64_t bytes, base;
    char constant[32]; /* the name of ours that holds the base; "": the text does not need it */
    size_t used;       /* bytes of memory that are taken, the tree's included */
    struct ptx_limits limits;
    bool exceeded; /* limits.bytes was not enough */
};

/* Allocates zeroed memory and counts it. The caller that frees it lowers the count. */
static inline void *rewrite_allocate(struct rewrite *rewrite, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        bytes > rewrite->limits.bytes - rewrite->used) {
        rewrite->exceeded = true;
        return NULL;
    }
    rewrite->used += bytes;
    return calloc(count, size);
}

static inline struct placed *rewrite_placed(const struct rewrite *rewrite,
                                            const struct ptx_variable *variable)
{
    return variable ? rewrite->by_id[variable->id] : NULL;
}

static inline bool rewrite_moves(const struct rewrite *rewrite, const struct ptx_variable *variable)
{
    const struct placed *placed = rewrite_placed(rewrite, variable);
    return placed && !placed->stays;
}

#endif
