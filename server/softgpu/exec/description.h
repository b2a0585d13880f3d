/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * description: what a driver knows of a module without its code: the size of its variables, and of
 * each kernel the name, the parameters and the attributes. A cubin has the same in its sections, so
 * a linked image has a description beside its PTX (container.h).
 *
 * A description is one piece of bytes: struct description, then its kernels, then two numbers for
 * each parameter of theirs, then the names. Two modules of the same description are the same to a
 * caller that runs none of their kernels.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_DESCRIPTION_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/softgpu/exec/module.h"

struct description {
    uint64_t global_bytes, const_bytes;
    uint32_t kernel_count, parameter_count, name_bytes;
    uint32_t allocates; /* 1: its kernels may allocate memory or free it, else 0 */
};

struct description_kernel {
    uint32_t name;      /* the offset of its first letter in the names */
    uint32_t parameter; /* the number of its first parameter */
    uint32_t parameter_count, parameter_bytes;
    uint32_t static_shared_bytes, local_bytes, const_bytes;
    uint32_t registers, max_threads, ptx_version, target;
};

/* Of a decoded module. The caller frees it; NULL: no memory. */
struct description *description_make(const struct module *module);

size_t description_bytes(const struct description *description);

/* A copy of bytes that anybody may have written, at any address; the caller frees it. Returns NULL
 * without memory, and for bytes that are no description (*good is false then). */
struct description *description_read(const void *bytes, size_t count, bool *good);

/* info->name lives as long as the description. */
void description_info(const struct description *description, uint32_t kernel,
                      struct function_info *info);
/* As function_param. */
int description_param(const struct description *description, uint32_t kernel, uint32_t index,
                      uint32_t *offset, uint32_t *bytes);

#endif
