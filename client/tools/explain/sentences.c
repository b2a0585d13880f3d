/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "client/tools/explain/sentences.h"

#include <stdarg.h>
#include <string.h>

#include "common/messages.h"
#include "common/printable.h"
#include "common/util.h"

/* Room for what is said of a file in one line: two lists of names, each of 255 bytes at most, and
 * some ten words beside them. */
enum { TEXT_BYTES = 2 * CALLS_SHOWN * 260 + 1024 };

struct text {
    char bytes[TEXT_BYTES];
    size_t length;
    unsigned count; /* of the reasons in it */
};

/* A text that does not fit loses its end. */
__attribute__((format(printf, 2, 0))) static void add_list(struct text *text, const char *format,
                                                           va_list values)
{
    size_t room = TEXT_BYTES - text->length;
    int length = vsnprintf(text->bytes + text->length, room, format, values);
    if (length > 0)
        text->length += min((size_t)length, room - 1);
}

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    add_list(text, format, values);
    va_end(values);
}

void sentences_line(FILE *out, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vfprintf(out, format, values);
    va_end(values);
    fputc('\n', out);
}

/* The first of so many names. */
static void list(struct text *text, const char *const names[], size_t shown, size_t all)
{
    *text = (struct text){.length = 0};
    for (size_t i = 0; i < shown; i++)
        add(text, "%s%.255s", i ? ", " : "", names[i]);
    if (all > shown)
        add(text, MESSAGE_TEXT(explain_more), all - shown);
    printable_replace(text->bytes);
}

/* The names of the functions with that state. False if there is none. */
static bool list_calls(const struct calls *calls, enum cuda_function_state state, struct text *text)
{
    const char *names[CALLS_SHOWN];
    size_t all = calls_count(calls, state);
    list(text, names, calls_names(calls, state, names), all);
    return all;
}

void sentences_missing(FILE *out, const char *path, const char *const names[], size_t count)
{
    struct text text;
    list(&text, names, min(count, (size_t)CALLS_SHOWN), count);
    sentences_line(out, MESSAGE_TEXT(explain_missing), path, text.bytes);
}

/* ---- each finding in a sentence of its own ---- */

static unsigned say_calls(FILE *out, const char *path, const struct calls *calls)
{
    struct text text;
    unsigned problems = 0;
    if (list_calls(calls, CUDA_FUNCTION_UNKNOWN, &text)) {
        sentences_line(out, MESSAGE_TEXT(explain_unknown), path, text.bytes);
        problems++;
    }
    if (list_calls(calls, CUDA_FUNCTION_REFUSED, &text)) {
        sentences_line(out, MESSAGE_TEXT(explain_refused), path, text.bytes);
        problems++;
    }
    if (list_calls(calls, CUDA_FUNCTION_IN_PART, &text))
        sentences_line(out, MESSAGE_TEXT(explain_in_part), path, text.bytes);
    return problems;
}

unsigned sentences_say(FILE *out, const char *path, const struct findings *findings)
{
    unsigned problems = 0;
    if (findings->damaged) {
        sentences_line(out, MESSAGE_TEXT(explain_damaged), path);
        problems++;
    }
    if (findings_static_runtime(findings)) {
        sentences_line(out, MESSAGE_TEXT(explain_static), path);
        problems++;
    }
    if (*findings->old_runtime) {
        sentences_line(out, MESSAGE_TEXT(explain_runtime), path, findings->old_runtime);
        problems++;
    }
    if (*findings->asks_tables) {
        sentences_line(out, MESSAGE_TEXT(explain_tables), path, findings->asks_tables);
        problems++;
    }
    if (findings->setid) {
        sentences_line(out, MESSAGE_TEXT(explain_setuid), path);
        problems++;
    }
    problems += say_calls(out, path, &findings->calls);
    if (findings->cubins && !findings->ptx)
        sentences_line(out, MESSAGE_TEXT(explain_no_ptx), path);
    if (findings->no_sections)
        sentences_line(out, MESSAGE_TEXT(explain_no_sections), path);
    return problems;
}

/* ---- all of them in one line ---- */

/* Adds one of the things that are in the way. */
__attribute__((format(printf, 2, 3))) static void add_reason(struct text *text, const char *format,
                                                             ...)
{
    va_list values;
    if (text->count++)
        add(text, "; ");
    va_start(values, format);
    add_list(text, format, values);
    va_end(values);
}

unsigned sentences_say_briefly(FILE *out, const char *path, const struct findings *findings)
{
    struct text text = {.length = 0}, names;
    if (findings->damaged)
        add_reason(&text, MESSAGE_TEXT(explain_brief_damaged));
    if (findings_static_runtime(findings))
        add_reason(&text, MESSAGE_TEXT(explain_brief_static));
    if (*findings->old_runtime)
        add_reason(&text, MESSAGE_TEXT(explain_brief_runtime), findings->old_runtime);
    if (*findings->asks_tables)
        add_reason(&text, MESSAGE_TEXT(explain_brief_tables), findings->asks_tables);
    if (findings->setid)
        add_reason(&text, MESSAGE_TEXT(explain_brief_setuid));
    if (list_calls(&findings->calls, CUDA_FUNCTION_UNKNOWN, &names))
        add_reason(&text, MESSAGE_TEXT(explain_brief_unknown), names.bytes);
    if (list_calls(&findings->calls, CUDA_FUNCTION_REFUSED, &names))
        add_reason(&text, MESSAGE_TEXT(explain_brief_refused), names.bytes);
    if (text.count)
        sentences_line(out, MESSAGE_TEXT(explain_brief), path, text.bytes);
    else
        sentences_line(out, MESSAGE_TEXT(explain_brief_runs), path, findings->ptx, findings->cubins,
                       calls_count(&findings->calls, CUDA_FUNCTION_CARRIED),
                       calls_count(&findings->calls, CUDA_FUNCTION_IN_PART));
    return text.count;
}
