/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <string.h>

#include "common/util.h"

#include "server/softgpu/decode/decode.h"

/* Order and scope are ignored: every access here is at least as strong as any of them demands.
 * Only an access that may poll is marked. */
static bool take_order(struct decoder *d)
{
    static const char *const scopes[] = {"cta", "cluster", "gpu", "sys", "weak"};
    static const char *const orders[] = {"volatile", "relaxed", "acquire", "release",
                                         "acq_rel",  "sc",      "mmio"};
    bool strong = false;
    for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++)
        decode_take(d, scopes[i]);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        strong |= decode_take(d, orders[i]);
    return strong;
}

/* A program can't see any effect of a cache hint. */
static void take_hints(struct decoder *d)
{
    static const char *const hints[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified"};
    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
        decode_take(d, hints[i]);
    for (uint32_t i = 0; i < d->ins->modifier_count && i < 64; i++) {
        const char *m = d->ins->modifiers[i];
        if (strncmp(m, "L1::", 4) == 0 || strncmp(m, "L2::", 4) == 0)
            d->taken |= UINT64_C(1) << i;
    }
}

static enum ptx_space take_space(struct decoder *d)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {"global", PTX_SPACE_GLOBAL},      {"shared", PTX_SPACE_SHARED},
        {"local", PTX_SPACE_LOCAL},        {"const", PTX_SPACE_CONST},
        {"param", PTX_SPACE_PARAM},        {"shared::cta", PTX_SPACE_SHARED},
        {"param::entry", PTX_SPACE_PARAM}, {"param::func", PTX_SPACE_PARAM},
    };
    enum ptx_space space = PTX_SPACE_NONE;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        space = decode_take(d, spaces[i].name) ? spaces[i].space : space;
    return space;
}

/* The offset of a kernel's own parameter is known when the code is decoded. */
static bool kernel_param(const struct decoder *d, const struct ptx_operand *address)
{
    const struct ptx_operand *base = address->count == 1 ? &address->items[0] : NULL;
    if (!d->function->entry || !base || base->kind != PTX_OPERAND_VARIABLE)
        return false;
    const struct ptx_variable *v = base->variable;
    return v->index < d->function->param_count && d->function->params[v->index] == v;
}

static uint32_t extend_code(uint32_t width, enum ptx_type type)
{
    return width | (type_is_signed(type) ? ACCESS_SIGNED : 0);
}

static void load_kernel_param(struct decoder *d, const struct ptx_operand *address,
                              const struct ptx_operand *to, uint32_t count, enum ptx_type type)
{
    const struct ptx_operand *base = &address->items[0];
    const struct ptx_variable *v = base->variable;
    uint64_t offset = (uint64_t)base->addend, bytes = ptx_type_bytes(type);
    if (offset > v->bytes || v->bytes - offset < bytes * count)
        decode_fail(d, "ld.param beyond the end of '%.60s'", v->name);
    offset += ptx_param_offset(d->function, v->index);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t width = decode_type_width(type);
        uint32_t slot = decode_target(d, &to[i], &width);
        if (width < decode_type_width(type))
            decode_fail(d, "'%.60s' is too narrow for %s", to[i].name, ptx_type_name(type));
        struct op *op = decode_special(d, exec_param, width, slot, slot, slot, slot);
        op->imm = offset + i * bytes;
        op->aux = (uint32_t)bytes << 8 | extend_code(width, type);
    }
}

static uint32_t access_space(const struct decoder *d, enum ptx_space space,
                             const struct ptx_operand *address)
{
    if (space != PTX_SPACE_PARAM)
        return space;
    (void)address;
    return d->function->entry && !(address->count && address->items[0].kind == PTX_OPERAND_VARIABLE)
               ? PTX_SPACE_PARAM
               : PTX_SPACE_LOCAL;
}

static const struct ptx_operand *vector_elements(struct decoder *d, const struct ptx_operand *op,
                                                 uint32_t *count)
{
    *count = decode_take(d, "v2") ? 2 : decode_take(d, "v4") ? 4 : 1;
    if (*count == 1)
        return op;
    if (op->kind != PTX_OPERAND_VECTOR || op->count != *count) {
        decode_fail(d, "'%.60s' needs %u registers in braces", d->ins->opcode, *count);
        *count = 0;
    }
    return op->items;
}

