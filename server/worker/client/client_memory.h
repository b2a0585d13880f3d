/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_memory: the device memory and host buffers that a client's commands may name.
 *
 * The supervisor chooses addresses and charges for them; the worker makes, maps and unmaps, on the
 * control thread. Nothing here waits for the client's work: retire.h does that before.
 *
 * Functions that return uint32_t return 0, or an error number with a sentence in why. Addresses are
 * the client's own, counts are bytes.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_MEMORY_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/worker/client/client.h"
#include "common/error.h"

/*
 * Creates memory and maps it at an address of the client's device window. Address and count are
 * multiples of the device's granularity. *fd becomes the exported handle, which the caller owns. No
 * other function allocates device memory for clients. Takes client->lock. Control thread.
 */
uint32_t client_memory_map(struct client *client, uint64_t address, uint64_t count, int *fd,
                           struct error *why);

/*
 * Zeroes what was mapped, and waits until the device has done so: no driver promises that a new
 * handle holds nothing of the memory's last user. Any thread that has the context.
 */
uint32_t client_memory_clear(const struct client *client, uint64_t address, uint64_t count,
                             struct error *why);

/* Unmaps a range that client_memory_map mapped, named exactly. If the driver refuses, the range
 * stays in the client's table and no command may name it. client_memory_forget then removes the
 * range from the table without unmapping it, for a client that leaves all the same. Both take
 * client->lock. Control thread. */
uint32_t client_memory_unmap(struct client *client, uint64_t address, uint64_t count,
                             struct error *why);
void client_memory_forget(struct client *client, uint64_t address, uint64_t count);

/* In a quiet window: the driver gives the buffer back, which nothing uses any more; of a client
 * that ends, all buffers. Idempotent. */
void client_memory_host_unregister(struct client *client, uint64_t address, uint64_t count);
void client_memory_host_unregister_all(struct client *client);

/* Maps a sealed host buffer at its address in the host arena and registers it with the driver, or
 * undoes both. Address and count are multiples of 4096. client_memory_host_map takes fd over, on
 * failure too. Both take client->lock. Control thread. */
uint32_t client_memory_host_map(struct client *client, uint64_t address, uint64_t count, int fd,
                                struct error *why);
uint32_t client_memory_host_unmap(struct client *client, uint64_t address, uint64_t count,
                                  struct error *why);

/* ---- the table; under client->lock ---- */

/* Adds [address, address + count). Returns 0; -EEXIST if it overlaps another range; -EINVAL if it
 * is empty or its end overflows; -ENOMEM. module is the owner of a RANGE_VARIABLE, else NULL. */
int client_memory_range_add(struct client *client, uint64_t address, uint64_t count,
                            enum range_kind kind, const struct client_module *module);

/* The range with exactly this start, size and kind, or NULL. */
struct range *client_memory_range_exact(struct client *client, uint64_t address, uint64_t count,
                                        enum range_kind kind);
void client_memory_range_remove(struct client *client, struct range *range);

/* The range that holds all of [address, address + count), or NULL. Any numbers are allowed; no sum
 * overflows. */
const struct range *client_memory_range_find(const struct client *client, uint64_t address,
                                             uint64_t count);

#endif
