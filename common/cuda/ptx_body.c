/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/ptx_reader.h"

#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "common/array.h"
#include "common/util.h"

/* The reader recurses into nested operands, and keeps a scope for each nested block. These
 * bounds keep a hostile text from using up the stack or the memory; compilers write far less. */
enum { MAX_NESTING = 64, MAX_SCOPES = 256, MAX_OPERANDS = 1 << 16 };

/* A use of a name that may be a label further down. It is resolved when the whole body has been
 * read. */
struct label_use {
    struct ptx_operand *operand; /* or else */
    uint32_t *target;
    const char *name;
    uint32_t scope, line;
};

static bool text_is(const struct ptx_reader *r, const char *word)
{
    size_t n = strlen(word);
    return r->token.kind == PTX_TOKEN_WORD && r->token.end - r->token.start == n &&
           memcmp(r->lexer.text + r->token.start, word, n) == 0;
}

/* Finds the register family of a name such as %r12 (.reg %r<20>): the longest declared prefix
 * that is followed by digits. */
static bool find_family(struct ptx_reader *r, struct ptx_operand *op, const char *name,
                        size_t length)
{
    size_t digits = 0;
    while (digits < length && digits < 8 && name[length - digits - 1] >= '0' &&
           name[length - digits - 1] <= '9')
        digits++;
    uint32_t index = 0, power = 1;
    for (size_t d = 1; d <= digits && d < length; d++, power *= 10) {
        uint32_t digit = (uint32_t)(name[length - d] - '0');
        index += digit * power;
        if (digit == 0 && d > 1)
            continue; /* %r<20> declares %r7, not %r07 */
        struct ptx_name *n = ptx_lookup(r, r->scope, name, length - d, 1u << PTX_NAME_VARIABLE);
        const struct ptx_variable *v = n ? n->object : NULL;
        if (v && v->family && index < v->family) {
            op->kind = PTX_OPERAND_REGISTER;
            op->variable = v;
            op->index = index;
            return true;
        }
    }
    return false;
}

static void resolve_symbol(struct ptx_reader *r, struct ptx_operand *op)
{
    const char *name = op->name;
    size_t length = strlen(name);
    struct ptx_name *n =
        ptx_lookup(r, r->scope, name, length, 1u << PTX_NAME_VARIABLE | 1u << PTX_NAME_FUNCTION);
    if (n && n->kind == PTX_NAME_FUNCTION) {
        op->kind = PTX_OPERAND_FUNCTION;
        op->function = n->object;
        return;
    }
    const struct ptx_variable *v = n ? n->object : NULL;
    if (v && !v->family) {
        op->kind = v->space == PTX_SPACE_REG ? PTX_OPERAND_REGISTER : PTX_OPERAND_VARIABLE;
        op->variable = v;
        return;
    }
    if (find_family(r, op, name, length))
        return;
    if (name[0] == '%' || strcmp(name, "WARP_SZ") == 0) {
        op->kind = PTX_OPERAND_SPECIAL;
        return;
    }
    op->kind = PTX_OPERAND_LABEL;
    struct label_use *use = ptx_list_add(r, &r->label_uses, sizeof(*use));
    if (use)
        *use = (struct label_use){op, NULL, name, r->scope, r->token.line};
}

static void read_word_operand(struct ptx_reader *r, struct ptx_operand *op)
{
    if (text_is(r, "_")) {
        op->kind = PTX_OPERAND_SINK;
        ptx_advance(r);
        return;
    }
    op->symbol_start = r->token.start;
    op->symbol_end = r->token.end;
    op->name = ptx_slice(r, r->token.start, r->token.end);
    if (!op->name)
        return;
    resolve_symbol(r, op);
    ptx_advance(r);
    if (r->token.kind == PTX_TOKEN_DOT) {
        /* %tid.x, %v.x, and the byte selectors .b0 of the video instructions */
        op->selector = r->lexer.text[r->token.start + 1];
        if (r->token.end - r->token.start != 2) {
            op->selector = '?';
            op->part = ptx_slice(r, r->token.start + 1, r->token.end);
        }
        ptx_advance(r);
    }
}