static void decode_load(struct decoder *d)
{
    bool strong = take_order(d);
    enum ptx_space space = take_space(d);
    uint32_t count, slots[4] = {0};
    uint64_t addend;
    take_hints(d);
    decode_count(d, 2, 3); /* a third is a cache policy */
    const struct ptx_operand *to = vector_elements(d, decode_operand(d, 0), &count);
    const struct ptx_operand *address = decode_operand(d, 1);
    enum ptx_type type = decode_need_type(d);
    uint32_t bytes = ptx_type_bytes(type), width = 0;
    if (bytes == 0 || bytes > 8) {
        decode_fail(d, "ld of type %s is not supported", ptx_type_name(type));
        return;
    }
    if (space == PTX_SPACE_PARAM && kernel_param(d, address)) {
        load_kernel_param(d, address, to, count, type);
        return;
    }
    uint32_t a = decode_address(d, address, space, &addend);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t w = decode_type_width(type);
        slots[i] = decode_target(d, &to[i], &w);
        if (w < decode_type_width(type) ||
            (to[i].kind == PTX_OPERAND_REGISTER && to[i].variable->type == PTX_PRED))
            decode_fail(d, "'%.60s' is too narrow for %s", to[i].name, ptx_type_name(type));
        width = i == 0 ? w : max(width, w);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (to[i].kind == PTX_OPERAND_SINK)
            slots[i] = decode_temporary(d, width);
        else if (to[i].kind == PTX_OPERAND_REGISTER &&
                 decode_type_width(to[i].variable->type) != width)
            decode_fail(d, "the registers of '%.60s' differ in width", d->ins->opcode);
    }
    struct op *op = decode_action(d, exec_load, slots[0], a, slots[1], slots[2]);
    op->d = slots[3];
    op->imm = addend;
    op->e = strong;
    op->aux =
        access_space(d, space, address) | bytes << 8 | count << 16 | extend_code(width, type) << 24;
}

static void decode_store(struct decoder *d)
{
    bool strong = take_order(d);
    enum ptx_space space = take_space(d);
    uint32_t count, slots[4] = {0};
    uint64_t addend;
    take_hints(d);
    decode_count(d, 2, 3);
    const struct ptx_operand *from = vector_elements(d, decode_operand(d, 1), &count);
    const struct ptx_operand *address = decode_operand(d, 0);
    enum ptx_type type = decode_need_type(d);
    uint32_t bytes = ptx_type_bytes(type);
    if (bytes == 0 || bytes > 8 || space == PTX_SPACE_CONST ||
        (space == PTX_SPACE_PARAM && kernel_param(d, address))) {
        decode_fail(d, "st to this space or of type %s is not supported", ptx_type_name(type));
        return;
    }
    uint32_t a = decode_address(d, address, space, &addend);
    for (uint32_t i = 0; i < count; i++)
        slots[i] = decode_loose(d, &from[i], type);
    struct op *op = decode_action(d, exec_store, 0, a, slots[0], slots[1]);
    op->d = slots[2];
    op->e = slots[3];
    op->imm = addend;
    (void)strong;
    op->aux = access_space(d, space, address) | bytes << 8 | count << 16;
}

static bool atomic_op(struct decoder *d, uint32_t *id)
{
    static const char *const names[] = {"add", "min",  "max", "and", "or",
                                        "xor", "exch", "cas", "inc", "dec"};
    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (decode_take(d, names[i])) {
            *id = i;
            return true;
        }
    }
    return false;
}

static bool atomic_type(uint32_t op, enum ptx_type type)
{
    bool f = type == PTX_F32 || type == PTX_F64;
    bool half = type == PTX_F16 || type == PTX_F16X2 || type == PTX_BF16 || type == PTX_BF16X2;
    uint32_t bytes = ptx_type_bytes(type);
    if (f || half)
        return op == ATOMIC_ADD;
    if (type == PTX_PRED || (bytes != 4 && bytes != 8))
        return bytes == 2 && op == ATOMIC_CAS;
    return (op != ATOMIC_INC && op != ATOMIC_DEC) || bytes == 4;
}

