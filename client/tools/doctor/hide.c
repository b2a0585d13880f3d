/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/doctor/hide.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"

/* login.defs(5): people have numbers from here on; nobody has the second one. */
enum { UID_FIRST = 1000, UID_NOBODY = 65534 };

/* A directory service may list a hundred thousand users. */
enum { USERS_MAX = 4096 };

void hide_add(struct hide *hide, const char *word, const char *instead)
{
    if (!word || !*word)
        return;
    for (size_t i = 0; i < hide->count; i++)
        if (!strcmp(hide->words[i].word, word))
            return;
    if (array_reserve(hide->words, hide->room, hide->count + 1) < 0) {
        hide->error = -ENOMEM;
        return;
    }
    struct hidden *hidden = &hide->words[hide->count++];
    *hidden = (struct hidden){strdup(word), strdup(instead)};
    if (!hidden->word || !hidden->instead)
        hide->error = -ENOMEM;
}

void hide_user(struct hide *hide, const char *name)
{
    char instead[24];
    size_t before = hide->count;
    /* Every system has it, and much is named after it. */
    if (!name || !strcmp(name, "root") || !strcmp(name, "gpushare"))
        return;
    snprintf(instead, sizeof instead, "user-%u", hide->users + 1);
    hide_add(hide, name, instead);
    hide->users += hide->count > before;
}

/* The names behind one "uid:": one, a list in brackets, or a list of lines. at: behind the colon.
 */
static void hide_listed(struct hide *hide, const char *at)
{
    static const char signs[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.@-";
    char name[64];
    while (*at && *at != '}' && *at != ']') {
        size_t length = strspn(at, signs);
        if (*at == '#')
            at += strcspn(at, "\n");
        else if (!length)
            at++;
        /* The next key. */
        else if (at[length] == ':')
            return;
        else {
            if (length < sizeof name && isalpha((unsigned char)*at)) {
                memcpy(name, at, length);
                name[length] = '\0';
                hide_user(hide, name);
            }
            at += length;
        }
    }
}

static void hide_configured(struct hide *hide, const char *text)
{
    static const char key[] = "uid:";
    for (const char *at = strstr(text, key); at; at = strstr(at, key)) {
        at += strlen(key);
        hide_listed(hide, at);
    }
}

void hide_users(struct hide *hide, const char *text)
{
    const struct passwd *user;
    setpwent();
    for (unsigned i = 0; i < USERS_MAX && (user = getpwent()); i++)
        if (user->pw_uid >= UID_FIRST && user->pw_uid != UID_NOBODY)
            hide_user(hide, user->pw_name);
    endpwent();
    user = getpwuid(geteuid());
    hide_user(hide, user ? user->pw_name : NULL);
    hide_user(hide, getenv("SUDO_USER"));
    hide_configured(hide, text);
}

static bool is_part(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The longest of the words that stands at this place; text: the beginning of the whole. */
static const struct hidden *find(const struct hide *hide, const char *text, const char *at)
{
    const struct hidden *found = NULL;
    size_t longest = 0;
    if (at > text && is_part(at[-1]))
        return NULL;
    for (size_t i = 0; i < hide->count; i++) {
        size_t length = strlen(hide->words[i].word);
        if (length > longest && !strncmp(at, hide->words[i].word, length) && !is_part(at[length])) {
            longest = length;
            found = &hide->words[i];
        }
    }
    return found;
}

char *hide_text(const struct hide *hide, const char *text)
{
    char *copy = NULL;
    size_t bytes;
    FILE *out = open_memstream(&copy, &bytes);
    if (!out)
        return NULL;
    for (const char *at = text; *at;) {
        const struct hidden *hidden = find(hide, text, at);
        if (hidden)
            fputs(hidden->instead, out);
        else
            fputc(*at, out);
        at += hidden ? strlen(hidden->word) : 1;
    }
    if (fclose(out) == 0)
        return copy;
    free(copy);
    return NULL;
}

static json_t *hide_string(const struct hide *hide, const json_t *value)
{
    char *text = hide_text(hide, json_string_value(value));
    json_t *copy = text ? json_string(text) : NULL;
    free(text);
    return copy;
}

/* It calls itself for each level; jansson reads JSON that is nested 2048 deep at most. */
json_t *hide_json(const struct hide *hide, const json_t *value)
{
    json_t *copy;
    if (json_is_string(value))
        return hide_string(hide, value);
    if (json_is_array(value)) {
        copy = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            json_array_append_new(copy, hide_json(hide, json_array_get(value, i)));
        return copy;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    copy = json_object();
    for (void *at = json_object_iter((json_t *)(uintptr_t)value); at;
         at = json_object_iter_next((json_t *)(uintptr_t)value, at))
        json_object_set_new(copy, json_object_iter_key(at),
                            hide_json(hide, json_object_iter_value(at)));
    return copy;
}

void hide_free(struct hide *hide)
{
    for (size_t i = 0; i < hide->count; i++) {
        free(hide->words[i].word);
        free(hide->words[i].instead);
    }
    free(hide->words);
    *hide = (struct hide){0};
}