static void read_number_operand(struct ptx_reader *r, struct ptx_operand *op)
{
    bool minus = false, invert = false;
    while (ptx_at(r, '-') || ptx_at(r, '+') || ptx_at(r, '~')) {
        if (ptx_at(r, '~'))
            invert = !invert;
        else
            minus ^= ptx_at(r, '-');
        ptx_advance(r);
    }
    op->value = r->token.value;
    if (r->token.kind == PTX_TOKEN_INTEGER) {
        op->kind = PTX_OPERAND_INTEGER;
        op->value = minus ? -op->value : op->value;
        op->value = invert ? ~op->value : op->value;
    } else if (r->token.kind == PTX_TOKEN_FLOAT32) {
        op->kind = PTX_OPERAND_FLOAT32;
        op->value ^= minus ? 0x80000000u : 0;
    } else if (r->token.kind == PTX_TOKEN_FLOAT64) {
        op->kind = PTX_OPERAND_FLOAT64;
        op->value ^= minus ? UINT64_C(1) << 63 : 0;
    } else {
        ptx_unexpected(r, PTX_WANTED_OPERAND);
    }
    ptx_advance(r);
}

static void read_operand(struct ptx_reader *r, struct ptx_operand *op);

static void read_items(struct ptx_reader *r, struct ptx_operand *op, char close)
{
    struct ptx_operand *items = NULL;
    uint32_t count = 0, capacity = 0, first_use = r->label_uses.count;
    if (++r->nesting > MAX_NESTING)
        ptx_fail(r, r->token.line, MESSAGE(ptx_operand_nesting), MAX_NESTING);
    while (!r->failed && !ptx_at(r, close)) {
        if (count == capacity) {
            /* Room for four at first: most lists are shorter, and no list gives its room back.
             * Label uses point to operands. So when a list moves, the old array stays in the
             * arena, and the uses are changed here. */
            capacity = (uint32_t)array_room(capacity, max(count + 1, 4u));
            struct ptx_operand *more = ptx_new(r, capacity * sizeof(*more));
            if (count > MAX_OPERANDS)
                ptx_fail(r, r->token.line, MESSAGE(ptx_operands_max), MAX_OPERANDS);
            if (!more || r->failed)
                break;
            if (count)
                memcpy(more, items, count * sizeof(*more));
            struct label_use *uses = r->label_uses.items;
            for (uint32_t i = first_use; i < r->label_uses.count; i++) {
                if (uses[i].operand && uses[i].operand >= items && uses[i].operand < items + count)
                    uses[i].operand = more + (uses[i].operand - items);
            }
            items = more;
        }
        read_operand(r, &items[count++]);
        if (!ptx_accept(r, ','))
            break;
    }
    r->nesting -= r->nesting > 0;
    ptx_expect(r, close);
    op->items = items;
    op->count = count;
}

/* + and - after a symbol; `a+-8` is what older compilers write. */
static void read_addend(struct ptx_reader *r, int64_t *addend)
{
    while (!r->failed && (ptx_at(r, '+') || ptx_at(r, '-'))) {
        bool minus = false;
        while (ptx_at(r, '+') || ptx_at(r, '-')) {
            minus ^= ptx_at(r, '-');
            ptx_advance(r);
        }
        uint64_t n = ptx_read_integer(r, UINT64_MAX);
        *addend = (int64_t)((uint64_t)*addend + (minus ? -n : n));
    }
}

/* name[n] (PTX ISA, "Arrays as Operands"). ptxas 13.0 counts in the scalar type, in an array of
 * vectors too, and in bytes where the array has no size. Its index by a register is not read here.
 */
static void read_element(struct ptx_reader *r, struct ptx_operand *op)
{
    int64_t n = 0;
    uint32_t line = r->token.line;
    ptx_expect(r, '[');
    if (!ptx_at(r, '+') && !ptx_at(r, '-'))
        n = (int64_t)ptx_read_integer(r, UINT64_MAX);
    read_addend(r, &n);
    ptx_expect(r, ']');
    if (r->failed)
        return;
    if (op->kind != PTX_OPERAND_VARIABLE) {
        ptx_fail(r, line, MESSAGE(ptx_not_an_array), op->name);
        return;
    }
    uint64_t bytes = op->variable->elements ? ptx_type_bytes(op->variable->type) : 1;
    op->addend = (int64_t)((uint64_t)n * bytes);
    op->element = PTX_ELEMENT_VALUE;
}

