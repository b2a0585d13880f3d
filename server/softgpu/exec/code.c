/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Finds the decoded functions of a module, by the declaration or by the address that a kernel
 * has. */
#include <stdlib.h>

#include "server/softgpu/exec/module_private.h"

uint32_t code_key(const struct ptx_function *f)
{
    return f->definition ? f->definition->id : f->id;
}

const struct code *code_of(const struct module *m, const struct ptx_function *f)
{
    return f->definition ? m->codes[f->definition->id] : NULL;
}

uint64_t code_address(const struct ptx_function *f)
{
    return WINDOW_FUNCTION + ((uint64_t)code_key(f) + 1) * 16;
}

const struct code *code_at(const struct module *m, uint64_t address)
{
    uint64_t index = (address & ~WINDOW_MASK) / 16;
    if ((address & WINDOW_MASK) != WINDOW_FUNCTION || address % 16 || index == 0 ||
        index > m->ptx->function_count)
        return NULL;
    return m->codes[index - 1];
}

void code_destroy(struct code *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->call_count; i++) {
        free(c->calls[i].args);
        free(c->calls[i].results);
    }
    free(c->calls);
    free(c->ops);
    free(c->constants);
    free(c->relocations);
    free(c->params);
    free(c->results);
    free(c->tables);
    free(c);
}
