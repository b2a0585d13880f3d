/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Loads and stores. No address is used before it has been checked: against a live range of
 * memory_find(), or against the bounds of its space. Each warp keeps the last few ranges for as
 * long as the generation is unchanged.
 */
#include <string.h>

#include "server/softgpu/exec/exec.h"
#include "common/ipc/shared_word.h"
#include "common/util.h"
#include "server/softgpu/exec/exec_access.h"
#include "server/softgpu/exec/module_private.h"
#include "server/softgpu/memory/kernel_heap.h"

static bool in_range(const struct memory_range *r, uint64_t address, uint32_t bytes, uint32_t need)
{
    return (r->access & need) == need && address >= r->start && address < r->end &&
           r->end - address >= bytes;
}

/* Finds a range that holds [address, address + bytes) and allows this access, or NULL. Of a heap
 * that says nothing of the blocks yet. */
static const struct memory_range *known_range(struct warp *w, uint64_t address, uint32_t bytes,
                                              uint32_t need)
{
    uint64_t generation = memory_generation();
    if (generation != w->generation) {
        memset(w->ranges, 0, sizeof(w->ranges));
        w->generation = generation;
    }
    for (int i = 0; i < 4; i++) {
        if (in_range(&w->ranges[i], address, bytes, need))
            return &w->ranges[i];
    }
    struct memory_range found;
    if (!memory_find(address, &found) || !in_range(&found, address, bytes, need))
        return NULL;
    struct memory_range *slot = &w->ranges[w->next_range++ & 3];
    *slot = found;
    return slot;
}

/* The same, and the bytes are a block's if the range is a heap. */
static const struct memory_range *find_range(struct warp *w, uint64_t address, uint32_t bytes,
                                             uint32_t need)
{
    const struct memory_range *r = known_range(w, address, bytes, need);
    return r && r->heap && !kernel_heap_allows(r->heap, address, bytes) ? NULL : r;
}

static bool in_const(const struct warp *w, uint64_t address, uint32_t bytes)
{
    const struct module *m = w->block->module;
    return bytes <= m->const_bytes && address - m->const_base <= m->const_bytes - bytes;
}

/* Bounds of the spaces that are not host memory; `offset` is the address within. */
static uint8_t *space_pointer(const struct warp *w, uint32_t space, uint32_t lane, uint64_t offset,
                              uint32_t bytes, enum fault_kind *why)
{
    struct block *b = w->block;
    uint64_t size;
    uint8_t *base;
    if (space == PTX_SPACE_SHARED) {
        if (!block_shared_ready(b)) {
            *why = FAULT_NONE; /* not the kernel's fault: the engine ends the device for it */
            return NULL;
        }
        size = b->shared_bytes;
        base = b->shared;
    } else if (space == PTX_SPACE_LOCAL) {
        size = w->local_stride;
        base = w->local + (size_t)lane * w->local_stride;
    } else {
        struct function_info info;
        function_info(b->launch->function, &info);
        size = info.param_bytes;
        base =
            (uint8_t *)(uintptr_t)b->launch->params; /* only ever read: see exec_access_pointer */
    }
    return bytes <= size && offset <= size - bytes ? base + offset : NULL;
}

uint8_t *exec_access_pointer(struct warp *w, const struct access_request *q, uint32_t lane,
                             uint64_t address, enum fault_kind *why)
{
    uint32_t space = q->space;
    *why = FAULT_MISALIGNED_ADDRESS;
    if (address & (q->align - 1))
        return NULL;
    *why = FAULT_ILLEGAL_ADDRESS;
    if (space == PTX_SPACE_NONE || space == PTX_SPACE_PARAM) {
        uint64_t window = address & WINDOW_MASK;
        uint32_t named = window == WINDOW_SHARED  ? PTX_SPACE_SHARED
                         : window == WINDOW_LOCAL ? PTX_SPACE_LOCAL
                         : window == WINDOW_PARAM ? PTX_SPACE_PARAM
                                                  : PTX_SPACE_GLOBAL;
        if (named == PTX_SPACE_PARAM && (q->need & MEMORY_WRITE))
            return NULL;
        if (named != PTX_SPACE_GLOBAL)
            return space_pointer(w, named, lane, address & ~WINDOW_MASK, q->bytes, why);
        if (space == PTX_SPACE_PARAM)
            return NULL;
    } else if (space == PTX_SPACE_SHARED || space == PTX_SPACE_LOCAL) {
        return space_pointer(w, space, lane, address, q->bytes, why);
    }
    uint64_t window = address & WINDOW_MASK;
    if (window == WINDOW_SHARED || window == WINDOW_LOCAL || window == WINDOW_PARAM) {
        *why = FAULT_INVALID_ADDRESS_SPACE;
        return NULL;
    }
    bool constant = in_const(w, address, q->bytes);
    if ((space == PTX_SPACE_CONST && !constant) || (constant && (q->need & MEMORY_WRITE)))
        return NULL;
    if (!find_range(w, address, q->bytes, q->need))
        return NULL;
    return (uint8_t *)(uintptr_t)address;
}

