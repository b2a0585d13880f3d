/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* admin_metrics: the answer to the command metrics, in which all counters grow only. It is short
 * enough to be asked for every few seconds, with many clients too. Loop thread. */
#ifndef GPUSHARE_SERVER_SUPERVISOR_ADMIN_METRICS_H
#define GPUSHARE_SERVER_SUPERVISOR_ADMIN_METRICS_H

#include <stdint.h>

#include <jansson.h>

struct supervisor;

/* shown: the most clients with rows of their own; those that connected first have them. The caller
 * owns the answer; NULL if memory is short. */
json_t *admin_metrics_answer(struct supervisor *supervisor, uint32_t shown);

#endif
