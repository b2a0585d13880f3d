/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Barriers in shared memory, and bulk copies that report to them. A block is alone: what PTX calls
 * a cluster is one block here. */
#include <string.h>

#include "server/softgpu/decode/decode.h"

static enum ptx_space take_shared(struct decoder *d)
{
    bool shared = decode_take(d, "shared");
    shared |= decode_take(d, "shared::cta");
    shared |= decode_take(d, "shared::cluster");
    return shared ? PTX_SPACE_SHARED : PTX_SPACE_NONE;
}

static void take_order(struct decoder *d)
{
    static const char *const words[] = {"relaxed", "acquire", "release", "cta", "cluster"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        decode_take(d, words[i]);
}

static struct op *emit(struct decoder *d, exec_action *action, enum mbarrier_act act, uint32_t dst,
                       const struct ptx_operand *address, uint32_t number)
{
    enum ptx_space space = take_shared(d);
    uint64_t addend;
    decode_take(d, "b64");
    uint32_t at = decode_address(d, address, space, &addend);
    struct op *op = decode_action(d, action, dst, at, number, 0);
    op->imm = addend;
    op->aux = (uint32_t)act | (uint32_t)space << 8;
    return op;
}

/* mbarrier.arrive STATE, [ADDRESS], NUMBER: the state may be _, or missing with cp.async. */
static void decode_arrive(struct decoder *d, bool drop)
{
    bool expect = decode_take(d, "expect_tx");
    decode_take(d, "noComplete");
    take_order(d);
    decode_count(d, expect ? 3 : 2, 3);
    const struct ptx_operand *to = decode_operand(d, 0);
    uint32_t state = to && to->kind == PTX_OPERAND_SINK ? SLOT_NONE : decode_out(d, 0, PTX_B64);
    uint32_t number =
        d->ins->operand_count > 2 ? decode_in(d, 2, PTX_U32) : decode_constant(d, 1, 4);
    enum mbarrier_act act = expect ? drop ? MBARRIER_DROP_EXPECT : MBARRIER_ARRIVE_EXPECT
                            : drop ? MBARRIER_ARRIVE_DROP
                                   : MBARRIER_ARRIVE;
    emit(d, exec_mbarrier, act, state, decode_operand(d, 1), number);
}

static void decode_test(struct decoder *d)
{
    bool parity = decode_take(d, "parity");
    take_order(d);
    /* A fourth is a hint of how long to wait, which is not at all here. */
    decode_count(d, 3, 4);
    uint32_t result = decode_out(d, 0, PTX_PRED);
    uint32_t phase = decode_in(d, 2, parity ? PTX_U32 : PTX_B64);
    emit(d, exec_mbarrier_test, parity ? MBARRIER_TEST_PARITY : MBARRIER_TEST_STATE, result,
         decode_operand(d, 1), phase);
}

static void decode_mbarrier(struct decoder *d)
{
    if (decode_take(d, "arrive")) {
        decode_arrive(d, false);
    } else if (decode_take(d, "arrive_drop")) {
        decode_arrive(d, true);
    } else if (decode_take(d, "test_wait") || decode_take(d, "try_wait")) {
        decode_test(d);
    } else if (decode_take(d, "init")) {
        decode_count(d, 2, 2);
        emit(d, exec_mbarrier, MBARRIER_INIT, SLOT_NONE, decode_operand(d, 0),
             decode_in(d, 1, PTX_U32));
    } else if (decode_take(d, "inval")) {
        decode_count(d, 1, 1);
        emit(d, exec_mbarrier, MBARRIER_INVAL, SLOT_NONE, decode_operand(d, 0),
             decode_constant(d, 0, 4));
    } else if (decode_take(d, "expect_tx") || decode_take(d, "complete_tx")) {
        bool expect = strcmp(d->ins->modifiers[0], "expect_tx") == 0;
        take_order(d);
        decode_count(d, 2, 2);
        emit(d, exec_mbarrier, expect ? MBARRIER_EXPECT : MBARRIER_COMPLETE, SLOT_NONE,
             decode_operand(d, 0), decode_in(d, 1, PTX_U32));
    } else if (decode_take(d, "pending_count")) {
        decode_take(d, "b64");
        decode_count(d, 2, 2);
        uint32_t state = decode_in(d, 1, PTX_B64);
        decode_special(d, exec_mbarrier_pending, 4, decode_out(d, 0, PTX_U32), state, state, state);
    } else {
        decode_fail(d, "mbarrier without a known operation");
    }
}

/* cp.async.mbarrier.arrive: copies are done by then. Without .noinc the arrival is one that is
 * expected besides, so nothing changes. */
static void decode_copy_arrive(struct decoder *d)
{
    decode_take(d, "mbarrier");
    decode_take(d, "arrive");
    bool counted = decode_take(d, "noinc");
    decode_count(d, 1, 1);
    uint32_t one = decode_constant(d, counted ? 1 : 0, 4);
    emit(d, exec_mbarrier, counted ? MBARRIER_ARRIVE : MBARRIER_EXPECT, SLOT_NONE,
         decode_operand(d, 0), one);
}

static uint32_t whole_address(struct decoder *d, const struct ptx_operand *operand,
                              enum ptx_space space)
{
    uint64_t addend;
    uint32_t at = decode_address(d, operand, space, &addend);
    uint32_t whole = decode_temporary(d, 8), add = decode_constant(d, addend, 8);
    decode_value(d, VALUE_add_64, 8, whole, at, add, add);
    return whole;
}

/* cp.async.bulk of bytes in a row. Tensors (.tensor) and reductions are not known. */
static void decode_copy_bulk(struct decoder *d)
{
    decode_take(d, "bulk");
    if (decode_take(d, "commit_group") || decode_take(d, "wait_group")) {
        decode_take(d, "read");
        decode_action(d, exec_nop, 0, 0, 0, 0);
        return;
    }
    if (decode_take(d, "prefetch")) {
        decode_take(d, "L2");
        decode_take(d, "global");
        decode_take(d, "L2::cache_hint");
        decode_count(d, 2, 3);
        decode_action(d, exec_nop, 0, 0, 0, 0);
        return;
    }
    bool reports = decode_take(d, "mbarrier::complete_tx::bytes");
    bool grouped = decode_take(d, "bulk_group");
    bool hint = decode_take(d, "L2::cache_hint"), global = decode_take(d, "global");
    if (!global || take_shared(d) != PTX_SPACE_SHARED || reports == grouped)
        decode_fail(d, "unknown instruction 'cp.async.bulk' for these spaces");
    uint32_t most = (reports ? 4 : 3) + hint;
    decode_count(d, most, most);
    uint32_t to =
        whole_address(d, decode_operand(d, 0), reports ? PTX_SPACE_SHARED : PTX_SPACE_GLOBAL);
    uint32_t from =
        whole_address(d, decode_operand(d, 1), reports ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED);
    uint32_t size = decode_in(d, 2, PTX_U32);
    uint32_t barrier =
        reports ? whole_address(d, decode_operand(d, 3), PTX_SPACE_SHARED) : SLOT_NONE;
    struct op *op = decode_action(d, exec_copy_bulk, SLOT_NONE, to, from, size);
    op->d = barrier;
    op->aux = PTX_SPACE_SHARED << 8;
}

bool decode_barriers(struct decoder *d)
{
    bool copy = decode_opcode_is(d, "cp") && d->ins->modifier_count > 1 &&
                strcmp(d->ins->modifiers[0], "async") == 0;
    if (decode_opcode_is(d, "mbarrier") && d->ins->modifier_count) {
        decode_mbarrier(d);
    } else if (copy && strcmp(d->ins->modifiers[1], "mbarrier") == 0) {
        decode_take(d, "async");
        decode_copy_arrive(d);
    } else if (copy && strcmp(d->ins->modifiers[1], "bulk") == 0 &&
               (d->ins->modifier_count < 3 || strcmp(d->ins->modifiers[2], "tensor") != 0)) {
        decode_take(d, "async");
        decode_copy_bulk(d);
    } else {
        return false;
    }
    return true;
}
