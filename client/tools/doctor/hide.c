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

#include "common/limits/variables.h"
#include "common/array.h"
#include "common/util.h"

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

/* ---- names of clients ---- */

/* Whether the name of a client goes on behind this quote: messages write it behind its number, as
 * in "client 7 'train'" and "client 7 ('train'". */
static bool opens_name(const char *text, const char *at)
{
    const char *before = at;
    if (*at != '\'')
        return false;
    while (before > text && strchr(" (,", before[-1]))
        before--;
    return before < at && before > text && isdigit((unsigned char)before[-1]);
}

/* Whether a name ends at this quote: messages go on like this. */
static bool closes_name(const char *at)
{
    static const char *const behind[] = {
        " (pid ",      ": ",         " or client ", " goes on",    " ran a kernel ",
        " was given ", " has for ",  " may have ",  " prevents: ", ", which ",
        "), which ",   ", process ", ", one of ",
    };
    const char *next = at + 1;
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++)
        if (!strncmp(next, behind[i], strlen(behind[i])))
            return true;
    /* A list of several. */
    return !strncmp(next, ", ", 2) && isdigit((unsigned char)next[2]);
}

/* The length of a name, which may have quotes itself. name: behind the opening quote. Where no
 * message goes on behind a quote, all until the line's last one belongs to the name. */
static size_t name_length(const char *name)
{
    const size_t line = strcspn(name, "\n");
    size_t last = line;
    for (size_t at = 0; at < line; at++) {
        if (name[at] != '\'')
            continue;
        if (closes_name(name + at))
            return at;
        last = at;
    }
    return last;
}

/* A client may call itself after its whole command line. Its program stays. Returns how much of
 * the name that is; all of it where nothing is to be hidden. */
static size_t program_length(const char *name, size_t length)
{
    const char *blank = memchr(name, ' ', length);
    return blank ? (size_t)(blank - name) : length;
}

/* ---- texts ---- */

/* Puts what stands in the place of the words that begin at `at`. Returns their length; 0: nothing
 * is hidden there. text: the beginning of the whole. */
static size_t put_instead(const struct hide *hide, const char *text, const char *at, FILE *out)
{
    static const char home[] = "/home/";
    const struct hidden *hidden = find(hide, text, at);
    if (hidden) {
        fputs(hidden->instead, out);
        return strlen(hidden->word);
    }
    /* A directory service need not list its users. */
    if ((size_t)(at - text) < strlen(home) || memcmp(at - strlen(home), home, strlen(home)) != 0)
        return 0;
    const size_t length = strcspn(at, "/ \t\n:;,\"'()[]{}<>");
    if (length)
        fputs("user", out);
    return length;
}

/* The same of a part: `until` may lie within the whole. */
static void put_part(const struct hide *hide, const char *text, const char *from, const char *until,
                     FILE *out)
{
    while (from < until) {
        const size_t length = put_instead(hide, text, from, out);
        if (!length)
            fputc(*from, out);
        from += length ? length : 1;
    }
}

char *hide_text(const struct hide *hide, const char *text)
{
    char *copy = NULL;
    size_t bytes;
    FILE *out = open_memstream(&copy, &bytes);
    if (!out)
        return NULL;
    for (const char *at = text, *next; *at; at = next) {
        next = at + 1;
        if (!opens_name(text, at)) {
            const size_t length = put_instead(hide, text, at, out);
            if (length)
                next = at + length;
            else
                fputc(*at, out);
            continue;
        }
        const size_t length = name_length(next), shown = program_length(next, length);
        fputc(*at, out);
        put_part(hide, text, next, next + shown, out);
        fputs(shown < length ? " [arguments]" : "", out);
        next += length;
    }
    if (fclose(out) == 0)
        return copy;
    free(copy);
    return NULL;
}

/* ---- JSON ---- */

/* Of a client, and not of a GPU, which has a name too. */
static json_t *hide_name(const struct hide *hide, const json_t *name)
{
    char shown[512];
    const char *text = json_string_value(name);
    const size_t length = strlen(text), program = program_length(text, length);
    snprintf(shown, sizeof shown, "%.*s%s", (int)min(program, sizeof shown - 16), text,
             program < length ? " [arguments]" : "");
    char *hidden = hide_text(hide, shown);
    json_t *copy = hidden ? json_string(hidden) : NULL;
    free(hidden);
    return copy;
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
    const bool is_client = json_is_integer(json_object_get(value, "client"));
    for (void *at = json_object_iter((json_t *)(uintptr_t)value); at;
         at = json_object_iter_next((json_t *)(uintptr_t)value, at)) {
        const char *key = json_object_iter_key(at);
        const json_t *member = json_object_iter_value(at);
        const bool is_name = is_client && json_is_string(member) && !strcmp(key, "name");
        json_object_set_new(copy, key, is_name ? hide_name(hide, member) : hide_json(hide, member));
    }
    return copy;
}

