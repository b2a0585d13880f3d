/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/rewrite.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/messages.h"
#include "common/cuda/ptx.h"
#include "common/units.h"
#include "common/util.h"
#include "protocol.h"
#include "server/worker/image/constants.h"
#include "server/worker/image/moves.h"
#include "server/worker/image/own_name.h"
#include "server/worker/image/rewrite_private.h"
#include "server/worker/image/text_edit.h"
#include "server/worker/image/symbols.h"
#include "server/worker/image/ptx_scan.h"
#include "server/worker/image/unsaved.h"

static bool lay_out(struct rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->count; i++) {
        struct placed *placed = &rewrite->placed[i];
        if (placed->stays)
            continue;
        uint64_t align = placed->variable->align ? placed->variable->align : 1;
        uint64_t at = (rewrite->bytes + align - 1) & ~(align - 1);
        if (at < rewrite->bytes ||
            __builtin_add_overflow(at, placed->variable->bytes, &rewrite->bytes))
            return false;
        placed->offset = at;
    }
    /* Far from overflow, since a base is added to it. */
    return rewrite->bytes <= UINT64_MAX / 4;
}

static void add_variable(struct rewrite *rewrite, const struct ptx_variable *variable)
{
    if (variable->space != PTX_SPACE_GLOBAL)
        return;
    rewrite->placed[rewrite->count++].variable = variable;
}

static int by_place(const void *a, const void *b)
{
    uint32_t one = ((const struct placed *)a)->variable->name_start;
    uint32_t other = ((const struct placed *)b)->variable->name_start;
    return one < other ? -1 : one > other;
}

static void collect_variables(struct rewrite *rewrite)
{
    const struct ptx_module *tree = rewrite->tree;
    for (uint32_t i = 0; i < tree->variable_count; i++)
        add_variable(rewrite, tree->variables[i]);
    for (uint32_t f = 0; f < tree->function_count; f++)
        for (uint32_t i = 0; i < tree->functions[f]->variable_count; i++)
            add_variable(rewrite, tree->functions[f]->variables[i]);
    /* In the order of the text, so that variables of one statement are neighbours. */
    qsort(rewrite->placed, rewrite->count, sizeof *rewrite->placed, by_place);
    for (uint32_t i = 0; i < rewrite->count; i++)
        rewrite->by_id[rewrite->placed[i].variable->id] = &rewrite->placed[i];
}

static uint32_t no_memory(struct error *why)
{
    return error_set(why, MESSAGE(module_no_memory));
}

static uint32_t refuse_text(const struct rewrite *rewrite, bool exceeded, struct error *why)
{
    char max[UNITS_TEXT];
    if (!exceeded)
        return no_memory(why);
    return error_set(why, MESSAGE(ptx_too_large), rewrite->length,
                     units_format_bytes(rewrite->limits.bytes, max));
}

/* Succeeds without a tree for a text that the reader does not understand. */
static bool read_text(struct rewrite *rewrite, struct error *why)
{
    uint32_t error = ptx_read_within(rewrite->text, rewrite->length, &rewrite->limits,
                                     &rewrite->tree, &rewrite->unread);
    if (error == PROTO_ERROR_INVALID_PTX)
        return true;
    if (error == PROTO_ERROR_OUT_OF_MEMORY) {
        refuse_text(rewrite, true, why);
        return false;
    }
    if (error) {
        *why = rewrite->unread;
        return false;
    }
    rewrite->used += rewrite->tree->memory;
    size_t ids = (size_t)rewrite->tree->variable_ids + 1;
    rewrite->placed = rewrite_allocate(rewrite, ids, sizeof *rewrite->placed);
    rewrite->by_id = rewrite_allocate(rewrite, ids, sizeof(struct placed *));
    bool read = rewrite->placed && rewrite->by_id;
    if (read) {
        collect_variables(rewrite);
        read = moves_decide(rewrite);
    }
    if (!read)
        refuse_text(rewrite, rewrite->exceeded, why);
    return read;
}

