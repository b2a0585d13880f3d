/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module: a decoded PTX module, its functions and its variables.
 *
 * Instruction side. A module does not change after module_place(); several launches on several
 * threads may use it at once.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"

struct module;
struct function;

/* Frees a module. NULL is allowed. */
void module_destroy(struct module *module);

/*
 * module_global_bytes and module_const_bytes: the bytes of memory that the module's .global and
 * .const variables need.
 *
 * module_place gives them their place: two ranges that the caller has allocated, aligned to 256 and
 * alive as long as the module. It writes initial values and resolves addresses in code. It must be
 * called once before any launch, even if both sizes are 0. Returns 0, or -1 with *error filled in.
 */
size_t module_global_bytes(const struct module *module);
size_t module_const_bytes(const struct module *module);
int module_place(struct module *module, uint64_t global_base, uint64_t const_base,
                 struct error *why);

/* Whether its kernels may allocate memory or free it. */
bool module_allocates(const struct module *module);

/* The kernels (.entry), in the order of the text. */
size_t module_function_count(const struct module *module);
struct function *module_function_at(struct module *module, size_t index);
/* Finds a .global or .const variable by name. Returns 0, or -1 if there is none. */
int module_variable(const struct module *module, const char *name, uint64_t *address,
                    size_t *bytes);
/* Whether the variable of this name is declared as managed memory. */
bool module_variable_managed(const struct module *module, const char *name);

struct function_info {
    const char *name;
    uint32_t param_count;
    uint32_t param_bytes; /* end of the last parameter */
    uint32_t static_shared_bytes;
    /* bytes for each thread: all frames of the deepest known chain of calls */
    uint32_t local_bytes;
    uint32_t const_bytes;
    uint32_t registers;   /* an estimate of the 32-bit registers of a thread */
    uint32_t max_threads; /* .maxntid, or 1024 */
    uint32_t ptx_version; /* 90 for 9.0 */
    uint32_t target;      /* 90 for sm_90 */
};
void function_info(const struct function *function, struct function_info *info);
/* Gives offset and size of a parameter, as cuFuncGetParamInfo does. Returns 0, or -1 behind the
 * last parameter. */
int function_param(const struct function *function, uint32_t index, uint32_t *offset,
                   uint32_t *bytes);

#endif
