/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <fenv.h>
#include <string.h>

#include "server/softgpu/decode/decode.h"

/* The member of an INTS family for a type of 16, 32 or 64 bits. */
#define BY_WIDTH(family, type)                                                                     \
    (decode_type_width(type) == 2   ? VALUE_##family##16                                           \
     : decode_type_width(type) == 4 ? VALUE_##family##32                                           \
                                    : VALUE_##family##64)
#define BY_TYPE(family, type)                                                                      \
    (type_is_signed(type) ? BY_WIDTH(family##_s, type) : BY_WIDTH(family##_u, type))
#define BY_FLOAT(family, type) ((type) == PTX_F32 ? VALUE_##family##_f32 : VALUE_##family##_f64)

static void need_integer(struct decoder *d, enum ptx_type type)
{
    if (type < PTX_B8 || type > PTX_S64 || decode_type_width(type) > 8 || ptx_type_bytes(type) < 2)
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
}

static void decode_binary(struct decoder *d, enum value_id id, enum ptx_type type)
{
    decode_count(d, 3, 3);
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type);
    decode_value(d, id, decode_type_width(type), decode_out(d, 0, type), a, b, a);
}

static void decode_unary(struct decoder *d, enum value_id id, enum ptx_type to, enum ptx_type from)
{
    decode_count(d, 2, 2);
    uint32_t a = decode_in(d, 1, from);
    decode_value(d, id, decode_type_width(to), decode_out(d, 0, to), a, a, a);
}

/* ---- floats ---- */

struct float_how {
    bool ftz, sat, approx, relu, integer_relu;
    enum value_id flush; /* of halves with .ftz */
    int rounding;
};

static struct float_how float_modifiers(struct decoder *d)
{
    struct float_how how = {.ftz = decode_take(d, "ftz"), .sat = decode_take(d, "sat")};
    how.approx = decode_take(d, "approx");
    how.approx |= decode_take(d, "full");
    how.relu = decode_opcode_is(d, "fma") && decode_take(d, "relu");
    how.rounding = decode_rounding(d);
    if (how.rounding < 0)
        how.rounding = FE_TONEAREST;
    return how;
}

/* Returns a source with denormals flushed to zero if .ftz asks for it. */
static uint32_t float_in(struct decoder *d, uint32_t index, enum ptx_type type, bool ftz)
{
    uint32_t a = decode_in(d, index, type);
    if (!ftz || type != PTX_F32)
        return a;
    uint32_t t = decode_temporary(d, 4);
    decode_value(d, VALUE_flush_f32, 4, t, a, a, a);
    return t;
}

/* Emits the steps after the operation: .ftz and .sat of its result. */
static void float_end(struct decoder *d, uint32_t dst, enum ptx_type type, struct float_how how)
{
    if (how.ftz && type == PTX_F32)
        decode_value(d, VALUE_flush_f32, 4, dst, dst, dst, dst);
    if (how.sat)
        decode_value(d, BY_FLOAT(sat, type), decode_type_width(type), dst, dst, dst, dst);
}

/* If there are further steps, they must not overwrite the guard's row. They can't, because
 * predicates have rows of their own. */
static void float_op(struct decoder *d, enum ptx_type type, struct float_how how,
                     enum value_id nearest, exec_value *rounded, uint32_t sources)
{
    decode_count(d, sources + 1, sources + 1);
    uint32_t first = float_in(d, 1, type, how.ftz);
    uint32_t in[3] = {first, first, first};
    for (uint32_t i = 1; i < sources; i++)
        in[i] = float_in(d, i + 1, type, how.ftz);
    uint32_t dst = decode_out(d, 0, type);
    if (how.rounding == FE_TONEAREST || !rounded) {
        decode_value(d, nearest, decode_type_width(type), dst, in[0], in[1], in[2]);
    } else {
        struct op *op =
            decode_special(d, rounded, decode_type_width(type), dst, in[0], in[1], in[2]);
        op->aux = (uint32_t)how.rounding;
    }
    float_end(d, dst, type, how);
}

static const struct {
    const char *name;
    uint8_t sources;
    enum value_id f32, f64, f16, bf16, ftz;
    exec_value *round32, *round64;
} float_ops[] = {
    {"add", 2, VALUE_add_f32, VALUE_add_f64, VALUE_add_f16, VALUE_add_bf16, VALUE_addftz_f32,
     exec_round_add_f32, exec_round_add_f64},
    {"sub", 2, VALUE_sub_f32, VALUE_sub_f64, VALUE_sub_f16, VALUE_sub_bf16, VALUE_subftz_f32,
     exec_round_sub_f32, exec_round_sub_f64},
    {"mul", 2, VALUE_mul_f32, VALUE_mul_f64, VALUE_mul_f16, VALUE_mul_bf16, VALUE_mulftz_f32,
     exec_round_mul_f32, exec_round_mul_f64},
    {"fma", 3, VALUE_fma_f32, VALUE_fma_f64, VALUE_fma_f16, VALUE_fma_bf16, VALUE_fmaftz_f32,
     exec_round_fma_f32, exec_round_fma_f64},
    {"mad", 3, VALUE_fma_f32, VALUE_fma_f64, 0, 0, VALUE_fmaftz_f32, exec_round_fma_f32,
     exec_round_fma_f64},
    {"div", 2, VALUE_div_f32, VALUE_div_f64, 0, 0, 0, exec_round_div_f32, exec_round_div_f64},
    {"sqrt", 1, VALUE_sqrt_f32, VALUE_sqrt_f64, 0, 0, 0, exec_round_sqrt_f32, exec_round_sqrt_f64},
    {"rcp", 1, VALUE_rcp_f32, VALUE_rcp_f64, 0, 0, 0, exec_round_rcp_f32, exec_round_rcp_f64},
    {"rsqrt", 1, VALUE_rsqrt_f32, VALUE_rsqrt_f64, 0, 0, 0, NULL, NULL},
    {"min", 2, VALUE_min_f32, VALUE_min_f64, VALUE_min_f16, VALUE_min_bf16, 0, NULL, NULL},
    {"max", 2, VALUE_max_f32, VALUE_max_f64, VALUE_max_f16, VALUE_max_bf16, 0, NULL, NULL},
    {"abs", 1, VALUE_abs_f32, VALUE_abs_f64, VALUE_abs_h, VALUE_abs_h, 0, NULL, NULL},
    {"neg", 1, VALUE_neg_f32, VALUE_neg_f64, VALUE_neg_h, VALUE_neg_h, 0, NULL, NULL},
    {"sin", 1, VALUE_sin_f32, 0, 0, 0, 0, NULL, NULL},
    {"cos", 1, VALUE_cos_f32, 0, 0, 0, 0, NULL, NULL},
    {"ex2", 1, VALUE_ex2_f32, 0, VALUE_ex2_f16, VALUE_ex2_bf16, 0, NULL, NULL},
    {"lg2", 1, VALUE_lg2_f32, 0, 0, 0, 0, NULL, NULL},
    {"tanh", 1, VALUE_tanh_f32, 0, VALUE_tanh_f16, VALUE_tanh_bf16, 0, NULL, NULL},
    {"copysign", 2, VALUE_copysign_f32, VALUE_copysign_f64, 0, 0, 0, NULL, NULL},
};

/* .relu of integers: not below zero. */
static void integer_relu(struct decoder *d, enum value_id max, uint32_t width, uint32_t dst)
{
    uint32_t zero = decode_constant(d, 0, width);
    decode_value(d, max, width, dst, dst, zero, zero);
}

/* The steps after an operation on halves: .sat and .relu of its result. */
static void half_end(struct decoder *d, uint32_t dst, struct float_how how)
{
    if (how.integer_relu)
        integer_relu(d, VALUE_max_s16, 2, dst);
    if (how.flush)
        decode_value(d, how.flush, 2, dst, dst, dst, dst);
    if (how.sat)
        decode_value(d, VALUE_sat_f16, 2, dst, dst, dst, dst);
    if (how.relu)
        decode_value(d, VALUE_relu_h, 2, dst, dst, dst, dst);
}

/* f16x2: computes the two halves one after the other, through 16-bit rows. */
static void packed_halves(struct decoder *d, enum value_id id, uint32_t sources,
                          struct float_how how)
{
    uint32_t half[2][3], result[2];
    decode_count(d, sources + 1, sources + 1);
    uint32_t i = 0;
    do {
        uint32_t whole = decode_in(d, i + 1, PTX_B32);
        half[0][i] = decode_temporary(d, 2);
        half[1][i] = decode_temporary(d, 2);
        decode_value(d, VALUE_cv_32_16, 2, half[0][i], whole, whole, whole);
        decode_value(d, VALUE_high_32, 2, half[1][i], whole, whole, whole);
        for (int h = 0; h < 2 && how.flush; h++)
            decode_value(d, how.flush, 2, half[h][i], half[h][i], half[h][i], half[h][i]);
    } while (++i < sources);
    for (int h = 0; h < 2; h++) {
        for (i = sources; i < 3; i++)
            half[h][i] = half[h][0];
        result[h] = half[h][0];
        decode_value(d, id, 2, result[h], half[h][0], half[h][1], half[h][2]);
        half_end(d, result[h], how);
    }
    decode_value(d, VALUE_pack_16, 4, decode_out(d, 0, PTX_B32), result[0], result[1], result[1]);
}

static uint32_t half_in(struct decoder *d, uint32_t index, enum value_id flush)
{
    uint32_t a = decode_in(d, index, PTX_B16);
    if (!flush)
        return a;
    uint32_t t = decode_temporary(d, 2);
    decode_value(d, flush, 2, t, a, a, a);
    return t;
}

static bool decode_halves(struct decoder *d, size_t row, enum ptx_type type, struct float_how how)
{
    uint32_t sources = float_ops[row].sources;
    bool bf = type == PTX_BF16 || type == PTX_BF16X2;
    enum value_id id = bf ? float_ops[row].bf16 : float_ops[row].f16;
    if (!id || how.rounding != FE_TONEAREST || (bf && how.sat) || (how.sat && how.relu))
        return false;
    how.flush = !how.ftz ? VALUE_NONE : bf ? VALUE_flush_bf16 : VALUE_flush_f16;
    if (decode_opcode_is(d, "min") && decode_take(d, "NaN"))
        id = bf ? VALUE_minnan_bf16 : VALUE_minnan_f16;
    else if (decode_opcode_is(d, "max") && decode_take(d, "NaN"))
        id = bf ? VALUE_maxnan_bf16 : VALUE_maxnan_f16;
    if (type == PTX_F16X2 || type == PTX_BF16X2) {
        packed_halves(d, id, sources, how);
        return true;
    }
    decode_count(d, sources + 1, sources + 1);
    uint32_t first = half_in(d, 1, how.flush);
    uint32_t in[3] = {first, first, first};
    for (uint32_t i = 1; i < sources; i++)
        in[i] = half_in(d, i + 1, how.flush);
    uint32_t dst = decode_out(d, 0, PTX_B16);
    decode_value(d, id, 2, dst, in[0], in[1], in[2]);
    half_end(d, dst, how);
    return true;
}

static bool decode_float(struct decoder *d, size_t row, enum ptx_type type)
{
    uint32_t sources = float_ops[row].sources;
    struct float_how how = float_modifiers(d);
    if (type == PTX_F16 || type == PTX_BF16 || type == PTX_F16X2 || type == PTX_BF16X2)
        return decode_halves(d, row, type, how);
    enum value_id id = type == PTX_F32 ? float_ops[row].f32 : float_ops[row].f64;
    if (!id || how.relu || (type != PTX_F32 && type != PTX_F64))
        return false;
    if (decode_opcode_is(d, "min") || decode_opcode_is(d, "max")) {
        if (decode_take(d, "NaN"))
            id = type == PTX_F64
                     ? (decode_opcode_is(d, "min") ? VALUE_minnan_f64 : VALUE_maxnan_f64)
                     : (decode_opcode_is(d, "min") ? VALUE_minnan_f32 : VALUE_maxnan_f32);
    }
    exec_value *rounded = type == PTX_F32 ? float_ops[row].round32 : float_ops[row].round64;
    if (how.ftz && how.rounding == FE_TONEAREST && float_ops[row].ftz && type == PTX_F32) {
        struct float_how fused = {.sat = how.sat, .rounding = FE_TONEAREST};
        float_op(d, type, fused, float_ops[row].ftz, NULL, sources);
    } else {
        float_op(d, type, how, id, rounded, sources);
    }
    return true;
}

/* ---- integers ---- */

/*
 * Writes CC.CF from a, b and (for addc) the carry in. After a subtraction it is the carry of a + ~b
 * + 1, so it is set where nothing was borrowed. The PTX ISA calls it a borrow, which is the same as
 * long as subc reads it; but nvcc 13.0 divides numbers of 128 bits by subc.cc and then addc.
 */
static void add_carry(struct decoder *d, enum ptx_type type, uint32_t dst, uint32_t a, uint32_t b,
                      bool in, bool out, bool subtract)
{
    uint32_t carry = decode_carry(d), width = decode_type_width(type);
    uint32_t before = in ? carry : decode_constant(d, subtract, 0), next = decode_temporary(d, 0);
    if (width < 4) {
        decode_fail(d, "carry is not for type %s", ptx_type_name(type));
        return;
    }
    if (out)
        decode_value(d, subtract ? BY_WIDTH(whole_, type) : BY_WIDTH(carry_, type), 0, next, a, b,
                     before);
    decode_value(d, subtract ? BY_WIDTH(subc_, type) : BY_WIDTH(addc_, type), width, dst, a, b,
                 before);
    if (out)
        decode_move(d, 0, carry, next);
}

static void decode_add(struct decoder *d, enum ptx_type type)
{
    bool subtract = d->ins->opcode[0] == 's', in = d->ins->opcode[3] == 'c';
    bool out = decode_take(d, "cc"), sat = decode_take(d, "sat");
    need_integer(d, type);
    if (in || out) {
        decode_count(d, 3, 3);
        uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type);
        add_carry(d, type, decode_out(d, 0, type), a, b, in, out, subtract);
    } else if (sat) {
        if (type != PTX_S32)
            decode_fail(d, ".sat is for s32");
        decode_binary(d, subtract ? VALUE_subsat_s32 : VALUE_addsat_s32, type);
    } else {
        decode_binary(d, subtract ? BY_WIDTH(sub_, type) : BY_WIDTH(add_, type), type);
    }
}

static enum ptx_type wide_type(enum ptx_type type)
{
    return type == PTX_U16   ? PTX_U32
           : type == PTX_S16 ? PTX_S32
           : type == PTX_U32 ? PTX_U64
           : type == PTX_S32 ? PTX_S64
                             : PTX_NONE;
}

static void decode_mul(struct decoder *d, enum ptx_type type)
{
    need_integer(d, type);
    if (decode_take(d, "wide")) {
        enum ptx_type wide = wide_type(type);
        if (wide == PTX_NONE) {
            decode_fail(d, "mul.wide is not for type %s", ptx_type_name(type));
            return;
        }
        decode_count(d, 3, 3);
        uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type);
        enum value_id id = type == PTX_U16   ? VALUE_mulwide_u16
                           : type == PTX_S16 ? VALUE_mulwide_s16
                           : type == PTX_U32 ? VALUE_mulwide_u32
                                             : VALUE_mulwide_s32;
        decode_value(d, id, decode_type_width(wide), decode_out(d, 0, wide), a, b, a);
    } else if (decode_take(d, "hi")) {
        decode_binary(d, BY_TYPE(mulhi, type), type);
    } else {
        decode_take(d, "lo");
        decode_binary(d, BY_WIDTH(mul_, type), type);
    }
}

