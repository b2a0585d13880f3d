/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * A name that one input has for all modules may be a label or a register in a function of another
 * input: "r1" may be one of ".reg .u32 r<9>". The merged text would mean something else there, so
 * it is read once more, and each name compared with what it was.
 */
#include <string.h>

#include "common/cuda/link/ptx_merge_private.h"
#include "common/messages.h"

struct comparison {
    const struct ptx_merge *merge;
    const struct merge_input *input;
    const char *confused; /* the name */
};

/* The name in the merged text begins as it did; what stands behind it is checked by its place. */
static bool same_name(const struct comparison *c, const struct merge_name *name, const char *merged)
{
    if (!merge_is_changed(c->input, name))
        return strcmp(merged, name->symbol->name) == 0;
    return strncmp(merged, name->symbol->name, name->symbol->length) == 0 &&
           strncmp(merged + name->symbol->length, c->merge->mark, strlen(c->merge->mark)) == 0;
}

static bool same_variable(const struct comparison *c, const struct ptx_variable *old,
                          const struct ptx_variable *merged)
{
    const struct merge_name *name = &c->input->variables[old->id];
    if (old->in_function != merged->in_function)
        return false;
    return old->in_function ? strcmp(old->name, merged->name) == 0
                            : same_name(c, name, merged->name);
}

static bool same_operand(struct comparison *c, const struct ptx_operand *old,
                         const struct ptx_operand *merged)
{
    bool same = old->kind == merged->kind && old->count == merged->count;
    if (same && old->kind == PTX_OPERAND_FUNCTION)
        same = same_name(c, &c->input->functions[old->function->id], merged->function->name);
    else if (same && old->kind == PTX_OPERAND_VARIABLE)
        same = same_variable(c, old->variable, merged->variable);
    else if (same && old->kind == PTX_OPERAND_REGISTER)
        same =
            old->index == merged->index && strcmp(old->variable->name, merged->variable->name) == 0;
    else if (same && old->kind == PTX_OPERAND_LABEL)
        same = old->label == merged->label;
    if (!same && !c->confused)
        c->confused = old->name ? old->name : "?";
    for (uint32_t i = 0; same && i < old->count; i++)
        same = same_operand(c, &old->items[i], &merged->items[i]);
    return same;
}

static bool same_body(struct comparison *c, const struct ptx_function *old,
                      const struct ptx_function *merged)
{
    bool same = old->instruction_count == merged->instruction_count;
    for (uint32_t i = 0; same && i < old->instruction_count; i++) {
        const struct ptx_instruction *one = &old->instructions[i], *two = &merged->instructions[i];
        same = one->operand_count == two->operand_count && strcmp(one->opcode, two->opcode) == 0 &&
               !one->guard == !two->guard &&
               (!one->guard || same_operand(c, one->guard, two->guard));
        for (uint32_t o = 0; same && o < one->operand_count; o++)
            same = same_operand(c, &one->operands[o], &two->operands[o]);
    }
    return same;
}

/* The functions that stand in the merged text, in the order in which they were written. */
static const struct ptx_function *next_kept(struct comparison *c, uint32_t *input, uint32_t *at)
{
    for (; *input < c->merge->count; ++*input, *at = 0) {
        c->input = c->merge->inputs[*input];
        while (*at < c->input->tree->function_count) {
            const struct ptx_function *function = c->input->tree->functions[(*at)++];
            const struct merge_name *name = &c->input->functions[function->id];
            if (function->defined && (name->own || name->symbol->definition.function == function))
                return function;
        }
    }
    return NULL;
}

static uint32_t compare(struct comparison *c, const struct ptx_module *merged, struct error *why)
{
    uint32_t input = 0, at = 0;
    for (uint32_t i = 0; i < merged->function_count; i++) {
        if (!merged->functions[i]->defined)
            continue;
        const struct ptx_function *old = next_kept(c, &input, &at);
        if (!old || !same_name(c, &c->input->functions[old->id], merged->functions[i]->name) ||
            !same_body(c, old, merged->functions[i])) {
            const char *function = old ? old->name : merged->functions[i]->name;
            return error_set(why, CUDA_ERR_INVALID_SOURCE, MESSAGE_TEXT(merge_confused),
                             c->confused ? c->confused : function, function, c->input->name);
        }
    }
    return 0;
}

uint32_t merge_check(const struct ptx_merge *merge, const char *text, size_t length,
                     struct error *why)
{
    struct comparison comparison = {.merge = merge, .input = merge->inputs[0]};
    struct ptx_module *merged;
    uint32_t error = ptx_read(text, length, &merged, why);
    if (error) {
        error_prefix(why, MESSAGE_TEXT(merge_unread));
        return why->number = error == CUDA_ERR_INVALID_PTX ? (uint32_t)CUDA_ERR_INVALID_SOURCE
                                                           : (uint32_t)CUDA_ERR_OUT_OF_MEMORY;
    }
    error = compare(&comparison, merged, why);
    ptx_destroy(merged);
    return error;
}
