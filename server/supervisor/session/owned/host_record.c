/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/session/owned/host_record.h"

#include <errno.h>
#include <stdlib.h>

#include "server/supervisor/session/owned/host.h"
#include "server/supervisor/session/owned/host_import.h"
#include "server/supervisor/session/owned/pinned_pool.h"
#include "server/supervisor/session/server.h"
#include "server/supervisor/session/session.h"
#include "server/supervisor/session/session_state.h"

enum { BUFFER_UNMAPPING, BUFFER_LIVE, BUFFER_GONE };

static unsigned state_kept(const struct heap_region *region)
{
    const struct pinned_buffer *buffer = region->user;
    if (region->gone || buffer->state != PINNED_USED)
        return BUFFER_GONE;
    return region->state == HEAP_REGION_LIVE ? BUFFER_LIVE : BUFFER_UNMAPPING;
}

/* One that was being mapped is given back: its request is handled anew. */
void session_host_record_import_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    const struct host_import *import = item;
    (void)context;
    (void)row;
    if (!import)
        return;
    pack_number(pack, import->owner->number);
    pack_number(pack, import->region->address);
    pack_number(pack, import->state == IMPORT_LIVE);
}

void session_host_record_buffer_pack(void *context, uint32_t row, void *item, struct pack *pack)
{
    struct session *session = context;
    struct heap_region *region = item;
    (void)row;
    if (!region)
        return;
    pack_number(pack, region->address);
    pack_number(pack, region->bytes);
    pack_number(pack, state_kept(region));
    keeper_pack_fd(session->server->keeper, pack, KEEPER_DATA, region->charged_fd.fd,
                   &region->kept);
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
    quota_charge_again(&session->quotas[RESOURCE_HOST_MEMORY], &region->charge, bytes);
    fd_budget_charge_again(&region->charged_fd, &session->fds,
                           keeper_take(session->server->keeper, kept, KEEPER_DATA));
    heap_region_ready(region);
    if (state == BUFFER_LIVE)
        return region->charged_fd.fd < 0 ? -EBADF : 0;
    heap_region_clear(region);
    heap_region_withdraw(region);
    region->gone = state == BUFFER_GONE;
    heap_region_mark(region);
    return 0;
}

static int import_unpack(struct session *session, struct unpack *unpack)
{
    struct host_import *import = calloc(1, sizeof *import);
    if (!import)
        return -ENOMEM;
    import->owner_number = (uint32_t)unpack_number_max(unpack, UINT32_MAX);
    import->address = unpack_number(unpack);
    import->state = unpack_number(unpack) ? IMPORT_LIVE : IMPORT_UNMAPPING;
    import->user = session;
    list_prepend(&session->imports, &import->in_session);
    kept_table_add(session_tables(session, PART_IMPORTS), import, &import->row);
    return unpack->failed ? -EINVAL : 0;
}

int session_host_record_imports_unpack(struct session *session, struct unpack *unpack)
{
    int result = 0;
    while (result == 0 && !unpack_is_whole(unpack))
        result = import_unpack(session, unpack);
    return result;
}

int session_host_record_buffers_unpack(struct session *session, struct unpack *unpack)
{
    int result = 0;
    while (result == 0 && !unpack_is_whole(unpack))
        result = buffer_unpack(session, unpack);
    return result;
}

static bool import_find(struct host_import *import)
{
    struct session *owner = session_find(import->user->server, import->owner_number);
    struct heap_region *region = owner ? owner->buffers.first : NULL;
    while (region && region->address != import->address)
        region = region->next;
    if (!region)
        return false;
    import->owner = owner;
    import->region = region;
    region->imports++;
    owner->lent++;
    quota_charge_again(&import->user->quotas[RESOURCE_HOST_MEMORY], &import->charge, region->bytes);
    return true;
}

int session_host_record_find(struct session *session)
{
    struct host_import *import;
    int result = 0;
    LIST_FOR_EACH (import, &session->imports, in_session) {
        if (import_find(import))
            continue;
        list_remove(&import->in_session);
        kept_table_remove(session_tables(session, PART_IMPORTS), &import->row);
        free(import);
        result = -ENOENT;
    }
    return result;
}

void session_host_record_resume(struct session *session)
{
    for (struct heap_region *at = session->buffers.first, *next; at; at = next) {
        next = at->next;
        if (at->gone && !at->imports)
            pinned_pool_buffer_empty(at);
        else if (!at->gone && at->state == HEAP_REGION_UNMAPPING)
            session_host_unmap_again(session, at);
    }
    struct host_import *import;
    LIST_FOR_EACH (import, &session->imports, in_session)
        if (import->state == IMPORT_UNMAPPING) {
            session_host_import_enter(import, IMPORT_LIVE);
            session_host_import_return(import);
        }
}