static void decode_mad_wide(struct decoder *d, enum ptx_type type)
{
    enum ptx_type wide = wide_type(type);
    if (wide == PTX_NONE) {
        decode_fail(d, "mad.wide is not for type %s", ptx_type_name(type));
        return;
    }
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type), c = decode_in(d, 3, wide);
    enum value_id id = type == PTX_U16   ? VALUE_madwide_u16
                       : type == PTX_S16 ? VALUE_madwide_s16
                       : type == PTX_U32 ? VALUE_madwide_u32
                                         : VALUE_madwide_s32;
    decode_value(d, id, decode_type_width(wide), decode_out(d, 0, wide), a, b, c);
}

static void decode_mad(struct decoder *d, enum ptx_type type)
{
    bool in = decode_opcode_is(d, "madc"), out = decode_take(d, "cc"), hi = decode_take(d, "hi");
    need_integer(d, type);
    decode_count(d, 4, 4);
    if (decode_take(d, "sat"))
        decode_fail(d, "mad.hi.sat is not supported");
    if (decode_take(d, "wide")) {
        decode_mad_wide(d, type);
        return;
    }
    decode_take(d, "lo");
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type), c = decode_in(d, 3, type);
    uint32_t width = decode_type_width(type), dst = decode_out(d, 0, type);
    if (!hi && !in && !out) {
        decode_value(d, BY_WIDTH(mad_, type), width, dst, a, b, c);
        return;
    }
    uint32_t product = decode_temporary(d, width);
    decode_value(d, hi ? BY_TYPE(mulhi, type) : BY_WIDTH(mul_, type), width, product, a, b, a);
    if (in || out)
        add_carry(d, type, dst, product, c, in, out, false);
    else
        decode_value(d, BY_WIDTH(add_, type), width, dst, product, c, c);
}

