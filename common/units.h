/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * units: quantities as people write them, read and written back.
 *
 * Pure functions on text. A text is given by start and length, so that an item of
 * a list is read where it stands; it need not end in NUL. Nothing is skipped: no
 * blanks, no sign. Any thread.
 */
#ifndef GPUSHARE_COMMON_UNITS_H
#define GPUSHARE_COMMON_UNITS_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes: digits, then K, M, G or T in either case, with or without B or iB after
 * it ("1G", "1GB", "1GiB" are the same, powers of 1024); B alone and nothing are
 * bytes. Of a fraction ("1.5G", "0.1G") what is less than a byte is dropped; a number of
 * bytes has none.
 * Returns 0; -EINVAL not a size; -ERANGE above UINT64_MAX. *bytes only on success.
 */
int units_parse_size(const char *text, size_t length, uint64_t *bytes);

/*
 * A per cent value above 0 and up to 100 with at most two digits after the point, without
 * a per cent sign, as hundredths: "12.5" is 1250.
 * Returns 0; -EINVAL not a number; -ERANGE outside. *hundredths only on success.
 */
int units_parse_percentage(const char *text, size_t length, uint32_t *hundredths);

/*
 * Time: digits, a fraction or none, and a unit: ns, us, ms, s, min or h ("250ms", "1.5s",
 * "2min"); the unit is never left out. Fractions of a nanosecond are dropped.
 * Returns 0; -EINVAL not a time; -ERANGE above UINT64_MAX ns. *ns only on success.
 */
int units_parse_duration(const char *text, size_t length, uint64_t *ns);

/* A whole number from 0 to most. Returns 0; -EINVAL not a number; -ERANGE above most. */
int units_parse_number(const char *text, size_t length, uint64_t most, uint64_t *number);

/* Room for any text of the functions below, its NUL included. */
#define UNITS_TEXT 32

/* Exact, and read back by units_parse_size: "1G", "512M", "1048577B". Returns text. */
const char *units_format_size(uint64_t bytes, char text[UNITS_TEXT]);

/* For people: "1.5 GiB", "512 MiB", "17 B", rounded to one digit after the point. Returns text. */
const char *units_format_bytes(uint64_t bytes, char text[UNITS_TEXT]);

/* Exact, and read back by units_parse_duration: "250ms", "2min", "1500us". Returns text. */
const char *units_format_duration(uint64_t ns, char text[UNITS_TEXT]);

/* "12.5" for 1250. Returns text. */
const char *units_format_percentage(uint32_t hundredths, char text[UNITS_TEXT]);

#endif
