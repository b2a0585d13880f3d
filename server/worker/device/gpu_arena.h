/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * gpu_arena: reserving the device arena with the driver and the host arena with the
 * kernel, and choosing a pair of them that both give.
 *
 * A hint is only a hint: drivers answer it with another place or with an error, and some
 * GPUs have fewer address bits than the CPU. So there is a ladder of sizes and bases,
 * the preferred ones first. The supervisor makes one address plan for all devices; it
 * learns what can be had from `gpushare-worker --list`, which sees all devices and goes
 * down the ladder. A worker then reserves exactly that pair.
 */
#ifndef GPUSHARE_SERVER_WORKER_DEVICE_GPU_ARENA_H
#define GPUSHARE_SERVER_WORKER_DEVICE_GPU_ARENA_H

#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/error.h"
#include "common/ipc/arena.h"

/* Needs no driver. Returns 0, or an error number that *why explains. */
uint32_t gpu_arena_reserve_host(const struct arena *arena, struct error *why);

/* After cuInit; needs no context. Returns 0, or an error number that *why explains. */
uint32_t gpu_arena_reserve_device(const struct cuda_driver *cuda, const struct arena *arena,
                                  struct error *why);

/*
 * Finds the first pair that can be reserved, and leaves nothing reserved. only: the one
 * that the administrator named, tried alone; NULL: the ladder. After cuInit. Returns 0
 * with *chosen set, or an error number: *why names the pair, or both ends of the ladder.
 */
uint32_t gpu_arena_choose(const struct cuda_driver *cuda, const struct arena *only,
                          struct arena *chosen, struct error *why);

#endif
