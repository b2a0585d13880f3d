/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * cooperative: what a grid has whose blocks wait for each other: all of them fit on the device at
 * once, and a word of memory to meet at, whose address is in %envreg1 and %envreg2. Any thread.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_API_COOPERATIVE_H
#define GPUSHARE_SERVER_SOFTGPU_API_COOPERATIVE_H

#include "server/softgpu/device/grid.h"
#include "server/softgpu/device/stream.h"

/* Gives the launch such a place, which its release gives back. The launch is complete but for
 * that. Returns CUDA_OK, CUDA_ERR_COOPERATIVE_LAUNCH_TOO_LARGE, or CUDA_ERR_OUT_OF_MEMORY. */
cuda_result cooperative_prepare(const struct stream *stream, struct launch *launch);

#endif
