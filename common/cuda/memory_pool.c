/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/cuda/memory_pool.h"

#include <search.h>
#include <stdlib.h>

#include "common/util.h"

/* A block that is given out again has at most one part in this many more than was asked for. */
enum { WASTE_PART = 8 };

struct block {
    cuda_device_ptr ptr; /* the tree's key */
    size_t size;
    struct memory_pool *pool;
    struct list_link link; /* in the pool's live or freed */
    bool foreign;          /* of no pool: it is counted nowhere, and given out to nobody */
    cuda_stream stream;    /* a freed one's */
    cuda_event mark;       /* a freed one's: its stream has come so far */
};

static int compare(const void *left, const void *right)
{
    cuda_device_ptr first = ((const struct block *)left)->ptr,
                    second = ((const struct block *)right)->ptr;
    return (first > second) - (first < second);
}

/* ---- the table; its lock is held ---- */

static struct block *find(struct memory_pools *table, cuda_device_ptr ptr)
{
    const struct block key = {.ptr = ptr};
    struct block *const *found = tfind(&key, &table->tree, compare);
    return found ? *found : NULL;
}

static bool add(struct block *block)
{
    return tsearch(block, &block->pool->table->tree, compare) != NULL;
}

static void remove_block(struct block *block)
{
    struct memory_pool *pool = block->pool;
    (void)tdelete(block, &pool->table->tree, compare);
    list_remove(&block->link);
    if (!block->foreign)
        pool->reserved -= block->size;
}

/* A retired pool goes with its last block. */
static void end_if_empty(struct memory_pool *pool)
{
    if (!pool->retired || !list_is_empty(&pool->live) || !list_is_empty(&pool->freed))
        return;
    list_remove(&pool->link);
    free(pool);
}

static void keep(struct block *block)
{
    list_remove(&block->link);
    list_append(&block->pool->freed, &block->link);
    atomic_fetch_add(&block->pool->table->freed, 1);
}

static void unkeep(struct block *block)
{
    list_remove(&block->link);
    atomic_fetch_sub(&block->pool->table->freed, 1);
}

static void count_used(struct memory_pool *pool, size_t size)
{
    pool->used += size;
    pool->used_high = max(pool->used_high, pool->used);
}

/* ---- pools ---- */

/* The lock is held. */
static struct memory_pool *make(struct memory_pools *table, void *place, uint64_t most)
{
    struct memory_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return NULL;
    *pool = (struct memory_pool){
        .table = table, .place = place, .most = most, .reuse = {false, true, true, true}};
    list_init(&pool->live);
    list_init(&pool->freed);
    list_append(&table->pools, &pool->link);
    return pool;
}

struct memory_pool *memory_pool_new(struct memory_pools *table, void *place, uint64_t most)
{
    pthread_mutex_lock(&table->lock);
    struct memory_pool *pool = make(table, place, most);
    pthread_mutex_unlock(&table->lock);
    return pool;
}

struct memory_pool *memory_pool_first(struct memory_pools *table, void *place)
{
    struct memory_pool *pool;
    pthread_mutex_lock(&table->lock);
    LIST_FOR_EACH (pool, &table->pools, link)
        if (pool->place == place && !pool->retired)
            break;
    if (!pool)
        pool = make(table, place, 0);
    pthread_mutex_unlock(&table->lock);
    return pool;
}

void memory_pool_retire(struct memory_pool *pool)
{
    struct memory_pools *table = pool->table;
    pthread_mutex_lock(&table->lock);
    pool->retired = true;
    pool->threshold = 0;
    end_if_empty(pool);
    pthread_mutex_unlock(&table->lock);
}

bool memory_pool_is(struct memory_pools *table, const struct memory_pool *handle)
{
    const struct memory_pool *pool;
    pthread_mutex_lock(&table->lock);
    LIST_FOR_EACH (pool, &table->pools, link)
        if (pool == handle && !pool->retired)
            break;
    pthread_mutex_unlock(&table->lock);
    return pool != NULL;
}

/* ---- releasing ---- */

/* Moves kept blocks to *taken, with the table's lock held, until the pool reserves no more than
 * `least` bytes. busy: also those whose streams have not come so far. */
