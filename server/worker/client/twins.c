/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/client/twins.h"

#include <errno.h>
#include <string.h>

#include "common/array.h"
#include "common/util.h"
#include "server/worker/client/client.h"

/* Index of the first twin that ends behind the address. */
static size_t first_behind(const struct client_objects *objects, uint64_t address)
{
    size_t low = 0, high = objects->twin_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (objects->twins[middle].address + objects->twins[middle].bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int twins_add(struct client *client, const struct twin *twin)
{
    struct client_objects *objects = &client->objects;
    if (array_reserve(objects->twins, objects->twin_room, objects->twin_count + 1) < 0)
        return -ENOMEM;
    size_t at = first_behind(objects, twin->address);
    memmove(&objects->twins[at + 1], &objects->twins[at],
            (objects->twin_count - at) * sizeof *objects->twins);
    objects->twins[at] = *twin;
    objects->twin_count++;
    return 0;
}

void twins_remove(struct client *client, const struct client_module *module)
{
    struct client_objects *objects = &client->objects;
    size_t kept = 0;
    for (size_t i = 0; i < objects->twin_count; i++)
        if (objects->twins[i].module != module)
            objects->twins[kept++] = objects->twins[i];
    objects->twin_count = kept;
}

size_t twins_find(const struct client *client, uint64_t address, uint64_t bytes, struct twin *found,
                  size_t room)
{
    const struct client_objects *objects = &client->objects;
    uint64_t end = address + bytes;
    size_t count = 0;
    for (size_t at = first_behind(objects, address);
         at < objects->twin_count && objects->twins[at].address < end; at++, count++) {
        const struct twin *twin = &objects->twins[at];
        uint64_t from = max(twin->address, address), to = min(twin->address + twin->bytes, end);
        if (count < room)
            found[count] = (struct twin){.address = from,
                                         .bytes = to - from,
                                         .constant = twin->constant + (from - twin->address),
                                         .module = twin->module};
    }
    return count;
}
