/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/decode.h"

#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/util.h"

/* Of one warp in one call: beyond this a kernel's code is hostile, not large. */
enum { MAX_FRAME_BYTES = 8 << 20, MAX_CONSTANT_BYTES = 32 << 20, MAX_OPS = 1 << 24 };

void decode_fail(struct decoder *d, const char *format, ...)
{
    if (d->failed)
        return;
    d->failed = true;
    d->error->result = 218;
    d->error->line = d->ins ? d->ins->line : d->function->line;
    int n = snprintf(d->error->text, sizeof(d->error->text), "line %u: ", d->error->line);
    va_list ap;
    va_start(ap, format);
    vsnprintf(d->error->text + n, sizeof(d->error->text) - (size_t)n, format, ap);
    va_end(ap);
}

static void fail_memory(struct decoder *d)
{
    decode_fail(d, "out of memory while decoding");
    d->error->result = 2;
}

/* Room for one more; NULL (and the old array kept) when memory is short. */
void *decode_grow(struct decoder *d, void *items, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (array_reserve_u32(&items, capacity, (size_t)count + 1, bytes) == 0)
        return items;
    fail_memory(d);
    return NULL;
}

/* ---- modifiers ---- */

bool decode_take(struct decoder *d, const char *modifier)
{
    bool found = false;
    for (uint32_t i = 0; i < d->ins->modifier_count && i < 64; i++) {
        if (strcmp(d->ins->modifiers[i], modifier) == 0) {
            d->taken |= UINT64_C(1) << i;
            found = true;
        }
    }
    return found;
}

enum ptx_type decode_type(struct decoder *d)
{
    for (uint32_t i = 0; i < d->ins->modifier_count && i < 64; i++) {
        enum ptx_type t = ptx_type_named(d->ins->modifiers[i]);
        if (t != PTX_NONE && !(d->taken >> i & 1)) {
            d->taken |= UINT64_C(1) << i;
            return t;
        }
    }
    return PTX_NONE;
}

enum ptx_type decode_need_type(struct decoder *d)
{
    enum ptx_type t = decode_type(d);
    if (t == PTX_NONE)
        decode_fail(d, "'%.60s' without a type", d->ins->opcode);
    return t == PTX_NONE ? PTX_B32 : t;
}

int decode_rounding(struct decoder *d)
{
    return decode_take(d, "rn")   ? FE_TONEAREST
           : decode_take(d, "rz") ? FE_TOWARDZERO
           : decode_take(d, "rm") ? FE_DOWNWARD
           : decode_take(d, "rp") ? FE_UPWARD
                                  : -1;
}

uint32_t type_width(enum ptx_type type)
{
    uint32_t bytes = ptx_type_bytes(type);
    return bytes == 1 ? 2 : bytes;
}

/* ---- slots ---- */

static uint32_t new_row(struct decoder *d, uint32_t bytes)
{
    uint32_t at = d->code->frame_bytes;
    if (at > MAX_FRAME_BYTES) {
        decode_fail(d, "'%.100s' uses too many registers", d->function->name);
        return 0;
    }
    d->code->frame_bytes += bytes;
    return at;
}

static uint32_t new_slot(struct decoder *d, uint32_t width)
{
    if (width)
        return new_row(d, width * LANES);
    if (d->predicate_used % 16 == 0)
        d->predicate_line = new_row(d, 64);
    return d->predicate_line + 4 * (d->predicate_used++ % 16);
}

static struct slot_entry *slot_entry(struct slot_entry *all, uint32_t capacity, uint64_t key)
{
    uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = (uint32_t)(h >> 32) & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        if (!all[i].key || all[i].key == key)
            return &all[i];
    }
}

static bool grow_slots(struct decoder *d)
{
    uint32_t capacity = (uint32_t)array_room(d->slot_capacity, max(d->slot_capacity + 1, 256u));
    struct slot_entry *all = calloc(capacity, sizeof(*all));
    if (!all) {
        fail_memory(d);
        return false;
    }
    for (uint32_t i = 0; i < d->slot_capacity; i++) {
        if (d->slots[i].key)
            *slot_entry(all, capacity, d->slots[i].key) = d->slots[i];
    }
    free(d->slots);
    d->slots = all;
    d->slot_capacity = capacity;
    return true;
}

static uint32_t width_class(uint32_t width)
{
    return width == 8 ? 3 : width == 4 ? 2 : width == 2 ? 1 : 0;
}

struct slot_entry *decode_entry(struct decoder *d, const struct ptx_variable *v, uint32_t index)
{
    uint64_t key = (uint64_t)(v->id + 1) << 32 | index;
    if (d->slot_count * 2 >= d->slot_capacity && !grow_slots(d))
        return NULL;
    struct slot_entry *e = slot_entry(d->slots, d->slot_capacity, key);
    if (!e->key) {
        *e = (struct slot_entry){.key = key, .slot = SLOT_NONE};
        d->slot_count++;
        d->code->register_words += (type_width(v->type) + 3) / 4;
    }
    return e;
}

