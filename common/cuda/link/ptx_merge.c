/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: NVIDIA's linker joins machine code and is part of a driver, and LLVM's llvm-link
 * joins its own IR. Neither reads several texts of PTX and writes one. */
#include "common/cuda/link/ptx_merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cuda/link/ptx_merge_private.h"
#include "common/messages.h"
#include "common/util.h"

/* ---- an input's claims ---- */

static bool claim_function(struct ptx_merge *merge, struct merge_input *input,
                           const struct ptx_function *function)
{
    struct merge_symbol *symbol = merge_intern(merge, function->name);
    if (!symbol)
        return false;
    struct merge_claim *claim = &symbol->claim;
    input->functions[function->id].symbol = symbol;
    if (function->defined)
        claim->definition = function;
    else if (!claim->declaration)
        claim->declaration = function;
    claim->weak |= function->linkage == PTX_LINK_WEAK;
    claim->visible |= function->linkage == PTX_LINK_VISIBLE || function->entry;
    return true;
}

static bool claim_variable(struct ptx_merge *merge, struct merge_input *input,
                           const struct ptx_variable *variable)
{
    struct merge_symbol *symbol = merge_intern(merge, variable->name);
    if (!symbol)
        return false;
    input->variables[variable->id].symbol = symbol;
    symbol->claim.variable = variable;
    return true;
}

static void use_function(const struct merge_input *input, const struct ptx_function *function)
{
    struct merge_symbol *symbol = function ? input->functions[function->id].symbol : NULL;
    if (symbol)
        symbol->claim.used = true;
}

static void use_variable(const struct merge_input *input, const struct ptx_variable *variable)
{
    struct merge_symbol *symbol = variable ? input->variables[variable->id].symbol : NULL;
    if (symbol)
        symbol->claim.used = true;
}

/* The reader bounds the depth. */
static void use_operand(const struct merge_input *input, const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_FUNCTION)
        use_function(input, operand->function);
    else if (operand->kind == PTX_OPERAND_VARIABLE)
        use_variable(input, operand->variable);
    for (uint32_t i = 0; i < operand->count; i++)
        use_operand(input, &operand->items[i]);
}

static void use_initialisers(const struct merge_input *input, const struct ptx_variable *variable)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++) {
        use_function(input, variable->initialisers[i].function);
        use_variable(input, variable->initialisers[i].variable);
    }
}

static void use_in_body(const struct merge_input *input, const struct ptx_function *function)
{
    for (uint32_t i = 0; i < function->instruction_count; i++)
        for (uint32_t o = 0; o < function->instructions[i].operand_count; o++)
            use_operand(input, &function->instructions[i].operands[o]);
    for (uint32_t i = 0; i < function->variable_count; i++)
        use_initialisers(input, function->variables[i]);
}

static bool claim_all(struct ptx_merge *merge, struct merge_input *input)
{
    const struct ptx_module *tree = input->tree;
    input->functions = calloc((size_t)tree->function_count + 1, sizeof *input->functions);
    input->variables = calloc((size_t)tree->variable_ids + 1, sizeof *input->variables);
    if (!input->functions || !input->variables)
        return false;
    for (uint32_t i = 0; i < tree->function_count; i++)
        if (!claim_function(merge, input, tree->functions[i]))
            return false;
    for (uint32_t i = 0; i < tree->variable_count; i++)
        if (!claim_variable(merge, input, tree->variables[i]))
            return false;
    for (uint32_t i = 0; i < tree->function_count; i++)
        use_in_body(input, tree->functions[i]);
    for (uint32_t i = 0; i < tree->variable_count; i++)
        use_initialisers(input, tree->variables[i]);
    return true;
}

/* ---- what a claim is ---- */

static enum merge_strength strength_of(const struct merge_claim *claim)
{
    if (claim->variable) {
        enum ptx_linkage linkage = claim->variable->linkage;
        return linkage == PTX_LINK_VISIBLE  ? MERGE_STRONG
               : linkage == PTX_LINK_WEAK   ? MERGE_WEAK
               : linkage == PTX_LINK_COMMON ? MERGE_COMMON
                                            : MERGE_NONE;
    }
    if (!claim->definition)
        return MERGE_NONE;
    return claim->weak ? MERGE_WEAK : claim->visible ? MERGE_STRONG : MERGE_NONE;
}

