/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Video instructions: arithmetic on bytes and halves of 32-bit registers. CUDA's SIMD intrinsics
 * become such ones, and programs write them as inline PTX. */
#include <string.h>

#include "server/softgpu/decode/decode.h"
#include "server/softgpu/exec/exec_video.h"

static const struct {
    const char *name;
    enum video_operation operation;
    const char *parts; /* the numbers of results for which it exists */
} operations[] = {
    {"vadd", VIDEO_ADD, "124"},      {"vsub", VIDEO_SUB, "124"},
    {"vavrg", VIDEO_AVERAGE, "24"},  {"vabsdiff", VIDEO_DIFFERENCE, "124"},
    {"vmin", VIDEO_MIN, "124"},      {"vmax", VIDEO_MAX, "124"},
    {"vset", VIDEO_SET, "124"},      {"vmad", VIDEO_MULTIPLY_ADD, "1"},
    {"vshl", VIDEO_SHIFT_LEFT, "1"}, {"vshr", VIDEO_SHIFT_RIGHT, "1"},
};

static bool find_operation(const char *opcode, struct video *v)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        size_t n = strlen(operations[i].name);
        if (strncmp(opcode, operations[i].name, n) != 0)
            continue;
        char parts = opcode[n] ? opcode[n] : '1';
        if (!strchr(operations[i].parts, parts) || (opcode[n] && (parts == '1' || opcode[n + 1])))
            continue;
        v->operation = operations[i].operation;
        v->parts = (unsigned)(parts - '0') & 7;
        return true;
    }
    return false;
}

static bool need_type(struct decoder *d)
{
    enum ptx_type type = decode_need_type(d);
    if (type != PTX_U32 && type != PTX_S32)
        decode_fail(d, "'%.60s' is not for type %s", d->ins->opcode, ptx_type_name(type));
    return type == PTX_S32;
}

static void take_modifiers(struct decoder *d, struct video *v)
{
    static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    v->signed_d = v->operation == VIDEO_SET ? false : need_type(d);
    v->signed_a = need_type(d);
    v->signed_b = need_type(d);
    /* The count of a shift is unsigned: the PTX ISA has no other form. */
    if (v->signed_b && (v->operation == VIDEO_SHIFT_LEFT || v->operation == VIDEO_SHIFT_RIGHT))
        decode_fail(d, "'%.60s' takes its count as .u32 alone", d->ins->opcode);
    v->saturate = decode_take(d, "sat");
    v->second = decode_take(d, "add") ? VIDEO_SECOND_ADD : VIDEO_PLACE;
    if (v->parts == 1 && v->operation != VIDEO_MULTIPLY_ADD) {
        v->second = decode_take(d, "min")   ? VIDEO_SECOND_MIN
                    : decode_take(d, "max") ? VIDEO_SECOND_MAX
                                            : v->second;
    }
    if (v->operation == VIDEO_SHIFT_LEFT || v->operation == VIDEO_SHIFT_RIGHT) {
        v->wrap = decode_take(d, "wrap");
        if (!v->wrap && !decode_take(d, "clamp"))
            decode_fail(d, "'%.60s' without .clamp or .wrap", d->ins->opcode);
    } else if (v->operation == VIDEO_MULTIPLY_ADD) {
        v->plus_one = decode_take(d, "po");
        v->scale = decode_take(d, "shr7") ? 7 : decode_take(d, "shr15") ? 15 : 0;
    } else if (v->operation == VIDEO_SET) {
        uint32_t i = 0;
        while (i < 6 && !decode_take(d, compares[i]))
            i++;
        v->compare = i & 7;
        if (i == 6)
            decode_fail(d, "'%.60s' without a comparison", d->ins->opcode);
    }
}

/* The parts that a selector names, the last one first: .h1, .h32, .b7654. Each is one of `from`
 * parts. Returns false if there is no selector. */
