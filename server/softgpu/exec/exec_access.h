/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* exec_access: one lane's checked access, for exec_memory and exec_atomic. */
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

#endif
