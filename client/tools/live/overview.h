/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * overview: one screen of GPUs and clients, which gpusharectl shows without a command. `top` shows
 * it again and again. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_OVERVIEW_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_OVERVIEW_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "client/tools/admin_client.h"
#include "client/tools/sample.h"
#include "client/tools/table.h"

struct overview {
    json_t *status; /* the answer to "status"; after a failure the error */
    struct sample sample;
    uint64_t asked_at; /* the last time, by clock_now */
};

/* Asks the server at `socket`. The clients that were asked for before, if any, become those of the
 * sample's first moment. After a failure the earlier answers stay, and *failure is the error, which
 * the caller owns; NULL without memory. */
enum admin_outcome overview_take(struct overview *overview, const char *socket, json_t **failure);

/* Both answers as one document, admin-overview.schema.json. The caller owns it; NULL without
 * memory. */
json_t *overview_json(const struct overview *overview);

void overview_print(FILE *out, const struct overview *overview, struct table_look look);

void overview_free(struct overview *overview);

#endif