/* ---- variables ---- */

#define CUDA_PREFIX "CUDA_"

/* Names behind the prefix, from NVIDIA's pages about CUDA C++, MPS and cuda-gdb, and from its
 * images. gpushare itself reads few of them. */
static const char *const cuda_variables[] = {
    "AUTO_BOOST",
    "BINARY_LOADER_THREAD_COUNT",
    "CACHE_DISABLE",
    "CACHE_MAXSIZE",
    "CACHE_PATH",
    "COREDUMP_FILE",
    "COREDUMP_GENERATION_FLAGS",
    "COREDUMP_PIPE",
    "COREDUMP_SHOW_PROGRESS",
    "DEBUGGER_SOFTWARE_PREEMPTION",
    "DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",
    "DEVICE_MAX_CONNECTIONS",
    "DEVICE_MAX_COPY_CONNECTIONS",
    "DEVICE_ORDER",
    "DEVICE_WAITS_ON_EXCEPTION",
    "DISABLE_JIT",
    "DISABLE_PTX_JIT",
    "ENABLE_COREDUMP_ON_EXCEPTION",
    "ENABLE_CPU_COREDUMP_ON_EXCEPTION",
    "ENABLE_CRC_CHECK",
    "ENABLE_LIGHTWEIGHT_COREDUMP",
    "ENABLE_USER_TRIGGERED_COREDUMP",
    "FORCE_JIT",
    "FORCE_PRELOAD_LIBRARIES",
    "FORCE_PTX_JIT",
    "GRAPHS_USE_NODE_PRIORITY",
    "HOME",
    "LAUNCH_BLOCKING",
    "LOG_FILE",
    "MANAGED_FORCE_DEVICE_ALLOC",
    "MODULE_DATA_LOADING",
    "MODULE_LOADING",
    "MPS_ACTIVE_THREAD_PERCENTAGE",
    "MPS_CLIENT_PRIORITY",
    "MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING",
    "MPS_LOG_DIRECTORY",
    "MPS_PINNED_DEVICE_MEM_LIMIT",
    "MPS_PIPE_DIRECTORY",
    "PATH",
    "SCALE_LAUNCH_QUEUES",
    "VERSION",
    "VISIBLE_DEVICES",
};

struct variable {
    const char *name;
    size_t length;
    bool known;
};

static void compare_variable(const char *known, void *context)
{
    struct variable *variable = context;
    variable->known |=
        strlen(known) == variable->length && !strncmp(known, variable->name, variable->length);
}

bool hide_knows_variable(const char *name)
{
    struct variable variable = {.name = name, .length = strcspn(name, "=")};
    variables_known(compare_variable, &variable);
    compare_variable("GPUSHARED_OPTIONS", &variable); /* of the service's units */
    if (strncmp(name, CUDA_PREFIX, strlen(CUDA_PREFIX)) != 0)
        return variable.known;
    variable.name += strlen(CUDA_PREFIX);
    variable.length -= strlen(CUDA_PREFIX);
    for (size_t i = 0; i < sizeof cuda_variables / sizeof *cuda_variables; i++)
        compare_variable(cuda_variables[i], &variable);
    return variable.known;
}

/* ---- comments ---- */

/* Places of a YAML text, by what may begin there. */
enum place {
    PLACE_NODE, /* a value, an item or a key: only there a quote opens a quoted text */
    PLACE_WORD, /* a quote is a part of a word, as in "it's" */
    PLACE_BLOCK /* lines of text behind a | or > */
};

struct yaml {
    enum place place;
    unsigned flow; /* brackets and braces that are open */
    long column;   /* of the word that is read */
    long indent;   /* of the last key or dash outside of brackets: words go on in deeper lines */
    bool valued;   /* what is read is the value of a key */
    bool doubtful; /* no quotes are believed any more */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || !c;
}

/* Line breaks of libyaml that no editor writes here: lines that they make are not followed. */
static bool has_odd_breaks(const char *text)
{
    for (const char *at = strchr(text, '\r'); at; at = strchr(at + 1, '\r'))
        if (at[1] != '\n')
            return true;
    return strstr(text, "\xc2\x85") || strstr(text, "\xe2\x80\xa8") || strstr(text, "\xe2\x80\xa9");
}