/* Whether the input has the name for itself. */
static bool is_own(const struct merge_claim *claim)
{
    if (claim->variable)
        return claim->variable->linkage == PTX_LINK_NONE;
    return claim->definition && strength_of(claim) == MERGE_NONE;
}

static struct merge_place place_of(const struct merge_input *input, const struct merge_claim *claim)
{
    return (struct merge_place){.input = input,
                                .function =
                                    claim->definition ? claim->definition : claim->declaration,
                                .variable = claim->variable};
}

/* The symbols of an input, each as often as the input declares it. */
static struct merge_symbol *symbol_at(const struct merge_input *input, uint32_t i)
{
    const struct ptx_module *tree = input->tree;
    return i < tree->function_count
               ? input->functions[i].symbol
               : input->variables[tree->variables[i - tree->function_count]->id].symbol;
}

static uint32_t symbols_of(const struct merge_input *input)
{
    return input->tree->function_count + input->tree->variable_count;
}

/* ---- comparing ---- */

static uint32_t check_strengths(const struct merge_symbol *symbol, const struct merge_place *place,
                                struct error *why)
{
    const struct ptx_variable *one = symbol->definition.variable, *other = place->variable;
    enum merge_strength strength = strength_of(&symbol->claim);
    bool both_strong = strength == MERGE_STRONG && symbol->strength == MERGE_STRONG;
    bool both_common = strength == MERGE_COMMON && symbol->strength == MERGE_COMMON;
    if (both_strong || (both_common && one->initialiser_count > 0 && other->initialiser_count > 0))
        return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_defined_twice),
                         symbol->name, place->input->name, symbol->definition.input->name);
    if (both_common && ((one->initialiser_count > 0 && one->bytes < other->bytes) ||
                        (other->initialiser_count > 0 && other->bytes < one->bytes)))
        return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_sizes), symbol->name,
                         (unsigned long long)other->bytes, place->input->name,
                         (unsigned long long)one->bytes, symbol->definition.input->name);
    return 0;
}

static uint32_t check_symbol(const struct merge_symbol *symbol, const struct merge_input *input,
                             struct error *why)
{
    const struct merge_claim *claim = &symbol->claim;
    const struct merge_place place = place_of(input, claim);
    bool defined = strength_of(claim) != MERGE_NONE;
    const struct merge_place *known =
        symbol->definition.input ? &symbol->definition : &symbol->reference;
    if (is_own(claim) || (!defined && !claim->used) || !known->input)
        return 0;
    uint32_t error = merge_fit_places(symbol->name, known, &place, why);
    return error || !defined || !symbol->definition.input ? error
                                                          : check_strengths(symbol, &place, why);
}

static uint32_t check_all(const struct merge_input *input, bool *whole, struct error *why)
{
    *whole = true;
    for (uint32_t i = 0; i < symbols_of(input); i++) {
        const struct merge_symbol *symbol = symbol_at(input, i);
        const struct merge_claim *claim = &symbol->claim;
        const struct merge_place place = place_of(input, claim);
        uint32_t error = check_symbol(symbol, input, why);
        if (error)
            return error;
        bool defined = is_own(claim) || strength_of(claim) != MERGE_NONE;
        if (claim->used && !defined && !merge_is_provided(&place))
            *whole = false;
    }
    return 0;
}

/* ---- the candidate ---- */

static void destroy_input(struct merge_input *input)
{
    if (!input)
        return;
    ptx_destroy(input->tree);
    free(input->functions);
    free(input->variables);
    free(input->name);
    free(input->text);
    free(input);
}

