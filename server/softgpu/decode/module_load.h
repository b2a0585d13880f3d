/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module_load: PTX text made into a module: read, its variables laid out, its functions
 * decoded. What a module is afterwards, module.h says.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DECODE_MODULE_LOAD_H
#define GPUSHARE_SERVER_SOFTGPU_DECODE_MODULE_LOAD_H

#include "server/softgpu/exec/module.h"

/*
 * Parses and decodes PTX text (need not be NUL-terminated; copied). An unknown
 * instruction, type or directive is an error here, never a wrong result later.
 * Returns 0 and a module, or -1 and an error.
 */
int module_load(const char *text, size_t length, struct module **module,
                struct module_error *error);

#endif
