/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/live/listing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/array.h"

const char *listing_order_name(enum listing_order order)
{
    static const char *const names[LISTING_ORDERS] = {"got", "memory", "id", "name", "user"};
    return names[order];
}

/* Numbers fall and texts rise, as people expect of either. */
static int compare(const struct row *a, const struct row *b, enum listing_order order)
{
    int result = 0;
    if (order == LISTING_BY_GOT)
        result = (a->got < b->got) - (a->got > b->got);
    else if (order == LISTING_BY_MEMORY)
        result = (a->used < b->used) - (a->used > b->used);
    else if (order == LISTING_BY_NAME)
        result = strcasecmp(a->name, b->name);
    else if (order == LISTING_BY_USER)
        result = strcasecmp(a->user, b->user);
    return result ? result : (a->client > b->client) - (a->client < b->client);
}

static int compare_rows(const void *a, const void *b, void *of)
{
    const struct listing *listing = of;
    const int result = compare(a, b, listing->order);
    return listing->reverse ? -result : result;
}

static bool passes(const struct listing *listing, const struct row *row)
{
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)row->client);
    return strcasestr(row->name, listing->filter) || strcasestr(row->user, listing->filter) ||
           strcmp(number, listing->filter) == 0;
}

void listing_fill(struct listing *listing, const struct overview *overview)
{
    const json_t *clients = json_object_get(overview->sample.after, "clients"), *client;
    listing->count = 0;
    if (array_reserve(listing->rows, listing->room, json_array_size(clients)) < 0)
        return;
    for (size_t i = 0; (client = json_array_get(clients, i)); i++) {
        struct row *row = &listing->rows[listing->count];
        row_read(row, overview->status, &overview->sample, client);
        listing->count += passes(listing, row);
    }
    if (listing->count)
        qsort_r(listing->rows, listing->count, sizeof *listing->rows, compare_rows, listing);
}

size_t listing_find(const struct listing *listing, json_int_t client)
{
    size_t i = 0;
    while (i < listing->count && listing->rows[i].client != client)
        i++;
    return i;
}

void listing_free(struct listing *listing)
{
    free(listing->rows);
    *listing = (struct listing){0};
}
