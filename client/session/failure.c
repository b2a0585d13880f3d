/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#define FAILURE_C
#include "client/session/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"

/* More than any text of the protocol has, so that words fit before a server's sentence. */
enum { SENTENCE_BYTES = 512 };

static __thread char sentence[SENTENCE_BYTES];

gpushare_error failure(gpushare_error error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return error;
}

gpushare_error failure_plain(uint32_t error)
{
    return failure((gpushare_error)error, "%s", error_sentence(error));
}

gpushare_error failure_text(uint32_t error, const char *text)
{
    return failure((gpushare_error)error, "%s", text && *text ? text : error_sentence(error));
}

gpushare_error failure_prefix(gpushare_error error, const char *words)
{
    char old[SENTENCE_BYTES];
    memcpy(old, sentence, sizeof old);
    return failure(error, "%s%s", words, old);
}

const char *failure_sentence(void)
{
    return sentence;
}
