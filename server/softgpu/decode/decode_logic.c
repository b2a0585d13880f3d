/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdlib.h>
#include <string.h>

#include "server/softgpu/decode/decode.h"

#define BY_WIDTH(family, type)                                                                     \
    (decode_type_width(type) == 2   ? VALUE_##family##16                                           \
     : decode_type_width(type) == 4 ? VALUE_##family##32                                           \
                                    : VALUE_##family##64)

/* ---- comparisons ---- */

static const struct {
    const char *name;
    enum value_id u[3], s[3], f32, f64; /* by width: 16, 32, 64 */
} compares[] = {
#define ROW(name, un, sn, f)                                                                       \
    {                                                                                              \
        name, {VALUE_##un##16, VALUE_##un##32, VALUE_##un##64},                                    \
            {VALUE_##sn##16, VALUE_##sn##32, VALUE_##sn##64}, VALUE_##f##_f32, VALUE_##f##_f64     \
    }
    ROW("eq", eq_, eq_, eq),   ROW("ne", ne_, ne_, ne),   ROW("lt", lt_u, lt_s, lt),
    ROW("le", le_u, le_s, le), ROW("gt", gt_u, gt_s, gt), ROW("ge", ge_u, ge_s, ge),
    ROW("lo", lt_u, lt_u, lt), ROW("ls", le_u, le_u, le), ROW("hi", gt_u, gt_u, gt),
    ROW("hs", ge_u, ge_u, ge),
#undef ROW
#define ROW(name, f)                                                                               \
    {                                                                                              \
        name, {0}, {0}, VALUE_##f##_f32, VALUE_##f##_f64                                           \
    }
    ROW("equ", equ),           ROW("neu", neu),           ROW("ltu", ltu),
    ROW("leu", leu),           ROW("gtu", gtu),           ROW("geu", geu),
    ROW("num", num),           ROW("nan", nan),
#undef ROW
};

/* Halves are widened to floats, which compare the same. */
static uint32_t compare_in(struct decoder *d, uint32_t index, enum ptx_type type, bool ftz)
{
    uint32_t a = decode_in(d, index, type);
    if (type != PTX_F16 && type != PTX_BF16 && !(ftz && type == PTX_F32))
        return a;
    uint32_t t = decode_temporary(d, 4);
    enum value_id id = type == PTX_F16    ? VALUE_f16_f32
                       : type == PTX_BF16 ? VALUE_bf16_f32
                                          : VALUE_flush_f32;
    decode_value(d, id, 4, t, a, a, a);
    return t;
}

/* The comparison that the instruction names, for values of this type. */
static enum value_id compare_of(struct decoder *d, enum ptx_type type)
{
    size_t row = 0, rows = sizeof(compares) / sizeof(compares[0]);
    while (row < rows && !decode_take(d, compares[row].name))
        row++;
    uint32_t width = decode_type_width(type), class = width == 2 ? 0 : width == 4 ? 1 : 2;
    enum value_id id = row == rows || width == 0 || width > 8 ? VALUE_NONE
                       : type == PTX_F64                      ? compares[row].f64
                       : type_is_float(type)                  ? compares[row].f32
                       : type_is_signed(type)                 ? compares[row].s[class]
                                                              : compares[row].u[class];
    if (!id || ptx_type_bytes(type) < 2)
        decode_fail(d, "'%.60s' has no such comparison for type %s", d->ins->opcode,
                    ptx_type_name(type));
    return id;
}

/* Emits the comparison alone, into a temporary. */
static uint32_t compare_operands(struct decoder *d, enum ptx_type type, uint32_t first)
{
    bool ftz = decode_take(d, "ftz");
    enum value_id id = compare_of(d, type);
    uint32_t t = decode_temporary(d, 0);
    uint32_t a = compare_in(d, first, type, ftz), b = compare_in(d, first + 1, type, ftz);
    decode_value(d, id ? id : VALUE_eq_32, 0, t, a, b, a);
    return t;
}

/* and, or, xor with a third, predicate operand; `inverted` for the second result. */
static void combine_predicates(struct decoder *d, uint32_t dst, uint32_t t, int bool_op, uint32_t c,
                               bool inverted)
{
    static const enum value_id ids[2][4] = {{VALUE_mov_p, VALUE_and_p, VALUE_or_p, VALUE_xor_p},
                                            {VALUE_not_p, VALUE_andn_p, VALUE_orn_p, VALUE_xorn_p}};
    decode_value(d, ids[inverted][bool_op], 0, dst, t, c, c);
}

static int bool_modifier(struct decoder *d)
{
    return decode_take(d, "and") ? 1 : decode_take(d, "or") ? 2 : decode_take(d, "xor") ? 3 : 0;
}

/* The low and the high half of two packed sources, each compared on its own. */
static void compare_packed(struct decoder *d, enum ptx_type type, uint32_t result[2])
{
    uint32_t wide[2] = {decode_in(d, 1, PTX_B32), decode_in(d, 2, PTX_B32)};
    bool bf = type == PTX_BF16X2;
    enum value_id id = compare_of(d, PTX_F32);
    decode_take(d, "ftz");
    for (int h = 0; h < 2; h++) {
        uint32_t in[2];
        for (int i = 0; i < 2; i++) {
            uint32_t half = decode_temporary(d, 2);
            in[i] = decode_temporary(d, 4);
            decode_value(d, h ? VALUE_high_32 : VALUE_cv_32_16, 2, half, wide[i], wide[i], wide[i]);
            decode_value(d, bf ? VALUE_bf16_f32 : VALUE_f16_f32, 4, in[i], half, half, half);
        }
        result[h] = decode_temporary(d, 0);
        decode_value(d, id, 0, result[h], in[0], in[1], in[1]);
    }
}

/* p|q: if one of them is the guard, it is written last, because the other step needs it. */
static void give_two(struct decoder *d, const struct ptx_operand *to, uint32_t p, uint32_t q)
{
    uint32_t width[2] = {0, 0};
    uint32_t dp = decode_target(d, &to->items[0], &width[0]);
    uint32_t dq = decode_target(d, &to->items[1], &width[1]);
    if (width[0] || width[1])
        decode_fail(d, "setp needs predicates");
    bool guards_p = d->ins->guard && d->ins->guard->variable == to->items[0].variable &&
                    d->ins->guard->index == to->items[0].index;
    decode_move(d, 0, guards_p ? dq : dp, guards_p ? q : p);
    decode_move(d, 0, guards_p ? dp : dq, guards_p ? p : q);
}

static void setp_packed(struct decoder *d, enum ptx_type type, int bool_op)
{
    uint32_t t[2];
    const struct ptx_operand *to = decode_operand(d, 0);
    if (to->kind != PTX_OPERAND_PAIR) {
        decode_fail(d, "setp of packed halves needs two predicates");
        return;
    }
    compare_packed(d, type, t);
    for (int h = 0; h < 2 && bool_op; h++)
        combine_predicates(d, t[h], t[h], bool_op, decode_predicate(d, decode_operand(d, 3)),
                           false);
    give_two(d, to, t[0], t[1]);
}

static void decode_setp(struct decoder *d)
{
    int bool_op = bool_modifier(d);
    enum ptx_type type = decode_need_type(d);
    decode_count(d, bool_op ? 4 : 3, bool_op ? 4 : 3);
    if (type == PTX_F16X2 || type == PTX_BF16X2) {
        setp_packed(d, type, bool_op);
        return;
    }
    uint32_t t = compare_operands(d, type, 1);
    uint32_t c = bool_op ? decode_predicate(d, decode_operand(d, 3)) : t;
    const struct ptx_operand *to = decode_operand(d, 0);
    if (to->kind != PTX_OPERAND_PAIR) {
        combine_predicates(d, decode_out(d, 0, PTX_PRED), t, bool_op, c, false);
        return;
    }
    /* Through temporaries, because either result may be the guard or the third operand. */
    uint32_t p = decode_temporary(d, 0), q = decode_temporary(d, 0);
    combine_predicates(d, p, t, bool_op, c, false);
    combine_predicates(d, q, t, bool_op, c, true);
    give_two(d, to, p, q);
}

/* The value of true in a type: 1.0, or all ones. */
static uint64_t true_value(enum ptx_type type)
{
    return type == PTX_F32                          ? 0x3f800000
           : type == PTX_F16 || type == PTX_F16X2   ? 0x3c00
           : type == PTX_BF16 || type == PTX_BF16X2 ? 0x3f80
                                                    : 0xffffffff;
}

static void set_packed(struct decoder *d, enum ptx_type to, enum ptx_type type)
{
    uint32_t t[2], half[2];
    compare_packed(d, type, t);
    bool whole = to == PTX_U32 || to == PTX_S32; /* 0xffff in each half */
    uint32_t yes = decode_constant(d, whole ? 0xffff : true_value(to), 2);
    uint32_t no = decode_constant(d, 0, 2);
    for (int h = 0; h < 2; h++) {
        half[h] = decode_temporary(d, 2);
        decode_value(d, VALUE_sel_16, 2, half[h], yes, no, t[h]);
    }
    decode_value(d, VALUE_pack_16, 4, decode_out(d, 0, PTX_B32), half[0], half[1], half[1]);
}

static void decode_set(struct decoder *d)
{
    int bool_op = bool_modifier(d);
    enum ptx_type to = decode_need_type(d), type = decode_type(d);
    if (type == PTX_F16X2 || type == PTX_BF16X2) {
        if (bool_op)
            decode_fail(d, "set of packed halves with a third operand is not supported");
        set_packed(d, to, type);
        return;
    }
    bool half = to == PTX_F16 || to == PTX_BF16;
    if (to != PTX_U32 && to != PTX_S32 && to != PTX_F32 && !half)
        decode_fail(d, "set to %s is not supported", ptx_type_name(to));
    uint32_t t = compare_operands(d, type, 1);
    if (bool_op)
        combine_predicates(d, t, t, bool_op, decode_predicate(d, decode_operand(d, 3)), false);
    uint32_t width = half ? 2 : 4;
    uint32_t yes = decode_constant(d, true_value(to), width), no = decode_constant(d, 0, width);
    decode_value(d, half ? VALUE_sel_16 : VALUE_sel_32, width, decode_out(d, 0, to), yes, no, t);
}

static void decode_selp(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    decode_count(d, 4, 4);
    uint32_t p = decode_predicate(d, decode_operand(d, 3));
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type), dst = decode_out(d, 0, type);
    if (type == PTX_PRED)
        decode_value(d, VALUE_sel_p, 0, dst, a, b, p);
    else
        decode_value(d, BY_WIDTH(sel_, type), decode_type_width(type), dst, a, b, p);
}

static void decode_slct(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    const char *last = d->ins->modifier_count ? d->ins->modifiers[d->ins->modifier_count - 1] : "";
    enum ptx_type by = ptx_type_named(last);
    bool ftz = decode_take(d, "ftz");
    decode_take(d, last);
    if (by != PTX_S32 && by != PTX_F32)
        decode_fail(d, "slct chooses by s32 or f32");
    decode_count(d, 4, 4);
    uint32_t c = compare_in(d, 3, by, ftz), zero = decode_constant(d, 0, 4);
    uint32_t p = decode_temporary(d, 0);
    decode_value(d, by == PTX_F32 ? VALUE_ge_f32 : VALUE_ge_s32, 0, p, c, zero, zero);
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type);
    decode_value(d, BY_WIDTH(sel_, type), decode_type_width(type), decode_out(d, 0, type), a, b, p);
}

/* ---- bits ---- */

static void decode_boolean(struct decoder *d)
{
    static const struct {
        const char *name;
        enum value_id p, w[3];
        uint32_t sources;
    } ops[] = {
        {"and", VALUE_and_p, {VALUE_and_16, VALUE_and_32, VALUE_and_64}, 2},
        {"or", VALUE_or_p, {VALUE_or_16, VALUE_or_32, VALUE_or_64}, 2},
        {"xor", VALUE_xor_p, {VALUE_xor_16, VALUE_xor_32, VALUE_xor_64}, 2},
        {"not", VALUE_not_p, {VALUE_not_16, VALUE_not_32, VALUE_not_64}, 1},
        {"cnot", 0, {VALUE_cnot_16, VALUE_cnot_32, VALUE_cnot_64}, 1},
    };
    enum ptx_type type = decode_need_type(d);
    size_t row = 0;
    while (!decode_opcode_is(d, ops[row].name))
        row++;
    decode_count(d, ops[row].sources + 1, ops[row].sources + 1);
    uint32_t width = decode_type_width(type), class = width == 2 ? 0 : width == 4 ? 1 : 2;
    uint32_t a = decode_in(d, 1, type), b = ops[row].sources == 2 ? decode_in(d, 2, type) : a;
    enum value_id id = type == PTX_PRED ? ops[row].p : ops[row].w[class];
    if (!id || width > 8 || (width && ptx_type_bytes(type) < 2))
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
    decode_value(d, id, width, decode_out(d, 0, type), a, b, b);
}

static void decode_shift(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    decode_count(d, 3, 3);
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, PTX_U32);
    enum value_id id = decode_opcode_is(d, "shl") ? BY_WIDTH(shl_, type)
                       : type_is_signed(type)     ? BY_WIDTH(shr_s, type)
                                                  : BY_WIDTH(shr_u, type);
    if (type_is_float(type) || ptx_type_bytes(type) < 2 || decode_type_width(type) > 8)
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
    decode_value(d, id, decode_type_width(type), decode_out(d, 0, type), a, b, b);
}

