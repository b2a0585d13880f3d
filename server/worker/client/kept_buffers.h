/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kept_buffers: host buffers that no client has, and that the driver still knows.
 *
 * Registering memory takes the driver a millisecond a MiB, and giving it back waits until nothing
 * runs. So a buffer that its client gives up stays mapped and registered here, until the supervisor
 * lends it to another client or drops it. The supervisor decides which client may get which memory.
 *
 * A zeroed struct is empty. Control thread, but for what the header says otherwise. Functions that
 * return uint32_t return 0, or an error number with a sentence in why.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_KEPT_BUFFERS_H
#define GPUSHARE_SERVER_WORKER_CLIENT_KEPT_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct client;
struct gpu;

struct kept_buffer {
    uint64_t address, count;
    bool dropping; /* it waits for a quiet window, and is lent to nobody */
};

struct kept_buffers {
    struct kept_buffer *all;
    size_t count, room;
};

/* Takes a buffer from a client that has no work with it any more. It must be registered whole.
 * Takes the client's lock. */
uint32_t kept_buffers_take(struct kept_buffers *kept, struct client *client, uint64_t address,
                           uint64_t count, struct error *why);

/* The same for all buffers of a client that ends, of those that are to be kept (struct range). A
 * buffer that was not registered whole stays with its client. Returns 0 or -ENOMEM: the rest stays
 * too. */
int kept_buffers_take_all(struct kept_buffers *kept, struct client *client);

/* Gives a buffer to a client, whose commands may name it from now on. Takes the client's lock. */
uint32_t kept_buffers_lend(struct kept_buffers *kept, struct client *client, uint64_t address,
                           uint64_t count, struct error *why);

/* The buffer is on its way out. False: there is none, or it was dropped before. */
bool kept_buffers_drop(struct kept_buffers *kept, uint64_t address, uint64_t count);

/* Unmaps a dropped buffer that the driver does not know any more, and forgets it. */
void kept_buffers_forget(struct kept_buffers *kept, struct gpu *gpu, uint64_t address);

/* The worker ends and nothing runs on the device: unregisters and forgets all. */
void kept_buffers_close(struct kept_buffers *kept, struct gpu *gpu);

#endif
