/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Turns operands into slots: registers, immediates, addresses and special registers. */
#include <string.h>

#include "server/softgpu/decode/decode.h"
#include "server/softgpu/exec/exec_half.h"

const struct ptx_operand *decode_operand(struct decoder *d, uint32_t index)
{
    static struct ptx_operand none = {.kind = PTX_OPERAND_SINK};
    if (index < d->ins->operand_count)
        return &d->ins->operands[index];
    decode_fail(d, "the operands of '%.60s' are too few: %u", d->ins->opcode,
                d->ins->operand_count);
    return &none;
}

void decode_count(struct decoder *d, uint32_t least, uint32_t most)
{
    uint32_t n = d->ins->operand_count;
    if (n < least || n > most)
        decode_fail(d, "the number of operands of '%.60s' can't be %u", d->ins->opcode, n);
}

static uint64_t immediate_bits(struct decoder *d, const struct ptx_operand *op, enum ptx_type type)
{
    uint32_t bits = (uint32_t)op->value;
    if (op->kind == PTX_OPERAND_INTEGER) {
        if (type == PTX_F32 || type == PTX_F64)
            decode_fail(d, "an integer where a %s should stand", ptx_type_name(type));
        return op->value;
    }
    if (op->kind == PTX_OPERAND_FLOAT64 && decode_type_width(type) == 4)
        return float_bits((float)bits_double(op->value));
    if (op->kind == PTX_OPERAND_FLOAT32 && type == PTX_F64)
        return double_bits((double)bits_float(bits));
    return op->value;
}

static uint32_t special_source(struct decoder *d, const struct ptx_operand *op, enum ptx_type type);

static uint32_t variable_address(struct decoder *d, const struct ptx_variable *v, uint64_t addend)
{
    if (v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST) {
        uint32_t slot = decode_fresh_constant(d, 0, 8);
        struct code *c = d->code;
        struct code_relocation *all = decode_grow(d, c->relocations, c->relocation_count,
                                                  &c->relocation_capacity, sizeof(*all));
        if (!all)
            return slot;
        c->relocations = all;
        all[c->relocation_count++] = (struct code_relocation){
            .slot = slot & ~SLOT_CONSTANT, .variable = v, .addend = addend};
        return slot;
    }
    if (v->space == PTX_SPACE_SHARED)
        return decode_constant(d, d->module->places[v->id].offset + addend, 8);
    if (v->space == PTX_SPACE_PARAM && d->function->entry && !v->return_value &&
        v->index < d->function->param_count && d->function->params[v->index] == v)
        return decode_constant(d, WINDOW_PARAM + ptx_param_offset(d->function, v->index) + addend,
                               8);
    uint32_t t = decode_temporary(d, 8);
    struct op *address = decode_special(d, exec_local_address, 8, t, t, t, t);
    address->imm = d->local_offsets[v->id] + addend;
    return t;
}

/* Only video instructions choose parts of registers; decode_video.c reads them. */
static void need_whole(struct decoder *d, const struct ptx_operand *op)
{
    if (op->kind == PTX_OPERAND_REGISTER && op->selector)
        decode_fail(d, "'%.60s' takes no part of '%.60s'", d->ins->opcode, op->name);
}

/* `%r + 1` is read wherever a symbol may stand, but only an address is such a sum. */
static void need_no_addend(struct decoder *d, const struct ptx_operand *op)
{
    if (op->kind != PTX_OPERAND_VARIABLE && op->addend)
        decode_fail(d, "'%.60s' takes no sum; add to '%.60s' before it", d->ins->opcode, op->name);
}

uint32_t decode_source(struct decoder *d, const struct ptx_operand *op, enum ptx_type type)
{
    uint32_t width = decode_type_width(type);
    need_no_addend(d, op);
    if (width > 8) {
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
        return 0;
    }
    switch (op->kind) {
    case PTX_OPERAND_REGISTER:
        need_whole(d, op);
        if (op->variable->type == PTX_PRED && type == PTX_PRED)
            return decode_predicate(d, op);
        if (decode_type_width(op->variable->type) != width || op->variable->type == PTX_PRED ||
            type == PTX_PRED || op->variable->vector > 1 || op->negated)
            decode_fail(d, "'%.60s' is no register of type %s", op->name, ptx_type_name(type));
        return decode_register(d, op->variable, op->index);
    case PTX_OPERAND_INTEGER:
    case PTX_OPERAND_FLOAT32:
    case PTX_OPERAND_FLOAT64:
        if (type == PTX_PRED)
            return decode_predicate(d, op);
        return decode_constant(d, immediate_bits(d, op, type), width);
    case PTX_OPERAND_SPECIAL:
        return special_source(d, op, type);
    case PTX_OPERAND_VARIABLE:
        if (width != 8)
            decode_fail(d, "the address '%.60s' needs 64 bits", op->name);
        return variable_address(d, op->variable, (uint64_t)op->addend);
    case PTX_OPERAND_FUNCTION:
        if (width != 8)
            decode_fail(d, "the address '%.60s' needs 64 bits", op->name);
        /* NVIDIA's compiler says the same. */
        if (!op->function->definition && exec_system_find(op->function->name))
            decode_fail(d, "cannot take the address of function '%.60s'", op->name);
        return decode_constant(d, code_address(op->function), 8);
    default:
        decode_fail(d, "an operand of '%.60s' is not understood", d->ins->opcode);
        return 0;
    }
}