static void decode_funnel(struct decoder *d)
{
    bool left = decode_take(d, "l"), wrap = decode_take(d, "wrap");
    decode_take(d, "r");
    decode_take(d, "clamp");
    decode_take(d, "b32");
    decode_count(d, 4, 4);
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32),
             c = decode_in(d, 3, PTX_B32);
    enum value_id id = left ? (wrap ? VALUE_shf_l_wrap : VALUE_shf_l_clamp)
                            : (wrap ? VALUE_shf_r_wrap : VALUE_shf_r_clamp);
    decode_value(d, id, 4, decode_out(d, 0, PTX_B32), a, b, c);
}

static void decode_lop3(struct decoder *d)
{
    decode_take(d, "b32");
    decode_count(d, 5, 5);
    const struct ptx_operand *table = decode_operand(d, 4);
    if (table->kind != PTX_OPERAND_INTEGER || table->value > 255)
        decode_fail(d, "lop3 needs a table of 8 bits");
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32),
             c = decode_in(d, 3, PTX_B32);
    decode_value(d, VALUE_lop3, 4, decode_out(d, 0, PTX_B32), a, b, c)->aux =
        (uint32_t)table->value;
}

static void decode_prmt(struct decoder *d)
{
    static const char *const modes[] = {"", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    uint32_t mode = 0;
    for (uint32_t i = 1; i < sizeof(modes) / sizeof(modes[0]); i++)
        mode = decode_take(d, modes[i]) ? i : mode;
    decode_take(d, "b32");
    decode_count(d, 4, 4);
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32),
             c = decode_in(d, 3, PTX_B32);
    decode_value(d, VALUE_prmt, 4, decode_out(d, 0, PTX_B32), a, b, c)->aux = mode;
}

