/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * requests: whether requests of time fit beside each other. In a lease group, those of accounts and
 * those of clients in accounts without one must not come to more than 1; in an account with a
 * request, its clients' own must not come to more than that.
 *
 * They return 0, or NO_ROOM with the arithmetic in *why, and change nothing. The mode is not
 * looked at. A check is O(clients) for each client that it looks at. One thread at a time, as for
 * scheduler.h.
 */
#ifndef GPUSHARE_SERVER_SCHEDULER_REQUESTS_H
#define GPUSHARE_SERVER_SCHEDULER_REQUESTS_H

#include "server/scheduler/scheduler.h"

/* This request of a client that runs there, or would: sm_groups is not empty. The client has its
 * accounts. An account's request that is there already, with another client, is no reason to
 * refuse: while multiprocessors are lent a sum may be above 1. */
uint32_t requests_check(struct scheduler *scheduler, const struct scheduler_client *client,
                        uint32_t request, const struct sm_group_set *sm_groups, struct error *why);

/* The requests of all clients as they are, or of this account's alone, and its own. */
uint32_t requests_check_all(struct scheduler *scheduler, const struct scheduler_account *account,
                            struct error *why);

/* Another request of an account. */
uint32_t requests_check_account(struct scheduler *scheduler, struct scheduler_account *account,
                                uint32_t request, struct error *why);

#endif
