/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/keep/state_log.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/util.h"

#define HEADER_BYTES UINT64_C(4096)
#define HALF_BIT     (UINT64_C(1) << 63)
#define HALF_MIN     (UINT64_C(1) << 18)
#define HALF_MAX     (UINT64_C(1) << 32)

static const char magic[8] = "gpushLOG";

struct header {
    char magic[8];
    uint32_t format, layout;
    uint64_t generation;
    uint64_t half_bytes;
    uint64_t sum;               /* of the members above */
    _Atomic uint64_t committed; /* bytes of a half; HALF_BIT: of the second one */
};

struct row {
    uint32_t bytes; /* of the payload, which follows and is padded to 8 */
    uint32_t key;
    uint16_t kind;
    uint16_t removed; /* 1: the record counts no longer */
    uint32_t page;
    uint64_t sum; /* of the members above and the payload */
};

_Static_assert(sizeof(struct header) <= HEADER_BYTES && sizeof(struct row) == 24, "laid out");

static uint64_t pad_bytes(uint64_t bytes)
{
    return (bytes + 7) & ~UINT64_C(7);
}

/* Finds what was not written whole, or by somebody else. The memory is the service's alone, so
 * nobody forges it. */
static uint64_t sum_add(uint64_t sum, const void *data, size_t bytes)
{
    const uint8_t *at = data;
    for (; bytes; bytes -= min(bytes, sizeof(uint64_t)), at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at, min(bytes, sizeof word));
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

static uint64_t header_sum(const struct header *header)
{
    return sum_add(1, header, offsetof(struct header, sum));
}

static uint64_t row_sum(const struct row *row, const void *data)
{
    return sum_add(sum_add(1, row, offsetof(struct row, sum)), data, row->bytes);
}

static struct header *header_of(const struct state_log *log)
{
    return (struct header *)(void *)log->base;
}

int state_log_create(struct state_log *log, uint64_t generation, uint32_t layout, uint64_t bytes)
{
    uint64_t half = HALF_MIN;
    while (half < bytes && half < HALF_MAX)
        half *= 2;
    *log = (struct state_log){.fd = -1, .half_bytes = half, .generation = generation};
    list_init(&log->living_list);
    if (half < bytes)
        return -ENOSPC;
    size_t whole = HEADER_BYTES + 2 * half;
    int fd = memfd_create("gpushare-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    void *base = ftruncate(fd, (off_t)whole) < 0
                     ? MAP_FAILED
                     : mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        int saved = errno;
        close(fd);
        return -saved;
    }
    log->fd = fd;
    log->base = base;
    struct header *header = header_of(log);
    memcpy(header->magic, magic, sizeof magic);
    header->format = STATE_LOG_FORMAT;
    header->layout = layout;
    header->generation = generation;
    header->half_bytes = half;
    header->sum = header_sum(header);
    return 0;
}

void state_log_close(struct state_log *log)
{
    struct list_link *link;
    if (log->fd < 0)
        return;
    while ((link = list_first(&log->living_list))) {
        struct state_record *record = container_of(link, struct state_record, link);
        list_remove(link);
        *record = (struct state_record){0};
    }
    munmap(log->base, HEADER_BYTES + 2 * log->half_bytes);
    close(log->fd);
    log->fd = -1;
}

static uint64_t row_cost(uint64_t bytes)
{
    return sizeof(struct row) + pad_bytes(bytes);
}

/* The payload's offset in the file. The half has room. */
static uint64_t row_write(struct state_log *log, struct row row, const void *data)
{
    uint64_t at = HEADER_BYTES + log->half * log->half_bytes + log->tail;
    row.sum = row_sum(&row, data);
    memcpy(log->base + at, &row, sizeof row);
    if (row.bytes)
        memcpy(log->base + at + sizeof row, data, row.bytes);
    log->tail += row_cost(row.bytes);
    return at + sizeof row;
}

static struct row row_named(struct state_name name)
{
    return (struct row){.key = name.key, .kind = name.kind, .page = name.page};
}

static void record_write(struct state_log *log, struct state_record *record, const void *data)
{
    struct row row = row_named(record->name);
    row.bytes = record->bytes;
    record->offset = row_write(log, row, data);
}

/* Writes all that counts to the other half. It counts there from the next commit on: until then the
 * records of the last commit stand in the first half as they were. */
static void turn_over(struct state_log *log)
{
    struct state_record *record;
    log->half = !log->half;
    log->tail = 0;
    LIST_FOR_EACH (record, &log->living_list, link)
        record_write(log, record, log->base + record->offset);
}

/* Makes room for a row of so many payload bytes; `living`: what counts then. A half that was turned
 * to since the last commit can't be left again: the other one is what a reader finds. */
static int make_room(struct state_log *log, uint64_t bytes, uint64_t living)
{
    bool turned = !!(atomic_load(&header_of(log)->committed) & HALF_BIT) != log->half;
    if (log->tail + row_cost(bytes) <= log->half_bytes)
        return 0;
    if (turned || living + row_cost(bytes) > log->half_bytes / 2)
        return -ENOSPC;
    turn_over(log);
    return 0;
}

int state_log_put(struct state_log *log, struct state_record *record, struct state_name name,
                  const void *data, size_t bytes)
{
    bool known = list_is_linked(&record->link);
    if (bytes > HALF_MAX / 4)
        return -ENOSPC;
    int result = make_room(log, bytes, log->living);
    if (result < 0)
        return result;
    if (known)
        log->living -= row_cost(record->bytes);
    else
        list_append(&log->living_list, &record->link);
    record->bytes = (uint32_t)bytes;
    record->name = name;
    log->living += row_cost(bytes);
    record_write(log, record, data);
    return 0;
}

bool state_log_has(const struct state_log *log, const struct state_record *record, const void *data,
                   size_t bytes)
{
    return list_is_linked(&record->link) && record->bytes == bytes &&
           (!bytes || memcmp(log->base + record->offset, data, bytes) == 0);
}

int state_log_remove(struct state_log *log, struct state_record *record)
{
    if (!list_is_linked(&record->link))
        return 0;
    int result = make_room(log, 0, log->living);
    if (result < 0)
        return result;
    struct row row = row_named(record->name);
    row.removed = 1;
    row_write(log, row, NULL);
    log->living -= row_cost(record->bytes);
    list_remove(&record->link);
    *record = (struct state_record){0};
    return 0;
}

void state_log_commit(struct state_log *log)
{
    /* Released: whoever finds the word finds the rows before it. A killed process's stores are all
     * there up to some point, in their order. */
    atomic_store_explicit(&header_of(log)->committed, log->tail | (log->half ? HALF_BIT : 0),
                          memory_order_release);
}

void state_log_void(int fd)
{
    static const uint64_t nothing;
    /* A page that is there needs no memory. */
    if (fd >= 0 && pwrite(fd, &nothing, sizeof nothing, offsetof(struct header, committed)) < 0)
        ftruncate(fd, 0);
}

int state_log_move(struct state_log *from, struct state_log *to)
{
    struct state_record *record;
    if (from->living > to->half_bytes / 2)
        return -ENOSPC;
    LIST_FOR_EACH (record, &from->living_list, link)
        record_write(to, record, from->base + record->offset);
    list_append_list(&to->living_list, &from->living_list);
    to->living = from->living;
    from->living = 0;
    return 0;
}

/* ---- reading ---- */

static int header_check(const struct header *header, uint64_t file, uint32_t layout)
{
    if (file < HEADER_BYTES || memcmp(header->magic, magic, sizeof magic) != 0)
        return LOG_IS_STRANGE;
    if (header->format != STATE_LOG_FORMAT || header->layout != layout)
        return LOG_IS_OTHER;
    if (header->sum != header_sum(header) || header->half_bytes > HALF_MAX ||
        file != HEADER_BYTES + 2 * header->half_bytes)
        return LOG_IS_DAMAGED;
    return LOG_IS_WHOLE;
}

struct found {
    struct state_log_entry entry;
    size_t order;
    bool removed;
};

static int name_compare(const struct state_name *x, const struct state_name *y)
{
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->page < y->page ? -1 : x->page > y->page;
}

static int found_compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    int names = name_compare(&x->entry.name, &y->entry.name);
    return names ? names : x->order < y->order ? -1 : x->order > y->order;
}

