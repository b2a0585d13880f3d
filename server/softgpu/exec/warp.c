/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Divergence. The lanes of a warp are in one or more splits, each with a program counter of its
 * own. The split that is furthest behind (deepest call, then lowest pc) runs until it reaches
 * another one, and the two are merged. Code is laid out so that the instructions behind a branch's
 * join follow both sides of the branch. So splits meet at the join.
 *
 * Convergence is only an optimisation: a split that polls memory (a spin lock) does not keep the
 * splits ahead of it from their turns.
 */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/util.h"

#include "server/softgpu/exec/exec.h"

/* Steps that a split may run before others of its warp get a turn: fewer if it polls, more if
 * nothing suggests that it waits for them. */
enum { TURN_POLLING = 512, TURN_WORKING = 1 << 20, TURN_AHEAD = 256 };
enum { MAX_DEPTH = 4096, MAX_REGISTER_BYTES = 16 << 20, MAX_LOCAL_BYTES = 512 << 10 };

/* Without the instruction, which not every CPU has, counting bits is a function. Most masks are
 * full. */
static inline uint32_t lane_count(uint32_t mask)
{
    return mask == ALL_LANES ? LANES : (uint32_t)__builtin_popcount(mask);
}

/* The thread behind this one, row by row. */
static inline void next_thread(uint32_t tid[3], const uint32_t size[3])
{
    if (++tid[0] < size[0])
        return;
    tid[0] = 0;
    if (++tid[1] < size[1])
        return;
    tid[1] = 0;
    tid[2]++;
}

/* Counted, not divided: a launch may have millions of warps, and a division takes 25 cycles. */
void warp_number_lanes(struct warp *w, const uint32_t size[3], uint32_t tid[3])
{
    const uint32_t x = tid[0], y = tid[1], z = tid[2];
    if (x + LANES <= size[0]) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            w->tid[0][lane] = x + lane;
            w->tid[1][lane] = y;
            w->tid[2][lane] = z;
        }
        tid[0] += LANES - 1;
        next_thread(tid, size);
        return;
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (int axis = 0; axis < 3; axis++)
            w->tid[axis][lane] = tid[axis];
        next_thread(tid, size);
    }
}

/* Clears all but the numbers of its lanes, the splits, of which split_count are valid, and the
 * ranges, which the generation 0 makes invalid: clearing those cost more than all else that a short
 * block does. */
void warp_init(struct warp *w, struct block *block, uint32_t present)
{
    w->base[0] = w->base[1] = NULL;
    w->block = block;
    w->frame = NULL;
    w->pc = w->mask = 0;
    w->present = w->live = present;
    w->split_count = w->current = 0;
    w->polls = false;
    w->turns = 0;
    w->local = NULL;
    w->local_stride = w->register_bytes = 0;
    w->generation = 0;
    w->next_range = 0;
    w->lanes = block->lanes;
}

void warp_free_frame(struct warp *w, struct frame *f)
{
    w->register_bytes -= f->code->frame_bytes;
    if (f == &w->entry)
        return;
    free(f->regs);
    free(f);
}

static bool grow_local(struct warp *w, uint64_t need)
{
    uint32_t stride = (uint32_t)array_room(w->local_stride, (need + 63) & ~UINT64_C(63));
    uint8_t *grown = calloc(LANES, stride);
    if (!grown)
        return false;
    for (uint32_t lane = 0; w->local && lane < LANES; lane++)
        memcpy(grown + (size_t)lane * stride, w->local + (size_t)lane * w->local_stride,
               w->local_stride);
    free(w->local);
    w->local = grown;
    w->local_stride = stride;
    return true;
}

/* Makes room for local memory up to `need` bytes of each lane. Returns false without memory. */
static inline bool reserve_local(struct warp *w, uint64_t need)
{
    return need <= w->local_stride || grow_local(w, need);
}

/* Lanes in a function that this frame called have the same bytes for it; each lane's memory is its
 * own, so nothing overlaps. */
