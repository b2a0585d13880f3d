/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * client: what the worker keeps of one client: its shared memory, its streams, and the tables
 * that its commands are checked against.
 *
 * Each part of struct client belongs to one thread or to one lock, and says to which. The control
 * thread creates and destroys clients. No thread holds client->lock across a slow call of the
 * driver; only submissions are made under it.
 *
 * Locks are taken in this order: worker->clients_lock, client->lock, placements, partitions,
 * stream_pool, meter. The gate's lock is taken under any of the first three. The locks of
 * quiet_calls and of driver_calls are taken under the gate's, and no lock is taken under those.
 *
 * struct client holds its parts of the gate, of its placement and of its meter by value. So this
 * header, alone of its folder, includes headers of sharing/, which stands above.
 */
#ifndef GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_H
#define GPUSHARE_SERVER_WORKER_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/list.h"
#include "common/ipc/journal.h"
#include "common/ipc/ring_memory.h"
#include "common/ipc/shm.h"
#include "server/worker/sharing/meter.h"
#include "server/worker/client/bits.h"
#include "server/worker/client/blocked_rings.h"
#include "server/worker/client/client_state.h"
#include "server/worker/device/gpu.h"
#include "server/worker/sharing/gate.h"
#include "server/worker/client/retire.h"
#include "server/worker/sharing/partition.h"
#include "server/worker/sharing/placement.h"
#include "server/worker/client/client_stream.h"
#include "server/worker/client/suspicion.h"
#include "server/worker/client/work_length.h"

struct client;
struct client_module;
struct control_call;
struct driver_queue;

enum { CLIENT_STREAM_WORDS = PROTO_STREAMS_MAX / 64 };

struct function {
    cuda_function handle;
    struct client_module *module; /* NULL: a free slot */
    uint32_t parameter_bytes;
    uint32_t block_threads;
    uint32_t dynamic_bytes; /* maximum of dynamic shared memory */
    uint32_t dynamic_most;  /* what the driver was told of that; dynamic_bytes at least */
    uint32_t local_bytes;   /* local memory a thread */
    uint32_t shared_bytes;  /* static shared memory */
    uint32_t registers;     /* of a thread */
};

struct event {
    cuda_event handle;              /* NULL: a free slot */
    const struct retirement *dying; /* NULL, or the request that destroys it */
    struct control_call *making;    /* of a free slot: NULL, or the call that it is kept for */
    bool recorded;
    bool restored; /* an earlier worker had it, and may have recorded it */
};

enum range_kind { RANGE_DEVICE, RANGE_HOST, RANGE_VARIABLE };

/* Memory that this client's commands may name: [start, end). */
struct range {
    uint64_t start, end;
    enum range_kind kind;
    const struct retirement *dying;     /* being freed: only commands issued before may use it */
    const struct client_module *module; /* of a RANGE_VARIABLE; else NULL */
    uint64_t registered;                /* bytes of a RANGE_HOST that the driver knows */
    bool keeps; /* a RANGE_HOST that is kept when its client ends (kept_buffers.h) */
};

/* The timelines of a client on another device, which this client's streams may wait for. */
struct link {
    struct shm shadows; /* read-only */
    uint32_t streams;   /* 0: a free slot */
};

/* Any thread that holds client->lock. */
struct client_shared {
    _Atomic(enum client_state) state; /* client_state_set alone changes it; readable without lock */
    struct partition *partition;      /* that its streams belong to; NULL while it has none */
    int32_t priority_first, priority_last; /* of its streams, as the driver numbers them */
    uint64_t ready[CLIENT_STREAM_WORDS];   /* rings that have descriptors to read */
    uint64_t busy[CLIENT_STREAM_WORDS];    /* streams whose device work was not seen to end */
    struct blocked_rings blocked;          /* rings that wait for another ring, or room */
    uint32_t watched_count;                /* streams on whose timeline a thread sleeps */
    uint32_t closing_count;                /* streams in STREAM_CLOSING */
    uint32_t interrupted_count;            /* streams that wait for client_stream_recover */
    uint32_t in_flight;                    /* commands, as last counted */
    uint32_t width;            /* mean of its latest kernels' (launch_width.h); 0: unknown */
    struct queue frees;        /* of struct retirement, oldest first */
    struct work_length length; /* of its commands */
    /* Local memory, bytes a thread: what its launches wait for, 0 for none; whether that was asked
     * for; and what the driver refused last, 0 for nothing, until a launch was failed for it. */
    uint64_t local_wanted, local_refused;
    bool local_asked;
    struct suspicion suspicion;
    uint64_t kernel_time; /* ns that a kernel may run; 0: any time */
    uint64_t departed_ns; /* completer: for which others waited since it left */
    uint64_t departed_at; /* completer: the look at which that was counted last */

