/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * driver_image: the images that a program hands to the driver, which come without a size. They are
 * the program's own, and as whole as they say. Any thread.
 */
#ifndef GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_IMAGE_H
#define GPUSHARE_CLIENT_CUDA_DRIVER_BASE_DRIVER_IMAGE_H

#include <stddef.h>

#include "common/cuda/cuda_driver.h"

/* Gives the image and its size in bytes. In place of nvcc's struct around a fatbin, *image becomes
 * the fatbin. 0: it is empty. */
size_t driver_image_measure(const void **image);

#endif
