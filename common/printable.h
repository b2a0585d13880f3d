/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* printable: texts of others, without the characters that a terminal, a log or a protocol could
 * take for commands. Any thread. */
#ifndef GPUSHARE_COMMON_PRINTABLE_H
#define GPUSHARE_COMMON_PRINTABLE_H

/* Replaces each control character of the text, line breaks included, by '?'. Other bytes stay, so
 * UTF-8 does too. */
void printable_replace(char *text);

#endif
