/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_memory: the device memory and host buffers that a client's commands may name.
 *
 * The supervisor decides addresses and charges; the worker makes, maps and unmaps,
 * on the control thread. Nothing here waits for work: see retire.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_MEMORY_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/client/client.h"
#include "common/error.h"

/*
 * Creates memory and maps it at an address of the client's device window; *fd is
 * the exported handle, the caller's. The only place where device memory of clients
 * is allocated. 0 or an error number. Takes client->lock.
 */
uint32_t client_memory_map(struct client *client, uint64_t address, uint64_t count, int *fd,
                           struct error *why);

/*
 * Zeroes what was mapped, and waits until that is done: no driver promises that a new handle
 * holds nothing of the memory's last user. Any one thread with the context.
 */
uint32_t client_memory_clear(const struct client *client, uint64_t address, uint64_t count,
                             struct error *why);

/* Unmaps what client_memory_map mapped. If the driver refuses, the range stays in the client's
 * table, and no command may name it; client_memory_forget is for when the client goes all the same.
 */
uint32_t client_memory_unmap(struct client *client, uint64_t address, uint64_t count,
                             struct error *why);
void client_memory_forget(struct client *client, uint64_t address, uint64_t count);

/* Maps a sealed host buffer at its address in the host arena and registers it; takes fd over. */
uint32_t client_memory_host_map(struct client *client, uint64_t address, uint64_t count, int fd,
                                struct error *why);
uint32_t client_memory_host_unmap(struct client *client, uint64_t address, uint64_t count,
                                  struct error *why);

/* ---- the table; under client->lock ---- */

/* Adds [address, address + count). -EEXIST if it meets another range, -ENOMEM, -EINVAL. */
int client_memory_range_add(struct client *client, uint64_t address, uint64_t count,
                            enum range_kind kind, const struct client_module *module);

/* The range that is exactly this, or NULL. */
struct range *client_memory_range_exact(struct client *client, uint64_t address, uint64_t count,
                                        enum range_kind kind);
void client_memory_range_remove(struct client *client, struct range *range);

/* The range that holds all of [address, address + count), or NULL; no sum overflows. */
const struct range *client_memory_range_find(const struct client *client, uint64_t address,
                                             uint64_t count);

#endif
