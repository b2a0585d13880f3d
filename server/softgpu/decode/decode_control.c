/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Branches, calls and the ends of threads. */
#include "server/softgpu/decode/decode.h"

#include <stdlib.h>
#include <string.h>

static void control_branch(struct decoder *d)
{
    const struct ptx_operand *op = decode_operand(d, 0);
    decode_take(d, "uni");
    decode_count(d, 1, 1);
    if (op->kind != PTX_OPERAND_LABEL || d->function->labels[op->label].kind != PTX_LABEL_CODE) {
        decode_fail(d, "bra needs a label");
        return;
    }
    decode_branch(d, d->function->labels[op->label].instruction);
}

static void control_brx(struct decoder *d)
{
    decode_take(d, "uni");
    decode_take(d, "idx");
    decode_count(d, 2, 2);
    const struct ptx_operand *op = decode_operand(d, 1);
    uint32_t index = decode_in(d, 0, PTX_U32);
    if (op->kind != PTX_OPERAND_LABEL || d->function->labels[op->label].kind != PTX_LABEL_TARGETS) {
        decode_fail(d, "brx.idx needs the label of a .branchtargets");
        return;
    }
    const struct ptx_label *table = &d->function->labels[op->label];
    struct op *branch = decode_action(d, exec_brx, 0, index, 0, 0);
    branch->aux = d->code->table_count;
    branch->imm = table->target_count;
    for (uint32_t i = 0; i < table->target_count && !d->failed; i++) {
        struct code *c = d->code;
        uint32_t *all = decode_grow(d, c->tables, c->table_count, &c->table_capacity, sizeof(*all));
        if (!all)
            return;
        c->tables = all;
        all[c->table_count++] = d->function->labels[table->targets[i]].instruction;
    }
}

static struct code_param call_param(struct decoder *d, const struct ptx_operand *op,
                                    const struct ptx_variable *formal, bool result)
{
    struct code_param p = {.space = PTX_SPACE_PARAM};
    if (op->kind == PTX_OPERAND_VARIABLE && op->variable->space == PTX_SPACE_PARAM) {
        for (uint32_t i = 0; d->function->entry && i < d->function->param_count; i++) {
            if (d->function->params[i] == op->variable)
                decode_fail(d, "a kernel's parameter '%.60s' can't be passed on", op->name);
        }
        p.offset = d->local_offsets[op->variable->id];
        p.bytes = (uint32_t)op->variable->bytes;
        return p;
    }
    uint32_t width = formal ? decode_type_width(formal->type) : 8;
    p.space = PTX_SPACE_REG;
    if (result || op->kind == PTX_OPERAND_REGISTER)
        p.slot = decode_target(d, op, &width);
    else
        p.slot = decode_source(d, op, formal ? formal->type : PTX_B64);
    if (op->kind == PTX_OPERAND_REGISTER && op->variable->type == PTX_PRED)
        decode_fail(d, "a predicate can't be passed to a function");
    p.width = (uint8_t)width;
    p.bytes = width;
    return p;
}

static struct code_param *call_list(struct decoder *d, const struct ptx_operand *list,
                                    const struct ptx_function *shape, bool result, uint32_t *count)
{
    *count = list ? list->count : 0;
    uint32_t formals = !shape ? 0 : result ? shape->return_count : shape->param_count;
    const struct ptx_variable **formal = !shape ? NULL : result ? shape->returns : shape->params;
    if (shape && formals != *count)
        decode_fail(d, "'%.100s' takes %u %s, not %u", shape->name, formals,
                    result ? "results" : "arguments", *count);
    struct code_param *all = calloc(*count + 1, sizeof(*all));
    if (!all) {
        decode_fail_memory(d);
        *count = 0;
        return NULL;
    }
    for (uint32_t i = 0; i < *count && !d->failed; i++)
        all[i] = call_param(d, &list->items[i], formal ? formal[i] : NULL, result);
    return all;
}

static exec_action *external_function(struct decoder *d, const char *name)
{
    exec_action *action = exec_system_find(name);
    if (action)
        return action;
    decode_fail(d, "call of '%.100s', which has no body", name);
    return exec_nop;
}

