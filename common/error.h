/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/*
 * error: the numbers that both sides use, and one type that carries such a number with a sentence
 * for a person. The numbers, their names and their general sentences come from one table in
 * schemas/protocol.xml.
 *
 * Return values have two classes in the whole tree, as in dbus-broker. 0 is success. A positive
 * value is a condition that the function's own header explains, and the caller has to handle it.
 *
 * A negative value is a negated errno: it is fatal to the operation, and callers forward it
 * unchanged. A caller compares it only with values that the callee's header names, or that the
 * system call behind it documents, and only to choose a sentence or another way.
 *
 * The numbers of this table are not errnos. They travel in messages, and the public API returns
 * them.
 *
 * A function whose failure a person reads takes a `struct error *why` as its last parameter. It
 * returns 0, or the number that it set there: `return error_set(why, MESSAGE(name), ...)`, with a
 * name from common/messages.h. A caller that passes the failure on returns the number and leaves
 * *why alone. After success *why is unchanged.
 *
 * `why` is never NULL. Any thread may call; one struct error belongs to one thread at a time.
 */
#ifndef GPUSHARE_COMMON_ERROR_H
#define GPUSHARE_COMMON_ERROR_H

#include <stdint.h>

/* Room for a text of the protocol (380 bytes) and for words that are put before it. */
enum { ERROR_TEXT_BYTES = 512 };

struct error {
    uint32_t number;             /* from the error table; 0: no error */
    char text[ERROR_TEXT_BYTES]; /* one sentence for a person, cut to this size */
    const char *format;          /* that the text was made of, by which the log knows the message;
                                    NULL: it does not */
};

/* Sets *why and returns the number, so that a function can end with the call. format: stays for the
 * program's life. The arguments must not point into *why: error_prefix puts words before it. */
uint32_t error_set(struct error *why, uint32_t number, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Puts words before the text ("for staging: ..."), keeps the number and returns it. A text that
 * becomes too long loses its end. The arguments must not point into *why. */
uint32_t error_prefix(struct error *why, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

/* The name of a number, such as "out_of_memory"; "unrecognized" for a number that the table
 * lacks. Static. */
const char *error_name(uint32_t number);

/* The table's own sentence for a number: lower case, no full stop. A number that the table lacks
 * has a sentence that says so. Static. */
const char *error_sentence(uint32_t number);

/* The table's number for a CUresult: the same number if the table has it, else
 * PROTO_ERROR_UNKNOWN. gpushare's own numbers (10000 and above) count as numbers that the table
 * lacks. */
uint32_t error_from_cuda(int result);

/* The table's number for an errno that a request met. The errno may have either sign; 0 gives
 * PROTO_ERROR_SUCCESS. */
uint32_t error_from_errno(int number);

#endif