/* Keeps the latest of each, unless that is a removal. */
static int choose_latest(struct state_log_reader *reader, struct found *found, size_t count)
{
    if (!count)
        return LOG_IS_WHOLE;
    reader->entries = calloc(count, sizeof *reader->entries);
    if (!reader->entries)
        return -ENOMEM;
    qsort(found, count, sizeof *found, found_compare);
    for (size_t i = 0; i < count; i++) {
        bool last =
            i + 1 == count || name_compare(&found[i + 1].entry.name, &found[i].entry.name) != 0;
        if (last && !found[i].removed)
            reader->entries[reader->count++] = found[i].entry;
    }
    return LOG_IS_WHOLE;
}

static int rows_read(struct state_log_reader *reader, const uint8_t *half, uint64_t bytes)
{
    struct found *found = NULL;
    size_t count = 0, room = 0;
    int result = LOG_IS_WHOLE;
    for (uint64_t at = 0; at < bytes && result == LOG_IS_WHOLE;) {
        struct row row;
        if (bytes - at < sizeof row) {
            result = LOG_IS_DAMAGED;
            break;
        }
        memcpy(&row, half + at, sizeof row);
        const uint8_t *data = half + at + sizeof row;
        if (row_cost(row.bytes) > bytes - at || row.sum != row_sum(&row, data)) {
            result = LOG_IS_DAMAGED;
            break;
        }
        if (array_reserve(found, room, count + 1) < 0) {
            result = -ENOMEM;
            break;
        }
        found[count] = (struct found){.entry = {{row.kind, row.key, row.page}, data, row.bytes},
                                      .order = count,
                                      .removed = row.removed != 0};
        count++;
        at += row_cost(row.bytes);
    }
    if (result == LOG_IS_WHOLE)
        result = choose_latest(reader, found, count);
    free(found);
    return result;
}

