/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * constants: the .const variables of a PTX text that its client can find by name, in the order of
 * the text, with the place of each one's twin in the client's memory.
 *
 * The driver keeps constants in memory of its own, which goes with its context. So each has a twin:
 * the client reads and writes the twin, and the worker copies what was written to the constant
 * itself. Kernels read the constant. Constants of a function's body have no name that a client
 * could ask for; they keep the values of the text.
 *
 * Twins lie one behind the other, as a compiler lays the constants out, so that most of a module's
 * are copied in one piece. One thread at a time.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_CONSTANTS_H
#define GPUSHARE_SERVER_WORKER_IMAGE_CONSTANTS_H

#include <stdbool.h>
#include <stdint.h>

struct ptx_module;

struct constant {
    const char *name; /* the tree's */
    uint64_t address, bytes;
};

/* A walk through the constants. */
struct constants {
    const struct ptx_module *tree; /* NULL: there are none */
    uint64_t end;                  /* where the next twin may begin */
    uint32_t next;
};

/* Begins a walk; base: where the first twin lies, a multiple of REWRITE_ALIGN. */
struct constants constants_begin(const struct ptx_module *tree, uint64_t base);

/* Returns false behind the last one. Any alignment of a variable is kept up to REWRITE_ALIGN. */
bool constants_next(struct constants *constants, struct constant *constant);

/* Bytes of memory that the twins need; 0 also if the constants are more than a module may have,
 * which no driver loads. */
uint64_t constants_bytes(const struct ptx_module *tree);

#endif
