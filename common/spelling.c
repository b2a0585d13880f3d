/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: the C library has no edit distance, and these lines are less than another library
 * in every client program. */
#include "common/spelling.h"

#include <string.h>

#include "common/util.h"

/* Levenshtein 1966. */
size_t spelling_distance(const char *word, size_t length, const char *known)
{
    size_t row[SPELLING_MAX + 1];
    size_t known_length = strlen(known);
    for (size_t j = 0; j <= known_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= known_length; j++) {
            size_t replaced = diagonal + (word[i - 1] != known[j - 1]);
            diagonal = row[j];
            row[j] = min(replaced, min(row[j], row[j - 1]) + 1);
        }
    }
    return row[known_length];
}

struct spelling_guess spelling_guess_begin(const char *word, size_t length, size_t own)
{
    return (struct spelling_guess){
        .word = word, .length = length, .own = own, .closest = SPELLING_NEAR + 1};
}

void spelling_guess_look(struct spelling_guess *guess, const char *known)
{
    size_t away = spelling_distance(guess->word, guess->length, known);
    if (away >= guess->closest || away * 2 >= guess->own)
        return;
    guess->closest = away;
    guess->found = known;
}
