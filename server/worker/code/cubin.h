/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cubin: what the driver of a cubin can't say before CUDA 12.4: the layout of a
 * kernel's parameters, from the ELF section .nv.info.KERNEL.
 *
 * Input is hostile: every offset and size is checked against the bytes given.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_CUBIN_H
#define GPUSHARE_SERVER_WORKER_CODE_CUBIN_H

#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/*
 * Offsets and sizes of the parameters as pairs (2 * PROTO_PARAMETER_COUNT_MAX of them have
 * room) in order; *end: bytes of the whole block. 0; -ENOENT if the cubin has no such
 * kernel; -EINVAL if it is damaged.
 */
int cubin_layout(const uint8_t *cubin, size_t size, const char *kernel, uint32_t *pairs,
                 uint32_t *count, uint64_t *end);

/*
 * Bytes of the cubin's variables (sections .nv.global and .nv.global.init), which the
 * driver allocates when it loads it; UINT64_MAX if they are more than that. 0 for what is no ELF
 * file.
 */
uint64_t cubin_variable_bytes(const uint8_t *cubin, size_t size);

#endif
