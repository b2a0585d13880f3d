/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log_limit.h"
#include "common/messages.h"
#include "common/printable.h"

static const char *log_program = "gpushare";
static atomic_int level_max = LOG_LEVEL_INFO;
static log_observer *_Atomic observed_by;
static log_sender *_Atomic sent_by;
static enum log_form log_form;
static _Thread_local struct log_subject about;
static _Thread_local bool is_about;

void log_open(const char *program, enum log_level level, enum log_form form)
{
    log_program = program;
    level_max = level;
    log_form = form;
}

static const char *const level_names[] = {[LOG_LEVEL_ERROR] = "error",
                                          [LOG_LEVEL_WARNING] = "warning",
                                          [LOG_LEVEL_NOTICE] = "notice",
                                          [LOG_LEVEL_INFO] = "info",
                                          [LOG_LEVEL_DEBUG] = "debug"};

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

int log_level_find(const char *name, enum log_level *level)
{
    for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
        if (strcmp(level_names[i], name) == 0) {
            *level = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

void log_set_level(enum log_level level)
{
    level_max = level;
}

enum log_level log_level(void)
{
    return (enum log_level)level_max;
}

void log_observe(log_observer *observer)
{
    observed_by = observer;
}

void log_send_by(log_sender *sender)
{
    sent_by = sender;
}

void log_about(const struct log_subject *subject)
{
    about = *subject;
    is_about = true;
}

void log_about_device(uint32_t device)
{
    log_about(&(struct log_subject){.device = (int)device});
}

/* Returns the length. */
static int begin_line(char *line, size_t room, enum log_level level)
{
    char moment[32] = "";
    struct timespec now;
    struct tm local;
    if (log_form == LOG_FORM_JOURNAL)
        return snprintf(line, room, "<%d>", (int)level);
    if (log_form == LOG_FORM_PLAIN)
        return snprintf(line, room, "%s: ", log_program);
    clock_gettime(CLOCK_REALTIME, &now);
    if (localtime_r(&now.tv_sec, &local))
        strftime(moment, sizeof moment, "%F %T", &local);
    return snprintf(line, room, "%s.%03ld %s: ", moment, now.tv_nsec / 1000000, log_program);
}

/* One write for the whole line, so that lines of several threads and processes do not mix. A log
 * that can't be written must not stop the program. line: with one byte of room at its end. */
static void write_out(char *line, size_t end)
{
    line[end] = '\n';
    ssize_t written = write(STDERR_FILENO, line, end + 1);
    (void)written;
}

/* message: the format by which the line's message is known, or NULL. */
static void write_line(enum log_level level, const struct log_subject *subject, const char *message,
                       const char *format, va_list arguments)
{
    const bool written_too = (int)level <= level_max;
    log_observer *observer = level < LOG_LEVEL_DEBUG ? observed_by : NULL;
    log_sender *sender = log_form == LOG_FORM_JOURNAL ? sent_by : NULL;
    if (!written_too && !observer)
        return;
    char line[1024];
    int start = begin_line(line, sizeof line, level);
    int length = vsnprintf(line + start, sizeof line - (size_t)start - 1, format, arguments);
    if (length < 0)
        return;
    size_t end = (size_t)start + (size_t)length;
    if (end > sizeof line - 2)
        end = sizeof line - 2;
    printable_replace(line + start);
    if (observer)
        observer(level, line + start);
    if (written_too && !(sender && sender(level, subject, message, line + start)))
        write_out(line, end);
}

__attribute__((format(printf, 3, 4))) static void
say(enum log_level level, const struct log_subject *subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(level, subject, format, format, arguments);
    va_end(arguments);
}

void log_catch_up(void)
{
    struct log_limit_over over;
    while (log_limit_over(clock_now(), &over)) {
        const struct log_subject subject = {
            .client = over.client, .uid = over.uid, .pid = 0, .device = -1};
        if (over.client)
            say(LOG_LEVEL_WARNING, &subject, MESSAGE_TEXT(log_left_out), over.client, over.uid,
                over.left_out, LOG_LIMIT_CLIENT, LOG_LIMIT_SECONDS);
        else
            say(LOG_LEVEL_WARNING, &subject, MESSAGE_TEXT(log_left_out_user), over.uid,
                over.left_out, LOG_LIMIT_USER, LOG_LIMIT_SECONDS);
    }
}

static void log_line(enum log_level level, const char *message, const char *format,
                     va_list arguments)
{
    const struct log_subject subject = about;
    const bool has_subject = is_about;
    is_about = false;
    if ((int)level > level_max && (level == LOG_LEVEL_DEBUG || !observed_by))
        return;
    log_catch_up();
    if (has_subject && subject.client && level != LOG_LEVEL_ERROR &&
        !log_limit_admits(subject.client, subject.uid, clock_now()))
        return;
    write_line(level, has_subject ? &subject : NULL, message, format, arguments);
}

__attribute__((format(printf, 3, 4))) static void log_as(enum log_level level, const char *message,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_line(level, message, format, arguments);
    va_end(arguments);
}

void log_sentence(enum log_level level, const struct error *why)
{
    log_as(level, why->format, "%s", why->text);
}

#define LOG_FUNCTION(name, level)                                                                  \
    void name(const char *format, ...)                                                             \
    {                                                                                              \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        log_line(level, format, format, arguments);                                                \
        va_end(arguments);                                                                         \
    }

LOG_FUNCTION(log_error, LOG_LEVEL_ERROR)
LOG_FUNCTION(log_warning, LOG_LEVEL_WARNING)
LOG_FUNCTION(log_notice, LOG_LEVEL_NOTICE)
LOG_FUNCTION(log_info, LOG_LEVEL_INFO)
LOG_FUNCTION(log_debug, LOG_LEVEL_DEBUG)
