/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_sizes: the parts of a device's multiprocessors that a configuration gives to clients.
 *
 * A worker makes partitions of these sizes before such a client comes, which then waits for no
 * quiet window. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_SIZES_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_SIZES_H

#include <stdint.h>

struct config;

/*
 * Finds the requests and limits of threads that hold for every client, then those of the rules,
 * then those of the profiles, each in the file's order and none above what every client may have.
 * The whole device is no size. Those beyond PROTO_PARTITION_SIZES_MAX are left out; after the last
 * one there are zeros. device: below config->device_count, whose ceiling is known.
 */
void config_sizes_find(const struct config *config, uint32_t device, uint32_t *sizes);

#endif
