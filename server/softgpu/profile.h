/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * profile: the GPUs that can be modelled, and what differs between them.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_PROFILE_H
#define GPUSHARE_SERVER_SOFTGPU_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile {
    const char *name; /* as SOFTGPU_PROFILE has it; "" for the usual one */
    const char *device_name;
    bool instance; /* of a GPU that MIG divides */
    unsigned cc_major, cc_minor;
    uint64_t sms;
    uint64_t memory_bytes;
    uint32_t sm_threads, sm_blocks, sm_shared_bytes;
    uint32_t block_shared_optin_bytes, block_shared_reserved_bytes;
    unsigned sm_alignment;       /* of partitions, by default */
    unsigned sm_alignment_loose; /* and without co-scheduling */
    /* A split of the device into groups of sm_alignment makes so many fewer than would fit, since a
     * group lies within one cluster of processors. Seen: 15 of 8 and 12 that are left (H100). */
    unsigned sm_groups_lost;
    unsigned copy_engines; /* 1: both directions share it */
    unsigned l2_bytes;
};

/* NULL if there is none of that name. Static memory. */
const struct profile *profile_find(const char *name);
/* Their names, in a row, for a message: "h200, h100, mig, t4". */
const char *profile_names(void);

#endif