static struct merge_input *copy_input(const struct ptx_merge_input *given, uint32_t number)
{
    struct merge_input *input = calloc(1, sizeof *input);
    char numbered[32];
    if (!input)
        return NULL;
    snprintf(numbered, sizeof numbered, "input %u", number);
    input->number = number;
    input->length = (uint32_t)given->length;
    input->name = strdup(given->name && *given->name ? given->name : numbered);
    input->text = malloc(given->length + 1);
    if (!input->name || !input->text) {
        destroy_input(input);
        return NULL;
    }
    memcpy(input->text, given->text, given->length);
    input->text[given->length] = '\0';
    return input;
}

/* The reader's numbers are the server's; CUDA has one for want of memory. */
static uint32_t read_tree(struct merge_input *input, size_t length, struct error *why)
{
    uint32_t error = ptx_read(input->text, length, &input->tree, why);
    if (error)
        why->number = error == CUDA_ERR_INVALID_PTX ? error : (uint32_t)CUDA_ERR_OUT_OF_MEMORY;
    return error ? why->number : 0;
}

uint32_t ptx_merge_offer(struct ptx_merge *merge, const struct ptx_merge_input *given, bool *whole,
                         struct error *why)
{
    ptx_merge_drop(merge);
    if (given->length > PTX_TEXT_BYTES)
        return error_set(why, CUDA_ERR_INVALID_PTX, MESSAGE_TEXT(ptx_length_max), given->length);
    struct merge_input *input = copy_input(given, merge->count + 1);
    if (!input)
        return merge_refuse_memory(why);
    uint32_t error = read_tree(input, given->length, why);
    merge->stamp++;
    if (!error && !claim_all(merge, input))
        error = merge_refuse_memory(why);
    if (!error)
        error = check_all(input, whole, why);
    if (error)
        destroy_input(input);
    else
        merge->candidate = input;
    return error;
}

#define MARK "$link"

/* The number behind the mark is higher than in any text, so that no text has the mark. Numbers of
 * more digits than ours will ever have are others. */
static void choose_mark(struct ptx_merge *merge, const struct merge_input *input)
{
    enum { DIGITS = 9, MARK_BYTES = sizeof MARK - 1 };
    uint32_t free_number =
        (uint32_t)strtoul(*merge->mark ? merge->mark + MARK_BYTES : "0", NULL, 10);
    const char *at = input->text, *end = input->text + input->length;
    while ((at = memmem(at, (size_t)(end - at), MARK, MARK_BYTES)) != NULL) {
        uint32_t number = 0, digits = 0;
        for (at += MARK_BYTES; digits <= DIGITS && *at >= '0' && *at <= '9'; at++, digits++)
            number = digits < DIGITS ? number * 10 + (uint32_t)(*at - '0') : 0;
        if (digits <= DIGITS)
            free_number = max(free_number, number + 1);
    }
    snprintf(merge->mark, sizeof merge->mark, MARK "%u_", free_number);
}

/* Of arrays of shared memory that launches size, the one with the strictest alignment stays. */
static void take_reference(struct merge_symbol *symbol, const struct merge_place *place)
{
    const struct ptx_variable *one = symbol->reference.variable, *other = place->variable;
    if (!symbol->reference.input || (one && other && other->align > one->align))
        symbol->reference = *place;
}

static bool is_better(const struct merge_symbol *symbol, const struct merge_place *place)
{
    enum merge_strength strength = strength_of(&symbol->claim);
    const struct ptx_variable *one = symbol->definition.variable, *other = place->variable;
    if (strength != symbol->strength || strength != MERGE_COMMON || !one || !other)
        return strength > symbol->strength;
    return other->initialiser_count > 0 ||
           (one->initialiser_count == 0 && other->bytes > one->bytes);
}

/* A symbol comes here once for each of its declarations; the first time takes all of it. */
static void accept_symbol(struct merge_symbol *symbol, const struct merge_input *input)
{
    const struct merge_claim *claim = &symbol->claim;
    const struct merge_place place = place_of(input, claim);
    if (is_own(claim)) {
        if (!symbol->owner)
            symbol->owner = input;
    } else if (strength_of(claim) != MERGE_NONE) {
        symbol->inputs++;
        if (is_better(symbol, &place)) {
            symbol->definition = place;
            symbol->strength = strength_of(claim);
        }
    } else if (claim->used) {
        symbol->inputs++;
        take_reference(symbol, &place);
    }
}

