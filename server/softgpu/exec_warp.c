/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Instructions that lanes, or warps, execute together. */
#include <string.h>

#include "server/softgpu/exec.h"

/* Lanes for which the guard does not hold go on without the current split. */
static void leave_rest(struct warp *w, uint32_t mask)
{
    struct split *s = &w->splits[w->current];
    uint32_t rest = w->mask & ~mask;
    s->mask = mask;
    s->pc = w->pc;
    if (rest)
        w->splits[w->split_count++] =
            (struct split){.mask = rest, .pc = w->pc + 1, .frame = w->frame, .ran = s->ran};
}

/* ---- barriers of the block ---- */

static void arrive(struct warp *w, const struct op *op, uint32_t mask, uint32_t number)
{
    struct block *b = w->block;
    struct barrier *barrier = &b->barriers[number];
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    uint32_t expected = ((const uint32_t *)slot_at(w, op->b))[lane];
    uint32_t threads = (uint32_t)__builtin_popcount(mask);
    if (op->imm) {
        uint32_t p = *(const uint32_t *)slot_at(w, op->c);
        barrier->count += threads;
        barrier->ones += (uint32_t)__builtin_popcount(mask & p);
    }
    /* A count is of whole warps: lanes that don't exist arrive with the others. */
    if (expected && mask == w->live)
        threads = LANES;
    barrier->arrived += threads;
    if (expected)
        barrier->expected = expected;
}

static bool barrier_number(struct warp *w, const struct op *op, uint32_t mask, uint32_t *number)
{
    const uint32_t *row = slot_at(w, op->a);
    *number = row[__builtin_ctz(mask)];
    return *number < 16;
}

enum exec_result exec_barrier(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t number;
    if (!barrier_number(w, op, mask, &number))
        return warp_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "there are barriers 0 to 15");
    leave_rest(w, mask);
    struct split *s = &w->splits[w->current];
    s->state = SPLIT_AT_BARRIER;
    s->wait = number;
    arrive(w, op, mask, number);
    block_check_barriers(w->block);
    return EXEC_MOVED;
}

enum exec_result exec_barrier_arrive(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t number;
    if (!barrier_number(w, op, mask, &number))
        return warp_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "there are barriers 0 to 15");
    arrive(w, op, mask, number);
    block_check_barriers(w->block);
    return EXEC_NEXT;
}

/* ---- lanes together ---- */

/*
 * True if all members that live are here. Else the split waits at this instruction,
 * and executes it again when the others have come.
 */
static bool all_here(struct warp *w, const struct op *op, uint32_t mask, uint32_t *members)
{
    *members = mask;
    if (op->d == SLOT_NONE)
        return true;
    *members = ((const uint32_t *)slot_at(w, op->d))[__builtin_ctz(mask)];
    if ((*members & w->live & ~mask) == 0)
        return true;
    leave_rest(w, mask);
    struct split *s = &w->splits[w->current];
    s->state = SPLIT_AT_SYNC;
    s->wait = *members;
    return false;
}

enum exec_result exec_warp_sync(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t members;
    return all_here(w, op, mask, &members) ? EXEC_NEXT : EXEC_MOVED;
}

static void set_rows32(const struct warp *w, uint32_t slot, const uint32_t *values, uint32_t mask)
{
    uint32_t *d = slot_at(w, slot);
    for (uint32_t i = 0; i < LANES; i++)
        d[i] = mask >> i & 1 ? values[i] : d[i];
}

static void set_predicate(const struct warp *w, uint32_t slot, uint32_t bits, uint32_t mask)
{
    uint32_t *d = slot_at(w, slot);
    *d = (*d & ~mask) | (bits & mask);
}

static void set_same(const struct warp *w, uint32_t slot, uint32_t value, uint32_t mask)
{
    uint32_t *d = slot_at(w, slot);
    for (uint32_t i = 0; i < LANES; i++)
        d[i] = mask >> i & 1 ? value : d[i];
}

