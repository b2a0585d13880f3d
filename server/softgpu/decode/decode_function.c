/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Decodes a function, instruction by instruction. */
#include "server/softgpu/decode/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void finish_instruction(struct decoder *d, uint32_t first)
{
    const struct ptx_instruction *ins = d->ins;
    struct code *c = d->code;
    if (ins->modifier_count > 64)
        decode_fail(d, "'%.60s' with %u modifiers", ins->opcode, ins->modifier_count);
    for (uint32_t i = 0; i < ins->modifier_count && i < 64; i++) {
        if (!(d->taken >> i & 1))
            decode_fail(d, "unknown instruction '%.60s', for its '.%.60s'", ins->opcode,
                        ins->modifiers[i]);
    }
    bool counted = false;
    uint32_t guard = SLOT_NONE;
    if (ins->guard && !d->failed) {
        struct ptx_operand plain = *ins->guard;
        plain.negated = false;
        guard = decode_predicate(d, &plain);
    }
    for (uint32_t i = c->op_count; i-- > first;) {
        c->ops[i].part = counted;
        counted = true;
        if (guard != SLOT_NONE) {
            c->ops[i].guard = guard;
            c->ops[i].negated = ins->guard->negated;
        }
    }
}

/* The full name, so that the message names the part that is unknown. */
static void fail_unknown(struct decoder *d)
{
    char name[120];
    int n = snprintf(name, sizeof(name), "%s", d->ins->opcode);
    for (uint32_t i = 0; i < d->ins->modifier_count && n > 0 && (size_t)n < sizeof(name); i++)
        n += snprintf(name + n, sizeof(name) - (size_t)n, ".%s", d->ins->modifiers[i]);
    decode_fail(d, "unknown instruction '%s'", name);
}

static void decode_instruction(struct decoder *d, uint32_t index)
{
    d->ins = &d->function->instructions[index];
    d->index = index;
    d->taken = 0;
    memset(d->temporary_used, 0, sizeof(d->temporary_used));
    uint32_t first = d->code->op_count;
    d->starts[index] = first;
    if (!decode_control(d) && !decode_arith(d) && !decode_logic(d) && !decode_convert(d) &&
        !decode_barriers(d) && !decode_memory(d) && !decode_warp(d) && !decode_video(d))
        fail_unknown(d);
    finish_instruction(d, first);
    decode_free_dying(d);
}

static struct code_param formal_param(struct decoder *d, const struct ptx_variable *v)
{
    struct code_param p = {.space = v->space, .bytes = (uint32_t)v->bytes};
    if (v->space == PTX_SPACE_REG) {
        p.width = (uint8_t)decode_type_width(v->type);
        p.bytes = p.width;
        p.slot = decode_register(d, v, 0);
        if (!p.width)
            decode_fail(d, "a predicate can't be a parameter");
        if (p.width > 8)
            decode_fail(d, "a parameter of 128 bits is not supported");
    } else {
        p.offset = d->local_offsets[v->id];
    }
    return p;
}

static void place_local(struct decoder *d, const struct ptx_variable *v)
{
    uint32_t at = (d->code->local_bytes + v->align - 1) & ~(v->align - 1);
    if (v->bytes > 1u << 20 || at > 1u << 20 || v->align > 1u << 16) {
        decode_fail(d, "'%.100s' is too large for local memory", v->name);
        return;
    }
    d->local_offsets[v->id] = at;
    d->code->local_bytes = at + (uint32_t)v->bytes;
}

static void place_locals(struct decoder *d)
{
    const struct ptx_function *f = d->function;
    for (uint32_t i = 0; !f->entry && i < f->param_count; i++)
        place_local(d, f->params[i]);
    for (uint32_t i = 0; i < f->return_count; i++)
        place_local(d, f->returns[i]);
    for (uint32_t i = 0; i < f->variable_count && !d->failed; i++) {
        enum ptx_space space = f->variables[i]->space;
        if (space == PTX_SPACE_LOCAL || space == PTX_SPACE_PARAM)
            place_local(d, f->variables[i]);
    }
    struct code *c = d->code;
    c->params = calloc(f->param_count + 1, sizeof(*c->params));
    c->results = calloc(f->return_count + 1, sizeof(*c->results));
    if (!c->params || !c->results) {
        decode_fail_memory(d);
        return;
    }
    for (uint32_t i = 0; !f->entry && i < f->param_count && !d->failed; i++)
        c->params[i] = formal_param(d, f->params[i]);
    for (uint32_t i = 0; i < f->return_count && !d->failed; i++)
        c->results[i] = formal_param(d, f->returns[i]);
}

static void resolve_branches(struct decoder *d)
{
    struct code *c = d->code;
    for (uint32_t i = 0; i < c->op_count; i++) {
        if (c->ops[i].kind == OP_BRANCH)
            c->ops[i].target = d->starts[c->ops[i].target];
    }
    for (uint32_t i = 0; i < c->table_count; i++)
        c->tables[i] = d->starts[c->tables[i]];
}

static void decode_body(struct decoder *d)
{
    const struct ptx_function *f = d->function;
    decode_row(d, LANES * 8); /* unused operands read row 0, at any width */
    if (!decode_find_lifetimes(d))
        return;
    d->index = UINT32_MAX;
    place_locals(d);
    for (uint32_t i = 0; i < f->instruction_count && !d->failed; i++)
        decode_instruction(d, i);
    d->ins = NULL;
    d->starts[f->instruction_count] = d->code->op_count;
    decode_action(d, exec_ret, 0, 0, 0, 0);
    if (!d->failed)
        resolve_branches(d);
    d->code->frame_bytes = (d->code->frame_bytes + 63) & ~63u;
}

struct code *decode_function(const struct module *module, const struct ptx_function *function,
                             struct error *why)
{
    struct decoder d = {.module = module, .function = function, .why = why, .carry = SLOT_NONE};
    memset(d.temporaries, 0xff, sizeof(d.temporaries));
    d.code = calloc(1, sizeof(*d.code));
    d.starts = calloc((size_t)function->instruction_count + 1, sizeof(*d.starts));
    d.local_offsets = calloc((size_t)module->ptx->variable_ids + 1, sizeof(*d.local_offsets));
    if (!d.code || !d.starts || !d.local_offsets) {
        decode_fail_memory(&d);
    } else {
        d.code->ptx = function;
        decode_body(&d);
    }
    for (int class = 0; class < 4; class ++) {
        free(d.free[class].slots);
        free(d.dying[class].slots);
    }
    free(d.slots);
    free(d.starts);
    free(d.local_offsets);
    if (d.failed) {
        code_destroy(d.code);
        return NULL;
    }
    return d.code;
}