static bool take_selector(struct decoder *d, const struct ptx_operand *op, uint32_t *log2,
                          uint32_t at[4], uint32_t *count, uint32_t from_bytes)
{
    const char *part = op->part;
    if (!op->selector)
        return false;
    *count = part ? (uint32_t)strlen(part) - 1 : 0;
    if (*count < 1 || *count > 4 || (part[0] != 'b' && part[0] != 'h')) {
        decode_fail(d, "'%.60s' has no such part as the selector of '%.60s' names", op->name,
                    d->ins->opcode);
        return false;
    }
    *log2 = part[0] == 'h';
    for (uint32_t i = 0; i < *count; i++) {
        uint32_t number = (uint32_t)(part[*count - i] - '0');
        if (number > 7 || (number + 1) << *log2 > from_bytes)
            decode_fail(d, "'%.60s' has no part '.%.60s'", op->name, part);
        at[i] = number << *log2;
    }
    return true;
}

/* The parts of a and b that are the sources on one side. own: the first byte of this operand. */
static uint32_t source_parts(struct decoder *d, uint32_t index, const struct video *v,
                             uint32_t *log2)
{
    uint32_t parts = v->parts, own = index == 1 ? 0 : 4, at[4] = {0}, count = 0, packed = 0;
    uint32_t want = parts == 1 ? 2 : parts == 2 ? 1 : 0;
    *log2 = want;
    bool selected =
        take_selector(d, decode_operand(d, index), log2, at, &count, parts == 1 ? 4 : 8);
    if (selected && (count != parts || (parts > 1 && *log2 != want)))
        decode_fail(d, "'%.60s' needs %u parts of each operand", d->ins->opcode, parts);
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t first = !selected ? own + (i << want) : parts == 1 ? own + at[i] : at[i];
        packed |= (first & 7) << (3 * i);
    }
    return packed;
}

/* Where the results go: a part of d for one result, a mask for several. Returns whether there is
 * a selector. */
static bool target_parts(struct decoder *d, struct video *v)
{
    uint32_t log2 = v->parts == 1 ? 2 : v->parts == 2 ? 1 : 0, want = log2, at[4], count = 0;
    bool selected = take_selector(d, decode_operand(d, 0), &log2, at, &count, 4);
    v->mask = (1u << v->parts) - 1;
    if (selected && v->parts == 1) {
        v->at_d = at[0] & 3;
        if (count != 1 || v->operation == VIDEO_MULTIPLY_ADD)
            decode_fail(d, "'%.60s' has no such result", d->ins->opcode);
    } else if (selected) {
        v->mask = 0;
        for (uint32_t i = 0; i < count; i++)
            v->mask |= 1u << (at[i] >> log2);
        if (log2 != want)
            decode_fail(d, "'%.60s' has no such result", d->ins->opcode);
    }
    v->log2_d = log2 & 3;
    return selected;
}

/* An operand without its selector, which was read before. */
static struct ptx_operand plain(struct decoder *d, uint32_t index)
{
    struct ptx_operand op = *decode_operand(d, index);
    op.selector = 0;
    op.part = NULL;
    return op;
}

bool decode_video(struct decoder *d)
{
    struct video v = {0};
    if (!find_operation(d->ins->opcode, &v))
        return false;
    take_modifiers(d, &v);
    uint32_t log2_a, log2_b;
    v.at_a = source_parts(d, 1, &v, &log2_a) & 0xfff;
    v.at_b = source_parts(d, 2, &v, &log2_b) & 0xfff;
    v.log2_a = log2_a & 3;
    v.log2_b = log2_b & 3;
    bool part = target_parts(d, &v);
    bool third =
        v.parts > 1 || part || v.second != VIDEO_PLACE || v.operation == VIDEO_MULTIPLY_ADD;
    if ((v.parts > 1 && v.saturate && v.second != VIDEO_PLACE) ||
        (v.parts == 1 && part && v.second != VIDEO_PLACE))
        decode_fail(d, "'%.60s' can't do this with the sum", d->ins->opcode);
    decode_count(d, third ? 4 : 3, third ? 4 : 3);
    struct ptx_operand a = plain(d, 1), b = plain(d, 2), to = plain(d, 0);
    uint32_t in_a = decode_source(d, &a, PTX_B32), in_b = decode_source(d, &b, PTX_B32);
    uint32_t in_c = third ? decode_in(d, 3, PTX_B32) : in_a;
    uint32_t width = 4, dst = decode_target(d, &to, &width);
    if (width != 4)
        decode_fail(d, "'%.60s' needs 32-bit registers", d->ins->opcode);
    struct op *op = decode_special(d, exec_video, 4, dst, in_a, in_b, in_c);
    memcpy(&op->imm, &v, sizeof v);
    return true;
}
