/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/ptx_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "common/util.h"

/* No device has more memory than this. The bound keeps sums of sizes far from overflow. */
#define MAX_VARIABLE_BYTES (UINT64_C(1) << 40)
#define MAX_REGISTERS      (1u << 24)

/* The reader recurses into nested initialisers: a hostile text must not use up the stack. */
enum { MAX_NESTING = 64 };

static const struct {
    const char *name;
    enum ptx_type type;
    uint8_t bytes;
} types[] = {
    {"b8", PTX_B8, 1},           {"b16", PTX_B16, 2},       {"b32", PTX_B32, 4},
    {"b64", PTX_B64, 8},         {"b128", PTX_B128, 16},    {"u8", PTX_U8, 1},
    {"u16", PTX_U16, 2},         {"u32", PTX_U32, 4},       {"u64", PTX_U64, 8},
    {"s8", PTX_S8, 1},           {"s16", PTX_S16, 2},       {"s32", PTX_S32, 4},
    {"s64", PTX_S64, 8},         {"f16", PTX_F16, 2},       {"f16x2", PTX_F16X2, 4},
    {"bf16", PTX_BF16, 2},       {"bf16x2", PTX_BF16X2, 4}, {"u16x2", PTX_U16X2, 4},
    {"s16x2", PTX_S16X2, 4},     {"f32", PTX_F32, 4},       {"f64", PTX_F64, 8},
    {"pred", PTX_PRED, 0},       {"texref", PTX_TEXREF, 8}, {"samplerref", PTX_SAMPLERREF, 8},
    {"surfref", PTX_SURFREF, 8},
};

uint32_t ptx_type_bytes(enum ptx_type type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type)
            return types[i].bytes;
    }
    return 0;
}

enum ptx_type ptx_type_named(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    }
    return PTX_NONE;
}

const char *ptx_type_name(enum ptx_type type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (types[i].type == type)
            return types[i].name;
    }
    return "no type";
}

enum ptx_space ptx_space_at(const struct ptx_reader *r)
{
    static const struct {
        const char *name;
        enum ptx_space space;
    } spaces[] = {
        {".reg", PTX_SPACE_REG},       {".global", PTX_SPACE_GLOBAL}, {".const", PTX_SPACE_CONST},
        {".shared", PTX_SPACE_SHARED}, {".local", PTX_SPACE_LOCAL},   {".param", PTX_SPACE_PARAM},
    };
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (ptx_at_dot(r, spaces[i].name))
            return spaces[i].space;
    }
    return PTX_SPACE_NONE;
}

uint64_t ptx_read_integer(struct ptx_reader *r, uint64_t maximum)
{
    uint64_t value = r->token.value;
    if (r->token.kind != PTX_TOKEN_INTEGER)
        ptx_unexpected(r, PTX_WANTED_NUMBER);
    else if (value > maximum)
        ptx_fail(r, r->token.line, MESSAGE(ptx_number_max), (unsigned long long)value,
                 (unsigned long long)maximum);
    ptx_advance(r);
    return r->failed ? 0 : value;
}

static void read_align(struct ptx_reader *r, uint32_t *align)
{
    uint64_t n = ptx_read_integer(r, 1u << 20);
    if (!r->failed && (n == 0 || n & (n - 1)))
        ptx_fail(r, r->token.line, MESSAGE(ptx_alignment), (unsigned long long)n);
    if (align)
        *align = (uint32_t)n;
}

/* Skips (...) after .attribute; remembers .managed. */
static void read_attribute(struct ptx_reader *r, struct ptx_variable *v)
{
    ptx_expect(r, '(');
    while (!r->failed && !ptx_at(r, ')') && r->token.kind != PTX_TOKEN_END) {
        if (ptx_at_dot(r, ".managed"))
            v->managed = true;
        ptx_advance(r);
    }
    ptx_expect(r, ')');
}

