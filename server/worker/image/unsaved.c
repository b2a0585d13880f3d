/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/unsaved.h"

#include <stdbool.h>
#include <string.h>

#include "common/cuda/ptx.h"

/* The operand that says what is called: behind the results, which stand in parentheses. */
static uint32_t called_operand(const struct ptx_instruction *call)
{
    return call->operand_count && call->operands[0].kind == PTX_OPERAND_LIST ? 1 : 0;
}

static bool names_function(const struct ptx_operand *operand)
{
    if (operand->kind == PTX_OPERAND_FUNCTION)
        return true;
    for (uint32_t i = 0; i < operand->count; i++)
        if (names_function(&operand->items[i]))
            return true;
    return false;
}

/* A call by address may use one that another module has left in memory. */
static bool uses_function_address(const struct ptx_instruction *instruction)
{
    bool is_call = strcmp(instruction->opcode, "call") == 0;
    uint32_t called = is_call ? called_operand(instruction) : UINT32_MAX;
    if (is_call && (called >= instruction->operand_count ||
                    instruction->operands[called].kind != PTX_OPERAND_FUNCTION))
        return true;
    for (uint32_t i = 0; i < instruction->operand_count; i++)
        if (i != called && names_function(&instruction->operands[i]))
            return true;
    return false;
}

/* Other addresses of constants count from the beginning of the module's own, wherever they lie. */
static bool makes_generic_constant(const struct ptx_instruction *instruction)
{
    return strcmp(instruction->opcode, "cvta") == 0 && instruction->modifier_count &&
           strcmp(instruction->modifiers[0], "const") == 0;
}

/* Any kernel may follow addresses of data, so they outweigh those of functions. */
static void add(enum proto_unsaved *found, enum proto_unsaved more)
{
    if (*found == PROTO_UNSAVED_NOTHING ||
        (*found == PROTO_UNSAVED_FUNCTION_ADDRESSES && more != PROTO_UNSAVED_NOTHING))
        *found = more;
}

static void find_in_code(const struct ptx_function *function, enum proto_unsaved *found)
{
    for (uint32_t i = 0; i < function->instruction_count; i++) {
        if (uses_function_address(&function->instructions[i]))
            add(found, PROTO_UNSAVED_FUNCTION_ADDRESSES);
        if (makes_generic_constant(&function->instructions[i]))
            add(found, PROTO_UNSAVED_CONSTANT_ADDRESSES);
    }
}

/* Of variables that move, the addresses are the same ones in another worker. */
static void find_in_values(const struct ptx_variable *variable, enum proto_unsaved *found)
{
    for (uint32_t i = 0; i < variable->initialiser_count; i++) {
        const struct ptx_initialiser *value = &variable->initialisers[i];
        if (value->function)
            add(found, PROTO_UNSAVED_FUNCTION_ADDRESSES);
        if (value->variable && value->variable->space == PTX_SPACE_CONST)
            add(found, PROTO_UNSAVED_CONSTANT_ADDRESSES);
    }
}

/* nvcc makes the last one of __nv_aligned_device_malloc. */
static bool is_heap_function(const struct ptx_function *function)
{
    static const char *const names[] = {"malloc", "free", "__cuda_syscall_aligned_malloc"};
    if (function->definition || !function->name)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(function->name, names[i]) == 0)
            return true;
    return false;
}

enum proto_unsaved unsaved_find(const struct ptx_module *tree)
{
    enum proto_unsaved found = PROTO_UNSAVED_NOTHING;
    for (uint32_t i = 0; i < tree->variable_count; i++)
        find_in_values(tree->variables[i], &found);
    for (uint32_t f = 0; f < tree->function_count; f++) {
        const struct ptx_function *function = tree->functions[f];
        if (is_heap_function(function))
            add(&found, PROTO_UNSAVED_DEVICE_HEAP);
        find_in_code(function, &found);
        for (uint32_t i = 0; i < function->variable_count; i++)
            find_in_values(function->variables[i], &found);
    }
    return found;
}
