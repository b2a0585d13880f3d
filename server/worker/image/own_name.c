/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/image/own_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

/* The beginning of our names, and the number and the underscore behind it. */
static const char our_word[] = "gpushare";
enum { OUR_LETTERS = sizeof our_word - 1 };

/* The place behind the next word of ours, or NULL. */
static const char *next_ours(const char *at, const char *end)
{
    const char *word = memmem(at, (size_t)(end - at), our_word, OUR_LETTERS);
    return word ? word + OUR_LETTERS : NULL;
}

/* The number between our word and an underscore, as we write it; `bound` for another text and for
 * numbers from there on. */
static size_t number_of_ours(const char *at, const char *end, size_t bound)
{
    const char *first = at;
    size_t number = 0;
    while (at < end && *at >= '0' && *at <= '9' && number < bound)
        number = number * 10 + (size_t)(*at++ - '0');
    bool is_ours = at > first && at < end && *at == '_' && (*first != '0' || at == first + 1);
    return is_ours ? min(number, bound) : bound;
}

/*
 * The number is the first one that the text does not use. A text with n words like ours leaves one
 * of n + 1 numbers free; a search of the text for each number would take quadratic time.
 */
int own_name_choose(const char *text, size_t length, size_t max, char *name, size_t size)
{
    const char *end = text + length;
    size_t words = 0, number = 0;
    for (const char *at = next_ours(text, end); at; at = next_ours(at, end))
        words++;
    if (words + 2 > max)
        return -ENOBUFS;
    bool *taken = calloc(words + 2, sizeof *taken);
    if (!taken)
        return -ENOMEM;
    for (const char *at = next_ours(text, end); at; at = next_ours(at, end))
        taken[number_of_ours(at, end, words + 1)] = true;
    while (taken[number])
        number++;
    free(taken);
    snprintf(name, size, "%%%s%zu_", our_word, number);
    return 0;
}
