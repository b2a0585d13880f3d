/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * spelling: how far a word that somebody typed is from a word that is known. Pure; any thread.
 */
#ifndef GPUSHARE_COMMON_SPELLING_H
#define GPUSHARE_COMMON_SPELLING_H

#include <stddef.h>

enum {
    SPELLING_MAX = 60, /* bytes of the longest known word */
    /* More edits than this are no typing error. */
    SPELLING_NEAR = 3,
};

/* The number of letters that have to be inserted, deleted or replaced to make `known` of the first
 * `length` bytes of word. known: SPELLING_MAX bytes at most, without its NUL. */
size_t spelling_distance(const char *word, size_t length, const char *known);

/* The known word that somebody may have meant. */
struct spelling_guess {
    const char *word; /* the caller's */
    size_t length, own, closest;
    const char *found; /* of those looked at; NULL: none is near */
};

/* own: how many of the word's `length` bytes tell it from others, without a prefix that all have.
 * Edits to half of these are no typing error. */
struct spelling_guess spelling_guess_begin(const char *word, size_t length, size_t own);

/* known: as of spelling_distance. Of words that are equally near the first one is found. */
void spelling_guess_look(struct spelling_guess *guess, const char *known);

#endif
