/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * overcommit: why requests don't fit, with the arithmetic, in one sentence.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_OVERCOMMIT_H
#define GPUSHARE_SERVER_SCHEDULER_OVERCOMMIT_H

#include <stddef.h>
#include <stdint.h>

struct lease_group_sum;

void overcommit_explain_time(const struct lease_group_sum *sum, uint32_t asked, char *why,
                             size_t why_size);

/* Threads, in SM groups of so many multiprocessors. */
void overcommit_explain_threads(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                uint32_t sm_groups, uint32_t sm_group_size, char *why,
                                size_t why_size);

#endif
