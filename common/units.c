/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* Why our own: strtod() skips blanks, takes signs, infinities and the locale's point, and rounds
 * large amounts. */
#include "common/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 10^18 fits into 64 bits, and so does every fraction below it. Nobody writes more digits. */
#define FRACTION_DIGITS 18

struct decimal {
    uint64_t whole;
    uint64_t fraction; /* numerator over 10^digits */
    uint64_t scale;    /* 10^digits */
    unsigned digits;
};

/* Reads "12" or "12.50"; returns how many characters, or a negative errno. */
static int decimal_read(const char *text, size_t length, struct decimal *decimal)
{
    size_t at = 0;
    *decimal = (struct decimal){.scale = 1};
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
        if (__builtin_mul_overflow(decimal->whole, 10u, &decimal->whole) ||
            __builtin_add_overflow(decimal->whole, (uint64_t)(text[at] - '0'), &decimal->whole))
            return -ERANGE;
        if (at > 64) /* only leading zeros get so far, for the number would have overflowed */
            return -EINVAL;
    }
    if (at == 0)
        return -EINVAL;
    if (at == length || text[at] != '.')
        return (int)at;
    for (at++; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
        if (++decimal->digits > FRACTION_DIGITS)
            return -EINVAL;
        decimal->fraction = decimal->fraction * 10 + (uint64_t)(text[at] - '0');
        decimal->scale *= 10;
    }
    return decimal->digits ? (int)at : -EINVAL;
}

static char lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The power of two of a suffix, or -EINVAL. */
static int suffix_shift(const char *text, size_t length)
{
    static const char letters[] = "kmgt";
    int shift = 0;
    if (length == 0)
        return 0;
    const char *found = memchr(letters, lower_case(text[0]), sizeof letters - 1);
    if (found) {
        shift = 10 * (int)(found - letters + 1);
        text++;
        length--;
        if (length == 2 && lower_case(text[0]) == 'i') {
            text++;
            length--;
        }
    }
    if (length == 0 || (length == 1 && lower_case(text[0]) == 'b'))
        return shift;
    return -EINVAL;
}

/* Largest first, as they are written. */
static const struct {
    const char *name;
    uint64_t ns;
} durations[] = {
    {"h", UINT64_C(3600000000000)}, {"min", UINT64_C(60000000000)}, {"s", UINT64_C(1000000000)},
    {"ms", UINT64_C(1000000)},      {"us", UINT64_C(1000)},         {"ns", UINT64_C(1)},
};
#define DURATIONS (sizeof durations / sizeof durations[0])

/* Multiplies by the unit and rounds down. Only a unit of one (a byte, a nanosecond) has no
 * parts, so a fraction of it is refused. */
static int scale_decimal(const struct decimal *decimal, uint64_t unit, uint64_t *result)
{
    unsigned __int128 part = (unsigned __int128)decimal->fraction * unit;
    if (unit == 1 && part % decimal->scale)
        return -EINVAL;
    unsigned __int128 sum = (unsigned __int128)decimal->whole * unit + part / decimal->scale;
    if (sum > UINT64_MAX)
        return -ERANGE;
    *result = (uint64_t)sum;
    return 0;
}

int units_parse_size(const char *text, size_t length, uint64_t *bytes)
{
    struct decimal decimal;
    int used = decimal_read(text, length, &decimal);
    if (used < 0)
        return used;
    int shift = suffix_shift(text + used, length - (size_t)used);
    if (shift < 0)
        return shift;
    return scale_decimal(&decimal, UINT64_C(1) << shift, bytes);
}

/* bare: the unit of a number without one; NULL: that is no time. */
static int parse_time(const char *text, size_t length, const char *bare, uint64_t *ns)
{
    struct decimal decimal;
    int used = decimal_read(text, length, &decimal);
    if (used < 0)
        return used;
    const char *unit = text + used;
    size_t left = length - (size_t)used;
    if (bare && !left) {
        unit = bare;
        left = strlen(bare);
    }
    for (size_t i = 0; i < DURATIONS; i++)
        if (strlen(durations[i].name) == left && memcmp(durations[i].name, unit, left) == 0)
            return scale_decimal(&decimal, durations[i].ns, ns);
    return -EINVAL;
}

