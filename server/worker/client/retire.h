/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * retire: nothing is unmapped under a running kernel.
 *
 * A request to give something up (memory, a host buffer, a module, an event) is written down with
 * the timeline values that the client had issued by then, one a stream: the tails of its rings. It
 * may be carried out when the device has reached every one of them. The private shadows say so,
 * never a word that the client can write. tests/model mirrors retire_request and retire_ready.
 *
 * Under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_RETIRE_H
#define GPUSHARE_SERVER_WORKER_CLIENT_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

struct client;

enum retire_kind {
    RETIRE_NOTHING, /* only to know that the work is done */
    RETIRE_DEVICE,
    RETIRE_HOST,
    RETIRE_MODULE,
    RETIRE_EVENT,
};

struct retirement {
    struct retirement *next;
    enum retire_kind kind;
    uint64_t serial; /* of the request, to answer it; 0: no answer */
    uint32_t handle; /* module or event */
    uint64_t address, count;
    uint32_t streams;   /* how many targets */
    uint64_t targets[]; /* a stream */
};

/*
 * Appends a request to the client's list, with the values issued so far. What it
 * frees is marked by the caller (range.dying, event.dying, module.dying), under the
 * same lock, so that no later command can name it. NULL: no memory.
 */
struct retirement *retire_request(struct client *client, enum retire_kind kind, uint64_t serial);

/* Whether the device has reached every value that had been issued before the request. */
bool retire_ready(const struct client *client, const struct retirement *request);

/* Whether a descriptor with this value had been issued before the request. */
bool retire_covers(const struct retirement *request, uint32_t stream, uint64_t value);

/* Whether retire_take would find a request. */
bool retire_any_ready(const struct client *client);

/* Takes the first request off the list if it is ready, else NULL. The caller frees it. */
struct retirement *retire_take(struct client *client);

#endif