static void control_call(struct decoder *d)
{
    const struct ptx_operand *results = NULL, *args = NULL, *target;
    uint32_t at = 0;
    decode_take(d, "uni");
    if (decode_operand(d, 0)->kind == PTX_OPERAND_LIST)
        results = decode_operand(d, at++);
    target = decode_operand(d, at++);
    if (at < d->ins->operand_count && decode_operand(d, at)->kind == PTX_OPERAND_LIST)
        args = decode_operand(d, at++);
    const struct ptx_function *shape = NULL, *callee = NULL;
    uint32_t address = 0;
    if (target->kind == PTX_OPERAND_FUNCTION) {
        callee = shape = target->function;
        if (callee->entry)
            decode_fail(d, "call of the kernel '%.100s'", callee->name);
    } else {
        address = decode_source(d, target, PTX_U64);
        const struct ptx_operand *proto = decode_operand(d, at++);
        if (proto->kind == PTX_OPERAND_LABEL)
            shape = d->function->labels[proto->label].prototype;
    }
    if (at < d->ins->operand_count)
        decode_fail(d, "an operand of 'call' is not understood");
    struct code *c = d->code;
    struct code_call *calls =
        decode_grow(d, c->calls, c->call_count, &c->call_capacity, sizeof(*calls));
    if (!calls)
        return;
    c->calls = calls;
    struct code_call *call = &calls[c->call_count++];
    *call = (struct code_call){.callee = callee ? callee->definition : NULL};
    call->args = call_list(d, args, shape, false, &call->arg_count);
    call->results = call_list(d, results, shape, true, &call->result_count);
    exec_action *action =
        callee && !callee->definition ? external_function(d, callee->name) : exec_call;
    decode_action(d, action, 0, address, 0, 0)->aux = c->call_count - 1;
}

/* alloca.u64 d, bytes{, alignment}: the usual alignment is 8 (PTX ISA, alloca). */
static void control_alloca(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    decode_count(d, 2, 3);
    uint64_t alignment = 8;
    if (d->ins->operand_count == 3) {
        const struct ptx_operand *op = decode_operand(d, 2);
        bool known = op->kind == PTX_OPERAND_INTEGER && op->value && op->value <= 1 << 23 &&
                     (op->value & (op->value - 1)) == 0;
        if (!known)
            decode_fail(d, "the alignment of alloca is a power of two up to 2^23");
        alignment = known && op->value > alignment ? op->value : alignment;
    }
    if (type != PTX_U64)
        decode_fail(d, "alloca is not for type %s", ptx_type_name(type));
    uint32_t bytes = decode_in(d, 1, PTX_U64);
    decode_action(d, exec_alloca, decode_out(d, 0, PTX_U64), bytes, 0, 0)->imm = alignment;
}

bool decode_control(struct decoder *d)
{
    const char *op = d->ins->opcode;
    if (strcmp(op, "bra") == 0) {
        control_branch(d);
    } else if (strcmp(op, "brx") == 0) {
        control_brx(d);
    } else if (strcmp(op, "call") == 0) {
        control_call(d);
    } else if (strcmp(op, "alloca") == 0) {
        control_alloca(d);
    } else if (strcmp(op, "ret") == 0) {
        decode_take(d, "uni");
        decode_count(d, 0, 0);
        decode_action(d, exec_ret, 0, 0, 0, 0);
    } else if (strcmp(op, "exit") == 0) {
        decode_count(d, 0, 0);
        decode_action(d, exec_exit, 0, 0, 0, 0);
    } else if (strcmp(op, "trap") == 0 || strcmp(op, "brkpt") == 0) {
        decode_count(d, 0, 0);
        decode_action(d, exec_trap, 0, 0, 0, 0);
    } else if (strcmp(op, "pmevent") == 0) {
        decode_take(d, "mask");
        decode_action(d, exec_nop, 0, 0, 0, 0);
    } else {
        return false;
    }
    return true;
}