uint32_t decode_in(struct decoder *d, uint32_t index, enum ptx_type type)
{
    return decode_source(d, decode_operand(d, index), type);
}

uint32_t decode_predicate(struct decoder *d, const struct ptx_operand *op)
{
    need_no_addend(d, op);
    if (op->kind == PTX_OPERAND_INTEGER)
        return decode_constant(d, (op->value != 0) != op->negated, 0);
    if (op->kind != PTX_OPERAND_REGISTER || op->variable->type != PTX_PRED) {
        decode_fail(d, "an operand of '%.60s' is no predicate", d->ins->opcode);
        return 0;
    }
    uint32_t slot = decode_register(d, op->variable, op->index);
    if (!op->negated)
        return slot;
    uint32_t t = decode_temporary(d, 0);
    decode_value(d, VALUE_not_p, 0, t, slot, slot, slot);
    return t;
}

uint32_t decode_target(struct decoder *d, const struct ptx_operand *op, uint32_t *width)
{
    if (op->kind == PTX_OPERAND_SINK) {
        return decode_temporary(d, *width);
    }
    if (op->kind != PTX_OPERAND_REGISTER || op->variable->vector > 1) {
        decode_fail(d, "the result of '%.60s' needs a register", d->ins->opcode);
        return 0;
    }
    need_whole(d, op);
    need_no_addend(d, op);
    *width = decode_type_width(op->variable->type);
    if (*width > 8)
        decode_fail(d, "'%.60s' has 128 bits, which are not supported", op->name);
    return decode_register(d, op->variable, op->index);
}

uint32_t decode_out(struct decoder *d, uint32_t index, enum ptx_type type)
{
    const struct ptx_operand *op = decode_operand(d, index);
    uint32_t width = decode_type_width(type);
    uint32_t slot = decode_target(d, op, &width);
    if (width != decode_type_width(type))
        decode_fail(d, "'%.60s' is no register of type %s", op->name ? op->name : "_",
                    ptx_type_name(type));
    return slot;
}

uint32_t decode_loose(struct decoder *d, const struct ptx_operand *op, enum ptx_type type)
{
    uint32_t want = decode_type_width(type), have = want;
    if (op->kind != PTX_OPERAND_REGISTER)
        return decode_source(d, op, type);
    uint32_t slot = decode_target(d, op, &have);
    if (op->variable->type == PTX_PRED || have < want)
        decode_fail(d, "'%.60s' is too narrow for %s", op->name, ptx_type_name(type));
    if (have <= want)
        return slot;
    uint32_t t = decode_temporary(d, want);
    enum value_id id = have == 4 ? VALUE_cv_32_16 : want == 2 ? VALUE_cv_64_16 : VALUE_cv_64_32;
    decode_value(d, id, want, t, slot, slot, slot);
    return t;
}

void decode_widen(struct decoder *d, const struct ptx_operand *to, uint32_t from,
                  enum ptx_type type)
{
    uint32_t have = decode_type_width(type), want = have;
    uint32_t slot = decode_target(d, to, &want);
    bool s = type_is_signed(type);
    if (want == have) {
        decode_move(d, want, slot, from);
    } else if (want < have) {
        decode_fail(d, "'%.60s' is too narrow for %s", to->name, ptx_type_name(type));
    } else {
        enum value_id id = have == 4   ? s ? VALUE_cv_s32_64 : VALUE_cv_u32_64
                           : want == 4 ? s ? VALUE_cv_s16_32 : VALUE_cv_u16_32
                           : s         ? VALUE_cv_s16_64
                                       : VALUE_cv_u16_64;
        decode_value(d, id, want, slot, from, from, from);
    }
}