    struct error violation; /* VIOLATED: what its rings hold that they must not */
};

/* The objects that the client's commands may name, each at its number less 1. The supervisor
 * chooses the numbers. The control thread alone changes the tables, and holds client->lock while
 * it does; so it reads them without the lock, and the other threads read them under it. */
struct client_objects {
    struct function *functions;
    uint32_t function_count, function_room;
    struct event *events;
    uint32_t event_count, event_room, event_live;
    struct range *ranges; /* sorted by start, disjoint */
    size_t range_count, range_room;
    struct link *links;
    uint32_t link_count, link_room;
    struct twin *twins; /* sorted by address, disjoint; a loader thread adds some (twins.h) */
    size_t twin_count, twin_room;
    uint32_t lost_modules;  /* whose state an earlier worker had (client_module.h) */
    uint32_t lost_reaching; /* of these, those whose addresses any kernel may follow */
};

/* Belongs to the control thread. */
struct client_control {
    uint64_t device_base, window_bytes; /* its window in the device arena */
    struct proto_allowance allowance;   /* in force */
    uint32_t owner; /* a user, for turns at the driver and the loaders; 0: unknown */
    struct client_module *modules;
    uint32_t loading;   /* jobs of this client that the loaders have */
    uint32_t deferred;  /* requests that wait for a quiet window */
    uint32_t calling;   /* calls of this client that the caller thread has */
    struct queue ready; /* struct retirement that wait for these calls, oldest first */
    bool released;      /* it left, and its device memory is unmapped */
    bool ending;        /* its end waits for one, in the next member */
    struct quiet_call leaving;
    int (*left)(struct worker *worker, struct client *client, struct retirement *none);
    bool detached;  /* while it was ATTACHING */
    bool restoring; /* an earlier worker had it, and its rings are not read again yet; a supervisor
                       that was killed may have had some of its objects made again */
    struct control_call *last_call; /* memory for its end, made when it attached */
    uint64_t detach_serial;
    struct client *next_attaching;
    struct request *attaching;  /* the request that it is made for, while it is ATTACHING */
    struct attach_again *again; /* another supervisor asks whether it is settled; or NULL */
    bool forgiving;  /* its supervisor may not know what was given up, or made again, for the one
                        before */
    uint32_t making; /* partitions for it that wait for a quiet window */
    uint32_t making_error; /* why the last of them could not be made; 0 */
    struct limits_answer {
        uint64_t serial; /* 0: no request waits for a partition */
        uint64_t until;  /* ns: it is answered then in any case */
        bool attach;
        struct proto_allowance before; /* of a change: what a refusal goes back to */
    } answer;
    uint32_t refused;               /* error number: its attaching is refused when it is gone */
    struct proto_worker_usage used; /* what it had in all, from when it gave back what it had */
};

/* Belongs to the submitter. */
struct client_submit {
    bool worked; /* the client moved since the submitter last read the clock */
    int32_t deficit;
    uint32_t cursor;      /* stream that was served last */
    uint32_t lone;        /* that stream and 1, if the last visits served no other; or 0 */
    const uint32_t *tail; /* its ring's, which is watched; NULL: the doorbell is */
    uint32_t tail_seen;
    uint32_t looks;
    bool by_tail;                  /* the visit is for what the tail said */
    uint64_t last_work;            /* when the client last moved, ns */
    struct journal_entry *journal; /* in its shadow memory */
    uint32_t journal_next;
};

/* Marks that one thread leaves for another. Any thread may leave them, whatever locks it holds. The
 * state can't be used for this, since it changes only under the client's lock. */
struct client_signals {
    _Atomic uint32_t completer;   /* 1: the completer has to look at this client */
    _Atomic uint32_t submitter;   /* 1: the submitter has to look at this client */
    _Atomic uint32_t waiting;     /* threads in client_lock */
    _Atomic uint64_t waits_since; /* when the first of them came, ns */
};

