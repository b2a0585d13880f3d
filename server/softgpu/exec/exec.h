/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * exec: decoded instructions, and the functions that execute them. Private to the instruction side:
 * decode, warp, block and the exec_* files.
 *
 * A register is a row of 32 lanes of uint16_t, uint32_t or uint64_t; a predicate is one uint32_t
 * with a bit for each lane. So an instruction is a loop over lanes, which the compiler turns into
 * vector code. A slot says where a row lies: at an offset into the registers of the current frame,
 * or, with SLOT_CONSTANT, into the constants of its code.
 */
#ifndef GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_H
#define GPUSHARE_SERVER_SOFTGPU_EXEC_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/cuda/ptx.h"
#include "server/softgpu/exec/block.h"
#include "server/softgpu/fault.h"
#include "server/softgpu/memory/memory.h"

#define LANES         32
#define ALL_LANES     0xffffffffu
#define SLOT_CONSTANT 0x80000000u
#define SLOT_NONE     0xffffffffu

/*
 * Generic addresses that are not global ones. No mapping of a process can lie here, because these
 * addresses are not canonical on any x86-64: bits 63 to 57 are not all equal. The low 56 bits are
 * the address within the space.
 */
#define WINDOW_MASK     UINT64_C(0xff00000000000000)
#define WINDOW_SHARED   UINT64_C(0x5100000000000000)
#define WINDOW_LOCAL    UINT64_C(0x5200000000000000)
#define WINDOW_PARAM    UINT64_C(0x5300000000000000)
#define WINDOW_FUNCTION UINT64_C(0x5400000000000000)

struct warp;
struct op;

/* Writes a result for each lane into out, which may be the row of a source. It never faults. */
typedef void exec_value(const struct warp *warp, const struct op *op, void *out);

enum exec_result {
    EXEC_NEXT, /* go on with the next instruction */
    /* warp->pc, mask or frame has changed: choose a split again */
    EXEC_MOVED,
    EXEC_BLOCKED, /* this split can't go on now; it is at warp->pc */
    EXEC_FAULT,   /* warp->block->fault is filled in */
};

/* Carries out any other instruction. mask: the lanes that take part, never 0. */
typedef enum exec_result exec_action(struct warp *warp, const struct op *op, uint32_t mask);

/* The host's place of an address: at `host` + (address - `start`) + lane * `stride`, if it is
 * from `start` to `start` + `span`. */
struct lane_area {
    uint64_t start, span, host, stride;
};

/* How the addresses of an access lie. LANES_SAME: all lanes have one. LANES_ROW: all 32 lanes take
 * part, and each lane's bytes are behind the last one's. */
enum lanes_form { LANES_SAME, LANES_ROW, LANES_ANY, LANES_FAULT };

/* Loops over all lanes, for one instruction set. */
struct exec_lanes {
    /* Copies the lanes of mask from result into row. width: as op.width. */
    void (*blend)(void *row, const void *result, uint32_t width, uint32_t mask);
    /* Copies one value into the lanes of mask. width: 2, 4 or 8 bytes. */
    void (*fill)(void *row, const void *value, uint32_t width, uint32_t mask);
    /* bytes: of each lane, a power of two up to 32. Never LANES_FAULT. */
    enum lanes_form (*form)(const uint64_t *addresses, uint32_t mask, uint32_t bytes);
    /* Puts the host's address of `addresses` + `offset` for each lane, without its stride. The
     * lanes that are not in mask get the address of the first one in it. Returns false if one is
     * outside the area, or no multiple of `bytes`. */
    bool (*locate)(const uint64_t *addresses, uint64_t offset, uint32_t mask, uint32_t bytes,
                   const struct lane_area *area, uint64_t *host);
};

enum op_kind { OP_VALUE, OP_ACTION, OP_BRANCH };

