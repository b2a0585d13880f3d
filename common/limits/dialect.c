/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
#include "common/limits/dialect.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/units.h"

#define WHOLE           UINT64_C(10000)
#define FRACTION_DIGITS 4

/* Four digits after the point are hundredths of a per cent; more would be lost without a word. */
static int read_fraction(const char *text, size_t length, uint64_t *hundredths)
{
    const char *point = memchr(text, '.', length);
    uint64_t whole = 0, part = 0;
    if (!point)
        return -EINVAL;
    size_t before = (size_t)(point - text), digits = length - before - 1;
    int result = units_parse_number(text, before, UINT64_MAX, &whole);
    if (result == 0)
        result = units_parse_number(point + 1, digits, UINT64_MAX, &part);
    if (result < 0 || digits > FRACTION_DIGITS)
        return -EINVAL;
    for (size_t i = digits; i < FRACTION_DIGITS; i++)
        part *= 10;
    if (whole > 1 || whole * WHOLE + part > WHOLE || whole * WHOLE + part == 0)
        return -ERANGE;
    *hundredths = whole * WHOLE + part;
    return 0;
}

int dialect_parse_share(const char *text, size_t length, struct dialect_amount *amount)
{
    uint64_t value;
    uint32_t hundredths;
    int result;
    if (length && text[length - 1] == '%') {
        result = units_parse_percentage(text, length - 1, &hundredths);
        value = hundredths;
    } else {
        result = read_fraction(text, length, &value);
    }
    if (result == 0)
        *amount = (struct dialect_amount){DIALECT_SHARE, value};
    return result;
}

int dialect_parse_percentage(const char *text, size_t length, struct dialect_amount *amount)
{
    uint32_t hundredths;
    int result = units_parse_percentage(text, length, &hundredths);
    if (result == 0)
        *amount = (struct dialect_amount){DIALECT_SHARE, hundredths};
    return result;
}

/* A unit is a letter at the end. */
bool dialect_unit_is_missing(const char *text, size_t length)
{
    uint64_t bytes;
    return length && isdigit((unsigned char)text[length - 1]) &&
           units_parse_size(text, length, &bytes) == 0 && bytes && bytes < DIALECT_BARE_MIN;
}

const char *dialect_form(const char *form, bool share, const char *text, size_t length,
                         char room[DIALECT_FORM_ROOM])
{
    uint64_t bytes;
    if (!dialect_unit_is_missing(text, length) || units_parse_size(text, length, &bytes) < 0)
        return form;
    const unsigned number = (unsigned)bytes;
    if (share && bytes < DIALECT_BYTES_MIN)
        snprintf(room, DIALECT_FORM_ROOM,
                 "a size with its unit (alone it is %u bytes; did you mean %uM, or %u%%?)", number,
                 number, number);
    else
        snprintf(room, DIALECT_FORM_ROOM,
                 "a size with its unit (alone it is %u bytes; did you mean %uM?)", number, number);
    return room;
}

int dialect_parse_size(const char *text, size_t length, struct dialect_amount *amount)
{
    uint64_t bytes;
    int result = units_parse_size(text, length, &bytes);
    /* The protocol uses UINT64_MAX for "no limit". */
    if (result == 0 && (bytes == UINT64_MAX || dialect_unit_is_missing(text, length)))
        result = -ERANGE;
    if (result == 0)
        *amount = (struct dialect_amount){DIALECT_BYTES, bytes};
    return result;
}

int dialect_parse_amount(const char *text, size_t length, struct dialect_amount *amount)
{
    struct dialect_amount read;
    int result = dialect_parse_share(text, length, &read);
    /* Only a text that is no share is tried as a size: "2.0" is a fraction that is too large,
     * and no number of bytes. */
    if (result == -EINVAL)
        result = dialect_parse_size(text, length, &read);
    if (result == 0 && read.unit == DIALECT_BYTES && read.value < DIALECT_BYTES_MIN)
        result = -ERANGE;
    if (result == 0)
        *amount = read;
    return result;
}

const char *dialect_format(struct dialect_amount amount, char *text)
{
    char number[UNITS_TEXT];
    if (amount.unit == DIALECT_BYTES)
        return units_format_size(amount.value, text);
    snprintf(text, UNITS_TEXT, "%.*s%%", UNITS_TEXT - 2,
             units_format_percentage((uint32_t)amount.value, number));
    return text;
}
