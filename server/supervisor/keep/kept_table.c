/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/keep/kept_table.h"

#include <stdlib.h>

#include "common/array.h"

struct kept_page {
    struct kept kept;
    struct queue_link marked, open; /* in the table's queues */
    bool is_marked;
    uint32_t number;
    uint32_t used; /* bits of rows that kept_table_add gave */
    uint32_t rows;
    void *items[];
};

_Static_assert(KEPT_PAGE_ROWS <= 32, "a bit for each row");

static uint32_t page_rows(const struct kept_table *table)
{
    return table->page_rows ? table->page_rows : KEPT_PAGE_ROWS;
}

static bool is_full(const struct kept_page *page)
{
    return page->used == UINT32_MAX >> (32 - page->rows);
}

static uint32_t row_of(const struct kept_page *page, uint32_t index)
{
    return page->number * page->rows + index + 1;
}

/* The page of this number, made if it is not there; NULL: there is no memory. */
static struct kept_page *page_of(struct kept_table *table, uint32_t number)
{
    if (array_reserve(table->pages, table->page_room, number + 1) < 0)
        return NULL;
    while (table->page_count <= number)
        table->pages[table->page_count++] = NULL;
    struct kept_page *page = table->pages[number];
    if (!page) {
        const uint32_t rows = page_rows(table);
        page = table->pages[number] = calloc(1, sizeof *page + rows * sizeof *page->items);
        if (page) {
            page->number = number;
            page->rows = rows;
        }
    }
    return page;
}

static void page_mark(struct kept_table *table, struct kept_page *page)
{
    if (page->is_marked)
        return;
    page->is_marked = true;
    queue_append(&table->marked, &page->marked);
}

void kept_table_add(struct kept_table *table, void *item, uint32_t *row)
{
    *row = 0;
    if (!table)
        return;
    struct kept_page *page = QUEUE_FIRST(&table->open, struct kept_page, open);
    if (!page) {
        page = page_of(table, table->page_count);
        if (page)
            queue_append(&table->open, &page->open);
    }
    if (!page) {
        table->failed = true;
        return;
    }
    uint32_t index = (uint32_t)__builtin_ctz(~page->used);
    page->items[index] = item;
    page->used |= 1u << index;
    if (is_full(page))
        queue_take(&table->open);
    *row = row_of(page, index);
    page_mark(table, page);
}

void kept_table_remove(struct kept_table *table, uint32_t *row)
{
    if (!table || !*row)
        return;
    struct kept_page *page = table->pages[(*row - 1) / page_rows(table)];
    uint32_t index = (*row - 1) % page_rows(table);
    if (is_full(page))
        queue_prepend(&table->open, &page->open);
    page->items[index] = NULL;
    page->used &= ~(1u << index);
    *row = 0;
    page_mark(table, page);
}

void kept_table_mark(struct kept_table *table, uint32_t row)
{
    if (!table || !row)
        return;
    struct kept_page *page = page_of(table, (row - 1) / page_rows(table));
    if (page)
        page_mark(table, page);
    else
        table->failed = true;
}

static void page_pack(const struct kept_page *page, struct pack *pack, kept_writer *write,
                      void *context)
{
    pack_begin(pack);
    for (uint32_t i = 0; i < page->rows; i++)
        write(context, row_of(page, i), page->items[i], pack);
}

void kept_table_put(struct kept_table *table, struct keeper *keeper, uint16_t kind, uint32_t key,
                    kept_writer *write, void *context)
{
    struct kept_page *page;
    if (table->failed)
        keeper_lack_memory(keeper);
    while ((page = QUEUE_TAKE(&table->marked, struct kept_page, marked))) {
        struct state_name name = {.kind = kind, .key = key, .page = page->number};
        page->is_marked = false;
        page_pack(page, &keeper->pack, write, context);
        if (keeper->pack.bytes || keeper->pack.failed)
            keeper_put(keeper, &page->kept, name, &keeper->pack);
        else
            keeper_remove(keeper, &page->kept);
    }
}

bool kept_table_is_current(const struct kept_table *table, struct keeper *keeper,
                           kept_writer *write, void *context)
{
    for (uint32_t i = 0; i < table->page_count && keeper->on; i++) {
        const struct kept_page *page = table->pages[i];
        if (!page)
            continue;
        page_pack(page, &keeper->pack, write, context);
        if (keeper->on && (keeper->pack.bytes || list_is_linked(&page->kept.record.link)) &&
            !state_log_has(keeper->log, &page->kept.record, keeper->pack.data, keeper->pack.bytes))
            return false;
    }
    return true;
}

void kept_table_clear(struct kept_table *table, struct keeper *keeper)
{
    for (uint32_t i = 0; i < table->page_count; i++) {
        if (table->pages[i])
            keeper_remove(keeper, &table->pages[i]->kept);
        free(table->pages[i]);
    }
    free(table->pages);
    *table = (struct kept_table){.page_rows = table->page_rows};
}
