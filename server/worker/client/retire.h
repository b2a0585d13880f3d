/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * retire: nothing is unmapped under a running kernel.
 *
 * A request to give something up (memory, a host buffer, a module, an event) is recorded with one
 * timeline value for each stream: the tail of its ring, up to which the client had issued commands.
 * The request may be carried out when the device has reached all of these values. The worker reads
 * them from the private shadows, never from a word that the client can write. tests/model mirrors
 * retire_request and retire_ready.
 *
 * All functions: under client->lock.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_RETIRE_H
#define GPUSHARE_SERVER_WORKER_CLIENT_RETIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "server/worker/calls/quiet_calls.h"

struct client;
struct client_module;
struct error;
struct worker;

enum retire_kind {
    RETIRE_NOTHING, /* frees nothing; its answer says that the work is done */
    RETIRE_DEVICE,
    RETIRE_HOST,
    RETIRE_KEEP, /* a host buffer that stays registered (kept_buffers.h) */
    RETIRE_MODULE,
    RETIRE_EVENT,
};

struct retirement {
    struct queue_link link; /* in the client's list, or in that of those that are ready */
    enum retire_kind kind;
    uint64_t serial;       /* of the supervisor's request, to answer it; 0: no answer is due */
    struct error *refusal; /* what the answer says instead of "done"; NULL; the request's own */
    uint32_t handle;       /* number of the module or event */
    uint64_t address, count;
    void *spare; /* memory for carrying it out, from calloc, the request's own; NULL: none is due */
    /* The control thread's, while it waits for a quiet window (control_quiet_retire): */
    struct quiet_call call;
    struct client *client;
    struct client_module *module; /* of RETIRE_MODULE */
    int (*end)(struct worker *worker, struct client *client, struct retirement *request);
    uint32_t streams;   /* number of targets */
    uint64_t targets[]; /* timeline value of each stream */
};

/*
 * Appends a request to the client's list, with the values that the client has issued so far, and
 * marks the client for the completer. The caller marks what the request frees (range.dying,
 * event.dying, client_module_mark_dying) without releasing the lock in between, so that no later
 * command can name it. The list owns the request. NULL: no memory, and nothing was appended.
 */
struct retirement *retire_request(struct client *client, enum retire_kind kind, uint64_t serial);

/* Whether the device has reached every value that the client had issued before the request. For a
 * client whose rings are read no more, only values that were submitted count. */
bool retire_ready(const struct client *client, const struct retirement *request);

/* Whether the client had issued the descriptor with this value before it made the request. */
bool retire_covers(const struct retirement *request, uint32_t stream, uint64_t value);

/* Whether retire_take would find a request. */
bool retire_any_ready(const struct client *client);

/* Takes the first request off the list and gives it to the caller, which frees it. NULL if the
 * first one is not ready. */
struct retirement *retire_take(struct client *client);

#endif