static void decode_field(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    bool wide = decode_type_width(type) == 8;
    if (decode_type_width(type) < 4 || type_is_float(type))
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
    if (decode_opcode_is(d, "bfe")) {
        decode_count(d, 4, 4);
        uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, PTX_U32),
                 c = decode_in(d, 3, PTX_U32);
        enum value_id id = type_is_signed(type) ? (wide ? VALUE_bfe_s64 : VALUE_bfe_s32)
                                                : (wide ? VALUE_bfe_u64 : VALUE_bfe_u32);
        decode_value(d, id, decode_type_width(type), decode_out(d, 0, type), a, b, c);
        return;
    }
    decode_count(d, 5, 5);
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type);
    uint32_t c = decode_in(d, 3, PTX_U32), e = decode_in(d, 4, PTX_U32);
    decode_special(d, wide ? exec_insert64 : exec_insert32, decode_type_width(type),
                   decode_out(d, 0, type), a, b, c)
        ->d = e;
}

/* One source of `type`, a 32-bit (or, brev, as wide) result. */
static void decode_count_bits(struct decoder *d)
{
    bool shift = decode_take(d, "shiftamt");
    enum ptx_type type = decode_need_type(d);
    bool wide = decode_type_width(type) == 8, s = type_is_signed(type);
    if (decode_type_width(type) < 4 || type_is_float(type))
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
    enum value_id id;
    if (decode_opcode_is(d, "popc"))
        id = wide ? VALUE_popc_64 : VALUE_popc_32;
    else if (decode_opcode_is(d, "clz"))
        id = wide ? VALUE_clz_64 : VALUE_clz_32;
    else if (decode_opcode_is(d, "brev"))
        id = wide ? VALUE_brev_64 : VALUE_brev_32;
    else if (shift)
        id = wide ? (s ? VALUE_bfindshift_s64 : VALUE_bfindshift_u64)
                  : (s ? VALUE_bfindshift_s32 : VALUE_bfindshift_u32);
    else
        id = wide ? (s ? VALUE_bfind_s64 : VALUE_bfind_u64)
                  : (s ? VALUE_bfind_s32 : VALUE_bfind_u32);
    decode_count(d, 2, 2);
    uint32_t a = decode_in(d, 1, type);
    enum ptx_type to = decode_opcode_is(d, "brev") ? type : PTX_U32;
    decode_value(d, id, decode_type_width(to), decode_out(d, 0, to), a, a, a);
}

