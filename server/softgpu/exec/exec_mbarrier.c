/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Barriers that are words in shared memory, and bulk copies that report to them (PTX ISA,
 * "mbarrier"). The word is opaque to programs. No atomics: one thread carries out all of
 * a block, and there are no clusters, so no other block reaches the word.
 */
#include <string.h>

#include "server/softgpu/exec/exec_access.h"

/* Counts have 20 bits, of which the ISA allows 1 to 2^20-1, and bytes under way one for the sign
 * besides. */
#define COUNT_BITS 20
#define COUNT_MASK ((UINT64_C(1) << COUNT_BITS) - 1)
#define BYTES_BITS 22
#define BYTES_MASK ((UINT64_C(1) << BYTES_BITS) - 1)
#define PHASE      63

static uint64_t pending_of(uint64_t word)
{
    return word & COUNT_MASK;
}

static uint64_t expected_of(uint64_t word)
{
    return word >> COUNT_BITS & COUNT_MASK;
}

/* Modulo 2^22: bytes may arrive before they are expected. */
static uint64_t bytes_of(uint64_t word)
{
    return word >> 2 * COUNT_BITS & BYTES_MASK;
}

static uint64_t compose(uint64_t pending, uint64_t expected, uint64_t bytes, uint64_t phase)
{
    return (pending & COUNT_MASK) | (expected & COUNT_MASK) << COUNT_BITS |
           (bytes & BYTES_MASK) << 2 * COUNT_BITS | phase << PHASE;
}

/* arrivals: that come now. leaving: of these, that no later phase waits for. bytes: that are to
 * come besides, negative for those that have come. Returns the next word. */
static uint64_t advance(uint64_t word, uint64_t arrivals, uint64_t leaving, int64_t bytes)
{
    uint64_t pending = pending_of(word), expected = expected_of(word), phase = word >> PHASE;
    uint64_t left = (bytes_of(word) + (uint64_t)bytes) & BYTES_MASK;
    pending -= arrivals;
    expected -= leaving;
    if ((pending & COUNT_MASK) == 0 && left == 0) {
        pending = expected;
        phase ^= 1;
    }
    return compose(pending, expected, left, phase);
}

static uint64_t act(const struct op *op, uint64_t word, uint32_t number)
{
    switch ((enum mbarrier_act)(op->aux & 0xff)) {
    case MBARRIER_INIT:
        return compose(number, number, 0, 0);
    case MBARRIER_EXPECT:
        return word + (((uint64_t)number & BYTES_MASK) << 2 * COUNT_BITS);
    case MBARRIER_COMPLETE:
        return advance(word, 0, 0, -(int64_t)number);
    case MBARRIER_ARRIVE:
        return advance(word, number, 0, 0);
    case MBARRIER_ARRIVE_DROP:
        return advance(word, number, number, 0);
    case MBARRIER_ARRIVE_EXPECT:
        return advance(word, 1, 0, number);
    case MBARRIER_DROP_EXPECT:
        return advance(word, 1, 1, number);
    default: /* MBARRIER_INVAL */
        return 0;
    }
}

static uint64_t *word_of(struct warp *w, const struct op *op, uint32_t lane, uint64_t address)
{
    struct access_request q = {op->aux >> 8, 8, 8, MEMORY_READ | MEMORY_WRITE};
    enum fault_kind why;
    uint64_t *word = (uint64_t *)(void *)exec_access_pointer(w, &q, lane, address, &why);
    if (!word)
        exec_fault(w, op, why, lane, address, 8, "atomic");
    return word;
}

enum exec_result exec_mbarrier(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint64_t *base = slot_at(w, op->a);
    const uint32_t *numbers = slot_at(w, op->b);
    uint64_t *state = op->dst == SLOT_NONE ? NULL : slot_at(w, op->dst);
    w->polls = true;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        uint32_t number = numbers[lane];
        uint64_t *word = word_of(w, op, lane, base[lane] + op->imm);
        if (!word)
            return EXEC_FAULT;
        uint64_t before = *word;
        *word = act(op, before, number);
        if (state)
            state[lane] = before;
    }
    return EXEC_NEXT;
}

/* Whether the phase is over that a state, or the parity of a phase, names. */
enum exec_result exec_mbarrier_test(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint64_t *base = slot_at(w, op->a);
    const uint64_t *states = slot_at(w, op->b);
    const uint32_t *parities = slot_at(w, op->b);
    uint32_t *result = slot_at(w, op->dst), over = 0;
    bool parity = (op->aux & 0xff) == MBARRIER_TEST_PARITY;
    w->polls = true;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        const uint64_t *word = word_of(w, op, lane, base[lane] + op->imm);
        if (!word)
            return EXEC_FAULT;
        uint64_t phase = parity ? parities[lane] & 1 : states[lane] >> PHASE;
        over |= (*word >> PHASE != phase ? 1u : 0u) << lane;
    }
    *result = (*result & ~mask) | over;
    return EXEC_NEXT;
}

void exec_mbarrier_pending(const struct warp *w, const struct op *op, void *out)
{
    const uint64_t *states = slot_at(w, op->a);
    uint32_t result[LANES];
    for (unsigned i = 0; i < LANES; i++)
        result[i] = (uint32_t)pending_of(states[i]);
    memcpy(out, result, sizeof result);
}

/* Between global and shared memory, at once; the barrier, if there is one, is told then. */
enum exec_result exec_copy_bulk(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint64_t *to = slot_at(w, op->a), *from = slot_at(w, op->b);
    const uint32_t *sizes = slot_at(w, op->c);
    const uint64_t *barrier = op->d == SLOT_NONE ? NULL : slot_at(w, op->d);
    uint32_t from_space = barrier ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED;
    uint32_t to_space = barrier ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL;
    w->polls = true;
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m), size = sizes[lane];
        struct access_request source = {from_space, size ? size : 16, 16, MEMORY_READ};
        struct access_request target = {to_space, size ? size : 16, 16, MEMORY_WRITE};
        enum fault_kind why;
        if (size % 16)
            return exec_fault(w, op, FAULT_MISALIGNED_ADDRESS, lane, from[lane], size, "read");
        const uint8_t *s = size ? exec_access_pointer(w, &source, lane, from[lane], &why) : NULL;
        if (size && !s)
            return exec_fault(w, op, why, lane, from[lane], size, "read");
        uint8_t *t = size ? exec_access_pointer(w, &target, lane, to[lane], &why) : NULL;
        if (size && !t)
            return exec_fault(w, op, why, lane, to[lane], size, "write");
        if (size)
            memcpy(t, s, size);
        uint64_t *word = barrier ? word_of(w, op, lane, barrier[lane]) : NULL;
        if (barrier && !word)
            return EXEC_FAULT;
        if (word)
            *word = advance(*word, 0, 0, -(int64_t)size);
    }
    return EXEC_NEXT;
}