struct op {
    union {
        exec_value *value;
        exec_action *action;
        uint64_t target; /* OP_BRANCH */
    };
    uint8_t kind;  /* enum op_kind */
    uint8_t width; /* OP_VALUE: bytes per lane of the result, 0 for a predicate */
    bool negated;  /* the guard is @!p */
    bool part;     /* one of several ops of an instruction, and not the last: not counted */
    uint32_t guard;
    uint32_t dst, a, b, c, d, e; /* slots */
    uint32_t aux;                /* depends on the instruction: rounding, mode, table, ... */
    uint32_t line;
    uint64_t imm;
};

/* ---- code ---- */

struct code_param {
    enum ptx_space space; /* .param: in local memory of the frame, at offset; .reg: slot */
    uint32_t offset, bytes, slot;
    uint8_t width;
};

struct code_call {
    const struct ptx_function *callee; /* NULL: indirect, address in op->a */
    struct code_param *args, *results;
    uint32_t arg_count, result_count;
};

/* A constant that is an address, which is known when the module has its place. */
struct code_relocation {
    uint32_t slot;
    const struct ptx_variable *variable;
    uint64_t addend;
};

struct code {
    const struct ptx_function *ptx;
    struct op *ops;
    uint32_t op_count, op_capacity;
    uint32_t frame_bytes; /* bytes of a warp's registers */
    uint32_t local_bytes; /* of a thread: .local variables and .param space */
    uint8_t *constants;
    uint32_t constant_bytes, constant_capacity;
    struct code_relocation *relocations;
    uint32_t relocation_count, relocation_capacity;
    struct code_param *params, *results;
    struct code_call *calls;
    uint32_t call_count, call_capacity;
    uint32_t *tables; /* brx.idx: targets, as op indices */
    uint32_t table_count, table_capacity;
    uint32_t register_words; /* an estimate of the 32-bit registers of a thread */
};

/* ---- execution ---- */

struct frame {
    struct frame *caller;
    const struct code *code;
    uint8_t *regs;
    uint32_t live; /* lanes that have not returned */
    uint32_t depth, local_base;
    uint32_t allocated; /* bytes of local memory behind those of the code, by alloca */
    uint32_t return_pc;
    const struct code_call *call;
};

enum split_state { SPLIT_READY, SPLIT_ASLEEP, SPLIT_AT_BARRIER, SPLIT_AT_SYNC };

/* Lanes of a warp that run together. */
struct split {
    uint32_t mask, pc;
    struct frame *frame;
    enum split_state state;
    uint32_t wait;    /* AT_BARRIER: its number; AT_SYNC: the lanes awaited */
    uint64_t wake_ns; /* ASLEEP */
    uint64_t ran;     /* stamp of its last turn */
};

/* All that a short warp touches lies side by side: of a block of 256 threads, a third of the lines
 * of the cache. */
struct warp {
    uint8_t *base[2]; /* of slots: registers, constants */
    struct block *block;
    struct frame *frame;
    uint32_t pc, mask;
    uint32_t index, live;
    uint32_t present; /* the lanes that exist: the last warp of a block may have fewer than 32 */
    uint32_t split_count, current;
    bool polls;     /* the split that ran last may be waiting for another lane */
    uint64_t turns; /* stamp */
    uint8_t *local; /* lane after lane */
    uint32_t local_stride;
    uint32_t register_bytes; /* of all frames */
    const struct exec_lanes *lanes;
    uint64_t generation;
    uint32_t next_range;
    struct frame entry; /* the kernel's own; its registers are in the block's memory */
    struct split splits[LANES];
    struct memory_range ranges[4];
    uint32_t tid[3][LANES];
};

struct barrier {
    uint32_t arrived, expected; /* threads; expected 0: all that live */
    uint32_t count, ones;       /* of bar.red: threads seen, and those whose predicate held */
};

/* One allocation with its warps and the registers of their entry frames: a thread that runs blocks
 * keeps it for its next one. */
