/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* module_private: the members of modules and functions, for module, code, function, decode and
 * block. */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_PRIVATE_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_PRIVATE_H

#include <stdbool.h>

#include "common/cuda/ptx.h"
#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/module.h"

struct function {
    struct module *module;
    const struct ptx_function *ptx;
    const struct code *code;
    uint32_t static_shared_bytes, local_bytes, registers;
};

/* The place of a variable. The array is indexed by ptx_variable.id. */
struct placed {
    const struct ptx_variable *variable; /* NULL: registers, parameters and locals */
    uint64_t offset;                     /* in its space's range, or in shared memory */
};

struct module {
    struct ptx_module *ptx;
    struct placed *places;
    struct code **codes;        /* by ptx_function.id; NULL without body */
    struct function *functions; /* the entries */
    size_t function_count;
    size_t global_bytes, const_bytes;
    uint64_t global_base, const_base;
    bool placed;
    uint32_t *groups;       /* by function id: its group of shared memory */
    uint64_t *shared_bytes; /* by group */
    /* Of one that has most of this in common with others (module_share.h): whose it is, and what
     * frees the rest. Else NULL. */
    struct module_origin *origin;
    void (*leave)(struct module *module);
};

/* ---- code ---- */

/* The number of the function that a declaration means. It is an index into `codes`, if the
 * function has a body. */
uint32_t code_key(const struct ptx_function *function);
/* NULL does nothing. */
void code_destroy(struct code *code);

#endif
