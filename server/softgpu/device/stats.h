/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * stats: busy counters of every multiprocessor and copy engine, and calls that had to wait for a
 * hardware queue, in a file that another process may map and read at any time (SOFTGPU_STATS).
 *
 * Only the engine writes them, in modelled time. They know nothing of streams, clients or limits,
 * so tests of those have an independent witness. Every field is one aligned 64-bit word, which is
 * written atomically. Several words that are read together need not belong to the same instant.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_STATS_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "common/ipc/shared_word.h"
#include "common/error.h"
#include "server/softgpu/softgpu_settings.h"

#define STATS_MAGIC UINT64_C(0x3130535441545347) /* "GSTATS01" */

enum { STATS_COPY_ENGINES = 2 }; /* 0: host to device, 1: device to host */

struct stats_sm {
    uint64_t
        /* Time with at least one resident block, up to the last start or end of a block. */
        busy_ns;
    uint64_t block_ns;  /* sum of the times for which blocks were resident */
    uint64_t thread_ns; /* the same, each time multiplied by the block's threads */
    uint64_t blocks;    /* blocks that have ended */
};

struct stats_engine {
    uint64_t busy_ns;
    uint64_t bytes;
    uint64_t copies;
};

struct stats_device {
    struct stats_engine copy[STATS_COPY_ENGINES];
    uint64_t kernels;     /* grids that have ended */
    uint64_t full_queues; /* calls that found their hardware queue full, and had to wait */
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
 * Creates the file and maps it, or joins a file that exists; processes add to the same counters.
 * path: "" for memory of this process alone. Returns NULL on failure, with the error in *why.
 */
struct stats_file *stats_open(const char *path, unsigned devices, unsigned sms, struct error *why);

/* Adds to a counter. Any thread of any process that has the file. */
static inline void stats_add(uint64_t *word, uint64_t amount)
{
    shared_word_count(word, amount);
}

#endif