/* ---- all lanes at once ---- */

/* The part of a live range that may be accessed so, around an address within: constants alone, or
 * anything but constants, which nobody writes. */
static bool clip_to_constants(const struct warp *w, const struct access_request *q,
                              uint64_t address, uint64_t *start, uint64_t *end)
{
    const struct module *m = w->block->module;
    uint64_t from = m->const_base, to = from + m->const_bytes;
    if (q->space == PTX_SPACE_CONST) {
        *start = max(*start, from);
        *end = min(*end, to);
        return address >= *start && address < *end;
    }
    if (!(q->need & MEMORY_WRITE) || from == to)
        return true;
    if (address >= from && address < to)
        return false;
    if (address < from)
        *end = min(*end, from);
    else
        *start = max(*start, to);
    return true;
}

/* Of a heap each lane has its block, so there is no area. */
static bool live_area(struct warp *w, const struct access_request *q, uint64_t address,
                      struct lane_area *area)
{
    const struct memory_range *r = known_range(w, address, q->bytes, q->need);
    if (!r || r->heap)
        return false;
    uint64_t start = r->start, end = r->end;
    if (!clip_to_constants(w, q, address, &start, &end) || end - start < q->bytes)
        return false;
    *area = (struct lane_area){.start = start, .span = end - start - q->bytes, .host = start};
    return true;
}

static bool own_area(uint64_t start, const uint8_t *host, uint64_t size, uint32_t stride,
                     uint32_t bytes, struct lane_area *area)
{
    if (size < bytes)
        return false;
    *area = (struct lane_area){
        .start = start, .span = size - bytes, .host = (uint64_t)(uintptr_t)host, .stride = stride};
    return true;
}

/* The area in which an address of the first lane lies, and as a rule those of all lanes. Returns
 * false if there is none, or the lanes are to be looked at one by one. */
static bool area_of(struct warp *w, const struct access_request *q, uint64_t address,
                    struct lane_area *area)
{
    const struct block *b = w->block;
    uint64_t window = q->space == PTX_SPACE_NONE ? address & WINDOW_MASK : 0;
    if (q->space == PTX_SPACE_SHARED || window == WINDOW_SHARED)
        return block_shared_ready(w->block) &&
               own_area(window, b->shared, b->shared_bytes, 0, q->bytes, area);
    if (q->space == PTX_SPACE_LOCAL || window == WINDOW_LOCAL)
        return own_area(window, w->local, w->local_stride, w->local_stride, q->bytes, area);
    return q->space != PTX_SPACE_PARAM && live_area(w, q, address, area);
}

/* Fills in the lanes that follow the first one. */
static void spread_lanes(uint64_t *host, uint64_t step)
{
    for (uint32_t i = 1; i < LANES; i++)
        host[i] = host[0] + i * step;
}

/* Whether so many bytes from this address on lie in the area. */
static bool area_has(const struct lane_area *area, uint64_t address, uint32_t lane_bytes,
                     uint32_t bytes)
{
    uint64_t from = address - area->start;
    return !(address & (lane_bytes - 1)) && from <= area->span &&
           area->span - from >= bytes - lane_bytes;
}

/* Lane by lane. Returns false if a fault was reported. */
static bool resolve_each(struct warp *w, const struct op *op, uint32_t mask,
                         const struct access_request *q, const char *doing, uint64_t *host)
{
    const uint64_t *base = slot_at(w, op->a);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        uint64_t address = base[lane] + op->imm;
        enum fault_kind why;
        host[lane] = (uint64_t)(uintptr_t)exec_access_pointer(w, q, lane, address, &why);
        if (!host[lane]) {
            exec_fault(w, op, why, lane, address, q->bytes, doing);
            return false;
        }
    }
    for (uint32_t i = 0; i < LANES; i++)
        host[i] = mask >> i & 1 ? host[i] : host[__builtin_ctz(mask)];
    return true;
}

