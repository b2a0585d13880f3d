/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/idle_memory.h"

#include <sys/mman.h>

#include "common/ipc/shared_word.h"
#include "server/supervisor/account/heap.h"
#include "server/supervisor/session/session.h"

/* The header is mapped for the moment of a look: the server reads it for nothing else, and few
 * clients are ever looked at. NULL: there is none, or no memory for it. */
static struct proto_client_header *header_map(const struct session *session)
{
    void *page = session->header.fd < 0 ? MAP_FAILED
                                        : mmap(NULL, PROTO_RING_FIRST, PROT_READ | PROT_WRITE,
                                               MAP_SHARED, session->header.fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

static void header_unmap(struct proto_client_header *header)
{
    munmap(header, PROTO_RING_FIRST);
}

/* The block of the client's that this word names; NULL: none that the client may free. */
static struct heap_block *find_block(const struct session *session, uint64_t address)
{
    struct heap_block *block = address ? heap_find(&session->heap, address) : NULL;
    return block && !block->reserved ? block : NULL;
}

uint64_t session_idle_memory_take(struct session *session, uint64_t least,
                                  session_idle_memory_taken *taken)
{
    struct proto_client_header *header = header_map(session);
    uint64_t bytes = 0;
    for (uint32_t i = 0; header && i < PROTO_IDLE_BLOCKS && bytes < least; i++) {
        uint64_t address = shared_word_hint(&header->idle[i]);
        struct heap_block *block = find_block(session, address);
        if (block && shared_word_exchange(&header->idle[i], &address, UINT64_C(0))) {
            bytes += block->bytes;
            taken(session, block);
        }
    }
    if (header)
        header_unmap(header);
    return bytes;
}

uint64_t session_idle_memory_charged(const struct session *session)
{
    struct proto_client_header *header = header_map(session);
    struct heap_block *blocks[PROTO_IDLE_BLOCKS];
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; header && i < PROTO_IDLE_BLOCKS; i++) {
        struct heap_block *block = find_block(session, shared_word_hint(&header->idle[i]));
        if (!block)
            continue;
        block->region->idle = 0;
        blocks[count++] = block;
    }
    for (uint32_t i = 0; i < count; i++)
        if (++blocks[i]->region->idle == blocks[i]->region->used)
            bytes += blocks[i]->region->bytes;
    if (header)
        header_unmap(header);
    return bytes;
}
