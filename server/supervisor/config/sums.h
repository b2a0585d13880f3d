/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * config_sums: what the users that a configuration names one by one request together. Requests are
 * held against each other when clients attach, so a sum above the whole is no mistake by itself:
 * these users may come at different times, or to different GPUs. But where all of them come to one,
 * the clients of the last ones are refused. Pure; any thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_CONFIG_SUMS_H
#define GPUSHARE_SERVER_SUPERVISOR_CONFIG_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/limits/allowance.h"

struct config;

struct config_sum {
    uint32_t users;   /* that are named and have a request */
    uint64_t request; /* of all of them, in hundredths of a per cent of a GPU */
};

/* Adds up the requests that users' totals have of a resource which the worker enforces. Each user
 * counts once, with the strictest of the entries that are about it, and only if an entry has its
 * number or name alone: who comes of a range is not known. */
struct config_sum config_sums_of_users(const struct config *config, enum resource resource);

/* Writes the sentence about the sum of a resource into *why; false: it is not more than there is.
 */
bool config_sums_exceed(const struct config *config, enum resource resource, struct error *why);

#endif