/*
 * Gets host pointers for the lanes of mask: for all lanes with LANES_ANY, where the other lanes get
 * a pointer that may be read, so that loads need no mask; otherwise the first one alone, in
 * host[0]. LANES_FAULT: a fault was reported.
 */
static enum lanes_form resolve_lanes(struct warp *w, const struct op *op, uint32_t mask,
                                     const struct access_request *q, const char *doing,
                                     uint64_t *host)
{
    const uint64_t *base = slot_at(w, op->a);
    const uint64_t address = base[__builtin_ctz(mask)] + op->imm;
    struct lane_area area;
    if (area_of(w, q, address, &area)) {
        enum lanes_form form = area.stride ? LANES_ANY : w->lanes->form(base, mask, q->bytes);
        if (form == LANES_ANY) {
            if (w->lanes->locate(base, op->imm, mask, q->bytes, &area, host)) {
                for (uint32_t i = 0; area.stride && i < LANES; i++)
                    host[i] += i * area.stride;
                return form;
            }
        } else if (area_has(&area, address, q->bytes,
                            form == LANES_ROW ? LANES * q->bytes : q->bytes)) {
            host[0] = area.host + (address - area.start);
            return form;
        }
    }
    return resolve_each(w, op, mask, q, doing, host) ? LANES_ANY : LANES_FAULT;
}

bool exec_access_lanes(struct warp *w, const struct op *op, uint32_t mask,
                       const struct access_request *q, const char *doing, uint64_t *host)
{
    enum lanes_form form = resolve_lanes(w, op, mask, q, doing, host);
    if (form == LANES_SAME || form == LANES_ROW)
        spread_lanes(host, form == LANES_ROW ? q->bytes : 0);
    return form != LANES_FAULT;
}

static uint8_t *pointer(uint64_t host)
{
    return (uint8_t *)(uintptr_t)host;
}

/* With lengths that the compiler knows, moves of vectors. */
static void copy_lanes(void *to, const void *from, uint32_t width)
{
    if (width == 4)
        memcpy(to, from, 4 * LANES);
    else if (width == 8)
        memcpy(to, from, 8 * LANES);
    else
        memcpy(to, from, 2 * LANES);
}

/* ---- vectors ---- */

/*
 * A GPU moves a lane's vector of up to 16 bytes at once. Programs rely on it: the scans of CUB keep
 * a state and a value in one pair, which another block reads while it changes. Two loads of half
 * the pair each would give a state with another state's value.
 */
enum { WHOLE = 16 };

/* Both kinds of processor move 16 aligned bytes in one piece, with AVX or LSE2. The compilers'
 * own atomics of 16 bytes write even to load, which memory that is read-only does not allow. */
typedef uint64_t whole_vector __attribute__((vector_size(WHOLE), may_alias));

/* ThreadSanitizer would call a race of the kernel's a race of ours. */
__attribute__((no_sanitize("thread"))) static void move_sixteen(void *to, const void *from)
{
    *(volatile whole_vector *)to = *(const volatile whole_vector *)from;
}

#define MOVE(T) shared_word_write((T *)(to + at), shared_word_hint((const T *)(from + at)))

/* Either side may be the memory that other threads use. A kernel's parameters need not be aligned
 * here, and nobody writes them. */
static inline void move_whole(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    const uint32_t part = min(bytes, (uint32_t)WHOLE);

    if (((uintptr_t)to | (uintptr_t)from) & (part - 1)) {
        memcpy(to, from, bytes);
        return;
    }
    for (uint32_t at = 0; at < bytes; at += part) {
        if (part == WHOLE)
            move_sixteen(to + at, from + at);
        else if (part == 8)
            MOVE(uint64_t);
        else if (part == 4)
            MOVE(uint32_t);
        else
            MOVE(uint16_t);
    }
}

/* A block's own memory is used by one thread at a time. */
static bool is_shared_with_others(const struct access_request *q)
{
    return q->space != PTX_SPACE_SHARED && q->space != PTX_SPACE_LOCAL;
}

