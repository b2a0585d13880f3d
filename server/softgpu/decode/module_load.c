/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/decode/module_load.h"

#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "server/softgpu/decode/decode.h"

enum { NEWEST_VERSION = 99 }; /* an unknown feature is refused by its name, not by its version */

static uint32_t refuse_memory(struct error *why)
{
    return error_set(why, CUDA_ERR_OUT_OF_MEMORY, "out of host memory");
}

static uint32_t refuse_variable(struct error *why, const struct ptx_variable *v, const char *what)
{
    return error_set(why, CUDA_ERR_INVALID_PTX, "line %u: '%.100s' %s", v->line, v->name, what);
}

/* ---- shared memory: functions that reach the same variables lay them out together ---- */

struct groups {
    uint32_t *parent; /* functions, then variables, then the one of unknown callees */
    uint32_t functions, all;
};

static uint32_t group_of(struct groups *g, uint32_t i)
{
    while (g->parent[i] != i) {
        g->parent[i] = g->parent[g->parent[i]];
        i = g->parent[i];
    }
    return i;
}

static void join_groups(struct groups *g, uint32_t a, uint32_t b)
{
    a = group_of(g, a);
    b = group_of(g, b);
    /* Linked towards functions, so that a group with a function is named by one. */
    if (a < b)
        g->parent[b] = a;
    else
        g->parent[a] = b;
}

static void join_operand(struct groups *g, const struct ptx_function *f,
                         const struct ptx_operand *op, bool called)
{
    if (op->kind == PTX_OPERAND_VARIABLE && op->variable->space == PTX_SPACE_SHARED)
        join_groups(g, f->id, g->functions + op->variable->id);
    if (op->kind == PTX_OPERAND_FUNCTION)
        join_groups(g, called ? f->id : g->all, code_key(op->function));
    for (uint32_t i = 0; i < op->count; i++)
        join_operand(g, f, &op->items[i], called);
}

static void join_function(struct groups *g, const struct ptx_function *f)
{
    for (uint32_t i = 0; i < f->instruction_count; i++) {
        const struct ptx_instruction *ins = &f->instructions[i];
        bool call = strcmp(ins->opcode, "call") == 0, direct = false;
        for (uint32_t k = 0; k < ins->operand_count; k++) {
            direct |= ins->operands[k].kind == PTX_OPERAND_FUNCTION;
            join_operand(g, f, &ins->operands[k], call);
        }
        if (call && !direct)
            join_groups(g, f->id, g->all);
    }
    for (uint32_t i = 0; i < f->variable_count; i++) {
        if (f->variables[i]->space == PTX_SPACE_SHARED)
            join_groups(g, f->id, g->functions + f->variables[i]->id);
    }
}

static void place_shared(struct module *m, struct groups *g, const struct ptx_variable *v,
                         bool open)
{
    if (v->space != PTX_SPACE_SHARED || (v->bytes == 0) != open)
        return;
    uint64_t *bytes = &m->shared_bytes[group_of(g, g->functions + v->id)];
    uint64_t align = open && v->align < 16 ? 16 : v->align;
    uint64_t at = (*bytes + align - 1) & ~(align - 1);
    m->places[v->id] = (struct placed){v, at};
    *bytes = at + v->bytes;
}

static void each_variable(struct module *m, struct groups *g, bool open)
{
    const struct ptx_module *p = m->ptx;
    for (uint32_t i = 0; i < p->variable_count; i++)
        place_shared(m, g, p->variables[i], open);
    for (uint32_t i = 0; i < p->function_count; i++) {
        for (uint32_t k = 0; k < p->functions[i]->variable_count; k++)
            place_shared(m, g, p->functions[i]->variables[k], open);
    }
}

/*
 * Open arrays (extern .shared name[]) begin at the end of the static ones, all at the same place.
 * The second pass aligns the end of the group to the strictest of them. The third gives that end to
 * all of them.
 */
