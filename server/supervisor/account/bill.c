/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/account/bill.h"

#include "common/clock.h"
#include "common/util.h"

#define US        UINT64_C(1000) /* ns */
#define SECOND_US UINT64_C(1000000)
/* A client that was there for so long without using anything has kept its share from others. */
#define IDLE_NS (10 * UNITS_SECOND)

static uint64_t real_us(void)
{
    return clock_read(CLOCK_REALTIME) / US;
}

/* Seconds and the rest apart: the product of a GPU's memory and a year in microseconds has more
 * than 64 bits. */
static void level_sum(struct bill_level *level)
{
    const uint64_t now = clock_now() / US;
    const uint64_t passed = level->at_us ? saturating_sub(now, level->at_us) : 0;
    level->byte_seconds += level->bytes * (passed / SECOND_US);
    level->byte_us += level->bytes * (passed % SECOND_US);
    level->byte_seconds += level->byte_us / SECOND_US;
    level->byte_us %= SECOND_US;
    level->at_us = now;
}

static void level_take(struct bill_level *level, uint64_t *byte_seconds, uint64_t *peak)
{
    level_sum(level);
    *byte_seconds = level->byte_seconds;
    *peak = level->peak;
    level->byte_seconds = 0;
    level->peak = level->bytes;
}

void bill_begin(struct bill *bill, uint32_t multiprocessors)
{
    uint64_t unbilled;
    level_take(&bill->memory, &unbilled, &unbilled);
    level_take(&bill->host_memory, &unbilled, &unbilled);
    bill->begun_at = clock_now();
    bill->attached_us = bill->begun_us = real_us();
    bill->multiprocessors = multiprocessors;
}

void bill_share(struct bill *bill, uint32_t multiprocessors)
{
    bill->multiprocessors = multiprocessors;
}

void bill_note(struct bill *bill, const struct bill_counts *counts)
{
    struct bill_counts *known = &bill->known;
    if (counts->gpu_ns > known->gpu_ns)
        bill->sm_ns += (counts->gpu_ns - known->gpu_ns) * bill->multiprocessors;
    known->launches = max(known->launches, counts->launches);
    known->copies = max(known->copies, counts->copies);
    known->copied_bytes = max(known->copied_bytes, counts->copied_bytes);
    known->gpu_ns = max(known->gpu_ns, counts->gpu_ns);
}

void bill_level_set(struct bill_level *level, uint64_t bytes)
{
    if (!level)
        return;
    level_sum(level);
    level->bytes = bytes;
    level->peak = max(level->peak, bytes);
}

/* Where the clock was set back meanwhile, the line begins as the clock would have had it. */
static uint64_t begun_us(const struct bill *bill, uint64_t now, uint64_t ended_us)
{
    return bill->begun_us <= ended_us ? bill->begun_us
                                      : saturating_sub(ended_us, (now - bill->begun_at) / US);
}

void bill_take(struct bill *bill, struct bill_sums *sums)
{
    const uint64_t now = clock_now(), ended_us = real_us();
    *sums = (struct bill_sums){
        .begun_us = begun_us(bill, now, ended_us),
        .ended_us = ended_us,
        .connected_ns = now - bill->begun_at,
        .sm_ns = bill->sm_ns - bill->sm_billed,
        .used = {.launches = bill->known.launches - bill->billed.launches,
                 .copies = bill->known.copies - bill->billed.copies,
                 .copied_bytes = bill->known.copied_bytes - bill->billed.copied_bytes,
                 .gpu_ns = bill->known.gpu_ns - bill->billed.gpu_ns}};
    level_take(&bill->memory, &sums->memory_byte_seconds, &sums->memory_peak);
    level_take(&bill->host_memory, &sums->host_byte_seconds, &sums->host_peak);
    bill->billed = bill->known;
    bill->sm_billed = bill->sm_ns;
    bill->begun_at = now;
    bill->begun_us = sums->ended_us;
    bill->lines++;
}

bool bill_is_nothing(const struct bill *bill, const struct bill_sums *sums)
{
    /* The line that is taken counts already. */
    return bill->lines <= 1 && !sums->used.launches && !sums->used.copies && !sums->used.gpu_ns &&
           !sums->memory_peak && sums->connected_ns < IDLE_NS;
}
