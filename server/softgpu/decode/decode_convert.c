/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <fenv.h>
#include <string.h>

#include "server/softgpu/decode/decode.h"

struct conversion {
    enum ptx_type to, from;
    int rounding;  /* FE_*, or -1 */
    char integral; /* n z m p of .rni .rzi .rmi .rpi, or 0 */
    bool sat, ftz, relu;
};

static uint32_t convert_step(struct decoder *d, enum value_id id, uint32_t width, uint32_t a)
{
    uint32_t t = decode_temporary(d, width);
    decode_value(d, id, width, t, a, a, a);
    return t;
}

/* Both are 64-bit rows. */
static uint32_t clamp_wide(struct decoder *d, uint32_t a, enum ptx_type from, enum ptx_type to)
{
    uint32_t bits = 8 * ptx_type_bytes(to), t = decode_temporary(d, 8);
    bool s = type_is_signed(to);
    uint64_t most = s            ? (UINT64_C(1) << (bits - 1)) - 1
                    : bits == 64 ? UINT64_MAX
                                 : (UINT64_C(1) << bits) - 1;
    uint64_t least = s ? ~most : 0;
    if (!type_is_signed(from)) {
        uint32_t hi = decode_constant(d, most, 8);
        decode_value(d, VALUE_min_u64, 8, t, a, hi, hi);
        return t;
    }
    uint32_t lo = decode_constant(d, least, 8);
    decode_value(d, VALUE_max_s64, 8, t, a, lo, lo);
    if (!(bits == 64)) {
        uint32_t hi = decode_constant(d, most, 8);
        decode_value(d, VALUE_min_s64, 8, t, t, hi, hi);
    }
    return t;
}

static uint32_t widen_integer(struct decoder *d, uint32_t a, enum ptx_type from, uint32_t width)
{
    uint32_t have = decode_type_width(from);
    bool s = type_is_signed(from);
    if (have >= width)
        return a;
    if (have == 4)
        return convert_step(d, s ? VALUE_cv_s32_64 : VALUE_cv_u32_64, 8, a);
    return width == 4 ? convert_step(d, s ? VALUE_cv_s16_32 : VALUE_cv_u16_32, 4, a)
                      : convert_step(d, s ? VALUE_cv_s16_64 : VALUE_cv_u16_64, 8, a);
}

/* A value of `from` to the row width of `to`, cut to its bits. */
static uint32_t fit_integer(struct decoder *d, uint32_t a, enum ptx_type from, enum ptx_type to)
{
    uint32_t have = decode_type_width(from), want = decode_type_width(to);
    if (have < want)
        a = widen_integer(d, a, from, want);
    else if (have > want)
        a = convert_step(d,
                         have == 4   ? VALUE_cv_32_16
                         : want == 2 ? VALUE_cv_64_16
                                     : VALUE_cv_64_32,
                         want, a);
    if (ptx_type_bytes(to) == 1)
        a = convert_step(d, type_is_signed(to) ? VALUE_ext_s8 : VALUE_ext_u8, 2, a);
    return a;
}

static uint32_t integer_in(struct decoder *d, enum ptx_type from)
{
    uint32_t a = decode_loose(d, decode_operand(d, 1), from);
    if (ptx_type_bytes(from) == 1)
        a = convert_step(d, type_is_signed(from) ? VALUE_ext_s8 : VALUE_ext_u8, 2, a);
    return a;
}

/* Halves come as f32. */
static uint32_t float_in(struct decoder *d, struct conversion *c)
{
    uint32_t a = decode_loose(d, decode_operand(d, 1),
                              c->from == PTX_F16 || c->from == PTX_BF16 ? PTX_B16 : c->from);
    if (c->from == PTX_F16 || c->from == PTX_BF16) {
        a = convert_step(d, c->from == PTX_F16 ? VALUE_f16_f32 : VALUE_bf16_f32, 4, a);
        c->from = PTX_F32;
    } else if (c->ftz && c->from == PTX_F32) {
        a = convert_step(d, VALUE_flush_f32, 4, a);
    }
    return a;
}

