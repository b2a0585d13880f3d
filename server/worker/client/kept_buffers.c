/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/kept_buffers.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/messages.h"
#include "server/worker/client/client_memory.h"

static struct kept_buffer *find_buffer(const struct kept_buffers *kept, uint64_t address)
{
    for (size_t i = 0; i < kept->count; i++)
        if (kept->all[i].address == address)
            return &kept->all[i];
    return NULL;
}

static void erase_buffer(struct kept_buffers *kept, struct kept_buffer *buffer)
{
    *buffer = kept->all[--kept->count];
}

static uint32_t refuse_unknown(uint64_t address, uint64_t count, struct error *why)
{
    return error_set(why, MESSAGE(worker_memory_unknown), (unsigned long long)address,
                     (unsigned long long)count);
}

uint32_t kept_buffers_take(struct kept_buffers *kept, struct client *client, uint64_t address,
                           uint64_t count, struct error *why)
{
    if (array_reserve(kept->all, kept->room, kept->count + 1) < 0)
        return error_set(why, MESSAGE(worker_no_memory));
    client_lock(client);
    struct range *range = client_memory_range_exact(client, address, count, RANGE_HOST);
    bool whole = range && range->registered == count;
    if (whole)
        client_memory_range_remove(client, range);
    pthread_mutex_unlock(&client->lock);
    if (!whole)
        return refuse_unknown(address, count, why);
    kept->all[kept->count++] = (struct kept_buffer){.address = address, .count = count};
    return 0;
}

int kept_buffers_take_all(struct kept_buffers *kept, struct client *client)
{
    size_t count = client->objects.range_count;
    struct error unused;
    if (array_reserve(kept->all, kept->room, kept->count + count) < 0)
        return -ENOMEM;
    for (size_t i = count; i-- > 0;) {
        struct range range = client->objects.ranges[i];
        if (range.kind == RANGE_HOST && range.keeps)
            kept_buffers_take(kept, client, range.start, range.end - range.start, &unused);
    }
    return 0;
}

uint32_t kept_buffers_lend(struct kept_buffers *kept, struct client *client, uint64_t address,
                           uint64_t count, struct error *why)
{
    struct kept_buffer *buffer = find_buffer(kept, address);
    if (!buffer || buffer->count != count || buffer->dropping)
        return refuse_unknown(address, count, why);
    client_lock(client);
    int error = client_memory_range_add(client, address, count, RANGE_HOST, NULL);
    if (error == 0) {
        struct range *range = client_memory_range_exact(client, address, count, RANGE_HOST);
        range->registered = count;
        range->keeps = true;
    }
    pthread_mutex_unlock(&client->lock);
    if (error < 0)
        return refuse_unknown(address, count, why);
    erase_buffer(kept, buffer);
    return 0;
}

bool kept_buffers_drop(struct kept_buffers *kept, uint64_t address, uint64_t count)
{
    struct kept_buffer *buffer = find_buffer(kept, address);
    if (!buffer || buffer->count != count || buffer->dropping)
        return false;
    buffer->dropping = true;
    return true;
}

void kept_buffers_forget(struct kept_buffers *kept, struct gpu *gpu, uint64_t address)
{
    struct kept_buffer *buffer = find_buffer(kept, address);
    if (!buffer)
        return;
    uint64_t count = buffer->count;
    erase_buffer(kept, buffer);
    client_memory_host_vacate(gpu, address, count);
}

void kept_buffers_close(struct kept_buffers *kept, struct gpu *gpu)
{
    while (kept->count) {
        struct kept_buffer last = kept->all[kept->count - 1];
        client_memory_host_unregister_whole(gpu, last.address, last.count);
        kept_buffers_forget(kept, gpu, last.address);
    }
    free(kept->all);
    *kept = (struct kept_buffers){0};
}
