/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/text_edit.h"

#include <stdlib.h>
#include <string.h>

/* What malloc takes for a short piece beside its text. */
#define PIECE_BYTES 32

void splice_open(struct splice *splice, const char *text, size_t length, size_t most)
{
    *splice = (struct splice){.text = text, .length = length, .most = most};
}

static bool take(struct splice *splice, size_t bytes)
{
    if (bytes > splice->most - splice->used) {
        splice->failed = splice->exceeded = true;
        return false;
    }
    splice->used += bytes;
    return true;
}

void splice_replace(struct splice *splice, uint32_t start, uint32_t end, const char *text)
{
    if (splice->failed || !take(splice, PIECE_BYTES + strlen(text)))
        return;
    if (splice->count == splice->room) {
        uint32_t room = splice->room ? splice->room * 2 : 64;
        /* Old and new may exist at once. */
        if (!take(splice, room * sizeof *splice->pieces))
            return;
        struct splice_piece *pieces = realloc(splice->pieces, room * sizeof *pieces);
        if (!pieces) {
            splice->failed = true;
            return;
        }
        splice->used -= splice->room * sizeof *pieces;
        splice->pieces = pieces;
        splice->room = room;
    }
    char *copy = strdup(text);
    if (!copy) {
        splice->failed = true;
        return;
    }
    splice->pieces[splice->count] =
        (struct splice_piece){.start = start, .end = end, .order = splice->count, .text = copy};
    splice->count++;
}

static int by_place(const void *a, const void *b)
{
    const struct splice_piece *one = a, *other = b;
    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    bool one_empty = one->end == one->start, other_empty = other->end == other->start;
    if (one_empty != other_empty)
        return one_empty ? -1 : 1;
    return one->order < other->order ? -1 : 1;
}

static size_t new_length(const struct splice *splice)
{
    size_t length = splice->length;
    for (uint32_t i = 0; i < splice->count; i++)
        length += strlen(splice->pieces[i].text);
    return length;
}

/* The places come from a client's text by way of a reader: pieces that overlap would be written
 * beyond the end of the new text. */
static bool disjoint(const struct splice *splice)
{
    size_t from = 0;
    for (uint32_t i = 0; i < splice->count; i++) {
        const struct splice_piece *piece = &splice->pieces[i];
        if (piece->start < from || piece->end < piece->start || piece->end > splice->length)
            return false;
        from = piece->end;
    }
    return true;
}

char *splice_finish(struct splice *splice)
{
    size_t from = 0, to = 0;
    /* Sorting may copy all the pieces. */
    bool may = take(splice, splice->count * sizeof *splice->pieces + new_length(splice) + 1);
    if (may && splice->count)
        qsort(splice->pieces, splice->count, sizeof *splice->pieces, by_place);
    char *out = !may || splice->failed || !disjoint(splice) ? NULL : malloc(new_length(splice) + 1);
    for (uint32_t i = 0; i < splice->count; i++) {
        struct splice_piece *piece = &splice->pieces[i];
        if (out) {
            memcpy(out + to, splice->text + from, piece->start - from);
            to += piece->start - from;
            size_t length = strlen(piece->text);
            memcpy(out + to, piece->text, length);
            to += length;
            from = piece->end;
        }
        free(piece->text);
    }
    if (out) {
        memcpy(out + to, splice->text + from, splice->length - from);
        out[to + splice->length - from] = 0;
    }
    free(splice->pieces);
    *splice = (struct splice){.text = splice->text, .exceeded = splice->exceeded};
    return out;
}