static void take_kept(struct memory_pool *pool, uint64_t least, bool busy, struct list *taken)
{
    struct block *block;
    LIST_FOR_EACH (block, &pool->freed, link)
        if ((block->foreign || pool->reserved > least) &&
            (busy || pool->table->calls->query(block->mark) == CUDA_OK)) {
            unkeep(block);
            remove_block(block);
            list_append(taken, &block->link);
        }
}

/* Without the lock. A block whose mark can't be awaited is of a context that is lost. */
static bool release_all(struct memory_pools *table, void *place, struct list *taken)
{
    bool any = !list_is_empty(taken);
    struct block *block;
    LIST_FOR_EACH (block, taken, link) {
        if (table->calls->await(block->mark) == CUDA_OK)
            (void)table->calls->release(place, block->ptr);
        table->calls->drop(block->mark);
        list_remove(&block->link);
        free(block);
    }
    return any;
}

/* ---- allocating ---- */

/* Whether work in the stream may use the kept block: it was freed in the same stream, it is idle,
 * or, if memory is short, the stream may be made to wait. The lock is held. */
static bool may_use(const struct block *block, cuda_stream stream, bool is_short)
{
    const struct memory_pool *pool = block->pool;
    return block->stream == stream ||
           (pool->reuse[MEMORY_POOL_REUSE_OPPORTUNISTIC] &&
            pool->table->calls->query(block->mark) == CUDA_OK) ||
           (is_short && pool->reuse[MEMORY_POOL_REUSE_INTERNAL]);
}

/* Takes the smallest kept block that fits and that the stream may use. NULL if there is none. */
static struct block *take_fit(struct memory_pool *pool, size_t size, cuda_stream stream,
                              bool is_short)
{
    struct block *block, *best = NULL;
    if (atomic_load(&pool->table->freed) == 0)
        return NULL;
    pthread_mutex_lock(&pool->table->lock);
    LIST_FOR_EACH (block, &pool->freed, link)
        if (!block->foreign && block->size >= size && block->size - size <= size / WASTE_PART &&
            (!best || block->size < best->size) && may_use(block, stream, is_short))
            best = block;
    if (best) {
        unkeep(best);
        list_append(&pool->live, &best->link);
        count_used(pool, best->size);
    }
    pthread_mutex_unlock(&pool->table->lock);
    return best;
}

/* A handle may have meant another stream when the block was freed, so the mark says the order. */
static cuda_result give_out(struct block *block, cuda_device_ptr *ptr, cuda_stream stream)
{
    struct memory_pool *pool = block->pool;
    cuda_result result = pool->table->calls->follow(pool->place, stream, block->mark);
    cuda_event mark = NULL;
    pthread_mutex_lock(&pool->table->lock);
    if (result == CUDA_OK) {
        *ptr = block->ptr;
        mark = block->mark;
        block->mark = NULL;
    } else {
        pool->used -= block->size;
        keep(block);
    }
    pthread_mutex_unlock(&pool->table->lock);
    if (mark)
        pool->table->calls->drop(mark);
    return result;
}

/* Memory is short: a block that another stream still uses is better than none. */
static cuda_result give_out_busy(struct memory_pool *pool, cuda_device_ptr *ptr, size_t size,
                                 cuda_stream stream)
{
    struct block *block = take_fit(pool, size, stream, true);
    return block ? give_out(block, ptr, stream) : CUDA_ERR_OUT_OF_MEMORY;
}

static void unreserve(struct memory_pool *pool, size_t size)
{
    pthread_mutex_lock(&pool->table->lock);
    pool->reserved -= size;
    pthread_mutex_unlock(&pool->table->lock);
}

static bool reserve(struct memory_pool *pool, size_t size)
{
    pthread_mutex_lock(&pool->table->lock);
    bool fits = !pool->most || (size <= pool->most && pool->reserved <= pool->most - size);
    if (fits) {
        pool->reserved += size;
        pool->reserved_high = max(pool->reserved_high, pool->reserved);
    }
    pthread_mutex_unlock(&pool->table->lock);
    return fits;
}

/* Of a pool that has reached its limit, which stays. */
static bool release_idle(struct memory_pool *pool)
{
    struct list taken = LIST_INIT(taken);
    pthread_mutex_lock(&pool->table->lock);
    take_kept(pool, 0, false, &taken);
    pthread_mutex_unlock(&pool->table->lock);
    return release_all(pool->table, pool->place, &taken);
}

