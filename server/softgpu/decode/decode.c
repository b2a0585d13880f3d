/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/decode/decode.h"

#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/util.h"

/* The most bytes of registers of one warp in one call. Code that needs more is hostile, not
 * large. */
enum { MAX_FRAME_BYTES = 8 << 20, MAX_CONSTANT_BYTES = 32 << 20, MAX_OPS = 1 << 24 };

void decode_fail(struct decoder *d, const char *format, ...)
{
    if (d->failed)
        return;
    d->failed = true;
    d->why->number = CUDA_ERR_INVALID_PTX;
    uint32_t line = d->ins ? d->ins->line : d->function->line;
    int n = snprintf(d->why->text, sizeof(d->why->text), "line %u: ", line);
    va_list ap;
    va_start(ap, format);
    vsnprintf(d->why->text + n, sizeof(d->why->text) - (size_t)n, format, ap);
    va_end(ap);
}

void decode_fail_memory(struct decoder *d)
{
    decode_fail(d, "out of memory while decoding");
    d->why->number = CUDA_ERR_OUT_OF_MEMORY;
}

/* Makes room for one more. Returns NULL, and keeps the old array, without memory. */
void *decode_grow(struct decoder *d, void *items, uint32_t count, uint32_t *capacity, size_t bytes)
{
    if (array_reserve_u32(&items, capacity, (size_t)count + 1, bytes) == 0)
        return items;
    decode_fail_memory(d);
    return NULL;
}

/* ---- modifiers ---- */

bool decode_opcode_is(const struct decoder *d, const char *opcode)
{
    return strcmp(d->ins->opcode, opcode) == 0;
}

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

uint32_t decode_type_width(enum ptx_type type)
{
    uint32_t bytes = ptx_type_bytes(type);
    return bytes == 1 ? 2 : bytes;
}

/* ---- slots ---- */

uint32_t decode_row(struct decoder *d, uint32_t bytes)
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
        return decode_row(d, width * LANES);
    if (d->predicate_used % 16 == 0)
        d->predicate_line = decode_row(d, 64);
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
        decode_fail_memory(d);
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
        d->code->register_words += (decode_type_width(v->type) + 3) / 4;
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
    uint32_t width = decode_type_width(v->type), class = width_class(width);
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

/* A row is not free before the instruction is complete: its steps may write before the last
 * read. */
void decode_free_dying(struct decoder *d)
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
            decode_fail_memory(d);
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
    /* Constants share the table with registers, whose keys have a low half below 2^24. The odd
     * factor spreads neighbouring values well (MurmurHash3's finaliser). */
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

static struct op *emit_op(struct decoder *d, uint32_t dst, uint32_t a, uint32_t b, uint32_t c)
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
    struct op *op = emit_op(d, dst, a, b, c);
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
    struct op *op = emit_op(d, dst, a, b, c);
    op->action = action;
    op->kind = OP_ACTION;
    return op;
}

struct op *decode_branch(struct decoder *d, uint32_t instruction)
{
    struct op *op = emit_op(d, 0, 0, 0, 0);
    op->kind = OP_BRANCH;
    op->target = instruction;
    return op;
}

void decode_move(struct decoder *d, uint32_t width, uint32_t dst, uint32_t src)
{
    static const enum value_id moves[4] = {VALUE_mov_p, VALUE_mov_16, VALUE_mov_32, VALUE_mov_64};
    if (dst != src)
        decode_value(d, moves[width_class(width)], width, dst, src, src, src);
}
