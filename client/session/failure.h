/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * failure: the sentence that goes with an error. Each thread has one; gpushare_error_text()
 * returns it. Any thread.
 *
 * Inside the library a function that returns an error has set the sentence already; a caller that
 * passes the error on leaves the sentence as it is.
 */
#ifndef GPUSHARE_CLIENT_SESSION_FAILURE_H
#define GPUSHARE_CLIENT_SESSION_FAILURE_H

#include <stdint.h>

#include "client/gpushare.h"

/* Sets the thread's sentence and returns `error`, so that a check is one line. */
gpushare_error failure(gpushare_error error, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold, noinline));

/* The same, with the sentence of the error table. error: a number of the table. */
gpushare_error failure_plain(uint32_t error) __attribute__((cold));

/* The same, with a sentence of the server's or of common/. text: NULL or empty for the table's
 * sentence. */
gpushare_error failure_text(uint32_t error, const char *text) __attribute__((cold));

/* The thread's sentence, "" before its first failure. Valid until the thread's next failure. */
const char *failure_sentence(void);

/* Puts words and a colon before the thread's present sentence. Returns error. */
gpushare_error failure_prefix(gpushare_error error, const char *words) __attribute__((cold));

#if defined __clang_analyzer__ && !defined FAILURE_C
/* The analyser reads one file at a time. It can't see that none of these functions returns
 * SUCCESS. */
#define FAILURE_SAYS(call)                                                                         \
    ({                                                                                             \
        gpushare_error failure_said = (call);                                                      \
        if (!failure_said)                                                                         \
            __builtin_unreachable();                                                               \
        failure_said;                                                                              \
    })
#define failure(...)                FAILURE_SAYS((failure)(__VA_ARGS__))
#define failure_plain(error)        FAILURE_SAYS((failure_plain)(error))
#define failure_text(error, text)   FAILURE_SAYS((failure_text)(error, text))
#define failure_prefix(error, text) FAILURE_SAYS((failure_prefix)(error, text))
#else
#define FAILURE_SAYS(call) (call)
#endif

#endif
