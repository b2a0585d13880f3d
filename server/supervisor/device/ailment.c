/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/device/ailment.h"

#include "common/units.h"
#include "common/util.h"
#include "protocol.h"

#define FORGET_NS (600 * UNITS_SECOND)
#define WAIT_MAX  (300 * UNITS_SECOND)
/* Clients that have a worker again within two seconds go on. */
#define WAIT_FIRST UNITS_SECOND
#define WAIT_LOST  (10 * UNITS_SECOND)

static bool is_of_machine(uint32_t error)
{
    /* Errors that the table does not have, of NVLink and of a lost device among them, are unknown
     * ones there. */
    return error == PROTO_ERROR_ECC_UNCORRECTABLE || error == PROTO_ERROR_UNKNOWN ||
           error == PROTO_ERROR_NO_DEVICE;
}

void ailment_note(struct ailment *ailment, uint32_t error, uint64_t now)
{
    if (!is_of_machine(error) && !ailment->ails)
        return;
    if (now - ailment->ailed_at >= FORGET_NS && !ailment->ails)
        ailment->errors = 0;
    uint64_t first = error == PROTO_ERROR_NO_DEVICE ? WAIT_LOST : WAIT_FIRST;
    uint64_t wait = saturating_double(first, ailment->errors, WAIT_MAX);
    ailment->errors++;
    ailment->ails = true;
    ailment->ailed_at = now;
    ailment->until = max(ailment->until, now + wait);
}

void ailment_recover(struct ailment *ailment)
{
    ailment->ails = false;
}

uint64_t ailment_wait(const struct ailment *ailment, uint64_t now)
{
    return saturating_sub(ailment->until, now);
}
