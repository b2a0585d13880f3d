/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* exec_access: checked access to memory, for the exec_* files; exec_memory.c has it. */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_ACCESS_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_ACCESS_H

#include "server/softgpu/exec/exec.h"

struct access_request {
    uint32_t space; /* enum ptx_space; NONE: generic */
    uint32_t bytes, align;
    uint32_t need; /* MEMORY_READ | MEMORY_WRITE */
};

/* Returns the host's pointer for an address that one lane uses. Returns NULL, and *why, if the
 * lane may not access it. */
uint8_t *exec_access_pointer(struct warp *warp, const struct access_request *request, uint32_t lane,
                             uint64_t address, enum fault_kind *why);

/* The same for all lanes of mask, at op->a + op->imm. The other lanes get a pointer that may be
 * accessed, too. `doing` names the access in the report of a fault; then it returns false. */
bool exec_access_lanes(struct warp *warp, const struct op *op, uint32_t mask,
                       const struct access_request *request, const char *doing, uint64_t *host);

#endif
