/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Video instructions. They are rare, so all are one loop over lanes that asks what it is to do. */
#include <stdbool.h>
#include <string.h>

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/exec_video.h"

/* The widest is a product of 32-bit numbers, or such a number shifted by 32. */
typedef __int128 wide;

static wide part_of(uint64_t bytes, uint32_t at, uint32_t log2, bool is_signed)
{
    uint32_t part = (uint32_t)(bytes >> (8 * at));
    if (log2 == 0)
        return is_signed ? (int8_t)part : (uint8_t)part;
    if (log2 == 1)
        return is_signed ? (int16_t)part : (uint16_t)part;
    return is_signed ? (wide)(int32_t)part : (wide)part;
}

static bool compare(enum video_compare how, wide a, wide b)
{
    switch (how) {
    case VIDEO_EQ:
        return a == b;
    case VIDEO_NE:
        return a != b;
    case VIDEO_LT:
        return a < b;
    case VIDEO_LE:
        return a <= b;
    case VIDEO_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static wide shift(const struct video *v, wide a, wide b)
{
    uint32_t n = v->wrap ? (uint32_t)b & 31 : b > 32 ? 32 : (uint32_t)b;
    return v->operation == VIDEO_SHIFT_LEFT ? a * ((wide)1 << n) : a >> n;
}

static wide result_of(const struct video *v, wide a, wide b)
{
    switch ((enum video_operation)v->operation) {
    case VIDEO_ADD:
        return a + b;
    case VIDEO_SUB:
        return a - b;
    case VIDEO_AVERAGE:
        return (a + b + (a + b >= 0)) >> 1;
    case VIDEO_DIFFERENCE:
        return a < b ? b - a : a - b;
    case VIDEO_MIN:
        return a < b ? a : b;
    case VIDEO_MAX:
        return a > b ? a : b;
    case VIDEO_SET:
        return compare((enum video_compare)v->compare, a, b);
    case VIDEO_MULTIPLY_ADD:
        return a * b;
    default:
        return shift(v, a, b);
    }
}

static wide clamped(wide x, uint32_t log2, bool is_signed)
{
    uint32_t bits = UINT32_C(8) << log2;
    wide least = is_signed ? -((wide)1 << (bits - 1)) : 0;
    wide most = ((wide)1 << (is_signed ? bits - 1 : bits)) - 1;
    return x < least ? least : x > most ? most : x;
}

static uint32_t multiply_add(const struct video *v, wide product, wide c)
{
    wide sum = (product + c + v->plus_one) >> v->scale;
    return (uint32_t)(v->saturate ? clamped(sum, 2, v->signed_a || v->signed_b) : sum);
}

static uint32_t placed(uint32_t c, uint32_t x, uint32_t at, uint32_t log2)
{
    uint32_t mask = log2 == 2 ? ~0u : log2 == 1 ? 0xffffu : 0xffu;
    return (c & ~(mask << (8 * at))) | (x & mask) << (8 * at);
}

static uint32_t one_lane(const struct video *v, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    bool second_signed =
        v->operation == VIDEO_MULTIPLY_ADD ? v->signed_a || v->signed_b : v->signed_d;
    wide third = part_of(c, 0, 2, second_signed);
    uint32_t d = c;
    for (uint32_t i = 0; i < v->parts; i++) {
        if (!(v->mask >> i & 1))
            continue;
        wide x = result_of(v, part_of(bytes, v->at_a >> (3 * i) & 7, v->log2_a, v->signed_a),
                           part_of(bytes, v->at_b >> (3 * i) & 7, v->log2_b, v->signed_b));
        if (v->operation == VIDEO_MULTIPLY_ADD)
            return multiply_add(v, x, third);
        if (v->saturate)
            x = clamped(x, v->log2_d, v->signed_d);
        if (v->second == VIDEO_PLACE)
            d = placed(d, (uint32_t)x, v->at_d + (i << v->log2_d), v->log2_d);
        else if (v->second == VIDEO_SECOND_ADD)
            d += (uint32_t)x;
        else
            d = (uint32_t)((v->second == VIDEO_SECOND_MIN) == (x < third) ? x : third);
    }
    return d;
}

void exec_video(const struct warp *w, const struct op *op, void *out)
{
    const uint32_t *a = slot_at(w, op->a), *b = slot_at(w, op->b), *c = slot_at(w, op->c);
    uint32_t *d = out;
    struct video v;
    memcpy(&v, &op->imm, sizeof v);
    for (int i = 0; i < LANES; i++)
        d[i] = one_lane(&v, a[i], b[i], c[i]);
}