int ptx_merge_accept(struct ptx_merge *merge)
{
    struct merge_input *input = merge->candidate;
    const struct ptx_module *tree = input->tree;
    if (array_reserve(merge->inputs, merge->room, merge->count + 1) < 0) {
        ptx_merge_drop(merge);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < tree->function_count; i++)
        input->functions[i].own = is_own(&input->functions[i].symbol->claim);
    for (uint32_t i = 0; i < tree->variable_count; i++) {
        struct merge_name *name = &input->variables[tree->variables[i]->id];
        name->own = is_own(&name->symbol->claim);
    }
    /* The next stamp says that a symbol has been taken. */
    uint32_t taken = ++merge->stamp;
    for (uint32_t i = 0; i < symbols_of(input); i++) {
        struct merge_symbol *symbol = symbol_at(input, i);
        if (symbol->stamp != taken)
            accept_symbol(symbol, input);
        symbol->stamp = taken;
    }
    choose_mark(merge, input);
    merge->inputs[merge->count++] = input;
    merge->candidate = NULL;
    return 0;
}

void ptx_merge_drop(struct ptx_merge *merge)
{
    destroy_input(merge->candidate);
    merge->candidate = NULL;
}

/* ---- the whole ---- */

struct ptx_merge *ptx_merge_create(void)
{
    struct ptx_merge *merge = calloc(1, sizeof *merge);
    if (merge && hash_key_make(&merge->key) < 0) {
        free(merge);
        return NULL;
    }
    return merge;
}

void ptx_merge_destroy(struct ptx_merge *merge)
{
    if (!merge)
        return;
    ptx_merge_drop(merge);
    for (uint32_t i = 0; i < merge->count; i++)
        destroy_input(merge->inputs[i]);
    for (uint32_t i = 0; i < merge->symbol_count; i++)
        free(merge->symbols[i]);
    free(merge->left_out);
    free(merge->inputs);
    free(merge->symbols);
    free(merge->table);
    free(merge);
}

uint32_t ptx_merge_count(const struct ptx_merge *merge)
{
    return merge->count;
}

int ptx_merge_leave_out(struct ptx_merge *merge, const char *name)
{
    char *copy = strdup(name);
    if (!copy)
        return -ENOMEM;
    free(merge->left_out);
    merge->left_out = copy;
    return 0;
}

static uint32_t refuse_undefined(const struct ptx_merge *merge, const struct merge_symbol *symbol,
                                 struct error *why)
{
    const char *user = symbol->reference.input->name;
    return merge->left_out
               ? error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_undefined_runtime),
                           symbol->name, user, merge->left_out)
               : error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_undefined),
                           symbol->name, user);
}

/* NULL: none is. */
static const struct merge_symbol *find_undefined(const struct ptx_merge *merge)
{
    for (uint32_t i = 0; i < merge->symbol_count; i++) {
        const struct merge_symbol *symbol = merge->symbols[i];
        if (symbol->reference.input && !symbol->definition.input &&
            !merge_is_provided(&symbol->reference))
            return symbol;
    }
    return NULL;
}

bool ptx_merge_left_out(const struct ptx_merge *merge)
{
    return merge->left_out != NULL;
}

bool ptx_merge_whole(const struct ptx_merge *merge)
{
    return !find_undefined(merge);
}

uint32_t ptx_merge_finish(struct ptx_merge *merge, char **text, size_t *length, struct error *why)
{
    const struct merge_symbol *undefined = find_undefined(merge);
    uint32_t error = undefined ? refuse_undefined(merge, undefined, why) : 0;
    if (!error)
        error = merge_write(merge, text, length, why);
    if (error)
        return error;
    error = merge_check(merge, *text, *length, why);
    if (error) {
        free(*text);
        *text = NULL;
    }
    return error;
}
