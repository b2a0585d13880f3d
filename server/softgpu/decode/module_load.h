/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * module_load: makes a module from PTX text. It reads the text, lays out the variables and decodes
 * the functions. exec/module.h says what a module is afterwards.
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
