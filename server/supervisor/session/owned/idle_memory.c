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

/* The words that name blocks, and the regions of these. */
struct idle_look {
    struct proto_client_header *header;
    uint32_t count;
    struct idle_found {
        uint64_t *word;
        uint64_t address;
        struct heap_region *region;
    } found[PROTO_IDLE_BLOCKS];
};

static void look_begin(struct idle_look *look, const struct session *session)
{
    look->header = header_map(session);
    look->count = 0;
    for (uint32_t i = 0; look->header && i < PROTO_IDLE_BLOCKS; i++) {
        uint64_t address = shared_word_hint(&look->header->idle[i]);
        struct heap_block *block = find_block(session, address);
        if (!block)
            continue;
        block->region->idle = 0;
        look->found[look->count++] =
            (struct idle_found){&look->header->idle[i], address, block->region};
    }
    for (uint32_t i = 0; i < look->count; i++)
        look->found[i].region->idle++;
}

static void look_end(const struct idle_look *look)
{
    if (look->header)
        header_unmap(look->header);
}

/* The block is looked for again: a client may have named it in two words. */
static bool take(struct session *session, const struct idle_found *found,
                 session_idle_memory_taken *taken)
{
    uint64_t address = found->address;
    struct heap_block *block = find_block(session, address);
    if (!block || !shared_word_exchange(found->word, &address, UINT64_C(0)))
        return false;
    taken(session, block);
    return true;
}

bool session_idle_memory_take_all(struct session *session, session_idle_memory_taken *taken)
{
    struct idle_look look;
    bool any = false;
    look_begin(&look, session);
    for (uint32_t i = 0; i < look.count; i++)
        any |= take(session, &look.found[i], taken);
    look_end(&look);
    return any;
}

/* Takes the region's blocks, the first of which stands at `from`. Returns the bytes that come back.
 * A region of one block is withdrawn when that is taken. */
static uint64_t take_region(struct session *session, const struct idle_look *look, uint32_t from,
                            session_idle_memory_taken *taken)
{
    const struct heap_region *region = look->found[from].region;
    uint64_t bytes = region->bytes;
    uint32_t left = region->used;
    for (uint32_t i = from; i < look->count; i++)
        if (look->found[i].region == region && take(session, &look->found[i], taken))
            left--;
    return left ? 0 : bytes;
}

uint64_t session_idle_memory_take(struct session *session, uint64_t least,
                                  session_idle_memory_taken *taken)
{
    struct idle_look look;
    uint64_t bytes = 0;
    look_begin(&look, session);
    for (uint32_t i = 0; i < look.count && bytes < least; i++) {
        struct heap_region *region = look.found[i].region;
        bool whole = region->used && region->idle == region->used;
        region->idle = 0; /* seen */
        if (whole)
            bytes += take_region(session, &look, i, taken);
    }
    look_end(&look);
    return bytes;
}

uint64_t session_idle_memory_charged(const struct session *session)
{
    struct idle_look look;
    uint64_t bytes = 0;
    look_begin(&look, session);
    for (uint32_t i = 0; i < look.count; i++) {
        struct heap_region *region = look.found[i].region;
        if (region->idle == region->used)
            bytes += region->bytes;
        region->idle = 0; /* seen */
    }
    look_end(&look);
    return bytes;
}
