/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_error: a driver's refusal as a sentence that names its usual cause and the
 * remedy, where one is known.
 */
#ifndef GPUSHARE_COMMON_CUDA_DRIVER_ERROR_H
#define GPUSHARE_COMMON_CUDA_DRIVER_ERROR_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"

/* The name of a result; never NULL. Static. */
const char *driver_error_name(cuda_result result);

/* "the driver's CALL failed: ...": call is the name of a function. result is not CUDA_OK. Returns
 * the error number. */
uint32_t driver_error_set(struct error *why, const char *call, cuda_result result);

/* The same for cuInit, whose refusals are about the machine rather than the call. */
uint32_t driver_error_set_init(struct error *why, cuda_result result);

#endif
