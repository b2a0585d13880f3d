/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/exec/block.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/module_private.h"

/* Instructions of one warp's turn. A turn is long enough to keep the warp's registers in the
 * cache, and short enough for warps that wait for one another in memory. */
enum { WARP_TURN = 4096, MAX_THREADS = 1024, MAX_SHARED = 1 << 20 };

/* The memory of a block that this thread has destroyed, whose warps have the numbers of the lanes
 * of a block of this shape. */
struct spare {
    void *memory;
    size_t bytes;
    uint32_t threads[3];
    bool ends; /* with its thread */
};
static _Thread_local struct spare spare;
static pthread_key_t spare_key;
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;
static int spare_error;

/* Larger ones are not kept: 1,024 threads with 64 registers have 256 KiB of registers. */
enum { SPARE_MAX = 1 << 20 };

static size_t aligned(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Not zeroed. *bytes: in, the least; out, what it has. *numbered: the lanes have their numbers,
 * which are the same in all blocks of one shape. */
static void *take_memory(size_t *bytes, const uint32_t threads[3], bool *numbered)
{
    void *memory = spare.memory;
    *numbered = false;
    if (!memory || spare.bytes < *bytes)
        return aligned_alloc(64, *bytes);
    spare.memory = NULL;
    *bytes = spare.bytes;
    *numbered = memcmp(spare.threads, threads, sizeof spare.threads) == 0;
    return memory;
}

static void end_spare(void *ended)
{
    struct spare *of_thread = ended;
    free(of_thread->memory);
    of_thread->memory = NULL;
}

static void make_key(void)
{
    spare_error = pthread_key_create(&spare_key, end_spare);
}

/* False where the process has no key left: nothing would free the memory of a thread that ends. */
static bool spare_ends(void)
{
    if (!spare.ends) {
        pthread_once(&spare_once, make_key);
        spare.ends = spare_error == 0 && pthread_setspecific(spare_key, &spare) == 0;
    }
    return spare.ends;
}

static void keep_memory(void *memory, size_t bytes, const uint32_t threads[3])
{
    if (bytes > SPARE_MAX || !spare_ends()) {
        free(memory);
        return;
    }
    free(spare.memory);
    spare.memory = memory;
    spare.bytes = bytes;
    memcpy(spare.threads, threads, sizeof spare.threads);
}

static void number_lanes(struct block *b)
{
    uint32_t tid[3] = {0, 0, 0};
    for (uint32_t i = 0; i < b->warp_count; i++)
        warp_number_lanes(&b->warps[i], b->launch->threads, tid);
}

/* Begins all warps. regs: the registers of the first one's entry frame. */
static bool start_warps(struct block *b, uint8_t *regs)
{
    const struct code *code = b->launch->function->code;
    bool started = true;
    memset(regs, 0, (size_t)b->warp_count * code->frame_bytes);
    for (uint32_t i = 0; i < b->warp_count; i++) {
        uint32_t left = b->threads - i * LANES;
        b->warps[i].index = i;
        warp_init(&b->warps[i], b, left >= LANES ? ALL_LANES : (1u << left) - 1);
        started = started && warp_start(&b->warps[i], code, regs + (size_t)i * code->frame_bytes);
    }
    return started;
}

struct block *block_create(const struct block_launch *launch, const uint32_t index[3], uint32_t sm)
{
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        if (launch->threads[i] == 0 || launch->threads[i] > MAX_THREADS)
            return NULL;
        threads *= launch->threads[i];
    }
    uint64_t shared =
        (uint64_t)launch->function->static_shared_bytes + launch->dynamic_shared_bytes;
    if (threads > MAX_THREADS || shared > MAX_SHARED)
        return NULL;
    const uint32_t warps = ((uint32_t)threads + LANES - 1) / LANES;
    const size_t warps_at = aligned(sizeof(struct block));
    const size_t regs_at = warps_at + aligned(warps * sizeof(struct warp));
    size_t bytes = regs_at + (size_t)warps * launch->function->code->frame_bytes;
    bytes = aligned(bytes);
    bool numbered;
    uint8_t *memory = take_memory(&bytes, launch->threads, &numbered);
    if (!memory)
        return NULL;
    struct block *b = (void *)memory;
    memset(b, 0, offsetof(struct block, barriers));
    b->launch = launch;
    b->module = launch->function->module;
    memcpy(b->index, index, sizeof b->index);
    b->sm = sm;
    b->pace_permille = 1000;
    b->threads = b->live_threads = (uint32_t)threads;
    b->shared_bytes = (uint32_t)shared;
    b->warp_count = warps;
    b->warps = (void *)(memory + warps_at);
    b->bytes = bytes;
    b->lanes = exec_lanes_of();
    if (!numbered)
        number_lanes(b);
    if (!start_warps(b, memory + regs_at)) {
        block_destroy(b);
        return NULL;
    }
    return b;
}

bool block_shared_ready(struct block *b)
{
    size_t rounded = (b->shared_bytes + (size_t)1024) & ~(size_t)1023;
    if (b->shared)
        return true;
    b->shared = aligned_alloc(1024, rounded);
    if (b->shared)
        memset(b->shared, 0, rounded);
    return b->shared;
}

void block_destroy(struct block *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; i < b->warp_count; i++)
        warp_destroy(&b->warps[i]);
    free(b->shared);
    keep_memory(b, b->bytes, b->launch->threads);
}