enum exec_result exec_shuffle(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t members, result[LANES], found = 0;
    if (!all_here(w, op, mask, &members))
        return EXEC_MOVED;
    const uint32_t *a = slot_at(w, op->a), *b = slot_at(w, op->b), *c = slot_at(w, op->c);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t by = b[lane] & 31, clamp = c[lane] & 31, segment = c[lane] >> 8 & 31;
        int most = (int)((lane & segment) | (clamp & ~segment)), from;
        bool in;
        if (op->aux == 'u') {
            from = (int)lane - (int)by;
            in = from >= most;
        } else {
            from = (int)(op->aux == 'd'   ? lane + by
                         : op->aux == 'b' ? lane ^ by
                                          : (lane & segment) | (by & ~segment));
            in = from <= most;
        }
        from = in ? from : (int)lane;
        found |= in ? 1u << lane : 0;
        result[lane] = a[from & 31];
    }
    set_rows32(w, op->dst, result, mask);
    if (op->e != SLOT_NONE)
        set_predicate(w, op->e, found, mask);
    return EXEC_NEXT;
}

enum exec_result exec_vote(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t members;
    if (!all_here(w, op, mask, &members))
        return EXEC_MOVED;
    uint32_t take = members & mask, p = *(const uint32_t *)slot_at(w, op->a) & take;
    if (op->aux == 'b') {
        set_same(w, op->dst, p, mask);
        return EXEC_NEXT;
    }
    bool value = op->aux == 'a' ? p == take : op->aux == 'o' ? p != 0 : p == take || p == 0;
    set_predicate(w, op->dst, value ? ALL_LANES : 0, mask);
    return EXEC_NEXT;
}

enum exec_result exec_match(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t members, result[LANES] = {0}, same_all = 0;
    if (!all_here(w, op, mask, &members))
        return EXEC_MOVED;
    uint32_t take = members & mask;
    const uint32_t *narrow = slot_at(w, op->a);
    const uint64_t *wide = slot_at(w, op->a);
    bool is_wide = (op->aux & 0xff) == 8;
    for (uint32_t i = 0; i < LANES; i++) {
        for (uint32_t k = 0; k < LANES; k++) {
            bool same = is_wide ? wide[i] == wide[k] : narrow[i] == narrow[k];
            result[i] |= same ? 1u << k & take : 0;
        }
        same_all |= result[i] == take ? 1u << i : 0;
        if (op->aux & 0x100)
            result[i] = result[i] == take ? take : 0;
    }
    set_rows32(w, op->dst, result, mask);
    if (op->e != SLOT_NONE)
        set_predicate(w, op->e, same_all, mask);
    return EXEC_NEXT;
}

enum exec_result exec_redux(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t members, total = 0;
    if (!all_here(w, op, mask, &members))
        return EXEC_MOVED;
    const uint32_t *a = slot_at(w, op->a);
    bool first = true;
    for (uint32_t m = members & mask; m; m &= m - 1) {
        uint32_t x = a[__builtin_ctz(m)];
        bool less = op->aux & 0x100 ? (int32_t)x < (int32_t)total : x < total;
        switch (op->aux & 0xff) {
        case 0:
            total += x;
            break;
        case 1:
            total = first || less ? x : total;
            break;
        case 2:
            total = first || !less ? x : total;
            break;
        case 3:
            total = first ? x : total & x;
            break;
        case 4:
            total |= x;
            break;
        default:
            total ^= x;
        }
        first = false;
    }
    set_same(w, op->dst, total, mask);
    return EXEC_NEXT;
}

enum exec_result exec_elect(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t members;
    if (!all_here(w, op, mask, &members))
        return EXEC_MOVED;
    uint32_t take = members & mask ? members & mask : mask, leader = (uint32_t)__builtin_ctz(take);
    set_same(w, op->dst, leader, mask);
    set_predicate(w, op->e, 1u << leader, mask);
    return EXEC_NEXT;
}

/* ---- waiting ---- */

enum exec_result exec_sleep(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint32_t *row = slot_at(w, op->a);
    uint32_t longest = 0;
    for (uint32_t m = mask; m; m &= m - 1)
        longest = row[__builtin_ctz(m)] > longest ? row[__builtin_ctz(m)] : longest;
    w->polls = true;
    if (!longest)
        return EXEC_NEXT;
    leave_rest(w, mask);
    struct split *s = &w->splits[w->current];
    s->pc++;
    s->state = SPLIT_ASLEEP;
    s->wake_ns = block_clock_ns(w->block) + longest;
    return EXEC_MOVED;
}

enum exec_result exec_poll(struct warp *w, const struct op *op, uint32_t mask)
{
    (void)op;
    (void)mask;
    w->polls = true;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return EXEC_NEXT;
}
