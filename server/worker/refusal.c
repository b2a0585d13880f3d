/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "server/worker/refusal.h"

#include <stdarg.h>
#include <stdio.h>

#include "common/error.h"

uint32_t refusal_say(struct refusal *why, uint32_t error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return error;
}

uint32_t refusal_from_cuda(struct refusal *why, const char *call, cuda_result result)
{
    return refusal_say(why, error_from_cuda((int)result), "%s: %s", call,
                       cuda_error_sentence(result));
}
