/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * Atomics are the host's atomic instructions, because blocks run on several threads and host
 * buffers are shared with other processes.
 */
#include <string.h>

#include "server/softgpu/exec/exec_access.h"
#include "common/ipc/shared_word.h"
#include "server/softgpu/exec/exec_half.h"

static uint32_t add_halves(uint32_t a, uint32_t b, bool bf)
{
    uint32_t out = 0;
    for (int shift = 0; shift < 32; shift += 16) {
        uint16_t x = (uint16_t)(a >> shift), y = (uint16_t)(b >> shift);
        uint16_t sum =
            bf ? bfloat_from_double((double)bfloat_to_float(x) + (double)bfloat_to_float(y))
               : half_from_double((double)half_to_float(x) + (double)half_to_float(y));
        out |= (uint32_t)sum << shift;
    }
    return out;
}

static uint32_t combine_32(enum atomic_op op, enum ptx_type type, uint32_t old, uint32_t b,
                           uint32_t c)
{
    bool less = type == PTX_S32 ? (int32_t)b < (int32_t)old : b < old;
    switch (op) {
    case ATOMIC_ADD:
        if (type == PTX_F32)
            return float_bits(canonical_nan(bits_float(old) + bits_float(b)));
        if (type == PTX_F16X2 || type == PTX_BF16X2)
            return add_halves(old, b, type == PTX_BF16X2);
        return old + b;
    case ATOMIC_MIN:
        return less ? b : old;
    case ATOMIC_MAX:
        return less ? old : b;
    case ATOMIC_AND:
        return old & b;
    case ATOMIC_OR:
        return old | b;
    case ATOMIC_XOR:
        return old ^ b;
    case ATOMIC_EXCH:
        return b;
    case ATOMIC_CAS:
        return old == b ? c : old;
    case ATOMIC_INC:
        return old >= b ? 0 : old + 1;
    default:
        return old == 0 || old > b ? b : old - 1;
    }
}

static uint64_t combine_64(enum atomic_op op, enum ptx_type type, uint64_t old, uint64_t b,
                           uint64_t c)
{
    bool less = type == PTX_S64 ? (int64_t)b < (int64_t)old : b < old;
    switch (op) {
    case ATOMIC_ADD:
        return type == PTX_F64 ? double_bits(bits_double(old) + bits_double(b)) : old + b;
    case ATOMIC_MIN:
        return less ? b : old;
    case ATOMIC_MAX:
        return less ? old : b;
    case ATOMIC_AND:
        return old & b;
    case ATOMIC_OR:
        return old | b;
    case ATOMIC_XOR:
        return old ^ b;
    case ATOMIC_EXCH:
        return b;
    default:
        return old == b ? c : old;
    }
}

static uint32_t apply_32(uint32_t *at, enum atomic_op op, enum ptx_type type, uint32_t b,
                         uint32_t c)
{
    if (op == ATOMIC_ADD && (type == PTX_U32 || type == PTX_S32 || type == PTX_B32))
        return shared_word_add_after(at, b);
    /* A guess, which the exchange checks. */
    uint32_t old = shared_word_hint(at);
    while (!shared_word_exchange(at, &old, combine_32(op, type, old, b, c)))
        ;
    return old;
}

static uint64_t apply_64(uint64_t *at, enum atomic_op op, enum ptx_type type, uint64_t b,
                         uint64_t c)
{
    uint64_t old = shared_word_hint(at);
    while (!shared_word_exchange(at, &old, combine_64(op, type, old, b, c)))
        ;
    return old;
}

static uint16_t apply_16(uint16_t *at, enum atomic_op op, enum ptx_type type, uint16_t b,
                         uint16_t c)
{
    uint16_t old = shared_word_hint(at), next;
    do {
        next = op == ATOMIC_CAS ? (old == b ? c : old)
                                : (uint16_t)add_halves(old, b, type == PTX_BF16);
    } while (!shared_word_exchange(at, &old, next));
    return old;
}

enum exec_result exec_atomic(struct warp *w, const struct op *op, uint32_t mask)
{
    enum ptx_type type = (enum ptx_type)(op->aux >> 16);
    enum atomic_op what = (enum atomic_op)(op->aux >> 8 & 0xff);
    uint32_t bytes = ptx_type_bytes(type);
    struct access_request q = {op->aux & 0xff, bytes, bytes, MEMORY_READ | MEMORY_WRITE};
    _Alignas(64) uint64_t host[LANES];
    const void *b = slot_at(w, op->b), *c = slot_at(w, op->c);
    void *d = op->dst == SLOT_NONE ? NULL : slot_at(w, op->dst);
    w->polls = true;
    if (!exec_access_lanes(w, op, mask, &q, "atomic", host))
        return EXEC_FAULT;
    /* Each lane's operands are read before its result is written: the rows of operands and
     * result may be the same row. */
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(m);
        void *at = (void *)(uintptr_t)host[lane];
        if (bytes == 4) {
            uint32_t old =
                apply_32(at, what, type, ((const uint32_t *)b)[lane], ((const uint32_t *)c)[lane]);
            if (d)
                ((uint32_t *)d)[lane] = old;
        } else if (bytes == 8) {
            uint64_t old =
                apply_64(at, what, type, ((const uint64_t *)b)[lane], ((const uint64_t *)c)[lane]);
            if (d)
                ((uint64_t *)d)[lane] = old;
        } else {
            uint16_t old =
                apply_16(at, what, type, ((const uint16_t *)b)[lane], ((const uint16_t *)c)[lane]);
            if (d)
                ((uint16_t *)d)[lane] = old;
        }
    }
    return EXEC_NEXT;
}