struct block {
    const struct block_launch *launch;
    const struct module *module;
    uint32_t index[3], sm;
    uint32_t threads, live_threads, warp_count;
    struct warp *warps;
    size_t bytes; /* of the allocation */
    const struct exec_lanes *lanes;
    uint8_t *shared; /* NULL until block_shared_ready() */
    uint32_t shared_bytes;
    uint32_t awaited; /* a bit for each barrier at which a thread has arrived */
    uint64_t clock_ps, instructions, cycles;
    uint32_t rate;
    uint32_t pace_permille; /* of nanosleep */
    uint32_t next_warp;
    enum block_state state;
    /* Not cleared: valid where the bit of awaited is set, and when state is BLOCK_FAULTED. */
    struct barrier barriers[16];
    struct fault fault;
};

static inline void *slot_at(const struct warp *w, uint32_t slot)
{
    return w->base[slot >> 31] + (slot & ~SLOT_CONSTANT);
}

/*
 * Allocates the block's shared memory when it is first touched. Many kernels reserve shared memory
 * only to have a multiprocessor to themselves, and clearing 200 KiB costs more than all else that
 * such a block does. Returns false without host memory.
 */
bool block_shared_ready(struct block *block);

/* exec_fault.c: fills in block->fault. lane: the thread that caused it. Returns EXEC_FAULT. */
enum exec_result exec_fault(struct warp *warp, const struct op *op, enum fault_kind kind,
                            uint32_t lane, uint64_t address, uint32_t size, const char *text);

/* The warp's memory need not be zeroed, but its index and the numbers of its lanes are set. */
void warp_init(struct warp *warp, struct block *block, uint32_t present);
/* size: the block's. tid: of the warp's first thread; afterwards of the first one behind the
 * warp's. */
void warp_number_lanes(struct warp *warp, const uint32_t size[3], uint32_t tid[3]);
/* regs: code->frame_bytes zeroed bytes, aligned to 64, that outlive the warp. Returns false without
 * memory, or if the kernel's variables don't fit; the warp can be destroyed all the same. */
bool warp_start(struct warp *warp, const struct code *code, uint8_t *regs);
void warp_destroy(struct warp *warp);
/* Runs the warp until it is done, blocked or faulted, or until *steps is used up. Counts *steps
 * down. */
enum exec_result warp_run(struct warp *warp, uint64_t *steps);
bool warp_can_run(const struct warp *warp);
/* Makes a frame for a call by the lanes of mask. NULL without memory, or if the stack is used
 * up. */
struct frame *warp_push_frame(struct warp *warp, const struct code *code, struct frame *caller,
                              uint32_t mask);
void warp_free_frame(struct warp *warp, struct frame *frame);
void warp_remove_split(struct warp *warp, uint32_t index);
/* Takes local memory for the current frame, at the same offset for all lanes, until it returns.
 * Returns false if a thread may not have so much. */
bool warp_allocate_local(struct warp *warp, uint64_t bytes, uint64_t alignment, uint64_t *offset);

/* Ends the threads of these lanes of the current split. */
void warp_exit_lanes(struct warp *warp, uint32_t mask);

/* Lets the splits that wait at a complete barrier of the block go on. */
void block_check_barriers(struct block *block);
static inline uint64_t block_clock_ns(const struct block *block)
{
    return block->clock_ps / 1000;
}

/* code_of: the code of a declared function. code_at: the code of the function at this address.
 * NULL if it has no body. */
const struct code *code_of(const struct module *module, const struct ptx_function *function);
const struct code *code_at(const struct module *module, uint64_t function_address);
uint64_t code_address(const struct ptx_function *function);

/* Actions, by file. */
exec_action exec_exit, exec_ret, exec_call, exec_trap, exec_nop, exec_brx, exec_alloca;
exec_action exec_barrier, exec_barrier_arrive, exec_warp_sync, exec_sleep;
exec_action exec_shuffle, exec_vote, exec_match, exec_redux, exec_elect, exec_poll;
exec_action exec_load, exec_store, exec_atomic, exec_copy_async;
exec_action exec_mbarrier, exec_mbarrier_test, exec_copy_bulk;
exec_value exec_active_mask, exec_special32, exec_special64, exec_param;
exec_value exec_local_address, exec_space_test, exec_insert32, exec_insert64;
exec_value exec_mbarrier_pending;
/* op->imm is a struct video of exec_video.h. */
exec_value exec_video;

