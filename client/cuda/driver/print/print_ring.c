/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/cuda/driver/print/print_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/cuda/driver/print/print_format.h"
#include "common/ipc/shared_word.h"
#include "common/util.h"

int print_ring_open(struct print_ring *ring, void *memory, uint64_t bytes)
{
    *ring = (struct print_ring){.head = memory, .bytes = bytes};
    if (getrandom(&ring->nonce, sizeof ring->nonce, 0) != (ssize_t)sizeof ring->nonce)
        return -EIO;
    ring->copy = malloc(bytes);
    if (!ring->copy)
        return -ENOMEM;
    *ring->head = (struct print_ring_head){.mask = bytes - 1, .nonce = ring->nonce};
    return 0;
}

void print_ring_close(struct print_ring *ring)
{
    free(ring->copy);
    ring->copy = NULL;
}

static const uint8_t *place(const struct print_ring *ring, uint64_t at)
{
    return (const uint8_t *)(ring->head + 1) + (at & (ring->bytes - 1));
}

static void copy_out(const struct print_ring *ring, uint64_t at, size_t bytes)
{
    size_t first = min(bytes, (size_t)(ring->bytes - (at & (ring->bytes - 1))));
    memcpy(ring->copy, place(ring, at), first);
    memcpy(ring->copy + first, place(ring, 0), bytes - first);
}

/* Whether the whole record at this place is one that was added. It is in ring->copy then. `end`:
 * where the records end. */
static bool take_record(struct print_ring *ring, uint64_t at, uint64_t end)
{
    struct print_ring_record record;
    if (end - at < sizeof record ||
        shared_word_read((const uint64_t *)place(ring, at)) != at + ring->nonce)
        return false;
    copy_out(ring, at, sizeof record);
    memcpy(&record, ring->copy, sizeof record);
    if (record.bytes % 8 || record.bytes < sizeof record || record.bytes > end - at ||
        record.argument_bytes > record.bytes - sizeof record)
        return false;
    uint32_t bytes = record.bytes;
    copy_out(ring, at, bytes);
    memcpy(&record, ring->copy, sizeof record);
    /* The head may have changed before the second copy. */
    return record.tag == at + ring->nonce && record.bytes == bytes &&
           record.argument_bytes <= bytes - sizeof record;
}

static void show_record(const struct print_ring *ring, FILE *to)
{
    struct print_ring_record head;
    memcpy(&head, ring->copy, sizeof head);
    const uint8_t *arguments = ring->copy + sizeof head;
    const struct print_record record = {
        .arguments = arguments,
        .argument_bytes = head.argument_bytes,
        .text = (const char *)arguments + head.argument_bytes,
        .text_bytes = head.bytes - sizeof head - head.argument_bytes,
    };
    print_format(&record, to);
}

/* Whether bytes at `at` may be written over, or the memory was cleared. */
static bool is_overtaken(const struct print_ring *ring, uint64_t at)
{
    return shared_word_read(&ring->head->written) - at > ring->bytes;
}

void print_ring_show(struct print_ring *ring, bool all, FILE *to)
{
    uint64_t end = shared_word_read(&ring->head->written);
    /* Memory that the server has taken back and cleared has no records. */
    if (end % 8 || end <= ring->read)
        return;
    bool seeks = end - ring->read > ring->bytes;
    if (seeks)
        ring->read = end - ring->bytes;
    while (ring->read < end) {
        if (!take_record(ring, ring->read, end)) {
            if (!all && !seeks && !is_overtaken(ring, ring->read))
                return;
            ring->read += 8;
            seeks = true;
        } else {
            struct print_ring_record record;
            memcpy(&record, ring->copy, sizeof record);
            if (!is_overtaken(ring, ring->read))
                show_record(ring, to);
            ring->read += record.bytes;
            seeks = false;
        }
    }
}
