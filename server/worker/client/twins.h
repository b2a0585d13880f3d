/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * twins: the memory of a client that stands for constants of its modules (image/constants.h). Bytes
 * that a command writes there are copied to the constants behind it.
 *
 * Under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_TWINS_H
#define GPUSHARE_SERVER_WORKER_CLIENT_TWINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct client_module;

/* `bytes` of the client's memory at address, and the driver's memory that has the same contents. */
struct twin {
    uint64_t address, bytes, constant;
    const struct client_module *module;
};

/* Adds a twin, which overlaps no other. Returns 0 or -ENOMEM. */
int twins_add(struct client *client, const struct twin *twin);

/* Removes all twins of a module. */
void twins_remove(struct client *client, const struct client_module *module);

/*
 * The parts of twins that lie in [address, address + bytes), in order; each is written to `found`
 * as a twin of its own. Returns how many there are; of more than `room` only so many are written.
 */
size_t twins_find(const struct client *client, uint64_t address, uint64_t bytes, struct twin *found,
                  size_t room);

#endif
