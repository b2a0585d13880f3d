/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/managed/managed_code.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cuda/ptx.h"
#include "common/util.h"

/* The memory begins on a page, so a variable's alignment holds there up to this. */
enum { ALIGN_MAX = 4096 };
#define STAYS UINT64_MAX

struct edit {
    uint32_t start, end; /* what of the text is replaced */
    size_t number;       /* edits of one place stand in their order */
    char *code;
};

/* A text on its way to another one. */
struct rewriting {
    const char *text;
    const struct ptx_module *tree;
    uint64_t *offsets; /* in the memory, by the variable's id; STAYS: it does not move */
    char prefix[32];   /* of our names; the text has no such word */
    struct edit *edits;
    size_t edit_count, edit_room;
    uint32_t registers; /* of ours in the present function */
    bool failed;        /* there is no memory */
};

/* ---- which variables move ---- */

static bool is_managed(const struct ptx_variable *variable)
{
    return variable->managed && variable->space == PTX_SPACE_GLOBAL;
}

static bool holds_address(const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++)
        if (variable->initialisers[i].variable || variable->initialisers[i].function)
            return true;
    return false;
}

static bool holds_managed(const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++)
        if (variable->initialisers[i].variable && is_managed(variable->initialisers[i].variable))
            return true;
    return false;
}

static bool may_move(const struct ptx_variable *variable)
{
    return variable->linkage != PTX_LINK_EXTERN && !variable->redeclared && variable->bytes > 0 &&
           variable->align <= ALIGN_MAX && variable->declarators == 1 && !holds_address(variable);
}

/* nvcc puts managed variables at module scope, and has no constant of their addresses. */
static bool functions_allow(const struct ptx_module *tree)
{
    for (uint32_t f = 0; f < tree->function_count; f++)
        for (uint32_t i = 0; i < tree->functions[f]->variable_count; i++)
            if (is_managed(tree->functions[f]->variables[i]) ||
                holds_managed(tree->functions[f]->variables[i]))
                return false;
    return true;
}

/* Either all managed variables of a text move, or none. */
static bool all_move(const struct ptx_module *tree, uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        const struct ptx_variable *variable = tree->variables[i];
        if (holds_managed(variable) || (is_managed(variable) && !may_move(variable)))
            return false;
        *count += is_managed(variable);
    }
    return *count > 0 && functions_allow(tree);
}

static bool add_variable(struct managed_code *code, const struct ptx_variable *variable)
{
    struct managed_variable *to = &code->variables[code->count];
    uint64_t align = max(variable->align, 1u), at = (code->initial_bytes + align - 1) & -align;
    if (at < code->initial_bytes ||
        __builtin_add_overflow(at, variable->bytes, &code->initial_bytes))
        return false;
    *to = (struct managed_variable){strdup(variable->name), at, variable->bytes};
    code->count += to->name != NULL;
    return to->name != NULL;
}

static void write_initial(struct managed_code *code, const struct ptx_variable *variable,
                          uint64_t offset)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++) {
        const struct ptx_initialiser *from = &variable->initialisers[i];
        if (from->bytes <= sizeof from->value && from->offset + from->bytes <= variable->bytes)
            memcpy(code->initial + offset + from->offset, &from->value, from->bytes);
    }
}

/* False: there is no memory for what the text declares. */
static bool lay_out(struct rewriting *rewriting, struct managed_code *code, uint32_t count)
{
    const struct ptx_module *tree = rewriting->tree;
    rewriting->offsets = malloc(((size_t)tree->variable_ids + 1) * sizeof *rewriting->offsets);
    code->variables = calloc(count, sizeof *code->variables);
    if (!rewriting->offsets || !code->variables)
        return false;
    for (uint32_t i = 0; i <= tree->variable_ids; i++)
        rewriting->offsets[i] = STAYS;
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        if (!is_managed(tree->variables[i]))
            continue;
        if (!add_variable(code, tree->variables[i]))
            return false;
        rewriting->offsets[tree->variables[i]->id] = code->variables[code->count - 1].offset;
    }
    code->initial = calloc(1, code->initial_bytes);
    for (uint32_t i = 0; code->initial && i < tree->variable_count; i++)
        if (is_managed(tree->variables[i]))
            write_initial(code, tree->variables[i], rewriting->offsets[tree->variables[i]->id]);
    return code->initial != NULL;
}

/* ---- the new text ---- */

/* A beginning of names that the text does not have. It begins like no name of the server's. */
static void choose_names(const char *text, size_t length, char *prefix, size_t size)
{
    unsigned number = 0;
    do
        snprintf(prefix, size, "gpushare_managed%u_", number++);
    while (memmem(text, length, prefix, strlen(prefix)));
}

static void edit(struct rewriting *rewriting, uint32_t start, uint32_t end, char *code)
{
    if (!code ||
        array_reserve(rewriting->edits, rewriting->edit_room, rewriting->edit_count + 1) < 0) {
        free(code);
        rewriting->failed = true;
        return;
    }
    rewriting->edits[rewriting->edit_count] =
        (struct edit){start, end, rewriting->edit_count, code};
    rewriting->edit_count++;
}

__attribute__((format(printf, 1, 2))) static char *compose(const char *format, ...)
{
    va_list arguments;
    char *code;
    va_start(arguments, format);
    int length = vasprintf(&code, format, arguments);
    va_end(arguments);
    return length < 0 ? NULL : code;
}

/* The declaration goes, and the ends of its lines stay. Ours takes the place of the first, which
 * stands before all uses. */
