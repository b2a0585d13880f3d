/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/softgpu/memory/memory_extent.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/clock.h"
#include "server/softgpu/report.h"

/* Pages that are not live any more, but stay mapped until the stamp has passed. */
struct deferred {
    struct list_link link;
    uint64_t base, size, stamp;
    bool keep_reserved; /* back to an inaccessible reservation, else unmapped */
};

static struct {
    pthread_mutex_t lock;
    const struct softgpu_settings *settings;
    struct charges *charges;
    struct list extents, deferred;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .extents = LIST_INIT(memory.extents),
            .deferred = LIST_INIT(memory.deferred)};

void memory_start(const struct softgpu_settings *settings, struct charges *charges)
{
    memory.settings = settings;
    memory.charges = charges;
}

void memory_change_begin(void)
{
    pthread_mutex_lock(&memory.lock);
    if (memory.settings->context_delay_us > 0) {
        struct timespec delay = clock_timespec(memory.settings->context_delay_us * UINT64_C(1000));

        nanosleep(&delay, NULL);
    }
}

void memory_change_end(void)
{
    pthread_mutex_unlock(&memory.lock);
}

const struct softgpu_settings *memory_settings(void)
{
    return memory.settings;
}

struct charges *memory_charges(void)
{
    return memory.charges;
}

/* ---- deferred unmapping ------------------------------------------------------ */

static void drop_pages(uint64_t base, uint64_t size, bool keep_reserved)
{
    if (!keep_reserved)
        munmap(pointer(base), size);
    else if (mmap(pointer(base), size, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        report("cannot give pages at 0x%llx back: %s", (unsigned long long)base, strerror(errno));
}

static void deferred_drain(void)
{
    struct deferred *pages;

    LIST_FOR_EACH (pages, &memory.deferred, link) {
        if (!memory_passed(pages->stamp))
            continue;
        drop_pages(pages->base, pages->size, pages->keep_reserved);
        list_remove(&pages->link);
        free(pages);
    }
}

/* Everything deferred in the range is done on return. */
void memory_extent_flush_deferred(uint64_t base, uint64_t size)
{
    const struct deferred *pages;

    deferred_drain();
    LIST_FOR_EACH (pages, &memory.deferred, link)
        if (pages->base < base + size && base < pages->base + pages->size) {
            memory_quiesce();
            deferred_drain();
            return;
        }
}

void memory_extent_defer_drop(uint64_t base, uint64_t size, bool keep_reserved)
{
    struct deferred *pages = malloc(sizeof(*pages));

    if (!pages) {
        memory_quiesce();
        drop_pages(base, size, keep_reserved);
        return;
    }
    *pages = (struct deferred){
        .base = base, .size = size, .stamp = memory_stamp(), .keep_reserved = keep_reserved};
    list_prepend(&memory.deferred, &pages->link);
    deferred_drain();
}

/* ---- extents -------------------------------------------------------------------- */

struct extent *memory_extent_at(enum extent_kind kind, uint64_t base)
{
    struct extent *extent;

    LIST_FOR_EACH (extent, &memory.extents, link)
        if (extent->kind == kind && extent->base == base)
            return extent;
    return NULL;
}

struct extent *memory_extent_any(enum extent_kind kind, unsigned device)
{
    struct extent *extent;

    LIST_FOR_EACH (extent, &memory.extents, link)
        if (extent->kind == kind &&
            (kind != ALLOCATION || (extent->programs && extent->device == device)))
            return extent;
    return NULL;
}

struct extent *memory_extent_around(enum extent_kind kind, uint64_t base, uint64_t size)
{
    struct extent *extent;

    LIST_FOR_EACH (extent, &memory.extents, link)
        if (extent->kind == kind && extent->base <= base && size <= extent->size &&
            base - extent->base <= extent->size - size)
            return extent;
    return NULL;
}

bool memory_extent_overlaps(enum extent_kind kind, uint64_t base, uint64_t size)
{
    struct extent *extent;

    LIST_FOR_EACH (extent, &memory.extents, link)
        if (extent->kind == kind && extent->base < base + size &&
            base < extent->base + extent->size)
            return true;
    return false;
}

struct extent *memory_extent_add(enum extent_kind kind, uint64_t base, uint64_t size)
{
    struct extent *extent = calloc(1, sizeof(*extent));

    if (!extent)
        return NULL;
    extent->kind = kind;
    extent->base = base;
    extent->size = size;
    list_prepend(&memory.extents, &extent->link);
    return extent;
}

void memory_extent_remove(struct extent *extent)
{
    list_remove(&extent->link);
    free(extent);
}
