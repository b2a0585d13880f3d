/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * overcommit: writes the sentence that says why requests don't fit, with the arithmetic and a
 * remedy. `why` has why_size bytes; NULL with 0 is allowed. Any thread.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_OVERCOMMIT_H
#define GPUSHARE_SERVER_SCHEDULER_OVERCOMMIT_H

#include <stdint.h>

#include "common/error.h"

struct lease_group_sum;
struct scheduler_account;

/* The sentence about an account's clients, whose requests come to more than the account's. others:
 * the sum without the new request. Here and below in hundredths of a per cent. */
uint32_t overcommit_explain_account(const struct scheduler_account *account, uint32_t others,
                                    uint32_t asked, struct error *why);

/* The sentence about the requests in a lease group. */
uint32_t overcommit_explain_time(const struct lease_group_sum *sum, uint32_t asked,
                                 struct error *why);

/* The sentence about threads, in SM groups of sm_group_size multiprocessors. others: requests of
 * other clients and accounts, which own other_sm_groups in total. asked: SM groups that the new
 * request needs. sm_groups: SM groups of the device. */
uint32_t overcommit_explain_threads(uint32_t others, uint32_t other_sm_groups, uint32_t asked,
                                    uint32_t sm_groups, uint32_t sm_group_size, struct error *why);

/* The sentence about threads in an account, which has sm_groups SM groups. others: requests of its
 * other clients. asked: as above; 0: the account itself would have so few. */
uint32_t overcommit_explain_account_threads(uint32_t others, uint32_t other_sm_groups,
                                            uint32_t asked, uint32_t sm_groups,
                                            uint32_t sm_group_size, struct error *why);

#endif