static void decode_mul24(struct decoder *d, enum ptx_type type)
{
    bool mad = decode_opcode_is(d, "mad24"), hi = decode_take(d, "hi"), s = type == PTX_S32;
    decode_take(d, "lo");
    if (type != PTX_U32 && type != PTX_S32)
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
    decode_count(d, mad ? 4 : 3, mad ? 4 : 3);
    uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type), dst = decode_out(d, 0, type);
    enum value_id id = hi ? (s ? VALUE_mul24hi_s32 : VALUE_mul24hi_u32)
                          : (s ? VALUE_mul24lo_s32 : VALUE_mul24lo_u32);
    uint32_t product = mad ? decode_temporary(d, 4) : dst;
    uint32_t c = mad ? decode_in(d, 3, type) : a;
    decode_value(d, id, 4, product, a, b, a);
    if (mad)
        decode_value(d, VALUE_add_32, 4, dst, product, c, c);
}

static void decode_dot(struct decoder *d)
{
    bool four = decode_opcode_is(d, "dp4a"), hi = decode_take(d, "hi");
    decode_take(d, "lo");
    enum ptx_type ta = decode_need_type(d), tb = PTX_NONE;
    /* dp4a.u32.u32 has the same type twice, and each is taken once. */
    for (uint32_t i = 0; i < d->ins->modifier_count; i++)
        tb = ptx_type_named(d->ins->modifiers[i]);
    decode_take(d, ptx_type_name(tb));
    decode_count(d, 4, 4);
    uint32_t a = decode_in(d, 1, PTX_B32), b = decode_in(d, 2, PTX_B32),
             c = decode_in(d, 3, PTX_B32);
    struct op *op =
        decode_value(d, four ? VALUE_dp4a : VALUE_dp2a, 4, decode_out(d, 0, PTX_B32), a, b, c);
    op->aux = (ta == PTX_S32) | (uint32_t)(tb == PTX_S32) << 1 | (uint32_t)hi << 2;
}

