/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stats: busy counters of every multiprocessor and copy engine, in a file that
 * another process may map and read at any time (SOFTGPU_STATS).
 *
 * They are kept by the engine alone, in modelled time, and know nothing of
 * streams, clients or limits: an independent witness for tests of those.
 * Every field is a single aligned 64-bit word, written atomically; several
 * words read together need not be of one instant.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_STATS_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "server/softgpu/softgpu_settings.h"

#define STATS_MAGIC UINT64_C(0x3130535441545347) /* "GSTATS01" */

enum { STATS_COPY_ENGINES = 2 }; /* 0: host to device, 1: device to host */

struct stats_sm {
    uint64_t
        busy_ns; /* time with at least one block resident, as of the last block's start or end */
    uint64_t block_ns;  /* sum over blocks of the time each was resident */
    uint64_t thread_ns; /* the same, times the threads of each block */
    uint64_t blocks;    /* blocks that have ended */
};

struct stats_engine {
    uint64_t busy_ns;
    uint64_t bytes;
    uint64_t copies;
};

struct stats_device {
    struct stats_engine copy[STATS_COPY_ENGINES];
    uint64_t kernels; /* grids that have ended */
    uint64_t reserved;
    struct stats_sm sm[SETTINGS_MAX_SMS];
};

struct stats_file {
    uint64_t magic; /* STATS_MAGIC, written last */
    uint64_t device_count;
    uint64_t sm_count;
    uint64_t reserved;
    struct stats_device device[SETTINGS_MAX_DEVICES];
};

_Static_assert(sizeof(struct stats_sm) == 32, "layout of the file");
_Static_assert(offsetof(struct stats_file, device) == 32, "layout of the file");
_Static_assert(offsetof(struct stats_device, sm) == 64, "layout of the file");

/*
 * Creates the file, or joins it (processes add to the same counters), and maps
 * it; "" maps memory of the process alone.
 * NULL on failure, with the error in *why.
 */
struct stats_file *stats_open(const char *path, unsigned devices, unsigned sms, struct error *why);

/* Any thread of any process that has the file. */
static inline void stats_add(uint64_t *word, uint64_t amount)
{
    __atomic_fetch_add(word, amount, __ATOMIC_RELAXED);
}

#endif