static void decode_mask(struct decoder *d)
{
    bool wrap = decode_take(d, "wrap");
    decode_take(d, "clamp");
    decode_take(d, "b32");
    decode_count(d, 3, 3);
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32);
    decode_value(d, wrap ? VALUE_bmsk_wrap : VALUE_bmsk_clamp, 4, decode_out(d, 0, PTX_B32), a, b,
                 b);
}

static void decode_szext(struct decoder *d)
{
    bool wrap = decode_take(d, "wrap");
    decode_take(d, "clamp");
    enum ptx_type type = decode_need_type(d);
    if (type != PTX_U32 && type != PTX_S32)
        decode_fail(d, "szext is not for type %s", ptx_type_name(type));
    decode_count(d, 3, 3);
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, PTX_U32);
    decode_value(d, type == PTX_S32 ? VALUE_szext_s32 : VALUE_szext_u32, 4, decode_out(d, 0, type),
                 a, b, b)
        ->aux = wrap;
}

static void decode_fns(struct decoder *d)
{
    decode_take(d, "b32");
    decode_count(d, 4, 4);
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32),
             c = decode_in(d, 3, PTX_B32);
    decode_value(d, VALUE_fns, 4, decode_out(d, 0, PTX_B32), a, b, c);
}

/* ---- mov ---- */

