/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * rewrite: moves a PTX module's .global variables into memory of its client.
 *
 * The declarations go, and their uses become addresses from a base. The base is no number in the
 * text but a constant of ours, which the caller writes once the module is loaded: so every client's
 * text is the same, and is compiled once. The caller also writes the variables' initial contents
 * (with addresses of others) to the new place.
 *
 * Every line stays the line it was, so that the compiler's messages fit the client's text. A
 * variable that can't be moved stays in the module, and rewrite_why_stays() says why. .const
 * variables always stay, and have twins behind those that move (constants.h).
 *
 * One thread at a time.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_REWRITE_H
#define GPUSHARE_SERVER_WORKER_IMAGE_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "protocol.h"

struct constants;
struct ptx_limits;
struct rewrite;
struct symbols;

enum { REWRITE_ALIGN = 512 }; /* alignment of the memory that the variables move to, in bytes */
enum { REWRITE_CONSTANT_BYTES = 65536 }; /* of constants that a module may have */

/*
 * Reads PTX text, which must live until rewrite_place. The limits (common/cuda/ptx.h) hold for
 * reading and rewrite_place together; their context must live until then. limits->ask must not
 * return INVALID_PTX or OUT_OF_MEMORY.
 *
 * Returns 0, or an error number, perhaps of limits->ask, with a sentence in why and *rewrite NULL.
 * Text that the reader does not understand is refused if it may declare variables, since no client
 * could be charged for them. Otherwise it is no error: nothing moves (rewrite_unread says why), and
 * the driver's compiler judges the text.
 */
uint32_t rewrite_open(struct rewrite **rewrite, const char *text, size_t length,
                      const struct ptx_limits *limits, struct error *why);
void rewrite_close(struct rewrite *rewrite); /* NULL allowed */

/* The reader's words for the part that it did not understand; NULL if it understood the text. */
const char *rewrite_unread(const struct rewrite *rewrite);

/* Bytes of client memory that the variables which move need, and the twins of the others. */
uint64_t rewrite_global_bytes(const struct rewrite *rewrite);

/* The twins; their addresses count from the base, which is 0 before rewrite_place. */
struct constants rewrite_constants(const struct rewrite *rewrite);

/* The state that the module can have on the device, and another worker can't have. */
enum proto_unsaved rewrite_unsaved(const struct rewrite *rewrite);

/* Bytes of the .global variables that stay where the driver puts them; UINT64_MAX if the sum
 * overflows; 0 for a text that was not understood. */
uint64_t rewrite_resident_bytes(const struct rewrite *rewrite);

/* *text becomes the text with the variables at base, a multiple of REWRITE_ALIGN; malloc'ed, the
 * caller's. Returns 0, or an error number with a sentence in why. Once only. */
uint32_t rewrite_place(struct rewrite *rewrite, uint64_t base, char **text, struct error *why);

/* The base; after rewrite_place. */
uint64_t rewrite_base(const struct rewrite *rewrite);

/* The name of the constant, 8 bytes, that must hold the base before a kernel runs; after
 * rewrite_place. NULL: nothing uses the base, or the text's own constants left no room for another
 * (64 KiB in all), so that the base stands in the text. Valid as long as *rewrite. */
const char *rewrite_constant(const struct rewrite *rewrite);

/*
 * The contents of the variables' memory, which is otherwise zero; after rewrite_place. *next is
 * 0 at the first call. Each call gives one piece and returns true, until it returns false. *bytes
 * is malloc'ed and the caller's; NULL: no memory.
 */
bool rewrite_initial(const struct rewrite *rewrite, uint32_t *next, uint64_t *address,
                     uint8_t **bytes, size_t *count);

/* The names and addresses that are needed as long as the module lives; after rewrite_place. The
 * caller frees them with symbols_free. NULL: no memory. */
struct symbols *rewrite_symbols(const struct rewrite *rewrite);

/* Whether the text has .const variables; false for a text that was not understood. */
bool rewrite_has_constants(const struct rewrite *rewrite);

/* Bytes of memory that the text's tree takes; 0 for a text that was not understood. */
size_t rewrite_tree_bytes(const struct rewrite *rewrite);

/* Why this .global variable stays in the module; NULL if it moves or there is none of that name.
 * The string is static. */
const char *rewrite_why_stays(const struct rewrite *rewrite, const char *name);

/* The name of the first variable that stays, for a log; NULL if all move. Valid as long as
 * *rewrite. */
const char *rewrite_first_that_stays(const struct rewrite *rewrite);

#endif
