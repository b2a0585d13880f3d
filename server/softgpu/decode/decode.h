/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * decode: turns the PTX reader's instructions into ops. One PTX instruction gives one op or a few.
 * All of them carry its guard, and the last one counts as the instruction.
 *
 * decode_function.c goes through a function and asks the other files. All of them stand on
 * decode.c, which has errors, modifiers, slots and the ops that come out. decode_operand.c turns
 * operands into slots, and decode_reuse.c finds registers that may share a slot.
 *
 * The instructions are known to decode_control.c (branches, calls), decode_arith.c, decode_logic.c,
 * decode_convert.c, decode_memory.c (loads, stores, atomics), decode_mbarrier.c (barriers in
 * memory), decode_warp.c (operations of lanes or warps together) and decode_video.c (parts of
 * 32-bit registers). The ops that are emitted after the first error are never used. One thread for
 * each decoder.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DECODE_DECODE_H
#define GPUSHARE_SERVER_SOFTGPU_DECODE_DECODE_H

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/module_private.h"

struct slot_entry {
    uint64_t key;         /* variable id + 1, index; or of a constant */
    uint32_t slot;        /* SLOT_NONE: none yet */
    uint32_t block, last; /* block of its first use, from 1; instruction of its last use */
    bool local;           /* it is written before it is read, and used in that block only */
    bool dying;           /* its row is free after this instruction */
};

/* Free rows that registers have given back. There is one list for each width. */
struct free_rows {
    uint32_t *slots;
    uint32_t count, capacity;
};

struct decoder {
    const struct module *module;
    struct code *code;
    const struct ptx_function *function;
    const struct ptx_instruction *ins;
    struct error *why;
    bool failed;
    uint64_t taken; /* bitmap of the modifiers that were understood */
    struct slot_entry *slots;
    uint32_t slot_count, slot_capacity;
    struct free_rows free[4], dying[4];
    uint32_t index;                          /* of ins */
    uint32_t predicate_line, predicate_used; /* 16 predicates share a row of 64 bytes */
    uint32_t carry;                          /* CC.CF, SLOT_NONE until used */
    uint32_t temporaries[4][8], temporary_used[4];
    uint32_t *local_offsets; /* by position in places; of .local and .param variables */
    struct op nowhere;       /* takes the ops that are emitted after an error */
    uint32_t *starts;        /* op index of each instruction, and of the end */
};

