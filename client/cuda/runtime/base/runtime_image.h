/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * runtime_image: loads what nvcc's start-up code registers, by calls that every driver has. Any
 * thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_IMAGE_H
#define GPUSHARE_CLIENT_CUDA_RUNTIME_BASE_RUNTIME_IMAGE_H

#include "client/cuda/runtime/base/runtime_abi.h"

/*
 * Loads an image in the current context: a fatbin, or nvcc's struct around one. Of separately
 * compiled parts, what nvlink made of them is loaded if the device can run that; else the driver
 * links the parts. Returns 0, or why the driver loads or links nothing, which the log says too for
 * parts.
 */
cudart_error runtime_image_load(const void *image, cuda_module *module);

#endif
