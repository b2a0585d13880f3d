/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * device: the devices of this process, their multiprocessors and resources, and the error that ends
 * them.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_DEVICE_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/cuda_driver.h"
#include "common/list.h"
#include "server/softgpu/device/engine.h"
#include "server/softgpu/fault.h"
#include "server/softgpu/softgpu_settings.h"
#include "server/softgpu/device/stats.h"

/* The first word of each object that a handle points to. Objects are reused and never freed, so
 * a stale handle is recognised. */
enum {
    STREAM_MAGIC = 0x4753544d,
    EVENT_MAGIC = 0x47455654,
    MODULE_MAGIC = 0x474d4f44,
    FUNCTION_MAGIC = 0x4746554e,
    GREEN_MAGIC = 0x4747434e,
    DESC_MAGIC = 0x47445343,
};

/* Values that all modelled hardware shares; profile.h has those that differ. */
enum {
    DEVICE_WARP = 32,
    DEVICE_BLOCK_THREADS = 1024,
    DEVICE_BLOCK_Z = 64,
    DEVICE_GRID_X = 2147483647,
    DEVICE_GRID_YZ = 65535,
    DEVICE_SM_BLOCKS = 32, /* the most of any profile */
    DEVICE_BLOCK_SHARED = 48 << 10,
    DEVICE_REGISTERS = 65536,
    DEVICE_CONSTANT = 64 << 10,
    DEVICE_PARAM_BYTES = 32764,
    DEVICE_PRIORITY_LEAST = 0,
    DEVICE_PRIORITY_GREATEST = -5,
};

/* A set of multiprocessors. */
struct sm_set {
    uint64_t words[SETTINGS_MAX_SMS / 64];
};

static inline bool sm_set_has(const struct sm_set *set, unsigned sm)
{
    return set->words[sm / 64] >> (sm % 64) & 1;
}

static inline void sm_set_add(struct sm_set *set, unsigned sm)
{
    set->words[sm / 64] |= (uint64_t)1 << (sm % 64);
}

unsigned device_sm_set_count(const struct sm_set *set);

/* One block's stay on a multiprocessor: the resources that it holds or held, and the modelled
 * times of its beginning and end. */
struct sm_stay {
    uint64_t start, end; /* UINT64_MAX while the block is there */
    unsigned threads;    /* 0: an unused record */
    uint32_t shared;
};

struct sm {
    unsigned blocks, threads;
    uint32_t shared;
    struct sm_stay present[DEVICE_SM_BLOCKS];
    struct sm_stay past[DEVICE_SM_BLOCKS]; /* the latest ones, in a ring */
    unsigned next_past;
    uint64_t last_end;  /* the latest among the past */
    uint64_t busy_mark; /* up to which busy time has been counted, while blocks > 0 */
};

struct operation;
struct grid;
struct stream;

/* A copy engine takes one copy at a time, in order. */
struct copy_engine {
    struct queue waiting; /* operations; the first is in work while busy */
    bool busy;
    uint64_t free_at;
};

/* See hardware_queue.h. */
struct hardware_queue {
    struct queue waiting; /* operations that have not begun */
    uint64_t entries;     /* that many */
};

struct hardware_queues {
    struct hardware_queue queue[SETTINGS_MAX_QUEUES];
    unsigned count, next;
};

/* See context_lock.h. The thread with the number that is served holds it. */
struct context_lock {
    pthread_mutex_t mutex;
    pthread_cond_t turn;
    uint64_t next, serving;
};

struct device {
    unsigned ordinal;        /* in the machine; calls count visible devices only */
    atomic_size_t limits[3]; /* memory_heap.h has that of the heap */
    /* Called when the last context has ended, without locks of these files; NULL until a module was
     * loaded. */
    void (*_Atomic unload_modules)(struct device *device);
    struct context_lock context_lock;
    atomic_size_t local_bytes; /* of each thread, that there is room for in all contexts */
    struct sm_set all;
    struct sm sm[SETTINGS_MAX_SMS];
    struct copy_engine copy[STATS_COPY_ENGINES];
    struct hardware_queues queues;
    unsigned
        spread; /* multiprocessors of all grids with blocks there, those of each grid counted */
    struct list pending; /* grids with blocks to place: by priority, then by age */
    struct queue serial; /* grids, if SOFTGPU_SERIALIZE: the one that may run, then the others */
    struct list streams;
    struct stream *legacy;
    uint64_t seen_at; /* modelled: by then a program can see all ends up to now */
    struct stats_device *stats;
};

/* Completes a new device with the objects that higher parts keep in it. Returns 0 or -ENOMEM. */
typedef int device_complete(struct device *device);

/* Reads the settings, starts the engine, and has every device completed before any call can see
 * it. complete: called for each device. Idempotent; any thread. */
cuda_result device_init(device_complete *complete);

/* Return CUDA_OK, or the reason why a call may not go ahead: the driver is not initialised (or
 * the process has forked since), or the error that ended the process's devices. The second looks
 * for the former reason only. */
cuda_result device_check(void);
cuda_result device_check_initialized(void);

/* The settings; after device_init(). */
const struct softgpu_settings *device_settings(void);
const struct profile *device_profile(void);
/* The driver that the settings ask for: whether it lacks green contexts, and its version. At any
 * time.
 */
bool device_lacks_green_contexts(void);
int device_driver_version(void);
/* A visible device as calls count them, NULL if there is none; and by its number in the machine. */
struct device *device_at(cuda_device visible);
struct device *device_numbered(unsigned ordinal);
/* The other way round: how calls count a device of the machine; -1 if it is not visible. */
cuda_device device_visible(unsigned ordinal);

/*
 * Ends all devices because a kernel or copy failed. The first failure is reported and decides the
 * error. The caller holds the engine's lock.
 */
void device_fail(cuda_result error, const char *text);
void device_fault(struct fault *fault);
/* The same for an operation, "copy" or the like, that reached an address which it may not use. */
void device_fail_address(const char *what, uint64_t address);

/* Gives the UUID, which depends on the ordinal only and is the same in every process. */
void device_uuid(const struct device *device, cuda_uuid *uuid);
cuda_result device_attribute(const struct device *device, cuda_device_attribute attribute,
                             int *value);

/* Returns a random number for hostile behaviour. The caller holds the engine's lock. */
uint32_t device_random(void);

#endif
