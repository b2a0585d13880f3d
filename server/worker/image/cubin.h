/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cubin: the layout of a kernel's parameters, from the section .nv.info.KERNEL of the ELF file.
 * Before CUDA 12.4 the driver can't say it.
 *
 * The input is hostile: every offset and size is checked against the bytes given. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_CUBIN_H
#define GPUSHARE_SERVER_WORKER_IMAGE_CUBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

/*
 * Whether the bytes are an ELF file that has its tables, and the contents of its sections, within
 * them. A driver is told no size: it reads where the file says.
 */
bool cubin_is_whole(const uint8_t *cubin, size_t size);

/*
 * Fills pairs with offset and size of each parameter, in order; it has room for
 * PROTO_PARAMETER_COUNT_MAX pairs. *end becomes the size of all parameters in bytes. Returns 0;
 * -ENOENT if the cubin has no such kernel, or no section about its parameters; -EINVAL if the
 * cubin is damaged.
 */
int cubin_layout(const uint8_t *cubin, size_t size, const char *kernel, uint32_t *pairs,
                 uint32_t *count, uint64_t *end);

/*
 * Bytes of the cubin's variables (sections .nv.global and .nv.global.init), for which the driver
 * allocates memory on loading. UINT64_MAX if the sum overflows, or the bytes are no ELF file.
 */
uint64_t cubin_variable_bytes(const uint8_t *cubin, size_t size);

/* Whether the cubin defines or refers to a symbol whose name begins so, or has so
 * many tables of symbols that they are not read. False if the bytes are no ELF file. */
bool cubin_names(const uint8_t *cubin, size_t size, const char *prefix);

#endif
