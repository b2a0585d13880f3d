/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Finds registers that may share a row, so that the rows of a warp fit its cache. nvcc's PTX writes
 * each register once, and so a kernel names thousands of them. Most are written and read within one
 * basic block.
 *
 * Such a register gives its row back after its last use. Another such register, in any block, can
 * take the row, because a lane is in one block at a time. Registers that live across blocks keep
 * rows of their own.
 */
#include <string.h>

#include "server/softgpu/decode/decode.h"

static bool writes_first_operand(const struct ptx_instruction *ins)
{
    static const char *const not [] = {
        "st",     "red",   "call",      "bra", "brx",      "ret",       "exit", "bar",  "barrier",
        "membar", "fence", "nanosleep", "cp",  "prefetch", "prefetchu", "trap", "brkpt"};
    for (size_t i = 0; i < sizeof(not ) / sizeof(not [0]); i++) {
        if (strcmp(ins->opcode, not [i]) == 0)
            return false;
    }
    return true;
}

static bool ends_block(const struct ptx_instruction *ins)
{
    static const char *const ends[] = {"bra", "brx", "ret", "exit", "trap", "brkpt"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (strcmp(ins->opcode, ends[i]) == 0)
            return true;
    }
    return false;
}

static void see_register(struct decoder *d, const struct ptx_variable *v, uint32_t index,
                         uint32_t at, uint32_t block, bool written)
{
    struct slot_entry *e = decode_entry(d, v, index);
    if (!e)
        return;
    if (e->block == 0) {
        e->block = block;
        e->local = written;
    } else if (e->block != block) {
        e->local = false;
    }
    e->last = at;
}

static void see_operand(struct decoder *d, const struct ptx_operand *op, uint32_t at,
                        uint32_t block, bool written)
{
    if (op->kind == PTX_OPERAND_REGISTER)
        see_register(d, op->variable, op->index, at, block, written);
    for (uint32_t i = 0; i < op->count; i++)
        see_operand(d, &op->items[i], at, block, written && op->kind != PTX_OPERAND_ADDRESS);
}

static void see_instruction(struct decoder *d, uint32_t at, uint32_t block)
{
    const struct ptx_instruction *ins = &d->function->instructions[at];
    bool first = writes_first_operand(ins);
    /* An instruction reads its operands before it writes its result: r = r + 1 needs the old r,
     * so the read counts first. */
    if (ins->guard)
        see_operand(d, ins->guard, at, block, false);
    for (uint32_t i = first; i < ins->operand_count; i++)
        see_operand(d, &ins->operands[i], at, block, false);
    /* If the guard is false the old value remains, perhaps from a loop's last round. So a
     * guarded write does not count as the first one. */
    if (first && ins->operand_count)
        see_operand(d, &ins->operands[0], at, block, !ins->guard);
}

static void keep_formals(struct decoder *d, const struct ptx_variable **formals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (formals[i]->space == PTX_SPACE_REG)
            see_register(d, formals[i], 0, 0, UINT32_MAX, false);
    }
}

bool decode_find_lifetimes(struct decoder *d)
{
    const struct ptx_function *f = d->function;
    uint32_t block = 1;
    /* Labels are at the beginnings of instructions. `starts` is unused until code is emitted, so
     * it serves here. */
    for (uint32_t i = 0; i < f->label_count; i++)
        d->starts[f->labels[i].instruction] = 1;
    keep_formals(d, f->params, f->param_count);
    keep_formals(d, f->returns, f->return_count);
    for (uint32_t i = 0; i < f->instruction_count && !d->failed; i++) {
        block += d->starts[i] || (i && ends_block(&f->instructions[i - 1]));
        see_instruction(d, i, block);
    }
    return !d->failed;
}
