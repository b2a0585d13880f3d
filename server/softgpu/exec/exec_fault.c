/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include <stdio.h>

#include "server/softgpu/exec/exec.h"

enum exec_result exec_fault(struct warp *w, const struct op *op, enum fault_kind kind,
                            uint32_t lane, uint64_t address, uint32_t size, const char *text)
{
    struct block *b = w->block;
    struct fault *f = &b->fault;
    *f = (struct fault){.kind = kind, .address = address, .size = size, .line = op ? op->line : 0};
    snprintf(f->kernel, sizeof(f->kernel), "%s", w->frame ? w->frame->code->ptx->name : "a kernel");
    struct function_info info;
    function_info(b->launch->function, &info);
    snprintf(f->kernel, sizeof(f->kernel), "%s", info.name);
    for (int i = 0; i < 3; i++) {
        f->block[i] = b->index[i];
        f->thread[i] = w->tid[i][lane & (LANES - 1)];
    }
    struct memory_range range;
    bool heap = kind == FAULT_ILLEGAL_ADDRESS && memory_find(address, &range) && range.heap != NULL;
    snprintf(f->text, sizeof(f->text), "%s%s", text ? text : "",
             heap ? " in the heap where no block is: it was freed, or ends before" : "");
    fault_describe(f);
    return EXEC_FAULT;
}