static void push_row(struct decoder *d, struct free_rows *rows, uint32_t slot)
{
    uint32_t *slots = decode_grow(d, rows->slots, rows->count, &rows->capacity, sizeof(*slots));
    if (!slots)
        return;
    rows->slots = slots;
    slots[rows->count++] = slot;
}

uint32_t decode_register(struct decoder *d, const struct ptx_variable *v, uint32_t index)
{
    struct slot_entry *e = decode_entry(d, v, index);
    if (!e)
        return 0;
    uint32_t width = type_width(v->type), class = width_class(width);
    struct free_rows *rows = &d->free[class];
    if (e->slot == SLOT_NONE)
        e->slot =
            e->local && width <= 8 && rows->count ? rows->slots[--rows->count] : new_slot(d, width);
    if (e->local && width <= 8 && e->last == d->index && !e->dying) {
        e->dying = true;
        push_row(d, &d->dying[class], e->slot);
    }
    return e->slot;
}

/* Not before the instruction is complete: its steps may write before the last reads. */
static void free_dying(struct decoder *d)
{
    for (int class = 0; class < 4; class ++) {
        while (d->dying[class].count)
            push_row(d, &d->free[class], d->dying[class].slots[--d->dying[class].count]);
    }
}

uint32_t decode_temporary(struct decoder *d, uint32_t width)
{
    uint32_t class = width_class(width);
    uint32_t n = d->temporary_used[class]++;
    if (n >= 8)
        return new_slot(d, width);
    if (d->temporaries[class][n] == SLOT_NONE)
        d->temporaries[class][n] = new_slot(d, width);
    return d->temporaries[class][n];
}

uint32_t decode_carry(struct decoder *d)
{
    if (d->carry == SLOT_NONE)
        d->carry = new_slot(d, 0);
    return d->carry;
}

static void fill_row(uint8_t *row, uint64_t value, uint32_t width)
{
    if (width == 0) {
        uint32_t mask = value ? ALL_LANES : 0;
        memcpy(row, &mask, sizeof(mask));
        return;
    }
    for (uint32_t i = 0; i < LANES; i++)
        memcpy(row + (size_t)i * width, &value, width);
}

uint32_t decode_fresh_constant(struct decoder *d, uint64_t value, uint32_t width)
{
    struct code *c = d->code;
    uint32_t bytes = width ? width * LANES : 64;
    if (c->constant_bytes + bytes > c->constant_capacity) {
        uint32_t capacity =
            (uint32_t)array_room(c->constant_capacity, max(c->constant_bytes + bytes, 4096u));
        uint8_t *grown = capacity <= MAX_CONSTANT_BYTES ? aligned_alloc(64, capacity) : NULL;
        if (!grown) {
            fail_memory(d);
            return SLOT_CONSTANT;
        }
        memset(grown, 0, capacity);
        if (c->constant_bytes)
            memcpy(grown, c->constants, c->constant_bytes);
        free(c->constants);
        c->constants = grown;
        c->constant_capacity = capacity;
    }
    uint32_t at = c->constant_bytes;
    c->constant_bytes += bytes;
    fill_row(c->constants + at, value, width);
    return at | SLOT_CONSTANT;
}

uint32_t decode_constant(struct decoder *d, uint64_t value, uint32_t width)
{
    /* Keyed beside registers; a register's key has its low half below 2^24. The factor is an odd
     * one that spreads neighbours well (MurmurHash3's finaliser). */
    uint64_t key = (value * UINT64_C(0xff51afd7ed558ccd)) ^ value >> 29;
    key = key << 3 | (width ? (uint64_t)__builtin_ctz(width) : 4) | UINT64_C(1) << 63;
    uint64_t cut = width >= 8 || width == 0 ? value : value & ((UINT64_C(1) << (8 * width)) - 1);
    if (d->slot_count * 2 >= d->slot_capacity && !grow_slots(d))
        return SLOT_CONSTANT;
    struct slot_entry *e = slot_entry(d->slots, d->slot_capacity, key);
    if (e->key && width) {
        uint64_t have = 0;
        memcpy(&have, d->code->constants + (e->slot & ~SLOT_CONSTANT), width);
        if (have == cut)
            return e->slot;
        return decode_fresh_constant(d, cut, width);
    }
    uint32_t slot = decode_fresh_constant(d, cut, width);
    if (!e->key) {
        *e = (struct slot_entry){.key = key, .slot = slot};
        d->slot_count++;
    }
    return slot;
}

/* ---- ops ---- */

