/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * text_edit: replaces pieces of a text. The caller adds the pieces in any order, then finishes.
 *
 * Pieces must not overlap. Insertions (empty pieces) at one place come out in the order in which
 * they were added, before a piece that begins there. One thread at a time.
 */
#ifndef GPUSHARE_SERVER_WORKER_IMAGE_TEXT_EDIT_H
#define GPUSHARE_SERVER_WORKER_IMAGE_TEXT_EDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_edit_piece {
    uint32_t start, end;
    uint32_t order;
    char *text;
};

struct text_edit {
    const char *text;
    size_t length;
    struct text_edit_piece *pieces;
    uint32_t count, room;
    size_t used, max; /* bytes of memory: taken, and allowed */
    bool failed;      /* memory was short or max was exceeded: text_edit_finish returns NULL */
    bool exceeded;    /* max was exceeded; stays set after text_edit_finish */
};

/* text stays the caller's and must live until text_edit_finish. max: bytes of memory that pieces
 * and new text may take together. */
void text_edit_open(struct text_edit *edit, const char *text, size_t length, size_t max);
/* Replaces [start, end) of the old text, in bytes; the new piece is copied. A failure shows in
 * text_edit_finish. */
void text_edit_replace(struct text_edit *edit, uint32_t start, uint32_t end, const char *text);

/* The new text, malloc'ed and NUL-terminated; the caller frees it. NULL if memory was short, max
 * was exceeded or pieces overlap. Frees the pieces in any case. */
char *text_edit_finish(struct text_edit *edit);

#endif
