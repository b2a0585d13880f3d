/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * slowdown: how much longer or shorter than its instructions say a grid lasts, because
 * lengths vary, and because neighbours take caches and bandwidth from it.
 *
 * Contention counts multiprocessors: a grid beside which others are spread over the whole
 * device feels all of it, one beside a grid on half of the device feels half. Engine lock
 * held throughout.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DEVICE_SLOWDOWN_H
#define GPUSHARE_SERVER_SOFTGPU_DEVICE_SLOWDOWN_H

#include "server/softgpu/device/device.h"

/* Of one grid. */
struct slowdown {
    uint32_t length_permille; /* drawn when the grid begins */
    unsigned width;           /* multiprocessors that it may use */
    uint64_t resident;        /* blocks on them */
};

void slowdown_begin(struct slowdown *slowdown, const struct sm_set *sms);

/* A block came or went. */
void slowdown_block_came(struct slowdown *slowdown, struct device *device);
void slowdown_block_went(struct slowdown *slowdown, struct device *device);

/* How long a thing lasts that would last 1000. */
uint32_t slowdown_permille(const struct slowdown *slowdown, const struct device *device);

#endif