uint32_t decode_address(struct decoder *d, const struct ptx_operand *op, enum ptx_space space,
                        uint64_t *addend)
{
    *addend = 0;
    if (op->kind != PTX_OPERAND_ADDRESS || op->count != 1) {
        decode_fail(d, "'%.60s' needs an address in brackets", d->ins->opcode);
        return 0;
    }
    const struct ptx_operand *base = &op->items[0];
    if (base->kind == PTX_OPERAND_VARIABLE) {
        uint32_t slot = variable_address(d, base->variable, (uint64_t)base->addend);
        enum ptx_space in = base->variable->space;
        /* Device functions' parameters live in local memory. */
        if (in == PTX_SPACE_PARAM && space == PTX_SPACE_PARAM)
            return slot;
        if (in != space && space != PTX_SPACE_NONE)
            decode_fail(d, "'%.60s' is not in the space that '%.60s' names", base->name,
                        d->ins->opcode);
        if (space == PTX_SPACE_NONE && (in == PTX_SPACE_SHARED || in == PTX_SPACE_LOCAL))
            *addend = in == PTX_SPACE_SHARED ? WINDOW_SHARED : WINDOW_LOCAL;
        return slot;
    }
    if (base->kind == PTX_OPERAND_INTEGER)
        return decode_constant(d, base->value, 8);
    *addend = (uint64_t)op->addend;
    struct ptx_operand plain = *base;
    plain.addend = 0;
    if (base->kind == PTX_OPERAND_REGISTER && decode_type_width(base->variable->type) == 4 &&
        base->variable->type != PTX_PRED) {
        /* The small spaces allow 32-bit addresses. */
        uint32_t t = decode_temporary(d, 8), a = decode_source(d, &plain, PTX_U32);
        decode_value(d, VALUE_cv_u32_64, 8, t, a, a, a);
        return t;
    }
    return decode_source(d, &plain, PTX_U64);
}

/* ---- special registers ---- */

static const struct {
    const char *name;
    uint32_t id; /* of exec_special: see exec_warp.c */
} specials[] = {
    {"%tid", 'T'},
    {"%ntid", 'N'},
    {"%ctaid", 'C'},
    {"%nctaid", 'G'},
    {"%laneid", 'l'},
    {"%warpid", 'w'},
    {"%nwarpid", 'W'},
    {"%smid", 's'},
    {"%nsmid", 'S'},
    {"%gridid", 'g'},
    {"%envreg1", 'e'},
    {"%envreg2", 'E'},
    {"%lanemask_eq", '='},
    {"%lanemask_lt", '<'},
    {"%lanemask_le", '{'},
    {"%lanemask_gt", '>'},
    {"%lanemask_ge", '}'},
    {"%clock", 'c'},
    {"%clock64", 'k'},
    {"%clock_hi", 'h'},
    {"%globaltimer", 't'},
    {"%globaltimer_lo", 'i'},
    {"%globaltimer_hi", 'j'},
    {"%dynamic_smem_size", 'd'},
    {"%total_smem_size", 'D'},
    {"%aggr_smem_size", 'D'},
    {"WARP_SZ", 'z'},
    {"%is_explicit_cluster", '0'},
    {"%reserved_smem_offset_begin", '0'},
    {"%reserved_smem_offset_end", '0'},
    {"%cluster_ctaid", '0'},
    {"%cluster_ctarank", '0'},
    {"%cluster_nctaid", '1'},
    {"%cluster_nctarank", '1'},
    {"%clusterid", 'C'},
    {"%nclusterid", 'G'},
};

static uint32_t special_source(struct decoder *d, const struct ptx_operand *op, enum ptx_type type)
{
    uint32_t id = 0, width = decode_type_width(type);
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        if (strcmp(op->name, specials[i].name) == 0)
            id = specials[i].id;
    }
    /* The counters' "behavior is currently undefined" (PTX ISA, %pm0..%pm7). */
    if ((!id && (strncmp(op->name, "%envreg", 7) == 0 || strncmp(op->name, "%pm", 3) == 0)) ||
        strncmp(op->name, "%reserved_smem_offset_", 22) == 0)
        id = '0';
    uint32_t axis = op->selector == 'x' || !op->selector ? 0
                    : op->selector == 'y'                ? 1
                    : op->selector == 'z'                ? 2
                    : op->selector == 'w'                ? 3
                                                         : 4;
    if (!id || axis > 3 || width == 0) {
        decode_fail(d, "unknown special register '%.60s'", op->name);
        return 0;
    }
    if (strchr("ckhtij", (int)id))
        decode_action(d, exec_nop, 0, 0, 0, 0); /* this step updates the clocks */
    if (width == 8) {
        uint32_t t = decode_temporary(d, 8);
        struct op *read = decode_special(d, exec_special64, 8, t, t, t, t);
        read->aux = id;
        read->imm = axis;
        return t;
    }
    uint32_t t = decode_temporary(d, 4);
    struct op *read = decode_special(d, exec_special32, 4, t, t, t, t);
    read->aux = id;
    read->imm = axis;
    if (width == 4)
        return t;
    uint32_t narrow = decode_temporary(d, 2);
    decode_value(d, VALUE_cv_32_16, 2, narrow, t, t, t);
    return narrow;
}
