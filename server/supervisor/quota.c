/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/quota.h"

#include <assert.h>
#include <stddef.h>

void quota_open(struct quota *quota, const char *name, uint64_t limit, struct quota *parent)
{
    *quota = (struct quota){.name = name, .limit = limit, .parent = parent};
}

void quota_close(struct quota *quota)
{
    assert(quota->used == 0);
    quota->parent = NULL;
}

/* An account that was lowered below its use has nothing left, rather than very much. */
static uint64_t room(const struct quota *quota)
{
    return quota->used < quota->limit ? quota->limit - quota->used : 0;
}

int quota_charge(struct quota *quota, struct charge *charge, uint64_t amount,
                 const struct quota **culprit)
{
    assert(!charge->quota);
    for (const struct quota *q = quota; q; q = q->parent) {
        if (amount > room(q)) {
            if (culprit)
                *culprit = q;
            return QUOTA_OVER;
        }
    }
    for (struct quota *q = quota; q; q = q->parent)
        q->used += amount;
    *charge = (struct charge){.quota = quota, .amount = amount};
    return 0;
}

uint64_t quota_left(const struct quota *quota)
{
    uint64_t least = UINT64_MAX;
    for (const struct quota *q = quota; q; q = q->parent)
        if (room(q) < least)
            least = room(q);
    return least;
}

void charge_return(struct charge *charge)
{
    for (struct quota *q = charge->quota; q; q = q->parent) {
        assert(q->used >= charge->amount);
        q->used -= charge->amount;
    }
    *charge = CHARGE_NONE;
}
