/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Instructions that lanes, or warps, execute together. */
#include <string.h>

#include "server/softgpu/decode/decode.h"

static void decode_barrier(struct decoder *d)
{
    decode_take(d, "cta");
    decode_take(d, "aligned");
    if (decode_take(d, "warp")) {
        decode_take(d, "sync");
        decode_count(d, 1, 1);
        uint32_t members = decode_in(d, 0, PTX_B32);
        decode_action(d, exec_warp_sync, 0, 0, 0, 0)->d = members;
        return;
    }
    uint32_t zero = decode_constant(d, 0, 4), n = d->ins->operand_count, dst = 0, p = 0, first = 0;
    uint64_t reduce = 0;
    bool arrive = decode_take(d, "arrive");
    if (decode_take(d, "red")) {
        reduce = decode_take(d, "popc") ? 'p' : decode_take(d, "and") ? 'a' : 'o';
        decode_take(d, "or");
        enum ptx_type type = decode_need_type(d);
        dst = decode_out(d, 0, reduce == 'p' ? PTX_U32 : PTX_PRED);
        if ((type == PTX_PRED) != (reduce != 'p') || n < 3) {
            decode_fail(d, "'%.60s.red' is malformed", d->ins->opcode);
            return;
        }
        p = decode_predicate(d, decode_operand(d, --n));
        first = 1;
    } else if (!arrive && !decode_take(d, "sync")) {
        decode_fail(d, "unknown instruction '%.60s'", d->ins->opcode);
        return;
    }
    if (n > first + 2 || (arrive && n != 2))
        decode_fail(d, "the number of operands of '%.60s' can't be %u", d->ins->opcode, n);
    uint32_t number = n > first ? decode_in(d, first, PTX_U32) : zero;
    uint32_t count = n > first + 1 ? decode_in(d, first + 1, PTX_U32) : zero;
    struct op *op =
        decode_action(d, arrive ? exec_barrier_arrive : exec_barrier, dst, number, count, p);
    op->imm = reduce;
}

static void decode_shuffle(struct decoder *d)
{
    bool sync = decode_take(d, "sync");
    uint32_t mode = decode_take(d, "up")     ? 'u'
                    : decode_take(d, "down") ? 'd'
                    : decode_take(d, "bfly") ? 'b'
                    : decode_take(d, "idx")  ? 'i'
                                             : 0;
    decode_take(d, "b32");
    decode_count(d, sync ? 5 : 4, sync ? 5 : 4);
    if (!mode)
        decode_fail(d, "shfl without a mode");
    const struct ptx_operand *to = decode_operand(d, 0);
    uint32_t width = 4, p = SLOT_NONE, none = 0, dst;
    if (to->kind == PTX_OPERAND_PAIR) {
        dst = decode_target(d, &to->items[0], &width);
        p = decode_target(d, &to->items[1], &none);
        if (width != 4 || none)
            decode_fail(d, "shfl needs a 32-bit register and a predicate");
    } else {
        dst = decode_out(d, 0, PTX_B32);
    }
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32),
             c = decode_in(d, 3, PTX_B32);
    uint32_t members = sync ? decode_in(d, 4, PTX_B32) : SLOT_NONE;
    struct op *op = decode_action(d, exec_shuffle, dst, a, b, c);
    op->d = members;
    op->e = p;
    op->aux = mode;
}

static void decode_vote(struct decoder *d)
{
    bool sync = decode_take(d, "sync");
    uint32_t mode = decode_take(d, "ballot") ? 'b'
                    : decode_take(d, "all")  ? 'a'
                    : decode_take(d, "any")  ? 'o'
                    : decode_take(d, "uni")  ? 'u'
                                             : 0;
    decode_take(d, "pred");
    decode_take(d, "b32");
    decode_count(d, sync ? 3 : 2, sync ? 3 : 2);
    if (!mode)
        decode_fail(d, "vote without a mode");
    uint32_t dst = decode_out(d, 0, mode == 'b' ? PTX_B32 : PTX_PRED);
    uint32_t p = decode_predicate(d, decode_operand(d, 1));
    uint32_t members = sync ? decode_in(d, 2, PTX_B32) : SLOT_NONE;
    struct op *op = decode_action(d, exec_vote, dst, p, 0, 0);
    op->d = members;
    op->aux = mode;
}

