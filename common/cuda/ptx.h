/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx: reads PTX text into a tree that records the place of everything in the text. So one reader
 * serves three users: the software GPU, which executes the code; the worker, which rewrites the
 * text; and callers that only need layouts of parameters.
 *
 * The reader knows PTX's grammar but not its instructions: opcodes and modifiers are words here. It
 * resolves names: an operand points to the register, variable, function or label that it means.
 *
 * Everything in a tree belongs to its module and lives until ptx_destroy(). `start` and `end` are
 * byte offsets into the text given to ptx_read(), of the range [start, end). A module never changes
 * after ptx_read(), so any number of threads may look at it.
 */
#ifndef GPUSHARE_COMMON_CUDA_PTX_H
#define GPUSHARE_COMMON_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum ptx_type {
    PTX_NONE,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_BF16,
    PTX_BF16X2,
    PTX_U16X2,
    PTX_S16X2,
    PTX_F32,
    PTX_F64,
    PTX_PRED,
    PTX_TEXREF,
    PTX_SAMPLERREF,
    PTX_SURFREF,
};

enum ptx_space {
    PTX_SPACE_NONE,
    PTX_SPACE_REG,
    PTX_SPACE_GLOBAL,
    PTX_SPACE_CONST,
    PTX_SPACE_SHARED,
    PTX_SPACE_LOCAL,
    PTX_SPACE_PARAM,
};

enum ptx_linkage {
    PTX_LINK_NONE,
    PTX_LINK_VISIBLE,
    PTX_LINK_EXTERN,
    PTX_LINK_WEAK,
    PTX_LINK_COMMON,
};

struct ptx_function;
struct ptx_variable;

/* One element of an initialiser. */
struct ptx_initialiser {
    uint64_t offset; /* bytes from the variable's start */
    uint32_t bytes;
    uint64_t value; /* the number, or an address's addend */
    /* One of these two is set for an address of a variable or a function. */
    const struct ptx_variable *variable;
    const struct ptx_function *function;
    bool generic;  /* generic(variable) */
    uint64_t mask; /* for 0xff00(variable): the mask of that byte of the address; else 0 */
    uint32_t symbol_start, symbol_end; /* the name alone */
};

struct ptx_variable {
    const char *name;
    enum ptx_space space;
    enum ptx_type type;
    enum ptx_linkage linkage;
    uint32_t vector;   /* 1, 2 or 4 */
    uint32_t align;    /* bytes, a power of two */
    uint64_t elements; /* 1 for a scalar; 0 for name[] without initialiser */
    uint64_t bytes;
    uint32_t family;  /* .reg name<N>: N, else 0 */
    bool managed;     /* .attribute(.managed) */
    bool redeclared;  /* stands in an extern declaration as well */
    bool in_function; /* declared in a body or a parameter list */
    bool return_value;
    uint32_t index;  /* position in the parameter list */
    uint64_t offset; /* bytes before it there, for a parameter */
    uint32_t line;
    uint32_t start, end; /* from linkage to semicolon; a parameter's without the semicolon */
    uint32_t name_start, name_end;
    uint32_t declarators; /* variables declared by the same statement */
    const struct ptx_initialiser *initialisers;
    uint32_t initialiser_count;
    const struct ptx_function *owner; /* the function, if in_function */
    uint32_t id;                      /* 0.. in the module, in order of appearance */
};

enum ptx_operand_kind {
    PTX_OPERAND_REGISTER, /* variable, index (of a family) */
    PTX_OPERAND_VARIABLE, /* variable, addend */
    PTX_OPERAND_FUNCTION, /* function */
    PTX_OPERAND_LABEL,    /* label: index into the function's labels */
    PTX_OPERAND_SPECIAL,  /* name: %tid.x, WARP_SZ */
    PTX_OPERAND_INTEGER,  /* value (two's complement where negative) */
    PTX_OPERAND_FLOAT32,  /* value: bits */
    PTX_OPERAND_FLOAT64,  /* value: bits */
    PTX_OPERAND_ADDRESS,  /* [items[0] + addend], further items where there are commas */
    PTX_OPERAND_VECTOR,   /* {items} */
    PTX_OPERAND_LIST,     /* (items) */
    PTX_OPERAND_PAIR,     /* items[0] | items[1] */
    PTX_OPERAND_SINK,     /* _ */
};

/* How name[n] is written, one element of an array: start to end has the brackets, addend the bytes.
 */
enum ptx_element {
    PTX_ELEMENT_NONE,
    PTX_ELEMENT_VALUE,   /* mov.u64 %d, name[n]: the element's address is the value */
    PTX_ELEMENT_ADDRESS, /* ld.shared.u32 %r, name[n]: stands for [name+bytes] */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    enum ptx_element element; /* of a PTX_OPERAND_VARIABLE */
    bool negated;             /* !p */
    uint32_t start, end;
    uint32_t symbol_start, symbol_end;
    const char *name; /* the name of a symbol, without selector */
    char selector;    /* of name.x: x y z w, '?' for more letters, else 0 */
    const char *part; /* of name.b3210: "b3210"; NULL for one letter or none */
    const struct ptx_variable *variable;
    const struct ptx_function *function;
    uint32_t index;
    uint32_t label;
    int64_t addend;
    uint64_t value;
    struct ptx_operand *items;
    uint32_t count;
};

