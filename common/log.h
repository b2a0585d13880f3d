/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * log: one line for each event on standard error, for journald or a terminal.
 *
 * Programs log, and so do CUDA's libraries: a CUDA program has numbers of errors alone, and its
 * user reads a sentence here. The client library and the rest of common/ never do. Priorities are
 * those of syslog. Before log_open a line begins with gpushare's name.
 *
 * Any thread may log; log_open comes before the first other thread.
 */
#ifndef GPUSHARE_COMMON_LOG_H
#define GPUSHARE_COMMON_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* How a line begins. */
enum log_form {
    LOG_FORM_PLAIN,   /* the program's name */
    LOG_FORM_TIMED,   /* local date and time to the millisecond, and the program's name */
    LOG_FORM_JOURNAL, /* "<N>", from which journald takes the priority (sd-daemon(3)) */
};

/* Sets up the log. program: stays the caller's and must outlive all logging. level: the least
 * important level that is written; messages of a higher number are dropped. */
void log_open(const char *program, enum log_level level, enum log_form form);

/* "error", "warning", "notice", "info", "debug". Static. */
const char *log_level_name(enum log_level level);

/* Finds a level by its name. Returns 0, or -EINVAL: *level has not changed then. */
int log_level_find(const char *name, enum log_level *level);

/* Sets the level that log_open has set; any thread. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Has each line handed to somebody besides, but for those of debugging: also a line that is not
 * written. text: valid during the call, without control characters. It is called on the thread that
 * logs, and must not log. NULL: to nobody. */
typedef void log_observer(enum log_level level, const char *text);
void log_observe(log_observer *observer);

/* The subject of a line. A line about a client counts for the limit of log_limit.h, but for errors.
 */
struct log_subject {
    uint32_t client; /* its number; 0: none */
    uint32_t uid;    /* of the client */
    int pid;         /* of the client; 0: not visible */
    int device;      /* -1: none */
};

/* The next line of this thread is about this; copied. */
void log_about(const struct log_subject *subject);

/* The same of a device alone. */
void log_about_device(uint32_t device);

/* Says how many lines were left out of those about clients, as far as the time for that has come.
 */
void log_catch_up(void);

/* Sends lines in the place of standard error, for the journal. subject: NULL: nothing was said.
 * format: by which the line's message can be known, or NULL. text: the line. Returns false if it
 * can't: the line goes to standard error. It must not log. */
typedef bool log_sender(enum log_level level, const struct log_subject *subject, const char *format,
                        const char *text);
void log_send_by(log_sender *sender);

/* Writes one line. format: without a newline at the end. Control characters, which a client's
 * text may contain, become '?'. A line is cut to 1024 bytes. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes a line that is an error's sentence. The line's message is the error's. */
void log_sentence(enum log_level level, const struct error *why);

#endif
