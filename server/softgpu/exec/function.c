/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/exec/module_private.h"

void function_info(const struct function *f, struct function_info *info)
{
    const struct ptx_function *p = f->ptx;
    uint32_t most = p->max_threads[0] * p->max_threads[1] * p->max_threads[2];
    *info = (struct function_info){
        .name = p->name,
        .param_count = p->param_count,
        .param_bytes = (uint32_t)ptx_param_offset(p, p->param_count),
        .static_shared_bytes = f->static_shared_bytes,
        .local_bytes = f->local_bytes,
        .const_bytes = (uint32_t)f->module->const_bytes,
        .registers = f->registers ? f->registers : 1,
        .max_threads = most && most < 1024 ? most : 1024,
        .ptx_version = f->module->ptx->version,
        .target = f->module->ptx->target,
    };
}

int function_param(const struct function *f, uint32_t index, uint32_t *offset, uint32_t *bytes)
{
    if (index >= f->ptx->param_count)
        return -1;
    if (offset)
        *offset = (uint32_t)ptx_param_offset(f->ptx, index);
    if (bytes)
        *bytes = (uint32_t)f->ptx->params[index]->bytes;
    return 0;
}
