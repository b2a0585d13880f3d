/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Values that depend on the state of the machine, and not on registers alone. */
#include <string.h>

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/module_private.h"

/* Modelled cycles at 1 GHz; or the number of instructions, if these take no time. */
static uint64_t clock_cycles(const struct block *b)
{
    return b->rate ? b->clock_ps / 1000 : b->cycles;
}

static uint64_t timer_ns(const struct block *b)
{
    uint64_t now = block_clock_ns(b);

    return b->launch->timer_step_ns > 1 ? now - now % b->launch->timer_step_ns : now;
}

static uint64_t lane_special(const struct warp *w, uint32_t id, uint64_t axis, uint32_t lane)
{
    switch (id) {
    case 'T':
        return axis < 3 ? w->tid[axis][lane] : 0;
    case 'l':
        return lane;
    case '=':
        return 1u << lane;
    case '<':
        return (1u << lane) - 1;
    case '{':
        return (2u << lane) - 1;
    case '>':
        return ~((2u << lane) - 1);
    default: /* '}' */
        return ~((1u << lane) - 1);
    }
}

static uint64_t warp_special(const struct warp *w, uint32_t id, uint64_t axis)
{
    const struct block *b = w->block;
    switch (id) {
    case 'N':
        return axis < 3 ? b->launch->threads[axis] : 0;
    case 'C':
        return axis < 3 ? b->index[axis] : 0;
    case 'G':
        return axis < 3 ? b->launch->grid[axis] : 0;
    case 'w':
        return w->index;
    case 'W':
        return b->warp_count;
    case 's':
        return b->sm;
    case 'S':
        return b->launch->sm_count;
    case 'g':
        return b->launch->grid_id;
    case 'e':
        return b->launch->workspace >> 32;
    case 'E':
        return (uint32_t)b->launch->workspace;
    case 'c':
    case 'k':
        return clock_cycles(b);
    case 'h':
        return clock_cycles(b) >> 32;
    case 't':
    case 'i':
        return timer_ns(b);
    case 'j':
        return timer_ns(b) >> 32;
    case 'd':
        return b->launch->dynamic_shared_bytes;
    case 'D':
        return b->shared_bytes;
    case 'z':
        return LANES;
    case '1':
        return 1;
    default:
        return 0;
    }
}

static bool differs_by_lane(uint32_t id)
{
    return strchr("Tl=<{>}", (int)id) != NULL;
}

void exec_special32(const struct warp *w, const struct op *op, void *out)
{
    uint32_t *d = out,
             one = differs_by_lane(op->aux) ? 0 : (uint32_t)warp_special(w, op->aux, op->imm);
    bool each = differs_by_lane(op->aux);
    for (uint32_t i = 0; i < LANES; i++)
        d[i] = each ? (uint32_t)lane_special(w, op->aux, op->imm, i) : one;
}

void exec_special64(const struct warp *w, const struct op *op, void *out)
{
    uint64_t *d = out, one = differs_by_lane(op->aux) ? 0 : warp_special(w, op->aux, op->imm);
    bool each = differs_by_lane(op->aux);
    for (uint32_t i = 0; i < LANES; i++)
        d[i] = each ? (uint32_t)lane_special(w, op->aux, op->imm, i) : one;
}

void exec_active_mask(const struct warp *w, const struct op *op, void *out)
{
    uint32_t *d = out, mask = w->splits[w->current].mask;
    if (op->guard != SLOT_NONE) {
        uint32_t p = *(const uint32_t *)slot_at(w, op->guard);
        mask &= op->negated ? ~p : p;
    }
    for (int i = 0; i < LANES; i++)
        d[i] = mask;
}

/* Offsets were checked against the parameter when the code was decoded. */
void exec_param(const struct warp *w, const struct op *op, void *out)
{
    uint32_t bytes = op->aux >> 8, width = op->aux & 0x7f;
    bool is_signed = op->aux & ACCESS_SIGNED;
    uint64_t value = 0;
    memcpy(&value, w->block->launch->params + op->imm, bytes);
    if (is_signed && bytes < 8)
        value = (uint64_t)((int64_t)(value << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    for (uint32_t i = 0; i < LANES; i++) {
        if (width == 8)
            ((uint64_t *)out)[i] = value;
        else if (width == 4)
            ((uint32_t *)out)[i] = (uint32_t)value;
        else
            ((uint16_t *)out)[i] = (uint16_t)value;
    }
}

void exec_local_address(const struct warp *w, const struct op *op, void *out)
{
    uint64_t *d = out, address = w->frame->local_base + op->imm;
    for (int i = 0; i < LANES; i++)
        d[i] = address;
}

void exec_space_test(const struct warp *w, const struct op *op, void *out)
{
    const uint64_t *a = slot_at(w, op->a);
    const struct module *m = w->block->module;
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++) {
        uint64_t window = a[i] & WINDOW_MASK;
        bool in_const = a[i] - m->const_base < m->const_bytes;
        bool yes = op->aux == 's'   ? window == WINDOW_SHARED
                   : op->aux == 'l' ? window == WINDOW_LOCAL
                   : op->aux == 'p' ? window == WINDOW_PARAM
                   : op->aux == 'c' ? in_const
                                    : window == 0 && !in_const;
        bits |= yes ? 1u << i : 0;
    }
    *(uint32_t *)out = bits;
}

static uint64_t insert_bits(uint64_t a, uint64_t b, uint32_t position, uint32_t length,
                            uint32_t bits)
{
    position &= 0xff;
    length &= 0xff;
    if (position >= bits || length == 0)
        return b;
    length = length > bits - position ? bits - position : length;
    uint64_t mask = (length > 63 ? ~UINT64_C(0) : (UINT64_C(1) << length) - 1) << position;
    return (b & ~mask) | (a << position & mask);
}

void exec_insert32(const struct warp *w, const struct op *op, void *out)
{
    const uint32_t *a = slot_at(w, op->a), *b = slot_at(w, op->b), *c = slot_at(w, op->c);
    const uint32_t *e = slot_at(w, op->d);
    uint32_t *d = out;
    for (int i = 0; i < LANES; i++)
        d[i] = (uint32_t)insert_bits(a[i], b[i], c[i], e[i], 32);
}

void exec_insert64(const struct warp *w, const struct op *op, void *out)
{
    const uint64_t *a = slot_at(w, op->a), *b = slot_at(w, op->b);
    const uint32_t *c = slot_at(w, op->c), *e = slot_at(w, op->d);
    uint64_t *d = out;
    for (int i = 0; i < LANES; i++)
        d[i] = insert_bits(a[i], b[i], c[i], e[i], 64);
}
