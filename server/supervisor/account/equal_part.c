/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/equal_part.h"

#include <stdlib.h>

#include "common/util.h"

static int compare_wishes(const void *left, const void *right)
{
    const struct equal_part_client *a = left, *b = right;
    return (a->account > b->account) - (a->account < b->account);
}

/* The clients of one account, from `first` on. */
struct portion {
    size_t count;
    uint64_t reserved, asked;
};

static struct portion portion_at(const struct equal_part_client *first, size_t left)
{
    struct portion portion = {0};
    for (; portion.count < left && first[portion.count].account == first->account;
         portion.count++) {
        portion.reserved = saturating_add(portion.reserved, first[portion.count].reserved);
        portion.asked = saturating_add(portion.asked, first[portion.count].asked);
    }
    if (first->of_account)
        portion.reserved = first->of_account;
    return portion;
}

static void grant_portion(struct equal_part_client *first, const struct portion *portion,
                          uint64_t part)
{
    for (size_t i = 0; i < portion->count; i++)
        first[i].granted =
            portion->asked <= part
                ? first[i].asked
                : (uint64_t)((unsigned __int128)first[i].asked * part / portion->asked);
}

size_t equal_part_divide(struct equal_part_client *clients, size_t count, uint64_t whole)
{
    uint64_t reserved = 0, accounts = 0, asking = 0;
    struct portion portion;
    qsort(clients, count, sizeof *clients, compare_wishes);
    for (size_t i = 0; i < count; i += portion.count) {
        portion = portion_at(&clients[i], count - i);
        reserved = saturating_add(reserved, portion.reserved);
        accounts++;
        asking += portion.asked != 0;
    }
    const uint64_t part = accounts <= 1 ? UINT64_MAX
                          : asking ? min(whole / accounts, saturating_sub(whole, reserved) / asking)
                                   : 0;
    for (size_t i = 0; i < count; i += portion.count) {
        portion = portion_at(&clients[i], count - i);
        grant_portion(&clients[i], &portion, part);
    }
    return accounts;
}