/* In op->aux of exec_mbarrier and exec_mbarrier_test, below the space. */
enum mbarrier_act {
    MBARRIER_INIT,
    MBARRIER_INVAL,
    MBARRIER_EXPECT,
    MBARRIER_COMPLETE,
    MBARRIER_ARRIVE,
    MBARRIER_ARRIVE_DROP,
    MBARRIER_ARRIVE_EXPECT,
    MBARRIER_DROP_EXPECT,
    MBARRIER_TEST_STATE,
    MBARRIER_TEST_PARITY,
};

/* exec_system.c: the action that a call of this function is, which the system has and no module;
 * NULL: there is no such function. op->aux is the number of the call. */
exec_action *exec_system_find(const char *name);
/* Whether it is one that allocates memory of the heap or frees it. */
bool exec_system_allocates(const char *name);

/* exec_load and exec_store: op->aux is space | bytes << 8 | elements << 16 | how << 24, where how
 * is the width of the registers, and whether narrower values are extended by their sign. */
enum { ACCESS_SIGNED = 0x80 };

enum atomic_op {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC,
};

/* Lanes are independent, even if the result's row is an operand's. */
#ifdef __clang__
#define EACH_LANE(i)                                                                               \
    _Pragma("clang loop vectorize(assume_safety) interleave(enable)") for (int i = 0; i < LANES;   \
                                                                           i++)
#else
#define EACH_LANE(i) _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)
#endif

/* exec_values.c: one table per instruction set. */
#define V1(name, D, A, x)       VALUE_##name,
#define V2(name, D, A, B, x)    VALUE_##name,
#define V3(name, D, A, B, C, x) VALUE_##name,
#define P1(name, A, x)          VALUE_##name,
#define P2(name, A, B, x)       VALUE_##name,
#define P3(name, A, B, x)       VALUE_##name,
#define Q2(name, x)             VALUE_##name,
#define S2(name, D, A, B, x)    VALUE_##name,
enum value_id {
    VALUE_NONE,
#include "server/softgpu/exec/exec_values.inc"
    VALUE_COUNT
};
#undef V1
#undef V2
#undef V3
#undef P1
#undef P2
#undef P3
#undef Q2
#undef S2
/* v1 runs on every processor of this architecture; v3 and v4 are levels of x86-64. */
extern exec_value *const exec_values_v1[VALUE_COUNT],
    *const exec_values_v3[VALUE_COUNT], *const exec_values_v4[VALUE_COUNT]; /* x86-64 alone */
/* exec_lanes.c: the same. */
extern const struct exec_lanes exec_lanes_v1, exec_lanes_v3, exec_lanes_v4;

/* The best variant that this processor can run; exec_table_MACHINE.c chooses. */
exec_value *exec_value_of(enum value_id id);
const struct exec_lanes *exec_lanes_of(void);

/* exec_round.c: arithmetic with a rounding mode; op->aux is an FE_* mode. */
exec_value exec_round_add_f32, exec_round_sub_f32, exec_round_mul_f32, exec_round_div_f32,
    exec_round_fma_f32;
exec_value exec_round_sqrt_f32, exec_round_rcp_f32;
exec_value exec_round_add_f64, exec_round_sub_f64, exec_round_mul_f64, exec_round_div_f64,
    exec_round_fma_f64;
exec_value exec_round_sqrt_f64, exec_round_rcp_f64;
exec_value exec_round_f64_f32, exec_round_s32_f32, exec_round_u32_f32, exec_round_s64_f32,
    exec_round_u64_f32;
exec_value exec_round_s64_f64, exec_round_u64_f64, exec_round_f64_f16, exec_round_f64_bf16;

#endif
