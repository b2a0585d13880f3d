/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * The table of live ranges, and the windows in which threads touch them. memory_map.c has the
 * objects behind the ranges: reservations, handles and mappings.
 */
#include "server/softgpu/memory/memory.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/ipc/shared_word.h"
#include "common/array.h"
#include "common/util.h"
#include "server/softgpu/memory/memory_table.h"

struct live {
    uint64_t start, end;
    uint32_t access;
    bool host, managed;
    unsigned device;
    uint64_t id;
    const struct kernel_heap *heap;
};

static struct {
    pthread_rwlock_t lock;
    struct live *live; /* sorted, disjoint */
    size_t count, capacity;
    uint64_t last_id;
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

static _Atomic uint64_t generation = 1;

uint64_t memory_generation(void)
{
    /* Sequentially consistent, as is the stamp in memory_quiesce(): a thread whose entry was
     * overlooked there sees the new generation here. */
    return atomic_load(&generation);
}

/* The first range that ends behind address. Lock held. */
static size_t table_lower(uint64_t address)
{
    size_t low = 0, high = table.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table.live[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool table_find(uint64_t address, struct live *live)
{
    size_t at;
    bool found;

    pthread_rwlock_rdlock(&table.lock);
    at = table_lower(address);
    found = at < table.count && table.live[at].start <= address;
    if (found)
        *live = table.live[at];
    pthread_rwlock_unlock(&table.lock);
    return found;
}

bool memory_find(uint64_t address, struct memory_range *range)
{
    struct live live;

    if (!table_find(address, &live) || live.access == 0)
        return false;
    *range = (struct memory_range){
        .start = live.start, .end = live.end, .access = live.access, .heap = live.heap};
    return true;
}

bool memory_locate(uint64_t address, struct memory_place *place)
{
    struct live live;

    if (!table_find(address, &live))
        return false;
    *place = (struct memory_place){.start = live.start,
                                   .end = live.end,
                                   .host = live.host,
                                   .managed = live.managed,
                                   .id = live.id,
                                   .device = live.device,
                                   .access = live.access,
                                   .heap = live.heap != NULL};
    return true;
}

bool memory_accessible(uint64_t address, uint64_t size, uint32_t access)
{
    uint64_t end;

    if (__builtin_add_overflow(address, size, &end))
        return false;
    while (address < end) {
        struct memory_range range;

        if (!memory_find(address, &range) || (range.access & access) != access || range.heap)
            return false;
        address = range.end;
    }
    return true;
}

bool memory_table_overlaps(uint64_t start, uint64_t end)
{
    size_t at;
    bool overlaps;

    pthread_rwlock_rdlock(&table.lock);
    at = table_lower(start);
    overlaps = at < table.count && table.live[at].start < end;
    pthread_rwlock_unlock(&table.lock);
    return overlaps;
}

/* The id is still to be given. */
static int table_add(const struct live *live)
{
    size_t at;

    pthread_rwlock_wrlock(&table.lock);
    if (array_reserve(table.live, table.capacity, table.count + 1) < 0) {
        pthread_rwlock_unlock(&table.lock);
        return -ENOMEM;
    }
    at = table_lower(live->start);
    memmove(&table.live[at + 1], &table.live[at], (table.count - at) * sizeof(*table.live));
    table.live[at] = *live;
    table.live[at].id = ++table.last_id;
    table.count++;
    atomic_fetch_add(&generation, 1);
    pthread_rwlock_unlock(&table.lock);
    return 0;
}

int memory_table_add(uint64_t start, uint64_t end, uint32_t access, bool host, unsigned device)
{
    return table_add(&(struct live){
        .start = start, .end = end, .access = access, .host = host, .device = device});
}

int memory_table_add_heap(uint64_t start, uint64_t end, const struct kernel_heap *heap,
                          unsigned device)
{
    return table_add(&(struct live){.start = start,
                                    .end = end,
                                    .access = MEMORY_READ | MEMORY_WRITE,
                                    .device = device,
                                    .heap = heap});
}

void memory_table_manage(uint64_t start)
{
    pthread_rwlock_wrlock(&table.lock);
    table.live[table_lower(start)].managed = true;
    pthread_rwlock_unlock(&table.lock);
}

void memory_table_access(uint64_t start, uint32_t access)
{
    size_t at;

    pthread_rwlock_wrlock(&table.lock);
    at = table_lower(start);
    table.live[at].access = access;
    atomic_fetch_add(&generation, 1);
    pthread_rwlock_unlock(&table.lock);
}

void memory_table_remove(uint64_t start)
{
    size_t at;

    pthread_rwlock_wrlock(&table.lock);
    at = table_lower(start);
    memmove(&table.live[at], &table.live[at + 1], (table.count - at - 1) * sizeof(*table.live));
    table.count--;
    atomic_fetch_add(&generation, 1);
    pthread_rwlock_unlock(&table.lock);
}

/* ---- the window ----------------------------------------------------------- */

enum { WINDOWS = 1024 };

/* 0: the thread is outside; else the epoch at which it entered. One cache line each, so that
 * threads don't disturb each other. */
static struct window {
    _Alignas(64) _Atomic uint64_t entered_at;
    atomic_bool taken;
} windows[WINDOWS];
static atomic_uint windows_used;
static _Atomic uint64_t epoch = 1;

static pthread_key_t window_key;
static pthread_once_t window_once = PTHREAD_ONCE_INIT;
static _Thread_local struct window *my_window;

static void window_give_back(void *window)
{
    atomic_store(&((struct window *)window)->taken, false);
}

static void window_make_key(void)
{
    if (pthread_key_create(&window_key, window_give_back) != 0)
        abort();
}

static struct window *window_get(void)
{
    if (my_window)
        return my_window;
    pthread_once(&window_once, window_make_key);
    for (unsigned i = 0;; i = (i + 1) % WINDOWS) {
        bool taken = false;

        if (atomic_compare_exchange_strong(&windows[i].taken, &taken, true)) {
            unsigned used = atomic_load(&windows_used);

            while (used < i + 1 && !atomic_compare_exchange_weak(&windows_used, &used, i + 1))
                ;
            my_window = &windows[i];
            pthread_setspecific(window_key, my_window);
            return my_window;
        }
        /* There are more threads than windows. One of them will soon end its short visit. */
        if (i == WINDOWS - 1)
            sched_yield();
    }
}

void memory_enter(void)
{
    /* Sequentially consistent, and before any look at the table: memory_passed() sees this
     * thread inside, or the thread sees the table without the range. */
    atomic_store(&window_get()->entered_at, atomic_load(&epoch));
}

void memory_leave(void)
{
    /* Released: memory_passed() sees this after all that the thread has touched. */
    atomic_store_explicit(&my_window->entered_at, 0, memory_order_release);
}

uint64_t memory_stamp(void)
{
    return atomic_fetch_add(&epoch, 1) + 1;
}

bool memory_passed(uint64_t stamp)
{
    unsigned used = atomic_load(&windows_used);

    for (unsigned i = 0; i < used; i++) {
        uint64_t entered_at = atomic_load(&windows[i].entered_at);

        if (entered_at != 0 && entered_at < stamp)
            return false;
    }
    return true;
}

void memory_quiesce(void)
{
    uint64_t stamp = memory_stamp();

    while (!memory_passed(stamp))
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* ---- copies ----------------------------------------------------------------- */

enum { PIECE = 256 << 10, CLEAR_MIN = 64 << 10 };

/* The end of the live range at address that allows the access; 0 if there is none. */
static uint64_t allowed_until(uint64_t address, uint32_t access)
{
    struct memory_range range;

    return memory_find(address, &range) && (range.access & access) && !range.heap ? range.end : 0;
}

/*
 * Zeroes memory by giving its pages back: device memory that has not been used yet stays without
 * pages, however much of it is cleared. Not for host buffers, because their owner has provided the
 * pages.
 */
static void clear_bytes(uint64_t address, uint64_t bytes)
{
    uint64_t first = (address + 4095) & ~UINT64_C(4095), end = (address + bytes) & ~UINT64_C(4095);

    if (first >= end || madvise((void *)(uintptr_t)first, end - first, MADV_REMOVE) < 0) {
        memset((void *)(uintptr_t)address, 0, bytes);
        return;
    }
    memset((void *)(uintptr_t)address, 0, first - address);
    memset((void *)(uintptr_t)end, 0, address + bytes - end);
}

/* Whether so little of it has pages that the pages are cheaper to give back than all of it to
 * write. */
static bool is_sparse(uint64_t address, uint64_t bytes)
{
    unsigned char there[PIECE / 4096];
    uint64_t pages = 0;

    if (mincore((void *)(uintptr_t)address, bytes, there) < 0)
        return false;
    for (uint64_t i = 0; i < bytes / 4096; i++)
        pages += there[i] & 1;
    return pages <= bytes / 4096 / 16;
}

static void copy_bytes(uint64_t to, const void *from, uint64_t bytes)
{
    const char *first = from;
    struct memory_place place;

    /* A program may clear all of a device that is larger than the machine's memory: zeros leave
     * it without pages. They are given back all the same, since they may be in swap space. */
    if (bytes >= CLEAR_MIN && to % 4096 == 0 && bytes % 4096 == 0 && !*first &&
        memory_locate(to, &place) && !place.host && is_sparse(to, bytes) &&
        !memcmp(first, first + 1, bytes - 1))
        clear_bytes(to, bytes);
    else
        memmove((void *)(uintptr_t)to, from, bytes);
}

bool memory_copy(struct memory_side to, struct memory_side from, uint64_t size, uint64_t *fault)
{
    bool good = true;

    while (size > 0 && good) {
        uint64_t piece = min(size, (uint64_t)PIECE);
        uint64_t to_end, from_end;

        memory_enter();
        to_end = to.checked ? allowed_until(to.address, MEMORY_WRITE) : UINT64_MAX;
        from_end = from.checked ? allowed_until(from.address, MEMORY_READ) : UINT64_MAX;
        if (to_end == 0 || from_end == 0) {
            *fault = to_end == 0 ? to.address : from.address;
            good = false;
        } else {
            if (piece > to_end - to.address)
                piece = to_end - to.address;
            if (piece > from_end - from.address)
                piece = from_end - from.address;
            copy_bytes(to.address, (const void *)(uintptr_t)from.address, piece);
        }
        memory_leave();
        to.address += piece;
        from.address += piece;
        size -= piece;
    }
    return good;
}

static void fill_units(void *at, uint32_t value, unsigned width, uint64_t count)
{
    if (width == 1) {
        memset(at, (int)value, count);
    } else if (width == 2) {
        uint16_t *word = at;

        for (uint64_t i = 0; i < count; i++)
            word[i] = (uint16_t)value;
    } else {
        uint32_t *word = at;

        for (uint64_t i = 0; i < count; i++)
            word[i] = value;
    }
}

bool memory_fill(uint64_t address, uint32_t value, unsigned width, uint64_t count, uint64_t *fault)
{
    while (count > 0) {
        uint64_t piece = count < PIECE / width ? count : PIECE / width;
        struct memory_place place;
        uint64_t end;

        memory_enter();
        end = allowed_until(address, MEMORY_WRITE);
        if (end - address < width) /* also when end is 0: the difference wraps only for address 0 */
            end = 0;
        if (end != 0) {
            if (piece > (end - address) / width)
                piece = (end - address) / width;
            if (value == 0 && piece * width >= CLEAR_MIN && memory_locate(address, &place) &&
                !place.host)
                clear_bytes(address, piece * width);
            else
                fill_units((void *)(uintptr_t)address, value, width, piece);
        }
        memory_leave();
        if (end == 0) {
            *fault = address;
            return false;
        }
        address += piece * width;
        count -= piece;
    }
    return true;
}

bool memory_read_value(uint64_t address, unsigned width, uint64_t *value)
{
    uint64_t end;
    bool good;

    memory_enter();
    end = allowed_until(address, MEMORY_READ);
    good = end != 0 && end - address >= width;
    if (good && width == 4)
        *value = shared_word_read((uint32_t *)(uintptr_t)address);
    else if (good)
        *value = shared_word_read((uint64_t *)(uintptr_t)address);
    memory_leave();
    return good;
}

bool memory_write_value(uint64_t address, uint64_t value, unsigned width)
{
    uint64_t end;
    bool good;

    memory_enter();
    end = allowed_until(address, MEMORY_WRITE);
    good = end != 0 && end - address >= width;
    if (good && width == 4)
        shared_word_publish((uint32_t *)(uintptr_t)address, (uint32_t)value);
    else if (good)
        shared_word_publish((uint64_t *)(uintptr_t)address, value);
    memory_leave();
    return good;
}