/* d = {a, b, ...}: from low to high. */
static void decode_pack(struct decoder *d, enum ptx_type type, const struct ptx_operand *from)
{
    uint32_t width = ptx_type_bytes(type), n = from->count;
    if ((n != 2 && n != 4) || (width != 2 && width != 4 && width != 8) || width / n == 0) {
        decode_fail(d, "mov of %u parts into %s", n, ptx_type_name(type));
        return;
    }
    enum ptx_type part = width / n == 1 ? PTX_B8 : width / n == 2 ? PTX_B16 : PTX_B32;
    uint32_t in[4] = {0};
    for (uint32_t i = 0; i < n; i++)
        in[i] = decode_source(d, &from->items[i], part);
    enum value_id id[2] = {VALUE_pack_8, VALUE_pack_16};
    uint32_t dst = decode_out(d, 0, type);
    if (n == 2) {
        decode_value(d,
                     width == 2   ? VALUE_pack_8
                     : width == 4 ? VALUE_pack_16
                                  : VALUE_pack_32,
                     width, dst, in[0], in[1], in[1]);
        return;
    }
    uint32_t half = width / 2, lo = decode_temporary(d, half), hi = decode_temporary(d, half);
    decode_value(d, id[width == 8], half, lo, in[0], in[1], in[1]);
    decode_value(d, id[width == 8], half, hi, in[2], in[3], in[3]);
    decode_value(d, width == 8 ? VALUE_pack_32 : VALUE_pack_16, width, dst, lo, hi, hi);
}

