/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#define FAILURE_C
#include "client/session/failure.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/error.h"

static __thread struct error last;

gpushare_error failure(gpushare_error error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last.text, sizeof last.text, format, arguments);
    va_end(arguments);
    last.number = error;
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
    last.number = error;
    return (gpushare_error)error_prefix(&last, "%s: ", words);
}

const char *failure_sentence(void)
{
    return last.text;
}
