/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * listing: the clients that `top` shows, in the order and under the filter that were chosen. One
 * thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_LIVE_LISTING_H
#define GPUSHARE_CLIENT_TOOLS_LIVE_LISTING_H

#include <stdbool.h>
#include <stddef.h>

#include "client/tools/live/overview.h"
#include "client/tools/live/row.h"

enum listing_order {
    LISTING_BY_GOT,
    LISTING_BY_MEMORY,
    LISTING_BY_CLIENT,
    LISTING_BY_NAME,
    LISTING_BY_USER,
    LISTING_ORDERS
};

/* "got", "memory", "id", "name", "user". Static. */
const char *listing_order_name(enum listing_order order);

struct listing {
    struct row *rows;
    size_t count, room;
    enum listing_order order;
    bool reverse;
    char filter[40]; /* a part of the name, the user or the number; "": all are shown */
};

/* Fills the rows anew. Without memory there are none. */
void listing_fill(struct listing *listing, const struct overview *overview);

/* The place of a client among the rows; count: it is not there. */
size_t listing_find(const struct listing *listing, json_int_t client);

void listing_free(struct listing *listing);

#endif
