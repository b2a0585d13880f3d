/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/engine/value_slot.h"

#include <stdlib.h>

#include "client/engine/connection.h"
#include "client/engine/memory.h"
#include "client/engine/module.h"
#include "client/engine/slice.h"
#include "client/engine/stream.h"
#include "client/session/failure.h"
#include "common/messages.h"

enum { PAGE_WORDS = 512 };

struct value_page {
    struct value_page *next;
    uint64_t *words;
    struct use {
        uint32_t stream;
        uint64_t until; /* timeline value of the copy; UINT64_MAX before it is pushed */
    } uses[PAGE_WORDS];
    unsigned next_word; /* where the next search begins */
};

struct slot {
    uint64_t *word;
    struct use *use;
};

void value_slot_init(struct value_slots *slots)
{
    slots->pages = NULL;
    pthread_mutex_init(&slots->lock, NULL);
}

void value_slot_destroy(struct value_slots *slots, bool here)
{
    for (struct value_page *page = slots->pages, *next; page; page = next) {
        next = page->next;
        free(page);
    }
    slots->pages = NULL;
    if (here)
        pthread_mutex_destroy(&slots->lock);
}

/* A stream's number may have gone to another stream, whose timeline goes on from there. */
static bool is_free(const gpushare_connection *connection, const struct use *use)
{
    return use->until != UINT64_MAX && stream_has_reached(connection, use->stream, use->until);
}

/* Copies end mostly in the order in which they were pushed, so the first look mostly finds one. */
static bool search(const gpushare_connection *connection, struct value_page *page,
                   struct slot *slot)
{
    for (unsigned i = 0; i < PAGE_WORDS; i++) {
        unsigned at = (page->next_word + i) % PAGE_WORDS;
        if (!is_free(connection, &page->uses[at]))
            continue;
        *slot = (struct slot){&page->words[at], &page->uses[at]};
        page->next_word = at + 1;
        return true;
    }
    return false;
}

/* With the lock. */
static gpushare_error add_page(gpushare_connection *connection, struct value_slots *slots)
{
    void *words;
    struct value_page *page = calloc(1, sizeof *page);
    if (!page)
        return failure(MESSAGE(process_no_memory));
    gpushare_error error =
        memory_buffer_alloc(connection, PAGE_WORDS * sizeof *page->words, &words);
    if (error) {
        free(page);
        return error;
    }
    page->words = words;
    page->next = slots->pages;
    slots->pages = page;
    return GPUSHARE_SUCCESS;
}

static gpushare_error take(gpushare_connection *connection, struct slot *slot)
{
    struct value_slots *slots = &connection->values;
    gpushare_error error = GPUSHARE_SUCCESS;
    bool found = false;
    pthread_mutex_lock(&slots->lock);
    for (struct value_page *page = slots->pages; page && !found; page = page->next)
        found = search(connection, page, slot);
    if (!found && !(error = add_page(connection, slots)))
        (void)search(connection, slots->pages, slot);
    if (slot->use)
        slot->use->until = UINT64_MAX;
    pthread_mutex_unlock(&slots->lock);
    return error;
}

/* until: the value of the copy, or one that was reached where there is no copy. */
static void give(gpushare_connection *connection, const struct slot *slot, uint32_t stream,
                 uint64_t until)
{
    pthread_mutex_lock(&connection->values.lock);
    *slot->use = (struct use){stream, until};
    pthread_mutex_unlock(&connection->values.lock);
}

gpushare_error value_slot_write(struct gpushare_stream *stream, uint64_t destination,
                                uint64_t value)
{
    gpushare_connection *connection = stream->connection;
    struct slot slot = {NULL, NULL};
    uint64_t until = 0;
    gpushare_error error = module_check_variable(connection, destination);
    if (error || (error = take(connection, &slot)) || !slot.use)
        return error;
    *slot.word = value;
    error = stream_begin(stream);
    if (!error) {
        error = slice_push_copy(stream, destination, (uint64_t)(uintptr_t)slot.word, sizeof value);
        until = error ? 0 : stream_last(stream);
        stream_end(stream);
    }
    give(connection, &slot, stream->index, until);
    return error;
}
