/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * rewrite: moves a PTX module's .global variables into memory of its client.
 *
 * Their declarations go, their uses become absolute addresses, and their initial
 * contents (addresses of one another included) are written there by the caller.
 * What can't be moved stays a variable of the module: see rewrite_why_stays.
 * .const variables always stay.
 *
 * One thread.
 */
#ifndef GPUSHARE_SERVER_WORKER_REWRITE_H
#define GPUSHARE_SERVER_WORKER_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rewrite;

enum { REWRITE_ALIGN = 512 }; /* of the memory the variables move to */

/*
 * Reads PTX text, which must live as long as the rewrite. 0 or an error number with
 * a sentence. Text that the reader does not understand is no error: nothing moves,
 * and the driver's compiler judges it.
 */
uint32_t rewrite_open(struct rewrite **rewrite, const char *text, size_t length, char *why,
                      size_t why_size);
void rewrite_close(struct rewrite *rewrite); /* NULL allowed */

/* Bytes that the moved variables need. */
uint64_t rewrite_global_bytes(const struct rewrite *rewrite);

/* The text with the variables at base (a multiple of REWRITE_ALIGN); malloc'ed. */
uint32_t rewrite_place(struct rewrite *rewrite, uint64_t base, char **text, char *why,
                       size_t why_size);

/* The variables' initial contents after rewrite_place, rewrite_global_bytes of them. */
const void *rewrite_initial(const struct rewrite *rewrite);

/* A moved variable's place after rewrite_place. False if there is none of that name. */
bool rewrite_find(const struct rewrite *rewrite, const char *name, uint64_t *address,
                  uint64_t *count);

uint32_t rewrite_kernel_count(const struct rewrite *rewrite);

/* A kernel's parameters as pairs of offset and size; end: of the last one. False if unknown. */
bool rewrite_layout(const struct rewrite *rewrite, const char *kernel, uint32_t *pairs,
                    uint32_t *count, uint64_t *end);

/* Why a .global variable stays in the module, or NULL if it moves (or is unknown). Static. */
const char *rewrite_why_stays(const struct rewrite *rewrite, const char *name);

#endif