/* {a, b, ...} = s */
static void decode_unpack(struct decoder *d, enum ptx_type type, const struct ptx_operand *to)
{
    uint32_t width = ptx_type_bytes(type), n = to->count, part = n ? width / n : 0;
    uint32_t s = decode_in(d, 1, type), wide = s;
    if ((n != 2 && n != 4) || (width != 2 && width != 4 && width != 8) || part == 0) {
        decode_fail(d, "mov of %s into %u parts", ptx_type_name(type), n);
        return;
    }
    if (part < 4 && width < 8) {
        wide = decode_temporary(d, 8);
        decode_value(d, width == 4 ? VALUE_cv_u32_64 : VALUE_cv_u16_64, 8, wide, s, s, s);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t have = part == 1 ? 2 : part;
        if (to->items[i].kind == PTX_OPERAND_SINK)
            continue;
        uint32_t dst = decode_target(d, &to->items[i], &have);
        if (have != (part == 1 ? 2 : part))
            decode_fail(d, "'%.60s' is no register of %u bits", to->items[i].name, 8 * part);
        if (part == 4) {
            decode_value(d, i ? VALUE_high_64 : VALUE_cv_64_32, 4, dst, s, s, s);
            continue;
        }
        decode_value(d, VALUE_part_64, 2, dst, wide, wide, wide)->imm = (uint64_t)8 * part * i;
        if (part == 1)
            decode_value(d, VALUE_ext_u8, 2, dst, dst, dst, dst);
    }
}

static void decode_mov(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    decode_count(d, 2, 2);
    const struct ptx_operand *to = decode_operand(d, 0), *from = decode_operand(d, 1);
    if (from->kind == PTX_OPERAND_VECTOR) {
        decode_pack(d, type, from);
    } else if (to->kind == PTX_OPERAND_VECTOR) {
        decode_unpack(d, type, to);
    } else if (from->kind == PTX_OPERAND_VARIABLE && decode_type_width(type) == 4) {
        uint32_t wide = decode_source(d, from, PTX_U64); /* 32-bit shared addresses */
        decode_value(d, VALUE_cv_64_32, 4, decode_out(d, 0, type), wide, wide, wide);
        if (from->variable->space != PTX_SPACE_SHARED)
            decode_fail(d, "the address '%.60s' needs 64 bits", from->name);
    } else {
        uint32_t a = decode_in(d, 1, type), dst = decode_out(d, 0, type);
        uint32_t width = decode_type_width(type);
        if (width > 8)
            decode_fail(d, "mov is not for type %s", ptx_type_name(type));
        decode_value(d, type == PTX_PRED ? VALUE_mov_p : BY_WIDTH(mov_, type), width, dst, a, a, a);
    }
}

bool decode_logic(struct decoder *d)
{
    static const struct {
        const char *name;
        void (*decode)(struct decoder *);
    } all[] = {
        {"setp", decode_setp},       {"set", decode_set},          {"selp", decode_selp},
        {"slct", decode_slct},       {"and", decode_boolean},      {"or", decode_boolean},
        {"xor", decode_boolean},     {"not", decode_boolean},      {"cnot", decode_boolean},
        {"shl", decode_shift},       {"shr", decode_shift},        {"shf", decode_funnel},
        {"lop3", decode_lop3},       {"prmt", decode_prmt},        {"bfe", decode_field},
        {"bfi", decode_field},       {"popc", decode_count_bits},  {"clz", decode_count_bits},
        {"brev", decode_count_bits}, {"bfind", decode_count_bits}, {"bmsk", decode_mask},
        {"szext", decode_szext},     {"fns", decode_fns},          {"mov", decode_mov},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (decode_opcode_is(d, all[i].name)) {
            all[i].decode(d);
            return true;
        }
    }
    return false;
}