static uint32_t place_all_shared(struct module *m, struct error *why)
{
    const struct ptx_module *p = m->ptx;
    struct groups g = {.functions = p->function_count};
    uint64_t total = (uint64_t)p->function_count + p->variable_ids + 1;
    g.all = (uint32_t)total - 1;
    g.parent = calloc(total, sizeof(*g.parent));
    m->shared_bytes = calloc(total, sizeof(*m->shared_bytes));
    m->groups = calloc((size_t)p->function_count + 1, sizeof(*m->groups));
    if (!g.parent || !m->shared_bytes || !m->groups) {
        free(g.parent);
        return refuse_memory(why);
    }
    for (uint32_t i = 0; i < total; i++)
        g.parent[i] = i;
    for (uint32_t i = 0; i < p->function_count; i++)
        join_function(&g, p->functions[i]);
    each_variable(m, &g, false);
    each_variable(m, &g, true);
    each_variable(m, &g, true);
    for (uint32_t i = 0; i < p->function_count; i++)
        m->groups[i] = group_of(&g, i);
    free(g.parent);
    return 0;
}

/* ---- .global and .const ---- */

enum { CONSTANT_BYTES = 65536 };

static uint32_t place_memory(struct module *m, const struct ptx_variable *v, struct error *why)
{
    if (v->space != PTX_SPACE_GLOBAL && v->space != PTX_SPACE_CONST)
        return 0;
    if (v->linkage == PTX_LINK_EXTERN)
        return refuse_variable(why, v, "is declared .extern and defined nowhere");
    if (v->type == PTX_TEXREF || v->type == PTX_SAMPLERREF || v->type == PTX_SURFREF)
        return refuse_variable(why, v, "is a texture, sampler or surface, which are not supported");
    size_t *bytes = v->space == PTX_SPACE_GLOBAL ? &m->global_bytes : &m->const_bytes;
    if (v->align > 256)
        return refuse_variable(why, v, "asks for an alignment above 256");
    uint64_t at = (*bytes + v->align - 1) & ~(uint64_t)(v->align - 1);
    if (at + v->bytes > UINT64_C(1) << 40)
        return refuse_variable(why, v, "is too large");
    if (v->space == PTX_SPACE_CONST && at + v->bytes > CONSTANT_BYTES)
        return refuse_variable(why, v, "does not fit: a module has 64 KiB of constant memory");
    m->places[v->id] = (struct placed){v, at};
    *bytes = at + v->bytes;
    return 0;
}

static uint32_t place_all_memory(struct module *m, struct error *why)
{
    const struct ptx_module *p = m->ptx;
    for (uint32_t i = 0; i < p->variable_count; i++) {
        uint32_t error = place_memory(m, p->variables[i], why);
        if (error)
            return error;
    }
    for (uint32_t i = 0; i < p->function_count; i++) {
        for (uint32_t k = 0; k < p->functions[i]->variable_count; k++) {
            uint32_t error = place_memory(m, p->functions[i]->variables[k], why);
            if (error)
                return error;
        }
    }
    return 0;
}

/* ---- functions ---- */

enum { CHAIN_UNKNOWN = 0, CHAIN_DEPTH = 64 };

/*
 * Local memory of the deepest chain of direct calls. known[] holds 1 + the result for each
 * function. A call back into the chain, or beyond CHAIN_DEPTH, adds nothing, because the stack
 * grows as it runs.
 */
static uint32_t chain_bytes(const struct module *m, uint32_t id, uint32_t depth, uint32_t *known)
{
    const struct code *code = m->codes[id];
    uint32_t deepest = 0;
    if (!code || depth == CHAIN_DEPTH)
        return 0;
    if (known[id] != CHAIN_UNKNOWN)
        return known[id] - 1;
    known[id] = 1;
    for (uint32_t i = 0; i < code->call_count; i++) {
        const struct ptx_function *callee = code->calls[i].callee;
        uint32_t bytes = callee ? chain_bytes(m, callee->id, depth + 1, known) : 0;
        deepest = max(deepest, bytes);
    }
    uint32_t own = (code->local_bytes + 15) & ~15u;
    known[id] = 1 + own + deepest;
    return own + deepest;
}