/* Whether the text may be loaded, for all that it declares. */
static bool accept_variables(struct rewrite *rewrite, struct error *why)
{
    uint32_t line = rewrite->tree ? 0 : ptx_scan_declaration(rewrite->text, rewrite->length);
    if (line) {
        error_set(why, MESSAGE(ptx_unread_variables), rewrite->unread.text, line);
        return false;
    }
    if (!lay_out(rewrite)) {
        error_set(why, MESSAGE(variables_too_large));
        return false;
    }
    return true;
}

uint32_t rewrite_open(struct rewrite **out, const char *text, size_t length,
                      const struct ptx_limits *limits, struct error *why)
{
    struct rewrite *rewrite = calloc(1, sizeof *rewrite);
    *out = NULL;
    if (!rewrite)
        return no_memory(why);
    rewrite->text = text;
    rewrite->length = length;
    rewrite->limits = *limits;
    if (!read_text(rewrite, why) || !accept_variables(rewrite, why)) {
        rewrite_close(rewrite);
        return why->number;
    }
    *out = rewrite;
    return 0;
}

void rewrite_close(struct rewrite *rewrite)
{
    if (!rewrite)
        return;
    if (rewrite->tree)
        ptx_destroy(rewrite->tree);
    free(rewrite->placed);
    free(rewrite->by_id);
    free(rewrite);
}

const char *rewrite_unread(const struct rewrite *rewrite)
{
    return rewrite->tree ? NULL : rewrite->unread.text;
}

static uint64_t twins_offset(const struct rewrite *rewrite)
{
    return (rewrite->bytes + REWRITE_ALIGN - 1) & ~(uint64_t)(REWRITE_ALIGN - 1);
}

uint64_t rewrite_global_bytes(const struct rewrite *rewrite)
{
    uint64_t twins = rewrite->tree ? constants_bytes(rewrite->tree) : 0;
    return twins ? twins_offset(rewrite) + twins : rewrite->bytes;
}

struct constants rewrite_constants(const struct rewrite *rewrite)
{
    return constants_begin(rewrite->tree, rewrite->base + twins_offset(rewrite));
}

static bool has_constants(const struct ptx_module *tree)
{
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (tree->variables[i]->space == PTX_SPACE_CONST)
            return true;
    return false;
}

enum proto_unsaved rewrite_unsaved(const struct rewrite *rewrite)
{
    if (!rewrite->tree)
        return PROTO_UNSAVED_UNREAD;
    if (rewrite_first_that_stays(rewrite) ||
        (has_constants(rewrite->tree) && !constants_bytes(rewrite->tree)))
        return PROTO_UNSAVED_VARIABLES;
    return unsaved_find(rewrite->tree);
}

uint64_t rewrite_resident_bytes(const struct rewrite *rewrite)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (rewrite->placed[i].stays &&
            __builtin_add_overflow(bytes, rewrite->placed[i].variable->bytes, &bytes))
            return UINT64_MAX;
    return bytes;
}

/* ---- the new text ---- */

static uint64_t address_of(const struct rewrite *rewrite, const struct ptx_variable *variable)
{
    return rewrite->base + rewrite_placed(rewrite, variable)->offset;
}

/* The most bytes that a constant of ours adds to a module's, with what its alignment leaves
 * empty. */
enum { CONSTANT_OURS = 16 };

struct uses {
    const struct rewrite *rewrite;
    struct text_edit *edit;
    const char *prefix; /* of our registers' names; no name in the text begins like this */
    const char *opcode; /* of the instruction that puts the base into a register */
    char base[48];      /* its operand */
    uint32_t registers; /* number of ours in the present function */
    uint32_t first;     /* where the first function begins that has any; UINT32_MAX: none has */
};