static struct op *emit(struct decoder *d, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
{
    struct code *code = d->code;
    struct op *ops = code->op_count < MAX_OPS ? decode_grow(d, code->ops, code->op_count,
                                                            &code->op_capacity, sizeof(*ops))
                                              : NULL;
    if (!ops) {
        decode_fail(d, "'%.100s' is too long", d->function->name);
        return &d->nowhere;
    }
    code->ops = ops;
    struct op *op = &ops[code->op_count++];
    *op = (struct op){.dst = dst, .a = a, .b = b, .c = c, .guard = SLOT_NONE};
    op->line = d->ins ? d->ins->line : d->function->line;
    return op;
}

struct op *decode_special(struct decoder *d, exec_value *value, uint32_t width, uint32_t dst,
                          uint32_t a, uint32_t b, uint32_t c)
{
    struct op *op = emit(d, dst, a, b, c);
    op->value = value;
    op->kind = OP_VALUE;
    op->width = (uint8_t)width;
    return op;
}

struct op *decode_value(struct decoder *d, enum value_id id, uint32_t width, uint32_t dst,
                        uint32_t a, uint32_t b, uint32_t c)
{
    return decode_special(d, exec_value_of(id), width, dst, a, b, c);
}

struct op *decode_action(struct decoder *d, exec_action *action, uint32_t dst, uint32_t a,
                         uint32_t b, uint32_t c)
{
    struct op *op = emit(d, dst, a, b, c);
    op->action = action;
    op->kind = OP_ACTION;
    return op;
}

void decode_move(struct decoder *d, uint32_t width, uint32_t dst, uint32_t src)
{
    static const enum value_id moves[4] = {VALUE_mov_p, VALUE_mov_16, VALUE_mov_32, VALUE_mov_64};
    if (dst != src)
        decode_value(d, moves[width_class(width)], width, dst, src, src, src);
}

/* ---- control flow ---- */

static void decode_branch(struct decoder *d)
{
    const struct ptx_operand *op = decode_operand(d, 0);
    decode_take(d, "uni");
    decode_count(d, 1, 1);
    if (op->kind != PTX_OPERAND_LABEL || d->function->labels[op->label].kind != PTX_LABEL_CODE) {
        decode_fail(d, "bra needs a label");
        return;
    }
    struct op *branch = emit(d, 0, 0, 0, 0);
    branch->kind = OP_BRANCH;
    branch->target = d->function->labels[op->label].instruction;
}

static void decode_brx(struct decoder *d)
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

static bool decode_control(struct decoder *d)
{
    const char *op = d->ins->opcode;
    if (strcmp(op, "bra") == 0) {
        decode_branch(d);
    } else if (strcmp(op, "brx") == 0) {
        decode_brx(d);
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

/* ---- calls ---- */

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
    uint32_t width = formal ? type_width(formal->type) : 8;
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
        fail_memory(d);
        *count = 0;
        return NULL;
    }
    for (uint32_t i = 0; i < *count && !d->failed; i++)
        all[i] = call_param(d, &list->items[i], formal ? formal[i] : NULL, result);
    return all;
}

static exec_action *external_function(struct decoder *d, const char *name)
{
    if (strcmp(name, "__assertfail") == 0)
        return exec_assert;
    if (strcmp(name, "vprintf") == 0)
        return exec_print;
    decode_fail(d, "call of '%.100s', which has no body", name);
    return exec_nop;
}

static void decode_call(struct decoder *d)
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

/* ---- a function ---- */

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

/* The full name, so that the message says what nobody knows. */
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
    if (strcmp(d->ins->opcode, "call") == 0)
        decode_call(d);
    else if (!decode_control(d) && !decode_arith(d) && !decode_logic(d) && !decode_convert(d) &&
             !decode_memory(d) && !decode_warp(d))
        fail_unknown(d);
    finish_instruction(d, first);
    free_dying(d);
}

static struct code_param formal_param(struct decoder *d, const struct ptx_variable *v)
{
    struct code_param p = {.space = v->space, .bytes = (uint32_t)v->bytes};
    if (v->space == PTX_SPACE_REG) {
        p.width = (uint8_t)type_width(v->type);
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
        fail_memory(d);
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
    new_row(d, LANES * 8); /* unused operands read row 0, at any width */
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

struct code *code_create(const struct module *module, const struct ptx_function *function,
                         struct module_error *error)
{
    struct decoder d = {.module = module, .function = function, .error = error, .carry = SLOT_NONE};
    memset(d.temporaries, 0xff, sizeof(d.temporaries));
    d.code = calloc(1, sizeof(*d.code));
    d.starts = calloc((size_t)function->instruction_count + 1, sizeof(*d.starts));
    d.local_offsets = calloc((size_t)module->ptx->variable_ids + 1, sizeof(*d.local_offsets));
    if (!d.code || !d.starts || !d.local_offsets) {
        fail_memory(&d);
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

void code_destroy(struct code *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->call_count; i++) {
        free(c->calls[i].args);
        free(c->calls[i].results);
    }
    free(c->calls);
    free(c->ops);
    free(c->constants);
    free(c->relocations);
    free(c->params);
    free(c->results);
    free(c->tables);
    free(c);
}
