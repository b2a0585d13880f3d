/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * dialect: the form of amounts in every configuration: environment, YAML, options, commands.
 *
 * Each resource has a request (guaranteed) and a limit (never exceeded). A share is a percentage
 * with its sign ("25%", "12.5%") or a fraction with its point ("0.25", "1.0"). A bare "25" or "1"
 * could mean either, so it is refused.
 *
 * Memory is a size of common/units.h ("4G") or a share of the device's memory. A bare "90" is
 * refused for it too: the sign was probably forgotten, and a limit of 90 bytes is of no use. So is
 * a bare "500", which was meant to be 500M.
 *
 * Functions without state, on a text that is given by start and length. Any thread.
 */
#ifndef GPUSHARE_COMMON_LIMITS_DIALECT_H
#define GPUSHARE_COMMON_LIMITS_DIALECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a share could stand as well, a smaller number is not taken for a size. */
#define DIALECT_BYTES_MIN 101
/* A smaller number of bytes without a unit is no size, but for 0: its unit was forgotten. */
#define DIALECT_BARE_MIN 1000000

/* The accepted forms, for use in sentences. */
#define DIALECT_FORM_SHARE "a share above 0, like 25% or 0.25, up to 100% or 1.0, in steps of 0.01%"
#define DIALECT_FORM_PERCENTAGE                                                                    \
    "a number above 0 and up to 100 with at most two digits after the point, without a % sign"
#define DIALECT_FORM_SIZE "a size, like 512M or 4G"
#define DIALECT_FORM_AMOUNT                                                                        \
    "a size above 100 bytes, like 512M or 4G, or a share in steps of 0.01%, like 25% or 0.25"

enum dialect_unit { DIALECT_UNSET, DIALECT_BYTES, DIALECT_SHARE };

struct dialect_amount {
    enum dialect_unit unit;
    uint64_t value; /* in bytes; or in hundredths of a per cent, 1 to 10000 */
};

/* Reads a share. Returns 0; -EINVAL if the text is no share; -ERANGE if it is not above 0 and at
 * most 100 %. Here and below *amount is written on success only. */
int dialect_parse_share(const char *text, size_t length, struct dialect_amount *amount);

/* A per cent value without its sign, as MPS takes it, into a share. 0, -EINVAL or -ERANGE. */
int dialect_parse_percentage(const char *text, size_t length, struct dialect_amount *amount);

/* Reads a size. Returns 0; -EINVAL if the text is no size; -ERANGE if it is UINT64_MAX or above, or
 * if its unit is missing. */
int dialect_parse_size(const char *text, size_t length, struct dialect_amount *amount);

/* Reads a size of at least DIALECT_BYTES_MIN, or a share. Returns 0; -EINVAL if the text is
 * neither; -ERANGE if it is out of range. */
int dialect_parse_amount(const char *text, size_t length, struct dialect_amount *amount);

/* Whether a text is a number of bytes without a unit, above 0 and below DIALECT_BARE_MIN. */
bool dialect_unit_is_missing(const char *text, size_t length);

enum { DIALECT_FORM_ROOM = 128 };

/* The words for what a refused text should have been: `form`; or, if its unit is missing, the form
 * with the value and its remedy, written to room. form: one of those above or a variable's own;
 * share: whether a per cent value could be meant too. Returns form or room. */
const char *dialect_form(const char *form, bool share, const char *text, size_t length,
                         char room[DIALECT_FORM_ROOM]);

/* Writes an amount as people write it: "25%", "4G". text: UNITS_TEXT bytes. Returns text. */
const char *dialect_format(struct dialect_amount amount, char *text);

#endif