/* Puts the base and an offset from it into a register of ours, before the instruction. */
static void insert_address(struct uses *uses, const struct ptx_instruction *instruction,
                           uint64_t offset)
{
    char code[192], name[48];
    snprintf(name, sizeof name, "%s%u", uses->prefix, uses->registers);
    int length = snprintf(code, sizeof code, "%s %s, %s; ", uses->opcode, name, uses->base);
    if (offset)
        snprintf(code + length, sizeof code - (size_t)length, "add.s64 %s, %s, %lld; ", name, name,
                 (long long)offset);
    text_edit_replace(uses->edit, instruction->start, instruction->start, code);
}

static void use_operand(struct uses *uses, const struct ptx_instruction *instruction,
                        const struct ptx_operand *operand)
{
    char name[48];
    for (uint32_t i = 0; i < operand->count; i++)
        use_operand(uses, instruction, &operand->items[i]);
    if (operand->kind != PTX_OPERAND_VARIABLE || !rewrite_moves(uses->rewrite, operand->variable))
        return;
    uint64_t offset = rewrite_placed(uses->rewrite, operand->variable)->offset;
    /* A register stands for the name; mov takes no addend beside a register, and nothing an index.
     */
    bool whole = strcmp(instruction->opcode, "mov") == 0 || operand->element;
    insert_address(uses, instruction, whole ? offset + (uint64_t)operand->addend : offset);
    snprintf(name, sizeof name, operand->element == PTX_ELEMENT_ADDRESS ? "[%s%u]" : "%s%u",
             uses->prefix, uses->registers);
    text_edit_replace(uses->edit, whole ? operand->start : operand->symbol_start,
                      whole ? operand->end : operand->symbol_end, name);
    uses->registers++;
}

static void use_in_function(struct uses *uses, const struct ptx_function *function)
{
    char code[128];
    uses->registers = 0;
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        const struct ptx_instruction *instruction = &function->instructions[i];
        for (uint32_t o = 0; o < instruction->operand_count; o++)
            use_operand(uses, instruction, &instruction->operands[o]);
    }
    if (uses->registers == 0)
        return;
    uses->first = min(uses->first, function->start);
    snprintf(code, sizeof code, " .reg .b64 %s<%u>; ", uses->prefix, uses->registers);
    text_edit_replace(uses->edit, function->body_start, function->body_start, code);
}

/* Removes the declaration and keeps its line breaks, so that all lines keep their numbers. */
static void remove_declaration(struct text_edit *edit, const struct rewrite *rewrite,
                               const struct ptx_variable *variable)
{
    size_t lines = 0;
    for (uint32_t at = variable->start; at < variable->end; at++)
        lines += rewrite->text[at] == '\n';
    char *blank = malloc(lines + 1);
    if (!blank) {
        edit->failed = true;
        return;
    }
    memset(blank, '\n', lines);
    blank[lines] = 0;
    text_edit_replace(edit, variable->start, variable->end, blank);
    free(blank);
}

static uint64_t constant_bytes(const struct ptx_variable *const *variables, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        if (variables[i]->space == PTX_SPACE_CONST)
            bytes = saturating_add(bytes, saturating_add(variables[i]->bytes, variables[i]->align));
    return bytes;
}

/* Whether the module has room for a constant more, however the compiler lays them out. */
static bool has_room_for_constant(const struct ptx_module *tree)
{
    uint64_t bytes = constant_bytes(tree->variables, tree->variable_count);
    for (uint32_t f = 0; f < tree->function_count; f++)
        bytes = saturating_add(bytes, constant_bytes(tree->functions[f]->variables,
                                                     tree->functions[f]->variable_count));
    return bytes <= REWRITE_CONSTANT_BYTES - CONSTANT_OURS;
}