void decode_fail(struct decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails for lack of memory, which the kernel's author can do nothing about. */
void decode_fail_memory(struct decoder *d);

/* ---- modifiers ---- */
/* Returns whether this is the opcode, without its modifiers, of the present instruction. */
bool decode_opcode_is(const struct decoder *d, const char *opcode);
/* Returns whether the present instruction has this modifier, and counts it as understood. */
bool decode_take(struct decoder *d, const char *modifier);
/* Returns the next modifier that is a type, or PTX_NONE. Each is taken once, from the left. */
enum ptx_type decode_type(struct decoder *d);
/* The same, but a missing type is an error. */
enum ptx_type decode_need_type(struct decoder *d);
/* Returns the FE_* mode of rn, rz, rm or rp; -1 if there is none. */
int decode_rounding(struct decoder *d);

/* ---- operands ---- */
static inline bool type_is_float(enum ptx_type t)
{
    return t == PTX_F32 || t == PTX_F64 || t == PTX_F16 || t == PTX_BF16;
}
static inline bool type_is_signed(enum ptx_type t)
{
    return t == PTX_S8 || t == PTX_S16 || t == PTX_S32 || t == PTX_S64;
}
/* Bytes per lane of a register that holds this type: 0 for predicates. */
uint32_t decode_type_width(enum ptx_type type);

/* Returns the index-th operand; NULL, with an error, if there is none. */
const struct ptx_operand *decode_operand(struct decoder *d, uint32_t index);
/* Fails unless the instruction has from least to most operands. */
void decode_count(struct decoder *d, uint32_t least, uint32_t most);
uint32_t decode_constant(struct decoder *d, uint64_t value, uint32_t width);
uint32_t decode_temporary(struct decoder *d, uint32_t width);
/* Returns the row of a register. The first use gives it a row. */
uint32_t decode_register(struct decoder *d, const struct ptx_variable *variable, uint32_t index);
/* Returns the entry of a register; NULL without memory. The pointer is valid until the next
 * entry is made. */
struct slot_entry *decode_entry(struct decoder *d, const struct ptx_variable *variable,
                                uint32_t index);
/* decode_reuse.c: fills in block, last and local of all registers. Returns false, with an error,
 * without memory. */
bool decode_find_lifetimes(struct decoder *d);
/* Makes a row of this many bytes in the frame. Returns its offset. */
uint32_t decode_row(struct decoder *d, uint32_t bytes);
/* Frees the rows whose last reader was the instruction that is now complete. */
void decode_free_dying(struct decoder *d);
/* Makes a constant that no other use shares, because it will be written later. */
uint32_t decode_fresh_constant(struct decoder *d, uint64_t value, uint32_t width);
/* Makes room for one more item. Returns the items; NULL, with an error, without memory. */
void *decode_grow(struct decoder *d, void *items, uint32_t count, uint32_t *capacity, size_t bytes);
/* Returns the slot of a source of exactly this type's width. */
uint32_t decode_source(struct decoder *d, const struct ptx_operand *op, enum ptx_type type);
uint32_t decode_in(struct decoder *d, uint32_t index, enum ptx_type type);
/* Returns the slot of a predicate, negated if the operand says so. */
uint32_t decode_predicate(struct decoder *d, const struct ptx_operand *op);
/* Returns the slot of a destination register; a temporary for `_`. *width: the register's width. */
uint32_t decode_target(struct decoder *d, const struct ptx_operand *op, uint32_t *width);
uint32_t decode_out(struct decoder *d, uint32_t index, enum ptx_type type);
/* Returns the slot of a register or an immediate in the width of `type`. A wider register is
 * cut; a narrower one is an error. */
uint32_t decode_loose(struct decoder *d, const struct ptx_operand *op, enum ptx_type type);
/* Stores a value of `type` into a register that may be wider. The value is extended as the type
 * demands. */
void decode_widen(struct decoder *d, const struct ptx_operand *to, uint32_t from,
                  enum ptx_type type);
/* Returns a slot of 64-bit addresses for [operand], in the space as written. The caller adds
 * *addend. */
uint32_t decode_address(struct decoder *d, const struct ptx_operand *op, enum ptx_space space,
                        uint64_t *addend);
uint32_t decode_carry(struct decoder *d);

/* ---- ops ---- */
struct op *decode_value(struct decoder *d, enum value_id id, uint32_t width, uint32_t dst,
                        uint32_t a, uint32_t b, uint32_t c);
struct op *decode_special(struct decoder *d, exec_value *value, uint32_t width, uint32_t dst,
                          uint32_t a, uint32_t b, uint32_t c);
struct op *decode_action(struct decoder *d, exec_action *action, uint32_t dst, uint32_t a,
                         uint32_t b, uint32_t c);
/* Emits a jump to an instruction, given by its index in the function. decode_function() resolves
 * it later. */
struct op *decode_branch(struct decoder *d, uint32_t instruction);
/* Emits dst = src, for lanes of this width. */
void decode_move(struct decoder *d, uint32_t width, uint32_t dst, uint32_t src);

/* ---- a function ---- */

/*
 * Decodes one function. The places of shared variables must be known. Returns NULL, with *error
 * filled in, on failure.
 */
struct code *decode_function(const struct module *module, const struct ptx_function *function,
                             struct error *why);

/* ---- instructions: each returns true if its file knows the opcode ---- */
bool decode_control(struct decoder *d);
bool decode_arith(struct decoder *d);
bool decode_logic(struct decoder *d);
bool decode_convert(struct decoder *d);
bool decode_memory(struct decoder *d);
bool decode_barriers(struct decoder *d);
bool decode_warp(struct decoder *d);
bool decode_video(struct decoder *d);

#endif