int units_parse_duration(const char *text, size_t length, uint64_t *ns)
{
    return parse_time(text, length, NULL, ns);
}

int units_parse_seconds(const char *text, size_t length, uint64_t *ns)
{
    return parse_time(text, length, "s", ns);
}

int units_parse_percentage(const char *text, size_t length, uint32_t *hundredths)
{
    struct decimal decimal;
    int used = decimal_read(text, length, &decimal);
    if (used < 0)
        return used;
    if ((size_t)used != length || decimal.digits > 2)
        return -EINVAL;
    if (decimal.whole > 100)
        return -ERANGE;
    uint64_t value = decimal.whole * 100 + decimal.fraction * 100 / decimal.scale;
    if (value == 0 || value > 10000)
        return -ERANGE;
    *hundredths = (uint32_t)value;
    return 0;
}

int units_parse_number(const char *text, size_t length, uint64_t most, uint64_t *number)
{
    struct decimal decimal;
    int used = decimal_read(text, length, &decimal);
    if (used < 0)
        return used;
    if ((size_t)used != length || decimal.digits)
        return -EINVAL;
    if (decimal.whole > most)
        return -ERANGE;
    *number = decimal.whole;
    return 0;
}

const char *units_format_size(uint64_t bytes, char text[UNITS_TEXT])
{
    static const char letters[] = {'T', 'G', 'M', 'K'};
    for (unsigned i = 0; bytes && i < sizeof letters; i++) {
        unsigned shift = 40 - 10 * i;
        if ((bytes & ((UINT64_C(1) << shift) - 1)) == 0) {
            snprintf(text, UNITS_TEXT, "%" PRIu64 "%c", bytes >> shift, letters[i]);
            return text;
        }
    }
    snprintf(text, UNITS_TEXT, "%" PRIu64 "%s", bytes, bytes ? "B" : "");
    return text;
}

const char *units_format_duration(uint64_t ns, char text[UNITS_TEXT])
{
    for (size_t i = 0; ns && i < DURATIONS; i++) {
        if (ns % durations[i].ns)
            continue;
        snprintf(text, UNITS_TEXT, "%" PRIu64 "%s", ns / durations[i].ns, durations[i].name);
        return text;
    }
    snprintf(text, UNITS_TEXT, "0s");
    return text;
}

const char *units_format_bytes(uint64_t bytes, char text[UNITS_TEXT])
{
    static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(text, UNITS_TEXT, "%" PRIu64 " B", bytes);
        return text;
    }
    for (unsigned i = 0;; i++) {
        unsigned shift = 10 * (i + 1);
        /* Tenths, rounded half up. 1023.95 KiB and more become 1 MiB, in the next round. */
        uint64_t tenths = (uint64_t)((((unsigned __int128)bytes * 20 >> shift) + 1) / 2);
        if (tenths < 10240 || i == sizeof names / sizeof names[0] - 1) {
            if (tenths % 10)
                snprintf(text, UNITS_TEXT, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
                         names[i]);
            else
                snprintf(text, UNITS_TEXT, "%" PRIu64 " %s", tenths / 10, names[i]);
            return text;
        }
    }
}

const char *units_format_percentage(uint32_t hundredths, char text[UNITS_TEXT])
{
    unsigned whole = hundredths / 100, rest = hundredths % 100;
    if (rest == 0)
        snprintf(text, UNITS_TEXT, "%u", whole);
    else if (rest % 10 == 0)
        snprintf(text, UNITS_TEXT, "%u.%u", whole, rest / 10);
    else
        snprintf(text, UNITS_TEXT, "%u.%02u", whole, rest);
    return text;
}