bool warp_allocate_local(struct warp *w, uint64_t bytes, uint64_t alignment, uint64_t *offset)
{
    struct frame *f = w->frame;
    uint64_t first = (uint64_t)f->local_base + f->code->local_bytes;
    uint64_t at = (first + f->allocated + alignment - 1) & ~(alignment - 1);
    if (bytes > MAX_LOCAL_BYTES || at + bytes > MAX_LOCAL_BYTES || !reserve_local(w, at + bytes))
        return false;
    f->allocated = (uint32_t)(at + bytes - first);
    *offset = at;
    return true;
}

struct frame *warp_push_frame(struct warp *w, const struct code *code, struct frame *caller,
                              uint32_t mask)
{
    uint32_t base =
        (caller->local_base + caller->code->local_bytes + caller->allocated + 15) & ~15u;
    uint64_t need = (uint64_t)base + code->local_bytes;
    if (caller->depth == MAX_DEPTH || need > MAX_LOCAL_BYTES ||
        w->register_bytes + (uint64_t)code->frame_bytes > MAX_REGISTER_BYTES ||
        !reserve_local(w, need))
        return NULL;
    struct frame *f = calloc(1, sizeof(*f));
    uint8_t *regs = f ? aligned_alloc(64, code->frame_bytes) : NULL;
    if (!regs) {
        free(f);
        return NULL;
    }
    memset(regs, 0, code->frame_bytes);
    w->register_bytes += code->frame_bytes;
    *f = (struct frame){.caller = caller,
                        .code = code,
                        .regs = regs,
                        .live = mask,
                        .depth = caller->depth + 1,
                        .local_base = base};
    return f;
}

static void enter_frame(struct warp *w, struct frame *f)
{
    w->frame = f;
    w->base[0] = f->regs;
    w->base[1] = f->code->constants;
}

bool warp_start(struct warp *w, const struct code *code, uint8_t *regs)
{
    if (code->local_bytes > MAX_LOCAL_BYTES || code->frame_bytes > MAX_REGISTER_BYTES ||
        !reserve_local(w, code->local_bytes))
        return false;
    w->register_bytes = code->frame_bytes;
    w->entry = (struct frame){.code = code, .regs = regs, .live = w->present};
    w->splits[0] = (struct split){.mask = w->present, .frame = &w->entry};
    w->split_count = 1;
    return true;
}

void warp_destroy(struct warp *w)
{
    /* Frames form a tree whose edges lead to the callers. A frame is freed when no split uses
     * it. */
    for (uint32_t i = 0; i < w->split_count; i++) {
        struct frame *f = w->splits[i].frame;
        uint32_t mask = w->splits[i].mask;
        while (f) {
            struct frame *caller = f->caller;
            f->live &= ~mask;
            if (!f->live)
                warp_free_frame(w, f);
            f = caller;
        }
    }
    w->split_count = 0;
    if (w->local)
        free(w->local);
    w->local = NULL;
}

/* ---- splits ---- */

void warp_remove_split(struct warp *w, uint32_t i)
{
    /* Most often it is the last one: reading a split back that was just written in parts takes
     * long. */
    if (i != --w->split_count)
        w->splits[i] = w->splits[w->split_count];
}

/* Merges lanes that are at the same place and can run into one split. */
static void merge_splits(struct warp *w)
{
    for (uint32_t i = 0; i < w->split_count; i++) {
        struct split *a = &w->splits[i];
        for (uint32_t j = i + 1; j < w->split_count;) {
            const struct split *b = &w->splits[j];
            bool same = a->pc == b->pc && a->frame == b->frame && a->state == SPLIT_READY &&
                        b->state == SPLIT_READY;
            if (!same) {
                j++;
                continue;
            }
            a->mask |= b->mask;
            a->ran = max(a->ran, b->ran);
            warp_remove_split(w, j);
        }
    }
}

/*
 * Lets splits run their instruction again together if the lanes that they wait for are now at the
 * same instruction, or have ended.
 */
