/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/sharing/account_table.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/util.h"

struct account_entry *account_table_find(struct account_table *table, uint64_t number)
{
    struct account_entry *entry = table->first;
    while (entry && entry->time.number != number)
        entry = entry->next;
    if (entry || !(entry = calloc(1, sizeof *entry)))
        return entry;
    scheduler_account_open(&entry->time, number, entry->name, clock_now());
    entry->threads.number = number;
    entry->next = table->first;
    table->first = entry;
    return entry;
}

int account_table_find_all(struct account_table *table, const uint64_t *numbers,
                           struct account_choice *choice)
{
    *choice = (struct account_choice){.threads = NULL};
    for (uint32_t i = 0; i < PROTO_CLIENT_ACCOUNTS && numbers[i]; i++) {
        struct account_entry *entry = account_table_find(table, numbers[i]);
        if (!entry)
            return -ENOMEM;
        choice->time.of[choice->time.count++] = &entry->time;
        if (!choice->threads)
            choice->threads = &entry->threads;
    }
    return 0;
}

uint32_t account_table_threads_limit(const struct scheduler_accounts *accounts)
{
    uint32_t limit = PLAN_WHOLE;
    for (uint32_t i = 1; i < accounts->count; i++) {
        const struct account_entry *entry =
            container_of(accounts->of[i], struct account_entry, time);
        if (entry->threads.limit)
            limit = min(limit, entry->threads.limit);
    }
    return limit;
}

bool account_table_is_further(const struct scheduler_accounts *accounts,
                              const struct account_entry *entry)
{
    for (uint32_t i = 1; i < accounts->count; i++)
        if (accounts->of[i] == &entry->time)
            return true;
    return false;
}

void account_table_tidy(struct account_table *table)
{
    struct account_entry **link = &table->first;
    while (*link) {
        struct account_entry *entry = *link;
        if (entry->time.members)
            entry->expected = false;
        if (entry->time.members || entry->expected) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        free(entry);
    }
}

void account_table_close(struct account_table *table)
{
    while (table->first) {
        struct account_entry *entry = table->first;
        table->first = entry->next;
        free(entry);
    }
}
