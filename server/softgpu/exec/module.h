/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module: a PTX module decoded once, its functions and its variables.
 *
 * Instruction side. A module is immutable after module_place(); several launches
 * on several threads may use it at once.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"

struct module;
struct function;

/* NULL does nothing. */
void module_destroy(struct module *module);

/*
 * Bytes of memory the module's .global and .const variables need, and giving
 * them their place: two ranges that the caller has allocated (256-aligned, alive
 * as long as the module). Initial values are written, addresses in code resolved.
 * Must be called once before any launch, also when both sizes are 0.
 */
size_t module_global_bytes(const struct module *module);
size_t module_const_bytes(const struct module *module);
int module_place(struct module *module, uint64_t global_base, uint64_t const_base,
                 struct error *why);

struct function *module_function(struct module *module,
                                 const char *name); /* .entry only, or NULL */
size_t module_function_count(const struct module *module);
struct function *module_function_at(struct module *module, size_t index);
/* Any .global or .const variable by name. Returns 0, or -1 if absent. */
int module_variable(const struct module *module, const char *name, uint64_t *address,
                    size_t *bytes);

struct function_info {
    const char *name;
    uint32_t param_count;
    uint32_t param_bytes; /* end of the last parameter */
    uint32_t static_shared_bytes;
    uint32_t local_bytes; /* per thread, all frames of the deepest known call chain */
    uint32_t const_bytes;
    uint32_t registers;   /* 32-bit registers a thread would need; an estimate */
    uint32_t max_threads; /* .maxntid, or 1024 */
    uint32_t ptx_version; /* 90 for 9.0 */
    uint32_t target;      /* 90 for sm_90 */
};
void function_info(const struct function *function, struct function_info *info);
/* Parameter index: offset and size as cuFuncGetParamInfo gives them. -1 past the last. */
int function_param(const struct function *function, uint32_t index, uint32_t *offset,
                   uint32_t *bytes);

#endif
