/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/journal.h"

#include <string.h>

#include "common/ipc/shared_word.h"

_Static_assert(sizeof(struct journal_entry) == 64, "a line of the cache");
_Static_assert(offsetof(struct proto_command_launch, inline_parameters) <=
                   sizeof(((struct journal_entry *)0)->command),
               "all of a launch but its parameters");
_Static_assert(offsetof(struct proto_command_copy, count) + sizeof(uint64_t) <=
                   sizeof(((struct journal_entry *)0)->command),
               "all of a copy");

size_t journal_shadow_bytes(uint32_t streams)
{
    return ring_shadow_bytes(streams) + JOURNAL_ENTRIES * sizeof(struct journal_entry);
}

struct journal_entry *journal_at(void *shadow_memory, uint32_t streams)
{
    return (void *)((uint8_t *)shadow_memory + ring_shadow_bytes(streams));
}

void journal_note(struct journal_entry *journal, uint32_t *next, uint32_t stream, uint64_t value,
                  const struct ring_descriptor *descriptor)
{
    struct journal_entry *entry = &journal[(*next)++ % JOURNAL_ENTRIES];
    uint64_t words[JOURNAL_COMMAND_WORDS];
    memcpy(words, descriptor->bytes, sizeof words);
    /* A process that dies in between leaves no entry, and not one of two halves: each word is
     * stored behind the one before. */
    shared_word_publish(&entry->value, 0);
    shared_word_publish(&entry->stream, stream);
    for (int i = 0; i < JOURNAL_COMMAND_WORDS; i++)
        shared_word_publish(&entry->command[i], words[i]);
    shared_word_publish(&entry->value, value);
}

static void entry_copy(const struct journal_entry *entry, struct journal_entry *copy)
{
    copy->value = shared_word_read(&entry->value);
    copy->stream = shared_word_read(&entry->stream);
    for (int i = 0; i < JOURNAL_COMMAND_WORDS; i++)
        copy->command[i] = shared_word_read(&entry->command[i]);
}

/* The value alone does not tell two commands apart, since each stream has one of that value. Two
 * equal copies are one command: between them the entry was as they are, and had a value. */
bool journal_read(const struct journal_entry *entry, struct journal_entry *copy)
{
    struct journal_entry again;
    entry_copy(entry, copy);
    entry_copy(entry, &again);
    return copy->value && memcmp(copy, &again, sizeof again) == 0;
}
