/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * softgpu_settings: what the environment asks of the software GPU. The only module of
 * it that reads the environment, once, in cuInit. docs/softgpu.md lists the variables
 * with their defaults.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_SOFTGPU_SETTINGS_H
#define GPUSHARE_SERVER_SOFTGPU_SOFTGPU_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum { SETTINGS_MAX_DEVICES = 16, SETTINGS_MAX_SMS = 512, SETTINGS_MAX_THREADS = 128 };

struct softgpu_settings {
    unsigned devices;
    unsigned sms;
    uint64_t memory; /* bytes of each device */
    bool friendly;
    uint64_t seed;
    unsigned hint_refusal;          /* per cent of address hints */
    uint64_t copy_bytes_per_second; /* 0: as fast as memcpy */
    unsigned instruction_ps;        /* 0: the CPU time that it took */
    unsigned threads;
    unsigned context_delay_us;
    bool no_green;
    bool serialize;
    bool unmap_waits;
    char state_path[256]; /* "" = none; see ledger.h */
    char stats_path[256]; /* "" = none; see stats.h */
    unsigned connections; /* hardware queues */
};

/* Reads the environment. 0, or an error number that *why explains. */
uint32_t softgpu_settings_read(struct softgpu_settings *settings, struct error *why);

#endif