/* add, min and max of two 16-bit halves. */
static bool packed_integers(struct decoder *d, enum ptx_type type)
{
    bool s = type == PTX_S16X2;
    struct float_how how = {.integer_relu =
                                s && !decode_opcode_is(d, "add") && decode_take(d, "relu")};
    enum value_id id = decode_opcode_is(d, "add")   ? VALUE_add_16
                       : decode_opcode_is(d, "min") ? (s ? VALUE_min_s16 : VALUE_min_u16)
                       : decode_opcode_is(d, "max") ? (s ? VALUE_max_s16 : VALUE_max_u16)
                                                    : VALUE_NONE;
    if (id)
        packed_halves(d, id, 2, how);
    return id != VALUE_NONE;
}

/* min and max. */
static void decode_bound(struct decoder *d, enum ptx_type type)
{
    bool relu = type == PTX_S32 && decode_take(d, "relu");
    decode_binary(d, decode_opcode_is(d, "min") ? BY_TYPE(min, type) : BY_TYPE(max, type), type);
    if (relu)
        integer_relu(d, VALUE_max_s32, 4, decode_out(d, 0, type));
}

static void decode_integer(struct decoder *d, enum ptx_type type)
{
    if (decode_opcode_is(d, "add") || decode_opcode_is(d, "addc") || decode_opcode_is(d, "sub") ||
        decode_opcode_is(d, "subc")) {
        decode_add(d, type);
        return;
    }
    if (decode_opcode_is(d, "mul")) {
        decode_mul(d, type);
        return;
    }
    if (decode_opcode_is(d, "mad") || decode_opcode_is(d, "madc")) {
        decode_mad(d, type);
        return;
    }
    need_integer(d, type);
    if (decode_opcode_is(d, "div"))
        decode_binary(d, BY_TYPE(div, type), type);
    else if (decode_opcode_is(d, "rem"))
        decode_binary(d, BY_TYPE(rem, type), type);
    else if (decode_opcode_is(d, "min") || decode_opcode_is(d, "max"))
        decode_bound(d, type);
    else if (decode_opcode_is(d, "abs"))
        decode_unary(d, BY_WIDTH(abs_, type), type, type);
    else if (decode_opcode_is(d, "neg"))
        decode_unary(d, BY_WIDTH(neg_, type), type, type);
    else if (decode_opcode_is(d, "sad")) {
        decode_count(d, 4, 4);
        uint32_t a = decode_in(d, 1, type), b = decode_in(d, 2, type), c = decode_in(d, 3, type);
        decode_value(d, BY_TYPE(sad, type), decode_type_width(type), decode_out(d, 0, type), a, b,
                     c);
    }
}

