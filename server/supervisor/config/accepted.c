/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/supervisor/config/accepted.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "common/limits/limits.h"
#include "common/limits/variables.h"
#include "common/log.h"
#include "common/messages.h"
#include "common/regular_file.h"
#include "server/supervisor/config/config.h"

#define FILE_NAME "accepted.yaml"

static int write_copy(const char *folder, const char *path, const char *text, size_t bytes)
{
    if (mkdir(folder, 0755) < 0 && errno != EEXIST)
        return -errno;
    return regular_file_replace(path, 0600, text, bytes);
}

/* An older copy would be put in force as if it were what the last server had. A further try says
 * nothing that the first one has said. */
static int keep_failed(const char *path, int result, bool again)
{
    if (!again)
        log_warning(MESSAGE_TEXT(accepted_not_kept), path, strerror(-result));
    if (unlink(path) < 0 && errno != ENOENT && !again)
        log_warning(MESSAGE_TEXT(accepted_stale), path, strerror(errno));
    return result;
}

static int keep_ended(const char *path, int result, bool again)
{
    if (result < 0)
        return keep_failed(path, result, again);
    if (again)
        log_notice(MESSAGE_TEXT(accepted_kept), path);
    return 0;
}

int accepted_keep(const char *folder, const struct config *config, bool again)
{
    char path[PATH_MAX];
    int result = 0;
    if (!folder[0])
        return 0;
    if (snprintf(path, sizeof path, "%s/" FILE_NAME, folder) >= (int)sizeof path)
        result = -ENAMETOOLONG;
    else if (config)
        result = write_copy(folder, path, config->text, config->text_bytes);
    else if (unlink(path) < 0 && errno != ENOENT)
        result = -errno;
    return keep_ended(path, result, again);
}

