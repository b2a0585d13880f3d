/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * overcommit: the sentences that refuse a request of time because it does not fit beside those of
 * others. They show the arithmetic. Each returns its error number. Any thread.
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

/* The sentence about the requests in a lease group. account: the one that the request is of; NULL:
 * it is the client's own. */
uint32_t overcommit_explain_time(const struct lease_group_sum *sum,
                                 const struct scheduler_account *account, uint32_t asked,
                                 struct error *why);

#endif
