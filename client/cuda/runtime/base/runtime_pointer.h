/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* runtime_pointer: on which side memory lies, as the driver says. Any thread. */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_POINTER_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_POINTER_H

#include <stdbool.h>

/* Device memory; not managed memory, which is the host's too, and nothing that CUDA does not know.
 */
bool runtime_pointer_is_of_device(const void *ptr);

#endif