/* A user who may write the file decides about every user's limits. */
static uint32_t check_owner(const char *path, struct error *why)
{
    struct stat file;
    if (lstat(path, &file) < 0)
        return error_set(why, MESSAGE(config_unreadable), path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return error_set(why, MESSAGE(config_not_a_file), path);
    if ((file.st_uid != geteuid() && file.st_uid != 0) || (file.st_mode & (S_IWGRP | S_IWOTH)))
        return error_set(why, MESSAGE(accepted_foreign), path, (unsigned)file.st_uid,
                         (unsigned)file.st_mode & 0777U);
    return 0;
}

uint32_t accepted_load(struct config **config, const char *folder, struct error *why)
{
    char path[PATH_MAX];
    *config = NULL;
    if (!folder[0])
        return error_set(why, MESSAGE(saved_no_folder));
    if (snprintf(path, sizeof path, "%s/" FILE_NAME, folder) >= (int)sizeof path)
        return error_set(why, MESSAGE(config_unreadable), path, strerror(ENAMETOOLONG));
    uint32_t error = check_owner(path, why);
    return error ? error : config_load(config, path, why);
}

/* ---- arguments and variables ---- */

struct each {
    variables_row *row;
    void *context;
};

/* Stands for the environment: passes each name on that is looked for, and says that it is not
 * set. */
static const char *pass_on(const char *name, void *context)
{
    const struct each *each = context;
    each->row(name, each->context);
    return NULL;
}

/* Calls row with the name of each variable that the server reads, and of those of clients; with
 * some twice. */
static void each_variable(variables_row *row, void *context)
{
    struct each each = {row, context};
    struct limits_wish wish;
    struct error unused;
    limits_wish_read(&wish, pass_on, &each, &unused);
    variables_known(row, context);
}

static void note_variable(const char *name, void *context)
{
    const char *value = getenv(name);
    if (value)
        json_object_set_new(context, name, json_string(value));
}

static bool variable_is_noted(const json_t *variables, const char *name)
{
    const char *value = getenv(name), *noted = json_string_value(json_object_get(variables, name));
    return !value || (noted && strcmp(value, noted) == 0);
}

static void check_variable(const char *name, void *context)
{
    json_t **start = context;
    if (*start && !variable_is_noted(json_object_get(*start, "variables"), name)) {
        json_decref(*start);
        *start = NULL;
    }
}

/* Returns NULL without memory, or if something is no UTF-8. A part would be another start. */
static json_t *start_of(char *const *argv)
{
    json_t *arguments = json_array(), *variables = json_object();
    bool whole = true;
    for (char *const *word = argv + 1; argv[0] && *word; word++)
        whole = json_array_append_new(arguments, json_string(*word)) == 0 && whole;
    each_variable(note_variable, variables);
    json_t *start = json_pack("{s:o, s:o}", "arguments", arguments, "variables", variables);
    if (start && !whole) {
        json_decref(start);
        start = NULL;
    }
    each_variable(check_variable, &start);
    return start;
}

int accepted_keep_start(const char *folder, char *const *argv, bool again)
{
    char path[PATH_MAX];
    int result = -EILSEQ;
    if (!folder[0])
        return 0;
    json_t *start = start_of(argv);
    char *text = start ? json_dumps(start, JSON_INDENT(2)) : NULL;
    if (snprintf(path, sizeof path, "%s/" ACCEPTED_START_FILE, folder) >= (int)sizeof path)
        result = -ENAMETOOLONG;
    else if (text)
        result = write_copy(folder, path, text, strlen(text));
    free(text);
    json_decref(start);
    return keep_ended(path, result, again);
}

/* Strings alone, in an array and an object. */
static bool is_start(const json_t *arguments, json_t *variables)
{
    if (!json_is_array(arguments) || !json_is_object(variables))
        return false;
    for (size_t i = 0; i < json_array_size(arguments); i++)
        if (!json_is_string(json_array_get(arguments, i)))
            return false;
    for (void *at = json_object_iter(variables); at; at = json_object_iter_next(variables, at))
        if (!json_is_string(json_object_iter_value(at)))
            return false;
    return true;
}

static void forget_variable(const char *name, void *context)
{
    (void)context;
    unsetenv(name);
}

/* Returns NULL without memory. The words are the start's own. */
static char **words_of(const json_t *arguments, char *program)
{
    const size_t count = json_array_size(arguments);
    char **words = calloc(count + 2, sizeof *words);
    if (!words)
        return NULL;
    words[0] = program;
    for (size_t i = 0; i < count; i++)
        words[i + 1] = (char *)(uintptr_t)json_string_value(json_array_get(arguments, i));
    return words;
}

/* The arguments and variables are parts of `start`, which stays in use. */
static uint32_t take_start(json_t *start, char *program, int *argc, char ***argv, struct error *why)
{
    const json_t *arguments = json_object_get(start, "arguments");
    json_t *variables = json_object_get(start, "variables");
    char **words = words_of(arguments, program);
    if (!words)
        return error_set(why, MESSAGE(request_no_memory));
    each_variable(forget_variable, NULL);
    for (void *at = json_object_iter(variables); at; at = json_object_iter_next(variables, at))
        if (setenv(json_object_iter_key(at), json_string_value(json_object_iter_value(at)), 1) <
            0) {
            free(words);
            return error_set(why, MESSAGE(request_no_memory));
        }
    *argc = (int)json_array_size(arguments) + 1;
    *argv = words;
    return 0;
}

uint32_t accepted_load_start(const char *folder, char *program, int *argc, char ***argv,
                             struct error *why)
{
    char path[PATH_MAX];
    json_error_t wrong;
    if (!folder[0])
        return error_set(why, MESSAGE(saved_no_folder));
    if (snprintf(path, sizeof path, "%s/" ACCEPTED_START_FILE, folder) >= (int)sizeof path)
        return error_set(why, MESSAGE(config_unreadable), path, strerror(ENAMETOOLONG));
    uint32_t error = check_owner(path, why);
    if (error)
        return error;
    json_t *start = json_load_file(path, 0, &wrong);
    if (!start)
        error = error_set(why, MESSAGE(config_unreadable), path, wrong.text);
    else if (!is_start(json_object_get(start, "arguments"), json_object_get(start, "variables")))
        error = error_set(why, MESSAGE(accepted_start_form), path);
    else
        error = take_start(start, program, argc, argv, why);
    if (error)
        json_decref(start);
    return error;
}