/* Memory that was reserved in the pool's numbers, and that the calls have given. */
static cuda_result add_block(struct memory_pool *pool, struct block *block)
{
    pthread_mutex_lock(&pool->table->lock);
    bool added = add(block);
    if (added) {
        list_append(&pool->live, &block->link);
        count_used(pool, block->size);
    }
    pthread_mutex_unlock(&pool->table->lock);
    if (added)
        return CUDA_OK;
    (void)pool->table->calls->release(pool->place, block->ptr);
    return CUDA_ERR_OUT_OF_MEMORY;
}

/* Gives new memory, which is reserved in the pool's numbers, or a block that is busy. */
static cuda_result alloc_reserved(struct memory_pool *pool, cuda_device_ptr *ptr, size_t size,
                                  cuda_stream stream)
{
    const struct memory_pool_calls *calls = pool->table->calls;
    struct block *block = calloc(1, sizeof *block);
    cuda_result result = CUDA_ERR_OUT_OF_MEMORY;
    bool busy = false;
    if (block) {
        *block = (struct block){.size = size, .pool = pool};
        result = calls->alloc(pool->place, &block->ptr, size);
        busy =
            result == CUDA_ERR_OUT_OF_MEMORY && give_out_busy(pool, ptr, size, stream) == CUDA_OK;
        if (result == CUDA_ERR_OUT_OF_MEMORY && !busy &&
            memory_pool_give_back(pool->table, pool->place))
            result = calls->alloc(pool->place, &block->ptr, size);
        if (result == CUDA_OK)
            result = add_block(pool, block);
    }
    if (result == CUDA_OK) {
        *ptr = block->ptr;
        return CUDA_OK;
    }
    unreserve(pool, size);
    free(block);
    return busy ? CUDA_OK : result;
}

cuda_result memory_pool_alloc(struct memory_pool *pool, cuda_device_ptr *ptr, size_t size,
                              cuda_stream stream)
{
    struct block *block = take_fit(pool, size, stream, false);
    if (block)
        return give_out(block, ptr, stream);
    return reserve(pool, size) || (release_idle(pool) && reserve(pool, size))
               ? alloc_reserved(pool, ptr, size, stream)
               : give_out_busy(pool, ptr, size, stream);
}

/* ---- freeing ---- */

/* An allocation of no pool, which is kept from now on. */
static cuda_result adopt(struct memory_pool *pool, cuda_device_ptr ptr, struct block **adopted)
{
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        return CUDA_ERR_OUT_OF_MEMORY;
    *block = (struct block){.ptr = ptr, .pool = pool, .foreign = true};
    if (pool->table->calls->measure(pool->place, ptr, &block->size) != CUDA_OK || !add(block)) {
        free(block);
        return CUDA_ERR_INVALID_VALUE;
    }
    *adopted = block;
    return CUDA_OK;
}

cuda_result memory_pool_free(struct memory_pool *pool, cuda_device_ptr ptr, cuda_stream stream)
{
    struct memory_pools *table = pool->table;
    cuda_event mark = NULL;
    cuda_result result = table->calls->mark(pool->place, stream, &mark);
    if (result != CUDA_OK)
        return result;
    pthread_mutex_lock(&table->lock);
    struct block *block = find(table, ptr);
    if (!block)
        result = adopt(pool, ptr, &block);
    else if (block->mark || block->pool->place != pool->place)
        result = CUDA_ERR_INVALID_VALUE;
    if (result == CUDA_OK) {
        block->mark = mark;
        block->stream = stream;
        if (!block->foreign)
            block->pool->used -= block->size;
        keep(block);
    }
    pthread_mutex_unlock(&table->lock);
    if (result != CUDA_OK)
        table->calls->drop(mark);
    return result;
}

struct memory_pool *memory_pool_of(struct memory_pools *table, cuda_device_ptr ptr)
{
    pthread_mutex_lock(&table->lock);
    const struct block *block = find(table, ptr);
    struct memory_pool *pool = block && !block->mark ? block->pool : NULL;
    pthread_mutex_unlock(&table->lock);
    return pool;
}