struct ptx_instruction {
    uint32_t line;
    uint32_t start, end;             /* from the guard to the semicolon */
    const struct ptx_operand *guard; /* a register, perhaps negated, or NULL */
    const char *opcode;              /* "ld" */
    const char *const *modifiers;    /* "global", "v4", "f32" */
    uint32_t modifier_count;
    struct ptx_operand *operands;
    uint32_t operand_count;
};

enum ptx_label_kind { PTX_LABEL_CODE, PTX_LABEL_TARGETS, PTX_LABEL_PROTOTYPE };

struct ptx_label {
    const char *name;
    enum ptx_label_kind kind;
    uint32_t line;
    uint32_t instruction; /* CODE: index of the instruction that follows, perhaps the count */
    uint32_t *targets;    /* TARGETS: labels; .calltargets is read and ignored */
    uint32_t target_count;
    const struct ptx_function *prototype; /* PROTOTYPE: nameless, with returns and params */
};

struct ptx_function {
    const char *name;
    bool entry, defined, noreturn;
    enum ptx_linkage linkage;
    const struct ptx_variable **params, **returns;
    uint32_t param_count, return_count;
    uint64_t param_end;                    /* bytes of all parameters as they are laid out */
    const struct ptx_variable **variables; /* .local, .shared, .param, .global of the body */
    uint32_t variable_count;
    struct ptx_instruction *instructions;
    uint32_t instruction_count;
    struct ptx_label *labels;
    uint32_t label_count;
    uint32_t max_threads[3]; /* .maxntid or .reqntid, 0 where not given */
    bool required_threads;   /* .reqntid */
    uint32_t line;
    uint32_t start, end;           /* linkage to closing brace or semicolon */
    uint32_t body_start, body_end; /* between the braces */
    /* This function if it has a body, else the one that defines it, or NULL. */
    const struct ptx_function *definition;
    uint32_t id; /* 0.. in the module */
};

struct ptx_module {
    uint32_t version; /* 90 for 9.0 */
    uint32_t target;  /* 90 for sm_90, sm_90a */
    const char *target_name;
    const struct ptx_variable **variables; /* of module scope, in order */
    uint32_t variable_count;
    uint32_t variable_ids; /* all variables' ids are below this */
    const struct ptx_function **functions;
    uint32_t function_count;
    struct ptx_arena *arena;
    size_t memory; /* bytes of memory that the tree takes */
};

/* Bytes that a name may have; more make the text one that is not understood. PTX sets no bound, and
 * asks compilers for 1024; the longest names of nvcc, of templates, have some ten thousand. */
#define PTX_NAME_BYTES 65536u

/* Bytes that a text may have. */
#define PTX_TEXT_BYTES (1u << 30)

/*
 * text: at most PTX_TEXT_BYTES, copied where kept. 0, or the number that *why has then
 * (common/error.h): INVALID_PTX for a text that is not understood, its line first in the sentence;
 * SERVER_RESOURCES without memory.
 */
uint32_t ptx_read(const char *text, size_t length, struct ptx_module **module, struct error *why);

/* The bounds of one reading. */
struct ptx_limits {
    /* Of memory at any time. A hostile text can need more than a hundred bytes of tree for each of
     * its own bytes. */
    size_t bytes;
    /* Asked again and again while a text is read, after some 0.1 s of work at most: 0, or an error
     * number with a sentence in why, which then ends the reading. NULL: nothing ends it. */
    uint32_t (*ask)(void *context, struct error *why);
    void *context;
};

/* The same within limits. Returns OUT_OF_MEMORY if their bytes are not enough, or what ask returned
 * if that was not 0. */
uint32_t ptx_read_within(const char *text, size_t length, const struct ptx_limits *limits,
                         struct ptx_module **module, struct error *why);
void ptx_destroy(struct ptx_module *module);

/* Finds a variable of module scope by name. Returns the definition if there is one, else a
 * declaration, else NULL. */
const struct ptx_variable *ptx_find_variable(const struct ptx_module *module, const char *name);

/*
 * Returns the offset of a kernel's index-th parameter; for index == param_count the end of the last
 * one. Parameters have natural alignment, as the driver lays them out.
 */
uint64_t ptx_param_offset(const struct ptx_function *function, uint32_t index);

/* ptx_type_bytes: bytes of one value; 0 for PTX_NONE and PTX_PRED. ptx_type_named: the type with
 * this name, without its dot; PTX_NONE for others. ptx_type_name: the reverse. */
uint32_t ptx_type_bytes(enum ptx_type type);
enum ptx_type ptx_type_named(const char *name);
const char *ptx_type_name(enum ptx_type type);

#endif
