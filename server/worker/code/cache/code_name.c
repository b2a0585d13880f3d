/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/code/cache/code_name.h"

#include <stdlib.h>
#include <string.h>

struct code_name code_name_make(const struct hash_key keys[2], enum code_kind kind,
                                const void *bytes, size_t count)
{
    struct code_name name = {.length = count};
    for (unsigned i = 0; i < 2; i++) {
        uint64_t hash = hash_add(&keys[i], HASH_BEGIN, kind);
        name.hashes[i] = hash_end(&keys[i], hash_add_bytes(&keys[i], hash, bytes, count));
    }
    return name;
}

bool code_name_equal(const struct code_name *one, const struct code_name *other)
{
    return one->length == other->length && one->hashes[0] == other->hashes[0] &&
           one->hashes[1] == other->hashes[1];
}

void code_index_open(struct code_index *index)
{
    *index = (struct code_index){.room = CODE_INDEX_FEW};
}

void code_index_close(struct code_index *index)
{
    free(index->many);
    code_index_open(index);
}

struct code_link **code_index_buckets(struct code_index *index)
{
    return index->many ? index->many : index->few;
}

static struct code_link **bucket_of(struct code_link **buckets, size_t room,
                                    const struct code_name *name)
{
    return &buckets[name->hashes[0] & (room - 1)];
}

struct code_link *code_index_find(struct code_index *index, const struct code_name *name)
{
    struct code_link *link = *bucket_of(code_index_buckets(index), index->room, name);
    while (link && !code_name_equal(&link->name, name))
        link = link->next;
    return link;
}

static void put(struct code_link **buckets, size_t room, struct code_link *link)
{
    struct code_link **bucket = bucket_of(buckets, room, &link->name);
    link->next = *bucket;
    *bucket = link;
}

/* Without memory the chains become longer. */
static void grow(struct code_index *index)
{
    size_t room = index->room * 2;
    struct code_link **buckets = calloc(room, sizeof *buckets);
    if (!buckets)
        return;
    for (size_t i = 0; i < index->room; i++)
        for (struct code_link *link = code_index_buckets(index)[i], *next; link; link = next) {
            next = link->next;
            put(buckets, room, link);
        }
    free(index->many);
    index->many = buckets;
    index->room = room;
}

void code_index_add(struct code_index *index, struct code_link *link)
{
    if (index->count >= index->room)
        grow(index);
    put(code_index_buckets(index), index->room, link);
    index->count++;
}

void code_index_remove(struct code_index *index, struct code_link *link)
{
    struct code_link **at = bucket_of(code_index_buckets(index), index->room, &link->name);
    while (*at != link)
        at = &(*at)->next;
    *at = link->next;
    link->next = NULL;
    index->count--;
}