/* The hardware queues that its rings are on: the lock of struct stream_pool. */
struct client_queues {
    struct driver_queue *home; /* NULL: it has none */
    uint32_t rings;            /* that are bound to CUstreams */
    uint32_t held;             /* queues, its home included, as last counted */
    bool joined;
};

struct client {
    /* Set by client_create and constant from then on; any thread. */
    uint32_t number;
    char name[64];
    struct gpu *gpu;
    struct ring_memory rings;
    struct shm status, shadows;
    int doorbell;                           /* eventfd */
    uint64_t status_device, shadows_device; /* device addresses of the two */
    uint32_t stream_count;                  /* granted */
    struct client_stream *streams; /* stream_count of them; client_stream.h has their locks */

    pthread_mutex_t lock;
    struct client_shared shared;
    struct client_objects objects;
    struct client_control control;
    struct client_submit submit;
    struct client_signals signals;

    /* Protected by locks other than the client's: */
    struct placement place;    /* which SM groups it may have: the lock of struct placement_table */
    struct gate_client gate;   /* see gate.h */
    struct meter_client usage; /* see meter.h */
    struct client_queues queues;
    uint32_t ledger_at;      /* its row; the lock of struct usage_ledger, and that of ledger_idle */
    bool ledger_idle;        /* it had no work when the row was written */
    uint64_t held_before_ns; /* at earlier workers, because no multiprocessor was free; constant
                                once other threads know the client */
    uint64_t kept_bytes;     /* that its modules keep: the lock of struct code_memory */
    uint64_t loader_turns[2]; /* by loader_which: the lock of that loader */
};

/*
 * Makes a client from the descriptors of its rings, status, shadows and doorbell, in this order.
 * The client owns the four descriptors from then on; after a failure they are closed. Opens
 * stream 0. The new client is ATTACHING and has no placement and no partition yet. Returns 0, or
 * an error number with a sentence in why. Control thread.
 */
uint32_t client_create(struct client **client, struct gpu *gpu, uint32_t number,
                       const struct proto_worker_attach *attach, const int fds[4],
                       struct error *why);

/* Registers status and shadows of a client that is ATTACHING with the device. After a failure one
 * of them may be registered. Returns 0, or an error number with a sentence in why. Any thread that
 * may wait for the context. */
uint32_t client_register(struct client *client, struct error *why);
bool client_is_registered(const struct client *client);

/* Frees a client that no other thread knows (ATTACHING or LEFT). Its ranges, modules, events,
 * pending frees, bound streams and registrations must be gone before; assertions check that.
 * Control thread. */
void client_destroy(struct client *client);

/* Locks client->lock, for every thread but the submitter. That one has the lock of a client with
 * hundreds of streams for nearly all of the time, and takes it again before a thread that its
 * unlocking woke can run: it lets the client be where such a thread has waited for a while
 * (client_lock_is_overdue). */
void client_lock(struct client *client);
bool client_lock_is_overdue(const struct client *client);

static inline enum client_state client_state(const struct client *client)
{
    /* Acquired: a thread without the lock also sees what led to the state. */
    return atomic_load_explicit(&client->shared.state, memory_order_acquire);
}

/* Mark the client for the completer or the submitter. wake_completer or wake_submitter must follow.
 * The mark and the wake-up are sequentially consistent (wake.h says why). Any thread, whatever
 * locks it holds. */
static inline void client_signal_completer(struct client *client)
{
    atomic_store(&client->signals.completer, 1);
}
static inline void client_signal_submitter(struct client *client)
{
    atomic_store(&client->signals.submitter, 1);
}

/* Takes an event that was destroyed out of the table. Takes the lock. Control thread. */
void client_event_forget(struct client *client, uint32_t handle);

/* In a quiet window, for a client that ends: the driver gives status and shadows back. Idempotent.
 */
void client_unregister(struct client *client);

/* Whether the device has finished everything that was handed to it. Under the lock, or when the
 * submitter hands nothing over any more. */
bool client_is_quiet(const struct client *client);

/* Number of commands that the device has not finished, summed over the busy streams. Under the
 * lock. */
uint32_t client_in_flight(const struct client *client);

/* Number of commands that rings with descriptors to read may add until each of them has so many in
 * flight. Under the lock. */
uint32_t client_lacking(const struct client *client, uint32_t each);

/* Whether a ring that has descriptors to read has nothing in flight. Under the lock. */
bool client_has_drained_ring(const struct client *client);

#endif