/* ---- barriers ---- */

static void give_reduction(struct warp *w, const struct split *s, const struct barrier *barrier)
{
    const struct op *op = &s->frame->code->ops[s->pc];
    if (op->imm == 0)
        return; /* bar.sync */
    uint8_t *row = s->frame->regs + op->dst;
    if (op->imm == 'p') {
        for (uint32_t i = 0; i < LANES; i++) {
            if (s->mask >> i & 1)
                ((uint32_t *)row)[i] = barrier->ones;
        }
        return;
    }
    bool value = op->imm == 'a' ? barrier->ones == barrier->count : barrier->ones != 0;
    uint32_t *p = (uint32_t *)row;
    *p = value ? *p | s->mask : *p & ~s->mask;
    (void)w;
}

static void release_barrier(struct block *b, uint32_t number)
{
    for (uint32_t i = 0; i < b->warp_count; i++) {
        struct warp *w = &b->warps[i];
        for (uint32_t k = 0; k < w->split_count; k++) {
            struct split *s = &w->splits[k];
            if (s->state != SPLIT_AT_BARRIER || s->wait != number)
                continue;
            give_reduction(w, s, &b->barriers[number]);
            s->state = SPLIT_READY;
            s->pc++;
        }
    }
    b->awaited &= ~(1u << number);
}

void block_check_barriers(struct block *b)
{
    for (uint32_t left = b->awaited; left; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(left);
        const struct barrier *barrier = &b->barriers[i];
        uint32_t expected = barrier->expected ? barrier->expected : b->live_threads;
        if (barrier->arrived && barrier->arrived >= expected)
            release_barrier(b, i);
    }
}

/* ---- running ---- */

/* No warp can run: finds the time until which that is so. Returns false if no warp will ever
 * run. */
static bool next_wake(const struct block *b, uint64_t *wake_ns)
{
    bool any = false;
    for (uint32_t i = 0; i < b->warp_count; i++) {
        const struct warp *w = &b->warps[i];
        for (uint32_t k = 0; k < w->split_count; k++) {
            const struct split *s = &w->splits[k];
            if (s->state == SPLIT_ASLEEP && (!any || s->wake_ns < *wake_ns)) {
                *wake_ns = s->wake_ns;
                any = true;
            }
        }
    }
    return any;
}

static enum block_state report_deadlock(struct block *b)
{
    for (uint32_t i = 0; i < b->warp_count; i++) {
        struct warp *w = &b->warps[i];
        if (!w->split_count)
            continue;
        const struct split *s = &w->splits[0];
        w->frame = s->frame;
        exec_fault(w, &s->frame->code->ops[s->pc], FAULT_TRAP, (uint32_t)__builtin_ctz(s->mask), 0,
                   0, "waits at a barrier that can't complete");
        return BLOCK_FAULTED;
    }
    return BLOCK_DONE;
}

static enum block_state run_warps(struct block *b, uint64_t budget, uint64_t *wake_ns)
{
    uint32_t idle = 0;
    while (b->live_threads) {
        struct warp *w = &b->warps[b->next_warp];
        uint64_t turn = min(budget, (uint64_t)WARP_TURN), left = turn;
        enum exec_result r = w->live ? warp_run(w, &left) : EXEC_BLOCKED;
        budget -= turn - left;
        if (r == EXEC_FAULT)
            return BLOCK_FAULTED;
        idle = left != turn ? 0 : idle + 1;
        /* Before the budget is looked at: a warp that waits for another one takes all of it. */
        b->next_warp = b->next_warp + 1 < b->warp_count ? b->next_warp + 1 : 0;
        if (budget == 0)
            return b->live_threads ? BLOCK_READY : BLOCK_DONE;
        if (idle <= b->warp_count)
            continue;
        bool runnable = false;
        for (uint32_t i = 0; i < b->warp_count && !runnable; i++)
            runnable = warp_can_run(&b->warps[i]);
        if (runnable) {
            idle = 0;
            continue;
        }
        return next_wake(b, wake_ns) ? BLOCK_ASLEEP : report_deadlock(b);
    }
    return BLOCK_DONE;
}

void block_set_pace(struct block *b, uint32_t permille)
{
    b->pace_permille = permille;
}

enum block_state block_run(struct block *b, uint64_t budget, uint64_t *clock_ns, uint32_t rate,
                           uint64_t *wake_ns, struct fault *fault)
{
    if (b->state == BLOCK_FAULTED || b->state == BLOCK_DONE)
        return b->state;
    if (b->clock_ps / 1000 != *clock_ns)
        b->clock_ps = *clock_ns * 1000;
    b->rate = rate;
    uint64_t wake = 0;
    b->state = run_warps(b, budget ? budget : 1, &wake);
    /* If instructions take no time, a warp that spins until a sleeper wakes would spin for ever.
     * So time advances by the sleep that was asked for. */
    if (b->state == BLOCK_READY && rate == 0 && next_wake(b, &wake) && wake * 1000 > b->clock_ps)
        b->clock_ps = wake * 1000;
    *clock_ns = b->clock_ps / 1000;
    if (b->state == BLOCK_ASLEEP && wake_ns)
        *wake_ns = wake;
    if (b->state == BLOCK_FAULTED && fault)
        *fault = b->fault;
    return b->state;
}
