/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The text of a merge: the head, a prototype of each function that stands below its use, all
 * variables of modules in an order in which each stands below those that its initial value names,
 * and the functions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cuda/link/ptx_merge_private.h"
#include "common/cuda/ptx_token.h"
#include "common/messages.h"
#include "common/util.h"

/* A name in an input's text that is another in the merged text. */
struct edit {
    uint32_t start;
    const struct merge_name *name;
};

/* A variable whose initial value is gone through. */
struct step {
    const struct merge_input *input;
    const struct ptx_variable *variable;
    uint32_t next; /* initialiser */
};

struct writer {
    const struct ptx_merge *merge;
    FILE *out;
    size_t bytes; /* written */
    struct edit *edits;
    uint32_t edit_count, edit_room, edit_next;
    struct step *steps;
    uint32_t step_count, step_room;
    struct error *why; /* its number is 0 as long as nothing failed */
};

/* ---- bytes and tokens ---- */

static void fail_memory(struct writer *w)
{
    if (!w->why->number)
        merge_refuse_memory(w->why);
}

/* The bound is the reader's. It keeps statements with many names from growing without end. */
static void put(struct writer *w, const char *text, size_t length)
{
    if (w->why->number)
        return;
    w->bytes += length;
    if (w->bytes > PTX_TEXT_BYTES)
        error_set(w->why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(ptx_length_max), w->bytes);
    else if (fwrite(text, 1, length, w->out) != length)
        fail_memory(w);
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_name(struct writer *w, const struct merge_input *input,
                     const struct merge_name *name)
{
    char behind[16];
    put(w, name->symbol->name, name->symbol->length);
    if (!merge_is_changed(input, name))
        return;
    snprintf(behind, sizeof behind, "%u", input->number);
    put_text(w, w->merge->mark);
    put_text(w, behind);
}

static bool token_is(const struct merge_input *input, const struct ptx_token *token,
                     const char *word)
{
    size_t length = strlen(word);
    return token->end - token->start == length &&
           memcmp(input->text + token->start, word, length) == 0;
}

static struct ptx_lexer lexer_at(const struct merge_input *input, uint32_t start, uint32_t end)
{
    struct ptx_lexer lexer;
    ptx_lexer_init(&lexer, input->text, end);
    lexer.at = start;
    return lexer;
}

/* The reader takes the rest of the line for the place in a source. */
static struct ptx_token skip_line(struct ptx_lexer *lexer)
{
    struct ptx_token token = ptx_lexer_next(lexer);
    uint32_t line = token.line;
    while (token.kind != PTX_TOKEN_END && token.line == line)
        token = ptx_lexer_next(lexer);
    return token;
}

static void put_gap(struct writer *w, const struct merge_input *input, uint32_t from, uint32_t to)
{
    if (from < to)
        put(w, memchr(input->text + from, '\n', to - from) ? "\n" : " ", 1);
}

/* Writes a part of an input's text without comments and without its places in a source, and with
 * the edits in it. Tokens that touch still do, for ".global .u32" and "ld.global" differ. */
static void put_part(struct writer *w, const struct merge_input *input, uint32_t start,
                     uint32_t end)
{
    struct ptx_lexer lexer = lexer_at(input, start, end);
    struct ptx_token token = ptx_lexer_next(&lexer);
    uint32_t last = start;
    while (token.kind != PTX_TOKEN_END && !w->why->number) {
        if (token.kind == PTX_TOKEN_DOT && token_is(input, &token, ".loc")) {
            token = skip_line(&lexer);
            continue;
        }
        if (token.kind == PTX_TOKEN_DOT && token_is(input, &token, ".calltargets"))
            error_set(w->why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_calltargets),
                      input->name);
        put_gap(w, input, last, token.start);
        while (w->edit_next < w->edit_count && w->edits[w->edit_next].start < token.start)
            w->edit_next++;
        if (w->edit_next < w->edit_count && w->edits[w->edit_next].start == token.start)
            put_name(w, input, w->edits[w->edit_next].name);
        else
            put(w, input->text + token.start, token.end - token.start);
        last = token.end;
        token = ptx_lexer_next(&lexer);
    }
}

/* ---- edits ---- */

