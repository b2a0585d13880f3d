/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Instructions that lanes, or warps, execute together. */
#include <string.h>

#include "server/softgpu/exec/exec.h"

/* The lanes whose guard is false go on without the current split. */
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

static void arrive_at_barrier(struct warp *w, const struct op *op, uint32_t mask, uint32_t number)
{
    struct block *b = w->block;
    struct barrier *barrier = &b->barriers[number];
    if (!(b->awaited >> number & 1))
        *barrier = (struct barrier){0};
    uint32_t lane = (uint32_t)__builtin_ctz(mask);
    uint32_t expected = ((const uint32_t *)slot_at(w, op->b))[lane];
    uint32_t threads = (uint32_t)__builtin_popcount(mask);
    if (op->imm) {
        uint32_t p = *(const uint32_t *)slot_at(w, op->c);
        barrier->count += threads;
        barrier->ones += (uint32_t)__builtin_popcount(mask & p);
    }
    /* A barrier counts whole warps, so lanes that don't exist arrive together with the others. */
    if (expected && mask == w->live)
        threads = LANES;
    barrier->arrived += threads;
    b->awaited |= 1u << number;
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
        return exec_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "there are barriers 0 to 15");
    leave_rest(w, mask);
    struct split *s = &w->splits[w->current];
    s->state = SPLIT_AT_BARRIER;
    s->wait = number;
    arrive_at_barrier(w, op, mask, number);
    block_check_barriers(w->block);
    return EXEC_MOVED;
}

enum exec_result exec_barrier_arrive(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t number;
    if (!barrier_number(w, op, mask, &number))
        return exec_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "there are barriers 0 to 15");
    arrive_at_barrier(w, op, mask, number);
    block_check_barriers(w->block);
    return EXEC_NEXT;
}

/* ---- lanes together ---- */

/* The mask that each lane names; NULL if the instruction names none. */
static const uint32_t *member_masks(const struct warp *w, const struct op *op)
{
    return op->d == SLOT_NONE ? NULL : slot_at(w, op->d);
}

/* The lanes of mask that name the same members as its lowest lane. */
static uint32_t same_members(const uint32_t *members, uint32_t mask)
{
    uint32_t same = 0, first = members[__builtin_ctz(mask)];
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        same |= members[lane] == first ? 1u << lane : 0;
    }
    return same;
}

/* Lets lanes wait at this instruction. They execute it again when their members have arrived. */
static void wait_for_members(struct warp *w, const uint32_t *members, uint32_t mask, uint64_t ran)
{
    while (mask) {
        uint32_t group = same_members(members, mask);
        w->splits[w->split_count++] = (struct split){.mask = group,
                                                     .pc = w->pc,
                                                     .frame = w->frame,
                                                     .state = SPLIT_AT_SYNC,
                                                     .wait = members[__builtin_ctz(group)],
                                                     .ran = ran};
        mask &= ~group;
    }
}

/*
 * Returns the lanes of mask whose members have all arrived or ended; the rest wait. Lanes may name
 * different members in one instruction; then each group goes on separately. *next: the result for
 * the action to return.
 */
static uint32_t gather_members(struct warp *w, const struct op *op, uint32_t mask,
                               enum exec_result *next)
{
    const uint32_t *members = member_masks(w, op);
    uint32_t missing = w->live & ~mask, waiting = 0;
    *next = EXEC_NEXT;
    for (uint32_t m = members && missing ? mask : 0; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        waiting |= members[lane] & missing ? 1u << lane : 0;
    }
    if (!waiting)
        return mask;
    *next = EXEC_MOVED;
    struct split *s = &w->splits[w->current];
    const uint64_t ran = s->ran;
    s->mask = w->mask & ~waiting;
    s->pc = w->pc + 1;
    /* First, because each lane may be a split of its own, and there is no room for one more. */
    if (!s->mask)
        warp_remove_split(w, w->current);
    wait_for_members(w, members, waiting, ran);
    return mask & ~waiting;
}

/* Takes the first group out of *left. Returns its lanes, and in *members the lanes that they
 * name. */
static uint32_t next_group(const struct warp *w, const struct op *op, uint32_t here, uint32_t *left,
                           uint32_t *members)
{
    const uint32_t *masks = member_masks(w, op);
    uint32_t group = masks ? same_members(masks, *left) : *left;
    *members = masks ? masks[__builtin_ctz(group)] & here : here;
    *left &= ~group;
    return group;
}