static uint32_t round_integral(struct decoder *d, uint32_t a, enum ptx_type type, char how)
{
    bool wide = type == PTX_F64;
    enum value_id id = how == 'n'   ? (wide ? VALUE_rint_f64 : VALUE_rint_f32)
                       : how == 'm' ? (wide ? VALUE_floor_f64 : VALUE_floor_f32)
                       : how == 'p' ? (wide ? VALUE_ceil_f64 : VALUE_ceil_f32)
                                    : (wide ? VALUE_trunc_f64 : VALUE_trunc_f32);
    return convert_step(d, id, wide ? 8 : 4, a);
}

/* Converts to 8 or 16 bits through 32 bits. A NaN becomes 0, or the least signed number. */
static uint32_t float_to_narrow(struct decoder *d, uint32_t a, bool wide, enum ptx_type to)
{
    uint32_t whole = convert_step(d, wide ? VALUE_f64_s32 : VALUE_f32_s32, 4, a);
    uint32_t t = clamp_wide(d, widen_integer(d, whole, PTX_S32, 8), PTX_S64, to);
    t = fit_integer(d, t, PTX_S64, to);
    if (wide && !type_is_signed(to)) {
        uint32_t p = decode_temporary(d, 0), top = 8 * ptx_type_bytes(to) - 1;
        decode_value(d, VALUE_notanumber_f64, 0, p, a, a, a);
        decode_value(d, VALUE_sel_16, 2, t, decode_constant(d, UINT64_C(1) << top, 2), t, p);
    }
    return t;
}

static void float_to_integer(struct decoder *d, struct conversion *c)
{
    uint32_t a = float_in(d, c);
    bool wide = c->from == PTX_F64, s = type_is_signed(c->to);
    a = round_integral(d, a, c->from, c->integral ? c->integral : 'z');
    enum ptx_type to = c->to;
    if (decode_type_width(to) == 8)
        a = convert_step(
            d, wide ? (s ? VALUE_f64_s64 : VALUE_f64_u64) : (s ? VALUE_f32_s64 : VALUE_f32_u64), 8,
            a);
    else if (decode_type_width(to) == 4)
        a = convert_step(
            d, wide ? (s ? VALUE_f64_s32 : VALUE_f64_u32) : (s ? VALUE_f32_s32 : VALUE_f32_u32), 4,
            a);
    else {
        a = float_to_narrow(d, a, wide, to);
    }
    decode_widen(d, decode_operand(d, 0), a, to);
}

static uint32_t rounded_step(struct decoder *d, exec_value *value, uint32_t width, uint32_t a,
                             int rounding)
{
    uint32_t t = decode_temporary(d, width);
    decode_special(d, value, width, t, a, a, a)->aux =
        (uint32_t)(rounding < 0 ? FE_TONEAREST : rounding);
    return t;
}

static void float_end(struct decoder *d, const struct conversion *c, uint32_t a)
{
    if (c->ftz && c->to == PTX_F32)
        a = convert_step(d, VALUE_flush_f32, 4, a);
    if (c->sat)
        a = convert_step(d,
                         c->to == PTX_F64    ? VALUE_sat_f64
                         : c->to == PTX_F16  ? VALUE_sat_f16
                         : c->to == PTX_BF16 ? VALUE_sat_bf16
                                             : VALUE_sat_f32,
                         decode_type_width(c->to), a);
    decode_widen(d, decode_operand(d, 0), a, c->to);
}

