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
 * Reads and decodes PTX text, which need not end with NUL and stays the caller's. An unknown
 * instruction, type or directive is an error here, and never a wrong result later. Returns 0 and a
 * module, which module_destroy() frees; or the number that *why has then.
 */
uint32_t module_load(const char *text, size_t length, struct module **module, struct error *why);

#endif
