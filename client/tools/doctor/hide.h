/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * hide: what is not to leave the machine, and what stands in its place: each name of a user has a
 * number of its own, so that a reader can still tell users apart. The name of a client is found by
 * its place alone: if it were one of the words, a client could choose what is hidden. One thread.
 */
#ifndef GPUSHARE_CLIENT_TOOLS_DOCTOR_HIDE_H
#define GPUSHARE_CLIENT_TOOLS_DOCTOR_HIDE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct hidden {
    char *word, *instead;
};

struct hide {
    struct hidden *words;
    size_t count, room;
    unsigned users;
    int error; /* -ENOMEM: a word is missing, so nothing may leave */
};

/* Adds a word, unless it is there already or empty. instead: what stands in its place. */
void hide_add(struct hide *hide, const char *word, const char *instead);

/* Adds the name of a user, which becomes user-1, user-2 and so on. */
void hide_user(struct hide *hide, const char *name);

/* Adds the users of this system: those who can log in, this process's, and the one who became root
 * by sudo. Names that stand behind "uid:" in text, a configuration, are added too. */
void hide_users(struct hide *hide, const char *text);

/* Whether gpushare or CUDA documents a variable of this name, so that its value can be no secret of
 * other software's. name: ends before `=` or at its end. */
bool hide_knows_variable(const char *name);

/* Takes the comments out of a YAML text, in place: whatever stands behind a # that begins one, or
 * that may begin one, where a text in quotes is not certain. Lines keep their numbers. */
void hide_comments(char *text);

/* Returns a copy of the text without these words, malloc'ed; NULL without memory. A word counts
 * where neither a letter, a digit nor an underscore stands beside it. Of the name of a client, as
 * messages write it, only what stands before the first blank is copied, whether the client is still
 * there or not; of the path of a home, not whose it is. */
char *hide_text(const struct hide *hide, const char *text);

/* The same for the texts of a JSON value, and not for its keys. The name of a client is a member
 * called name, in an object that has one called client. The caller owns the copy. */
json_t *hide_json(const struct hide *hide, const json_t *value);

void hide_free(struct hide *hide);

#endif
