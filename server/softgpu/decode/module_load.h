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
 * 0 and a module, or the CUresult that *why has then (INVALID_PTX, UNSUPPORTED_PTX_VERSION or
 * OUT_OF_MEMORY); the sentence names the culprit: "line 41: unknown instruction 'tcgen05.mma'".
 */
uint32_t module_load(const char *text, size_t length, struct module **module, struct error *why);

#endif