static void remove_declaration(struct rewriting *rewriting, const struct ptx_variable *variable,
                               bool first)
{
    char *code = first ? compose(".global .align 8 .u64 %sbase;", rewriting->prefix) : strdup("");
    size_t length = code ? strlen(code) : 0;
    char *whole = code ? realloc(code, length + (variable->end - variable->start) + 1) : NULL;
    if (!whole) {
        free(code);
        rewriting->failed = true;
        return;
    }
    for (uint32_t at = variable->start; at < variable->end; at++)
        if (rewriting->text[at] == '\n')
            whole[length++] = '\n';
    whole[length] = '\0';
    edit(rewriting, variable->start, variable->end, whole);
}

/* A register of ours, loaded before the instruction, stands for the name; mov takes no addend
 * beside a register, and nothing an index. */
static void use_operand(struct rewriting *rewriting, const struct ptx_instruction *instruction,
                        const struct ptx_operand *operand)
{
    for (uint32_t i = 0; i < operand->count; i++)
        use_operand(rewriting, instruction, &operand->items[i]);
    if (operand->kind != PTX_OPERAND_VARIABLE || !operand->variable ||
        rewriting->offsets[operand->variable->id] == STAYS)
        return;
    const char *prefix = rewriting->prefix;
    unsigned number = rewriting->registers++;
    bool whole = strcmp(instruction->opcode, "mov") == 0 || operand->element;
    bool address = operand->element == PTX_ELEMENT_ADDRESS;
    uint64_t offset =
        rewriting->offsets[operand->variable->id] + (whole ? (uint64_t)operand->addend : 0);
    edit(rewriting, instruction->start, instruction->start,
         compose("ld.global.u64 %%%s%u, [%sbase]; add.s64 %%%s%u, %%%s%u, %lld; ", prefix, number,
                 prefix, prefix, number, prefix, number, (long long)offset));
    edit(rewriting, whole ? operand->start : operand->symbol_start,
         whole ? operand->end : operand->symbol_end,
         compose(address ? "[%%%s%u]" : "%%%s%u", prefix, number));
}

static void use_in_function(struct rewriting *rewriting, const struct ptx_function *function)
{
    rewriting->registers = 0;
    for (uint32_t i = 0; i < function->instruction_count; i++)
        for (uint32_t o = 0; o < function->instructions[i].operand_count; o++)
            use_operand(rewriting, &function->instructions[i],
                        &function->instructions[i].operands[o]);
    if (rewriting->registers)
        edit(rewriting, function->body_start, function->body_start,
             compose(" .reg .b64 %%%s<%u>; ", rewriting->prefix, rewriting->registers));
}

static int by_place(const void *a, const void *b)
{
    const struct edit *one = a, *other = b;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    return one->number < other->number ? -1 : one->number > other->number;
}

static void write_text(struct rewriting *rewriting, size_t length, struct managed_code *code)
{
    FILE *to = open_memstream(&code->text, &code->length);
    uint32_t copied = 0;
    if (!to) {
        rewriting->failed = true;
        return;
    }
    qsort(rewriting->edits, rewriting->edit_count, sizeof *rewriting->edits, by_place);
    for (size_t i = 0; i < rewriting->edit_count; i++) {
        const struct edit *each = &rewriting->edits[i];
        (void)fwrite(rewriting->text + copied, 1, each->start - copied, to);
        (void)fputs(each->code, to);
        copied = each->end;
    }
    (void)fwrite(rewriting->text + copied, 1, length - copied, to);
    rewriting->failed |= ferror(to) != 0;
    rewriting->failed |= fclose(to) != 0;
}

static void make_text(struct rewriting *rewriting, size_t length, struct managed_code *code)
{
    const struct ptx_module *tree = rewriting->tree;
    bool first = true;
    choose_names(rewriting->text, length, rewriting->prefix, sizeof rewriting->prefix);
    snprintf(code->base, sizeof code->base, "%sbase", rewriting->prefix);
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (is_managed(tree->variables[i])) {
            remove_declaration(rewriting, tree->variables[i], first);
            first = false;
        }
    for (uint32_t f = 0; f < tree->function_count; f++)
        if (tree->functions[f]->defined)
            use_in_function(rewriting, tree->functions[f]);
    if (!rewriting->failed)
        write_text(rewriting, length, code);
}

/* ---- the whole ---- */

static int rewrite_tree(const char *text, size_t length, const struct ptx_module *tree,
                        struct managed_code *code)
{
    struct rewriting rewriting = {.text = text, .tree = tree};
    uint32_t count;
    if (!all_move(tree, &count))
        return 0;
    rewriting.failed = !lay_out(&rewriting, code, count);
    if (!rewriting.failed)
        make_text(&rewriting, length, code);
    for (size_t i = 0; i < rewriting.edit_count; i++)
        free(rewriting.edits[i].code);
    free(rewriting.edits);
    free(rewriting.offsets);
    return rewriting.failed ? -ENOMEM : 0;
}

int managed_code_make(const char *text, size_t length, struct managed_code *code)
{
    static const char word[] = ".managed";
    struct ptx_module *tree;
    struct error why;
    *code = (struct managed_code){.text = NULL};
    if (length > PTX_TEXT_BYTES || !memmem(text, length, word, sizeof word - 1) ||
        ptx_read(text, length, &tree, &why))
        return 0;
    int result = rewrite_tree(text, length, tree, code);
    ptx_destroy(tree);
    if (result < 0)
        managed_code_free(code);
    return result;
}

void managed_code_free(struct managed_code *code)
{
    for (uint32_t i = 0; i < code->count; i++)
        free(code->variables[i].name);
    free(code->variables);
    free(code->initial);
    free(code->text);
    *code = (struct managed_code){.text = NULL};
}
