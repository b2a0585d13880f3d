/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/usage_counts.h"

#include "common/ipc/shared_word.h"

/* A read fails when the writer has come back to its copy. That takes a row of another client's, or
 * two moments of its own, while a few words are read. */
enum { READS = 16 };

static struct usage_counts_slot *slot_of(struct usage_counts_table *table, uint64_t client)
{
    return &table->slots[client % USAGE_COUNTS_ROWS];
}

/* Word by word, since the other process may write or read meanwhile. A reader that sees a word of
 * the next turn but one in its copy has to see the turn before that too: so each word is published
 * behind the turn, and the turn is read again behind each word. No fence does that where
 * ThreadSanitizer is to understand it. */
static void counts_copy(struct usage_counts *to, struct usage_counts *from)
{
    shared_word_publish(&to->client, shared_word_read(&from->client));
    shared_word_publish(&to->launches, shared_word_read(&from->launches));
    shared_word_publish(&to->copies, shared_word_read(&from->copies));
    shared_word_publish(&to->copied_bytes, shared_word_read(&from->copied_bytes));
    shared_word_publish(&to->gpu_ns, shared_word_read(&from->gpu_ns));
}

void usage_counts_begin(struct usage_counts_table *table)
{
    shared_word_publish(&table->form, USAGE_COUNTS_FORM);
}

void usage_counts_write(struct usage_counts_table *table, const struct usage_counts *counts)
{
    struct usage_counts_slot *slot = slot_of(table, counts->client);
    struct usage_counts now = *counts;
    const uint64_t next = shared_word_hint(&slot->turn) + 1;
    counts_copy(&slot->copy[next & 1], &now);
    shared_word_publish(&slot->turn, next);
}

bool usage_counts_read(struct usage_counts_table *table, uint64_t client,
                       struct usage_counts *counts)
{
    struct usage_counts_slot *slot = slot_of(table, client);
    if (shared_word_read(&table->form) != USAGE_COUNTS_FORM)
        return false;
    for (int i = 0; i < READS; i++) {
        const uint64_t before = shared_word_read(&slot->turn);
        if (!before)
            return false;
        counts_copy(counts, &slot->copy[before & 1]);
        /* Until the turn changes, the writer is at the other copy. */
        if (shared_word_read(&slot->turn) == before)
            return counts->client == client;
    }
    return false;
}
