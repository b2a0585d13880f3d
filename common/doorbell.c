/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

void doorbell_ring(struct proto_client_header *header, uint32_t stream, int eventfd)
{
    uint32_t word = stream / 64;
    /* Second level first: who finds the first level's bit must find the second level's too. */
    __atomic_fetch_or(&header->words[word], UINT64_C(1) << (stream % 64), __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&header->summary, UINT64_C(1) << word, __ATOMIC_SEQ_CST);
    /* Sequentially consistent with doorbell_prepare_sleep: it sees the bit, or this sees the flag.
     */
    if (__atomic_load_n(&header->asleep, __ATOMIC_SEQ_CST) &&
        __atomic_exchange_n(&header->asleep, 0, __ATOMIC_SEQ_CST)) {
        uint64_t one = 1;
        ssize_t written = write(eventfd, &one, sizeof one);
        (void)written;
    }
}

int doorbell_take(struct proto_client_header *header, uint32_t streams, uint64_t *bits)
{
    uint64_t summary = __atomic_load_n(&header->summary, __ATOMIC_SEQ_CST);
    while (summary) {
        int word = __builtin_ctzll(summary);
        /* First level first: a bit that is set after this stands in both again. */
        __atomic_fetch_and(&header->summary, ~(UINT64_C(1) << word), __ATOMIC_SEQ_CST);
        uint64_t taken = __atomic_exchange_n(&header->words[word], 0, __ATOMIC_SEQ_CST);
        if ((uint32_t)word * 64 >= streams)
            taken = 0;
        else if (streams - (uint32_t)word * 64 < 64)
            taken &= (UINT64_C(1) << (streams % 64)) - 1;
        if (taken) {
            *bits = taken;
            return word;
        }
        summary &= summary - 1;
    }
    return -1;
}

bool doorbell_pending(const struct proto_client_header *header)
{
    return __atomic_load_n(&header->summary, __ATOMIC_RELAXED) != 0;
}

bool doorbell_prepare_sleep(struct proto_client_header *header)
{
    (void)__atomic_exchange_n(&header->asleep, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&header->summary, __ATOMIC_SEQ_CST) == 0)
        return true;
    __atomic_store_n(&header->asleep, 0, __ATOMIC_SEQ_CST);
    return false;
}

void doorbell_cancel_sleep(struct proto_client_header *header)
{
    __atomic_store_n(&header->asleep, 0, __ATOMIC_SEQ_CST);
}