bool memory_pool_disown(struct memory_pools *table, cuda_device_ptr ptr)
{
    pthread_mutex_lock(&table->lock);
    struct block *block = find(table, ptr);
    bool is_free = block && block->mark;
    if (block && !is_free) {
        struct memory_pool *pool = block->pool;
        pool->used -= block->size;
        remove_block(block);
        end_if_empty(pool);
        free(block);
    }
    pthread_mutex_unlock(&table->lock);
    return !is_free;
}

/* ---- trimming ---- */

void memory_pool_trim(struct memory_pool *pool, uint64_t least)
{
    struct memory_pools *table = pool->table;
    void *place = pool->place;
    struct list taken = LIST_INIT(taken);
    pthread_mutex_lock(&table->lock);
    take_kept(pool, least, false, &taken);
    end_if_empty(pool);
    pthread_mutex_unlock(&table->lock);
    (void)release_all(table, place, &taken);
    if (table->calls->trim)
        table->calls->trim(place);
}

/* Of all pools of the place. */
static bool release_kept(struct memory_pools *table, void *place, bool all)
{
    struct memory_pool *pool;
    struct list taken = LIST_INIT(taken);
    if (atomic_load_explicit(&table->freed, memory_order_relaxed) == 0)
        return false;
    pthread_mutex_lock(&table->lock);
    LIST_FOR_EACH (pool, &table->pools, link)
        if (pool->place == place) {
            take_kept(pool, all ? 0 : pool->threshold, all, &taken);
            end_if_empty(pool);
        }
    pthread_mutex_unlock(&table->lock);
    return release_all(table, place, &taken);
}

void memory_pool_settle(struct memory_pools *table, void *place)
{
    (void)release_kept(table, place, false);
}

bool memory_pool_give_back(struct memory_pools *table, void *place)
{
    return release_kept(table, place, true);
}

static void forget_list(struct list *blocks)
{
    struct block *block;
    LIST_FOR_EACH (block, blocks, link) {
        if (block->mark) {
            atomic_fetch_sub(&block->pool->table->freed, 1);
            block->pool->table->calls->drop(block->mark);
        }
        remove_block(block);
        free(block);
    }
}

void memory_pool_forget(struct memory_pools *table, void *place)
{
    struct memory_pool *pool;
    pthread_mutex_lock(&table->lock);
    LIST_FOR_EACH (pool, &table->pools, link)
        if (pool->place == place) {
            forget_list(&pool->live);
            forget_list(&pool->freed);
            pool->used = 0;
            end_if_empty(pool);
        }
    pthread_mutex_unlock(&table->lock);
}

/* ---- attributes ---- */

cuda_result memory_pool_get(struct memory_pool *pool, int attribute, uint64_t *value)
{
    const uint64_t *const members[] = {
        [MEMORY_POOL_RELEASE_THRESHOLD] = &pool->threshold,
        [MEMORY_POOL_RESERVED_CURRENT] = &pool->reserved,
        [MEMORY_POOL_RESERVED_HIGH] = &pool->reserved_high,
        [MEMORY_POOL_USED_CURRENT] = &pool->used,
        [MEMORY_POOL_USED_HIGH] = &pool->used_high,
    };
    if (attribute < MEMORY_POOL_REUSE_EVENTS || attribute > MEMORY_POOL_USED_HIGH)
        return CUDA_ERR_INVALID_VALUE;
    pthread_mutex_lock(&pool->table->lock);
    *value = members[attribute] ? *members[attribute] : pool->reuse[attribute];
    pthread_mutex_unlock(&pool->table->lock);
    return CUDA_OK;
}

cuda_result memory_pool_set(struct memory_pool *pool, int attribute, uint64_t value)
{
    cuda_result result = CUDA_OK;
    pthread_mutex_lock(&pool->table->lock);
    if (attribute >= MEMORY_POOL_REUSE_EVENTS && attribute <= MEMORY_POOL_REUSE_INTERNAL)
        pool->reuse[attribute] = value != 0;
    else if (attribute == MEMORY_POOL_RELEASE_THRESHOLD)
        pool->threshold = value;
    else if (attribute == MEMORY_POOL_RESERVED_HIGH && !value)
        pool->reserved_high = pool->reserved;
    else if (attribute == MEMORY_POOL_USED_HIGH && !value)
        pool->used_high = pool->used;
    else
        result = CUDA_ERR_INVALID_VALUE;
    pthread_mutex_unlock(&pool->table->lock);
    return result;
}