static void choose_base(struct rewrite *rewrite, struct uses *uses)
{
    if (!has_room_for_constant(rewrite->tree)) {
        uses->opcode = "mov.u64";
        snprintf(uses->base, sizeof uses->base, "%llu", (unsigned long long)rewrite->base);
        return;
    }
    snprintf(rewrite->constant, sizeof rewrite->constant, "%sbase", uses->prefix + 1);
    uses->opcode = "ld.const.u64";
    snprintf(uses->base, sizeof uses->base, "[%s]", rewrite->constant);
}

static uint32_t ask_limits(const struct rewrite *rewrite, struct error *why)
{
    return rewrite->limits.ask ? rewrite->limits.ask(rewrite->limits.context, why) : 0;
}

static uint32_t replace_uses(struct rewrite *rewrite, struct uses *uses, struct error *why)
{
    char code[96];
    choose_base(rewrite, uses);
    for (uint32_t f = 0; f < rewrite->tree->function_count; f++) {
        uint32_t ended = ask_limits(rewrite, why);
        if (ended)
            return ended;
        if (rewrite->tree->functions[f]->defined)
            use_in_function(uses, rewrite->tree->functions[f]);
    }
    if (uses->first == UINT32_MAX)
        rewrite->constant[0] = 0;
    if (!rewrite->constant[0])
        return 0;
    snprintf(code, sizeof code, ".visible .const .align 8 .u64 %s; ", rewrite->constant);
    text_edit_replace(uses->edit, uses->first, uses->first, code);
    return 0;
}

uint32_t rewrite_place(struct rewrite *rewrite, uint64_t base, char **text, struct error *why)
{
    struct text_edit edit;
    char prefix[32];
    struct uses uses = {.rewrite = rewrite, .edit = &edit, .prefix = prefix, .first = UINT32_MAX};
    int chosen = own_name_choose(rewrite->text, rewrite->length,
                                 rewrite->limits.bytes - rewrite->used, prefix, sizeof prefix);
    if (chosen < 0)
        return refuse_text(rewrite, chosen == -ENOBUFS, why);
    text_edit_open(&edit, rewrite->text, rewrite->length, rewrite->limits.bytes - rewrite->used);
    rewrite->base = base;
    for (uint32_t i = 0; i < rewrite->count; i++) {
        const struct ptx_variable *variable = rewrite->placed[i].variable;
        bool first = i == 0 || rewrite->placed[i - 1].variable->start != variable->start;
        if (!rewrite->placed[i].stays && first)
            remove_declaration(&edit, rewrite, variable);
    }
    uint32_t ended = rewrite->bytes ? replace_uses(rewrite, &uses, why) : 0;
    edit.failed |= ended != 0;
    *text = text_edit_finish(&edit);
    rewrite->text = NULL;
    if (*text || ended)
        return ended;
    return refuse_text(rewrite, edit.exceeded, why);
}

uint64_t rewrite_base(const struct rewrite *rewrite)
{
    return rewrite->base;
}

const char *rewrite_constant(const struct rewrite *rewrite)
{
    return rewrite->constant[0] ? rewrite->constant : NULL;
}

/* ---- initial contents ---- */

static uint64_t initial_value(const struct rewrite *rewrite, const struct ptx_initialiser *from)
{
    uint64_t value = from->value;
    if (from->variable)
        value += address_of(rewrite, from->variable);
    if (from->mask)
        value = (value & from->mask) >> __builtin_ctzll(from->mask);
    return value;
}

bool rewrite_initial(const struct rewrite *rewrite, uint32_t *next, uint64_t *address,
                     uint8_t **bytes, size_t *count)
{
    while (*next < rewrite->count) {
        const struct placed *placed = &rewrite->placed[(*next)++];
        const struct ptx_variable *variable = placed->variable;
        if (placed->stays || variable->initialiser_count == 0)
            continue;
        const struct ptx_initialiser *last =
            &variable->initialisers[variable->initialiser_count - 1];
        *count = last->offset + last->bytes;
        *address = rewrite->base + placed->offset;
        *bytes = calloc(1, *count);
        for (uint32_t i = 0; *bytes && i < variable->initialiser_count; i++) {
            const struct ptx_initialiser *from = &variable->initialisers[i];
            uint64_t value = initial_value(rewrite, from);
            if (from->bytes <= sizeof value && from->offset + from->bytes <= *count)
                memcpy(*bytes + from->offset, &value, from->bytes);
        }
        return true;
    }
    return false;
}

