/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* ptx_merge_private: what the files of ptx_merge share. */
#ifndef GPUSHARE_COMMON_CUDA_LINK_PTX_MERGE_PRIVATE_H
#define GPUSHARE_COMMON_CUDA_LINK_PTX_MERGE_PRIVATE_H

#include "common/cuda/cuda_driver.h"
#include "common/cuda/link/ptx_merge.h"
#include "common/cuda/ptx.h"
#include "common/hash.h"

struct merge_symbol;

/* A module's function or variable, as the input sees it. */
struct merge_name {
    struct merge_symbol *symbol; /* NULL: a variable of a function */
    bool own;                    /* the input's alone */
    bool announced;              /* functions: a prototype stands at the top */
    bool forward;                /* variables: an .extern declaration stands above */
    enum { MERGE_NOT_YET, MERGE_BEGUN, MERGE_WRITTEN } state; /* variables */
};

struct merge_input {
    char *name, *text;
    uint32_t length;
    uint32_t number; /* 1.. */
    struct ptx_module *tree;
    struct merge_name *functions; /* by id */
    struct merge_name *variables; /* by id */
};

/* A function or a variable, in the input where it stands. input == NULL: none. */
struct merge_place {
    const struct merge_input *input;
    const struct ptx_function *function;
    const struct ptx_variable *variable;
};

enum merge_strength { MERGE_NONE, MERGE_COMMON, MERGE_WEAK, MERGE_STRONG };

/* The candidate's words about a name. */
struct merge_claim {
    const struct ptx_function *definition, *declaration;
    const struct ptx_variable *variable;
    bool visible, weak, used;
};

/* A name of a module's scope, in any input. */
struct merge_symbol {
    const char *name; /* in the tree of the first input that has it, or copied */
    size_t length;
    uint64_t hash;
    enum merge_strength strength;    /* of the definition */
    struct merge_place definition;   /* that all inputs use */
    struct merge_place reference;    /* the first that uses it and has no definition */
    const struct merge_input *owner; /* the first input that has the name for itself */
    uint32_t inputs;                 /* that define or use it in common with others */
    uint32_t stamp;                  /* of the input that `claim` is about */
    struct merge_claim claim;
};

struct ptx_merge {
    struct hash_key key;
    struct merge_symbol **table; /* open addressing; a power of two */
    uint32_t capacity;
    struct merge_symbol **symbols; /* in order of appearance */
    uint32_t symbol_count, symbol_room;
    struct merge_input **inputs;
    uint32_t count, room;
    struct merge_input *candidate;
    char *left_out; /* name of an input; NULL: none */
    uint32_t stamp;
    char mark[24]; /* stands in names that were changed, and in no text */
};

/* ---- ptx_merge_symbol.c ---- */
/* Finds or makes the symbol of a name, with an empty claim if the candidate has not named it yet.
 * NULL without memory. */
struct merge_symbol *merge_intern(struct ptx_merge *merge, const char *name);
/* Whether a driver has the function, or gives the variable its place: nobody has to define it. */
bool merge_is_provided(const struct merge_place *place);
/* Whether the name is changed, because another input has it too. */
bool merge_is_changed(const struct merge_input *input, const struct merge_name *name);
/* The place that the input means by one of its variables: input NULL if none defines it. */
struct merge_place merge_find_variable(const struct merge_input *input,
                                       const struct ptx_variable *variable);
uint32_t merge_refuse_memory(struct error *why);

/* ---- ptx_merge_fit.c ---- */
/* Compares what two inputs say of one name. Returns 0, or a number with the sentence in *why. */
uint32_t merge_fit_places(const char *name, const struct merge_place *known,
                          const struct merge_place *other, struct error *why);
/* Chooses the line of .target that all inputs can have, without its first word. Malloc'ed. */
uint32_t merge_fit_targets(const struct ptx_merge *merge, char **target, struct error *why);

/* ---- ptx_merge_text.c ---- */
uint32_t merge_write(struct ptx_merge *merge, char **text, size_t *length, struct error *why);

/* ---- ptx_merge_check.c ---- */
/* Whether every name of the merged text means what it meant in its input. */
uint32_t merge_check(const struct ptx_merge *merge, const char *text, size_t length,
                     struct error *why);

#endif
