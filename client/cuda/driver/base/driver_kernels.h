/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_kernels: the names of a module's kernels, for programs that ask which it has. They are
 * read from its PTX when it is loaded; those of machine code are not known. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_KERNELS_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_KERNELS_H

#include <stddef.h>

#include "client/gpushare.h"
#include "common/cuda/cuda_driver.h"

/* Remembers the kernels of a module that was loaded from this PTX. Without memory they are not
 * known. */
void driver_kernels_note(gpushare_module *module, const char *text, size_t length);

/*
 * Gives the module's kernels. *functions is malloc'ed, the caller's. Returns 0;
 * CUDA_ERR_NOT_SUPPORTED if they are not known; or CUDA_ERR_OUT_OF_MEMORY.
 */
cuda_result driver_kernels_list(gpushare_module *module, gpushare_function ***functions,
                                unsigned *count);

#endif