static void meet_at_syncs(struct warp *w)
{
    for (uint32_t i = 0; i < w->split_count; i++) {
        const struct split *s = &w->splits[i];
        uint32_t here = 0;
        if (s->state != SPLIT_AT_SYNC)
            continue;
        for (uint32_t k = 0; k < w->split_count; k++) {
            const struct split *o = &w->splits[k];
            if (o->state == SPLIT_AT_SYNC && o->pc == s->pc && o->frame == s->frame)
                here |= o->mask;
        }
        if (s->wait & w->live & ~here)
            continue;
        uint32_t pc = s->pc;
        const struct frame *frame = s->frame;
        for (uint32_t k = 0; k < w->split_count; k++) {
            struct split *o = &w->splits[k];
            if (o->state == SPLIT_AT_SYNC && o->pc == pc && o->frame == frame)
                o->state = SPLIT_READY;
        }
    }
}

static bool split_behind(const struct split *a, const struct split *b)
{
    if (a->frame->depth != b->frame->depth)
        return a->frame->depth > b->frame->depth;
    return a->pc < b->pc;
}

/* The split that is furthest behind of those that can run; with `oldest`, the one whose last
 * turn is longest ago. */
static int choose_split(struct warp *w, bool oldest)
{
    int best = -1;
    for (uint32_t i = 0; i < w->split_count; i++) {
        const struct split *s = &w->splits[i];
        if (s->state != SPLIT_READY)
            continue;
        if (best < 0 || (oldest ? s->ran < w->splits[best].ran : split_behind(s, &w->splits[best])))
            best = (int)i;
    }
    return best;
}

/* The pc at which the current split meets another split. */
static uint32_t meeting_pc(const struct warp *w)
{
    uint32_t limit = UINT32_MAX;
    for (uint32_t i = 0; i < w->split_count; i++) {
        const struct split *s = &w->splits[i];
        if (i != w->current && s->state == SPLIT_READY && s->frame == w->frame && s->pc < limit)
            limit = s->pc;
    }
    return limit;
}

static void wake_sleepers(struct warp *w)
{
    uint64_t now = 0;
    for (uint32_t i = 0; i < w->split_count; i++) {
        struct split *s = &w->splits[i];
        if (s->state != SPLIT_ASLEEP)
            continue;
        if (!now)
            now = block_clock_ns(w->block) + 1;
        if (s->wake_ns < now)
            s->state = SPLIT_READY;
    }
}

bool warp_can_run(const struct warp *w)
{
    for (uint32_t i = 0; i < w->split_count; i++) {
        if (w->splits[i].state == SPLIT_READY)
            return true;
    }
    return false;
}

void warp_exit_lanes(struct warp *w, uint32_t mask)
{
    for (struct frame *f = w->frame, *caller; f; f = caller) {
        caller = f->caller;
        f->live &= ~mask;
        if (!f->live)
            warp_free_frame(w, f);
    }
    w->live &= ~mask;
    w->block->live_threads -= lane_count(mask);
    w->mask &= ~mask;
}

/* ---- the loop ---- */

static inline uint32_t guard_mask(const struct warp *w, const struct op *op, uint32_t mask)
{
    if (op->guard == SLOT_NONE)
        return mask;
    uint32_t p = *(const uint32_t *)slot_at(w, op->guard);
    return mask & (op->negated ? ~p : p);
}

/* Splits the current split: some lanes go to target, the others continue. */
static void split_diverge(struct warp *w, uint32_t taken, uint32_t target, uint32_t pc)
{
    struct split *s = &w->splits[w->current];
    s->mask = w->mask & ~taken;
    s->pc = pc + 1;
    w->splits[w->split_count++] =
        (struct split){.mask = taken, .pc = target, .frame = w->frame, .ran = s->ran};
}

/* Advances the clocks by the instructions that were executed since they were last set. */
static void settle_clocks(struct block *b, uint64_t *steps, uint64_t left)
{
    b->cycles += *steps - left;
    b->clock_ps += (*steps - left) * b->rate;
    *steps = left;
}

