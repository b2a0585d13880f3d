/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * dialect: amounts of what is shared, as every configuration writes them.
 *
 * threads, memory, host_memory and time each have a request (guaranteed) and a limit
 * (never exceeded). A share is written as a per cent value with its sign ("25%",
 * "12.5%") or as a fraction with its point ("0.25", "1.0"); a bare "25" or "1" could
 * mean either and is refused. Memory is a size of common/units.h ("4G") or a share of
 * the device's, and so a bare "90" is refused there too: who writes it has forgotten
 * the sign, and 90 bytes are of no use to anybody. Pure functions on a text with start
 * and length. Any thread.
 */
#ifndef GPUSHARE_COMMON_DIALECT_H
#define GPUSHARE_COMMON_DIALECT_H

#include <stddef.h>
#include <stdint.h>

/* Less than that is no size where a share could stand as well. */
#define DIALECT_BYTES_LEAST 101

/* The form of each, as messages describe it. */
#define DIALECT_FORM_SHARE "a share above 0, like 25% or 0.25, up to 100% or 1.0"
#define DIALECT_FORM_PERCENTAGE                                                                    \
    "a number above 0 and up to 100 with at most two digits after the point, without a % sign"
#define DIALECT_FORM_SIZE   "a size, like 512M or 4G"
#define DIALECT_FORM_AMOUNT "a size above 100 bytes, like 512M or 4G, or a share, like 25% or 0.25"

enum dialect_unit { DIALECT_UNSET, DIALECT_BYTES, DIALECT_SHARE };

struct dialect_amount {
    enum dialect_unit unit;
    uint64_t value; /* bytes, or hundredths of a per cent from 1 to 10000 */
};

/* A share, into hundredths of a per cent. 0; -EINVAL not a share; -ERANGE outside. */
int dialect_parse_share(const char *text, size_t length, struct dialect_amount *amount);

/* A per cent value without its sign, as MPS takes it, into a share. 0, -EINVAL or -ERANGE. */
int dialect_parse_percentage(const char *text, size_t length, struct dialect_amount *amount);

/* A size. 0, -EINVAL or -ERANGE. */
int dialect_parse_size(const char *text, size_t length, struct dialect_amount *amount);

/* A size of DIALECT_BYTES_LEAST at least, or a share. 0, -EINVAL or -ERANGE. */
int dialect_parse_amount(const char *text, size_t length, struct dialect_amount *amount);

/* As people write it: "25%", "4G". Returns text, of UNITS_TEXT bytes. */
const char *dialect_format(struct dialect_amount amount, char *text);

#endif
