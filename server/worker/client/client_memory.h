/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client_memory: the device memory and host buffers that a client's commands may name.
 *
 * The supervisor chooses addresses and charges for them; the worker makes, maps and unmaps. Nothing
 * here waits for the client's work: retire.h does that before. The control thread keeps the table:
 * a range is closed, so that no command may name it, while another thread makes what it stands for
 * or gives it up.
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

/* Adds a closed range for device memory of the client's window. Address and count are multiples of
 * the device's granularity. Takes client->lock. Control thread. */
uint32_t client_memory_reserve(struct client *client, uint64_t address, uint64_t count,
                               struct error *why);

/* Creates memory and maps it where a range was reserved. *fd becomes the exported handle, which the
 * caller owns; -1 after a failure. No other function allocates device memory for clients. Any
 * thread that may wait for the context. */
uint32_t client_memory_map(const struct gpu *gpu, uint64_t address, uint64_t count, int *fd,
                           struct error *why);

/* Maps memory that an earlier worker created where a range was reserved. fd is its exported handle,
 * and stays the caller's. Any thread that may wait for the context. */
uint32_t client_memory_remap(const struct gpu *gpu, uint64_t address, uint64_t count, int fd,
                             struct error *why);

/*
 * Zeroes what was mapped, and waits until the device has done so: no driver promises that a new
 * handle holds nothing of the memory's last user. Any thread that may wait for the device.
 */
uint32_t client_memory_clear(const struct client *client, struct quiet_calls *calls,
                             uint64_t address, uint64_t count, struct error *why);

/* Unmaps what client_memory_map mapped, named exactly, and leaves the table alone. Any thread that
 * may wait for the context. */
uint32_t client_memory_unmap(const struct gpu *gpu, uint64_t address, uint64_t count,
                             struct error *why);

/* Commands may name the range; none may; it is removed from the table. The range is named exactly.
 * Take client->lock. Control thread. */
void client_memory_open(struct client *client, uint64_t address, uint64_t count,
                        enum range_kind kind);
void client_memory_close(struct client *client, uint64_t address, uint64_t count,
                         enum range_kind kind);
void client_memory_forget(struct client *client, uint64_t address, uint64_t count,
                          enum range_kind kind);

/* Maps a sealed host buffer at its address in the host arena, and adds a closed range for it, or
 * undoes both. Address and count are multiples of 4096. Takes fd over, on failure too, and
 * client->lock. Control thread. */
uint32_t client_memory_host_reserve(struct client *client, uint64_t address, uint64_t count, int fd,
                                    struct error *why);

/* Registers the next step of a buffer, of which *done bytes are, and adds its bytes to *done. The
 * buffer is registered when *done is count. Any thread that may wait for the context. */
uint32_t client_memory_host_register(const struct gpu *gpu, uint64_t address, uint64_t count,
                                     uint64_t *done, struct error *why);

/* So many bytes of the buffer are registered; keeps: see struct range. Takes client->lock. Control
 * thread. */
void client_memory_host_note(struct client *client, uint64_t address, uint64_t count,
                             uint64_t registered, bool keeps);

/* In a quiet window: the driver gives the buffer back, which nothing uses any more; of a client
 * that ends, all buffers. Idempotent. */
void client_memory_host_unregister(struct client *client, uint64_t address, uint64_t count);
void client_memory_host_unregister_all(struct client *client);

/* Unmaps a buffer that the driver does not know any more, and forgets it. Takes client->lock.
 * Control thread. */
uint32_t client_memory_host_unmap(struct client *client, uint64_t address, uint64_t count,
                                  struct error *why);

/* The same two steps for a buffer that was registered whole and is in no client's table. The first
 * in a quiet window; the second on the control thread. */
void client_memory_host_unregister_whole(const struct gpu *gpu, uint64_t address, uint64_t count);
int client_memory_host_vacate(struct gpu *gpu, uint64_t address, uint64_t count);

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
