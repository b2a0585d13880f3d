/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/fault.h"

#include <stdio.h>
#include <string.h>

/* CUresult and what the kernel did, by kind. */
static const struct {
    cuda_result result;
    const char *sentence;
} kinds[] = {
    [FAULT_NONE] = {CUDA_OK, "no fault"},
    [FAULT_ILLEGAL_ADDRESS] = {CUDA_ERR_ILLEGAL_ADDRESS, "illegal address"},
    [FAULT_MISALIGNED_ADDRESS] = {CUDA_ERR_MISALIGNED_ADDRESS, "misaligned address"},
    [FAULT_INVALID_ADDRESS_SPACE] = {CUDA_ERR_INVALID_ADDRESS_SPACE, "address of the wrong space"},
    [FAULT_ILLEGAL_INSTRUCTION] = {CUDA_ERR_ILLEGAL_INSTRUCTION, "illegal instruction"},
    [FAULT_STACK] = {CUDA_ERR_HARDWARE_STACK_ERROR, "stack exhausted"},
    [FAULT_TRAP] = {CUDA_ERR_LAUNCH_FAILED, "trap"},
    [FAULT_ASSERT] = {CUDA_ERR_ASSERT, "assertion failed"},
    [FAULT_HEAP] = {CUDA_ERR_LAUNCH_FAILED, "misuse of the heap"},
};

cuda_result fault_result(enum fault_kind kind)
{
    return (size_t)kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind].result
                                                           : CUDA_ERR_LAUNCH_FAILED;
}

void fault_describe(struct fault *fault)
{
    size_t kind = (size_t)fault->kind < sizeof(kinds) / sizeof(kinds[0]) ? fault->kind : FAULT_TRAP;
    char detail[sizeof(fault->text) + 4], address[64] = "";
    snprintf(detail, sizeof(detail), "%s%s", fault->text[0] ? ": " : "", fault->text);
    if (fault->size)
        snprintf(address, sizeof(address), " 0x%llx (%u B)", (unsigned long long)fault->address,
                 fault->size);
    char out[1024];
    snprintf(out, sizeof(out), "%s%s in %s, block (%u,%u,%u), thread (%u,%u,%u), PTX line %u%s",
             kinds[kind].sentence, address, fault->kernel, fault->block[0], fault->block[1],
             fault->block[2], fault->thread[0], fault->thread[1], fault->thread[2], fault->line,
             detail);
    out[sizeof(fault->text) - 1] = '\0';
    memcpy(fault->text, out, sizeof(fault->text));
}
