/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * rewrite: moves a PTX module's .global variables into memory of its client.
 *
 * Their declarations go, their uses become absolute addresses, and the caller
 * writes their initial contents (addresses of one another included) there. Every
 * line stays the line it was, so that the compiler's messages fit the client's
 * text. A variable that can't be moved stays the module's, and
 * rewrite_why_stays() says why. .const variables always stay.
 *
 * One thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_CODE_REWRITE_H
#define GPUSHARE_SERVER_WORKER_CODE_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct rewrite;
struct symbols;

enum { REWRITE_ALIGN = 512 }; /* of the memory the variables move to */

/*
 * Reads PTX text, which must live until rewrite_place, within `most` bytes of memory (which hold
 * for rewrite_place too). 0 or an error number with a sentence. Text that the reader does not
 * understand is refused if it may declare variables, for nobody could charge them. Else it is no
 * error: nothing moves (rewrite_unread says why), and the driver's compiler judges it.
 */
uint32_t rewrite_open(struct rewrite **rewrite, const char *text, size_t length, size_t max,
                      struct error *why);
void rewrite_close(struct rewrite *rewrite); /* NULL allowed */

/* The reader's words for the part that it did not understand, or NULL. */
const char *rewrite_unread(const struct rewrite *rewrite);

/* Bytes that the moved variables need. */
uint64_t rewrite_global_bytes(const struct rewrite *rewrite);

/* Bytes of variables that stay where the driver puts them; 0 for a text that was not understood. */
uint64_t rewrite_resident_bytes(const struct rewrite *rewrite);

/* The text with the variables at base (a multiple of REWRITE_ALIGN); malloc'ed. */
uint32_t rewrite_place(struct rewrite *rewrite, uint64_t base, char **text, struct error *why);

/*
 * After rewrite_place: what to write into the memory, which is otherwise zero.
 * Call with *next = 0 first; false at the end. *bytes is malloc'ed; NULL: no memory.
 */
bool rewrite_initial(const struct rewrite *rewrite, uint32_t *next, uint64_t *address,
                     uint8_t **bytes, size_t *count);

/* After rewrite_place: what has to be known as long as the module lives. NULL without memory. */
struct symbols *rewrite_symbols(const struct rewrite *rewrite);

/* Bytes of memory that the text's tree takes; 0 for a text that was not understood. */
size_t rewrite_tree_bytes(const struct rewrite *rewrite);

/* Why a .global variable stays in the module; NULL if it moves or is unknown. Static. */
const char *rewrite_why_stays(const struct rewrite *rewrite, const char *name);

/* The first variable that stays, for a log; NULL if all move. */
const char *rewrite_first_that_stays(const struct rewrite *rewrite);

#endif
