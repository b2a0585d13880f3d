/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device_launch: whether a client's code launches kernels from the device (dynamic parallelism).
 * On compute capability 9.x a loaded module that does lets all green contexts use two
 * multiprocessors more than they have (cuda.h, "Green Contexts"), so nobody's share would hold.
 *
 * Names tell. An image whose names were stripped or changed is not found.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_DEVICE_LAUNCH_H
#define GPUSHARE_SERVER_WORKER_CODE_DEVICE_LAUNCH_H

#include "server/worker/image/code_image.h"
#include "server/worker/device/gpu.h"

/* The function of CUDA's device runtime by which the unpacked image launches; NULL: it does not.
 * Static. */
const char *device_launch_find(const struct code_image *image);

/* Returns 0, or an error number with a sentence in why if the image launches on a device whose
 * partitions that would widen. */
uint32_t device_launch_check(const struct code_image *image, const struct gpu *gpu,
                             struct error *why);

#endif
