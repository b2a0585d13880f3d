/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Actions that change the program counter: ends of threads, calls and returns, branches by
 * table. */
#include <string.h>

#include "common/util.h"
#include "server/softgpu/exec/exec.h"

enum exec_result exec_exit(struct warp *w, const struct op *op, uint32_t mask)
{
    (void)op;
    struct split *s = &w->splits[w->current];
    s->mask = w->mask & ~mask;
    s->pc = w->pc + 1;
    uint32_t left = s->mask;
    warp_exit_lanes(w, mask);
    if (!left)
        warp_remove_split(w, w->current);
    block_check_barriers(w->block);
    return EXEC_MOVED;
}

static void copy_param(struct warp *w, const struct frame *from, const struct code_param *a,
                       const struct frame *to, const struct code_param *b, uint32_t mask)
{
    uint32_t bytes = min(a->bytes, b->bytes);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        uint8_t *local = w->local + (size_t)lane * w->local_stride;
        uint8_t *base = a->slot & SLOT_CONSTANT ? from->code->constants : from->regs;
        const uint8_t *source = a->space == PTX_SPACE_REG
                                    ? base + (a->slot & ~SLOT_CONSTANT) + lane * a->width
                                    : local + from->local_base + a->offset;
        uint8_t *target = b->space == PTX_SPACE_REG ? to->regs + b->slot + lane * b->width
                                                    : local + to->local_base + b->offset;
        memcpy(target, source, bytes);
    }
}

enum exec_result exec_ret(struct warp *w, const struct op *op, uint32_t mask)
{
    struct frame *f = w->frame;
    if (!f->caller)
        return exec_exit(w, op, mask);
    struct split *s = &w->splits[w->current];
    uint32_t count = min(f->call->result_count, f->code->ptx->return_count);
    for (uint32_t i = 0; i < count; i++)
        copy_param(w, f, &f->code->results[i], f->caller, &f->call->results[i], mask);
    uint32_t rest = w->mask & ~mask;
    *s = (struct split){.mask = mask, .pc = f->return_pc, .frame = f->caller, .ran = s->ran};
    if (rest)
        w->splits[w->split_count++] =
            (struct split){.mask = rest, .pc = w->pc + 1, .frame = f, .ran = s->ran};
    f->live &= ~mask;
    if (!f->live)
        warp_free_frame(w, f);
    return EXEC_MOVED;
}

/* Lanes of a split that call different functions become splits of their own. */
static enum exec_result call_some(struct warp *w, const struct op *op, const struct code *code,
                                  uint32_t mask)
{
    const struct code_call *call = &w->frame->code->calls[op->aux];
    struct frame *caller = w->frame;
    struct frame *f = warp_push_frame(w, code, caller, mask);
    if (!f)
        return exec_fault(w, op, FAULT_STACK, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "the call chain is too deep");
    f->return_pc = w->pc + 1;
    f->call = call;
    uint32_t count = min(call->arg_count, code->ptx->param_count);
    for (uint32_t i = 0; i < count; i++)
        copy_param(w, caller, &call->args[i], f, &code->params[i], mask);
    struct split *s = &w->splits[w->current];
    uint32_t rest = s->mask & ~mask;
    if (rest)
        w->splits[w->split_count++] =
            (struct split){.mask = rest, .pc = s->pc, .frame = caller, .ran = s->ran};
    *s = (struct split){.mask = mask, .pc = 0, .frame = f, .ran = s->ran};
    return EXEC_MOVED;
}

enum exec_result exec_call(struct warp *w, const struct op *op, uint32_t mask)
{
    const struct code_call *call = &w->frame->code->calls[op->aux];
    struct split *s = &w->splits[w->current];
    uint32_t rest = w->mask & ~mask;
    s->pc = w->pc;
    s->mask = mask;
    if (rest) {
        w->splits[w->split_count++] =
            (struct split){.mask = rest, .pc = w->pc + 1, .frame = w->frame, .ran = s->ran};
    }
    if (call->callee) {
        const struct code *code = code_of(w->block->module, call->callee);
        if (!code)
            return exec_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, (uint32_t)__builtin_ctz(mask), 0, 0,
                              "call of a function without body");
        return call_some(w, op, code, mask);
    }
    const uint64_t *targets = slot_at(w, op->a);
    uint32_t first = (uint32_t)__builtin_ctz(mask), same = 0;
    for (uint32_t i = 0; i < LANES; i++)
        same |= (mask >> i & 1) && targets[i] == targets[first] ? 1u << i : 0;
    const struct code *code = code_at(w->block->module, targets[first]);
    if (!code || code->ptx->entry)
        return exec_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, first, targets[first], 8,
                          "call of what is no function");
    /* The lanes that call other functions stay at this instruction, and call when it is their
     * turn. */
    return call_some(w, op, code, same);
}

enum exec_result exec_brx(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint32_t *index = slot_at(w, op->a);
    const uint32_t *targets = w->frame->code->tables + op->aux;
    struct split *s = &w->splits[w->current];
    uint32_t rest = w->mask & ~mask;
    struct frame *frame = w->frame;
    uint64_t ran = s->ran;
    bool first = true;
    for (uint32_t i = 0; i < LANES; i++) {
        if ((mask >> i & 1) && index[i] >= op->imm)
            return exec_fault(w, op, FAULT_ILLEGAL_INSTRUCTION, i, 0, 0,
                              "brx.idx beyond its table");
    }
    for (uint32_t todo = mask; todo;) {
        uint32_t lane = (uint32_t)__builtin_ctz(todo), same = 0;
        for (uint32_t i = lane; i < LANES; i++)
            same |= (todo >> i & 1) && targets[index[i]] == targets[index[lane]] ? 1u << i : 0;
        struct split go = {.mask = same, .pc = targets[index[lane]], .frame = frame, .ran = ran};
        if (first)
            *s = go;
        else
            w->splits[w->split_count++] = go;
        first = false;
        todo &= ~same;
    }
    if (rest)
        w->splits[w->split_count++] =
            (struct split){.mask = rest, .pc = w->pc + 1, .frame = frame, .ran = ran};
    return EXEC_MOVED;
}

enum exec_result exec_trap(struct warp *w, const struct op *op, uint32_t mask)
{
    return exec_fault(w, op, FAULT_TRAP, (uint32_t)__builtin_ctz(mask), 0, 0,
                      "the kernel executed trap");
}

enum exec_result exec_nop(struct warp *w, const struct op *op, uint32_t mask)
{
    (void)w;
    (void)op;
    (void)mask;
    return EXEC_NEXT;
}

enum exec_result exec_alloca(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint64_t *sizes = slot_at(w, op->a);
    uint64_t longest = 0, offset, *row = slot_at(w, op->dst);
    for (uint32_t m = mask; m; m &= m - 1)
        longest = max(longest, sizes[__builtin_ctz(m)]);
    if (!warp_allocate_local(w, longest, op->imm, &offset))
        return exec_fault(w, op, FAULT_STACK, (uint32_t)__builtin_ctz(mask), 0, 0,
                          "alloca of more than local memory has");
    for (uint32_t m = mask; m; m &= m - 1)
        row[__builtin_ctz(m)] = offset;
    return EXEC_NEXT;
}