static void integer_to_float(struct decoder *d, struct conversion *c)
{
    uint32_t a = integer_in(d, c->from);
    bool s = type_is_signed(c->from), half = c->to == PTX_F16 || c->to == PTX_BF16;
    bool near = c->rounding == FE_TONEAREST;
    if (c->rounding < 0)
        decode_fail(d, "cvt from integer to float needs a rounding mode");
    uint32_t width = decode_type_width(c->from) == 8 ? 8 : 4;
    a = widen_integer(d, a, c->from, width);
    if (half) {
        if (width == 8)
            a = convert_step(d, s ? VALUE_odd_s64 : VALUE_odd_u64, 8, a);
        a = width == 8 ? convert_step(d, s ? VALUE_s64_f64 : VALUE_u64_f64, 8, a)
                       : convert_step(d, s ? VALUE_s32_f64 : VALUE_u32_f64, 8, a);
        a = rounded_step(d, c->to == PTX_F16 ? exec_round_f64_f16 : exec_round_f64_bf16, 2, a,
                         c->rounding);
    } else if (c->to == PTX_F32) {
        exec_value *value = width == 8 ? (s ? exec_round_s64_f32 : exec_round_u64_f32)
                                       : (s ? exec_round_s32_f32 : exec_round_u32_f32);
        enum value_id id =
            width == 8 ? (s ? VALUE_s64_f32 : VALUE_u64_f32) : (s ? VALUE_s32_f32 : VALUE_u32_f32);
        a = near ? convert_step(d, id, 4, a) : rounded_step(d, value, 4, a, c->rounding);
    } else if (width == 4) {
        a = convert_step(d, s ? VALUE_s32_f64 : VALUE_u32_f64, 8, a);
    } else {
        a = near ? convert_step(d, s ? VALUE_s64_f64 : VALUE_u64_f64, 8, a)
                 : rounded_step(d, s ? exec_round_s64_f64 : exec_round_u64_f64, 8, a, c->rounding);
    }
    float_end(d, c, a);
}

static void float_to_float(struct decoder *d, struct conversion *c)
{
    enum ptx_type was = c->from;
    uint32_t a = float_in(d, c);
    if (c->integral)
        a = round_integral(d, a, c->from, c->integral);
    bool half = c->to == PTX_F16 || c->to == PTX_BF16;
    if (half) {
        if (c->from == PTX_F32)
            a = convert_step(d, VALUE_f32_f64, 8, a);
        a = rounded_step(d, c->to == PTX_F16 ? exec_round_f64_f16 : exec_round_f64_bf16, 2, a,
                         c->rounding);
        if (c->relu)
            a = convert_step(d, VALUE_relu_h, 2, a);
    } else if (c->to == PTX_F64 && c->from == PTX_F32) {
        a = convert_step(d, VALUE_f32_f64, 8, a);
    } else if (c->to == PTX_F32 && c->from == PTX_F64) {
        if (c->rounding < 0)
            decode_fail(d, "cvt.f32.f64 needs a rounding mode");
        a = c->rounding == FE_TONEAREST ? convert_step(d, VALUE_f64_f32, 4, a)
                                        : rounded_step(d, exec_round_f64_f32, 4, a, c->rounding);
    }
    (void)was;
    float_end(d, c, a);
}

static void integer_to_integer(struct decoder *d, const struct conversion *c)
{
    uint32_t a = integer_in(d, c->from);
    if (c->sat) {
        a = widen_integer(d, a, c->from, 8);
        a = clamp_wide(d, a, c->from, c->to);
        a = fit_integer(d, a, type_is_signed(c->from) ? PTX_S64 : PTX_U64, c->to);
    } else {
        a = fit_integer(d, a, c->from, c->to);
    }
    decode_widen(d, decode_operand(d, 0), a, c->to);
}

/* cvt.rn.f16x2.f32 d, a, b: a is the high half. */
static void pack_floats(struct decoder *d, const struct conversion *c)
{
    uint32_t half[2];
    decode_count(d, 3, 3);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t a = convert_step(d, VALUE_f32_f64, 8, decode_in(d, 2 - i, PTX_F32));
        half[i] = rounded_step(d, c->to == PTX_F16X2 ? exec_round_f64_f16 : exec_round_f64_bf16, 2,
                               a, c->rounding);
        if (c->relu)
            half[i] = convert_step(d, VALUE_relu_h, 2, half[i]);
    }
    decode_value(d, VALUE_pack_16, 4, decode_out(d, 0, PTX_B32), half[0], half[1], half[1]);
}

