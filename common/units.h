/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * units: quantities in the form in which people write them, read and formatted.
 *
 * The functions have no state; any thread may call them. A text is given by its start and its
 * length and need not end with NUL, so that an item of a list can be read in place. The whole text
 * has to be the quantity: blanks and signs are errors.
 */
#ifndef GPUSHARE_COMMON_UNITS_H
#define GPUSHARE_COMMON_UNITS_H

#include <stddef.h>
#include <stdint.h>

/* Times, in nanoseconds. */
#define UNITS_MS     UINT64_C(1000000)
#define UNITS_TENTH  (100 * UNITS_MS) /* of a second */
#define UNITS_SECOND (1000 * UNITS_MS)

/* A time in whole tenths of a second, for people: the last tenth that has passed, or the first one
 * that is still to come, also where the time is a whole tenth itself. */
static inline uint64_t units_tenth_passed(uint64_t ns)
{
    return ns - ns % UNITS_TENTH;
}
static inline uint64_t units_tenth_to_come(uint64_t ns)
{
    return units_tenth_passed(ns) + UNITS_TENTH;
}

/*
 * Reads a size in bytes: digits, then K, M, G or T in either case, then nothing, B or iB. "1G",
 * "1GB" and "1GiB" are the same; the factors are powers of 1024. "B" alone, or no unit, means
 * bytes.
 *
 * A fraction is allowed with a factor ("1.5G", "0.1G"); the part of it that is below one byte is
 * dropped. A number of bytes with a fraction that is not zero is no size.
 *
 * Returns 0; -EINVAL if the text is no size; -ERANGE above UINT64_MAX. *bytes is written on success
 * only.
 */
int units_parse_size(const char *text, size_t length, uint64_t *bytes);

/*
 * Reads a percentage above 0 and up to 100, with at most two digits after the point and without a
 * per cent sign. The result is in hundredths of a per cent: "12.5" is 1250.
 *
 * Returns 0; -EINVAL if the text is no such number; -ERANGE if it is outside. *hundredths is
 * written on success only.
 */
int units_parse_percentage(const char *text, size_t length, uint32_t *hundredths);

/*
 * Reads a time: digits, an optional fraction, and a unit, which may not be left out: ns, us, ms, s,
 * min or h ("250ms", "1.5s", "2min"). The part of a fraction that is below one nanosecond is
 * dropped. A number of ns with a fraction that is not zero is no time.
 *
 * Returns 0; -EINVAL if the text is no time; -ERANGE above UINT64_MAX ns. *ns is written on success
 * only.
 */
int units_parse_duration(const char *text, size_t length, uint64_t *ns);

/* These units, for use in sentences. */
#define UNITS_DURATIONS "ns, us, ms, s, min, h"

/* The same of a time that may also be a bare number of seconds. */
int units_parse_seconds(const char *text, size_t length, uint64_t *ns);

/* Reads a whole number from 0 to most. Returns 0; -EINVAL if the text is no whole number;
 * -ERANGE above most. *number is written on success only. */
int units_parse_number(const char *text, size_t length, uint64_t most, uint64_t *number);

/* Bytes that hold any text of the functions below, its NUL included. */
#define UNITS_TEXT 32

/* Writes a size exactly, so that units_parse_size reads the same number: "1G", "512M",
 * "1048577B". Returns text. */
const char *units_format_size(uint64_t bytes, char text[UNITS_TEXT]);

/* Writes a size for people, rounded to one digit after the point: "1.5 GiB", "512 MiB", "17 B".
 * Returns text. */
const char *units_format_bytes(uint64_t bytes, char text[UNITS_TEXT]);

/* Writes a time exactly, so that units_parse_duration reads the same number: "250ms", "2min",
 * "1500us". Returns text. */
const char *units_format_duration(uint64_t ns, char text[UNITS_TEXT]);

/* Writes hundredths of a per cent as a percentage without a sign: "12.5" for 1250. Returns text. */
const char *units_format_percentage(uint32_t hundredths, char text[UNITS_TEXT]);

#endif