/* libyaml takes a # for a comment behind a quoted text and behind brackets, too, and behind odd
 * breaks. */
static bool begins_comment(char before)
{
    return is_blank(before) || (unsigned char)before >= 0x80 || strchr("\"'[]{},:", before);
}

/* The length of the quoted text at `at`, with its quotes. 0: it does not end in its line, or what
 * follows can't stand behind one, so that it was none. */
static size_t quoted_length(const char *at, bool flow)
{
    const char quote = *at;
    const char *end = at + 1;
    for (; *end != quote || (quote == '\'' && end[1] == quote); end++) {
        if (quote == '\'' ? *end == quote : *end == '\\')
            end++;
        if (!*end || *end == '\n')
            return 0;
    }
    end++;
    const char *next = end + strspn(end, " \t\r");
    return !*next || strchr(flow ? "\n#:,]}" : "\n#:", *next) ? (size_t)(end - at) : 0;
}

/* A text of several lines, or a mistake: what follows may lie on either side of a quote, and too
 * much is left out rather than too little. */
static size_t read_quoted(struct yaml *yaml, const char *at)
{
    const size_t length = yaml->doubtful ? 0 : quoted_length(at, yaml->flow);
    yaml->place = PLACE_WORD;
    yaml->doubtful |= !length;
    return length ? length : 1;
}

static void read_bracket(struct yaml *yaml, char c)
{
    const bool closes = c == ']' || c == '}';
    if (closes)
        yaml->flow--;
    else if (c != ',')
        yaml->flow++;
    yaml->place = closes ? PLACE_WORD : PLACE_NODE;
    yaml->valued = closes;
}

static void read_sign(struct yaml *yaml, char c, char next, long column)
{
    const bool node = yaml->place == PLACE_NODE, apart = is_blank(next);
    if (strchr("[{", c) ? node || yaml->flow : yaml->flow && strchr(",]}", c)) {
        read_bracket(yaml, c);
    } else if (c == ':' && apart && !yaml->valued) {
        yaml->indent = yaml->flow ? yaml->indent : node ? column : yaml->column;
        yaml->place = PLACE_NODE;
        yaml->valued = true;
    } else if (node && apart && (c == '-' || c == '?')) {
        yaml->indent = yaml->flow ? yaml->indent : column;
    } else if (node) {
        /* Behind an anchor or a tag a quoted text may begin that is not followed here. */
        yaml->doubtful |= c == '&' || c == '!';
        yaml->place = !yaml->flow && (c == '|' || c == '>') ? PLACE_BLOCK : PLACE_WORD;
        yaml->column = column;
    }
}

/* first: the line's first sign that is no blank. */
static void begin_line(struct yaml *yaml, char first, long column)
{
    if (is_blank(first) || first == '#')
        return;
    /* Somebody forgot a bracket. */
    yaml->doubtful |= yaml->flow && column <= yaml->indent && !strchr("]}", first);
    if (!yaml->flow && (yaml->place == PLACE_NODE || column <= yaml->indent)) {
        yaml->place = PLACE_NODE;
        yaml->valued = false;
    }
}

/* How much of the line at `line` stands before its comment. */
static size_t line_shown(struct yaml *yaml, const char *line)
{
    const size_t length = strcspn(line, "\n");
    size_t at = strspn(line, " \t");
    if (!strncmp(line, "---", 3) && is_blank(line[3])) {
        *yaml = (struct yaml){.place = PLACE_NODE, .indent = -1, .doubtful = yaml->doubtful};
        at = 3;
    } else {
        begin_line(yaml, line[at], (long)at);
    }
    while (at < length) {
        const char c = line[at];
        if (c == '#' && begins_comment(at ? line[at - 1] : '\n'))
            break;
        if (yaml->place == PLACE_NODE && (c == '"' || c == '\'')) {
            yaml->column = (long)at;
            at += read_quoted(yaml, line + at);
            continue;
        }
        if (!is_blank(c) && yaml->place != PLACE_BLOCK)
            read_sign(yaml, c, line[at + 1], (long)at);
        at++;
    }
    return at < length ? at : length;
}

void hide_comments(char *text)
{
    struct yaml yaml = {.place = PLACE_NODE, .indent = -1, .doubtful = has_odd_breaks(text)};
    char *to = text;
    for (const char *line = text, *next; *line; line = next) {
        const size_t shown = line_shown(&yaml, line);
        next = line + strcspn(line, "\n");
        memmove(to, line, shown);
        to += shown;
        if (*next == '\n')
            *to++ = *next++;
    }
    *to = '\0';
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
