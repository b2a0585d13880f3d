/* SPDX-License-Identifier: Apache-2.0 */
/* SPDX-FileCopyrightText: The gpushare authors */
/* ok: calls of the client library that a test needs to succeed. */
#ifndef GPUSHARE_TESTS_SUPPORT_OK_H
#define GPUSHARE_TESTS_SUPPORT_OK_H

#include "client/gpushare.h"

#define OK(call) ok_check((call), #call, __FILE__, __LINE__)

/*
 * Does nothing after a success. After a failure it says which call failed and why, in the words of
 * the client library, and fails the cmocka case. In a thread or a process that the case started,
 * which cannot leave the case, it aborts.
 */
void ok_check(gpushare_error error, const char *call, const char *file, int line);

#endif
