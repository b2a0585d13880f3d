/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/range/idle_memory.h"

#include "client/engine/range/allocation.h"
#include "common/ipc/shared_word.h"
#include "common/util.h"

enum { WASTE_PART = 8 }; /* a block has at most one part in this many more than was asked for */

/* The server rounds up: small allocations to their alignment, those from a size on to the device's
 * granularity. Such a rest is no waste. */
#define SMALL_BELOW (UINT64_C(1) << 20)
#define SMALL_STEP  UINT64_C(512)
#define LARGE_STEP  (UINT64_C(2) << 20)

void idle_memory_init(struct idle_memory *idle)
{
    pthread_mutex_init(&idle->lock, NULL);
}

void idle_memory_destroy(struct idle_memory *idle, bool here)
{
    if (here)
        pthread_mutex_destroy(&idle->lock);
}

void idle_memory_begin(struct idle_memory *idle, uint64_t *words, uint64_t most)
{
    idle->most = most;
    atomic_store(&idle->words, words);
}

static uint64_t *words_of(const struct idle_memory *idle)
{
    return atomic_load_explicit(&idle->words, memory_order_acquire);
}

/* ---- blocks; the lock is held ---- */

static void forget(struct idle_memory *idle, uint32_t at)
{
    idle->bytes -= idle->blocks[at].bytes;
    idle->blocks[at].address = 0;
    while (idle->top && !idle->blocks[idle->top - 1].address)
        idle->top--;
}

/* Forgets what the server has taken. */
static void sweep(struct idle_memory *idle)
{
    const uint64_t *words = words_of(idle);
    for (uint32_t i = idle->top; i-- > 0;)
        if (idle->blocks[i].address && !shared_word_hint(&words[i]))
            forget(idle, i);
}

/* Returns whether the block is this process's again, and not the server's. */
static bool claim(struct idle_memory *idle, uint32_t at)
{
    uint64_t address = idle->blocks[at].address;
    bool own = shared_word_exchange(&words_of(idle)[at], &address, UINT64_C(0));
    forget(idle, at);
    return own;
}

static bool fits(const struct idle_block *block, uint64_t count)
{
    if (!block->address || block->bytes < count)
        return false;
    uint64_t rest = block->bytes - count;
    return rest <= count / WASTE_PART || rest < (count < SMALL_BELOW ? SMALL_STEP : LARGE_STEP);
}

static bool is_done(const struct idle_work *work)
{
    for (uint32_t i = 0; i < work->streams; i++)
        if (shared_word_read(work->of[i].completed) < work->of[i].value)
            return false;
    return true;
}

/* ---- keeping ---- */

/* The lowest place without a block; PROTO_IDLE_BLOCKS if there is none. */
static uint32_t find_place(const struct idle_memory *idle)
{
    uint32_t at = 0;
    while (at < idle->top && idle->blocks[at].address)
        at++;
    return at;
}

bool idle_memory_may_keep(const struct idle_memory *idle, uint64_t bytes)
{
    return words_of(idle) && bytes <= idle->most;
}

bool idle_memory_keep(struct idle_memory *idle, const struct allocation *freed,
                      const struct idle_work *work)
{
    pthread_mutex_lock(&idle->lock);
    sweep(idle);
    uint32_t at = find_place(idle);
    bool room = at < PROTO_IDLE_BLOCKS && idle->bytes <= idle->most - freed->bytes;
    if (room) {
        idle->blocks[at] = (struct idle_block){
            .address = freed->address, .bytes = freed->bytes, .turn = idle->turns++, .work = *work};
        idle->bytes += freed->bytes;
        idle->top = max(idle->top, at + 1);
        /* From here on it may be the server's. */
        shared_word_set(&words_of(idle)[at], freed->address);
    }
    pthread_mutex_unlock(&idle->lock);
    return room;
}

/* ---- taking ---- */

/* The smallest block that fits and whose work is done; `top` if there is none. */
static uint32_t find_fit(const struct idle_memory *idle, uint64_t count)
{
    uint32_t best = idle->top;
    for (uint32_t i = 0; i < idle->top; i++)
        if (fits(&idle->blocks[i], count) &&
            (best == idle->top || idle->blocks[i].bytes < idle->blocks[best].bytes) &&
            is_done(&idle->blocks[i].work))
            best = i;
    return best;
}

bool idle_memory_take(struct idle_memory *idle, uint64_t count, struct allocation *taken)
{
    bool own = false;
    uint32_t at;
    if (!words_of(idle))
        return false;
    pthread_mutex_lock(&idle->lock);
    while (!own && (at = find_fit(idle, count)) < idle->top) {
        *taken = (struct allocation){.address = idle->blocks[at].address,
                                     .bytes = idle->blocks[at].bytes,
                                     .asked = count,
                                     .kind = ALLOCATION_DEVICE};
        own = claim(idle, at);
    }
    pthread_mutex_unlock(&idle->lock);
    return own;
}

bool idle_memory_oldest(struct idle_memory *idle, uint64_t *address)
{
    bool own = false;
    pthread_mutex_lock(&idle->lock);
    while (!own && idle->top) {
        uint32_t oldest = idle->top - 1; /* `top` is as low as it can be: there is a block */
        for (uint32_t i = 0; i < idle->top; i++)
            if (idle->blocks[i].address && idle->blocks[i].turn < idle->blocks[oldest].turn)
                oldest = i;
        *address = idle->blocks[oldest].address;
        own = claim(idle, oldest);
    }
    pthread_mutex_unlock(&idle->lock);
    return own;
}
