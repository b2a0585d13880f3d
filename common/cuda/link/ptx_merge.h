/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * ptx_merge: joins several PTX texts into one, as a linker joins objects. So the compiler of a
 * driver, which knows one text at a time, serves programs that link.
 *
 * Names that are .visible, .weak or .common, and those of kernels, are the same in all inputs.
 * Other names are an input's own: if two inputs have one, that of the later input is changed.
 * Descriptions of the source (.file, .loc, .section) are left out, for those of several inputs do
 * not fit together.
 *
 * Texts are hostile. A merge takes time in proportion to its texts and, for sorting, little more.
 * One thread at a time.
 */
#ifndef GPUSHARE_COMMON_CUDA_LINK_PTX_MERGE_H
#define GPUSHARE_COMMON_CUDA_LINK_PTX_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct ptx_merge;

struct ptx_merge_input {
    const char *text; /* need not end with NUL */
    size_t length;
    const char *name; /* what errors call it, such as a file's path; NULL: "input N" */
};

/* NULL without memory, or if the system gives no random numbers. */
struct ptx_merge *ptx_merge_create(void);
void ptx_merge_destroy(struct ptx_merge *merge); /* NULL: nothing */

/*
 * Reads an input, which is copied, and compares it with those that were accepted. Returns 0; or the
 * number that *why has then, of CUDA: INVALID_PTX for a text that is not understood, INVALID_SOURCE
 * for one that does not fit the others, OUT_OF_MEMORY.
 *
 * After success it is the candidate, until it is accepted or dropped. *whole: it uses no function
 * and no variable that it does not define.
 */
uint32_t ptx_merge_offer(struct ptx_merge *merge, const struct ptx_merge_input *input, bool *whole,
                         struct error *why);
/* Returns -ENOMEM, and drops the candidate, without memory. */
int ptx_merge_accept(struct ptx_merge *merge);
void ptx_merge_drop(struct ptx_merge *merge);

/* Notes the name, which is copied, of an input that is left out: the reason for an undefined
 * reference may be that one. The latest counts. Returns 0 or -ENOMEM. */
int ptx_merge_leave_out(struct ptx_merge *merge, const char *name);
bool ptx_merge_left_out(const struct ptx_merge *merge);

/* Whether the inputs that were accepted define all that they use. */
bool ptx_merge_whole(const struct ptx_merge *merge);

/* The number of inputs that were accepted. */
uint32_t ptx_merge_count(const struct ptx_merge *merge);

/* Makes the text of all accepted inputs, malloc'ed, with a zero byte behind it. Once only. Returns
 * 0 or the number that *why has then: INVALID_SOURCE, OUT_OF_MEMORY. */
uint32_t ptx_merge_finish(struct ptx_merge *merge, char **text, size_t *length, struct error *why);

#endif