static void decode_testp(struct decoder *d)
{
    static const struct {
        const char *name;
        enum value_id f32, f64;
    } tests[] = {{"finite", VALUE_finite_f32, VALUE_finite_f64},
                 {"infinite", VALUE_infinite_f32, VALUE_infinite_f64},
                 {"number", VALUE_number_f32, VALUE_number_f64},
                 {"notanumber", VALUE_notanumber_f32, VALUE_notanumber_f64},
                 {"normal", VALUE_normal_f32, VALUE_normal_f64},
                 {"subnormal", VALUE_subnormal_f32, VALUE_subnormal_f64}};
    enum ptx_type type = decode_need_type(d);
    uint32_t a = decode_in(d, 1, type), p = decode_out(d, 0, PTX_PRED);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        if (decode_take(d, tests[i].name)) {
            decode_value(d, type == PTX_F64 ? tests[i].f64 : tests[i].f32, 0, p, a, a, a);
            return;
        }
    }
    decode_fail(d, "testp without a test");
}

bool decode_arith(struct decoder *d)
{
    static const char *const integers[] = {"add", "addc", "sub", "subc", "mul", "mad", "madc",
                                           "div", "rem",  "min", "max",  "abs", "neg", "sad"};
    if (decode_opcode_is(d, "dp4a") || decode_opcode_is(d, "dp2a")) {
        decode_dot(d);
        return true;
    }
    if (decode_opcode_is(d, "testp")) {
        decode_testp(d);
        return true;
    }
    if (decode_opcode_is(d, "mul24") || decode_opcode_is(d, "mad24")) {
        decode_mul24(d, decode_need_type(d));
        return true;
    }
    size_t row = 0, floats = sizeof(float_ops) / sizeof(float_ops[0]);
    while (row < floats && !decode_opcode_is(d, float_ops[row].name))
        row++;
    bool integer = false;
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        integer |= decode_opcode_is(d, integers[i]);
    if (row == floats && !integer)
        return false;
    enum ptx_type type = decode_type(d);
    if (type_is_float(type) || type == PTX_F16X2 || type == PTX_BF16X2) {
        return row < floats && decode_float(d, row, type);
    }
    if (type == PTX_U16X2 || type == PTX_S16X2)
        return packed_integers(d, type);
    if (!integer || type == PTX_NONE)
        return false;
    decode_integer(d, type);
    return true;
}
