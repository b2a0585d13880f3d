/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client: what the worker keeps of one client: its windows, its streams, and the
 * tables that its commands are checked against.
 *
 * Each part of struct client belongs to one thread or to one lock, and says so. The control
 * thread creates and destroys clients. client->lock is never held across a slow call of the
 * driver, only across submissions.
 * Order of locks: worker->clients_lock, client, places, partitions, stream_pool, account. The
 * gate's is taken under the first three and nothing under it.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/ipc/shm.h"
#include "server/worker/sharing/account.h"
#include "server/worker/client/bits.h"
#include "server/worker/client/client_state.h"
#include "server/worker/gpu.h"
#include "server/worker/sharing/gate.h"
#include "server/worker/client/retire.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/placement.h"
#include "server/worker/client/client_stream.h"

struct client;
struct client_module;

enum { CLIENT_STREAM_WORDS = PROTO_STREAMS_MAX / 64 };

struct function {
    cuda_function handle;
    struct client_module *module; /* NULL: a free slot */
    uint32_t parameter_bytes;
    uint32_t block_threads;
    uint32_t dynamic_bytes; /* most dynamic shared memory */
};

struct event {
    cuda_event handle; /* NULL: a free slot */
    const struct retirement *dying;
    bool recorded;
};

enum range_kind { RANGE_DEVICE, RANGE_HOST, RANGE_VARIABLE };

/* Memory that this client's commands may name: [start, end). */
struct range {
    uint64_t start, end;
    enum range_kind kind;
    const struct retirement *dying;     /* being freed: only what was issued before may use it */
    const struct client_module *module; /* of a variable */
};

/* Timelines of a client on another device. */
struct link {
    struct shm shadows; /* read-only */
    uint32_t streams;   /* 0: a free slot */
};

/* Under client->lock, whichever thread it is. */
struct client_shared {
    _Atomic(enum client_state) state; /* changed by client_state_set alone; may be read without */
    struct partition *partition; /* where its streams belong; NULL before there is room for it */
    int32_t priority_first, priority_last;       /* of its streams, as the driver numbers them */
    uint64_t ready[CLIENT_STREAM_WORDS];         /* rings that have descriptors to read */
    uint64_t blocked_rings[CLIENT_STREAM_WORDS]; /* rings that wait for another */
    uint64_t busy[CLIENT_STREAM_WORDS];          /* streams whose device work was not seen to end */
    uint32_t blocked_count;
    uint32_t linked_count; /* of these: that wait for another device */
    uint32_t watched_count;
    uint32_t closing_count;
    uint32_t in_flight; /* commands, as last counted */
    struct retirement *frees, **frees_end;

    struct error violation; /* VIOLATED: what its rings hold that they must not */
};

/* The objects that its commands may name, each at its number less 1; the supervisor chooses the
 * numbers. The control thread alone changes it, under client->lock,
 * and so looks at it without; the others look under the lock. */
struct client_objects {
    struct function *functions;
    uint32_t function_count, function_room;
    struct event *events;
    uint32_t event_count, event_room, event_live;
    struct range *ranges; /* sorted by start, disjoint */
    size_t range_count, range_room;
    struct link *links;
    uint32_t link_count, link_room;
};

/* The control thread's own. */
struct client_control {
    uint64_t device_base, window_bytes; /* its part of the device arena */
    uint32_t priority;                  /* 0 normal, 1 and above lower */
    struct client_module *modules;
    uint32_t loading; /* jobs that the loaders have of it */
    uint64_t detach_serial;
};

/* The submitter's own. */
struct client_submit {
    bool worked; /* since the submitter last looked at the clock */
    int32_t deficit;
    uint32_t cursor;    /* stream served last */
    uint64_t last_work; /* ns */
};

/* Messages between threads, left under whatever locks they hold. The state is no such message: it
 * is changed under the client's lock alone. */
struct client_signals {
    _Atomic uint32_t completer; /* 1: the completer has to look at this client */
    _Atomic uint32_t submitter; /* 1: the submitter has to look at this client */
};

struct client {
    /* The same from client_create on; any thread. */
    uint32_t number;
    char name[64];
    struct gpu *device;
    struct shm rings, status, shadows;
    int doorbell;                           /* eventfd */
    uint64_t status_device, shadows_device; /* device addresses of the two */
    uint32_t stream_count;                  /* granted */
    struct client_stream *streams;          /* stream.h says what their rules are */

    pthread_mutex_t lock;
    struct client_shared shared;
    struct client_objects objects;
    struct client_control control;
    struct client_submit submit;
    struct client_signals signals;

    /* Under locks that are not the client's: */
    struct placement place;      /* which SM groups it may have: the places' lock */
    struct gate_client gate;     /* gate.h */
    struct account_client usage; /* account.h */
    uint64_t kept_bytes;         /* that its modules keep: code_memory's lock */
    uint64_t loader_turns[2];    /* each loader's lock, by loader_which */
};

/*
 * Adopts the descriptors (fds are the client's on success, and closed on failure):
 * rings, status, shadows, doorbell. Registers status and shadows with the device.
 * Opens stream 0. It is ATTACHING, and has no place and no partition yet.
 * Returns 0 or an error number with a sentence in why.
 */
uint32_t client_create(struct client **client, struct gpu *device, uint32_t number,
                       const struct proto_worker_attach *attach, const int fds[4],
                       struct error *why);

/* Everything of the client must be gone already (asserted): ranges, modules, events, frees; and no
 * other thread knows it (ATTACHING or LEFT). */
void client_destroy(struct client *client);

static inline enum client_state client_state(const struct client *client)
{
    /* Acquired: what led to the state is seen with it, by a thread without the lock too. */
    return atomic_load_explicit(&client->shared.state, memory_order_acquire);
}

/* Any thread, whatever locks it holds; then wake_completer, wake_submitter. Sequentially consistent
 * with those, see wake.h. */
static inline void client_signal_completer(struct client *client)
{
    atomic_store(&client->signals.completer, 1);
}
static inline void client_signal_submitter(struct client *client)
{
    atomic_store(&client->signals.submitter, 1);
}

/* Control thread: destroys an event of the table; nothing uses it any more. Takes the lock. */
void client_event_forget(struct client *client, uint32_t handle);

/* Whether everything that was handed to the device is done. */
bool client_is_quiet(const struct client *client);

/* Commands that the device has not finished, counted over the busy streams. */
uint32_t client_in_flight(const struct client *client);

#endif
