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
 */
#ifndef GPUSHARE_COMMON_ERROR_H
#define GPUSHARE_COMMON_ERROR_H

#include <stdint.h>

/* "out_of_memory"; "unrecognized" for a number that the table lacks. Static. */
const char *error_name(uint32_t number);

/* One lower-case sentence without a full stop. Static. */
const char *error_sentence(uint32_t number);

/* The table's number for a CUresult: the same number if the table has it, else unknown. */
uint32_t error_from_cuda(int result);

/* The table's number for an errno (either sign) met while serving a request. */
uint32_t error_from_errno(int number);

#endif