int state_log_read(struct state_log_reader *reader, int fd, uint32_t layout)
{
    struct stat status;
    *reader = (struct state_log_reader){0};
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size < (off_t)HEADER_BYTES)
        return LOG_IS_STRANGE;
    void *base = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return -errno;
    reader->base = base;
    reader->mapped = (size_t)status.st_size;
    const struct header *header = base;
    int result = header_check(header, (uint64_t)status.st_size, layout);
    if (result == LOG_IS_WHOLE) {
        uint64_t word = atomic_load_explicit(&header->committed, memory_order_acquire);
        uint64_t bytes = word & ~HALF_BIT;
        reader->generation = header->generation;
        reader->begun = bytes > 0;
        result = bytes > header->half_bytes
                     ? LOG_IS_DAMAGED
                     : rows_read(reader,
                                 (const uint8_t *)base + HEADER_BYTES +
                                     (word & HALF_BIT ? header->half_bytes : 0),
                                 bytes);
    }
    if (result != LOG_IS_WHOLE)
        state_log_reader_close(reader);
    return result;
}

void state_log_reader_close(struct state_log_reader *reader)
{
    free(reader->entries);
    if (reader->base)
        munmap(reader->base, reader->mapped);
    *reader = (struct state_log_reader){0};
}

const struct state_log_entry *state_log_find(const struct state_log_reader *reader, uint16_t kind,
                                             uint32_t key, size_t *count)
{
    const struct state_name name = {.kind = kind, .key = key};
    size_t first = 0, end = reader->count;
    *count = 0;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (name_compare(&reader->entries[middle].name, &name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    for (end = first; end < reader->count && reader->entries[end].name.kind == kind &&
                      reader->entries[end].name.key == key;
         end++)
        ++*count;
    return *count ? &reader->entries[first] : NULL;
}