enum exec_result exec_warp_sync(struct warp *w, const struct op *op, uint32_t mask)
{
    enum exec_result next;
    gather_members(w, op, mask, &next);
    return next;
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
    enum exec_result next;
    uint32_t result[LANES], found = 0, here = gather_members(w, op, mask, &next);
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
        /* PTX leaves open what is read of a lane that does not take part. An H100 gives 0, of lanes
         * that have ended, are elsewhere or do not exist (docs/gpu-results.md), and programs rely
         * on it. */
        result[lane] = here >> (from & 31) & 1 ? a[from & 31] : 0;
    }
    set_rows32(w, op->dst, result, here);
    if (op->e != SLOT_NONE)
        set_predicate(w, op->e, found, here);
    return next;
}

enum exec_result exec_vote(struct warp *w, const struct op *op, uint32_t mask)
{
    enum exec_result next;
    uint32_t here = gather_members(w, op, mask, &next), left = here, members;
    /* May be the row of the results. */
    const uint32_t source = *(const uint32_t *)slot_at(w, op->a);
    while (left) {
        uint32_t group = next_group(w, op, here, &left, &members), p = source & members;
        bool value = op->aux == 'a'   ? p == members
                     : op->aux == 'o' ? p != 0
                                      : p == members || p == 0;
        if (op->aux == 'b')
            set_same(w, op->dst, p, group);
        else
            set_predicate(w, op->dst, value ? ALL_LANES : 0, group);
    }
    return next;
}

/* The lanes of members that have the same value as lane i. */
static uint32_t lanes_like(const struct warp *w, const struct op *op, uint32_t i, uint32_t members)
{
    const uint32_t *narrow = slot_at(w, op->a);
    const uint64_t *wide = slot_at(w, op->a);
    uint32_t same = 0;
    for (uint32_t m = members; m; m &= m - 1) {
        uint32_t k = (uint32_t)__builtin_ctz(m);
        bool equal = (op->aux & 0xff) == 8 ? wide[i] == wide[k] : narrow[i] == narrow[k];
        same |= equal ? 1u << k : 0;
    }
    return same;
}

enum exec_result exec_match(struct warp *w, const struct op *op, uint32_t mask)
{
    enum exec_result next;
    uint32_t here = gather_members(w, op, mask, &next), left = here, members, all = 0;
    uint32_t result[LANES] = {0};
    while (left) {
        for (uint32_t m = next_group(w, op, here, &left, &members); m; m &= m - 1) {
            uint32_t i = (uint32_t)__builtin_ctz(m);
            result[i] = lanes_like(w, op, i, members);
            all |= result[i] == members ? 1u << i : 0;
            if ((op->aux & 0x100) && result[i] != members)
                result[i] = 0;
        }
    }
    set_rows32(w, op->dst, result, here);
    if (op->e != SLOT_NONE)
        set_predicate(w, op->e, all, here);
    return next;
}

/* aux: the operation, | 0x100 for signed numbers. */
static uint32_t reduce_members(const uint32_t *a, uint32_t members, uint32_t aux)
{
    uint32_t total = 0;
    bool first = true;
    for (uint32_t m = members; m; m &= m - 1) {
        uint32_t x = a[__builtin_ctz(m)];
        bool less = aux & 0x100 ? (int32_t)x < (int32_t)total : x < total;
        switch (aux & 0xff) {
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
    return total;
}

enum exec_result exec_redux(struct warp *w, const struct op *op, uint32_t mask)
{
    enum exec_result next;
    uint32_t here = gather_members(w, op, mask, &next), left = here, members, result[LANES] = {0};
    while (left) {
        uint32_t group = next_group(w, op, here, &left, &members);
        uint32_t total = reduce_members(slot_at(w, op->a), members, op->aux);
        for (uint32_t m = group; m; m &= m - 1)
            result[__builtin_ctz(m)] = total;
    }
    set_rows32(w, op->dst, result, here);
    return next;
}

enum exec_result exec_elect(struct warp *w, const struct op *op, uint32_t mask)
{
    enum exec_result next;
    uint32_t here = gather_members(w, op, mask, &next), left = here, members;
    while (left) {
        uint32_t group = next_group(w, op, here, &left, &members);
        uint32_t leader = (uint32_t)__builtin_ctz(members ? members : group);
        set_same(w, op->dst, leader, group);
        set_predicate(w, op->e, 1u << leader, group);
    }
    return next;
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
    s->wake_ns = block_clock_ns(w->block) + (uint64_t)longest * w->block->pace_permille / 1000;
    return EXEC_MOVED;
}

enum exec_result exec_poll(struct warp *w, const struct op *op, uint32_t mask)
{
    (void)op;
    (void)mask;
    w->polls = true;
    __sync_synchronize(); /* ThreadSanitizer refuses __atomic_thread_fence */
    return EXEC_NEXT;
}