/* These take a[n] in the place of an address in brackets; ptxas refuses it of all others. */
static bool takes_elements(const char *opcode)
{
    return !strcmp(opcode, "ld") || !strcmp(opcode, "st") || !strcmp(opcode, "ldu");
}

static void element_to_address(struct ptx_reader *r, struct ptx_operand *op)
{
    struct ptx_operand *item = ptx_new(r, sizeof *item);
    if (!item)
        return;
    *item = *op;
    item->element = PTX_ELEMENT_ADDRESS;
    *op = (struct ptx_operand){.kind = PTX_OPERAND_ADDRESS,
                               .start = op->start,
                               .end = op->end,
                               .addend = op->addend,
                               .items = item,
                               .count = 1};
}

static void read_operand(struct ptx_reader *r, struct ptx_operand *op)
{
    op->start = r->token.start;
    if (ptx_accept(r, '!'))
        op->negated = true;
    if (ptx_accept(r, '[')) {
        op->kind = PTX_OPERAND_ADDRESS;
        read_items(r, op, ']');
        if (op->count)
            op->addend = op->items[0].addend;
    } else if (ptx_accept(r, '{')) {
        op->kind = PTX_OPERAND_VECTOR;
        read_items(r, op, '}');
    } else if (ptx_accept(r, '(')) {
        op->kind = PTX_OPERAND_LIST;
        read_items(r, op, ')');
    } else if (r->token.kind == PTX_TOKEN_WORD) {
        read_word_operand(r, op);
        if (ptx_at(r, '['))
            read_element(r, op);
        else
            read_addend(r, &op->addend);
    } else {
        read_number_operand(r, op);
    }
    op->end = r->last_end;
    if (!r->failed && ptx_at(r, '|')) {
        struct ptx_operand *items = ptx_new(r, 2 * sizeof(*items));
        if (!items)
            return;
        items[0] = *op;
        struct label_use *uses = r->label_uses.items;
        if (r->label_uses.count && uses[r->label_uses.count - 1].operand == op)
            uses[r->label_uses.count - 1].operand = &items[0];
        ptx_advance(r);
        if (++r->nesting > MAX_NESTING)
            ptx_fail(r, r->token.line, MESSAGE(ptx_operand_nesting), MAX_NESTING);
        read_operand(r, &items[1]);
        r->nesting -= r->nesting > 0;
        *op = (struct ptx_operand){.kind = PTX_OPERAND_PAIR,
                                   .start = items[0].start,
                                   .end = r->last_end,
                                   .items = items,
                                   .count = 2};
    }
}

static void read_guard(struct ptx_reader *r, struct ptx_instruction *ins)
{
    struct ptx_operand *guard = ptx_new(r, sizeof(*guard));
    if (!guard)
        return;
    guard->start = r->token.start;
    guard->negated = ptx_accept(r, '!');
    if (r->token.kind != PTX_TOKEN_WORD) {
        ptx_unexpected(r, PTX_WANTED_PREDICATE);
        return;
    }
    read_word_operand(r, guard);
    guard->end = r->last_end;
    ins->guard = guard;
}

static void read_instruction(struct ptx_reader *r)
{
    struct ptx_instruction *ins = ptx_list_add(r, &r->instructions, sizeof(*ins));
    if (!ins)
        return;
    struct ptx_instruction read = {.line = r->token.line, .start = r->token.start};
    if (ptx_accept(r, '@'))
        read_guard(r, &read);
    if (r->token.kind != PTX_TOKEN_WORD) {
        ptx_unexpected(r, PTX_WANTED_INSTRUCTION);
        return;
    }
    read.opcode = ptx_slice(r, r->token.start, r->token.end);
    ptx_advance(r);
    struct ptx_list modifiers = {0};
    while (r->token.kind == PTX_TOKEN_DOT) {
        const char **slot = ptx_list_add(r, &modifiers, sizeof(*slot));
        if (slot)
            *slot = ptx_slice(r, r->token.start + 1, r->token.end);
        ptx_advance(r);
    }
    read.modifier_count = modifiers.count;
    read.modifiers = ptx_list_keep(r, &modifiers, sizeof(char *));
    struct ptx_operand all = {0};
    if (!ptx_accept(r, ';'))
        read_items(r, &all, ';');
    for (uint32_t i = 0; !r->failed && i < all.count && takes_elements(read.opcode); i++)
        if (all.items[i].element)
            element_to_address(r, &all.items[i]);
    read.operands = all.items;
    read.operand_count = all.count;
    read.end = r->last_end;
    *ins = read;
}

