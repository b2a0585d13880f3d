/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/ipc/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "common/ipc/shared_word.h"

void doorbell_mark(struct proto_client_header *header, uint32_t stream)
{
    uint32_t word = stream / 64;
    /* The second level is set first: a submitter that finds the first level's bit must find the
     * second level's too. */
    shared_word_set_bits(&header->words[word], UINT64_C(1) << (stream % 64));
    shared_word_set_bits(&header->summary, UINT64_C(1) << word);
}

void doorbell_ring(struct proto_client_header *header, uint32_t stream, int eventfd)
{
    doorbell_mark(header, stream);
    /* Both sides are sequentially consistent: doorbell_prepare_sleep sees the bit, or this sees
     * its flag. The exchange lets one of several ringing threads write the eventfd. */
    if (shared_word_look(&header->asleep) && shared_word_take(&header->asleep, 0)) {
        uint64_t one = 1;
        ssize_t written = write(eventfd, &one, sizeof one);
        (void)written;
    }
}

int doorbell_take(struct proto_client_header *header, uint32_t streams, uint64_t *bits)
{
    uint64_t summary = shared_word_look(&header->summary);
    while (summary) {
        int word = __builtin_ctzll(summary);
        /* The first level is cleared first: a client that rings after this sets both levels
         * again, so its bit is not lost. */
        shared_word_clear_bits(&header->summary, UINT64_C(1) << word);
        uint64_t taken = shared_word_take(&header->words[word], 0);
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
    return shared_word_hint(&header->summary) != 0;
}

bool doorbell_prepare_sleep(struct proto_client_header *header)
{
    /* Announced before the look at the bitmap: a client that rings meanwhile sees the flag, or
     * this sees its bit. */
    shared_word_announce(&header->asleep, 1);
    if (shared_word_look(&header->summary) == 0)
        return true;
    shared_word_set(&header->asleep, 0);
    return false;
}

void doorbell_cancel_sleep(struct proto_client_header *header)
{
    shared_word_set(&header->asleep, 0);
}