static void begin_edits(struct writer *w)
{
    w->edit_count = w->edit_next = 0;
}

static void add_edit(struct writer *w, const struct merge_input *input, uint32_t start,
                     const struct merge_name *name)
{
    if (!merge_is_changed(input, name))
        return;
    if (array_reserve(w->edits, w->edit_room, w->edit_count + 1) < 0) {
        fail_memory(w);
        return;
    }
    w->edits[w->edit_count++] = (struct edit){start, name};
}

static int by_start(const void *a, const void *b)
{
    const struct edit *one = a, *other = b;
    return one->start < other->start ? -1 : one->start > other->start;
}

static void sort_edits(struct writer *w)
{
    if (w->edit_count)
        qsort(w->edits, w->edit_count, sizeof *w->edits, by_start);
}

static void edit_initialisers(struct writer *w, const struct merge_input *input,
                              const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++) {
        const struct ptx_initialiser *item = &variable->initialisers[i];
        if (item->variable)
            add_edit(w, input, item->symbol_start, &input->variables[item->variable->id]);
        else if (item->function)
            add_edit(w, input, item->symbol_start, &input->functions[item->function->id]);
    }
}

static void edit_operand(struct writer *w, const struct merge_input *input,
                         const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_VARIABLE)
        add_edit(w, input, operand->symbol_start, &input->variables[operand->variable->id]);
    else if (operand->kind == PTX_OPERAND_FUNCTION)
        add_edit(w, input, operand->symbol_start, &input->functions[operand->function->id]);
    for (uint32_t i = 0; i < operand->count; i++)
        edit_operand(w, input, &operand->items[i]);
}

/* ---- functions ---- */

struct header {
    uint32_t name; /* where the name begins */
    uint32_t end;  /* behind name and parameters */
};

static struct ptx_token skip_list(const struct merge_input *input, struct ptx_lexer *lexer,
                                  struct ptx_token token, uint32_t *end)
{
    uint32_t depth = 0;
    while (token.kind != PTX_TOKEN_END) {
        if (token.kind == PTX_TOKEN_PUNCT)
            depth += token_is(input, &token, "(") ? 1 : token_is(input, &token, ")") ? -1u : 0;
        *end = token.end;
        token = ptx_lexer_next(lexer);
        if (!depth)
            break;
    }
    return token;
}

/* The reader has understood the text, so there is a name, perhaps behind lists of attributes and of
 * results. */
static struct header find_header(const struct merge_input *input,
                                 const struct ptx_function *function)
{
    struct ptx_lexer lexer = lexer_at(input, function->start, function->end);
    struct ptx_token token = ptx_lexer_next(&lexer);
    struct header header = {0};
    while (token.kind != PTX_TOKEN_END && token.kind != PTX_TOKEN_WORD)
        token = token_is(input, &token, "(") ? skip_list(input, &lexer, token, &header.end)
                                             : ptx_lexer_next(&lexer);
    header.name = token.start;
    header.end = token.end;
    token = ptx_lexer_next(&lexer);
    if (token_is(input, &token, "("))
        skip_list(input, &lexer, token, &header.end);
    return header;
}

static void put_prototype(struct writer *w, const struct merge_input *input,
                          const struct ptx_function *function)
{
    struct header header = find_header(input, function);
    begin_edits(w);
    add_edit(w, input, header.name, &input->functions[function->id]);
    put_part(w, input, function->start, header.end);
    put_text(w, function->noreturn ? " .noreturn;\n" : ";\n");
}

static void put_function(struct writer *w, const struct merge_input *input,
                         const struct ptx_function *function)
{
    begin_edits(w);
    add_edit(w, input, find_header(input, function).name, &input->functions[function->id]);
    for (uint32_t i = 0; i < function->instruction_count; i++)
        for (uint32_t o = 0; o < function->instructions[i].operand_count; o++)
            edit_operand(w, input, &function->instructions[i].operands[o]);
    for (uint32_t i = 0; i < function->variable_count; i++)
        edit_initialisers(w, input, function->variables[i]);
    sort_edits(w);
    put_part(w, input, function->start, function->end);
    put_text(w, "\n");
}