static void read_label_list(struct ptx_reader *r, struct ptx_label *label)
{
    struct ptx_list targets = {0};
    struct ptx_list names = {0};
    do {
        uint32_t *target = ptx_list_add(r, &targets, sizeof(*target));
        const char **name = ptx_list_add(r, &names, sizeof(*name));
        if (!target || !name || r->token.kind != PTX_TOKEN_WORD) {
            ptx_unexpected(r, PTX_WANTED_LABEL);
            break;
        }
        *name = ptx_slice(r, r->token.start, r->token.end);
        ptx_advance(r);
    } while (!r->failed && ptx_accept(r, ','));
    label->target_count = targets.count;
    label->targets = ptx_list_keep(r, &targets, sizeof(uint32_t));
    for (uint32_t i = 0; !r->failed && i < names.count; i++) {
        struct label_use *use = ptx_list_add(r, &r->label_uses, sizeof(*use));
        if (use)
            *use = (struct label_use){NULL, &label->targets[i], ((const char **)names.items)[i],
                                      r->scope, r->token.line};
    }
    ptx_list_drop(r, &names);
    ptx_expect(r, ';');
}

static void read_prototype(struct ptx_reader *r, struct ptx_label *label)
{
    struct ptx_function *proto = ptx_new(r, sizeof(*proto));
    if (!proto)
        return;
    proto->name = "";
    proto->line = r->token.line;
    ptx_scope_push(r);
    if (ptx_at(r, '('))
        ptx_read_params(r, proto, true);
    if (r->token.kind == PTX_TOKEN_WORD)
        ptx_advance(r);
    else
        ptx_lacks(r, '_');
    if (ptx_at(r, '('))
        ptx_read_params(r, proto, false);
    while (r->token.kind == PTX_TOKEN_DOT || r->token.kind == PTX_TOKEN_INTEGER)
        ptx_advance(r); /* .noreturn, .abi_preserve 8 */
    ptx_expect(r, ';');
    if (!r->failed)
        ptx_scope_pop(r);
    label->prototype = proto;
}

static void read_label(struct ptx_reader *r, const struct ptx_token *name)
{
    struct ptx_label *label = ptx_list_add(r, &r->labels, sizeof(*label));
    const char *text = ptx_slice(r, name->start, name->end);
    if (!label || !text)
        return;
    uint32_t index = r->labels.count - 1;
    struct ptx_label read = {
        .name = text, .line = name->line, .instruction = r->instructions.count};
    struct ptx_name *n = ptx_declare(r, text, PTX_NAME_LABEL, NULL, false);
    if (n)
        n->label = index;
    if (ptx_accept_dot(r, ".branchtargets")) {
        read.kind = PTX_LABEL_TARGETS;
        read_label_list(r, &read);
    } else if (ptx_accept_dot(r, ".calltargets")) {
        read.kind = PTX_LABEL_PROTOTYPE;
        while (r->token.kind != PTX_TOKEN_END && !ptx_at(r, ';'))
            ptx_advance(r);
        ptx_expect(r, ';');
    } else if (ptx_accept_dot(r, ".callprototype")) {
        read.kind = PTX_LABEL_PROTOTYPE;
        read_prototype(r, &read);
    }
    if (r->labels.count > index)
        ((struct ptx_label *)r->labels.items)[index] = read;
}

