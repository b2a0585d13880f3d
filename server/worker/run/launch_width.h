/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * launch width: how much of the multiprocessors a kernel fills, as far as its launch says.
 *
 * The scheduler needs it to tell kernels that run beside each other from kernels that take turns on
 * the device (server/scheduler/balance.h). It follows the rules of NVIDIA's occupancy calculator:
 * threads, registers, shared memory and the number of blocks bound what a multiprocessor holds at
 * once. Rounding that differs between architectures is left out: the answer may be off by an
 * eighth. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_RUN_LAUNCH_WIDTH_H
#define GPUSHARE_SERVER_WORKER_RUN_LAUNCH_WIDTH_H

#include <stdint.h>

struct function;
struct proto_command_launch;
struct proto_device_info;

/* From 1 to SCHEDULER_WIDTH, which is all of these multiprocessors. multiprocessors: of the
 * client's partition. */
uint32_t launch_width(const struct proto_device_info *info, const struct function *function,
                      const struct proto_command_launch *launch, uint32_t multiprocessors);

#endif
