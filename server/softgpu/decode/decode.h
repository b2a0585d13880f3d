/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * decode: turns the reader's instructions into ops. One PTX instruction gives one
 * op or a few; all carry its guard, and the last counts as the instruction.
 *
 * decode_function.c goes through a function and asks the other files. All of them stand on
 * decode.c: errors, modifiers, slots and the ops that come out. decode_operand.c turns
 * operands into slots, and decode_reuse.c finds the registers that may share one. The
 * instructions are known to decode_control.c (branches, calls), decode_arith.c,
 * decode_logic.c, decode_convert.c, decode_memory.c (loads, stores, atomics) and
 * decode_warp.c (what lanes or warps do together). After the first error nothing more is
 * emitted that anyone looks at.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_DECODE_DECODE_H
#define GPUSHARE_SERVER_SOFTGPU_DECODE_DECODE_H

#include "server/softgpu/exec/exec.h"
#include "server/softgpu/exec/module_private.h"

struct slot_entry {
    uint64_t key;         /* variable id + 1, index; or of a constant */
    uint32_t slot;        /* SLOT_NONE: none yet */
    uint32_t block, last; /* of its first use, from 1; instruction of its last */
    bool local;           /* written first, and used in that block alone */
    bool dying;           /* gives its row back after this instruction */
};

/* Rows that registers of one block have given back, by class of width. */
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
    uint64_t taken; /* modifiers that were understood */
    struct slot_entry *slots;
    uint32_t slot_count, slot_capacity;
    struct free_rows free[4], dying[4];
    uint32_t index;                          /* of ins */
    uint32_t predicate_line, predicate_used; /* 16 predicates share a row of 64 bytes */
    uint32_t carry;                          /* CC.CF, SLOT_NONE until used */
    uint32_t temporaries[4][8], temporary_used[4];
    uint32_t *local_offsets; /* by position in places; of .local and .param variables */
    struct op nowhere;       /* what is emitted after an error */
    uint32_t *starts;        /* op index of each instruction, and of the end */
};

void decode_fail(struct decoder *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The failure that a kernel's author can do nothing about. */
void decode_fail_memory(struct decoder *d);

/* ---- modifiers ---- */
/* True if the instruction has the modifier; it counts as understood. */
bool decode_take(struct decoder *d, const char *modifier);
/* The next modifier that is a type (each is taken once, from the left), or NONE. */
enum ptx_type decode_type(struct decoder *d);
/* As above, but it is an error to have none. */
enum ptx_type decode_need_type(struct decoder *d);
/* FE_* of rn, rz, rm, rp; -1 where there is none. */
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
uint32_t type_width(enum ptx_type type);

/* The index-th operand, or NULL and an error. */
const struct ptx_operand *decode_operand(struct decoder *d, uint32_t index);
/* Complains unless there are from least to most operands. */
void decode_count(struct decoder *d, uint32_t least, uint32_t most);
uint32_t decode_constant(struct decoder *d, uint64_t value, uint32_t width);
uint32_t decode_temporary(struct decoder *d, uint32_t width);
/* The row of a register, of its own from the first use on. */
uint32_t decode_register(struct decoder *d, const struct ptx_variable *variable, uint32_t index);
/* The known facts of a register; NULL when memory is short. Valid until the next entry. */
struct slot_entry *decode_entry(struct decoder *d, const struct ptx_variable *variable,
                                uint32_t index);
/* decode_reuse.c: fills in block, last and local of all registers. */
bool decode_find_lifetimes(struct decoder *d);
/* A row of the frame, so many bytes long; its offset. */
uint32_t decode_row(struct decoder *d, uint32_t bytes);
/* The rows whose last reader was the instruction that is now complete may be used again. */
void decode_free_dying(struct decoder *d);
/* A constant that is nobody else's, to be written later. */
uint32_t decode_fresh_constant(struct decoder *d, uint64_t value, uint32_t width);
/* Room for one more item; NULL, with an error, when memory is short. */
void *decode_grow(struct decoder *d, void *items, uint32_t count, uint32_t *capacity, size_t bytes);
/* A source of exactly this type's width. */
uint32_t decode_source(struct decoder *d, const struct ptx_operand *op, enum ptx_type type);
uint32_t decode_in(struct decoder *d, uint32_t index, enum ptx_type type);
/* A predicate, negated if the operand says so. */
uint32_t decode_predicate(struct decoder *d, const struct ptx_operand *op);
/* A destination register; SINK gives a temporary. *width: of the register. */
uint32_t decode_target(struct decoder *d, const struct ptx_operand *op, uint32_t *width);
uint32_t decode_out(struct decoder *d, uint32_t index, enum ptx_type type);
/* Any register or immediate, cut or, where narrower, refused: width as `type`'s. */
uint32_t decode_loose(struct decoder *d, const struct ptx_operand *op, enum ptx_type type);
/* Stores a value of `type` into a register that may be wider, extended by the type. */
void decode_widen(struct decoder *d, const struct ptx_operand *to, uint32_t from,
                  enum ptx_type type);
/* A slot of 64-bit addresses for [operand]; the caller adds *addend; the space as written. */
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
/* A jump to an instruction, by its index in the function until decode_function() resolves it. */
struct op *decode_branch(struct decoder *d, uint32_t instruction);
/* dst = src for one lane width. */
void decode_move(struct decoder *d, uint32_t width, uint32_t dst, uint32_t src);

/* ---- a function ---- */

/*
 * Decodes one function; places of shared variables must be known. Returns NULL
 * with error filled in.
 */
struct code *decode_function(const struct module *module, const struct ptx_function *function,
                             struct error *why);

/* ---- instructions: true if the opcode is known to that file ---- */
bool decode_control(struct decoder *d);
bool decode_arith(struct decoder *d);
bool decode_logic(struct decoder *d);
bool decode_convert(struct decoder *d);
bool decode_memory(struct decoder *d);
bool decode_warp(struct decoder *d);

#endif
