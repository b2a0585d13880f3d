/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * log: one line an event, to standard error, for journald or a terminal.
 *
 * For programs only: library code (client/, common/ otherwise) never logs.
 * Priorities are syslog's. Under systemd (log_open's argument) each line carries
 * the "<N>" prefix of sd-daemon(3), from which journald takes the priority.
 * Any thread.
 */
#ifndef GPUSHARE_COMMON_LOG_H
#define GPUSHARE_COMMON_LOG_H

#include <stdbool.h>

enum log_level {
    LOG_LEVEL_ERROR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_NOTICE = 5,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* program is kept, not copied. Lines above `most` are dropped. */
void log_open(const char *program, enum log_level most, bool journal);

/* One line, without a newline; control characters (a client's text may hold them) become '?'. */
void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