/* The function that stands for one of an input's in the merged text. */
static struct merge_place find_function(const struct merge_input *input,
                                        const struct ptx_function *function)
{
    const struct merge_name *name = &input->functions[function->id];
    if (name->own)
        return (struct merge_place){.input = input, .function = function->definition};
    return name->symbol->definition.input ? name->symbol->definition : name->symbol->reference;
}

/* A prototype stands for all of the function's declarations. A function that nobody uses and
 * nobody defines is left out. */
static void announce(struct writer *w, const struct merge_input *input,
                     const struct ptx_function *function)
{
    struct merge_place place = find_function(input, function);
    if (!place.function)
        return;
    struct merge_name *name = &place.input->functions[place.function->id];
    if (!name->announced)
        put_prototype(w, place.input, place.function);
    name->announced = true;
}

static void announce_initial(struct writer *w, const struct merge_input *input,
                             const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++)
        if (variable->initialisers[i].function)
            announce(w, input, variable->initialisers[i].function);
}

static void put_prototypes(struct writer *w, const struct merge_input *input)
{
    const struct ptx_module *tree = input->tree;
    for (uint32_t i = 0; i < tree->function_count; i++) {
        const struct ptx_function *function = tree->functions[i];
        struct merge_place place = find_function(input, function);
        if (!function->defined || place.function != function)
            announce(w, input, function);
    }
    for (uint32_t i = 0; i < tree->variable_count; i++)
        announce_initial(w, input, tree->variables[i]);
}

static void put_functions(struct writer *w, const struct merge_input *input)
{
    for (uint32_t i = 0; i < input->tree->function_count; i++) {
        const struct ptx_function *function = input->tree->functions[i];
        if (function->defined && find_function(input, function).function == function)
            put_function(w, input, function);
    }
}

/* ---- variables of modules ---- */

/* The end of what a statement says of all of its variables: the first name stands there. */
static uint32_t find_shape_end(const struct merge_input *input, const struct ptx_variable *variable)
{
    struct ptx_lexer lexer = lexer_at(input, variable->start, variable->name_end);
    struct ptx_token token = ptx_lexer_next(&lexer);
    uint32_t end;
    while (token.kind != PTX_TOKEN_END && token.kind != PTX_TOKEN_WORD)
        token = token_is(input, &token, "(") ? skip_list(input, &lexer, token, &end)
                                             : ptx_lexer_next(&lexer);
    return token.start;
}

/* The end of one variable's own part of the statement. */
static uint32_t find_own_end(const struct merge_input *input, const struct ptx_variable *variable,
                             bool initialised)
{
    struct ptx_lexer lexer = lexer_at(input, variable->name_start, variable->end);
    struct ptx_token token = ptx_lexer_next(&lexer);
    uint32_t depth = 0, end = token.end;
    for (; token.kind != PTX_TOKEN_END; token = ptx_lexer_next(&lexer)) {
        if (token.kind == PTX_TOKEN_PUNCT) {
            char c = input->text[token.start];
            if (depth == 0 && (c == ',' || c == ';' || (c == '=' && !initialised)))
                break;
            depth += c == '(' || c == '{' ? 1u : c == ')' || c == '}' ? -1u : 0u;
        }
        end = token.end;
    }
    return end;
}

/* Writes the linkage, and returns where the rest of the statement begins. NVIDIA's compiler takes
 * no .extern declaration of a variable without linkage, so one that has such a declaration becomes
 * visible; its name is unique. */
static uint32_t put_linkage(struct writer *w, const struct merge_input *input,
                            const struct ptx_variable *variable, bool forward)
{
    struct ptx_lexer lexer = lexer_at(input, variable->start, variable->end);
    if (forward)
        put_text(w, ".extern ");
    else if (variable->linkage == PTX_LINK_NONE && input->variables[variable->id].forward)
        put_text(w, ".visible ");
    return forward && variable->linkage != PTX_LINK_NONE ? ptx_lexer_next(&lexer).end
                                                         : variable->start;
}

/* A statement of its own for each variable, for not all of one statement may stay. forward: the
 * declaration that lets variables name each other in their initial values. */