static uint32_t add_function(struct module *m, uint32_t id, const uint32_t *known,
                             struct error *why)
{
    const struct ptx_function *f = m->ptx->functions[id];
    uint64_t shared = m->shared_bytes[m->groups[id]];
    if (!f->entry || !m->codes[id])
        return 0;
    if (ptx_param_offset(f, f->param_count) > 32764)
        return error_set(why, CUDA_ERR_INVALID_PTX,
                         "line %u: the parameters of kernel '%.100s' exceed 32764 bytes", f->line,
                         f->name);
    if (shared > UINT32_MAX / 2)
        return error_set(why, CUDA_ERR_INVALID_PTX,
                         "line %u: the shared memory of kernel '%.100s' exceeds 2 GiB", f->line,
                         f->name);
    uint32_t words = min(m->codes[id]->register_words, 255u);
    m->functions[m->function_count++] = (struct function){
        .module = m,
        .ptx = f,
        .code = m->codes[id],
        .static_shared_bytes = (uint32_t)shared,
        .local_bytes = known[id] - 1,
        .registers = words,
    };
    return 0;
}

static uint32_t decode_functions(struct module *m, struct error *why)
{
    const struct ptx_module *p = m->ptx;
    m->codes = calloc((size_t)p->function_count + 1, sizeof(*m->codes));
    m->functions = calloc((size_t)p->function_count + 1, sizeof(*m->functions));
    if (!m->codes || !m->functions)
        return refuse_memory(why);
    for (uint32_t i = 0; i < p->function_count; i++) {
        if (!p->functions[i]->defined)
            continue;
        m->codes[i] = decode_function(m, p->functions[i], why);
        if (!m->codes[i])
            return why->number;
    }
    uint32_t *known = calloc((size_t)p->function_count + 1, sizeof(*known));
    if (!known)
        return refuse_memory(why);
    for (uint32_t i = 0; i < p->function_count; i++) {
        if (p->functions[i]->entry && m->codes[i])
            chain_bytes(m, i, 0, known);
    }
    uint32_t error = 0;
    for (uint32_t i = 0; i < p->function_count && !error; i++)
        error = add_function(m, i, known, why);
    free(known);
    return error;
}

static uint32_t read_module(struct module *m, const char *text, size_t length, struct error *why)
{
    uint32_t error = ptx_read(text, length, &m->ptx, why);
    /* The reader's numbers are the server's; a driver has one for want of memory. */
    if (error)
        return why->number = error == CUDA_ERR_INVALID_PTX ? error : CUDA_ERR_OUT_OF_MEMORY;
    if (m->ptx->version > NEWEST_VERSION)
        return error_set(why, CUDA_ERR_UNSUPPORTED_PTX_VERSION, "line 1: unknown version of PTX");
    m->places = calloc((size_t)m->ptx->variable_ids + 1, sizeof(*m->places));
    if (!m->places)
        return refuse_memory(why);
    error = place_all_shared(m, why);
    if (!error)
        error = place_all_memory(m, why);
    return error ? error : decode_functions(m, why);
}

uint32_t module_load(const char *text, size_t length, struct module **module, struct error *why)
{
    struct module *m = calloc(1, sizeof(*m));
    *module = NULL;
    if (!m)
        return refuse_memory(why);
    /* Callers often count the terminating NUL as part of an image. */
    while (length && text[length - 1] == '\0')
        length--;
    uint32_t error = read_module(m, text, length, why);
    if (error) {
        module_destroy(m);
        return error;
    }
    *module = m;
    return 0;
}
