/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/fault.h"

#include <stdio.h>
#include <string.h>

/* CUresult and what the kernel did, by kind. */
static const struct {
    int result;
    const char *sentence;
} kinds[] = {
    [FAULT_NONE] = {0, "no fault"},
    [FAULT_ILLEGAL_ADDRESS] = {700, "illegal address"},
    [FAULT_MISALIGNED_ADDRESS] = {716, "misaligned address"},
    [FAULT_INVALID_ADDRESS_SPACE] = {717, "address of the wrong space"},
    [FAULT_ILLEGAL_INSTRUCTION] = {715, "illegal instruction"},
    [FAULT_STACK] = {714, "stack exhausted"},
    [FAULT_TRAP] = {719, "trap"},
    [FAULT_ASSERT] = {710, "assertion failed"},
};

int fault_result(enum fault_kind kind)
{
    return (size_t)kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind].result : 719;
}

void fault_describe(struct fault *fault)
{
    size_t kind = (size_t)fault->kind < sizeof(kinds) / sizeof(kinds[0]) ? fault->kind : FAULT_TRAP;
    char detail[sizeof(fault->text) + 4], address[64] = "";
    snprintf(detail, sizeof(detail), "%s%s", fault->text[0] ? ": " : "", fault->text);
    if (fault->size)
        snprintf(address, sizeof(address), " 0x%llx (%u bytes)", (unsigned long long)fault->address,
                 fault->size);
    char out[1024];
    snprintf(out, sizeof(out), "%s%s in %s, block (%u,%u,%u), thread (%u,%u,%u), PTX line %u%s",
             kinds[kind].sentence, address, fault->kernel, fault->block[0], fault->block[1],
             fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2], fault->line,
             detail);
    out[sizeof(fault->text) - 1] = '\0';
    memcpy(fault->text, out, sizeof(fault->text));
}
