/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * error: the numbers that both sides use, their names and sentences, from one
 * table (schemas/protocol.xml).
 *
 * Two classes of return value run through the whole tree: 0 is success; negative
 * is fatal to the operation (a negated errno), forwarded unchanged and never
 * matched on; positive is a condition that the function's own header documents
 * and the caller must handle. Error numbers of this table travel in messages and
 * are what the public API returns; they are not errnos. (dbus-broker's discipline.)
 *
 * A function whose failure a person reads takes a `struct error *why` as its last parameter and
 * returns 0, or the number that it set there: `return error_set(why, PROTO_ERROR_..., "...")`.
 * A caller that passes the failure on returns the number and leaves *why alone. After success
 * *why is as it was. why is never NULL. Any thread; an object belongs to one at a time.
 */
#ifndef GPUSHARE_COMMON_ERROR_H
#define GPUSHARE_COMMON_ERROR_H

#include <stdint.h>

/* Holds a text of the protocol, with room for words that are put before it. */
enum { ERROR_TEXT_BYTES = 512 };

struct error {
    uint32_t number;             /* of the table; 0: none */
    char text[ERROR_TEXT_BYTES]; /* one sentence for a person; what is longer is cut */
};

/* Sets both; returns number, so that a function can end with it. The arguments may not lie in
 * *why: error_prefix puts words before its text. */
uint32_t error_set(struct error *why, uint32_t number, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts words before the text ("for staging: ..."), keeps the number and returns it. */
uint32_t error_prefix(struct error *why, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* "out_of_memory"; "unrecognized" for a number that the table lacks. Static. */
const char *error_name(uint32_t number);

/* One lower-case sentence without a full stop. Static. */
const char *error_sentence(uint32_t number);

/* The table's number for a CUresult: the same number if the table has it, else unknown. */
uint32_t error_from_cuda(int result);

/* The table's number for an errno (either sign) met while serving a request. */
uint32_t error_from_errno(int number);

#endif
