/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/error.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"

static_assert(ERROR_TEXT_BYTES >= sizeof((struct proto_failed){0}.text),
              "a server's sentence must fit");

struct row {
    uint32_t number;
    const char *name;
    const char *sentence;
};

#define ROW(number, name, sentence) {number, #name, sentence},
static const struct row rows[] = {PROTO_ERRORS(ROW)};

static const struct row *find_row(uint32_t number)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == number)
            return &rows[i];
    return NULL;
}

const char *error_name(uint32_t number)
{
    const struct row *row = find_row(number);
    return row ? row->name : "unrecognized";
}

const char *error_sentence(uint32_t number)
{
    const struct row *row = find_row(number);
    return row ? row->sentence : "an error number that this version does not know";
}

uint32_t error_from_cuda(int result)
{
    /* gpushare's own numbers begin at 10000. A driver that returned one would speak in our name. */
    if (result >= 0 && result < 10000 && find_row((uint32_t)result))
        return (uint32_t)result;
    return PROTO_ERROR_UNKNOWN;
}

uint32_t error_from_errno(int number)
{
    switch (abs(number)) {
    case 0:
        return PROTO_ERROR_SUCCESS;
    case EINVAL:
    case ERANGE:
    case EOVERFLOW:
        return PROTO_ERROR_INVALID_VALUE;
    case EPERM:
    case EACCES:
        return PROTO_ERROR_NOT_PERMITTED;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return PROTO_ERROR_CONNECTION_LOST;
    case ENOENT:
    case ECONNREFUSED:
        return PROTO_ERROR_CONNECTION_FAILED;
    case EPROTO:
    case EBADMSG:
        return PROTO_ERROR_PROTOCOL_VIOLATION;
    default:
        return PROTO_ERROR_SERVER_RESOURCES;
    }
}

uint32_t error_set(struct error *why, uint32_t number, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    why->number = number;
    why->format = format;
    return number;
}

uint32_t error_prefix(struct error *why, const char *format, ...)
{
    char old[ERROR_TEXT_BYTES];
    va_list arguments;
    memcpy(old, why->text, sizeof old);
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    size_t used = strlen(why->text);
    snprintf(why->text + used, sizeof why->text - used, "%s", old);
    return why->number;
}
