/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/exec/module.h"

#include <stdlib.h>
#include <string.h>

#include "server/softgpu/exec/module_private.h"

void module_destroy(struct module *m)
{
    if (!m)
        return;
    if (m->leave) {
        m->leave(m);
        return;
    }
    for (uint32_t i = 0; m->codes && i < m->ptx->function_count; i++)
        code_destroy(m->codes[i]);
    free(m->codes);
    free(m->functions);
    free(m->places);
    free(m->groups);
    free(m->shared_bytes);
    ptx_destroy(m->ptx);
    free(m);
}

size_t module_global_bytes(const struct module *m)
{
    return m->global_bytes;
}

size_t module_const_bytes(const struct module *m)
{
    return m->const_bytes;
}

bool module_allocates(const struct module *m)
{
    for (uint32_t i = 0; i < m->ptx->function_count; i++) {
        const struct ptx_function *f = m->ptx->functions[i];
        if (!f->definition && !f->defined && exec_system_allocates(f->name))
            return true;
    }
    return false;
}

/* ---- placing ---- */

static uint64_t variable_address(const struct module *m, const struct ptx_variable *v)
{
    uint64_t at = m->places[v->id].offset;
    return v->space == PTX_SPACE_GLOBAL  ? m->global_base + at
           : v->space == PTX_SPACE_CONST ? m->const_base + at
                                         : at;
}

static void write_initial(const struct module *m, const struct ptx_variable *v)
{
    uint8_t *base = (uint8_t *)(uintptr_t)variable_address(m, v);
    for (uint32_t i = 0; i < v->initialiser_count; i++) {
        const struct ptx_initialiser *item = &v->initialisers[i];
        uint64_t value = item->value;
        if (item->variable) {
            value += variable_address(m, item->variable);
            if (item->generic && item->variable->space == PTX_SPACE_SHARED)
                value += WINDOW_SHARED;
        }
        if (item->function)
            value += code_address(item->function);
        if (item->mask)
            value = (value & item->mask) >> __builtin_ctzll(item->mask);
        memcpy(base + item->offset, &value, item->bytes < 8 ? item->bytes : 8);
    }
}

int module_place(struct module *m, uint64_t global_base, uint64_t const_base, struct error *why)
{
    if (m->placed) {
        error_set(why, CUDA_ERR_INVALID_PTX, "the module has its place already");
        return -1;
    }
    m->global_base = global_base;
    m->const_base = const_base;
    m->placed = true;
    if (m->global_bytes)
        memset((void *)(uintptr_t)global_base, 0, m->global_bytes);
    if (m->const_bytes)
        memset((void *)(uintptr_t)const_base, 0, m->const_bytes);
    for (uint32_t i = 0; i < m->ptx->variable_ids; i++) {
        const struct ptx_variable *v = m->places[i].variable;
        if (v && v->space != PTX_SPACE_SHARED)
            write_initial(m, v);
    }
    for (uint32_t i = 0; i < m->ptx->function_count; i++) {
        struct code *c = m->codes[i];
        for (uint32_t k = 0; c && k < c->relocation_count; k++) {
            uint64_t *row = (uint64_t *)(void *)(c->constants + c->relocations[k].slot);
            uint64_t value =
                variable_address(m, c->relocations[k].variable) + c->relocations[k].addend;
            for (int lane = 0; lane < LANES; lane++)
                row[lane] = value;
        }
    }
    return 0;
}

/* ---- looking things up ---- */

size_t module_function_count(const struct module *m)
{
    return m->function_count;
}

struct function *module_function_at(struct module *m, size_t index)
{
    return index < m->function_count ? &m->functions[index] : NULL;
}

int module_variable(const struct module *m, const char *name, uint64_t *address, size_t *bytes)
{
    const struct ptx_variable *v = ptx_find_variable(m->ptx, name);
    if (!v || (v->space != PTX_SPACE_GLOBAL && v->space != PTX_SPACE_CONST))
        return -1;
    if (address)
        *address = variable_address(m, v);
    if (bytes)
        *bytes = v->bytes;
    return 0;
}

bool module_variable_managed(const struct module *m, const char *name)
{
    const struct ptx_variable *v = ptx_find_variable(m->ptx, name);
    return v && v->managed && v->space == PTX_SPACE_GLOBAL;
}