/* .align, .v4, .u32, .ptr .global .align 4, .attribute(...) in any order. */
static void read_properties(struct ptx_reader *r, struct ptx_variable *v)
{
    bool pointer = false;
    v->vector = 1;
    while (r->token.kind == PTX_TOKEN_DOT) {
        if (ptx_accept_dot(r, ".align")) {
            read_align(r, pointer ? NULL : &v->align);
        } else if (ptx_accept_dot(r, ".v2")) {
            v->vector = 2;
        } else if (ptx_accept_dot(r, ".v4")) {
            v->vector = 4;
        } else if (ptx_accept_dot(r, ".attribute")) {
            read_attribute(r, v);
        } else if (ptx_accept_dot(r, ".ptr")) {
            pointer = true;
        } else if (pointer && ptx_space_at(r) != PTX_SPACE_NONE) {
            ptx_advance(r);
        } else {
            const char *name = ptx_slice(r, r->token.start + 1, r->token.end);
            enum ptx_type type = name ? ptx_type_named(name) : PTX_NONE;
            if (type == PTX_NONE || v->type != PTX_NONE)
                ptx_unexpected(r, PTX_WANTED_TYPE);
            v->type = type;
            ptx_advance(r);
        }
    }
    if (v->type == PTX_NONE)
        ptx_unexpected(r, PTX_WANTED_TYPE);
    if (v->type == PTX_PRED && v->space != PTX_SPACE_REG)
        ptx_fail(r, r->token.line, MESSAGE(ptx_predicate_space));
}

/* Constant expression of an initialiser: numbers with a sign. */
static uint64_t read_literal(struct ptx_reader *r, enum ptx_type type)
{
    bool minus = false;
    while (ptx_at(r, '-') || ptx_at(r, '+')) {
        minus ^= ptx_at(r, '-');
        ptx_advance(r);
    }
    uint64_t value = r->token.value;
    enum ptx_token_kind kind = r->token.kind;
    if (kind != PTX_TOKEN_INTEGER && kind != PTX_TOKEN_FLOAT32 && kind != PTX_TOKEN_FLOAT64) {
        ptx_unexpected(r, PTX_WANTED_NUMBER_OR_NAME);
        return 0;
    }
    ptx_advance(r);
    double wide = 0;
    float narrow = 0;
    uint32_t bits;
    if (kind == PTX_TOKEN_INTEGER) {
        if (type != PTX_F32 && type != PTX_F64)
            return minus ? -value : value;
        wide = (double)value;
        narrow = (float)value;
    } else if (kind == PTX_TOKEN_FLOAT32) {
        bits = (uint32_t)value;
        memcpy(&narrow, &bits, sizeof(narrow));
        wide = (double)narrow;
        if (type == PTX_F32)
            return minus ? bits ^ 0x80000000u : bits;
    } else {
        memcpy(&wide, &value, sizeof(wide));
        narrow = (float)wide;
    }
    if (type == PTX_F32) {
        memcpy(&bits, &narrow, sizeof(bits));
        return minus ? bits ^ 0x80000000u : bits;
    }
    memcpy(&value, &wide, sizeof(value));
    return minus ? value ^ (UINT64_C(1) << 63) : value;
}

static void read_symbol(struct ptx_reader *r, struct ptx_initialiser *item)
{
    const char *text = r->lexer.text + r->token.start;
    uint32_t length = r->token.end - r->token.start;
    if (r->token.kind != PTX_TOKEN_WORD) {
        ptx_unexpected(r, PTX_WANTED_NAME);
        return;
    }
    if (length == 7 && memcmp(text, "generic", 7) == 0) {
        item->generic = true;
        ptx_advance(r);
        if (ptx_expect(r, '(')) {
            if (r->token.kind == PTX_TOKEN_WORD && ++r->nesting < MAX_NESTING)
                read_symbol(r, item);
            else
                ptx_unexpected(r, PTX_WANTED_NAME);
            r->nesting -= r->nesting > 0;
            ptx_expect(r, ')');
        }
    } else {
        struct ptx_name *n = ptx_lookup(r, r->scope, text, length,
                                        1u << PTX_NAME_VARIABLE | 1u << PTX_NAME_FUNCTION);
        if (!n) {
            ptx_fail(r, r->token.line, MESSAGE(ptx_undeclared), (int)min(length, 100u), text);
            return;
        }
        item->variable = n->kind == PTX_NAME_VARIABLE ? n->object : NULL;
        item->function = n->kind == PTX_NAME_FUNCTION ? n->object : NULL;
        item->symbol_start = r->token.start;
        item->symbol_end = r->token.end;
        ptx_advance(r);
    }
    while (!r->failed && (ptx_at(r, '+') || ptx_at(r, '-')))
        item->value += read_literal(r, PTX_B64);
}

