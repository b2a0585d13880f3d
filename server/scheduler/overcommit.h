/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * overcommit: why requests don't fit, with the arithmetic, in one sentence. Both functions return
 * INVALID_VALUE, which they set.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_OVERCOMMIT_H
#define GPUSHARE_SERVER_SCHEDULER_OVERCOMMIT_H

#include <stdint.h>

#include "common/error.h"

struct lease_group_sum;

uint32_t overcommit_explain_time(const struct lease_group_sum *sum, uint32_t asked,
                                 struct error *why);

/* Threads, in SM groups of so many multiprocessors. */
uint32_t overcommit_explain_threads(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                    uint32_t sm_groups, uint32_t sm_group_size, struct error *why);

#endif