/*
 * Runs the current split until it meets another one (EXEC_MOVED), blocks, faults, or has used its
 * steps (EXEC_NEXT).
 */
static enum exec_result run_split(struct warp *w, uint32_t limit, uint64_t *steps)
{
    _Alignas(64) uint8_t result[LANES * 8];
    const struct op *ops = w->frame->code->ops;
    struct block *b = w->block;
    uint64_t left = *steps;
    uint32_t pc = w->pc, mask = w->mask;
    enum exec_result r = EXEC_MOVED;

    while (pc < limit) {
        const struct op *op = &ops[pc];
        uint32_t active = guard_mask(w, op, mask);
        if (!op->part) {
            if (left == 0) {
                r = EXEC_NEXT;
                break;
            }
            left--;
        }
        if (op->kind == OP_VALUE) {
            if (active == ALL_LANES) {
                op->value(w, op, slot_at(w, op->dst));
            } else if (active) {
                op->value(w, op, result);
                w->lanes->blend(slot_at(w, op->dst), result, op->width, active);
            }
            pc++;
        } else if (op->kind == OP_BRANCH) {
            if (active == mask) {
                pc = (uint32_t)op->target;
            } else if (active) {
                split_diverge(w, active, (uint32_t)op->target, pc);
                settle_clocks(b, steps, left);
                return EXEC_MOVED;
            } else {
                pc++;
            }
        } else if (active) {
            w->pc = pc;
            settle_clocks(b, steps, left); /* the clocks show the time of this instruction */
            r = op->action(w, op, active);
            if (r != EXEC_NEXT)
                return r;
            r = EXEC_MOVED;
            pc++;
        } else {
            pc++;
        }
    }
    w->splits[w->current].pc = pc;
    settle_clocks(b, steps, left);
    return r;
}

static bool others_ready(const struct warp *w)
{
    for (uint32_t i = 0; i < w->split_count; i++) {
        if (i != w->current && w->splits[i].state == SPLIT_READY)
            return true;
    }
    return false;
}

/* Runs one turn of one split. */
static enum exec_result run_turn(struct warp *w, bool ahead, uint64_t *steps)
{
    struct split *s = &w->splits[w->current];
    w->pc = s->pc;
    w->mask = s->mask;
    s->ran = ++w->turns;
    enter_frame(w, s->frame);
    bool others = w->split_count > 1 && others_ready(w);
    uint64_t turn = ahead ? TURN_AHEAD : others ? TURN_POLLING : *steps;
    turn = turn < *steps ? turn : *steps;
    uint64_t before = turn;
    uint32_t limit = others && !ahead ? meeting_pc(w) : UINT32_MAX;
    enum exec_result r = run_split(w, limit, &turn);
    *steps -= before - turn;
    return r;
}

/* The split whose turn it is; -1: none can run. */
static int next_split(struct warp *w, bool oldest)
{
    if (w->split_count == 1 && w->splits[0].state == SPLIT_READY)
        return 0;
    meet_at_syncs(w);
    if (w->split_count > 1)
        merge_splits(w);
    return choose_split(w, oldest);
}

enum exec_result warp_run(struct warp *w, uint64_t *steps)
{
    uint64_t alone = 0; /* steps since a split other than the furthest behind had a turn */
    bool ahead = false;
    wake_sleepers(w);
    while (w->live) {
        int next = next_split(w, ahead);
        if (next < 0)
            return EXEC_BLOCKED;
        if (*steps == 0)
            return EXEC_NEXT;
        w->current = (uint32_t)next;
        uint64_t before = *steps;
        enum exec_result r = run_turn(w, ahead, steps);
        if (r == EXEC_FAULT)
            return r;
        alone = ahead || w->split_count < 2 ? 0 : alone + (before - *steps);
        ahead = false;
        if (alone >= (w->polls ? TURN_POLLING : TURN_WORKING)) {
            ahead = true;
            w->polls = false;
            alone = 0;
        }
    }
    return EXEC_MOVED;
}
