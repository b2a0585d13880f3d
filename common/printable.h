/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* printable: texts of others, without the characters that a terminal, a log or a protocol could
 * take for commands, and without bytes that are no UTF-8. Any thread. */
#ifndef GPUSHARE_COMMON_PRINTABLE_H
#define GPUSHARE_COMMON_PRINTABLE_H

#include <stddef.h>

/* The bytes of the character that a text begins with, 1 to 4, if it is valid UTF-8 of the shortest
 * form and no control character (those from U+0080 on included). 0 if it is none, and at the end of
 * the text. */
size_t printable_bytes(const char *text);

/* Replaces each byte that belongs to no such character by '?': control characters, line breaks
 * included, and what is not UTF-8, such as a character that was cut. */
void printable_replace(char *text);

#endif
