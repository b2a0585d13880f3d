/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/keep/pack.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

void pack_begin(struct pack *pack)
{
    pack->bytes = 0;
    pack->fd_count = 0;
    pack->failed = false;
}

void pack_free(struct pack *pack)
{
    free(pack->data);
    free(pack->fds);
    *pack = (struct pack){0};
}

void pack_bytes(struct pack *pack, const void *data, size_t bytes)
{
    if (pack->failed || !bytes)
        return;
    if (array_reserve(pack->data, pack->room, pack->bytes + bytes) < 0) {
        pack->failed = true;
        return;
    }
    memcpy(pack->data + pack->bytes, data, bytes);
    pack->bytes += bytes;
}

void pack_number(struct pack *pack, uint64_t number)
{
    pack_bytes(pack, &number, sizeof number);
}

void pack_fd(struct pack *pack, uint32_t number)
{
    pack_number(pack, number);
    if (!number || pack->failed)
        return;
    if (array_reserve(pack->fds, pack->fd_room, pack->fd_count + 1) < 0)
        pack->failed = true;
    else
        pack->fds[pack->fd_count++] = number;
}

void pack_members(struct pack *pack, const struct pack_table *table, const void *object)
{
    for (size_t i = 0; i < table->count; i++)
        pack_bytes(pack, (const uint8_t *)object + table->members[i].at, table->members[i].bytes);
}

uint32_t pack_members_layout(const struct pack_table *table, uint32_t form)
{
    uint32_t sum = form;
    for (size_t i = 0; i < table->count; i++) {
        for (const char *at = table->members[i].name; *at; at++)
            sum = sum * 31 + (uint8_t)*at;
        sum = sum * 31 + (uint32_t)table->members[i].bytes;
    }
    return sum;
}

struct unpack unpack_begin(const void *data, size_t bytes)
{
    return (struct unpack){.at = data, .end = (const uint8_t *)data + bytes};
}

const void *unpack_take(struct unpack *unpack, size_t bytes)
{
    const uint8_t *taken = unpack->at;
    if (unpack->failed || bytes > (size_t)(unpack->end - unpack->at)) {
        unpack->failed = true;
        return NULL;
    }
    unpack->at += bytes;
    return taken;
}

void unpack_bytes(struct unpack *unpack, void *to, size_t bytes)
{
    const void *from = unpack_take(unpack, bytes);
    if (from && bytes)
        memcpy(to, from, bytes);
    else if (bytes)
        memset(to, 0, bytes);
}

uint64_t unpack_number(struct unpack *unpack)
{
    uint64_t number;
    unpack_bytes(unpack, &number, sizeof number);
    return number;
}

uint64_t unpack_number_max(struct unpack *unpack, uint64_t most)
{
    uint64_t number = unpack_number(unpack);
    if (number <= most)
        return number;
    unpack->failed = true;
    return 0;
}

uint32_t unpack_fd(struct unpack *unpack)
{
    return (uint32_t)unpack_number_max(unpack, UINT32_MAX);
}

void unpack_members(struct unpack *unpack, const struct pack_table *table, void *object)
{
    for (size_t i = 0; i < table->count; i++)
        unpack_bytes(unpack, (uint8_t *)object + table->members[i].at, table->members[i].bytes);
}

void unpack_skip_members(struct unpack *unpack, const struct pack_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        unpack_take(unpack, table->members[i].bytes);
}

bool unpack_is_whole(const struct unpack *unpack)
{
    return !unpack->failed && unpack->at == unpack->end;
}