static bool type_is_float_like(enum ptx_type type)
{
    return type_is_float(type) || type == PTX_F16X2 || type == PTX_BF16X2;
}

/* One atomic operation for each element, since only elements are atomic (PTX ISA, atom). The old
 * values go through temporaries: a result may be a source of the next element. */
static void atomic_vector(struct decoder *d, bool red, uint32_t count, uint32_t address,
                          uint32_t aux, uint64_t addend)
{
    enum ptx_type type = (enum ptx_type)(aux >> 16);
    const struct ptx_operand *from = decode_operand(d, red ? 1 : 2);
    const struct ptx_operand *to = red ? from : decode_operand(d, 0);
    uint32_t old[8], width = decode_type_width(type), at[8];
    if (from->kind != PTX_OPERAND_VECTOR || from->count != count ||
        to->kind != PTX_OPERAND_VECTOR || to->count != count) {
        decode_fail(d, "'%.60s' needs %u registers in braces", d->ins->opcode, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t b = decode_source(d, &from->items[i], type);
        old[i] = red ? SLOT_NONE : decode_temporary(d, width);
        struct op *op = decode_action(d, exec_atomic, old[i], address, b, b);
        op->imm = addend + (uint64_t)i * ptx_type_bytes(type);
        op->aux = aux;
    }
    for (uint32_t i = 0; i < count && !red; i++) {
        uint32_t have = width;
        at[i] = decode_target(d, &to->items[i], &have);
        if (have != width)
            decode_fail(d, "'%.60s' is no register of type %s", to->items[i].name,
                        ptx_type_name(type));
        decode_move(d, width, at[i], old[i]);
    }
}

static void decode_atomic(struct decoder *d)
{
    bool red = decode_opcode_is(d, "red");
    uint32_t id = 0, first = red ? 0 : 1;
    uint64_t addend;
    take_order(d);
    enum ptx_space space = take_space(d);
    bool known = atomic_op(d, &id);
    decode_take(d, "noftz");
    take_hints(d);
    enum ptx_type type = decode_need_type(d);
    if (!known || !atomic_type(id, type) ||
        (space != PTX_SPACE_NONE && space != PTX_SPACE_GLOBAL && space != PTX_SPACE_SHARED)) {
        decode_fail(d, "unknown instruction '%.60s' for type %s", d->ins->opcode,
                    ptx_type_name(type));
        return;
    }
    uint32_t sources = id == ATOMIC_CAS ? 2 : 1;
    decode_count(d, first + 1 + sources, first + 2 + sources);
    uint32_t count = decode_take(d, "v2") ? 2 : decode_take(d, "v4") ? 4 : 1;
    count = decode_take(d, "v8") ? 8 : count;
    uint32_t a = decode_address(d, decode_operand(d, first), space, &addend);
    if (count > 1) {
        if (sources > 1 || !type_is_float_like(type) || type == PTX_F64)
            decode_fail(d, "vectors of '%.60s' are sums of floats of at most 32 bits",
                        d->ins->opcode);
        /* PTX ISA, atom: .v8 is for halves alone, and vectors are in global memory. */
        if (count * ptx_type_bytes(type) > 16)
            decode_fail(d, "a vector of '%.60s' has 128 bits at most", d->ins->opcode);
        if (space == PTX_SPACE_SHARED)
            decode_fail(d, "vectors of '%.60s' are for global memory alone", d->ins->opcode);
        atomic_vector(d, red, count, a, space | id << 8 | (uint32_t)type << 16, addend);
        return;
    }
    uint32_t b = decode_in(d, first + 1, type);
    uint32_t c = sources == 2 ? decode_in(d, first + 2, type) : b;
    struct op *op =
        decode_action(d, exec_atomic, red ? SLOT_NONE : decode_out(d, 0, type), a, b, c);
    op->imm = addend;
    op->aux = space | id << 8 | (uint32_t)type << 16;
}

/* cp.async is carried out at once, so the instructions that wait for it have nothing to do. */
static void decode_copy_async(struct decoder *d)
{
    decode_take(d, "async");
    if (decode_take(d, "commit_group") || decode_take(d, "wait_all") ||
        decode_take(d, "wait_group")) {
        decode_action(d, exec_nop, 0, 0, 0, 0);
        return;
    }
    decode_take(d, "ca");
    decode_take(d, "cg");
    bool shared = decode_take(d, "shared"), policy = decode_take(d, "L2::cache_hint");
    shared |= decode_take(d, "shared::cta");
    take_hints(d);
    decode_count(d, policy ? 4 : 3, policy ? 5 : 4);
    if (!shared || !decode_take(d, "global"))
        decode_fail(d, "unknown instruction 'cp.async' for these spaces");
    uint64_t to_add, from_add;
    uint32_t to = decode_address(d, decode_operand(d, 0), PTX_SPACE_SHARED, &to_add);
    uint32_t from = decode_address(d, decode_operand(d, 1), PTX_SPACE_GLOBAL, &from_add);
    const struct ptx_operand *size = decode_operand(d, 2);
    if (size->kind != PTX_OPERAND_INTEGER ||
        (size->value != 4 && size->value != 8 && size->value != 16))
        decode_fail(d, "cp.async copies 4, 8 or 16 bytes");
    uint32_t have = decode_constant(d, size->value, 4);
    if (d->ins->operand_count > (policy ? 4u : 3u)) {
        const struct ptx_operand *n = decode_operand(d, 3);
        if (n->kind == PTX_OPERAND_REGISTER && n->variable->type == PTX_PRED)
            decode_fail(d, "cp.async with ignore-src is not supported");
        else
            have = decode_source(d, n, PTX_U32);
    }
    /* Each side's addend is added before, because an action has room for only one. */
    uint32_t wide_to = decode_temporary(d, 8), add = decode_constant(d, to_add, 8);
    decode_value(d, VALUE_add_64, 8, wide_to, to, add, add);
    struct op *op = decode_action(d, exec_copy_async, 0, wide_to, from, have);
    op->imm = from_add;
    op->aux = (uint32_t)size->value;
}

static void decode_prefetch(struct decoder *d)
{
    take_space(d);
    decode_take(d, "L1");
    decode_take(d, "L2");
    take_hints(d);
    uint64_t addend;
    decode_address(d, decode_operand(d, 0), PTX_SPACE_NONE, &addend);
    decode_action(d, exec_nop, 0, 0, 0, 0);
}

/* A cache policy is for the cache alone; no program can read one. */
static void decode_policy(struct decoder *d)
{
    static const char *const kinds[] = {"fractional", "range", "cvt", "global", "L2"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        decode_take(d, kinds[i]);
    take_hints(d);
    decode_take(d, "b64");
    decode_count(d, 1, 4);
    decode_move(d, 8, decode_out(d, 0, PTX_B64), decode_constant(d, 0, 8));
}

static void decode_fence(struct decoder *d)
{
    static const char *const kinds[] = {"gl", "proxy", "async", "alias", "mbarrier_init"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        decode_take(d, kinds[i]);
    take_space(d);
    decode_take(d, "shared::cluster");
    take_order(d);
    decode_count(d, 0, 0);
    decode_action(d, exec_poll, 0, 0, 0, 0);
}

bool decode_memory(struct decoder *d)
{
    if (decode_opcode_is(d, "ld") || decode_opcode_is(d, "ldu"))
        decode_load(d);
    else if (decode_opcode_is(d, "st"))
        decode_store(d);
    else if (decode_opcode_is(d, "atom") || decode_opcode_is(d, "red"))
        decode_atomic(d);
    else if (decode_opcode_is(d, "membar") || decode_opcode_is(d, "fence"))
        decode_fence(d);
    else if (decode_opcode_is(d, "prefetch") || decode_opcode_is(d, "prefetchu") ||
             decode_opcode_is(d, "applypriority") || decode_opcode_is(d, "discard"))
        decode_prefetch(d);
    else if (decode_opcode_is(d, "createpolicy"))
        decode_policy(d);
    else if (decode_opcode_is(d, "cp") && d->ins->modifier_count > 1 &&
             strcmp(d->ins->modifiers[0], "async") == 0 &&
             strcmp(d->ins->modifiers[1], "bulk") != 0)
        decode_copy_async(d);
    else
        return false;
    return true;
}