static void read_element(struct ptx_reader *r, struct ptx_variable *v, struct ptx_list *items,
                         uint64_t *offset)
{
    struct ptx_initialiser item = {.offset = *offset, .bytes = ptx_type_bytes(v->type)};
    if (r->token.kind == PTX_TOKEN_WORD) {
        read_symbol(r, &item);
    } else {
        uint64_t value = read_literal(r, v->type);
        if (ptx_accept(r, '(')) {
            item.mask = value;
            read_symbol(r, &item);
            ptx_expect(r, ')');
        } else {
            item.value = value;
        }
    }
    *offset += item.bytes;
    struct ptx_initialiser *kept = r->failed ? NULL : ptx_list_add(r, items, sizeof(item));
    if (kept)
        *kept = item;
}

static void read_braces(struct ptx_reader *r, struct ptx_variable *v, struct ptx_list *items,
                        uint64_t *offset)
{
    ptx_expect(r, '{');
    if (++r->nesting > MAX_NESTING)
        ptx_fail(r, r->token.line, MESSAGE(ptx_initialiser_nesting), MAX_NESTING);
    while (!r->failed && !ptx_at(r, '}')) {
        if (ptx_at(r, '{'))
            read_braces(r, v, items, offset);
        else
            read_element(r, v, items, offset);
        if (!ptx_accept(r, ','))
            break;
    }
    r->nesting -= r->nesting > 0;
    ptx_expect(r, '}');
}

static void read_initialiser(struct ptx_reader *r, struct ptx_variable *v, bool open)
{
    struct ptx_list items = {0};
    uint64_t offset = 0;
    if (ptx_at(r, '{'))
        read_braces(r, v, &items, &offset);
    else
        read_element(r, v, &items, &offset);
    uint32_t count = items.count, bytes = ptx_type_bytes(v->type);
    v->initialisers = ptx_list_keep(r, &items, sizeof(struct ptx_initialiser));
    v->initialiser_count = count;
    if (open && bytes)
        v->elements = v->vector ? (offset / bytes + v->vector - 1) / v->vector : 0;
    if (offset > v->elements * v->vector * bytes)
        ptx_fail(r, v->line, MESSAGE(ptx_initial_values), v->name);
}

/* Returns true if a dimension was left open: name[]. */
static bool read_dimensions(struct ptx_reader *r, struct ptx_variable *v)
{
    bool open = false;
    v->elements = 1;
    while (ptx_accept(r, '[')) {
        if (ptx_accept(r, ']')) {
            open = true;
            v->elements = 0;
            continue;
        }
        uint64_t n = ptx_read_integer(r, MAX_VARIABLE_BYTES);
        if (__builtin_mul_overflow(v->elements, n, &v->elements) ||
            v->elements > MAX_VARIABLE_BYTES)
            ptx_fail(r, r->token.line, MESSAGE(ptx_variable_too_large), v->name ? v->name : "");
        ptx_expect(r, ']');
    }
    return open;
}

static struct ptx_variable *read_declarator(struct ptx_reader *r, const struct ptx_variable *shape)
{
    struct ptx_variable *v = ptx_new(r, sizeof(*v));
    if (!v)
        return NULL;
    *v = *shape;
    v->line = r->token.line;
    v->name_start = r->token.start;
    v->name_end = r->token.end;
    if (r->token.kind != PTX_TOKEN_WORD) {
        ptx_unexpected(r, PTX_WANTED_NAME);
        return NULL;
    }
    v->name = ptx_slice(r, r->token.start, r->token.end);
    v->in_function = r->function != NULL;
    v->owner = r->function;
    v->id = r->module->variable_ids++;
    ptx_advance(r);
    if (v->space == PTX_SPACE_REG && ptx_accept(r, '<')) {
        v->family = (uint32_t)ptx_read_integer(r, MAX_REGISTERS);
        ptx_expect(r, '>');
    }
    bool open = read_dimensions(r, v);
    if (!v->align)
        v->align = ptx_type_bytes(v->type) * v->vector;
    if (!v->align)
        v->align = 1;
    if (ptx_accept(r, '='))
        read_initialiser(r, v, open);
    v->bytes = v->elements * v->vector * ptx_type_bytes(v->type);
    if (v->bytes > MAX_VARIABLE_BYTES)
        ptx_fail(r, v->line, MESSAGE(ptx_variable_too_large), v->name ? v->name : "");
    return r->failed ? NULL : v;
}

