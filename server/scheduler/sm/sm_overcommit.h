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

struct sm_overcommit {
    uint32_t others;          /* requests of others */
    uint32_t other_sm_groups; /* that those own in total */
    uint32_t asked;           /* SM groups that the new request needs */
    uint32_t sm_groups;       /* that there are for all of them */
    uint32_t sm_group_size;   /* in multiprocessors */
};

/* The sentence about threads of the device. The others are other clients and accounts. most: the
 * greatest request that would fit, in hundredths of a per cent. */
uint32_t sm_overcommit_explain(const struct sm_overcommit *sums, uint32_t most, struct error *why);

/* The sentence about threads in an account. The others are its other clients. asked may be 0: the
 * account itself would have so few SM groups. */
uint32_t sm_overcommit_explain_account(const struct sm_overcommit *sums, struct error *why);

#endif