static void decode_match(struct decoder *d)
{
    decode_take(d, "sync");
    bool all = decode_take(d, "all");
    decode_take(d, "any");
    enum ptx_type type = decode_need_type(d);
    decode_count(d, 3, 3);
    const struct ptx_operand *to = decode_operand(d, 0);
    uint32_t width = 4, none = 0, p = SLOT_NONE, dst;
    if (decode_type_width(type) != 4 && decode_type_width(type) != 8)
        decode_fail(d, "match is not for type %s", ptx_type_name(type));
    if (to->kind == PTX_OPERAND_PAIR) {
        dst = decode_target(d, &to->items[0], &width);
        p = decode_target(d, &to->items[1], &none);
        if (width != 4 || none)
            decode_fail(d, "match needs a 32-bit register and a predicate");
    } else {
        dst = decode_out(d, 0, PTX_B32);
    }
    uint32_t a = decode_in(d, 1, type), members = decode_in(d, 2, PTX_B32);
    struct op *op = decode_action(d, exec_match, dst, a, 0, 0);
    op->d = members;
    op->e = p;
    op->aux = decode_type_width(type) | (all ? 0x100u : 0);
}

static void decode_redux(struct decoder *d)
{
    static const char *const names[] = {"add", "min", "max", "and", "or", "xor"};
    uint32_t id = 99;
    decode_take(d, "sync");
    for (uint32_t i = 0; i < 6; i++)
        id = decode_take(d, names[i]) ? i : id;
    enum ptx_type type = decode_need_type(d);
    decode_count(d, 3, 3);
    if (id > 5 || decode_type_width(type) != 4 || type_is_float(type))
        decode_fail(d, "redux without an operation for type %s", ptx_type_name(type));
    uint32_t a = decode_in(d, 1, type), members = decode_in(d, 2, PTX_B32);
    struct op *op = decode_action(d, exec_redux, decode_out(d, 0, type), a, 0, 0);
    op->d = members;
    op->aux = id | (type == PTX_S32 ? 0x100u : 0);
}

static void decode_elect(struct decoder *d)
{
    decode_take(d, "sync");
    decode_count(d, 2, 2);
    const struct ptx_operand *to = decode_operand(d, 0);
    uint32_t width = 4, none = 0;
    if (to->kind != PTX_OPERAND_PAIR) {
        decode_fail(d, "elect needs two results");
        return;
    }
    uint32_t dst = decode_target(d, &to->items[0], &width);
    uint32_t p = decode_target(d, &to->items[1], &none);
    if (width != 4 || none)
        decode_fail(d, "elect needs a 32-bit register and a predicate");
    uint32_t members = decode_in(d, 1, PTX_B32);
    struct op *op = decode_action(d, exec_elect, dst, 0, 0, 0);
    op->d = members;
    op->e = p;
}

bool decode_warp(struct decoder *d)
{
    if (decode_opcode_is(d, "bar") ||
        (decode_opcode_is(d, "barrier") && !decode_take(d, "cluster"))) {
        decode_barrier(d);
    } else if (decode_opcode_is(d, "shfl")) {
        decode_shuffle(d);
    } else if (decode_opcode_is(d, "vote")) {
        decode_vote(d);
    } else if (decode_opcode_is(d, "match")) {
        decode_match(d);
    } else if (decode_opcode_is(d, "redux")) {
        decode_redux(d);
    } else if (decode_opcode_is(d, "elect")) {
        decode_elect(d);
    } else if (decode_opcode_is(d, "activemask")) {
        decode_take(d, "b32");
        decode_count(d, 1, 1);
        uint32_t dst = decode_out(d, 0, PTX_B32);
        decode_action(d, exec_nop, 0, 0, 0, 0);
        decode_special(d, exec_active_mask, 4, dst, dst, dst, dst);
    } else if (decode_opcode_is(d, "nanosleep")) {
        decode_take(d, "u32");
        decode_count(d, 1, 1);
        decode_action(d, exec_sleep, 0, decode_in(d, 0, PTX_U32), 0, 0);
    } else if (decode_opcode_is(d, "griddepcontrol")) {
        decode_take(d, "wait");
        decode_take(d, "launch_dependents");
        decode_action(d, exec_nop, 0, 0, 0, 0);
    } else {
        return false;
    }
    return true;
}
