/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * sm_overcommit: the sentences that refuse a request of threads because it does not fit beside
 * those of others. They show the arithmetic. Each returns its error number. Any thread.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_SM_SM_OVERCOMMIT_H
#define GPUSHARE_SERVER_SCHEDULER_SM_SM_OVERCOMMIT_H

#include <stdint.h>

#include "common/error.h"

/* The sentence about threads, in SM groups of sm_group_size multiprocessors. others: requests of
 * other clients and accounts, which own other_sm_groups in total. asked: SM groups that the new
 * request needs. sm_groups: SM groups of the device. most: the greatest request that would fit, in
 * hundredths of a per cent. */
uint32_t sm_overcommit_explain(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                               uint32_t sm_groups, uint32_t sm_group_size, uint32_t most,
                               struct error *why);

/* The sentence about threads in an account, which has sm_groups SM groups. others: requests of its
 * other clients. asked: as above; 0: the account itself would have so few. */
uint32_t sm_overcommit_explain_account(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                       uint32_t sm_groups, uint32_t sm_group_size,
                                       struct error *why);

#endif
