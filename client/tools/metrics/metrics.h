/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * metrics: the server's answer to the admin command metrics, as metrics. docs/monitoring.md lists
 * them. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_METRICS_METRICS_H
#define GPUSHARE_CLIENT_TOOLS_METRICS_METRICS_H

#include <stdint.h>

#include <jansson.h>

#include "client/tools/metrics/exposition.h"

/* Clients with series of their own, unless somebody says otherwise; and the most. */
enum { METRICS_CLIENTS = 100, METRICS_CLIENTS_MAX = 10000 };

/* The numbers of the program that asks. */
struct metrics_asking {
    double seconds;    /* that the latest answer took */
    uint64_t failures; /* questions without an answer, so far */
    json_t *names;     /* an object: names of users by uid, of those that were looked up */
};

/* The request that has such an answer; NULL if memory is short. */
json_t *metrics_request(uint32_t clients);

/* Writes everything, its end included. Looks up names of users that asking->names has not, which
 * can take as long as the slowest directory does. answer: NULL, if the server does not answer:
 * gpushare_up is 0 then. asking: NULL in a tool that asks once. */
void metrics_write(FILE *out, enum exposition_form form, const json_t *answer,
                   const struct metrics_asking *asking);

#endif