/* A vector has at most four elements of 8 bytes. */
struct vectors {
    _Alignas(WHOLE) uint8_t of[LANES][32];
};

/* Reads the vectors of the first lanes, and lets `host` point to what was read. */
static void fetch_vectors(struct vectors *v, uint64_t *host, uint32_t lanes, uint32_t bytes)
{
    for (uint32_t i = 0; i < lanes; i++) {
        if (bytes == WHOLE)
            move_whole(v->of[i], pointer(host[i]), WHOLE);
        else
            move_whole(v->of[i], pointer(host[i]), bytes);
        host[i] = (uint64_t)(uintptr_t)v->of[i];
    }
}

static void put_vectors(const struct vectors *v, const uint64_t *host, uint32_t mask,
                        uint32_t bytes)
{
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(m);
        if (bytes == WHOLE)
            move_whole(pointer(host[i]), v->of[i], WHOLE);
        else
            move_whole(pointer(host[i]), v->of[i], bytes);
    }
}

/* ---- loads ---- */

/* Relaxed atomics are plain moves for the machine, and keep values whole where a kernel's
 * threads race. */
#define GATHER(T, R)                                                                               \
    for (uint32_t i = 0; i < lanes; i++)                                                           \
        ((R *)out)[i] = (R)shared_word_hint((const T *)pointer(host[i] + at));                     \
    break

/* Reads for the first lanes: for all, or for one in the place of all. */
static void gather_lanes(const uint64_t *host, uint32_t lanes, uint32_t at, uint32_t bytes,
                         uint32_t extend, void *out)
{
    bool s = extend & ACCESS_SIGNED;
    uint32_t width = extend & 0x7f;
    switch (bytes * 100 + width * 10 + s) {
    case 120:
        GATHER(uint8_t, uint16_t);
    case 121:
        GATHER(int8_t, int16_t);
    case 140:
        GATHER(uint8_t, uint32_t);
    case 141:
        GATHER(int8_t, int32_t);
    case 180:
        GATHER(uint8_t, uint64_t);
    case 181:
        GATHER(int8_t, int64_t);
    case 220:
    case 221:
        GATHER(uint16_t, uint16_t);
    case 240:
        GATHER(uint16_t, uint32_t);
    case 241:
        GATHER(int16_t, int32_t);
    case 280:
        GATHER(uint16_t, uint64_t);
    case 281:
        GATHER(int16_t, int64_t);
    case 440:
    case 441:
        GATHER(uint32_t, uint32_t);
    case 480:
        GATHER(uint32_t, uint64_t);
    case 481:
        GATHER(int32_t, int64_t);
    default:
        GATHER(uint64_t, uint64_t);
    }
}

static void put_row(const struct warp *w, uint32_t slot, const void *values, uint32_t lanes,
                    uint32_t width, uint32_t mask)
{
    void *row = slot_at(w, slot);
    if (lanes == 1)
        w->lanes->fill(row, values, width, mask);
    else if (mask == ALL_LANES)
        copy_lanes(row, values, width);
    else
        w->lanes->blend(row, values, width, mask);
}

enum exec_result exec_load(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t bytes = op->aux >> 8 & 0xff, count = op->aux >> 16 & 0xff, extend = op->aux >> 24;
    struct access_request q = {.space = op->aux & 0xff,
                               .bytes = bytes * count,
                               .align = bytes * count,
                               .need = MEMORY_READ};
    const uint32_t slots[4] = {op->dst, op->b, op->c, op->d};
    _Alignas(64) uint64_t host[LANES];
    _Alignas(64) uint8_t values[4][LANES * 8];
    uint32_t width = extend & 0x7f;
    w->polls |= op->e;
    enum lanes_form form = resolve_lanes(w, op, mask, &q, "read", host);
    if (form == LANES_FAULT)
        return EXEC_FAULT;
    if (form == LANES_ROW) {
        if (count == 1 && bytes == width) {
            copy_lanes(slot_at(w, op->dst), pointer(host[0]), bytes);
            return EXEC_NEXT;
        }
        spread_lanes(host, q.bytes);
    }
    const uint32_t lanes = form == LANES_SAME ? 1 : LANES;
    struct vectors vectors;
    if (count > 1 && is_shared_with_others(&q))
        fetch_vectors(&vectors, host, lanes, q.bytes);
    if (count == 1 && lanes == LANES && mask == ALL_LANES) {
        gather_lanes(host, LANES, 0, bytes, extend, slot_at(w, op->dst));
        return EXEC_NEXT;
    }
    for (uint32_t k = 0; k < count; k++)
        gather_lanes(host, lanes, k * bytes, bytes, extend, values[k]);
    for (uint32_t k = 0; k < count; k++)
        put_row(w, slots[k], values[k], lanes, width, mask);
    return EXEC_NEXT;
}