static void put_variable(struct writer *w, const struct merge_input *input,
                         const struct ptx_variable *variable, bool forward)
{
    uint32_t start = put_linkage(w, input, variable, forward);
    begin_edits(w);
    put_part(w, input, start, find_shape_end(input, variable));
    put_text(w, " ");
    add_edit(w, input, variable->name_start, &input->variables[variable->id]);
    edit_initialisers(w, input, variable);
    sort_edits(w);
    put_part(w, input, variable->name_start, find_own_end(input, variable, !forward));
    put_text(w, ";\n");
}

static void begin_variable(struct writer *w, const struct merge_place *place)
{
    if (array_reserve(w->steps, w->step_room, w->step_count + 1) < 0) {
        fail_memory(w);
        return;
    }
    place->input->variables[place->variable->id].state = MERGE_BEGUN;
    w->steps[w->step_count++] = (struct step){place->input, place->variable, 0};
}

static void need_variable(struct writer *w, const struct merge_place *place)
{
    struct merge_name *name = &place->input->variables[place->variable->id];
    if (name->state == MERGE_NOT_YET) {
        begin_variable(w, place);
    } else if (name->state == MERGE_BEGUN && !name->forward) {
        name->forward = true;
        put_variable(w, place->input, place->variable, true);
    }
}

/* In depth, but not by recursion: initial values may lead through thousands of variables. */
static void put_with_needed(struct writer *w, const struct merge_place *first)
{
    if (first->input->variables[first->variable->id].state == MERGE_NOT_YET)
        begin_variable(w, first);
    while (w->step_count && !w->why->number) {
        struct step *step = &w->steps[w->step_count - 1];
        if (step->next < step->variable->initialiser_count) {
            const struct ptx_initialiser *item = &step->variable->initialisers[step->next++];
            struct merge_place place = {0};
            if (item->variable)
                place = merge_find_variable(step->input, item->variable);
            if (place.input)
                need_variable(w, &place);
            continue;
        }
        step->input->variables[step->variable->id].state = MERGE_WRITTEN;
        put_variable(w, step->input, step->variable, false);
        w->step_count--;
    }
}

/* Writes those of the input that stay: its own, those that all inputs use, and arrays of shared
 * memory that launches size. */
static void put_variables(struct writer *w, const struct merge_input *input)
{
    for (uint32_t i = 0; i < input->tree->variable_count; i++) {
        const struct ptx_variable *variable = input->tree->variables[i];
        const struct merge_symbol *symbol = input->variables[variable->id].symbol;
        struct merge_place place = merge_find_variable(input, variable);
        if (!place.input)
            place = symbol->reference;
        if (place.input == input && place.variable == variable)
            put_with_needed(w, &place);
    }
}

/* ---- the whole ---- */

static void put_head(struct writer *w)
{
    const struct ptx_merge *merge = w->merge;
    char *target = NULL, head[64];
    uint32_t version = 0;
    for (uint32_t i = 0; i < merge->count; i++)
        version = max(version, merge->inputs[i]->tree->version);
    if (merge_fit_targets(merge, &target, w->why) == 0) {
        snprintf(head, sizeof head, ".version %u.%u\n.target ", version / 10, version % 10);
        put_text(w, head);
        put_text(w, target);
        put_text(w, "\n.address_size 64\n");
    }
    free(target);
}

static void put_all(struct writer *w)
{
    const struct ptx_merge *merge = w->merge;
    put_head(w);
    for (uint32_t i = 0; i < merge->count; i++)
        put_prototypes(w, merge->inputs[i]);
    for (uint32_t i = 0; i < merge->count; i++)
        put_variables(w, merge->inputs[i]);
    for (uint32_t i = 0; i < merge->count; i++)
        put_functions(w, merge->inputs[i]);
}

uint32_t merge_write(struct ptx_merge *merge, char **text, size_t *length, struct error *why)
{
    struct writer w = {.merge = merge, .why = why};
    *text = NULL;
    why->number = 0;
    w.out = open_memstream(text, length);
    if (!w.out)
        return merge_refuse_memory(why);
    put_all(&w);
    if (fclose(w.out) != 0)
        fail_memory(&w);
    free(w.edits);
    free(w.steps);
    if (why->number) {
        free(*text);
        *text = NULL;
    }
    return why->number;
}