/* ---- questions ---- */

static bool is_kernel(const struct ptx_function *function)
{
    return function->entry && function->defined &&
           function->param_count <= PROTO_PARAMETER_COUNT_MAX;
}

static void add_kernel(struct symbols *symbols, const struct ptx_function *function)
{
    uint32_t pairs[2 * PROTO_PARAMETER_COUNT_MAX];
    for (uint32_t i = 0; i < function->param_count; i++) {
        pairs[2 * i] = (uint32_t)ptx_param_offset(function, i);
        pairs[2 * i + 1] = (uint32_t)function->params[i]->bytes;
    }
    symbols_add_kernel(symbols, function->name, pairs, function->param_count,
                       ptx_param_offset(function, function->param_count));
}

static bool is_found_by_name(const struct placed *placed)
{
    return !placed->stays && !placed->variable->in_function;
}

struct symbols *rewrite_symbols(const struct rewrite *rewrite)
{
    uint32_t functions = rewrite->tree ? rewrite->tree->function_count : 0;
    struct symbols_room room = {0};
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (is_found_by_name(&rewrite->placed[i]))
            symbols_room_variable(&room, rewrite->placed[i].variable->name);
    struct constants twins = rewrite_constants(rewrite);
    struct constant twin;
    while (constants_next(&twins, &twin))
        symbols_room_variable(&room, twin.name);
    for (uint32_t i = 0; i < functions; i++)
        if (is_kernel(rewrite->tree->functions[i]))
            symbols_room_kernel(&room, rewrite->tree->functions[i]->name,
                                rewrite->tree->functions[i]->param_count);
    struct symbols *symbols = symbols_create(&room);
    if (!symbols)
        return NULL;
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (is_found_by_name(&rewrite->placed[i]))
            symbols_add_variable(symbols, rewrite->placed[i].variable->name,
                                 rewrite->base + rewrite->placed[i].offset,
                                 rewrite->placed[i].variable->bytes);
    twins = rewrite_constants(rewrite);
    while (constants_next(&twins, &twin))
        symbols_add_variable(symbols, twin.name, twin.address, twin.bytes);
    for (uint32_t i = 0; i < functions; i++)
        if (is_kernel(rewrite->tree->functions[i]))
            add_kernel(symbols, rewrite->tree->functions[i]);
    symbols_sort(symbols);
    return symbols;
}

bool rewrite_has_constants(const struct rewrite *rewrite)
{
    const struct ptx_module *tree = rewrite->tree;
    uint64_t bytes = tree ? constant_bytes(tree->variables, tree->variable_count) : 0;
    for (uint32_t i = 0; tree && i < tree->function_count; i++)
        bytes |= constant_bytes(tree->functions[i]->variables, tree->functions[i]->variable_count);
    return bytes != 0;
}

size_t rewrite_tree_bytes(const struct rewrite *rewrite)
{
    return rewrite->tree ? rewrite->tree->memory : 0;
}

static const struct placed *find_placed(const struct rewrite *rewrite, const char *name)
{
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (!rewrite->placed[i].variable->in_function &&
            strcmp(rewrite->placed[i].variable->name, name) == 0)
            return &rewrite->placed[i];
    return NULL;
}

const char *rewrite_why_stays(const struct rewrite *rewrite, const char *name)
{
    const struct placed *placed = find_placed(rewrite, name);
    return placed ? placed->stays : NULL;
}

const char *rewrite_first_that_stays(const struct rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->count; i++)
        if (rewrite->placed[i].stays)
            return rewrite->placed[i].variable->name;
    return NULL;
}
