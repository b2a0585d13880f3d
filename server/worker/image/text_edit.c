/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/text_edit.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/util.h"

/* The bytes that malloc takes for a short piece beside its text. */
#define PIECE_BYTES 32

void text_edit_open(struct text_edit *edit, const char *text, size_t length, size_t max)
{
    *edit = (struct text_edit){.text = text, .length = length, .max = max};
}

static bool take_bytes(struct text_edit *edit, size_t bytes)
{
    if (bytes > edit->max - edit->used) {
        edit->failed = edit->exceeded = true;
        return false;
    }
    edit->used += bytes;
    return true;
}

void text_edit_replace(struct text_edit *edit, uint32_t start, uint32_t end, const char *text)
{
    if (edit->failed || !take_bytes(edit, PIECE_BYTES + strlen(text)))
        return;
    if (edit->count == edit->room) {
        /* Not array_reserve: these bytes are counted, and old and new may exist at once. */
        uint32_t room = (uint32_t)array_room(edit->room, max(edit->room + 1, 64u));
        if (!take_bytes(edit, room * sizeof *edit->pieces))
            return;
        struct text_edit_piece *pieces = realloc(edit->pieces, room * sizeof *pieces);
        if (!pieces) {
            edit->failed = true;
            return;
        }
        edit->used -= edit->room * sizeof *pieces;
        edit->pieces = pieces;
        edit->room = room;
    }
    char *copy = strdup(text);
    if (!copy) {
        edit->failed = true;
        return;
    }
    edit->pieces[edit->count] =
        (struct text_edit_piece){.start = start, .end = end, .order = edit->count, .text = copy};
    edit->count++;
}

static int by_place(const void *a, const void *b)
{
    const struct text_edit_piece *one = a, *other = b;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    bool one_empty = one->end == one->start, other_empty = other->end == other->start;
    if (one_empty != other_empty)
        return one_empty ? -1 : 1;
    return one->order < other->order ? -1 : 1;
}

static size_t new_length(const struct text_edit *edit)
{
    size_t length = edit->length;
    for (uint32_t i = 0; i < edit->count; i++)
        length += strlen(edit->pieces[i].text);
    return length;
}

/* A reader found the places in a client's text. Pieces that overlap would make the copying below
 * write beyond the end of the new text. */
static bool pieces_are_disjoint(const struct text_edit *edit)
{
    size_t from = 0;
    for (uint32_t i = 0; i < edit->count; i++) {
        const struct text_edit_piece *piece = &edit->pieces[i];
        if (piece->start < from || piece->end < piece->start || piece->end > edit->length)
            return false;
        from = piece->end;
    }
    return true;
}

char *text_edit_finish(struct text_edit *edit)
{
    size_t from = 0, to = 0;
    /* Sorting may copy all pieces. */
    bool may = take_bytes(edit, edit->count * sizeof *edit->pieces + new_length(edit) + 1);
    if (may && edit->count)
        qsort(edit->pieces, edit->count, sizeof *edit->pieces, by_place);
    char *out =
        !may || edit->failed || !pieces_are_disjoint(edit) ? NULL : malloc(new_length(edit) + 1);
    for (uint32_t i = 0; i < edit->count; i++) {
        struct text_edit_piece *piece = &edit->pieces[i];
        if (out) {
            memcpy(out + to, edit->text + from, piece->start - from);
            to += piece->start - from;
            size_t length = strlen(piece->text);
            memcpy(out + to, piece->text, length);
            to += length;
            from = piece->end;
        }
        free(piece->text);
    }
    if (out) {
        memcpy(out + to, edit->text + from, edit->length - from);
        out[to + edit->length - from] = 0;
    }
    free(edit->pieces);
    *edit = (struct text_edit){.text = edit->text, .exceeded = edit->exceeded};
    return out;
}