/* cvt.rn.satfinite.e4m3x2.f32 d, a, b: a is the high byte. And .f16x2 d, a. */
static void pack_bytes(struct decoder *d, enum ptx_type from, enum value_id id)
{
    uint32_t byte[2];
    decode_count(d, from == PTX_F32 ? 3 : 2, from == PTX_F32 ? 3 : 2);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t a;
        if (from == PTX_F32) {
            a = decode_in(d, 2 - i, PTX_F32);
        } else {
            uint32_t whole = decode_in(d, 1, PTX_B32);
            a = convert_step(d, i == 0 ? VALUE_cv_32_16 : VALUE_high_32, 2, whole);
            a = convert_step(d, VALUE_f16_f32, 4, a);
        }
        byte[i] = convert_step(d, id, 2, a);
    }
    decode_value(d, VALUE_pack_8, 2, decode_out(d, 0, PTX_B16), byte[0], byte[1], byte[1]);
}

/* cvt.rn.f16x2.e4m3x2 d, a. */
static void unpack_bytes(struct decoder *d, enum value_id id)
{
    decode_count(d, 2, 2);
    uint32_t whole = decode_in(d, 1, PTX_B16);
    uint32_t low = convert_step(d, id, 2, whole);
    uint32_t high = convert_step(d, id, 2, convert_step(d, VALUE_high_16, 2, whole));
    decode_value(d, VALUE_pack_16, 4, decode_out(d, 0, PTX_B32), low, high, high);
}

/* Only conversions to the formats of eight bits have .satfinite. Returns false if it is none that
 * is known. */
static bool convert_bytes(struct decoder *d, bool e5m2)
{
    bool to_bytes = decode_take(d, "satfinite"), near = decode_rounding(d) == FE_TONEAREST;
    enum ptx_type other = decode_need_type(d);
    if (!near || (other != PTX_F16X2 && !(to_bytes && other == PTX_F32)))
        return false;
    if (to_bytes)
        pack_bytes(d, other, e5m2 ? VALUE_f32_e5m2 : VALUE_f32_e4m3);
    else
        unpack_bytes(d, e5m2 ? VALUE_e5m2_f16 : VALUE_e4m3_f16);
    return true;
}

/* cvt.pack.sat.TO.s32 d, a, b{, c}: a and b clamped, b in the low bits; above them those of c. */
static void pack_integers(struct decoder *d, bool sat)
{
    enum ptx_type to = decode_need_type(d), from = decode_need_type(d), third = decode_type(d);
    bool eight = to == PTX_U8 || to == PTX_S8;
    uint32_t bits = eight ? 8 : 16, part[2];
    if (!sat || from != PTX_S32 || (!eight && to != PTX_U16 && to != PTX_S16) ||
        third != (eight ? PTX_B32 : PTX_NONE)) {
        decode_fail(d, "cvt.pack of these types is not supported");
        return;
    }
    decode_count(d, eight ? 4 : 3, eight ? 4 : 3);
    uint32_t mask = decode_constant(d, (UINT64_C(1) << bits) - 1, 4);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t wide = widen_integer(d, decode_in(d, 2 - i, PTX_S32), PTX_S32, 8);
        uint32_t narrow = convert_step(d, VALUE_cv_64_32, 4, clamp_wide(d, wide, PTX_S64, to));
        part[i] = decode_temporary(d, 4);
        decode_value(d, VALUE_and_32, 4, part[i], narrow, mask, mask);
    }
    uint32_t result = decode_temporary(d, 4), by = decode_constant(d, bits, 4);
    decode_value(d, VALUE_shl_32, 4, part[1], part[1], by, by);
    decode_value(d, VALUE_or_32, 4, result, part[0], part[1], part[1]);
    if (eight) {
        uint32_t top = decode_temporary(d, 4), half = decode_constant(d, 16, 4);
        decode_value(d, VALUE_shl_32, 4, top, decode_in(d, 3, PTX_B32), half, half);
        decode_value(d, VALUE_or_32, 4, result, result, top, top);
    }
    decode_move(d, 4, decode_out(d, 0, PTX_B32), result);
}

