/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * kept_table: many things of one kind and owner, as they are kept: a page of a few of them in each
 * record.
 *
 * Each thing has a row. A function that changes a thing marks its row, and kept_table_put writes
 * the pages with marked rows, and no other. So a request costs what it changed, however much its
 * client has. A change that nobody marks is not kept.
 *
 * A table that is all zero is empty. NULL for a table: nothing is kept, and kept_table_add, _remove
 * and _mark do nothing. Loop thread.
 */
#ifndef GPUSHARE_SERVER_SUPERVISOR_KEEP_KEPT_TABLE_H
#define GPUSHARE_SERVER_SUPERVISOR_KEEP_KEPT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"
#include "server/supervisor/keep/keeper.h"

/* Rows of a page, at most. Of a greater page more is written for each change; a smaller one costs
 * more memory for each row. */
#define KEPT_PAGE_ROWS 32u

struct kept_page;

struct kept_table {
    struct kept_page **pages; /* NULL: none of its rows was used yet */
    uint32_t page_count, page_room;
    struct queue marked; /* pages of which a row has changed */
    struct queue open;   /* pages with a row for kept_table_add */
    uint32_t page_rows;  /* for things that may be large, set before the first; 0: KEPT_PAGE_ROWS */
    bool failed;         /* memory was missing, and a change is not noted */
};

/* Packs one thing. item: what kept_table_add was given, or NULL. Writes nothing if nothing of it is
 * to be kept. */
typedef void kept_writer(void *context, uint32_t row, void *item, struct pack *pack);

/* Finds a free row for the thing, and marks it. *row: its number, from 1 on; 0: there is no memory,
 * and the keeper gives up at the next put. */
void kept_table_add(struct kept_table *table, void *item, uint32_t *row);

/* The thing is gone, and *row is 0. Does nothing if it was. */
void kept_table_remove(struct kept_table *table, uint32_t *row);

/* The thing has changed. A row whose number the caller chose is known from here on: such a table
 * has no other rows. 0: does nothing. */
void kept_table_mark(struct kept_table *table, uint32_t row);

/* Puts all marked pages into the keeper, under this kind and key; pages without anything are taken
 * out. */
void kept_table_put(struct kept_table *table, struct keeper *keeper, uint16_t kind, uint32_t key,
                    kept_writer *write, void *context);

/* Whether what the keeper has is what the writer packs now. For tests: it looks at every row. */
bool kept_table_is_current(const struct kept_table *table, struct keeper *keeper,
                           kept_writer *write, void *context);

/* Takes all records out, and frees all pages. No row that a thing had is used again. */
void kept_table_clear(struct kept_table *table, struct keeper *keeper);

#endif