/* An extern declaration and its definition are one variable for the code that uses it. Returns
 * the variable that stands for this declaration: v, the older variable that it completes, or
 * NULL. */
static struct ptx_variable *declare_variable(struct ptx_reader *r, struct ptx_variable *v)
{
    struct ptx_name *n = ptx_declare(r, v->name, PTX_NAME_VARIABLE, v, r->scope == 0);
    if (!n || n->object == v)
        return v;
    struct ptx_variable *old = n->object;
    bool extends = old->space == v->space;
    if (extends && old->linkage == PTX_LINK_EXTERN && v->linkage != PTX_LINK_EXTERN) {
        uint32_t id = old->id;
        *old = *v;
        old->id = id;
        old->redeclared = true;
        return old;
    }
    if (extends && v->linkage == PTX_LINK_EXTERN)
        old->redeclared = true;
    else
        ptx_fail(r, v->line, MESSAGE(ptx_declared_twice), v->name);
    return NULL;
}

/* Each variable records the extent of its whole statement: code that moves a variable has to
 * know where the text ends. */
static void end_statement(struct ptx_reader *r, const struct ptx_list *all)
{
    struct ptx_variable **variables = all->items;
    for (uint32_t i = 0; i < all->count; i++) {
        variables[i]->end = r->last_end;
        variables[i]->declarators = all->count;
    }
}

void ptx_read_variables(struct ptx_reader *r, enum ptx_linkage linkage, uint32_t start)
{
    struct ptx_variable shape = {.space = ptx_space_at(r), .linkage = linkage, .start = start};
    struct ptx_list all = {0};
    ptx_advance(r);
    /* The banks of .const[2] and .global[...] are PTX 1.x. */
    read_properties(r, &shape);
    do {
        struct ptx_variable *v = read_declarator(r, &shape);
        if (!v)
            break;
        struct ptx_variable *known = declare_variable(r, v);
        if (known == v && v->space != PTX_SPACE_REG) {
            struct ptx_list *list = r->function ? &r->body_variables : &r->variables;
            const struct ptx_variable **slot = ptx_list_add(r, list, sizeof(*slot));
            if (slot)
                *slot = v;
        }
        struct ptx_variable **slot =
            known ? ptx_list_add(r, &all, sizeof(struct ptx_variable *)) : NULL;
        if (slot)
            *slot = known;
    } while (!r->failed && ptx_accept(r, ','));
    if (!r->failed)
        ptx_expect(r, ';');
    end_statement(r, &all);
    ptx_list_drop(r, &all);
}

void ptx_read_params(struct ptx_reader *r, struct ptx_function *function, bool returns)
{
    struct ptx_list params = {0};
    uint64_t end = 0;
    ptx_expect(r, '(');
    while (!r->failed && !ptx_at(r, ')')) {
        struct ptx_variable shape = {.space = ptx_space_at(r),
                                     .start = r->token.start,
                                     .return_value = returns,
                                     .index = params.count,
                                     .declarators = 1};
        if (shape.space != PTX_SPACE_PARAM && shape.space != PTX_SPACE_REG) {
            ptx_unexpected(r, PTX_WANTED_PARAMETER);
            break;
        }
        ptx_advance(r);
        read_properties(r, &shape);
        struct ptx_variable *v = read_declarator(r, &shape);
        if (!v)
            break;
        v->end = r->last_end;
        v->in_function = true;
        v->owner = function;
        v->offset = (end + v->align - 1) & ~(uint64_t)(v->align - 1);
        end = v->offset + v->bytes;
        if (strcmp(v->name, "_") != 0)
            ptx_declare(r, v->name, PTX_NAME_VARIABLE, v, false);
        const struct ptx_variable **slot = ptx_list_add(r, &params, sizeof(*slot));
        if (slot)
            *slot = v;
        if (!ptx_accept(r, ','))
            break;
    }
    ptx_expect(r, ')');
    uint32_t count = params.count;
    const struct ptx_variable **kept = ptx_list_keep(r, &params, sizeof(*kept));
    if (returns) {
        function->returns = kept;
        function->return_count = count;
    } else {
        function->params = kept;
        function->param_count = count;
        function->param_end = end;
    }
}