static void decode_cvt(struct decoder *d)
{
    bool e5m2 = decode_take(d, "e5m2x2");
    if (e5m2 || decode_take(d, "e4m3x2")) {
        if (!convert_bytes(d, e5m2))
            decode_fail(d, "cvt of this format of eight bits is not supported");
        return;
    }
    static const char *const integrals[] = {"rni", "rzi", "rmi", "rpi"};
    struct conversion c = {.sat = decode_take(d, "sat"), .ftz = decode_take(d, "ftz")};
    if (decode_take(d, "pack")) {
        pack_integers(d, c.sat);
        return;
    }
    c.rounding = decode_rounding(d);
    for (int i = 0; i < 4; i++)
        c.integral = decode_take(d, integrals[i]) ? integrals[i][1] : c.integral;
    c.to = decode_need_type(d);
    c.from = decode_type(d);
    if (c.from == PTX_NONE)
        c.from = c.to; /* cvt.rzi.f32.f32 */
    bool to_half = c.to == PTX_F16 || c.to == PTX_BF16 || c.to == PTX_F16X2 || c.to == PTX_BF16X2;
    c.relu = to_half && c.from == PTX_F32 && !c.sat && decode_take(d, "relu");
    if (c.from == PTX_F32 && (c.to == PTX_F16X2 || c.to == PTX_BF16X2)) {
        pack_floats(d, &c);
        return;
    }
    bool from_float = type_is_float(c.from), to_float = type_is_float(c.to);
    bool known = (from_float || (c.from >= PTX_B8 && c.from <= PTX_S64 && c.from != PTX_B128)) &&
                 (to_float || (c.to >= PTX_B8 && c.to <= PTX_S64 && c.to != PTX_B128));
    decode_count(d, 2, 2);
    if (!known)
        decode_fail(d, "cvt.%s.%s is not supported", ptx_type_name(c.to), ptx_type_name(c.from));
    else if (from_float && to_float)
        float_to_float(d, &c);
    else if (from_float)
        float_to_integer(d, &c);
    else if (to_float)
        integer_to_float(d, &c);
    else
        integer_to_integer(d, &c);
}

/* ---- addresses ---- */

static const struct {
    const char *name;
    uint64_t window;
} spaces[] = {
    {"global", 0},           {"const", 0}, {"shared", WINDOW_SHARED},
    {"local", WINDOW_LOCAL}, {"param", 0}, {"shared::cta", WINDOW_SHARED},
    {"param::entry", 0},
};

static void decode_cvta(struct decoder *d)
{
    bool to = decode_take(d, "to"), found = false;
    uint64_t window = 0;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (decode_take(d, spaces[i].name)) {
            window = spaces[i].window;
            found = true;
        }
    }
    if (!found)
        decode_fail(d, "cvta without a space");
    decode_take(d, "u64");
    decode_count(d, 2, 2);
    uint32_t a = decode_in(d, 1, PTX_U64), dst = decode_out(d, 0, PTX_U64);
    if (!window) {
        decode_value(d, VALUE_mov_64, 8, dst, a, a, a);
        return;
    }
    uint32_t offset = decode_constant(d, window, 8);
    decode_value(d, to ? VALUE_sub_64 : VALUE_add_64, 8, dst, a, offset, offset);
}

static void decode_isspacep(struct decoder *d)
{
    static const struct {
        const char *name;
        char test;
    } tests[] = {{"global", 'g'},          {"const", 'c'}, {"shared", 's'}, {"shared::cta", 's'},
                 {"shared::cluster", 's'}, {"local", 'l'}, {"param", 'p'},  {"param::entry", 'p'}};
    uint32_t test = 0;
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        test = decode_take(d, tests[i].name) ? (uint32_t)tests[i].test : test;
    if (!test)
        decode_fail(d, "isspacep without a space");
    decode_count(d, 2, 2);
    uint32_t a = decode_in(d, 1, PTX_U64);
    decode_special(d, exec_space_test, 0, decode_out(d, 0, PTX_PRED), a, a, a)->aux = test;
}

bool decode_convert(struct decoder *d)
{
    if (decode_opcode_is(d, "cvt"))
        decode_cvt(d);
    else if (decode_opcode_is(d, "cvta"))
        decode_cvta(d);
    else if (decode_opcode_is(d, "isspacep"))
        decode_isspacep(d);
    else
        return false;
    return true;
}
