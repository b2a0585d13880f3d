/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/host_record.h"

#include <errno.h>

#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/pinned_pool.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"

enum { BUFFER_UNMAPPING, BUFFER_LIVE, BUFFER_GONE };

static unsigned state_kept(const struct heap_region *region)
{
    const struct pinned_buffer *buffer = region->user;
    if (region->gone || buffer->state != PINNED_USED)
        return BUFFER_GONE;
    return region->state == HEAP_REGION_LIVE ? BUFFER_LIVE : BUFFER_UNMAPPING;
}

void session_host_record_pack(struct session *session, struct pack *pack)
{
    struct heap *heap = &session->buffers;
    pack_number(pack, session->imports != NULL);
    pack_number(pack, heap->regions);
    for (struct heap_region *at = heap->first; at; at = at->next) {
        pack_number(pack, at->address);
        pack_number(pack, at->bytes);
        pack_number(pack, state_kept(at));
        keeper_pack_fd(session->server->keeper, pack, KEEPER_DATA, at->charged_fd.fd, &at->kept);
    }
}

static int buffer_unpack(struct session *session, struct unpack *unpack)
{
    uint64_t address = unpack_number(unpack), bytes = unpack_number(unpack);
    uint64_t state = unpack_number_max(unpack, BUFFER_GONE);
    uint32_t kept = unpack_fd(unpack);
    struct heap_region *region;
    struct pinned_buffer *buffer = unpack->failed ? NULL : pinned_pool_buffer_make(session, bytes);
    if (!buffer)
        return unpack->failed ? -EINVAL : -ENOMEM;
    buffer->keep = false;
    int result = heap_region_put(&session->buffers, address, bytes, false, &region);
    if (result < 0) {
        pinned_pool_buffer_free(buffer);
        return result;
    }
    region->user = buffer;
    buffer->region = region;
    region->kept = kept;
    quota_charge_again(&session->accounts[RESOURCE_HOST_MEMORY], &region->charge, bytes);
    fd_budget_charge_again(&region->charged_fd, &session->fds,
                           keeper_take(session->server->keeper, kept, KEEPER_DATA));
    heap_region_ready(region);
    if (state == BUFFER_LIVE)
        return region->charged_fd.fd < 0 ? -EBADF : 0;
    heap_region_clear(region);
    heap_region_withdraw(region);
    region->gone = state == BUFFER_GONE;
    return 0;
}

int session_host_record_unpack(struct session *session, struct unpack *unpack)
{
    bool imports = unpack_number(unpack) != 0;
    uint64_t count = unpack_number(unpack);
    int result = 0;
    for (uint64_t i = 0; i < count && result == 0; i++)
        result = buffer_unpack(session, unpack);
    return result == 0 && imports ? -ENOTSUP : result;
}

void session_host_record_resume(struct session *session)
{
    for (struct heap_region *at = session->buffers.first, *next; at; at = next) {
        next = at->next;
        if (at->gone)
            pinned_pool_buffer_empty(at);
        else if (at->state == HEAP_REGION_UNMAPPING)
            session_host_unmap_again(session, at);
    }
}