/* ---- stores ---- */

#define WRITE(T, R) shared_word_write((T *)pointer(host[i] + at), (T)((const R *)row)[i])
#define SCATTER(T, R)                                                                              \
    if (mask == ALL_LANES) {                                                                       \
        for (uint32_t i = 0; i < LANES; i++)                                                       \
            WRITE(T, R);                                                                           \
    } else {                                                                                       \
        for (uint32_t m = mask; m; m &= m - 1) {                                                   \
            uint32_t i = (uint32_t)__builtin_ctz(m);                                               \
            WRITE(T, R);                                                                           \
        }                                                                                          \
    }                                                                                              \
    break

static void scatter_lanes(const uint64_t *host, uint32_t at, uint32_t bytes, const void *row,
                          uint32_t mask)
{
    switch (bytes) {
    case 1:
        SCATTER(uint8_t, uint16_t);
    case 2:
        SCATTER(uint16_t, uint16_t);
    case 4:
        SCATTER(uint32_t, uint32_t);
    default:
        SCATTER(uint64_t, uint64_t);
    }
}

enum exec_result exec_store(struct warp *w, const struct op *op, uint32_t mask)
{
    uint32_t bytes = op->aux >> 8 & 0xff, count = op->aux >> 16 & 0xff;
    struct access_request q = {.space = op->aux & 0xff,
                               .bytes = bytes * count,
                               .align = bytes * count,
                               .need = MEMORY_WRITE};
    const uint32_t slots[4] = {op->b, op->c, op->d, op->e};
    _Alignas(64) uint64_t host[LANES];
    enum lanes_form form = resolve_lanes(w, op, mask, &q, "write", host);
    if (form == LANES_FAULT)
        return EXEC_FAULT;
    if (form == LANES_ROW && count == 1 && bytes >= 2) {
        copy_lanes(pointer(host[0]), slot_at(w, op->b), bytes);
        return EXEC_NEXT;
    }
    if (form != LANES_ANY)
        spread_lanes(host, form == LANES_ROW ? q.bytes : 0);
    struct vectors vectors;
    uint64_t made[LANES];
    const bool whole = count > 1 && is_shared_with_others(&q);
    for (uint32_t i = 0; whole && i < LANES; i++)
        made[i] = (uint64_t)(uintptr_t)vectors.of[i];
    for (uint32_t k = 0; k < count; k++)
        scatter_lanes(whole ? made : host, k * bytes, bytes, slot_at(w, slots[k]), mask);
    if (whole)
        put_vectors(&vectors, host, mask, q.bytes);
    return EXEC_NEXT;
}

enum exec_result exec_copy_async(struct warp *w, const struct op *op, uint32_t mask)
{
    const uint64_t *to = slot_at(w, op->a), *from = slot_at(w, op->b);
    const uint32_t *have = slot_at(w, op->c);
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m), size = op->aux;
        uint32_t n = min(have[lane], size);
        enum fault_kind why;
        struct access_request source = {PTX_SPACE_GLOBAL, n ? n : 1, 1, MEMORY_READ};
        struct access_request target = {PTX_SPACE_SHARED, size, size, MEMORY_WRITE};
        uint8_t bytes[16] = {0};
        uint64_t address = from[lane] + op->imm;
        const uint8_t *s = n ? exec_access_pointer(w, &source, lane, address, &why) : bytes;
        if (!s || address & (size - 1))
            return exec_fault(w, op, s ? FAULT_MISALIGNED_ADDRESS : why, lane, address, size,
                              "read");
        if (n)
            memcpy(bytes, s, n);
        uint8_t *t = exec_access_pointer(w, &target, lane, to[lane], &why);
        if (!t)
            return exec_fault(w, op, why, lane, to[lane], size, "write");
        memcpy(t, bytes, size);
    }
    return EXEC_NEXT;
}
