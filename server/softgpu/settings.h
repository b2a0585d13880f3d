/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * settings: what the environment asks of the software GPU. The only module of
 * it that reads the environment, once, in cuInit.
 *
 * SOFTGPU_DEVICES                number of devices, 1 to 16 (1)
 * SOFTGPU_SMS                    multiprocessors of each, 1 to 512 (132)
 * SOFTGPU_MEMORY                 bytes of each, with K, M or G (8G); pages are only used when
 * touched SOFTGPU_FRIENDLY=1             do nothing nasty: a queue per stream, nothing deferred at
 * random SOFTGPU_SEED                   for what is random otherwise (1) SOFTGPU_HINT_REFUSAL
 * percentage of address hints not honoured (0) SOFTGPU_COPY_BYTES_PER_SECOND  modelled speed of
 * each copy engine, with K, M, G; 0 = as fast as memcpy (0) SOFTGPU_INSTRUCTION_PS         modelled
 * picoseconds per warp instruction; 0 = what it really took (0) SOFTGPU_THREADS engine threads, 1
 * to 128 (number of cores) SOFTGPU_CONTEXT_DELAY_US       time added to every context-changing call
 * (0) SOFTGPU_NO_GREEN=1             a driver without green contexts SOFTGPU_SERIALIZE=1 one kernel
 * at a time on each device SOFTGPU_STATE=FILE             memory charged across processes, see
 * ledger.h SOFTGPU_STATS=FILE             busy counters, see stats.h CUDA_DEVICE_MAX_CONNECTIONS
 * hardware queues that streams share, 1 to 32 (8)
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_SETTINGS_H
#define GPUSHARE_SERVER_SOFTGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SETTINGS_MAX_DEVICES = 16, SETTINGS_MAX_SMS = 512, SETTINGS_MAX_THREADS = 128 };

struct settings {
    unsigned devices;
    unsigned sms;
    uint64_t memory;
    bool friendly;
    uint64_t seed;
    unsigned hint_refusal;
    uint64_t copy_bytes_per_second;
    unsigned instruction_ps;
    unsigned threads;
    unsigned context_delay_us;
    bool no_green;
    bool serialize;
    char state_path[256]; /* "" = none */
    char stats_path[256]; /* "" = none */
    unsigned connections;
};

/* Reads the environment. 0, or -EINVAL with one sentence in `why`. */
int settings_read(struct settings *settings, char *why, size_t why_size);

/* The number that the text gives ("64M"), all of it. -EINVAL if it is none or too large. */
int settings_parse_size(const char *text, uint64_t *value);

#endif