/* Returns true if it consumed a statement: a directive that has no meaning here. */
static bool skip_directive(struct ptx_reader *r)
{
    if (ptx_accept_dot(r, ".loc")) {
        /* .loc file line column[, function_name label[+n], inlined_at f l c]: no semicolon */
        uint32_t line = r->token.line;
        while (r->token.kind != PTX_TOKEN_END && r->token.line == line)
            ptx_advance(r);
        return true;
    }
    if (ptx_accept_dot(r, ".pragma")) {
        while (r->token.kind == PTX_TOKEN_STRING || ptx_at(r, ','))
            ptx_advance(r);
        ptx_expect(r, ';');
        return true;
    }
    return false;
}

static void read_statement(struct ptx_reader *r)
{
    if (ptx_at(r, '@')) {
        read_instruction(r);
    } else if (r->token.kind == PTX_TOKEN_DOT) {
        if (skip_directive(r))
            return;
        if (ptx_space_at(r) != PTX_SPACE_NONE)
            ptx_read_variables(r, PTX_LINK_NONE, r->token.start);
        else if (ptx_at_dot(r, ".extern")) {
            uint32_t start = r->token.start;
            ptx_advance(r);
            if (ptx_space_at(r) == PTX_SPACE_NONE)
                ptx_unexpected(r, PTX_WANTED_VARIABLE);
            ptx_read_variables(r, PTX_LINK_EXTERN, start);
        } else {
            ptx_unknown_directive(r);
        }
    } else if (r->token.kind == PTX_TOKEN_WORD) {
        struct ptx_token name = r->token;
        struct ptx_lexer after = r->lexer;
        struct ptx_token next = ptx_lexer_next(&after);
        if (next.kind == PTX_TOKEN_PUNCT && r->lexer.text[next.start] == ':') {
            ptx_advance(r);
            ptx_advance(r);
            read_label(r, &name);
        } else {
            read_instruction(r);
        }
    } else {
        ptx_unexpected(r, PTX_WANTED_STATEMENT);
    }
}

static void resolve_labels(struct ptx_reader *r)
{
    const struct label_use *uses = r->label_uses.items;
    for (uint32_t i = 0; !r->failed && i < r->label_uses.count; i++) {
        ptx_step(r);
        struct ptx_name *n =
            ptx_lookup(r, uses[i].scope, uses[i].name, strlen(uses[i].name), 1u << PTX_NAME_LABEL);
        if (!n)
            ptx_fail(r, uses[i].line, MESSAGE(ptx_undeclared), 100, uses[i].name);
        else if (uses[i].operand)
            uses[i].operand->label = n->label;
        else
            *uses[i].target = n->label;
    }
    r->label_uses.count = 0;
}

static void check_targets(struct ptx_reader *r, const struct ptx_function *f)
{
    for (uint32_t i = 0; !r->failed && i < f->label_count; i++) {
        for (uint32_t t = 0; t < f->labels[i].target_count; t++) {
            if (f->labels[f->labels[i].targets[t]].kind != PTX_LABEL_CODE)
                ptx_fail(r, f->labels[i].line, MESSAGE(ptx_not_a_label),
                         f->labels[f->labels[i].targets[t]].name);
        }
    }
}

void ptx_read_body(struct ptx_reader *r, struct ptx_function *f)
{
    ptx_expect(r, '{');
    f->body_start = r->last_end;
    uint32_t depth = 1;
    while (!r->failed && depth) {
        if (ptx_at(r, '{')) {
            if (++depth > MAX_SCOPES)
                ptx_fail(r, r->token.line, MESSAGE(ptx_block_nesting), MAX_SCOPES);
            ptx_scope_push(r);
            ptx_advance(r);
        } else if (ptx_at(r, '}')) {
            f->body_end = r->token.start;
            if (--depth)
                ptx_scope_pop(r);
            ptx_advance(r);
        } else if (r->token.kind == PTX_TOKEN_END) {
            ptx_lacks(r, '}');
        } else {
            read_statement(r);
        }
    }
    resolve_labels(r);
    f->instruction_count = r->instructions.count;
    f->instructions = ptx_list_keep(r, &r->instructions, sizeof(*f->instructions));
    f->label_count = r->labels.count;
    f->labels = ptx_list_keep(r, &r->labels, sizeof(*f->labels));
    f->variable_count = r->body_variables.count;
    f->variables = ptx_list_keep(r, &r->body_variables, sizeof(*f->variables));
    if (!r->failed)
        check_targets(r, f);
}
